/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A deadline for work that consists of many waits with a timeout each, such as twenty requests
 * to a slow QEMU that take 4.8 s each; and the token that cancels the work.
 *
 * The work runs the deadline before each part that counts and pauses it afterwards: time that
 * it waits on purpose, such as until the end of a window, does not count. While the deadline
 * runs, every wait ends by wss_deadline_at_ns(). A step that cannot be cut short, such as a
 * libvirt call, is refused by wss_deadline_check() once that time has passed. A second thread
 * may call wss_deadline_overrun() meanwhile; all other functions are for the thread that does
 * the work.
 *
 * Where a function takes a deadline, NULL stands for one without limit that only a stop signal
 * cancels.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/cancel.h"
#include "base/error.h"

struct wss_deadline {
	const struct wss_cancel *cancel; /* NULL: the stop signal alone */
	_Atomic uint64_t allowed_ns;	 /* 0: without limit */
	uint64_t left_ns;
	uint64_t from_ns;	    /* start of the current run */
	_Atomic uint64_t at_ns;	    /* time of wss_clock_now_ns(); 0 while paused */
	_Atomic(const char *) step; /* what the work is doing; NULL: not said */
};

/* Sets the time allowed, 0 for no limit, and leaves the deadline paused. Keeps the token. */
void wss_deadline_allow(struct wss_deadline *deadline, uint64_t allowed_ns);

/* Allows the same time again. */
void wss_deadline_renew(struct wss_deadline *deadline);

/*
 * Runs the deadline from now, or from from_ns (a time of wss_clock_now_ns(); 0: now) if that
 * is later.
 */
void wss_deadline_run(struct wss_deadline *deadline, uint64_t from_ns);

/* Pauses the deadline and subtracts the time that it ran. Does nothing if it is paused already. */
void wss_deadline_pause(struct wss_deadline *deadline);

/* Whether a paused deadline has no time left. */
bool wss_deadline_spent(const struct wss_deadline *deadline);

/* Returns a time of wss_clock_now_ns(); UINT64_MAX while the deadline is paused. */
uint64_t wss_deadline_at_ns(const struct wss_deadline *deadline);

/* Returns 0 while there is time, else -1 with wss_deadline_error(). */
int wss_deadline_check(const struct wss_deadline *deadline, struct wss_error *err);

/* Whether it has been running for grace_ns longer than allowed. Any thread may call this. */
bool wss_deadline_overrun(const struct wss_deadline *deadline, uint64_t grace_ns);

/*
 * Notes what the work does next, "reading the domain's XML": a constant. It holds until the deadline is run or
 * paused. A deadline that others see as constant has it, too.
 */
void wss_deadline_step(const struct wss_deadline *deadline, const char *step);

/*
 * Sets WSS_ERR_TIMEOUT with a text that states the time allowed, and the step. Returns -1; err may be NULL.
 */
int wss_deadline_error(const struct wss_deadline *deadline, struct wss_error *err);

/* Returns the token; NULL if deadline is NULL. */
const struct wss_cancel *wss_deadline_cancel(const struct wss_deadline *deadline);
