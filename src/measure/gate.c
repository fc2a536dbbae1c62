/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "measure/gate.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/cond.h"
#include "base/number.h"

/* Grace time in each state: enough for a slow guest, but not for one that hangs. */
#define GRACE_NS WSS_NS_PER_S
/* How soon a thread that waits sees that it was cancelled. */
#define CANCEL_NS (250 * WSS_NS_PER_MS)

TAILQ_HEAD(tickets, wss_ticket);

struct wss_gate {
	pthread_mutex_t lock;
	unsigned jobs;
	uint64_t stagger_ns;
	uint64_t entered_ns, armed_ns; /* when a ticket last did so; 0 if none has */
	struct tickets waiting;	       /* to enter, oldest first */
	struct tickets open;	       /* inside, but not armed yet, oldest first */
	struct tickets armed;	       /* most of them: they wait for nothing here */
	unsigned n_inside;	       /* open and armed */
};

struct wss_gate *wss_gate_new(unsigned jobs, uint64_t stagger_ns)
{
	struct wss_gate *gate = calloc(1, sizeof(*gate));

	if (!gate)
		return NULL;
	pthread_mutex_init(&gate->lock, NULL);
	gate->jobs = jobs;
	gate->stagger_ns = stagger_ns;
	TAILQ_INIT(&gate->waiting);
	TAILQ_INIT(&gate->open);
	TAILQ_INIT(&gate->armed);
	return gate;
}

void wss_gate_free(struct wss_gate *gate)
{
	if (!gate)
		return;
	pthread_mutex_destroy(&gate->lock);
	free(gate);
}

static const struct wss_ticket *first_waiting(const struct tickets *list)
{
	const struct wss_ticket *ticket;

	TAILQ_FOREACH(ticket, list, place)
	if (ticket->wake)
		break;
	return ticket;
}

/*
 * Wakes those who are next, to enter and to be armed, unless it is only time that they wait for. The caller holds
 * the lock.
 */
static void gate_wake(const struct wss_gate *gate)
{
	const struct wss_ticket *next[] = {first_waiting(&gate->waiting),
					   first_waiting(&gate->open)};

	uint64_t now_ns = wss_clock_now_ns();

	for (size_t i = 0; i < sizeof(next) / sizeof(next[0]); i++)
		if (next[i] && next[i]->sleeps_until_ns <= now_ns)
			pthread_cond_signal(next[i]->wake);
}

void wss_gate_set_jobs(struct wss_gate *gate, unsigned jobs)
{
	pthread_mutex_lock(&gate->lock);
	gate->jobs = jobs;
	gate_wake(gate);
	pthread_mutex_unlock(&gate->lock);
}

void wss_gate_set_stagger(struct wss_gate *gate, uint64_t stagger_ns)
{
	pthread_mutex_lock(&gate->lock);
	gate->stagger_ns = stagger_ns;
	gate_wake(gate);
	pthread_mutex_unlock(&gate->lock);
}

static bool ticket_overdue(const struct wss_ticket *ticket, uint64_t now_ns)
{
	return now_ns >= ticket->expected_ns && now_ns - ticket->expected_ns >= GRACE_NS;
}

/* How much of the stagger is left. */
static uint64_t stagger_left_ns(const struct wss_gate *gate, uint64_t last_ns, uint64_t now_ns)
{
	if (!last_ns || now_ns < last_ns || now_ns - last_ns >= gate->stagger_ns)
		return 0;
	return gate->stagger_ns - (now_ns - last_ns);
}

static unsigned count_overdue(const struct tickets *list, uint64_t now_ns)
{
	const struct wss_ticket *ticket;
	unsigned n = 0;

	TAILQ_FOREACH(ticket, list, place)
	n += ticket_overdue(ticket, now_ns);
	return n;
}

static bool place_free(const struct wss_gate *gate, uint64_t now_ns)
{
	if (gate->n_inside < gate->jobs)
		return true;
	return gate->n_inside - count_overdue(&gate->open, now_ns) -
		       count_overdue(&gate->armed, now_ns) <
	       gate->jobs;
}

static bool arming_free(const struct wss_gate *gate, uint64_t now_ns)
{
	const struct wss_ticket *ticket;

	TAILQ_FOREACH(ticket, &gate->open, place)
	if (ticket->state == WSS_TICKET_ARMING && !ticket_overdue(ticket, now_ns))
		return false;
	return true;
}

static int gate_interrupted(struct wss_error *err)
{
	return wss_error_set(err, WSS_ERR_INTERRUPTED, "interrupted");
}

/*
 * Waits until the ticket is the first of the list that waits, the stagger since *last_ns is
 * over, and may() says that nobody else is in the way. False: it was cancelled. The caller
 * holds the lock.
 */
