/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The inventory of Proxmox VE: the VMs of this node, by the files of qemu-server (the names of its sources are those of
 * git.proxmox.com's qemu-server 9.2).
 */
#pragma once

#include <stdbool.h>

#include "base/amount.h"
#include "host/domxml.h"

/*
 * Longest time for which a connection of ours to a guest's QMP socket lasts, waiting included. QEMU serves one client at
 * a time, and pvestatd asks each guest every 10 s (PVE/Service/pvestatd.pm, $updatetime).
 */
#define WSS_PROXMOX_MONITOR_MS 180

/* Largest configuration that is read: more than a file of pmxcfs, which has at most 1 MiB, can have. */
#define WSS_PROXMOX_CONFIG_MAX (2U * 1024 * 1024)

/* What a configuration says of the guest as it runs, or will next start. */
struct wss_proxmox_config {
	char name[WSS_NAME_MAX];      /* "" without one */
	char uuid[WSS_UUID_TEXT_MAX]; /* of its SMBIOS tables, lower case; "" without one */
	char tags[WSS_NAME_MAX];
	bool is_template;			 /* Proxmox VE never starts it */
	bool has_balloon;			 /* a balloon device */
	struct wss_amount memory_bytes;		 /* unknown if it is not legible */
	struct wss_amount balloon_minimum_bytes; /* unknown: none is set */
	struct wss_amount balloon_shares;
};

/*
 * Reads /etc/pve/qemu-server/VMID.conf, of which the sections, snapshots and changes that are pending, are left out. Any
 * text is accepted: a line or a value that is not legible counts as missing, as for Proxmox VE itself (parse_vm_config()
 * in PVE/QemuServer.pm), but a size as unknown.
 */
void wss_proxmox_config_parse(const char *text, struct wss_proxmox_config *ret_config);
