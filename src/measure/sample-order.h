/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Puts the samples of many guests into the order of the guests, round by round, though they are measured in any order.
 *
 * Theory of operation. The first samples of all guests are the first round, the second ones the second, and so on. A
 * sample is printed once all before it of its round have been, or their guests have ended without one. So that a slow
 * guest holds nothing back without bound, its place in a round is passed over when another guest has more than
 * WSS_SAMPLES_HELD_MAX samples waiting; its next sample then belongs to the round of the others.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "measure/sample.h"

#define WSS_SAMPLES_HELD_MAX 2

struct wss_held_sample {
	struct wss_sample *sample;
	bool last;
};

/* A guest's place. All zero at first. */
struct wss_sample_place {
	size_t given; /* the round of its next sample */
	bool ended;   /* no other one follows */
	size_t n_held;
	/* Given, not printed yet; the oldest first. */
	struct wss_held_sample held[WSS_SAMPLES_HELD_MAX + 1];
};

struct wss_sample_order {
	struct wss_sample_place *places; /* in the order of output; the caller's */
	size_t n;
	void (*print)(const struct wss_sample *sample, bool last, void *opaque);
	void *opaque;
	size_t round, next; /* the place whose turn it is, and in which round; 0 at first */
};

/* Takes a guest's next sample, which is copied, and prints those whose turn it is. Without memory it is printed at once. */
void wss_sample_order_give(struct wss_sample_order *order, struct wss_sample_place *place,
			   const struct wss_sample *sample, bool last);

/* Notes that the guest gives no other sample, and prints those whose turn it is. */
void wss_sample_order_end(struct wss_sample_order *order, struct wss_sample_place *place);

/* Prints all samples that are still held, as if every guest had ended. */
void wss_sample_order_flush(struct wss_sample_order *order);
