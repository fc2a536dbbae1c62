/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Recordings of an invented guest, with a method that observes nothing, while one of the guest's
 * calls hangs. Threads are real. Time is not: it passes while a thread sleeps, and, while a call hangs,
 * with each look at the clock, so that a busy machine makes nothing late.
 */
#include "hosttest.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/stop.h"
#include "base/thread.h"
#include "base/units.h"
#include "base/worker.h"
#include "pages/pageset.h"
#include "recording/reader.h"
#include "recording/recording.h"

#define MS WSS_NS_PER_MS
#define RAM (64 * WSS_MIB)
#define LOOK_NS (200 * MS)

enum hang { HANG_NOWHERE, HANG_REFRESH, HANG_BEGIN, HANG_POLL, HANG_CLOSE };

static struct {
	pid_t child;
	enum hang hang;
	unsigned after; /* windows that have begun before it hangs */
	unsigned busy;	/* windows that cannot begin at first, as QEMU is busy */
	atomic_bool hangs, go_on;
	atomic_uint opens, begins, closes;
	atomic_bool read_late; /* a window was armed or polled after the hang */
	bool waits_for_stop;   /* while it hangs, time stands still until a stop is requested */
} guest;

static struct {
	_Atomic uint64_t now_ns, look_ns; /* look_ns pass with each look */
} invented;

static uint64_t invented_now_ns(void *unused)
{
	return atomic_fetch_add(&invented.now_ns, invented.look_ns);
}

static void invented_sleep_until_ns(void *unused, uint64_t when_ns)
{
	uint64_t seen_ns = invented.now_ns;

	while (seen_ns < when_ns &&
	       !atomic_compare_exchange_weak(&invented.now_ns, &seen_ns, when_ns))
		;
}

static char path[64];
static const struct wss_host host = {.root = {.dirfd = -1}};
static struct wss_record_options options;
static struct wss_session_progress progress;

static void hang_at(enum hang where)
{
	while (guest.hang == where && guest.begins >= guest.after && !guest.go_on) {
		if (!guest.hangs && !guest.waits_for_stop)
			invented.look_ns = LOOK_NS;
		guest.hangs = true;
		usleep(1000);
	}
}

/* --- the source --- */

static int guest_refresh(struct wss_guest *at, struct wss_error *err)
{
	hang_at(HANG_REFRESH);
	at->state = WSS_GUEST_RUNNING;
	return wss_deadline_check(at->deadline, err);
}

static int guest_attach(struct wss_guest *at, const struct wss_host *unused, struct wss_error *err)
{
	return hold_child(guest.child, &at->process, err);
}

static int source_open(void *unused, const struct wss_domain_ref *ref,
		       const struct wss_deadline *deadline, struct wss_guest **ret_guest,
		       struct wss_error *err)
{
	static const struct wss_guest_ops ops = {.refresh = guest_refresh, .attach = guest_attach};
	struct wss_guest *opened = wss_guest_new(&ops, NULL, deadline);
	struct wss_domxml *config = &opened->config;

	snprintf(config->name, sizeof(config->name), "%s", ref->name);
	snprintf(config->uuid, sizeof(config->uuid), "%s", UUID_A);
	snprintf(config->type, sizeof(config->type), "qemu");
	snprintf(config->arch, sizeof(config->arch), "x86_64");
	snprintf(config->machine, sizeof(config->machine), "pc");
	config->initial_bytes = config->maximum_bytes = config->block_bytes[0] = RAM;
	config->n_blocks = 1;
	opened->state = WSS_GUEST_RUNNING;
	*ret_guest = opened;
	return 0;
}

/* --- the method --- */

struct method {
	struct wss_tracker base;
	struct wss_pageset *touched;
};

static const struct wss_tracker_ops method_ops;

static int method_probe(const struct wss_host *unused, struct wss_guest *at, struct wss_error *err)
{
	return 0;
}

static int method_open(const struct wss_host *unused, struct wss_guest *at,
		       const struct wss_track_options *track, struct wss_tracker **ret_tracker,
		       struct wss_error *err)
{
	struct method *method = calloc(1, sizeof(*method));

