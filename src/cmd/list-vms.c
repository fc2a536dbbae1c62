/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "cmd/list-vms.h"

#include <stdio.h>

#include "base/cleanup.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/root.h"
#include "host/vms.h"

static struct wss_value get_pid(const void *row)
{
	return wss_value_number((uint64_t)((const struct wss_vm *)row)->pid, WSS_KIND_COUNT);
}

#define FIELD(member, kind) WSS_FIELD(struct wss_vm, member, kind)

static const struct wss_column columns[] = {
	{"domain", NULL, "DOMAIN", -12, FIELD(name, TEXT), "Name of the guest"},
	{"uuid", NULL, "UUID", -36, FIELD(uuid, TEXT),
	 "UUID of the guest; made from its manager and name if its process has none that is believed"},
	{"pid", NULL, "PID", 7, WSS_GET(get_pid), "ID of its process"},
	{"program", NULL, "PROGRAM", -18, FIELD(program, TEXT), "Executable of its process"},
	{"manager", NULL, "MANAGER", -7, FIELD(manager, TEXT),
	 "What started and named it: libvirt, proxmox, incus, lxd, kubevirt or jailer; unknown if its process is "
	 "not believed; absent if it has none"},
	{"user", NULL, "USER", -8, FIELD(user_name, TEXT), "User that its process runs as"},
	{"vcpus", NULL, "VCPUS", 5, FIELD(n_vcpus, COUNT), "Virtual CPUs, a count"},
	{"memory_bytes", NULL, "MEMORY", 8, FIELD(memory_bytes, BYTES),
	 "Memory that KVM has for it, video memory included, in bytes"},
	{"believed", NULL, "BELIEVED", 8, FIELD(claims, BOOL),
	 "Whether the name, and the UUID if there is one, that its process claims are believed"},
	{"details", NULL, "DETAILS", -30, FIELD(why, TEXT), "Why its process is not believed"},
};

const struct wss_report_layout list_vms_layout = {
	.schema = "virt-wss/vms/1",
	.array_key = "vms",
	.columns = columns,
	.n_columns = sizeof(columns) / sizeof(columns[0]),
	.shown = "domain,pid,program,manager,user,vcpus,memory_bytes",
	.wide = "domain,uuid,pid,program,manager,user,vcpus,memory_bytes,believed,details",
};

static const char *const states[] = {
	[WSS_INVENTORY_OFF] = "off",
	[WSS_INVENTORY_RUNNING] = "running",
	[WSS_INVENTORY_UNKNOWN] = "unknown",
	[WSS_INVENTORY_TEMPLATE] = "template",
};

static struct wss_value guest_get_state(const void *row)
{
	return wss_value_text(states[((const struct wss_inventory_guest *)row)->state]);
}

static struct wss_value guest_get_pid(const void *row)
{
	const struct wss_inventory_guest *guest = row;

	return guest->state == WSS_INVENTORY_RUNNING
		       ? wss_value_number((uint64_t)guest->vm.pid, WSS_KIND_COUNT)
		       : wss_value_absent();
}

static struct wss_value guest_get_vcpus(const void *row)
{
	const struct wss_inventory_guest *guest = row;

	return guest->state == WSS_INVENTORY_RUNNING
		       ? wss_value_number(guest->vm.n_vcpus, WSS_KIND_COUNT)
		       : wss_value_absent();
}

#define GUEST(member, kind) WSS_FIELD(struct wss_inventory_guest, member, kind)

