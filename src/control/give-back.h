/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How much a guest gets back: the same for the controller and for the restore. */
#ifndef WSS_CONTROL_GIVE_BACK_H
#define WSS_CONTROL_GIVE_BACK_H

#include <stdint.h>

#include "host/guest.h"

/*
 * The size in bytes to which the balloon is to be set for a guest that had original_bytes
 * before the first step, and has now_bytes now. More than the original is what somebody else
 * has given it, and it keeps that; nobody can give it more than its maximum.
 */
uint64_t wss_give_back_due_bytes(const struct wss_guest *guest, uint64_t original_bytes,
				 uint64_t now_bytes);

#endif
