/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Encodes the runs of pages in an interval's frames: each run is two numbers, its distance
 * from the end of the previous one and its length. A length of 0 is not a run: the number
 * before it then selects the change that follows (0 to 5), or announces the counts (6).
 */
#pragma once

#include "recording/codec.h"

#define WSS_TOKEN_COUNTS WSS_CHANGES

/* Position in a frame's payload; each payload starts with a fresh one. */
struct wss_token_state {
	unsigned change; /* WSS_CHANGES: none yet */
	uint64_t gfn;	 /* end of the last run */
};

#define WSS_TOKEN_STATE_INIT          \
	{                             \
		.change = WSS_CHANGES \
	}

static inline void wss_token_put_run(struct wss_buffer *buffer, struct wss_token_state *state,
				     enum wss_change change, uint64_t gfn, uint64_t n)
{
	if (state->change != change) {
		wss_buffer_number(buffer, change);
		wss_buffer_number(buffer, 0);
		*state = (struct wss_token_state){.change = change};
	}
	wss_buffer_number(buffer, gfn - state->gfn);
	wss_buffer_number(buffer, n);
	state->gfn = gfn + n;
}

static inline void wss_token_put_counts(struct wss_buffer *buffer, const uint64_t counts[3])
{
	wss_buffer_number(buffer, WSS_TOKEN_COUNTS);
	wss_buffer_number(buffer, 0);
	for (int i = 0; i < 3; i++)
		wss_buffer_number(buffer, counts[i]);
}
