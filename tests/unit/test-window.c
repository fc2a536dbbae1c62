/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fakeguest.h"

#include "base/number.h"
#include "measure/control.h"
#include "measure/window-sample.h"
#include "measure/window.h"

/* These methods need no preparation: one step, and the window may begin. */
static int arm(struct wss_window *window, struct wss_error *err)
{
	int r = wss_window_prepare(window, err);

	assert_true(r != 0);
	return r < 0 ? -1 : wss_window_begin(window, err);
}

static const struct wss_host host = {.root = {.dirfd = -1}};
static struct fake *fake;
static struct wss_window_options options;
static unsigned fds;

static int set_up(void **unused)
{
	fds = count_fds();
	fake = fake_new("window");
	options = (struct wss_window_options)WSS_WINDOW_OPTIONS_INIT;
	options.track.window_ns = 4 * WSS_NS_PER_S;
	virtual_clock_start();
	return wss_guest_attach(fake->guest, &host, NULL);
}

static int tear_down(void **unused)
{
	/* Everything opened has been closed. */
	if (fake->opens != fake->closes)
		return -1;
	fake_free(fake);
	wss_clock_inject(NULL);
	return count_fds() == fds ? 0 : -1;
}

static struct wss_window *open_window(const struct wss_tracker_ops *ops)
{
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_window *window = NULL;

	if (wss_window_open(&host, fake->guest, ops, &options, &window, &err) < 0)
		fail_msg("%s", err.text);
	return window;
}

static void begin(struct wss_window *window)
{
	struct wss_error err = WSS_ERROR_INIT;

	if (arm(window, &err) < 0)
		fail_msg("%s", err.text);
}

static struct wss_sample read_sample(struct wss_window *window)
{
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_sample sample;

	if (wss_window_read(window, &sample, &err) < 0)
		fail_msg("%s", err.text);
	return sample;
}

static void assert_begin_fails(struct wss_window *window, enum wss_error_code code,
			       const char *part)
{
	struct wss_error err = WSS_ERROR_INIT;
	unsigned begins = fake->begins;

	assert_int_equal(arm(window, &err), -1);
	assert_error(&err, code, part);
	/* The guest's memory was left alone. */
	assert_int_equal(fake->begins, begins);
}

static void test_sample(void **unused)
{
	struct wss_window *window = open_window(&null_method);
	struct wss_sample sample;
	uint64_t start_ns;

	fake->guest->balloon_bytes.known = true;
	fake->guest->balloon_bytes.value = 6 * WSS_MIB;
	fake->predict_ns = 5 * WSS_NS_PER_MS;
	fake->predict_faults = wss_amount_of(4096);
	begin(window);
	start_ns = wss_window_start_ns(window);
	virtual_clock.now_ns = start_ns + 4 * WSS_NS_PER_S;
	sample = read_sample(window);
	assert_string_equal(sample.domain, "window");
	assert_string_equal(sample.uuid, UUID_A);
	assert_string_equal(sample.method, "null");
	assert_int_equal(sample.observes, WSS_OBSERVES_ACCESSES);
	assert_int_equal(sample.quality, WSS_QUALITY_OK);
	assert_int_equal(sample.requested_window_ns, 4 * WSS_NS_PER_S);
	/* From the middle of arming to the middle of reading. */
	assert_in_range(sample.window_ns.value, 4 * WSS_NS_PER_S, 4 * WSS_NS_PER_S + 10000);
	assert_int_equal(sample.wss_bytes.value, WSS_MIB + FAKE_PAGE);
	assert_int_equal(sample.granularity_bytes.value, FAKE_PAGE);
	assert_in_range(sample.cost.arm_ns.value, WSS_NS_PER_MS, WSS_NS_PER_MS + 5000);
	assert_true(sample.cost.read_ns.known);
	assert_int_equal(sample.cost.predicted_stall_ns.value, 5 * WSS_NS_PER_MS);
	assert_int_equal(sample.cost.predicted_faults.value, 4096);
	assert_true(sample.cost.user_ns.known);
	assert_true(sample.cost.system_ns.known);
	assert_false(sample.cost.faults.known);
	assert_int_equal(sample.memory.maximum_bytes.value, FAKE_RAM);
	assert_int_equal(sample.memory.balloon_bytes.value, 6 * WSS_MIB);
	assert_int_equal(sample.memory.rss_bytes.value, FAKE_RAM);
	assert_true(sample.memory.qemu_bytes.value > 0);
	assert_int_equal(sample.n_curve, 1);
	assert_int_equal(sample.curve[0].bytes, sample.wss_bytes.value);
	wss_window_close(window);
	wss_window_close(NULL);
}

