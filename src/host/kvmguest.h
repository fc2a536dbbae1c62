/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Guests of an inventory of this host (host/inventories.h), measured by the kernel's word: of any VMM, and without an answer from it
 * or its manager.
 */
#pragma once

#include "base/error.h"
#include "host/guest.h"
#include "host/inventories.h"

/*
 * Finds a guest, as wss_conn_guest() does; the word may also be its id. root stands for "/" and must outlive the guest. Fails
 * as wss_inventory_list() and wss_inventory_pick() do, and with WSS_ERR_FAILED if its process is not believed.
 */
int wss_kvmguest_open(const struct wss_inventory_ops *inventory, const struct wss_root *root,
		      const struct wss_domain_ref *ref, const struct wss_deadline *deadline,
		      struct wss_guest **ret_guest, struct wss_error *err);
