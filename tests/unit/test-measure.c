/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fakeguest.h"

#include "measure/control.h"
#include "measure/measure.h"
#include "measure/methods.h"
#include "measure/profile.h"

#define MAX 64

static const struct wss_host host = {
	.root = {.dirfd = -1}, .page_bytes = 4096, .huge_page_bytes = 2 * WSS_MIB};
static struct wss_hypervisor *hypervisor;
static struct fake *fakes[2];
static struct wss_target *targets[3];
static struct wss_measure_options options;
static unsigned fds;

/* Emitted samples, in order. */
static struct {
	size_t n;
	struct wss_sample samples[MAX];
	const struct wss_target *from[MAX];
	bool last[MAX];
	uint64_t at_ns[MAX];
} got;

/* The target being measured. */
static const struct wss_target *current;

static void on_sample(const struct wss_sample *sample, bool last, void *opaque)
{
	assert_ptr_equal(opaque, &got);
	assert_true(got.n < MAX);
	got.samples[got.n] = *sample;
	got.from[got.n] = current;
	got.at_ns[got.n] = virtual_clock.now_ns;
	got.last[got.n++] = last;
}

static struct wss_target *target_new(const char *name, struct wss_guest *guest)
{
	const struct wss_domain_ref ref = {.name = name};
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_target *target = wss_target_new(hypervisor, &ref, 0, NULL, &err);

	if (!target)
		fail_msg("%s", err.text);
	target->guest = guest;
	if (guest)
		guest->deadline = &target->deadline;
	return target;
}

static int set_up(void **unused)
{
	static const struct wss_guest_source source = {.open = NULL};

	fds = count_fds();
	got.n = 0;
	assert_int_equal(wss_hypervisor_new(&host, &source, NULL, &hypervisor, NULL), 0);
	for (int i = 0; i < 2; i++) {
		fakes[i] = fake_new(i ? "second" : "first");
		targets[i] = target_new(i ? "second" : "first", fakes[i]->guest);
	}
	targets[2] = target_new("no\nsuch", NULL);
	wss_error_set(&targets[2]->error, WSS_ERR_GONE, "there is no domain");
	options = (struct wss_measure_options){
		.window = WSS_WINDOW_OPTIONS_INIT,
		.method = &null_method,
		.count = 1,
		.interval_ns = 4 * WSS_NS_PER_S,
	};
	options.window.track.window_ns = 4 * WSS_NS_PER_S;
	virtual_clock_start();
	return 0;
}

static int tear_down(void **unused)
{
	int bad = 0;

	for (int i = 0; i < 2; i++)
		bad |= fakes[i]->opens != fakes[i]->closes;
	for (int i = 0; i < 3; i++)
		wss_target_free(targets[i]);
	for (int i = 0; i < 2; i++) {
		fakes[i]->guest = NULL;
		fake_free(fakes[i]);
	}
	wss_hypervisor_unref(hypervisor);
	wss_clock_inject(NULL);
	return bad || count_fds() != fds ? -1 : 0;
}

static void measure(struct wss_target *target, wss_measure_emit emit)
{
	current = target;
	wss_measure_run(target, &options, NULL, emit, &got);
}

/* One after the other. */
static void run(size_t n)
{
	for (size_t i = 0; i < n; i++)
		measure(targets[i], on_sample);
}

static void assert_failed(size_t i, enum wss_error_code code, const char *part)
{
	assert_true(i < got.n);
	assert_int_equal(got.samples[i].quality, code == WSS_ERR_UNSUPPORTED
							 ? WSS_QUALITY_UNSUPPORTED
							 : WSS_QUALITY_FAILED);
	assert_error(&got.samples[i].error, code, part);
	assert_false(got.samples[i].wss_bytes.known);
}

static void assert_measured(size_t i)
{
	assert_true(i < got.n);
	if (!wss_sample_measured(&got.samples[i]))
		fail_msg("sample %zu: %s", i, got.samples[i].error.text);
	assert_true(got.samples[i].wss_bytes.known);
}