/* Between two walks of QEMU's page tables its sums are read: only PSS is then unknown, which they do not have. */
static void test_memory_between_walks(void **unused)
{
	struct wss_window_memory memory = {0};
	struct wss_window *window;
	struct wss_sample sample;
	uint64_t qemu_bytes;

	options.memory = &memory;
	options.memory_age_ns = 60 * WSS_NS_PER_S;
	window = open_window(&null_method);
	begin(window);
	sample = read_sample(window);
	assert_true(sample.memory.pss_bytes.known && sample.cost.memory_ns);
	assert_int_equal(sample.memory.rss_bytes.value, FAKE_RAM);
	assert_int_equal(memory.qemu_bytes, sample.memory.qemu_bytes.value);
	qemu_bytes = memory.qemu_bytes;
	wss_window_close(window);
	/* Also in a window that is opened again. */
	window = open_window(&null_method);
	begin(window);
	sample = read_sample(window);
	assert_false(sample.memory.pss_bytes.known || sample.cost.memory_ns);
	assert_in_range(sample.memory.rss_bytes.value, FAKE_RAM - WSS_MIB, FAKE_RAM);
	assert_int_equal(sample.memory.qemu_bytes.value, qemu_bytes);
	assert_true(sample.memory.swap_bytes.known);
	/* Of QEMU's own memory. */
	memory.qemu_bytes += FAKE_RAM / 2;
	sample = read_sample(window);
	assert_in_range(sample.memory.rss_bytes.value, FAKE_RAM / 2 - WSS_MIB,
			FAKE_RAM / 2 + WSS_MIB);
	virtual_clock.now_ns += 60 * WSS_NS_PER_S;
	sample = read_sample(window);
	assert_true(sample.memory.pss_bytes.known && sample.cost.memory_ns);
	assert_int_equal(sample.memory.rss_bytes.value, FAKE_RAM);
	wss_window_close(window);
	options.memory = NULL;
	options.memory_age_ns = 0;
}

/* Unknown figures of a guest are absent. */
static void test_describe(void **unused)
{
	struct wss_sample sample;

	wss_window_describe(fake->guest, NULL, &options, &sample);
	assert_null(sample.method);
	assert_false(sample.memory.balloon_bytes.known);
	assert_false(sample.memory.rss_bytes.known);
	assert_false(sample.wss_bytes.known);
	assert_false(sample.window_ns.known);
	wss_window_describe(fake->guest, &dear_method, &options, &sample);
	assert_string_equal(sample.method, "dear");
}

static void test_ram_unknown(void **unused)
{
	struct wss_window *window = open_window(&null_method);
	struct wss_sample sample;

	fake->guest->ram_known = false;
	wss_error_set(&fake->guest->ram_error, WSS_ERR_FAILED, "two of that size");
	begin(window);
	sample = read_sample(window);
	assert_false(sample.memory.rss_bytes.known);
	assert_false(sample.memory.qemu_bytes.known);
	assert_true(has_note(&sample, "two of that size"));
	assert_true(sample.wss_bytes.known);
	wss_window_close(window);
}

