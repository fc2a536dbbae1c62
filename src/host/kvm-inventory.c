/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Every VM of the host, under the name that its process claims, if that is believed (host/vms.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/inventories.h"
#include "host/proxmox.h"

static bool kvm_is_here(const struct wss_root *root)
{
	(void)root;
	return true;
}

static int kvm_list(const struct wss_root *root, const struct wss_vm *vms, size_t n,
		    struct wss_inventory_guest **ret_guests, size_t *ret_n, struct wss_error *err)
{
	struct wss_inventory_guest *guests = calloc(n + 1, sizeof(*guests));

	(void)root;
	if (!guests)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	for (size_t i = 0; i < n; i++) {
		struct wss_inventory_guest *guest = &guests[i];

		guest->state = WSS_INVENTORY_RUNNING;
		guest->vm = vms[i];
		guest->balloon_unseen = true;
		snprintf(guest->id, sizeof(guest->id), "%d", vms[i].pid);
		snprintf(guest->name, sizeof(guest->name), "%s", vms[i].name);
		snprintf(guest->uuid, sizeof(guest->uuid), "%s", vms[i].uuid);
		snprintf(guest->monitor, sizeof(guest->monitor), "%s", vms[i].monitor);
		guest->monitor_ms = strcmp(vms[i].manager, "proxmox") ? 0 : WSS_PROXMOX_MONITOR_MS;
	}
	*ret_guests = guests;
	*ret_n = n;
	return 0;
}

const struct wss_inventory_ops wss_inventory_kvm = {
	.uri = "kvm:///",
	.is_here = kvm_is_here,
	.list = kvm_list,
};
