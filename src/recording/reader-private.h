/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Internals of reader.c that replay.c needs. */
#pragma once

#include "recording/codec.h"
#include "recording/reader.h"

struct wss_recfile {
	int fd;
	char *name;
	bool salvage; /* a damaged end is left out */
	struct wss_recording *recording;
	struct wss_recfile_state state;
	uint32_t seed;
	uint64_t first_frame;	  /* offset */
	uint64_t interval_end_ns; /* end of the newest interval */
	bool interval_gap, interval_degraded;
	uint64_t whole;		/* offset after the last complete interval or mark */
	uint64_t nonsense_at;	/* offset of a frame that a replay refused; 0: none */
	bool consistent;	/* a replay has found the content up to `whole` consistent */
	const uint8_t *payload; /* payload of the last frame read, in block */
	/* Read buffer for large pieces, because many frames are tiny. */
	uint8_t *block;
	uint64_t block_offset;
	size_t block_bytes;
	struct wss_pageset_budget budget;
	/* That replays may take (wss_pageset_steps()): all of them together, and those to come. */
	uint64_t steps_most, steps_left;
};

/*
 * Reads the frame at *offset into file->payload and advances to the next one; returns false if
 * the file has changed.
 */
bool wss_recfile_frame(struct wss_recfile *file, uint64_t *offset, uint32_t *sequence,
		       struct wss_frame *ret_frame);

/* What --salvage makes of so many intervals, of which so many are windows: gaps alone say nothing. */
static inline const char *wss_recfile_salvageable(uint64_t windows, uint64_t intervals)
{
	return !windows	       ? "no window among them: nothing can be salvaged"
	       : intervals > 1 ? "those can be salvaged"
			       : "which can be salvaged";
}