/* Polls are spaced logarithmically, at most 100 ms apart, and the window's end is exact. */
static void test_curve(void **unused)
{
	struct wss_window *window = open_window(&null_method);
	struct wss_sample sample;
	uint64_t start_ns, next_ns, last_ns;

	begin(window);
	start_ns = last_ns = wss_window_start_ns(window);
	while ((next_ns = wss_window_next_ns(window)) < start_ns + options.track.window_ns) {
		assert_true(next_ns > last_ns);
		assert_true(next_ns - last_ns <= 101 * WSS_NS_PER_MS);
		last_ns = virtual_clock.now_ns = next_ns;
		assert_int_equal(wss_window_poll(window, NULL), 0);
	}
	assert_int_equal(next_ns, start_ns + options.track.window_ns);
	assert_in_range(fake->polls, 40, 90);
	virtual_clock.now_ns = next_ns;
	sample = read_sample(window);
	/* Eight points a decade from 1 ms to 4 s. */
	assert_in_range(sample.n_curve, 20, 40);
	assert_in_range(sample.curve[0].ns, WSS_NS_PER_MS, 2 * WSS_NS_PER_MS);
	for (size_t i = 1; i < sample.n_curve; i++) {
		assert_true(sample.curve[i].ns > sample.curve[i - 1].ns);
		assert_true(sample.curve[i].bytes >= sample.curve[i - 1].bytes);
		assert_true((double)sample.curve[i].ns <= (double)sample.curve[i - 1].ns * 1.34);
	}
	assert_int_equal(sample.curve[sample.n_curve - 1].bytes, sample.wss_bytes.value);
	assert_int_equal(sample.curve[0].high_bytes, 0);
	/* The next window has a curve of its own; bounds are known where there are any. */
	begin(window);
	fake->unsure_bytes = 5 * WSS_MIB;
	sample = read_sample(window);
	assert_int_equal(sample.n_curve, 1);
	assert_int_equal(sample.curve[0].low_bytes, sample.low_bytes.value);
	assert_int_equal(sample.curve[0].high_bytes, sample.wss_bytes.value + 5 * WSS_MIB);
	wss_window_close(window);
}

/* An expensive poll happens only at the end; before that only the process is checked. */
static void test_dear_poll(void **unused)
{
	struct wss_window *window = open_window(&dear_method);
	struct wss_error err = WSS_ERROR_INIT;
	uint64_t next_ns;

	begin(window);
	while ((next_ns = wss_window_next_ns(window)) <
	       wss_window_start_ns(window) + options.track.window_ns) {
		virtual_clock.now_ns = next_ns;
		assert_int_equal(wss_window_poll(window, NULL), 0);
	}
	assert_int_equal(fake->polls, 0);
	read_sample(window);
	assert_int_equal(fake->polls, 1);
	begin(window);
	fake_kill(fake);
	assert_int_equal(wss_window_poll(window, &err), -1);
	assert_error(&err, WSS_ERR_GONE, "ended");
	wss_window_close(window);
}

static void test_not_ready(void **unused)
{
	static const enum wss_guest_state states[] = {WSS_GUEST_PAUSED, WSS_GUEST_SHUTOFF,
						      WSS_GUEST_INCOMING, WSS_GUEST_OTHER};
	struct wss_window *window = open_window(&null_method);

	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
		fake->state = states[i];
		assert_begin_fails(window, WSS_ERR_FAILED, "not running");
	}
	fake->state = WSS_GUEST_RUNNING;
	fake->job = true;
	assert_begin_fails(window, WSS_ERR_BUSY, "job");
	fake->job = false;
	fake->refresh_fails = WSS_ERR_CONNECT;
	assert_begin_fails(window, WSS_ERR_CONNECT, "refresh");
	fake->refresh_fails = WSS_OK;
	begin(window);
	wss_window_close(window);
}

/* A guest that had to wait for its turn is looked at again: it may have been paused meanwhile. */
static void test_ready_for_long(void **unused)
{
	struct wss_window *window = open_window(&null_method);
	struct wss_error err = WSS_ERROR_INIT;

	assert_int_equal(wss_window_prepare(window, &err), 1);
	fake->state = WSS_GUEST_PAUSED;
	virtual_clock.now_ns += WSS_NS_PER_S;
	assert_int_equal(wss_window_begin(window, &err), -1);
	assert_error(&err, WSS_ERR_FAILED, "not running");
	assert_int_equal(fake->begins, 0);
	/* Nor does a check count that failed. */
	assert_begin_fails(window, WSS_ERR_FAILED, "not running");
	wss_error_clear(&err);
	assert_int_equal(wss_window_begin(window, &err), -1);
	assert_error(&err, WSS_ERR_FAILED, "not running");
	assert_int_equal(fake->begins, 0);
	fake->state = WSS_GUEST_RUNNING;
	fake->refreshes = 0;
	begin(window);
	assert_int_equal(fake->refreshes, 1);
	/* Every window has a look of its own. */
	fake->state = WSS_GUEST_PAUSED;
	wss_error_clear(&err);
	assert_int_equal(wss_window_begin(window, &err), -1);
	assert_error(&err, WSS_ERR_FAILED, "not running");
	fake->state = WSS_GUEST_RUNNING;
	wss_window_close(window);
}