TEST(test_one)
{
	run(1);
	assert_int_equal(got.n, 1);
	assert_measured(0);
	assert_true(got.last[0]);
	assert_string_equal(got.samples[0].domain, "first");
	assert_in_range(got.samples[0].window_ns.value, 4 * WSS_NS_PER_S,
			4 * WSS_NS_PER_S + WSS_NS_PER_MS);
	assert_int_equal(fakes[0]->begins, 1);
	assert_true(got.samples[0].n_curve > 20);
}

/* Refused before anything is opened or armed. */
TEST(test_job)
{
	fakes[0]->job = true;
	run(1);
	assert_int_equal(got.n, 1);
	assert_failed(0, WSS_ERR_BUSY, "job");
	assert_true(got.last[0]);
	assert_int_equal(fakes[0]->opens, 0);
	assert_int_equal(fakes[0]->begins, 0);
}

TEST(test_not_running)
{
	fakes[0]->state = WSS_GUEST_PAUSED;
	fakes[1]->state = WSS_GUEST_SHUTOFF;
	run(2);
	assert_int_equal(got.n, 2);
	assert_failed(0, WSS_ERR_FAILED, "not running");
	assert_failed(1, WSS_ERR_FAILED, "not running");
	assert_int_equal(fakes[0]->begins + fakes[1]->begins, 0);
}

static void job_at_second_look(struct fake *fake)
{
	fake->job = fake->refreshes == 2;
}

/* The job begins between opening and arming; later windows succeed. */
TEST(test_job_appears)
{
	fakes[0]->on_refresh = job_at_second_look;
	options.count = 3;
	options.interval_ns = 10 * WSS_NS_PER_S;
	run(1);
	assert_int_equal(got.n, 3);
	assert_failed(0, WSS_ERR_BUSY, "job");
	assert_false(got.last[0]);
	assert_measured(1);
	assert_measured(2);
	assert_true(got.last[2]);
	assert_int_equal(fakes[0]->begins, 2);
}

TEST(test_predicted_stall)
{
	fakes[0]->predict_ns = WSS_NS_PER_S;
	options.count = 3;
	run(2);
	/* The error would not go away, so the series of that guest ends. */
	assert_int_equal(got.n, 4);
	assert_failed(0, WSS_ERR_UNSUPPORTED, "about 1.00 s, over the limit of 100 ms");
	assert_true(got.last[0]);
	assert_int_equal(fakes[0]->begins, 0);
	assert_int_equal(fakes[1]->begins, 3);
}

TEST(test_measured_stall)
{
	fakes[0]->begin_ns = 300 * WSS_NS_PER_MS;
	options.count = 6;
	run(1);
	assert_int_equal(got.n, 4);
	assert_measured(2);
	assert_failed(3, WSS_ERR_UNSUPPORTED, "over the limit of");
	assert_true(got.last[3]);
	assert_int_equal(fakes[0]->begins, 3);
}

static void kill_event(void *opaque)
{
	fake_kill(opaque);
}

/*
 * This is noticed soon, not at the end of a long window; there is one sample, and the other
 * guest is measured.
 */
static void killed_within(const struct wss_tracker_ops *method)
{
	uint64_t start_ns = virtual_clock.now_ns;

	options.method = method;
	options.count = 3;
	options.window.track.window_ns = options.interval_ns = 60 * WSS_NS_PER_S;
	virtual_clock_at(2 * WSS_NS_PER_S, kill_event, fakes[0]);
	run(2);
	assert_int_equal(got.n, 4);
	assert_ptr_equal(got.from[0], targets[0]);
	assert_failed(0, WSS_ERR_GONE, "ended within the window");
	assert_true(got.last[0]);
	assert_in_range(got.at_ns[0] - start_ns, 2 * WSS_NS_PER_S, 3 * WSS_NS_PER_S);
	for (size_t i = 1; i < 4; i++) {
		assert_ptr_equal(got.from[i], targets[1]);
		assert_measured(i);
	}
}

TEST(test_killed)
{
	killed_within(&null_method);
}

TEST(test_killed_dear)
{
	killed_within(&dear_method);
}

static void kill_at_second_look(struct fake *fake)
{
	if (fake->refreshes != 2)
		return;
	fake_kill(fake);
	fake->refresh_fails = WSS_ERR_FAILED;
}

