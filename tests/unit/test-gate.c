/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Threads that represent guests pass through the gate and record the time. The clock leaps while all of them wait. */
#include "hosttest.h"

#include <pthread.h>

#include "measure/gate.h"
#include "tests/leaping.h"

#define MAX 16
#define MS WSS_NS_PER_MS

static struct wss_gate *gate;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned inside, most_inside, arming, most_arming, n_armed;
static uint64_t armed_at_ns[MAX];

struct visitor {
	pthread_t thread;
	struct wss_ticket ticket;
	struct wss_cancel cancel;
	uint64_t window_ns;
	bool hangs_arming, hangs_inside;
	atomic_bool go_on; /* for one that hangs */
	atomic_bool in, left;
};

static void count(unsigned *what, unsigned *most, int step)
{
	pthread_mutex_lock(&lock);
	*what += (unsigned)step;
	if (*what > *most)
		*most = *what;
	pthread_mutex_unlock(&lock);
}

static void hang(struct visitor *visitor)
{
	while (!visitor->go_on)
		leaping_sleep_ns(MS);
}

static void *visit(void *opaque)
{
	struct visitor *visitor = opaque;
	struct wss_ticket *ticket = &visitor->ticket;

	if (wss_gate_enter(gate, ticket, visitor->window_ns, &visitor->cancel, NULL) < 0)
		return NULL;
	visitor->in = true;
	count(&inside, &most_inside, 1);
	if (wss_gate_turn(gate, ticket, &visitor->cancel, NULL) == 0) {
		count(&arming, &most_arming, 1);
		pthread_mutex_lock(&lock);
		armed_at_ns[n_armed++] = ticket->expected_ns;
		pthread_mutex_unlock(&lock);
		if (visitor->hangs_arming)
			hang(visitor);
		else
			leaping_sleep_ns(2 * MS);
		count(&arming, &most_arming, -1);
		wss_gate_armed(gate, ticket, wss_clock_now_ns() + visitor->window_ns);
		if (visitor->hangs_inside)
			hang(visitor);
		else
			wss_clock_sleep_until_ns(wss_clock_now_ns() + visitor->window_ns);
	}
	count(&inside, &most_inside, -1);
	wss_gate_leave(gate, ticket);
	visitor->left = true;
	return NULL;
}

static struct visitor *visitors_start(size_t n, uint64_t window_ns, size_t hangs_arming,
				      size_t hangs_inside)
{
	struct visitor *visitors = calloc(n, sizeof(*visitors));

	assert_non_null(visitors);
	inside = most_inside = arming = most_arming = n_armed = 0;
	for (size_t i = 0; i < n; i++) {
		visitors[i].window_ns = window_ns;
		visitors[i].hangs_arming = i == hangs_arming;
		visitors[i].hangs_inside = i == hangs_inside;
		assert_int_equal(wss_cancel_open(&visitors[i].cancel, NULL, NULL), 0);
		assert_int_equal(pthread_create(&visitors[i].thread, NULL, visit, &visitors[i]), 0);
		/* The threads that hang come first. */
		while (!visitors[i].in && (i == hangs_arming || i == hangs_inside))
			leaping_sleep_ns(MS);
	}
	return visitors;
}

static void visitors_end(struct visitor *visitors, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		pthread_join(visitors[i].thread, NULL);
		wss_cancel_close(&visitors[i].cancel);
	}
	free(visitors);
	wss_gate_free(gate);
}

static void wait_until_left(struct visitor *visitors, size_t n, size_t but)
{
	uint64_t end_ns = wss_clock_now_ns() + 30 * WSS_NS_PER_S;

	for (size_t i = 0; i < n; i++)
		while (i != but && !visitors[i].left) {
			assert_true(wss_clock_now_ns() < end_ns);
			leaping_sleep_ns(MS);
		}
}

/* As many windows as there are jobs, and never two armings. */
TEST(test_jobs)
{
	struct visitor *visitors;

	gate = wss_gate_new(3, 0);
	visitors = visitors_start(12, 60 * MS, MAX, MAX);
	wait_until_left(visitors, 12, 12);
	assert_int_equal(most_inside, 3);
	assert_int_equal(most_arming, 1);
	assert_int_equal(n_armed, 12);
	assert_int_equal(wss_gate_end_ns(gate), 0);
	visitors_end(visitors, 12);
}

/* No two guests are armed within the stagger. */
TEST(test_stagger)
{
	struct visitor *visitors;

	gate = wss_gate_new(8, 70 * MS);
	visitors = visitors_start(6, 200 * MS, MAX, MAX);
	wait_until_left(visitors, 6, 6);
	for (unsigned i = 1; i < n_armed; i++)
		assert_true(armed_at_ns[i] - armed_at_ns[i - 1] >= 70 * MS);
	assert_true(most_inside > 1);
	visitors_end(visitors, 6);
}

/* A guest whose arming hangs neither keeps its place nor prevents the others from being armed. */
TEST(test_hangs_arming)
{
	struct visitor *visitors;

	gate = wss_gate_new(1, 0);
	visitors = visitors_start(3, 10 * MS, 0, MAX);
	wait_until_left(visitors, 3, 0);
	assert_false(visitors[0].left);
	assert_int_equal(n_armed, 3);
	/* It does no harm if it continues late. */
	visitors[0].go_on = true;
	visitors_end(visitors, 3);
}

TEST(test_hangs_inside)
{
	struct visitor *visitors;

	gate = wss_gate_new(1, 0);
	visitors = visitors_start(3, 10 * MS, MAX, 0);
	wait_until_left(visitors, 3, 0);
	assert_false(visitors[0].left);
	visitors[0].go_on = true;
	visitors_end(visitors, 3);
}