/* Neither libvirt nor QEMU knows of such a stop, which would read as a working set of 0. */
static void test_stopped_by_signal(void **unused)
{
	struct wss_window *window = open_window(&null_method);

	kill(fake->child, SIGSTOP);
	wait_until(fake_state(fake) == 'T');
	assert_begin_fails(window, WSS_ERR_FAILED, "stopped");
	assert_int_equal(fake_state(fake), 'T');
	kill(fake->child, SIGCONT);
	wait_until(fake_state(fake) != 'T');
	begin(window);
	wss_window_close(window);
}

static void test_predicted_stall(void **unused)
{
	struct wss_window *window = open_window(&null_method);

	fake->predict_ns = options.track.max_stall_ns;
	begin(window);
	fake->predict_ns = options.track.max_stall_ns + 1;
	assert_begin_fails(window, WSS_ERR_UNSUPPORTED, "over the limit of");
	fake->predict_ns = UINT64_MAX;
	assert_begin_fails(window, WSS_ERR_UNSUPPORTED, "over the limit of");
	fake->predict_ns = 0;
	begin(window);
	wss_window_close(window);
}

/* Refuses any window of more than opaque faults. */
static int admit_faults(const struct wss_prediction *prediction, void *opaque,
			struct wss_error *err)
{
	const uint64_t *limit = opaque;

	assert_int_equal(prediction->stall_ns, 7);
	if (prediction->faults.value <= *limit)
		return 0;
	return wss_error_set(err, WSS_ERR_UNSUPPORTED, "too dear");
}

static void test_admission(void **unused)
{
	struct wss_window_options usual = options;
	struct wss_window *window;
	uint64_t limit = 1000;

	options.admit = admit_faults;
	options.admit_opaque = &limit;
	window = open_window(&null_method);
	fake->predict_ns = 7;
	fake->predict_faults = wss_amount_of(1000);
	begin(window);
	fake->predict_faults = wss_amount_of(1001);
	assert_begin_fails(window, WSS_ERR_UNSUPPORTED, "too dear");
	limit = 1001;
	begin(window);
	wss_window_close(window);
	options = usual;
}

/* Measured ones count, too, once they are too long every time; for any method. */
static void test_measured_stall(void **unused)
{
	struct wss_window *window = open_window(&dear_method);
	struct wss_sample sample;

	fake->begin_ns = 150 * WSS_NS_PER_MS;
	begin(window);
	sample = read_sample(window);
	assert_true(has_note(&sample, "longer than the limit of 100 ms"));
	begin(window);
	/* A short one in between: the long ones may have been our own wait for a CPU. */
	fake->begin_ns = WSS_NS_PER_MS;
	begin(window);
	sample = read_sample(window);
	assert_false(has_note(&sample, "longer than the limit of 100 ms"));
	fake->begin_ns = 150 * WSS_NS_PER_MS;
	for (int i = 0; i < 3; i++)
		begin(window);
	assert_begin_fails(window, WSS_ERR_UNSUPPORTED, "about 150 ms");
	wss_window_close(window);
}

/* Lets time pass, at most to the end of the window. */
static void pass_time(struct wss_window *window, uint64_t ns)
{
	uint64_t until_ns = wss_u64_min(virtual_clock.now_ns + ns, wss_window_end_ns(window)),
		 next_ns;

	while ((next_ns = wss_window_next_ns(window)) < until_ns) {
		virtual_clock.now_ns = wss_u64_max(next_ns, virtual_clock.now_ns);
		assert_int_equal(wss_window_poll(window, NULL), 0);
	}
	virtual_clock.now_ns = wss_u64_max(until_ns, virtual_clock.now_ns);
}