static const struct wss_column guest_columns[] = {
	{"id", NULL, "ID", -9, GUEST(id, TEXT),
	 "What its manager knows it by: the VMID of Proxmox VE"},
	{"domain", NULL, "DOMAIN", -12, GUEST(name, TEXT),
	 "Name of the guest; NAME:ID if several have it"},
	{"uuid", NULL, "UUID", -36, GUEST(uuid, TEXT),
	 "UUID of the guest; made from the ID if it has none, or one that another guest has, too"},
	{"state", NULL, "STATE", -8, WSS_GET(guest_get_state),
	 "running (also if it is paused: list asks no QEMU), off, template, or unknown if its process is not believed"},
	{"pid", NULL, "PID", 7, WSS_GET(guest_get_pid), "ID of its process"},
	{"vcpus", NULL, "VCPUS", 5, WSS_GET(guest_get_vcpus),
	 "Virtual CPUs of a running guest, a count"},
	{"memory_bytes", NULL, "MEMORY", 8, GUEST(memory_bytes, BYTES),
	 "Memory that its configuration gives it, in bytes"},
	{"balloon_minimum_bytes", NULL, "MINIMUM", 8, GUEST(balloon_minimum_bytes, BYTES),
	 "Size down to which its manager may shrink it, in bytes"},
	{"balloon_shares", NULL, "SHARES", 6, GUEST(balloon_shares, COUNT),
	 "Its shares among the guests that are shrunk"},
	{"tags", NULL, "TAGS", -12, GUEST(tags, TEXT), "Its tags"},
	{"details", NULL, "DETAILS", -30, GUEST(why, TEXT), "Why its process is not believed"},
};

const struct wss_report_layout list_guests_layout = {
	.schema = "virt-wss/guests/1",
	.array_key = "guests",
	.columns = guest_columns,
	.n_columns = sizeof(guest_columns) / sizeof(guest_columns[0]),
	.shown = "id,domain,state,pid,memory_bytes,balloon_minimum_bytes,balloon_shares,tags",
	.wide = "id,domain,uuid,state,pid,vcpus,memory_bytes,balloon_minimum_bytes,balloon_shares,tags,details",
};

const struct wss_report_layout *list_vms_layout_of(const struct wss_inventory_ops *inventory)
{
	return inventory == &wss_inventory_kvm ? &list_vms_layout : &list_guests_layout;
}

/* A guest whose process is not believed is a row, and no failure: it may be off. */
static void print_guest(struct wss_report *report, const struct wss_inventory_ops *inventory,
			const struct wss_inventory_guest *guest)
{
	if (guest->state == WSS_INVENTORY_UNKNOWN)
		wss_warn("%s: it is unknown whether it runs: %s", guest->name, guest->why);
	wss_report_row(report, inventory == &wss_inventory_kvm ? (const void *)&guest->vm : guest);
}

static void print_named(const struct wss_cli *cli, const struct wss_inventory_ops *inventory,
			const struct wss_inventory_guest *guests, size_t n,
			struct wss_report *report, struct wss_tally *tally)
{
	for (int i = 0; i < cli->n_domains; i++) {
		struct wss_error err = WSS_ERROR_INIT;
		const struct wss_inventory_guest *guest =
			wss_inventory_pick(guests, n, cli->domains[i], &err);

		if (guest)
			print_guest(report, inventory, guest);
		else
			wss_tally_bad(tally, cli->domains[i], &err);
	}
}

int list_vms(const struct wss_cli *cli, const struct wss_inventory_ops *inventory)
{
	wss_cleanup(wss_root_close) struct wss_root root = {.dirfd = -1};
	wss_auto_free struct wss_inventory_guest *guests = NULL;
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_tally tally = {0};
	struct wss_report *report;
	size_t n = 0;

	if (wss_root_open(wss_test_sysroot(), &root, &err) < 0 ||
	    wss_inventory_list(inventory, &root, &guests, &n, &err) < 0 ||
	    wss_report_open(stdout, cli->format, &cli->view, list_vms_layout_of(inventory), &report,
			    &err) < 0)
		return wss_cli_error(&err);
	wss_report_hold(report);
	print_named(cli, inventory, guests, n, report, &tally);
	for (size_t i = 0; i < n && !cli->n_domains; i++)
		print_guest(report, inventory, &guests[i]);
	if (wss_report_close(report, &err) < 0)
		return wss_cli_error(&err);
	if (!n && !cli->n_domains)
		wss_cli_say_empty(cli, inventory->uri, true);
	return wss_tally_exit_code(&tally, (size_t)cli->n_domains);
}
