/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How much memory a guest gets back: the same for the controller and for the restore. */
#ifndef WSS_CONTROL_GIVE_BACK_H
#define WSS_CONTROL_GIVE_BACK_H

#include <stdint.h>

#include "host/guest.h"

/*
 * Returns the size in bytes to which to set the balloon of a guest that had original_bytes
 * before the first step and has now_bytes now. If it has more than the original, somebody else
 * gave it that, and it keeps it. The result never exceeds the guest's maximum.
 */
uint64_t wss_give_back_due_bytes(const struct wss_guest *guest, uint64_t original_bytes,
				 uint64_t now_bytes);

#endif
