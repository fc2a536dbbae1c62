/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A deadline for work that consists of many waits with a timeout each, such as asking a slow QEMU
 * twenty questions of 4.8 s; and the token that cancels it.
 *
 * The work runs the deadline before a piece that counts and pauses it afterwards: what it waits for
 * by its own will, such as the end of a window, is not taken off its time. While it runs, every wait
 * ends by wss_deadline_at_ns(), and a step that cannot be cut short, such as a call of libvirt, is
 * refused by wss_deadline_check() once that has passed. A second thread may look at it meanwhile
 * (wss_deadline_overrun()); all else is for the thread that works.
 *
 * Where a function takes a deadline, NULL stands for one without limit that only a stop signal
 * cancels.
 */
#ifndef WSS_BASE_DEADLINE_H
#define WSS_BASE_DEADLINE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/cancel.h"
#include "base/error.h"

struct wss_deadline {
	const struct wss_cancel *cancel; /* NULL: the stop signal alone */
	_Atomic uint64_t allowed_ns;	 /* 0: without limit */
	uint64_t left_ns;
	uint64_t from_ns;	/* since when it runs */
	_Atomic uint64_t at_ns; /* wss_clock_now_ns(); 0: it does not run */
};

/* Allows allowed_ns from now on, 0 without limit; not running. Keeps the token. */
void wss_deadline_allow(struct wss_deadline *deadline, uint64_t allowed_ns);

/* Allows as much again as was allowed before. */
void wss_deadline_renew(struct wss_deadline *deadline);

/* Time counts from now, or from from_ns (wss_clock_now_ns(); 0: now) if that is later. */
void wss_deadline_run(struct wss_deadline *deadline, uint64_t from_ns);

/* What has passed is taken off. May be called when it does not run. */
void wss_deadline_pause(struct wss_deadline *deadline);

/* Has all of it been used? Of one that does not run. */
bool wss_deadline_spent(const struct wss_deadline *deadline);

/* wss_clock_now_ns(); UINT64_MAX where it does not run. */
uint64_t wss_deadline_at_ns(const struct wss_deadline *deadline);

/* 0 while there is time, else -1 with wss_deadline_error(). */
int wss_deadline_check(const struct wss_deadline *deadline, struct wss_error *err);

/* From any thread: has it been running for grace_ns longer than allowed? */
bool wss_deadline_overrun(const struct wss_deadline *deadline, uint64_t grace_ns);

/* Sets WSS_ERR_TIMEOUT with a text that names the time allowed. Returns -1; err may be NULL. */
int wss_deadline_error(const struct wss_deadline *deadline, struct wss_error *err);

/* The token; NULL for NULL. */
const struct wss_cancel *wss_deadline_cancel(const struct wss_deadline *deadline);

#endif