	assert_non_null(method);
	method->base.ops = &method_ops;
	method->touched = wss_pageset_new(RAM / 4096);
	assert_non_null(method->touched);
	assert_true(wss_pageset_add(method->touched, 4096, 512) >= 0);
	guest.opens++;
	*ret_tracker = &method->base;
	return 0;
}

static int method_begin(struct wss_tracker *tracker, struct wss_span *ret_span,
			struct wss_error *err)
{
	guest.read_late = guest.read_late || guest.hangs;
	guest.begins++;
	if (guest.begins <= guest.busy)
		return wss_error_set(err, WSS_ERR_BUSY, "busy");
	ret_span->start_ns = wss_clock_now_ns();
	hang_at(HANG_BEGIN);
	ret_span->end_ns = wss_clock_now_ns();
	return 0;
}

static int method_poll(struct wss_tracker *tracker, struct wss_reading *ret_reading,
		       struct wss_error *err)
{
	uint64_t now_ns = wss_clock_now_ns(),
		 bytes = wss_pageset_count(((struct method *)tracker)->touched) * 4096;

	hang_at(HANG_POLL);
	*ret_reading = (struct wss_reading){.span = {now_ns, now_ns},
					    .wss_bytes = bytes,
					    .low_bytes = bytes,
					    .high_bytes = bytes,
					    .granularity_bytes = 4096};
	return 0;
}

static void method_pages(const struct wss_tracker *tracker, struct wss_page_view *ret_view)
{
	ret_view->touched = wss_pages_of_set(((const struct method *)tracker)->touched);
}

static void method_close(struct wss_tracker *tracker)
{
	if (!tracker)
		return;
	hang_at(HANG_CLOSE);
	wss_pageset_free(((struct method *)tracker)->touched);
	guest.closes++;
	free(tracker);
}

static const struct wss_tracker_ops method_ops = {
	.name = "invented",
	.summary = "observes nothing",
	.granularity = "4 KiB",
	.probe = method_probe,
	.open = method_open,
	.begin = method_begin,
	.poll = method_poll,
	.pages = method_pages,
	.close = method_close,
};

/* --- the caller --- */

static pthread_t caller;

static void on_progress(const struct wss_session_progress *seen, void *unused)
{
	assert_true(pthread_equal(pthread_self(), caller));
}

static int record(uint64_t deadline_ns, struct wss_error *err)
{
	static const struct wss_guest_source source = {.open = source_open};
	static const struct wss_record_events events = {.progress = on_progress};
	const struct wss_domain_ref ref = {"guest", NULL};
	struct wss_hypervisor *hypervisor;
	struct wss_target *target;
	int r;

	caller = pthread_self();
	assert_int_equal(wss_hypervisor_new(&host, &source, NULL, &hypervisor, NULL), 0);
	target = wss_target_new(hypervisor, &ref, deadline_ns, NULL, NULL);
	assert_non_null(target);
	wss_target_open(target);
	assert_non_null(target->guest);
	r = wss_record(target, &options, &events, NULL, &progress, err);
	wss_hypervisor_unref(hypervisor);
	return r;
}

