/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How much memory a guest gets back, both from the controller and from the restore. */
#ifndef WSS_CONTROL_GIVE_BACK_H
#define WSS_CONTROL_GIVE_BACK_H

#include <stdint.h>

#include "host/guest.h"

/*
 * Returns the size in bytes to which to set the balloon of a guest that had original_bytes
 * before the first step and has now_bytes now. A guest that has more than its original size
 * was given that by somebody else and keeps it. The result never exceeds the guest's maximum.
 */
uint64_t wss_give_back_due_bytes(const struct wss_guest *guest, uint64_t original_bytes,
				 uint64_t now_bytes);

#endif