/* What libvirt or QEMU says about a guest that has ended is not why it cannot be measured. */
TEST(test_killed_before)
{
	fakes[0]->on_refresh = kill_at_second_look;
	options.count = 3;
	run(1);
	assert_int_equal(got.n, 1);
	assert_failed(0, WSS_ERR_GONE, "the guest has ended");
	assert_int_equal(fakes[0]->begins, 0);
}

static void close_at_second_look(struct fake *fake)
{
	if (fake->refreshes != 2)
		return;
	fake->refresh_fails = WSS_ERR_GONE;
	virtual_clock_at(100 * WSS_NS_PER_MS, kill_event, fake);
}

/* A process that ends closes its sockets before that is seen. */
TEST(test_killed_after_closing)
{
	fakes[0]->on_refresh = close_at_second_look;
	run(1);
	assert_int_equal(got.n, 1);
	assert_failed(0, WSS_ERR_GONE, "the guest has ended");
	/* One that lives on has only closed its connection. */
	fakes[1]->refresh_fails = WSS_ERR_GONE;
	measure(targets[1], on_sample);
	assert_failed(1, WSS_ERR_GONE, "refresh fails");
}

static int probe_of_killed(const struct wss_host *unused, struct wss_guest *guest,
			   struct wss_error *err)
{
	fake_kill(guest->source);
	return wss_error_set(err, WSS_ERR_UNSUPPORTED, "no counters");
}

TEST(test_killed_in_probe)
{
	struct wss_tracker_ops method = null_method;

	method.probe = probe_of_killed;
	options.method = &method;
	run(1);
	assert_int_equal(got.n, 1);
	assert_failed(0, WSS_ERR_GONE, "the guest has ended");
}

/* One guest that does not exist and one whose method fails. */
TEST(test_one_good)
{
	fakes[0]->begin_fails = WSS_ERR_FAILED;
	run(3);
	assert_int_equal(got.n, 3);
	assert_failed(0, WSS_ERR_FAILED, "begin fails");
	assert_string_equal(got.samples[0].domain, "first");
	assert_measured(1);
	assert_string_equal(got.samples[1].domain, "second");
	assert_failed(2, WSS_ERR_GONE, "no domain");
	/* The name as the user typed it: reports make it printable. */
	assert_string_equal(got.samples[2].domain, "no\nsuch");
	assert_null(got.samples[2].method);
	assert_int_equal(got.samples[2].requested_window_ns, 4 * WSS_NS_PER_S);
	for (size_t i = 0; i < 3; i++)
		assert_true(got.last[i]);
}

TEST(test_attach_fails)
{
	fakes[0]->attach_fails = true;
	run(2);
	assert_int_equal(got.n, 2);
	assert_failed(0, WSS_ERR_UNSUPPORTED, "attach fails");
	assert_measured(1);
}

static void fail_polls(void *opaque)
{
	((struct fake *)opaque)->poll_fails = WSS_ERR_FAILED;
}

TEST(test_poll_fails)
{
	uint64_t start_ns = virtual_clock.now_ns;

	options.count = 2;
	options.interval_ns = 20 * WSS_NS_PER_S;
	virtual_clock_at(2 * WSS_NS_PER_S, fail_polls, fakes[0]);
	run(1);
	assert_int_equal(got.n, 2);
	assert_failed(0, WSS_ERR_FAILED, "poll fails");
	assert_failed(1, WSS_ERR_FAILED, "poll fails");
	/* The second window began one interval after the first, although that failed early. */
	assert_in_range(got.at_ns[0] - start_ns, 2 * WSS_NS_PER_S, 3 * WSS_NS_PER_S);
	assert_in_range(got.at_ns[1] - start_ns, 20 * WSS_NS_PER_S,
			20 * WSS_NS_PER_S + 20 * WSS_NS_PER_MS);
}

/* A lost connection would fail every later window in the same way. */
TEST(test_connection_lost)
{
	options.count = 5;
	fakes[0]->refresh_fails = WSS_ERR_CONNECT;
	run(1);
	assert_int_equal(got.n, 1);
	assert_failed(0, WSS_ERR_CONNECT, NULL);
	assert_true(got.last[0]);
}

static void lose_connection(void *opaque)
{
	((struct fake *)opaque)->refresh_fails = WSS_ERR_CONNECT;
}