static void test_disturbed(void **unused)
{
	struct wss_window *window = open_window(&null_method);
	struct wss_sample sample;

	begin(window);
	pass_time(window, 4 * WSS_NS_PER_S);
	fake->disturbance = (struct wss_disturbance){.stopped = true, .paused_ns = WSS_NS_PER_S};
	sample = read_sample(window);
	assert_int_equal(sample.quality, WSS_QUALITY_DEGRADED);
	assert_true(has_note(&sample, "paused for about 25 % of the window"));
	fake->disturbance = (struct wss_disturbance){.reset = true};
	begin(window);
	sample = read_sample(window);
	assert_int_equal(sample.quality, WSS_QUALITY_DEGRADED);
	assert_true(has_note(&sample, "was reset within the window"));
	fake->disturbance = (struct wss_disturbance){.reset = false};
	begin(window);
	assert_int_equal(read_sample(window).quality, WSS_QUALITY_OK);
	wss_window_close(window);
}

static void stop_child(bool stop)
{
	kill(fake->child, stop ? SIGSTOP : SIGCONT);
	wait_until(fake_state(fake) == (stop ? 'T' : 'S'));
}

/* A stop is seen wherever it lies in the window, however the method polls, and so are many short ones. */
static void test_stopped_for_a_part(void **unused)
{
	const struct wss_tracker_ops *const methods[] = {&null_method, &dear_method};
	static const struct {
		uint64_t before_ms, stop_ms, times;
		double least, most; /* percent */
	} cases[] = {
		{0, 1000, 1, 19, 31},  {1500, 1000, 1, 19, 31}, {3000, 1000, 1, 19, 31},
		{100, 60, 20, 15, 60}, {2000, 200, 1, 0.1, 12}, {40, 50, 44, 30, 80},
	};

	for (size_t i = 0; i < 2 * sizeof(cases) / sizeof(cases[0]); i++) {
		struct wss_window *window = open_window(methods[i % 2]);
		struct wss_sample sample;
		double percent;

		begin(window);
		for (uint64_t n = 0; n < cases[i / 2].times; n++) {
			pass_time(window, cases[i / 2].before_ms * WSS_NS_PER_MS);
			stop_child(true);
			pass_time(window, cases[i / 2].stop_ms * WSS_NS_PER_MS);
			stop_child(false);
		}
		pass_time(window, 5 * WSS_NS_PER_S);
		sample = read_sample(window);
		assert_int_equal(sample.quality, WSS_QUALITY_DEGRADED);
		assert_int_equal(sscanf(sample.notes[0],
					"the guest was stopped by a signal for about %lf %%",
					&percent),
				 1);
		if (percent < cases[i / 2].least || percent > cases[i / 2].most)
			fail_msg("case %zu: %s", i, sample.notes[0]);
		/* The next window is another one. */
		begin(window);
		pass_time(window, 5 * WSS_NS_PER_S);
		assert_int_equal(read_sample(window).quality, WSS_QUALITY_OK);
		wss_window_close(window);
	}
}

/* A busy host is no fault of a window, a guest that others starve for most of it is. */
static void test_starved_for_most_of_it(void **unused)
{
	struct wss_window_facts facts = {.guest = fake->guest, .start_ns = WSS_NS_PER_S};
	char text[WSS_STOOD_STILL_LEN];

	facts.suspended_ns = wss_clock_suspended_ns();
	facts.standstill.lost_ns[WSS_STANDSTILL_STARVED] = 2 * WSS_NS_PER_S;
	assert_false(wss_window_stood_still(&facts, 5 * WSS_NS_PER_S, text));
	facts.standstill.lost_ns[WSS_STANDSTILL_STARVED] = 3 * WSS_NS_PER_S;
	assert_true(wss_window_stood_still(&facts, 5 * WSS_NS_PER_S, text));
	assert_string_equal(text,
			    "starved of CPU time by other processes for about 75 % of the window");
}

