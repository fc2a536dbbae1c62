/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "service/gate.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/cond.h"

/* Grace time in each state: enough for a slow guest, but not for one that hangs. */
#define GRACE_NS WSS_NS_PER_S

struct wss_gate {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	unsigned jobs;
	uint64_t stagger_ns;
	uint64_t entered_ns, armed_ns; /* when a ticket last did so; 0 if none has */
	struct wss_ticket *waiting;    /* tickets waiting to enter, oldest first */
	struct wss_ticket *inside;
};

struct wss_gate *wss_gate_new(unsigned jobs, uint64_t stagger_ns)
{
	struct wss_gate *gate = calloc(1, sizeof(*gate));

	if (!gate)
		return NULL;
	pthread_mutex_init(&gate->lock, NULL);
	wss_cond_init(&gate->changed);
	gate->jobs = jobs;
	gate->stagger_ns = stagger_ns;
	return gate;
}

void wss_gate_free(struct wss_gate *gate)
{
	if (!gate)
		return;
	pthread_mutex_destroy(&gate->lock);
	pthread_cond_destroy(&gate->changed);
	free(gate);
}

void wss_gate_set_stagger(struct wss_gate *gate, uint64_t stagger_ns)
{
	pthread_mutex_lock(&gate->lock);
	gate->stagger_ns = stagger_ns;
	pthread_mutex_unlock(&gate->lock);
}

static bool ticket_overdue(const struct wss_ticket *ticket, uint64_t now_ns)
{
	return now_ns >= ticket->expected_ns && now_ns - ticket->expected_ns >= GRACE_NS;
}

static bool stagger_over(const struct wss_gate *gate, uint64_t last_ns, uint64_t now_ns)
{
	return !last_ns || now_ns < last_ns || now_ns - last_ns >= gate->stagger_ns;
}

static bool place_free(const struct wss_gate *gate, uint64_t now_ns)
{
	unsigned taken = 0;

	for (const struct wss_ticket *ticket = gate->inside; ticket; ticket = ticket->next)
		taken += !ticket_overdue(ticket, now_ns);
	return taken < gate->jobs;
}

static bool arming_free(const struct wss_gate *gate, uint64_t now_ns)
{
	for (const struct wss_ticket *ticket = gate->inside; ticket; ticket = ticket->next)
		if (ticket->state == WSS_TICKET_ARMING && !ticket_overdue(ticket, now_ns))
			return false;
	return true;
}

static int gate_interrupted(struct wss_error *err)
{
	return wss_error_set(err, WSS_ERR_INTERRUPTED, "interrupted");
}

static void list_append(struct wss_ticket **list, struct wss_ticket *ticket)
{
	while (*list)
		list = &(*list)->next;
	ticket->next = NULL;
	*list = ticket;
}

static void list_remove(struct wss_ticket **list, const struct wss_ticket *ticket)
{
	for (; *list; list = &(*list)->next) {
		if (*list == ticket) {
			*list = ticket->next;
			return;
		}
	}
}

/*
 * Whether a place is free and this ticket is the first in line for it. The caller holds the
 * lock.
 */
static bool wait_for_place(struct wss_gate *gate, const struct wss_ticket *ticket,
			   const struct wss_cancel *cancel)
{
	for (;;) {
		uint64_t now_ns = wss_clock_now_ns();

		if (wss_cancel_requested(cancel))
			return false;
		if (ticket == gate->waiting && place_free(gate, now_ns) &&
		    stagger_over(gate, gate->entered_ns, now_ns))
			return true;
		wss_cond_wait_a_moment(&gate->changed, &gate->lock);
	}
}

int wss_gate_enter(struct wss_gate *gate, struct wss_ticket *ticket, uint64_t expected_ns,
		   const struct wss_cancel *cancel, struct wss_error *err)
{
	bool entered;

	if (!gate)
		return wss_cancel_requested(cancel) ? gate_interrupted(err) : 0;
	pthread_mutex_lock(&gate->lock);
	list_append(&gate->waiting, ticket);
	entered = wait_for_place(gate, ticket, cancel);
	list_remove(&gate->waiting, ticket);
	if (entered) {
		gate->entered_ns = wss_clock_now_ns();
		ticket->state = WSS_TICKET_OPEN;
		ticket->expected_ns = gate->entered_ns + expected_ns;
		list_append(&gate->inside, ticket);
	}
	pthread_cond_broadcast(&gate->changed);
	pthread_mutex_unlock(&gate->lock);
	return entered ? 0 : gate_interrupted(err);
}

int wss_gate_turn(struct wss_gate *gate, struct wss_ticket *ticket,
		  const struct wss_cancel *cancel, struct wss_error *err)
{
	bool cancelled = false;

	if (!gate)
		return 0;
	pthread_mutex_lock(&gate->lock);
	for (;;) {
		uint64_t now_ns = wss_clock_now_ns();

		cancelled = wss_cancel_requested(cancel);
		if (cancelled || (arming_free(gate, now_ns) &&
				  stagger_over(gate, gate->armed_ns, now_ns)))
			break;
		wss_cond_wait_a_moment(&gate->changed, &gate->lock);
	}
	if (!cancelled) {
		gate->armed_ns = wss_clock_now_ns();
		ticket->state = WSS_TICKET_ARMING;
		ticket->expected_ns = gate->armed_ns;
	}
	pthread_mutex_unlock(&gate->lock);
	return cancelled ? gate_interrupted(err) : 0;
}

void wss_gate_armed(struct wss_gate *gate, struct wss_ticket *ticket, uint64_t end_ns)
{
	if (!gate)
		return;
	pthread_mutex_lock(&gate->lock);
	/* Skips a ticket that has been taken out because its thread was late. */
	if (ticket->state == WSS_TICKET_ARMING) {
		ticket->state = WSS_TICKET_ARMED;
		ticket->expected_ns = end_ns;
	}
	pthread_cond_broadcast(&gate->changed);
	pthread_mutex_unlock(&gate->lock);
}

void wss_gate_leave(struct wss_gate *gate, struct wss_ticket *ticket)
{
	if (!gate)
		return;
	pthread_mutex_lock(&gate->lock);
	list_remove(&gate->inside, ticket);
	ticket->state = WSS_TICKET_OUTSIDE;
	pthread_cond_broadcast(&gate->changed);
	pthread_mutex_unlock(&gate->lock);
}

uint64_t wss_gate_end_ns(struct wss_gate *gate)
{
	uint64_t end_ns = 0;

	pthread_mutex_lock(&gate->lock);
	for (const struct wss_ticket *ticket = gate->inside; ticket; ticket = ticket->next)
		if (ticket->state == WSS_TICKET_ARMED && ticket->expected_ns > end_ns)
			end_ns = ticket->expected_ns;
	pthread_mutex_unlock(&gate->lock);
	return end_ns;
}
