/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the windows of one guest have taught about the cost of the next one.
 *
 * A method predicts from constants of the host: what an entry takes, and that each entry that is dropped comes back by a
 * fault of its own (measure/stall.h, measure/kvm-cost.h). That bounds the first window. How far a guest differs is much
 * the same from window to window: its KVM maps neighbours at a fault, it touches a part of what it had mapped, its
 * tables are spread over other caches. So a prediction is multiplied by the median of what the last windows were of
 * theirs. The constants count as a window themselves until there are WSS_LESSONS_KEPT, and of two in the middle the smaller one is
 * taken, so that no single window counts in which virt-wss waited for a processor.
 */
#pragma once

#include "measure/tracker.h"

#define WSS_LESSONS_KEPT 5

struct wss_lesson {
	/* Measured, of what the constants said: the last windows, in a ring. */
	double ratio[WSS_LESSONS_KEPT];
	unsigned long n; /* windows so far */
};

/* Of windows of one kind and length. All zero: none yet. */
struct wss_lessons {
	struct wss_lesson stall, faults;
};

/* Takes account of a window: said is what its method predicted. What was not measured, or not predicted, teaches nothing. */
void wss_lessons_learn(struct wss_lessons *lessons, const struct wss_prediction *said,
		       const struct wss_amount *stall_ns, const struct wss_amount *faults);

/* Corrects what the method says of the stall and the faults; these never become more than it says. */
void wss_lessons_apply(const struct wss_lessons *lessons, struct wss_prediction *prediction);

/* Whether windows have stalled the guest for longer than the constants say. */
bool wss_lessons_raise_stall(const struct wss_lessons *lessons);