/* libvirtd is not needed within a window. */
TEST(test_connection_lost_within)
{
	virtual_clock_at(2 * WSS_NS_PER_S, lose_connection, fakes[0]);
	run(1);
	assert_int_equal(got.n, 1);
	assert_measured(0);
}

TEST(test_locked)
{
	struct wss_process other;

	assert_int_equal(wss_guest_attach(fakes[0]->guest, &host, NULL), 0);
	/* The lock is held as another process would hold it. */
	other = fakes[0]->guest->process;
	assert_int_equal(wss_control_take(&other, NULL), 0);
	run(2);
	assert_int_equal(got.n, 2);
	assert_failed(0, WSS_ERR_BUSY, "another virt-wss");
	assert_measured(1);
	wss_control_release(&other);
}

TEST(test_count_and_interval)
{
	uint64_t start_ns = virtual_clock.now_ns;

	options.count = 3;
	options.interval_ns = 10 * WSS_NS_PER_S;
	run(1);
	assert_int_equal(got.n, 3);
	for (size_t i = 0; i < 3; i++) {
		uint64_t due_ns =
			start_ns + i * options.interval_ns + options.window.track.window_ns;

		assert_measured(i);
		assert_in_range(got.at_ns[i], due_ns, due_ns + 20 * WSS_NS_PER_MS);
		assert_int_equal(got.last[i], i == 2);
		assert_in_range(got.samples[i].window_ns.value, 4 * WSS_NS_PER_S,
				4 * WSS_NS_PER_S + WSS_NS_PER_MS);
	}
	assert_int_equal(fakes[0]->begins, 3);
}

/* Arms once, and reports every interval and at the end. */
TEST(test_cumulative)
{
	static const uint64_t due_s[] = {3, 6, 9, 10};

	options.cumulative = true;
	options.window.track.window_ns = 10 * WSS_NS_PER_S;
	options.interval_ns = 3 * WSS_NS_PER_S;
	run(1);
	assert_int_equal(got.n, 4);
	assert_int_equal(fakes[0]->begins, 1);
	for (size_t i = 0; i < 4; i++) {
		assert_measured(i);
		assert_in_range(got.samples[i].window_ns.value, due_s[i] * WSS_NS_PER_S,
				due_s[i] * WSS_NS_PER_S + 10 * WSS_NS_PER_MS);
		assert_int_equal(got.last[i], i == 3);
		if (i)
			assert_true(got.samples[i].wss_bytes.value >
				    got.samples[i - 1].wss_bytes.value);
	}
}

TEST(test_cumulative_one)
{
	options.cumulative = true;
	options.interval_ns = 3600 * WSS_NS_PER_S;
	run(1);
	assert_int_equal(got.n, 1);
	assert_true(got.last[0]);
	assert_in_range(got.samples[0].window_ns.value, 4 * WSS_NS_PER_S,
			4 * WSS_NS_PER_S + WSS_NS_PER_MS);
}

TEST(test_cumulative_killed)
{
	options.cumulative = true;
	options.interval_ns = WSS_NS_PER_S;
	virtual_clock_at(2500 * WSS_NS_PER_MS, kill_event, fakes[0]);
	run(1);
	assert_int_equal(got.n, 3);
	assert_measured(1);
	assert_failed(2, WSS_ERR_GONE, NULL);
	assert_true(got.last[2]);
}

/*
 * Reading takes far longer than the interval: the window still ends in time, each report has
 * its own time, and the last one covers the whole window.
 */
TEST(test_cumulative_slow_reads)
{
	static const struct wss_tracker_ops *const methods[] = {&null_method, &dear_method};
	const uint64_t window_ns = 100 * WSS_NS_PER_MS, poll_ns = 4 * WSS_NS_PER_MS;

	options.cumulative = true;
	options.window.track.window_ns = window_ns;
	options.interval_ns = WSS_NS_PER_MS / 10;
	fakes[0]->poll_ns = poll_ns;
	for (size_t m = 0; m < 2; m++) {
		uint64_t start_ns = virtual_clock.now_ns, previous_ns = 0;

		got.n = 0;
		options.method = methods[m];
		run(1);
		assert_true(virtual_clock.now_ns - start_ns < window_ns + 3 * poll_ns);
		assert_in_range(got.n, 10, window_ns / poll_ns + 1);
		for (size_t i = 0; i < got.n; i++) {
			assert_measured(i);
			assert_int_equal(got.last[i], i + 1 == got.n);
			assert_true(!i || got.samples[i].window_ns.value >= previous_ns + poll_ns);
			previous_ns = got.samples[i].window_ns.value;
		}
		assert_in_range(previous_ns, window_ns, window_ns + 2 * poll_ns);
	}
}