/* A page that came late is no fault of a window either, one that was waited for is. */
static void test_blocked_for_a_part_of_it(void **unused)
{
	struct wss_window_facts facts = {.guest = fake->guest, .start_ns = WSS_NS_PER_S};
	char text[WSS_STOOD_STILL_LEN];

	facts.suspended_ns = wss_clock_suspended_ns();
	facts.standstill.lost_ns[WSS_STANDSTILL_BLOCKED] = 200 * WSS_NS_PER_MS;
	assert_false(wss_window_stood_still(&facts, 5 * WSS_NS_PER_S, text));
	facts.standstill.lost_ns[WSS_STANDSTILL_BLOCKED] = WSS_NS_PER_S;
	assert_true(wss_window_stood_still(&facts, 5 * WSS_NS_PER_S, text));
	assert_string_equal(text,
			    "blocked on the host's memory or storage for about 25 % of the window");
}

/* Each with its own share: a guest that was frozen was not starved then. */
static void test_stood_still_for_several_reasons(void **unused)
{
	struct wss_window_facts facts = {.guest = fake->guest, .start_ns = WSS_NS_PER_S};
	uint64_t *lost_ns = facts.standstill.lost_ns;
	char text[WSS_STOOD_STILL_LEN];

	facts.suspended_ns = wss_clock_suspended_ns();
	lost_ns[WSS_STANDSTILL_FREEZER] = WSS_NS_PER_S;
	lost_ns[WSS_STANDSTILL_STARVED] = 3 * WSS_NS_PER_S;
	assert_true(wss_window_stood_still(&facts, 5 * WSS_NS_PER_S, text));
	assert_string_equal(text, "starved of CPU time by other processes for about 75 % and "
				  "frozen by its cgroup for about 25 % of the window");
	lost_ns[WSS_STANDSTILL_BLOCKED] = 2 * WSS_NS_PER_S;
	assert_true(wss_window_stood_still(&facts, 5 * WSS_NS_PER_S, text));
	assert_string_equal(text,
			    "starved of CPU time by other processes for about 75 % and blocked "
			    "on the host's memory or storage for about 50 % of the window");
}

static void test_host_was_suspended(void **unused)
{
	struct wss_window *window = open_window(&null_method);
	struct wss_sample sample;

	virtual_clock.suspended_ns = 9 * WSS_NS_PER_S;
	begin(window);
	pass_time(window, WSS_NS_PER_S);
	virtual_clock.suspended_ns += 2 * WSS_NS_PER_S;
	pass_time(window, 3 * WSS_NS_PER_S);
	sample = read_sample(window);
	assert_int_equal(sample.quality, WSS_QUALITY_DEGRADED);
	assert_true(has_note(&sample, "suspended with the host for about 50 % of the window"));
	begin(window);
	pass_time(window, 4 * WSS_NS_PER_S);
	assert_int_equal(read_sample(window).quality, WSS_QUALITY_OK);
	wss_window_close(window);
}

static void test_locked(void **unused)
{
	struct wss_window *window = open_window(&null_method), *other = NULL;
	struct wss_error err = WSS_ERROR_INIT;

	assert_int_equal(wss_window_open(&host, fake->guest, &null_method, &options, &other, &err),
			 -1);
	assert_error(&err, WSS_ERR_BUSY, NULL);
	assert_null(other);
	wss_window_close(window);
	wss_window_close(open_window(&null_method));
}

static void test_gone(void **unused)
{
	struct wss_window *window = open_window(&null_method);
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_sample sample;

	begin(window);
	/* During the reading itself: the figures are those of a dying process. */
	fake->is_last_poll_gone = true;
	assert_int_equal(wss_window_read(window, &sample, &err), -1);
	assert_error(&err, WSS_ERR_GONE, "ended within the window");
	fake->is_last_poll_gone = false;
	wss_error_clear(&err);
	fake->polls = 0;
	assert_int_equal(wss_window_read(window, &sample, &err), -1);
	assert_error(&err, WSS_ERR_GONE, NULL);
	assert_int_equal(wss_window_poll(window, &err), -1);
	assert_int_equal(fake->polls, 0);
	wss_window_close(window);
}

