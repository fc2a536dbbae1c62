/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The gate decides when a guest's window may begin while several guests are measured.
 *
 * Theory of operation. A ticket goes through four states, by calls of the thread that
 * measures:
 *
 *   outside --enter--> open --turn--> arming --armed--> armed --leave--> outside
 *
 * - No more than `jobs` tickets are inside at once; they enter in the order in which they asked.
 * - Between two entries, and between two armings, at least the stagger passes. The former
 *   separates what methods do to prepare, the latter the stalls of the guests.
 * - No two guests are armed at the same time; of those that wait for that, the one that entered
 *   first is next.
 * - Only the next in line is woken, and not while it waits for the stagger to pass: with hundreds of
 *   guests, waking them each time would be most of what a service costs.
 *
 * A thread may hang in any state, because QEMU may not answer or the kernel not grant the
 * guest's memory lock. Each state therefore has a time by which the next one is expected. A
 * ticket that is overdue no longer counts: it neither occupies a place nor keeps others from
 * arming. It has lost its turn, not its guest: it continues alone, or ends because it was
 * cancelled.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/cancel.h"
#include "base/error.h"

struct wss_gate;

enum wss_ticket_state { WSS_TICKET_OUTSIDE, WSS_TICKET_OPEN, WSS_TICKET_ARMING, WSS_TICKET_ARMED };

/* A guest's ticket; must start as all zero. The gate owns it from enter to leave. */
struct wss_ticket {
	enum wss_ticket_state state;
	uint64_t expected_ns; /* when the next state is due, a time of wss_clock_now_ns() */
	TAILQ_ENTRY(wss_ticket) place; /* in one of the gate's lists */
	pthread_cond_t *wake;	       /* of its thread while it waits; NULL: it does not */
	/* It is the next one, and waits for the stagger to pass; 0: for others. */
	uint64_t sleeps_until_ns;
};

/*
 * Creates a gate. jobs is the number of windows that may be open at once, at least 1;
 * stagger_ns the time between two armings, 0 to arm each guest as soon as the previous one is
 * armed. Returns NULL when out of memory.
 */
struct wss_gate *wss_gate_new(unsigned jobs, uint64_t stagger_ns);

/* Frees a gate; no thread may still use it. Accepts NULL. */
void wss_gate_free(struct wss_gate *gate);

/* Set the number of windows at once, and the stagger, for tickets that enter from now on. */
void wss_gate_set_jobs(struct wss_gate *gate, unsigned jobs);
void wss_gate_set_stagger(struct wss_gate *gate, uint64_t stagger_ns);

/*
 * Waits for a place; expected_ns is the length of the window. In this and the following
 * functions gate may be NULL, which means that there is nobody to wait for.
 * WSS_ERR_INTERRUPTED once cancel is requested.
 */
int wss_gate_enter(struct wss_gate *gate, struct wss_ticket *ticket, uint64_t expected_ns,
		   const struct wss_cancel *cancel, struct wss_error *err);

/*
 * Waits until no other guest is being armed or was armed within the stagger. A guest whose turn it is keeps it until
 * it is armed. WSS_ERR_INTERRUPTED.
 */
int wss_gate_turn(struct wss_gate *gate, struct wss_ticket *ticket, const struct wss_cancel *cancel,
		  struct wss_error *err);

/*
 * Ends the turn: the guest has been armed, or arming has failed. Its window ends at end_ns, a
 * time of wss_clock_now_ns().
 */
void wss_gate_armed(struct wss_gate *gate, struct wss_ticket *ticket, uint64_t end_ns);

/*
 * Leaves the gate, from any state. Any thread may call this for a ticket whose thread was left
 * behind.
 */
void wss_gate_leave(struct wss_gate *gate, struct wss_ticket *ticket);

/*
 * Returns when the last of the open windows ends, a time of wss_clock_now_ns(); 0 if none is
 * open.
 */
uint64_t wss_gate_end_ns(struct wss_gate *gate);