/* Only reports whose time has passed are skipped, not those between them and the end. */
TEST(test_cumulative_skips_few)
{
	static const uint64_t due_ms[] = {3, 9, 15, 20};

	options.cumulative = true;
	options.method = &dear_method;
	options.window.track.window_ns = 20 * WSS_NS_PER_MS;
	options.interval_ns = 3 * WSS_NS_PER_MS;
	fakes[0]->poll_ns = 4 * WSS_NS_PER_MS;
	run(1);
	assert_int_equal(got.n, 4);
	for (size_t i = 0; i < 4; i++)
		/* The middle of a reading that begins when it is due. */
		assert_in_range(got.samples[i].window_ns.value, (due_ms[i] + 2) * WSS_NS_PER_MS,
				(due_ms[i] + 3) * WSS_NS_PER_MS);
}

/* Windows that take longer than the interval follow each other, and each is a whole one. */
TEST(test_interval_slow_reads)
{
	uint64_t start_ns = virtual_clock.now_ns;

	options.count = 3;
	options.window.track.window_ns = options.interval_ns = 10 * WSS_NS_PER_MS;
	options.window.curve = true;
	fakes[0]->poll_ns = 50 * WSS_NS_PER_MS;
	run(1);
	assert_int_equal(got.n, 3);
	for (size_t i = 0; i < 3; i++) {
		assert_measured(i);
		assert_in_range(got.samples[i].window_ns.value, 10 * WSS_NS_PER_MS,
				2 * 50 * WSS_NS_PER_MS);
	}
	assert_true(virtual_clock.now_ns - start_ns < 3 * 3 * 50 * WSS_NS_PER_MS);
}

static void slow_refresh(struct fake *fake)
{
	virtual_clock.now_ns += 5 * WSS_NS_PER_S;
}

/* A running guest never has a working set of 0 B. */
TEST(test_nothing_touched)
{
	options.count = 2;
	fakes[0]->is_idle = true;
	run(2);
	assert_int_equal(got.n, 4);
	for (size_t i = 0; i < 4; i++) {
		if (got.from[i] == targets[1])
			assert_measured(i);
		else
			assert_failed(i, WSS_ERR_FAILED, "touched nothing at all");
	}
	/* The next window may be better. */
	assert_int_equal(fakes[0]->begins, 2);
}

TEST(test_nothing_touched_stopped)
{
	fakes[0]->is_idle = fakes[0]->disturbance.stopped = true;
	run(1);
	assert_int_equal(got.n, 1);
	assert_failed(0, WSS_ERR_FAILED, "paused");
}

static void stop_being_idle(void *opaque)
{
	((struct fake *)opaque)->is_idle = false;
}

/* For a growing set, 0 is a valid beginning but not a valid end. */
TEST(test_nothing_touched_yet)
{
	options.cumulative = true;
	options.interval_ns = WSS_NS_PER_S;
	fakes[0]->is_idle = true;
	run(1);
	assert_int_equal(got.n, 4);
	for (size_t i = 0; i < 3; i++)
		assert_measured(i);
	assert_failed(3, WSS_ERR_FAILED, "touched nothing at all");
	assert_true(got.last[3]);
	got.n = 0;
	virtual_clock_at(2500 * WSS_NS_PER_MS, stop_being_idle, fakes[0]);
	run(1);
	assert_int_equal(got.n, 4);
	for (size_t i = 0; i < 4; i++) {
		assert_measured(i);
		assert_int_equal(got.samples[i].wss_bytes.value > 0, i >= 2);
	}
}

