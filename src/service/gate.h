/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The gate: when a guest's window may begin, where several guests are measured at the same time.
 *
 * Theory of operation. A ticket goes through four states, by calls of the thread that measures:
 *
 *   outside --enter--> open --turn--> arming --armed--> armed --leave--> outside
 *
 * - No more than jobs tickets are in at once; they enter in the order in which they came.
 * - From one entry to the next, and from one arming to the next, at least the stagger passes: the
 *   first keeps what a method prepares apart, the second the guests' stalls.
 * - No two guests are ever armed at the same time.
 *
 * A thread may hang in any of these, as QEMU may not answer or the kernel not give the guest's memory
 * lock. So each state has a time by which the next is expected, and a ticket that is overdue does not
 * count any more: it neither takes a place nor keeps the others from arming. It has lost its turn, not
 * the guest: whatever it does later it does alone, or ends because it was cancelled.
 */
#ifndef WSS_SERVICE_GATE_H
#define WSS_SERVICE_GATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cancel.h"
#include "base/error.h"

struct wss_gate;

enum wss_ticket_state { WSS_TICKET_OUTSIDE, WSS_TICKET_OPEN, WSS_TICKET_ARMING, WSS_TICKET_ARMED };

/* One guest's; all zero at first. The gate's from enter to leave. */
struct wss_ticket {
	enum wss_ticket_state state;
	uint64_t expected_ns; /* when the next state is due, wss_clock_now_ns() */
	struct wss_ticket *next;
};

/*
 * jobs: how many windows at once, at least 1. stagger_ns: see above, 0 to have guests armed as soon
 * as the one before is. NULL: out of memory.
 */
struct wss_gate *wss_gate_new(unsigned jobs, uint64_t stagger_ns);

/* Once no thread uses it any more. Takes NULL. */
void wss_gate_free(struct wss_gate *gate);

/* The stagger of those that enter from now on. */
void wss_gate_set_stagger(struct wss_gate *gate, uint64_t stagger_ns);

/*
 * Waits for a place; expected_ns is how long the window takes. Of this and the others below gate may
 * be NULL: then there is nobody to wait for. WSS_ERR_INTERRUPTED once cancel is requested.
 */
int wss_gate_enter(struct wss_gate *gate, struct wss_ticket *ticket, uint64_t expected_ns,
		   const struct wss_cancel *cancel, struct wss_error *err);

/* Waits until no other guest is being armed, nor has been within the stagger. WSS_ERR_INTERRUPTED. */
int wss_gate_turn(struct wss_gate *gate, struct wss_ticket *ticket,
		  const struct wss_cancel *cancel, struct wss_error *err);

/* The guest has been armed, or could not be; its window ends at end_ns, wss_clock_now_ns(). */
void wss_gate_armed(struct wss_gate *gate, struct wss_ticket *ticket, uint64_t end_ns);

/* In any state. From any thread, for a ticket whose thread was left behind. */
void wss_gate_leave(struct wss_gate *gate, struct wss_ticket *ticket);

/* When the last of the windows that are open ends, wss_clock_now_ns(); 0: none is. */
uint64_t wss_gate_end_ns(struct wss_gate *gate);

#endif
