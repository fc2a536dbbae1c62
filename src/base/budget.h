/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A budget of time, for work that consists of many waits with a deadline each, such as asking a
 * slow QEMU twenty questions of 4.8 s.
 *
 * A thread enters a budget before a piece of that work and leaves it afterwards. In between, every
 * wait that the thread makes ends by wss_budget_deadline_ns(), and every step that cannot be cut
 * short is refused by wss_budget_check() once that has passed. Time outside counts for nobody, so
 * one thread may take turns on several budgets.
 */
#ifndef WSS_BASE_BUDGET_H
#define WSS_BASE_BUDGET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* All zero: without a limit. Belongs to one thread at a time. */
struct wss_budget {
	uint64_t total_ns;
	uint64_t left_ns;
};

/* What another thread sees of the budget that a thread has entered: see wss_budget_watch(). */
struct wss_budget_watch {
	_Atomic uint64_t until_ns; /* when it runs out, wss_clock_now_ns(); 0: none is entered */
	_Atomic uint64_t total_ns; /* of the last that was entered */
};

/* Fills it: total_ns are left. 0: without a limit. */
void wss_budget_init(struct wss_budget *budget, uint64_t total_ns);

/*
 * From now, or from from_ns if that is later, the time of the calling thread counts. A budget that
 * is entered already is left first. from_ns is a time of wss_clock_now_ns(), 0 for now.
 */
void wss_budget_enter(struct wss_budget *budget, uint64_t from_ns);

/* What has passed is taken off. Does nothing in a thread that has entered none. */
void wss_budget_leave(void);

/* Has all of it been used? Of a budget that has been left. */
bool wss_budget_spent(const struct wss_budget *budget);

/* When the calling thread's budget runs out; UINT64_MAX where it has entered none. */
uint64_t wss_budget_deadline_ns(void);

/* From now on watch follows what the calling thread enters and leaves; NULL: no more. */
void wss_budget_watch(struct wss_budget_watch *watch);

/*
 * 0 while there is some left, else -1 with WSS_ERR_TIMEOUT, and a text that names the total. err
 * may be NULL.
 */
int wss_budget_check(struct wss_error *err);

/* That error. Returns -1. */
int wss_budget_error(uint64_t total_ns, struct wss_error *err);

#endif