/* A guest that the source could not accept does not count as attached afterwards. */
static void test_attach_fails(void **unused)
{
	struct fake *other = fake_new("other");
	struct wss_error err = WSS_ERROR_INIT;

	other->attach_fails = true;
	assert_int_equal(wss_guest_attach(other->guest, &host, &err), -1);
	assert_error(&err, WSS_ERR_UNSUPPORTED, "attach fails");
	assert_int_equal(other->guest->process.pidfd, -1);
	assert_int_equal(other->guest->process.proc.dirfd, -1);
	other->attach_fails = false;
	assert_int_equal(wss_guest_attach(other->guest, &host, &err), 0);
	assert_true(other->guest->ram_known);
	fake_free(other);
}

/* The guest is held while arming and while reading, and at no other time. */
static void test_pause(void **unused)
{
	struct wss_window *window;
	struct wss_sample sample;

	options.pause = true;
	window = open_window(&null_method);
	for (int i = 0; i < 3; i++) {
		begin(window);
		assert_int_equal(fake->state_in_begin, 'T');
		wait_until(fake_state(fake) != 'T');
		/* The window begins when the guest resumes. */
		assert_true(wss_window_start_ns(window) <= virtual_clock.now_ns);
		assert_int_equal(wss_window_poll(window, NULL), 0);
		assert_int_not_equal(fake->state_in_poll, 'T');
		virtual_clock.now_ns += WSS_NS_PER_S;
		sample = read_sample(window);
		assert_int_equal(fake->state_in_poll, 'T');
		wait_until(fake_state(fake) != 'T');
		assert_true(sample.cost.arm_ns.value > fake->begin_ns);
	}
	/* The same if arming fails. */
	fake->begin_fails = WSS_ERR_FAILED;
	assert_int_equal(arm(window, NULL), -1);
	wait_until(fake_state(fake) != 'T');
	fake->begin_fails = WSS_OK;
	begin(window);
	fake->poll_fails = WSS_ERR_FAILED;
	assert_int_equal(wss_window_read(window, &sample, NULL), -1);
	wait_until(fake_state(fake) != 'T');
	fake_touch(fake, 1);
	wss_window_close(window);
}

/* A stopped QEMU cannot be asked for its counters. */
static void test_pause_needs_kernel(void **unused)
{
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_window *window = NULL;

	options.pause = true;
	assert_int_equal(
		wss_window_open(&host, fake->guest, &online_method, &options, &window, &err), -1);
	assert_error(&err, WSS_ERR_UNSUPPORTED, "QEMU has to answer");
	options.pause = false;
	wss_window_close(open_window(&online_method));
}

#define IN_PLACE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_PLACE(test_sample),
		IN_PLACE(test_memory_between_walks),
		IN_PLACE(test_describe),
		IN_PLACE(test_ram_unknown),
		IN_PLACE(test_curve),
		IN_PLACE(test_dear_poll),
		IN_PLACE(test_not_ready),
		IN_PLACE(test_ready_for_long),
		IN_PLACE(test_stopped_by_signal),
		IN_PLACE(test_predicted_stall),
		IN_PLACE(test_admission),
		IN_PLACE(test_measured_stall),
		IN_PLACE(test_disturbed),
		IN_PLACE(test_stopped_for_a_part),
		IN_PLACE(test_starved_for_most_of_it),
		IN_PLACE(test_stood_still_for_several_reasons),
		IN_PLACE(test_blocked_for_a_part_of_it),
		IN_PLACE(test_host_was_suspended),
		IN_PLACE(test_locked),
		IN_PLACE(test_gone),
		IN_PLACE(test_attach_fails),
		IN_PLACE(test_pause_needs_kernel),
	};
	const struct CMUnitTest held[] = {IN_PLACE(test_pause)};
	const struct CMUnitTest skipped[] = {cmocka_unit_test(test_needs_pidfd)};
	int failed;

	failed = cmocka_run_group_tests(tests, NULL, NULL);
	failed += have_pidfd() ? cmocka_run_group_tests(held, NULL, NULL)
			       : cmocka_run_group_tests(skipped, NULL, NULL);
	return failed;
}