static bool ticket_wait(struct wss_gate *gate, struct wss_ticket *ticket,
			const struct tickets *list, const uint64_t *last_ns,
			bool (*may)(const struct wss_gate *gate, uint64_t now_ns),
			const struct wss_cancel *cancel)
{
	pthread_cond_t wake;
	bool cancelled;

	wss_cond_init(&wake);
	ticket->wake = &wake;
	while (!(cancelled = wss_cancel_requested(cancel))) {
		uint64_t now_ns = wss_clock_now_ns(), left_ns, timeout_ns = CANCEL_NS;

		ticket->sleeps_until_ns = 0;
		if (first_waiting(list) == ticket) {
			left_ns = stagger_left_ns(gate, *last_ns, now_ns);
			if (!left_ns && may(gate, now_ns))
				break;
			/* Without stagger another ticket is in the way, until it leaves or is
			 * overdue. */
			timeout_ns = left_ns ? wss_u64_min(left_ns, CANCEL_NS) : WSS_COND_MOMENT_NS;
			if (left_ns)
				ticket->sleeps_until_ns = now_ns + timeout_ns;
		}
		wss_cond_wait_ns(&wake, &gate->lock, timeout_ns);
	}
	ticket->wake = NULL;
	pthread_cond_destroy(&wake);
	return !cancelled;
}

int wss_gate_enter(struct wss_gate *gate, struct wss_ticket *ticket, uint64_t expected_ns,
		   const struct wss_cancel *cancel, struct wss_error *err)
{
	bool entered;

	if (!gate)
		return wss_cancel_requested(cancel) ? gate_interrupted(err) : 0;
	pthread_mutex_lock(&gate->lock);
	TAILQ_INSERT_TAIL(&gate->waiting, ticket, place);
	entered = ticket_wait(gate, ticket, &gate->waiting, &gate->entered_ns, place_free, cancel);
	TAILQ_REMOVE(&gate->waiting, ticket, place);
	if (entered) {
		gate->entered_ns = wss_clock_now_ns();
		ticket->state = WSS_TICKET_OPEN;
		ticket->expected_ns = gate->entered_ns + expected_ns;
		TAILQ_INSERT_TAIL(&gate->open, ticket, place);
		gate->n_inside++;
	}
	gate_wake(gate);
	pthread_mutex_unlock(&gate->lock);
	return entered ? 0 : gate_interrupted(err);
}

int wss_gate_turn(struct wss_gate *gate, struct wss_ticket *ticket, const struct wss_cancel *cancel,
		  struct wss_error *err)
{
	bool granted;

	if (!gate)
		return 0;
	pthread_mutex_lock(&gate->lock);
	if (ticket->state == WSS_TICKET_ARMING) {
		pthread_mutex_unlock(&gate->lock);
		return 0;
	}
	/* Its window begins again: it entered before those that are not armed yet. */
	if (ticket->state == WSS_TICKET_ARMED) {
		TAILQ_REMOVE(&gate->armed, ticket, place);
		TAILQ_INSERT_HEAD(&gate->open, ticket, place);
		ticket->state = WSS_TICKET_OPEN;
	}
	granted = ticket_wait(gate, ticket, &gate->open, &gate->armed_ns, arming_free, cancel);
	if (granted) {
		gate->armed_ns = wss_clock_now_ns();
		ticket->state = WSS_TICKET_ARMING;
		ticket->expected_ns = gate->armed_ns;
	}
	gate_wake(gate);
	pthread_mutex_unlock(&gate->lock);
	return granted ? 0 : gate_interrupted(err);
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
		TAILQ_REMOVE(&gate->open, ticket, place);
		TAILQ_INSERT_HEAD(&gate->armed, ticket, place);
	}
	gate_wake(gate);
	pthread_mutex_unlock(&gate->lock);
}

void wss_gate_leave(struct wss_gate *gate, struct wss_ticket *ticket)
{
	if (!gate)
		return;
	pthread_mutex_lock(&gate->lock);
	if (ticket->state != WSS_TICKET_OUTSIDE) {
		TAILQ_REMOVE(ticket->state == WSS_TICKET_ARMED ? &gate->armed : &gate->open, ticket,
			     place);
		gate->n_inside--;
	}
	ticket->state = WSS_TICKET_OUTSIDE;
	gate_wake(gate);
	pthread_mutex_unlock(&gate->lock);
}

uint64_t wss_gate_end_ns(struct wss_gate *gate)
{
	const struct wss_ticket *ticket;
	uint64_t end_ns = 0;

	pthread_mutex_lock(&gate->lock);
	TAILQ_FOREACH(ticket, &gate->armed, place)
	if (ticket->expected_ns > end_ns)
		end_ns = ticket->expected_ns;
	pthread_mutex_unlock(&gate->lock);
	return end_ns;
}
