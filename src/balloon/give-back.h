/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How much memory a guest gets back, both from the controller and from the restore. */
#pragma once

#include <stdint.h>

#include "balloon/balloon.h"
#include "balloon/look.h"
#include "host/guest.h"

/*
 * Returns the size in bytes to which to set the balloon of a guest that had original_bytes
 * before the first step and has now_bytes now. A guest that has more than its original size
 * was given that by somebody else and keeps it. The result never exceeds the guest's maximum.
 */
uint64_t wss_give_back_due_bytes(const struct wss_guest *guest, uint64_t original_bytes,
				 uint64_t now_bytes);

/* Before memory is given back at an end: the sizes of the last looks, a second apart; all zero before them. */
struct wss_give_back_watch {
	uint64_t bytes;
	uint64_t update_s; /* the newest report when this size was found first */
	unsigned looks;
	unsigned calm; /* the looks with this size that count */
};

/*
 * Whether the size has stopped changing, or has been watched for long enough. What somebody else set a
 * moment ago does not show at once, and not before a guest that is kept waiting for a processor runs again:
 * its next report shows that.
 */
bool wss_give_back_is_calm(struct wss_give_back_watch *watch, const struct wss_balloon_view *view,
			   const struct wss_reports *reports);

/*
 * Whether the balloon of a guest with this size is empty. Then nobody need have set it: a guest without its
 * balloon driver has all memory, and QEMU still has the size that was set last, to which a driver that is
 * loaded again goes back.
 */
bool wss_give_back_is_empty(const struct wss_guest *guest, uint64_t actual_bytes);

/*
 * Replaces the size in a look by that which QEMU tells now, which takes a request to its monitor. The look
 * keeps its own if there is no answer.
 */
void wss_give_back_ask_size(struct wss_guest *guest, struct wss_balloon_view *view);