/* The guest opens, but is given up before it is armed; the others keep all their time. */
TEST(test_deadline)
{
	options.count = 3;
	for (int i = 0; i < 2; i++)
		wss_deadline_allow(&targets[i]->deadline, 8 * WSS_NS_PER_S);
	fakes[0]->on_refresh = slow_refresh;
	run(2);
	assert_int_equal(got.n, 4);
	assert_ptr_equal(got.from[0], targets[0]);
	assert_failed(0, WSS_ERR_TIMEOUT, "timed out after 8.00 s");
	assert_true(got.last[0]);
	assert_int_equal(fakes[0]->begins, 0);
	assert_int_equal(fakes[0]->refreshes, 2);
	for (size_t i = 1; i < 4; i++)
		assert_measured(i);
	/* Restoring has a time of its own. */
	assert_in_range(fakes[0]->close_deadline_ns, got.at_ns[0] + 5 * WSS_NS_PER_S,
			got.at_ns[0] + 20 * WSS_NS_PER_S);
}

static void slower_refresh(struct fake *fake)
{
	virtual_clock.now_ns += (fake->refreshes == 3 ? 8 : 2) * WSS_NS_PER_S;
}

static void slow_sample(const struct wss_sample *sample, bool last, void *opaque)
{
	virtual_clock.now_ns += 100 * WSS_NS_PER_S;
	on_sample(sample, last, opaque);
}

/*
 * Each window has its own deadline, which neither the window's length nor the receiver of the
 * sample uses up.
 */
TEST(test_deadline_is_for_one_window)
{
	options.count = 4;
	options.window.track.window_ns = options.interval_ns = 60 * WSS_NS_PER_S;
	wss_deadline_allow(&targets[0]->deadline, 13 * WSS_NS_PER_S);
	fakes[0]->on_refresh = slower_refresh;
	fakes[0]->poll_ns = WSS_NS_PER_S;
	measure(targets[0], slow_sample);
	assert_int_equal(got.n, 4);
	for (size_t i = 0; i < 4; i++)
		assert_measured(i);
}

static void too_slow_poll(void *opaque)
{
	((struct fake *)opaque)->poll_ns = 30 * WSS_NS_PER_S;
	((struct fake *)opaque)->on_refresh = slow_refresh;
}

/* The same if it passes after the end of the window; the next window does not begin. */
TEST(test_deadline_within)
{
	options.count = 2;
	wss_deadline_allow(&targets[0]->deadline, 4 * WSS_NS_PER_S);
	virtual_clock_at(3 * WSS_NS_PER_S, too_slow_poll, fakes[0]);
	run(1);
	assert_int_equal(got.n, 2);
	assert_measured(0);
	assert_failed(1, WSS_ERR_TIMEOUT, "timed out after 4.00 s");
	assert_int_equal(fakes[0]->begins, 1);
}

/*
 * "auto" chooses one method for a guest and keeps it. Each sample names its method and a
 * profile is made from one of them, so figures of different methods are never averaged.
 */
/* Makes real accesses within both windows, and schedules itself again for the next one. */
static void touch_something(void *unused)
{
	fake_touch(fakes[0], 10);
	virtual_clock_at(options.window.track.window_ns, touch_something, unused);
}

TEST(test_never_mixed)
{
	struct wss_profile profile;

	options.method = NULL;
	options.count = 2;
	/* Whatever this host has, a confidential guest cannot be measured. */
	fake_make_kvm(fakes[1]);
	snprintf(fakes[1]->guest->config.launch_security,
		 sizeof(fakes[1]->guest->config.launch_security), "sev");
	virtual_clock_at(options.window.track.window_ns / 2, touch_something, NULL);
	run(2);
	assert_int_equal(got.n, 3);
	for (size_t i = 0; i < 3; i++) {
		if (got.from[i] == targets[1]) {
			assert_failed(i, WSS_ERR_UNSUPPORTED, "no method");
			assert_null(got.samples[i].method);
			continue;
		}
		assert_measured(i);
		assert_string_equal(got.samples[i].method, "refs");
		wss_profile_from_sample(&got.samples[i], "1", &profile);
		assert_string_equal(profile.method, "refs");
		assert_int_equal(profile.window_ns, got.samples[i].window_ns.value);
	}
}

/* --- every method --- */

static const struct wss_tracker_ops twice_method, refusing_method;
static const struct wss_tracker_ops *const three_methods[] = {&null_method, &refusing_method,
							      &twice_method, NULL};

