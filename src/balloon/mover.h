/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Who moved a guest's balloon: this program, the guest itself, or somebody else, whose size then stays.
 *
 * QEMU does not tell to what size a balloon was set, only the size that it has reached. So a size counts as
 * ours on the way from the last one to the one that was set, however slowly the guest follows, unless it
 * stops there with memory to give up. A smaller one was set by others. So was a larger one, with two
 * exceptions: after a reset the balloon is empty and goes back to the size that was set; and with
 * autodeflate the guest's kernel takes memory back, a MiB at a time, when it has none left, which a change
 * of 2 % or less is taken for unless the guest reported enough before and after. Both show only once the size
 * has settled.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "balloon/balloon.h"

enum wss_moved_by {
	WSS_MOVED_BY_US,      /* nobody else has moved it */
	WSS_MOVED_BY_UNKNOWN, /* look again in a second, and take no step */
	WSS_MOVED_BY_OTHERS,
	WSS_MOVED_BY_GUEST, /* by autodeflate */
	WSS_MOVED_BY_RESET, /* the guest was reset, and is back at the size that was set */
};

/* Opaque; public only so that callers can allocate it. */
struct wss_mover {
	uint64_t target_bytes;		  /* the size that was set */
	uint64_t low_bytes, high_bytes;	  /* smallest and largest size that this explains */
	uint64_t actual_bytes, changed_s; /* size at the last look, and time of its last change */
	uint64_t beyond_s;		  /* time of the first such look */
	bool beyond, below;
	bool had_plenty; /* by its report at the size that was set, the guest had memory left to give up */
};

/* Starts with a balloon that was set to to_bytes when it had from_bytes. */
void wss_mover_init(struct wss_mover *mover, uint64_t from_bytes, uint64_t to_bytes);

/* Notes that the balloon is set to to_bytes now, where it has actual_bytes. */
void wss_mover_set(struct wss_mover *mover, uint64_t actual_bytes, uint64_t to_bytes);

/* Notes that memory was plugged or unplugged, after which the guest has bytes more (or less). */
void wss_mover_shift(struct wss_mover *mover, int64_t bytes);

/* Whether the balloon has reached the size that was set. */
bool wss_mover_is_there(const struct wss_mover *mover);

/*
 * Whether the guest has stopped on its way to a smaller size, although it reports more memory to give up:
 * somebody else has stopped it there, as far as that can be seen.
 */
bool wss_mover_is_stopped(const struct wss_mover *mover, const struct wss_balloon_view *view);

/* Judges a look at the guest, whose size must be known. Call it about every second. */
enum wss_moved_by wss_mover_judge(struct wss_mover *mover, const struct wss_balloon_view *view,
				  bool autodeflate);
