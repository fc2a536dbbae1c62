/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Lists the guests of an inventory of this host: list -c kvm:///, list -c proxmox:///. */
#pragma once

#include "cmd/cmd.h"
#include "host/inventories.h"

extern const struct wss_report_layout list_vms_layout, list_guests_layout;

/* Returns the layout of its table. */
const struct wss_report_layout *list_vms_layout_of(const struct wss_inventory_ops *inventory);

/* Prints the table. Returns the exit code. */
int list_vms(const struct wss_cli *cli, const struct wss_inventory_ops *inventory);