static int twice_open(const struct wss_host *unused, struct wss_guest *guest,
		      const struct wss_track_options *track, struct wss_tracker **ret_tracker,
		      struct wss_error *err)
{
	null_open(unused, guest, track, ret_tracker, err);
	(*ret_tracker)->ops = &twice_method;
	return 0;
}

static int twice_poll(struct wss_tracker *tracker, struct wss_reading *ret_reading,
		      struct wss_error *err)
{
	int r = null_poll(tracker, ret_reading, err);

	ret_reading->wss_bytes *= 2;
	ret_reading->low_bytes *= 2;
	ret_reading->high_bytes *= 2;
	return r;
}

static bool twice_knows_why;

static void twice_explain(const struct wss_tracker *unused, struct wss_sample *sample)
{
	if (twice_knows_why)
		wss_sample_note(sample, "each page has two halves");
}

static const struct wss_tracker_ops twice_method = {
	.name = "twice",
	.probe = null_probe,
	.predict = null_predict,
	.begin = null_begin,
	.poll = twice_poll,
	.close = null_close,
	.explain = twice_explain,
	.open = twice_open,
	.cheap_poll = true,
};

static int refusing_probe(const struct wss_host *unused, struct wss_guest *guest,
			  struct wss_error *err)
{
	return wss_error_set(err, WSS_ERR_UNSUPPORTED, "no kernel has it");
}

static const struct wss_tracker_ops refusing_method = {.name = "refusing", .probe = refusing_probe};

static void run_each(unsigned count)
{
	twice_knows_why = true;
	options.methods = three_methods;
	options.count = count;
	fakes[0]->wss_bytes = 64 * WSS_MIB;
	run(1);
}

/* By the first, the one that can, and the first again. */
TEST(test_every_method)
{
	static const char *const methods[] = {"null", "twice", "null"};

	run_each(2);
	assert_int_equal(got.n, 6);
	for (size_t i = 0; i < 6; i++) {
		assert_measured(i);
		assert_string_equal(got.samples[i].method, methods[i % 3]);
		assert_int_equal(got.last[i], i == 5);
		assert_true(got.samples[i].window_ns.value >= 4 * WSS_NS_PER_S);
	}
	assert_int_equal(got.samples[0].n_notes, 0);
	assert_int_equal(got.samples[2].n_notes, 2);
	assert_string_equal(got.samples[2].notes[0],
			    "twice found 128 MiB and null 64.2 MiB, for these reasons:");
	assert_string_equal(got.samples[2].notes[1], "twice: each page has two halves");
	got.n = 0;
	twice_knows_why = false;
	run(1);
	assert_int_equal(got.n, 6);
	assert_int_equal(got.samples[2].n_notes, 1);
	assert_string_equal(got.samples[2].notes[0],
			    "twice found 128 MiB and null 64.2 MiB, and nothing known explains it");
}

TEST(test_every_method_agrees)
{
	fakes[0]->unsure_bytes = 70 * WSS_MIB;
	run_each(1);
	assert_int_equal(got.n, 3);
	assert_non_null(strstr(got.samples[2].notes[0],
			       "twice and null agree within their bounds: 128 MiB and"));
}

static void touch_more(void *unused)
{
	fakes[0]->wss_bytes += 80 * WSS_MIB;
}

/* Before the last window. */
TEST(test_every_method_of_a_guest_that_changes)
{
	virtual_clock_at(9 * WSS_NS_PER_S, touch_more, NULL);
	run_each(1);
	assert_int_equal(got.n, 3);
	assert_non_null(strstr(
		got.samples[2].notes[0],
		"no further apart than the two windows of null, between which the guest changed"));
}

/* What the others have found stays. */
TEST(test_every_method_that_fails)
{
	fakes[0]->poll_fails = WSS_ERR_FAILED;
	run_each(1);
	assert_int_equal(got.n, 3);
	for (size_t i = 0; i < 3; i++)
		assert_failed(i, WSS_ERR_FAILED, "poll");
	got.n = 0;
	fakes[0]->poll_fails = WSS_OK;
	fakes[0]->state = WSS_GUEST_PAUSED;
	run_each(3);
	assert_int_equal(got.n, 3);
	assert_failed(2, WSS_ERR_FAILED, "not running");
}