/* A waiting thread can be cancelled by itself, even behind another one. */
TEST(test_cancelled)
{
	struct visitor *visitors;

	gate = wss_gate_new(1, 0);
	/* The first is overdue long after this test. */
	visitors = visitors_start(3, 60 * WSS_NS_PER_S, MAX, 0);
	wss_cancel_request(&visitors[2].cancel);
	wss_cancel_request(&visitors[1].cancel);
	pthread_join(visitors[2].thread, NULL);
	pthread_join(visitors[1].thread, NULL);
	assert_false(visitors[1].in || visitors[2].in);
	assert_false(visitors[0].left);
	while (!wss_gate_end_ns(gate))
		leaping_sleep_ns(MS);
	assert_true(wss_gate_end_ns(gate) > wss_clock_now_ns());
	visitors[0].go_on = true;
	pthread_join(visitors[0].thread, NULL);
	for (int i = 0; i < 3; i++)
		wss_cancel_close(&visitors[i].cancel);
	free(visitors);
	wss_gate_free(gate);
}

/* Without a gate nothing waits, but a cancel request still counts. */
TEST(test_no_gate)
{
	struct wss_cancel cancel = WSS_CANCEL_INIT;
	struct wss_error err = WSS_ERROR_INIT;

	assert_int_equal(wss_cancel_open(&cancel, NULL, NULL), 0);
	assert_int_equal(wss_gate_enter(NULL, NULL, 1, &cancel, &err), 0);
	assert_int_equal(wss_gate_turn(NULL, NULL, &cancel, &err), 0);
	wss_gate_armed(NULL, NULL, 1);
	wss_gate_leave(NULL, NULL);
	wss_cancel_request(&cancel);
	assert_int_equal(wss_gate_enter(NULL, NULL, 1, &cancel, &err), -1);
	assert_error(&err, WSS_ERR_INTERRUPTED, NULL);
	wss_cancel_close(&cancel);
}

static void *wait_in_line(void *opaque)
{
	struct visitor *visitor = opaque;

	visitor->in = true;
	if (wss_gate_enter(gate, &visitor->ticket, 0, &visitor->cancel, NULL) == 0)
		wss_gate_leave(gate, &visitor->ticket);
	return NULL;
}

static atomic_uint wakes;

/* Sleeps until it is signalled, however long that takes. */
static bool counting_wait(void *unused, pthread_cond_t *cond, pthread_mutex_t *mutex,
			  uint64_t timeout_ns)
{
	pthread_cond_wait(cond, mutex);
	wakes++;
	return true;
}

/* Those who wait sleep, even while others come and go. */
TEST(test_sleeps)
{
	enum { WAITING = 50, COMING = 100 };
	struct wss_ticket first = {.state = WSS_TICKET_OUTSIDE},
			  coming = {.state = WSS_TICKET_OUTSIDE};
	struct visitor *visitors = calloc(WAITING, sizeof(*visitors));
	static const struct wss_clock_source counting = {
		.now_ns = leaping_now_ns, .wait = counting_wait, .poll = leaping_poll};
	struct wss_cancel cancel;
	unsigned before, woken;

	wss_clock_inject(&counting);
	gate = wss_gate_new(1, 0);
	assert_int_equal(wss_gate_enter(gate, &first, 3600 * WSS_NS_PER_S, NULL, NULL), 0);
	for (size_t i = 0; i < WAITING; i++) {
		assert_int_equal(wss_cancel_open(&visitors[i].cancel, NULL, NULL), 0);
		assert_int_equal(
			pthread_create(&visitors[i].thread, NULL, wait_in_line, &visitors[i]), 0);
		while (!visitors[i].in)
			leaping_sleep_ns(MS);
	}
	assert_int_equal(wss_cancel_open(&cancel, NULL, NULL), 0);
	wss_cancel_request(&cancel);
	/* This ends when all of them sleep. */
	leaping_sleep_ns(MS);
	before = wakes;
	for (size_t i = 0; i < COMING; i++) {
		assert_int_equal(wss_gate_enter(gate, &coming, 0, &cancel, NULL), -1);
		leaping_sleep_ns(MS);
	}
	woken = wakes - before;
	wss_gate_leave(gate, &first);
	visitors_end(visitors, WAITING);
	wss_cancel_close(&cancel);
	/* If each arrival woke all, there would be WAITING * COMING. */
	assert_true(woken <= 2 * COMING);
	wss_clock_inject(NULL);
}

/* A window that begins again takes its turn before those that entered later. */
TEST(test_begins_again)
{
	struct wss_ticket again = {.state = WSS_TICKET_OUTSIDE}, later = again;

	gate = wss_gate_new(2, 0);
	assert_non_null(gate);
	assert_int_equal(wss_gate_enter(gate, &again, WSS_NS_PER_S, NULL, NULL), 0);
	assert_int_equal(wss_gate_enter(gate, &later, WSS_NS_PER_S, NULL, NULL), 0);
	for (unsigned i = 0; i < 3; i++) {
		uint64_t end_ns = wss_clock_now_ns() + (i + 1) * WSS_NS_PER_S;

		assert_int_equal(wss_gate_turn(gate, &again, NULL, NULL), 0);
		wss_gate_armed(gate, &again, end_ns);
		assert_int_equal(wss_gate_end_ns(gate), end_ns);
	}
	assert_int_equal(wss_gate_turn(gate, &later, NULL, NULL), 0);
	wss_gate_armed(gate, &later, 1);
	wss_gate_leave(gate, &again);
	assert_int_equal(wss_gate_end_ns(gate), 1);
	wss_gate_leave(gate, &later);
	assert_int_equal(wss_gate_end_ns(gate), 0);
	wss_gate_free(gate);
}

int main(void)
{
	return tests_run_each(leaping_begin, leaping_end);
}