static int set_up(void **unused)
{
	static const struct wss_clock_source source = {.now_ns = invented_now_ns,
						       .sleep_until_ns = invented_sleep_until_ns};

	memset(&guest, 0, sizeof(guest));
	invented.now_ns = 1000 * WSS_NS_PER_S;
	invented.look_ns = 0;
	wss_clock_inject(&source);
	guest.child = fork();
	if (guest.child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	snprintf(path, sizeof(path), "/tmp/wss-test-record.%d", getpid());
	unlink(path);
	wss_record_options_init(&options);
	options.path = path;
	options.method = &method_ops;
	options.interval_ns = 100 * MS;
	options.length_ns = 500 * MS;
	return guest.child < 0;
}

/* Lets a thread that was left behind end. It is looked for every 50 ms, which so pass on this clock, too. */
static bool end_hang(void)
{
	guest.go_on = true;
	invented.look_ns = 50 * MS;
	return wss_threads_end(300 * WSS_NS_PER_S);
}

static int tear_down(void **unused)
{
	if (!end_hang())
		return -1;
	wss_clock_inject(NULL);
	end_child(guest.child);
	unlink(path);
	return guest.opens == guest.closes ? 0 : -1;
}

/* The file is whole and has as many windows as were reported. */
static void assert_kept(uint64_t least, uint64_t most)
{
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_recfile *file;

	assert_in_range(progress.windows, least, most);
	if (!progress.windows) {
		assert_int_equal(access(path, F_OK), -1);
		return;
	}
	if (wss_recfile_open(path, false, &file, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(wss_recfile_state(file)->windows, progress.windows);
	assert_true(wss_recfile_state(file)->ended);
	wss_recfile_close(file);
}

static void test_whole(void **unused)
{
	struct wss_error err = WSS_ERROR_INIT;

	if (record(0, &err) < 0)
		fail_msg("%s", err.text);
	assert_kept(5, 5);
	assert_int_equal(guest.closes, 1);
	assert_true(wss_threads_end(0));
}

/* The time counts from the first window on, also if it began late. */
static void test_length_after_a_wait(void **unused)
{
	struct wss_error err = WSS_ERROR_INIT;

	guest.busy = 2;
	options.interval_ns = 300 * MS;
	options.length_ns = 600 * MS;
	if (record(0, &err) < 0)
		fail_msg("%s", err.text);
	assert_true(guest.begins > guest.busy);
	assert_true(progress.length_ns >= options.length_ns - options.interval_ns / 2);
	assert_kept(2, 2);
}

/* A call that hangs has a deadline, and ends a recording that is kept. */
static void test_hangs(void **unused)
{
	static const struct {
		enum hang hang;
		unsigned after;
		uint64_t least, most;
	} cases[] = {
		{HANG_REFRESH, 0, 0, 0}, {HANG_REFRESH, 2, 1, 2}, {HANG_BEGIN, 1, 0, 0},
		{HANG_BEGIN, 3, 2, 2},	 {HANG_POLL, 3, 2, 2},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct wss_error err = WSS_ERROR_INIT;

		assert_int_equal(set_up(unused), 0);
		guest.hang = cases[i].hang;
		guest.after = cases[i].after;
		assert_int_equal(record(2 * WSS_NS_PER_S, &err), -1);
		assert_error(&err, WSS_ERR_TIMEOUT, "timed out after 2.00 s");
		assert_kept(cases[i].least, cases[i].most);
		/* It still hangs; once it wakes up, it restores the guest and does nothing else. */
		assert_int_equal(guest.closes, 0);
		assert_int_equal(tear_down(unused), 0);
		assert_false(guest.read_late);
	}
}

static void *stop_once_it_hangs(void *unused)
{
	while (!guest.hangs)
		usleep(1000);
	kill(getpid(), SIGTERM);
	invented.look_ns = LOOK_NS;
	return unused;
}

static int record_and_stop(void)
{
	uint64_t began_ns = wss_clock_now_ns();
	struct wss_error err = WSS_ERROR_INIT;
	pthread_t stopper;

	wss_stop_install();
	if (pthread_create(&stopper, NULL, stop_once_it_hangs, NULL) != 0 || record(0, &err) == 0 ||
	    err.code != WSS_ERR_INTERRUPTED)
		return 1;
	pthread_join(stopper, NULL);
	if (wss_clock_now_ns() - began_ns > WSS_WORKER_CANCEL_NS + 3 * WSS_NS_PER_S)
		return 2;
	if (!strstr(err.text, "2 windows so far, in ") || guest.closes)
		return 3;
	/* Its stack is not lost then. */
	return end_hang() ? 0 : 4;
}

/* A stop request takes effect while a call hangs that has no deadline. */
static void test_stop(void **unused)
{
	guest.hang = HANG_POLL;
	guest.after = 3;
	guest.waits_for_stop = true;
	assert_int_equal(in_child(record_and_stop), 0);
	progress.windows = 2;
	assert_kept(2, 2);
}

/* So is one where restoring the guest hangs; all windows are kept. */
static void test_hang_at_the_end(void **unused)
{
	struct wss_error err = WSS_ERROR_INIT;

	guest.hang = HANG_CLOSE;
	if (record(0, &err) < 0)
		fail_msg("%s", err.text);
	assert_kept(5, 5);
	assert_int_equal(guest.closes, 0);
}

#define IN_PLACE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_PLACE(test_whole),		IN_PLACE(test_length_after_a_wait),
		cmocka_unit_test(test_hangs),	IN_PLACE(test_stop),
		IN_PLACE(test_hang_at_the_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