TEST(test_every_method_gone)
{
	virtual_clock_at(6 * WSS_NS_PER_S, kill_event, fakes[0]);
	run_each(3);
	assert_int_equal(got.n, 2);
	assert_measured(0);
	assert_failed(1, WSS_ERR_GONE, "ended within the window");
	assert_true(got.last[1]);
}

TEST(test_method_refuses)
{
	options.method = &wss_tracker_mmu;
	run(1);
	assert_int_equal(got.n, 1);
	assert_failed(0, WSS_ERR_UNSUPPORTED, "method mmu: the guest does not run on KVM");
	assert_string_equal(got.samples[0].method, "mmu");
	/* The guest lives. */
	fake_touch(fakes[0], 1);
}

static void ask_to_stop(void *unused)
{
	raise(SIGINT);
}

/* Runs in a child, because a stop request cannot be undone. */
static int run_and_stop(void)
{
	wss_stop_install();
	options.window.pause = have_pidfd();
	virtual_clock_at(2 * WSS_NS_PER_S, ask_to_stop, NULL);
	run(2);
	if (got.n || fakes[0]->begins != 1 || fakes[1]->begins != 0)
		return 2;
	/* Everything was closed and the guest resumed. */
	if (fakes[0]->closes != 1)
		return 3;
	if (wss_control_take(&fakes[0]->guest->process, NULL) < 0)
		return 4;
	wss_control_release(&fakes[0]->guest->process);
	fake_touch(fakes[0], 1);
	return wss_stop_signal() == SIGINT && fake_state(fakes[0]) != 'T' ? 0 : 5;
}

static int probe_of_stopped(const struct wss_host *unused, struct wss_guest *guest,
			    struct wss_error *err)
{
	raise(SIGTERM);
	return wss_error_set(err, WSS_ERR_UNSUPPORTED, "no counters");
}

static int stop_in_probe(void)
{
	struct wss_tracker_ops method = null_method;

	wss_stop_install();
	method.probe = probe_of_stopped;
	options.method = &method;
	run(2);
	return got.n;
}

/* The guest is not said to be one that cannot be measured. */
TEST(test_stop_in_probe)
{
	assert_int_equal(in_child(stop_in_probe), 0);
}

TEST(test_stop_within)
{
	assert_int_equal(in_child(run_and_stop), 0);
}

static int run_stopped(void)
{
	wss_stop_install();
	raise(SIGTERM);
	run(2);
	return !got.n && !fakes[0]->begins ? 0 : 1;
}

/* Windows that lost a condition they depend on begin again, and are complete. */
TEST(test_spoilt)
{
	options.method = &careful_method;
	fakes[0]->spoilt_times = 2;
	run(1);
	assert_int_equal(got.n, 1);
	assert_measured(0);
	assert_int_equal(fakes[0]->begins, 3);
	assert_in_range(got.samples[0].window_ns.value, 4 * WSS_NS_PER_S,
			4 * WSS_NS_PER_S + WSS_NS_PER_MS);
}

/* The sample is emitted once the guest has been restored. */
TEST(test_settle)
{
	uint64_t start_ns = virtual_clock.now_ns;

	options.method = &careful_method;
	fakes[0]->settle_steps = 40;
	run(1);
	assert_int_equal(got.n, 1);
	assert_measured(0);
	assert_string_equal(got.samples[0].notes[0], "settled");
	assert_true(got.at_ns[0] - start_ns > 5 * WSS_NS_PER_S);
	assert_in_range(got.samples[0].window_ns.value, 4 * WSS_NS_PER_S,
			4 * WSS_NS_PER_S + WSS_NS_PER_MS);
}

static int stop_while_settling(void)
{
	wss_stop_install();
	options.method = &careful_method;
	fakes[0]->settle_steps = UINT_MAX;
	virtual_clock_at(6 * WSS_NS_PER_S, ask_to_stop, NULL);
	run(1);
	return got.n == 1 && wss_sample_measured(&got.samples[0]) && got.last[0] ? 0 : 2;
}

/* A sample that was read before the request is kept. */
TEST(test_stop_while_settling)
{
	assert_int_equal(in_child(stop_while_settling), 0);
}

TEST(test_stop_before)
{
	assert_int_equal(in_child(run_stopped), 0);
}

int main(void)
{
	return tests_run_each(set_up, tear_down);
}
