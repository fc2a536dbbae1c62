/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The watch over invented guests. Threads and clock are the real ones; times are short. */
#include "invented.h"

#include "base/cancel.h"
#include "base/log.h"
#include "service/watch.h"

#define PERIOD_NS (100 * MS)
#define PATIENCE_NS (20 * WSS_NS_PER_S)

static struct wss_watch_options options;
static struct wss_hypervisor *hypervisor;
static struct wss_watch *watch;
static struct wss_cancel cancel;

static struct {
	unsigned samples, gone, lost, found;
	uint64_t window_ns[8]; /* of the first samples, as they were asked for */
} told;

static void on_sample(const struct wss_watched *guest, const struct wss_sample *sample, void *unused)
{
	(void)guest;
	(void)unused;
	if (told.samples < 8)
		told.window_ns[told.samples] = sample->requested_window_ns;
	told.samples++;
}

static void on_gone(const struct wss_watched *guest, void *unused)
{
	(void)guest;
	(void)unused;
	told.gone++;
}

static void on_connection(const struct wss_error *error, void *unused)
{
	(void)unused;
	if (error)
		told.lost++;
	else
		told.found++;
}

static bool wants_publishing;

static bool on_profile(const struct wss_watched *guest, struct wss_profile *ret_profile, void *unused)
{
	(void)unused;
	assert_true(guest->measured);
	assert_int_not_equal(guest->kind, WSS_WINDOW_CANARY);
	wss_profile_from_sample(&guest->sample, "1.0", ret_profile);
	return wants_publishing;
}

static const struct wss_watch_events events = {
	.sample = on_sample,
	.gone = on_gone,
	.connection = on_connection,
	.profile = on_profile,
};

/* Of n guests, with windows of 20 ms and canaries of 10 ms, and with a budget for anything. */
static void prepare(size_t n)
{
	invent_guests(n);
	memset(&told, 0, sizeof(told));
	wants_publishing = false;
	wss_watch_options_init(&options);
	wss_measure_options_init(&options.measure, 20 * MS);
	options.measure.method = &method_ops;
	options.canary_ns = 10 * MS;
	options.period_ns = PERIOD_NS;
	options.boot_ns = 0;
	options.list_ns = 300 * MS;
	options.pressure_share = 0;
	options.budget.guest_share = 1;
	options.budget.stall_ns = 100 * MS;
	options.fault_ns = 1000;
	assert_int_equal(wss_cancel_open(&cancel, NULL, NULL), 0);
	options.cancel = &cancel;
	hypervisor = hypervisor_new();
}

static void begin(void)
{
	assert_int_equal(wss_watch_new_with(hypervisor, &options, &events, NULL, &watch, NULL), 0);
}

static void end(void)
{
	uint64_t end_ns = wss_clock_now_ns() + PATIENCE_NS;

	go_on = true;
	wss_cancel_request(&cancel);
	while (wss_watch_step(watch))
		assert_true(wss_clock_now_ns() < end_ns);
	for (size_t i = 0; i < n_guests; i++)
		assert_false(guests[i].is_open);
	wss_watch_free(watch);
	wss_hypervisor_unref(hypervisor);
	forget();
	wss_cancel_close(&cancel);
}

/* Steps until condition holds, which must be soon. */
#define STEP_UNTIL(condition)                                                     \
	do {                                                                      \
		uint64_t step_end_ns = wss_clock_now_ns() + PATIENCE_NS;          \
		while (!(condition)) {                                            \
			assert_true(wss_watch_step(watch));                       \
			if (wss_clock_now_ns() >= step_end_ns)                    \
				fail_msg("never came to be: %s", #condition);     \
		}                                                                 \
	} while (0)

static void step_for(uint64_t ns)
{
	uint64_t end_ns = wss_clock_now_ns() + ns;

	while (wss_clock_now_ns() < end_ns)
		assert_true(wss_watch_step(watch));
}

static const struct wss_watched *watched(size_t i)
{
	for (size_t j = 0; j < wss_watch_count(watch); j++)
		if (!strcmp(wss_watch_guest(watch, j)->uuid, guests[i].uuid))
			return wss_watch_guest(watch, j);
	return NULL;
}

static void test_again_and_again(void **unused)
{
	(void)unused;
	prepare(1);
	begin();
	STEP_UNTIL(told.samples >= 4);
	/* First the cheapest there is. */
	assert_int_equal(told.window_ns[0], 10 * MS);
	assert_int_equal(told.window_ns[1], 20 * MS);
	assert_int_equal(told.window_ns[3], 20 * MS);
	assert_true(watched(0)->measured);
	assert_int_equal(watched(0)->kind, WSS_WINDOW_COARSE);
	assert_int_equal(watched(0)->sample.wss_bytes.value, WSS_MIB);
	assert_true(watched(0)->windows >= 4);
	assert_true(watched(0)->spent_vcpu_ns > 0);
	assert_int_equal(told.lost, 0);
	end();
}

/* Not together, and no more often than every period. */
static void test_spreads_and_keeps_the_period(void **unused)
{
	uint64_t began_ns;
	unsigned most = 0;

	(void)unused;
	prepare(8);
	options.period_ns = 800 * MS;
	began_ns = wss_clock_now_ns();
	begin();
	STEP_UNTIL(told.samples >= 16);
	for (size_t i = 0; i < 8; i++)
		if (guests[i].begins > most)
			most = guests[i].begins;
	assert_true((most - 1) * options.period_ns <= wss_clock_now_ns() - began_ns);
	assert_int_equal(most_arming, 1);
	end();
}

/* A service that has nothing to do sleeps. */
static void test_sleeps_until_a_guest_is_due(void **unused)
{
	unsigned steps = 0;
	uint64_t end_ns;

	(void)unused;
	prepare(1);
	options.period_ns = 2 * WSS_NS_PER_S;
	begin();
	STEP_UNTIL(told.samples == 1 && watched(0)->state == WSS_WATCHED_WAITING);
	end_ns = wss_clock_now_ns() + WSS_NS_PER_S;
	for (; wss_clock_now_ns() < end_ns; steps++)
		assert_true(wss_watch_step(watch));
	assert_true(steps <= 12);
	end();
}

static void test_one_that_hangs(void **unused)
{
	(void)unused;
	prepare(8);
	guests[3].hang = HANG_OPEN;
	begin();
	STEP_UNTIL(told.samples >= 30);
	assert_int_equal(watched(3)->state, WSS_WATCHED_MEASURING);
	assert_false(watched(3)->measured);
	end();
}

/* Requests the end, and returns how long the watch took to come to it. */
static uint64_t request_end(void)
{
	uint64_t began_ns = wss_clock_now_ns();

	wss_cancel_request(&cancel);
	while (wss_watch_step(watch))
		assert_true(wss_clock_now_ns() < began_ns + PATIENCE_NS);
	wss_watch_free(watch);
	return wss_clock_now_ns() - began_ns;
}

static void end_after_request(void)
{
	forget();
	wss_hypervisor_unref(hypervisor);
	wss_cancel_close(&cancel);
}

/* With windows open and others that hang, the end comes within the five seconds that a service has. */
static void test_ends_soon_with_many_guests(void **unused)
{
	(void)unused;
	prepare(100);
	options.period_ns = 5 * WSS_NS_PER_S;
	wss_measure_options_init(&options.measure, 2 * WSS_NS_PER_S);
	options.measure.method = &method_ops;
	for (size_t i = 0; i < 100; i += 10)
		guests[i].hang = i % 20 ? HANG_OPEN : HANG_REFRESH;
	begin();
	STEP_UNTIL(open_windows >= 10);
	assert_true(request_end() < 4 * WSS_NS_PER_S);
	for (size_t i = 0; i < 100; i++)
		assert_false(guests[i].is_open);
	end_after_request();
}

/* As while libvirtd hangs: nothing comes back. */
static void test_ends_soon_while_all_hang(void **unused)
{
	(void)unused;
	prepare(100);
	for (size_t i = 0; i < 100; i++)
		guests[i].hang = HANG_OPEN;
	begin();
	step_for(500 * MS);
	assert_true(request_end() < 4 * WSS_NS_PER_S);
	end_after_request();
}

static void test_one_that_opted_out(void **unused)
{
	(void)unused;
	prepare(2);
	guests[1].opted_out = true;
	begin();
	STEP_UNTIL(guests[0].begins >= 3);
	assert_int_equal(guests[1].begins, 0);
	assert_int_equal(watched(1)->state, WSS_WATCHED_LEFT_OUT);
	assert_non_null(strstr(watched(1)->why.text, "opts out"));
	end();
}

static void test_backs_off(void **unused)
{
	(void)unused;
	prepare(1);
	guests[0].predicted = (struct wss_prediction){ .stall_ns = 10 * MS, .faults = wss_amount_of(1000) };
	guests[0].faults = wss_amount_of(1000);
	begin();
	STEP_UNTIL(watched(0) && watched(0)->windows == 2);
	assert_int_equal(watched(0)->kind, WSS_WINDOW_COARSE);
	assert_true(wss_watched_has_wss(watched(0)));
	/* Ten times as dear as predicted: within two windows it is measured less, and cheaper. */
	guests[0].faults = wss_amount_of(100000);
	STEP_UNTIL(watched(0)->windows == 4);
	assert_int_equal(watched(0)->dearer, 2);
	assert_int_equal(watched(0)->pace.kind, WSS_WINDOW_CANARY);
	assert_int_equal(watched(0)->pace.doublings, 1);
	assert_true(watched(0)->period_ns >= 2 * PERIOD_NS);
	STEP_UNTIL(watched(0)->windows == 5);
	assert_int_equal(watched(0)->kind, WSS_WINDOW_CANARY);
	/* Such a short window finds no working set. */
	assert_true(watched(0)->measured);
	assert_false(wss_watched_has_wss(watched(0)) || watched(0)->sample.low_bytes.known ||
		     watched(0)->sample.high_bytes.known || watched(0)->sample.n_curve);
	end();
}

static void test_the_switch_makes_windows_dear(void **unused)
{
	(void)unused;
	setenv("VIRT_WSS_FAULT", "dear-window", 1);
	prepare(1);
	options.budget.stall_ns = 20 * MS;
	guests[0].predicted = (struct wss_prediction){ .stall_ns = 3 * MS, .faults = wss_amount_of(1000) };
	/* Less than a tenth of the prediction, as in a canary. */
	guests[0].faults = wss_amount_of(50);
	begin();
	STEP_UNTIL(watched(0) && watched(0)->windows == 1);
	assert_int_equal(watched(0)->spent_vcpu_ns,
			 10 * wss_window_cost_of(3 * MS, 1000, options.fault_ns, 1).vcpu_ns);
	STEP_UNTIL(watched(0)->windows == 2);
	assert_int_equal(watched(0)->dearer, 2);
	assert_int_equal(watched(0)->pace.doublings, 1);
	end();
	unsetenv("VIRT_WSS_FAULT");
}

static void test_refuses_what_the_budget_does_not_cover(void **unused)
{
	(void)unused;
	prepare(3);
	options.budget.guest_share = 0.001;
	guests[0].predicted.stall_ns = 101 * MS;
	/* A millisecond a second, for an hour. */
	guests[1].predicted = (struct wss_prediction){ .stall_ns = MS, .faults = wss_amount_of(4000000) };
	guests[2].predicted = (struct wss_prediction){ .stall_ns = 100, .faults = wss_amount_of(1) };
	begin();
	STEP_UNTIL(guests[2].begins && watched(0)->state == WSS_WATCHED_REFUSED &&
		   watched(1)->state == WSS_WATCHED_REFUSED);
	assert_int_equal(guests[0].begins, 0);
	assert_int_equal(guests[1].begins, 0);
	assert_non_null(strstr(watched(0)->why.text, "stall"));
	assert_non_null(strstr(watched(1)->why.text, "of vCPU time, more than 0.1% of what"));
	end();
}

/* Few enough faults that the budget covers them, only not every period. */
static void test_measures_less_often_within_the_budget(void **unused)
{
	(void)unused;
	prepare(1);
	options.budget.guest_share = 0.001;
	guests[0].predicted = (struct wss_prediction){ .stall_ns = 100, .faults = wss_amount_of(1000) };
	guests[0].faults = wss_amount_of(1000);
	begin();
	STEP_UNTIL(told.samples == 1);
	/* A millisecond and the stall of arming. */
	assert_true(watched(0)->period_ns >= WSS_NS_PER_S);
	assert_true(watched(0)->next_ns > wss_clock_now_ns() + 500 * MS);
	end();
}

/*
 * Of 1000 entries that a window dropped 100 come back before its sample. Others do so before the next window,
 * which is charged for them, but for no more than were dropped: the guest takes faults of its own.
 */
static void test_charges_faults_after_the_sample(void **unused)
{
	uint64_t before_ns;

	(void)unused;
	prepare(1);
	options.fault_ns = 1e6;
	options.budget.guest_share = 2;
	guests[0].predicted = (struct wss_prediction){ 10 * MS, wss_amount_of(1000),
						       wss_amount_of(5000), 0 };
	guests[0].faults = wss_amount_of(100);
	begin();
	STEP_UNTIL(watched(0) && watched(0)->windows == 1);
	assert_int_equal(watched(0)->spent_vcpu_ns, 100 * MS + watched(0)->sample.cost.arm_ns.value);
	before_ns = watched(0)->spent_vcpu_ns;
	guests[0].predicted.faults_so_far.value = 5000 + 100 + 300;
	STEP_UNTIL(watched(0)->windows == 2);
	assert_int_equal(watched(0)->spent_vcpu_ns - before_ns,
			 (100 + 300) * MS + watched(0)->sample.cost.arm_ns.value);
	assert_int_equal(watched(0)->spent_ns, watched(0)->spent_vcpu_ns);
	before_ns = watched(0)->spent_vcpu_ns;
	guests[0].predicted.faults_so_far.value += 1000000;
	STEP_UNTIL(watched(0)->windows == 3);
	assert_int_equal(watched(0)->spent_vcpu_ns - before_ns,
			 (100 + 900) * MS + watched(0)->sample.cost.arm_ns.value);
	/* A second of faults, of which the budget allows two in a second. */
	assert_true(watched(0)->period_ns >= 500 * MS);
	end();
}

/* KVM's counters may lack that of faults. */
static void test_charges_the_prediction_where_faults_are_not_counted(void **unused)
{
	(void)unused;
	prepare(1);
	options.fault_ns = 1e6;
	guests[0].predicted = (struct wss_prediction){ .stall_ns = 10 * MS, .faults = wss_amount_of(1000) };
	begin();
	STEP_UNTIL(watched(0) && watched(0)->windows == 1);
	assert_int_equal(watched(0)->spent_vcpu_ns, WSS_NS_PER_S + watched(0)->sample.cost.arm_ns.value);
	end();
}

/* A window that gives no figure costs the guest as much as one that does. */
static void test_charges_windows_that_fail(void **unused)
{
	(void)unused;
	prepare(2);
	options.fault_ns = 1e6;
	options.budget.guest_share = 0.5;
	guests[0].predicted = (struct wss_prediction){ .stall_ns = 10 * MS, .faults = wss_amount_of(1000) };
	guests[0].untouched = true;
	begin();
	STEP_UNTIL(watched(0) && watched(0)->why.code);
	assert_false(watched(0)->measured);
	assert_int_equal(watched(0)->windows, 1);
	assert_int_equal(watched(0)->spent_vcpu_ns, WSS_NS_PER_S + 10 * MS);
	/* A second of faults, and half of the vCPU's time. */
	assert_true(watched(0)->period_ns >= 2 * WSS_NS_PER_S);
	assert_true(watched(0)->next_ns > wss_clock_now_ns() + WSS_NS_PER_S);
	/* It is not forgotten with the guest. */
	assert_int_equal(wss_watch_spent_before(watch).windows, 0);
	guests[0].gone = true;
	STEP_UNTIL(wss_watch_count(watch) == 1);
	assert_int_equal(wss_watch_spent_before(watch).windows, 1);
	assert_int_equal(wss_watch_spent_before(watch).vcpu_ns, WSS_NS_PER_S + 10 * MS);
	end();
}

static void test_held(void **unused)
{
	unsigned begins;

	(void)unused;
	prepare(1);
	begin();
	STEP_UNTIL(told.samples >= 2);
	assert_null(wss_watch_held(watch));
	wss_watch_hold(watch, "an operator says so");
	assert_string_equal(wss_watch_held(watch), "an operator says so");
	step_for(2 * PERIOD_NS);
	begins = guests[0].begins;
	step_for(5 * PERIOD_NS);
	assert_int_equal(guests[0].begins, begins);
	wss_watch_hold(watch, NULL);
	STEP_UNTIL(guests[0].begins > begins);
	end();
}

/* A hold that comes after the window was allowed, and before it is armed, comes in time. */
static void test_held_before_arming(void **unused)
{
	(void)unused;
	prepare(1);
	guests[0].hang = HANG_PREPARE;
	begin();
	STEP_UNTIL(guests[0].prepares);
	wss_watch_hold(watch, "an operator says so");
	go_on = true;
	STEP_UNTIL(guests[0].closes);
	assert_int_equal(guests[0].begins, 0);
	wss_watch_hold(watch, NULL);
	STEP_UNTIL(guests[0].begins);
	end();
}

/* --- memory pressure --- */

static void put_pressure(const char *tree, const char *some)
{
	char text[256];

	snprintf(text, sizeof(text),
		 "some avg10=%s avg60=0.00 avg300=0.00 total=1\n"
		 "full avg10=0.00 avg60=0.00 avg300=0.00 total=1\n",
		 some);
	put_text(tree, "proc/pressure/memory", text);
}

static void test_held_by_memory_pressure(void **unused)
{
	char *tree = make_tree();
	unsigned begins;

	(void)unused;
	put_pressure(tree, "10.00");
	setenv("VIRT_WSS_SYSROOT", tree, 1);
	prepare(1);
	options.pressure_share = 0.1;
	begin();
	STEP_UNTIL(told.samples >= 2);
	put_pressure(tree, "10.01");
	STEP_UNTIL(wss_watch_held(watch));
	assert_string_equal(wss_watch_held(watch),
			    "tasks of the host wait for memory 10.01% of the time, more than 10%");
	STEP_UNTIL(!guests[0].is_open);
	step_for(PERIOD_NS);
	begins = guests[0].begins;
	/* Less is not enough to go on, nor is a file that says nothing. */
	put_pressure(tree, "5.01");
	step_for(1200 * MS);
	put_text(tree, "proc/pressure/memory", "none\n");
	step_for(1200 * MS);
	assert_non_null(wss_watch_held(watch));
	assert_int_equal(guests[0].begins, begins);
	put_pressure(tree, "5.00");
	STEP_UNTIL(guests[0].begins > begins);
	assert_null(wss_watch_held(watch));
	end();
	unsetenv("VIRT_WSS_SYSROOT");
	remove_tree(tree);
}

/* An operator's hold stays, whatever the pressure. */
static void test_pressure_releases_no_order(void **unused)
{
	char *tree = make_tree();

	(void)unused;
	put_pressure(tree, "99.00");
	setenv("VIRT_WSS_SYSROOT", tree, 1);
	prepare(1);
	options.pressure_share = 0.1;
	begin();
	STEP_UNTIL(wss_watch_held(watch));
	wss_watch_hold(watch, "an operator says so");
	put_pressure(tree, "0.00");
	step_for(1500 * MS);
	assert_string_equal(wss_watch_held(watch), "an operator says so");
	assert_int_equal(guests[0].begins, 0);
	wss_watch_hold(watch, NULL);
	STEP_UNTIL(guests[0].begins);
	end();
	unsetenv("VIRT_WSS_SYSROOT");
	remove_tree(tree);
}

static void test_changes_the_limit_of_pressure(void **unused)
{
	char *tree = make_tree();
	unsigned begins;

	(void)unused;
	put_pressure(tree, "20.00");
	setenv("VIRT_WSS_SYSROOT", tree, 1);
	prepare(1);
	options.pressure_share = 0;
	begin();
	STEP_UNTIL(told.samples >= 2);
	options.pressure_share = 0.1;
	wss_watch_change(watch, &options);
	STEP_UNTIL(wss_watch_held(watch));
	options.pressure_share = 0.3;
	wss_watch_change(watch, &options);
	assert_null(wss_watch_held(watch));
	begins = guests[0].begins;
	STEP_UNTIL(guests[0].begins > begins);
	assert_null(wss_watch_held(watch));
	end();
	unsetenv("VIRT_WSS_SYSROOT");
	remove_tree(tree);
}

static void test_unknown_pressure_holds_nothing(void **unused)
{
	char *tree = make_tree();

	(void)unused;
	setenv("VIRT_WSS_SYSROOT", tree, 1);
	prepare(1);
	options.pressure_share = 0.1;
	begin();
	STEP_UNTIL(told.samples >= 2);
	assert_null(wss_watch_held(watch));
	end();
	unsetenv("VIRT_WSS_SYSROOT");
	remove_tree(tree);
}

static void test_leaves_a_guest_with_a_job_alone(void **unused)
{
	unsigned begins;

	(void)unused;
	prepare(2);
	begin();
	STEP_UNTIL(told.samples >= 4);
	guests[0].job = true;
	STEP_UNTIL(watched(0)->state == WSS_WATCHED_HELD);
	assert_non_null(strstr(watched(0)->why.text, "a job running"));
	/* What is known of it stays. */
	assert_true(watched(0)->measured);
	begins = guests[0].begins;
	step_for(5 * PERIOD_NS);
	assert_int_equal(guests[0].begins, begins);
	guests[0].job = false;
	STEP_UNTIL(guests[0].begins > begins);
	end();
}

static void test_comes_and_goes(void **unused)
{
	(void)unused;
	prepare(2);
	guests[1].gone = true;
	begin();
	STEP_UNTIL(told.samples >= 2);
	assert_int_equal(wss_watch_count(watch), 1);
	guests[1].gone = false;
	guests[0].gone = true;
	STEP_UNTIL(told.gone == 1 && guests[1].begins);
	assert_null(watched(0));
	assert_non_null(watched(1));
	end();
}

static void test_libvirt_comes_and_goes(void **unused)
{
	unsigned samples;
	uint64_t lost_ns;

	(void)unused;
	prepare(1);
	begin();
	STEP_UNTIL(told.samples >= 2);
	unreachable = true;
	STEP_UNTIL(told.lost == 1);
	lost_ns = wss_clock_now_ns();
	/* What is known stays. */
	assert_true(watched(0)->measured);
	samples = told.samples;
	unreachable = false;
	STEP_UNTIL(told.found == 1);
	assert_true(wss_clock_now_ns() - lost_ns < 2 * WSS_NS_PER_S);
	STEP_UNTIL(told.samples > samples);
	assert_int_equal(told.gone, 0);
	assert_int_equal(told.lost, 1);
	end();
}

static void test_leaves_a_booting_guest_alone(void **unused)
{
	(void)unused;
	/* Without pidfds the invented guests have no process, and so no start. */
	if (!have_pidfd())
		skip();
	prepare(1);
	options.boot_ns = 3600 * WSS_NS_PER_S;
	begin();
	STEP_UNTIL(watched(0) && watched(0)->why.code);
	assert_int_equal(guests[0].begins, 0);
	assert_non_null(strstr(watched(0)->why.text, "just started"));
	assert_int_equal(watched(0)->state, WSS_WATCHED_HELD);
	assert_true(watched(0)->next_ns > wss_clock_now_ns() + 3000 * WSS_NS_PER_S);
	end();
}

/* A guest that has restarted is another one: it gets a canary first. */
static void test_begins_anew_with_another_process(void **unused)
{
	pid_t first;

	(void)unused;
	prepare(1);
	begin();
	STEP_UNTIL(told.samples >= 2);
	first = guests[0].child;
	guests[0].child = fork();
	if (guests[0].child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	end_child(first);
	memset(&told, 0, sizeof(told));
	STEP_UNTIL(told.samples >= 3);
	for (unsigned i = 0; i < told.samples && i < 8; i++) {
		if (told.window_ns[i] != 10 * MS)
			continue;
		end();
		return;
	}
	fail_msg("no canary");
}

/* Gone and back under the same UUID while a window of before is still open: that one's sample is not of this guest. */
static void test_a_late_sample_is_of_no_new_guest(void **unused)
{
	(void)unused;
	prepare(1);
	guests[0].hang = HANG_POLL;
	begin();
	STEP_UNTIL(guests[0].is_open);
	guests[0].gone = true;
	STEP_UNTIL(told.gone == 1);
	assert_int_equal(told.samples, 0);
	options.canary_ns = 15 * MS;
	wss_watch_change(watch, &options);
	guests[0].gone = false;
	STEP_UNTIL(watched(0));
	guests[0].hang = HANG_NOWHERE;
	STEP_UNTIL(watched(0)->measured && told.samples >= 4);
	for (unsigned i = 0; i < told.samples && i < 8; i++)
		assert_int_not_equal(told.window_ns[i], 10 * MS);
	end();
}

/* In the same process: it is held while it boots, and then gets a canary. */
static void test_begins_anew_after_a_reboot(void **unused)
{
	unsigned begins, of_the_other;
	uint64_t spent_ns;

	(void)unused;
	prepare(2);
	options.boot_ns = 600 * MS;
	begin();
	STEP_UNTIL(guests[0].begins >= 3 && !guests[0].is_open && watched(0)->windows >= 3);
	spent_ns = watched(0)->spent_vcpu_ns;
	reboot_guest(0);
	STEP_UNTIL(watched(0)->state == WSS_WATCHED_HELD);
	assert_string_equal(watched(0)->why.text, "it has just rebooted");
	assert_int_equal(watched(0)->pace.kind, WSS_WINDOW_CANARY);
	begins = guests[0].begins;
	of_the_other = guests[1].begins;
	step_for(300 * MS);
	assert_int_equal(guests[0].begins, begins);
	assert_int_equal(watched(0)->state, WSS_WATCHED_HELD);
	assert_true(watched(0)->measured);
	assert_true(watched(0)->spent_vcpu_ns >= spent_ns);
	STEP_UNTIL(guests[0].begins > begins && watched(0)->state == WSS_WATCHED_WAITING);
	assert_int_equal(watched(0)->kind, WSS_WINDOW_CANARY);
	assert_true(guests[1].begins > of_the_other);
	end();
}

/* It counts as booting from then on, even if it is opened only later. */
static void test_a_reboot_holds_whatever_is_under_way(void **unused)
{
	uint64_t rebooted_ns;
	unsigned samples;

	(void)unused;
	prepare(1);
	options.measure.window.track.window_ns = options.canary_ns = 300 * MS;
	options.boot_ns = 500 * MS;
	begin();
	STEP_UNTIL(guests[0].is_open && told.samples);
	samples = told.samples;
	rebooted_ns = wss_clock_now_ns();
	reboot_guest(0);
	STEP_UNTIL(watched(0)->state == WSS_WATCHED_HELD);
	/* Its window came to an end, was paid for, and told of nobody. */
	assert_false(guests[0].is_open);
	assert_int_equal(told.samples, samples);
	assert_int_equal(watched(0)->windows, samples + 1);
	STEP_UNTIL(told.samples > samples);
	assert_true(guests[0].armed_ns >= rebooted_ns + 500 * MS);
	end();
}

static unsigned told_of_reboots;

static void count_reboots(enum wss_log_level level, const char *text)
{
	(void)level;
	told_of_reboots += strstr(text, "has rebooted") != NULL;
}

/* A guest can reset itself as often as it likes, but not fill the log of the host with that. */
static void test_reboots_without_end_do_not_fill_the_log(void **unused)
{
	(void)unused;
	prepare(1);
	begin();
	wss_log_set_sink(count_reboots);
	STEP_UNTIL(watched(0));
	for (unsigned i = 0; i < 30; i++) {
		reboot_guest(0);
		step_for(10 * MS);
	}
	wss_log_set_sink(NULL);
	assert_in_range(told_of_reboots, 1, 6);
	end();
}

/* --- ages --- */

/* 64 MiB without the VGA window. */
#define COLD_RAM (64 * WSS_MIB - 128 * WSS_KIB)

/* A guest that touches 1 MiB. */
static void prepare_pages(bool continuous)
{
	prepare(1);
	options.continuous = continuous;
	guests[0].touched = wss_pageset_new(64 * WSS_MIB / 4096);
	assert_non_null(guests[0].touched);
	assert_int_equal(wss_pageset_add(guests[0].touched, 1024, 256), 256);
}

static void end_pages(void)
{
	struct wss_pageset *touched = guests[0].touched;

	end();
	wss_pageset_free(touched);
}

static struct wss_cold_report cold(void)
{
	struct wss_cold_report report;

	assert_int_equal(wss_watch_count(watch), 1);
	assert_true(wss_watch_cold(watch, 0, &report));
	return report;
}

/* One window follows the other, in one visit: the guest is opened for the canary and for all of them. */
static void test_continuous(void **unused)
{
	struct wss_cold_report report;

	(void)unused;
	prepare_pages(true);
	begin();
	STEP_UNTIL(told.samples >= 8);
	assert_int_equal(guests[0].opens, 2);
	assert_int_equal(watched(0)->windows, told.samples);
	assert_true(told.window_ns[0] == 10 * MS && told.window_ns[7] == 20 * MS);
	report = cold();
	assert_int_equal(report.granularity_bytes, 4096);
	assert_int_equal(report.held_bytes, COLD_RAM);
	assert_int_equal(report.ages[WSS_COLD_SINCE_WATCHED].high_bytes, COLD_RAM - WSS_MIB);
	/* Single windows of 20 ms every 100 ms would see a fifth of the time. */
	assert_true(report.ages[WSS_COLD_SINCE_WATCHED].observed > 0.4);
	end_pages();
}

/* What the guest touches after its pages were read, and before it is armed again, is lost: no call may lie between. */
static void test_no_call_between_two_windows(void **unused)
{
	(void)unused;
	prepare_pages(true);
	guests[0].slow_refresh_us = 30000;
	begin();
	STEP_UNTIL(guests[0].pages_read);
	STEP_UNTIL(told.samples >= 6);
	assert_int_equal(guests[0].most_calls, 0);
	end_pages();
}

static void test_single_windows_have_no_low_bound(void **unused)
{
	struct wss_cold_report report;

	(void)unused;
	prepare_pages(false);
	/* More than a seam between two windows. */
	options.period_ns = 700 * MS;
	begin();
	STEP_UNTIL(told.samples >= 4);
	report = cold();
	assert_true(guests[0].opens >= 4);
	assert_int_equal(report.ages[WSS_COLD_SINCE_WATCHED].high_bytes, COLD_RAM - WSS_MIB);
	assert_int_equal(report.ages[WSS_COLD_SINCE_WATCHED].low_bytes, 0);
	assert_true(report.ages[WSS_COLD_SINCE_WATCHED].observed < 0.5);
	end_pages();
}

/* A method that does not know pages has single windows, and no ages. */
static void test_continuous_without_pages(void **unused)
{
	struct wss_cold_report report;

	(void)unused;
	prepare(1);
	options.continuous = true;
	begin();
	STEP_UNTIL(told.samples >= 4);
	assert_true(guests[0].opens >= 4);
	assert_false(wss_watch_cold(watch, 0, &report));
	end();
}

static void test_a_hold_ends_windows_that_go_on(void **unused)
{
	unsigned begins;

	(void)unused;
	prepare_pages(true);
	begin();
	STEP_UNTIL(told.samples >= 4);
	wss_watch_hold(watch, "an operator says so");
	STEP_UNTIL(!guests[0].is_open);
	begins = guests[0].begins;
	step_for(5 * PERIOD_NS);
	assert_int_equal(guests[0].begins, begins);
	wss_watch_hold(watch, NULL);
	STEP_UNTIL(guests[0].begins > begins);
	end_pages();
}

/* A migration that begins between two windows of one visit: nothing is armed. */
static void test_a_job_ends_windows_that_go_on(void **unused)
{
	unsigned begins;

	(void)unused;
	prepare_pages(true);
	begin();
	STEP_UNTIL(told.samples >= 4);
	guests[0].job = true;
	STEP_UNTIL(watched(0)->state == WSS_WATCHED_HELD);
	STEP_UNTIL(!guests[0].is_open);
	begins = guests[0].begins;
	step_for(3 * PERIOD_NS);
	assert_int_equal(guests[0].begins, begins);
	guests[0].job = false;
	STEP_UNTIL(guests[0].begins > begins);
	end_pages();
}

/* Its policy counts from the next window on, though the guest is not opened again. */
static void test_opts_out_while_windows_go_on(void **unused)
{
	unsigned begins;

	(void)unused;
	prepare_pages(true);
	begin();
	STEP_UNTIL(told.samples >= 4);
	guests[0].opted_out = true;
	STEP_UNTIL(watched(0)->state == WSS_WATCHED_LEFT_OUT);
	STEP_UNTIL(!guests[0].is_open);
	begins = guests[0].begins;
	step_for(3 * PERIOD_NS);
	assert_int_equal(guests[0].begins, begins);
	end_pages();
}

static void test_backs_off_while_windows_go_on(void **unused)
{
	(void)unused;
	prepare_pages(true);
	guests[0].predicted = (struct wss_prediction){ .stall_ns = 10 * MS, .faults = wss_amount_of(1000) };
	guests[0].faults = wss_amount_of(1000);
	begin();
	STEP_UNTIL(watched(0) && watched(0)->windows == 3);
	guests[0].dearer = 100;
	STEP_UNTIL(watched(0)->windows >= 6);
	assert_int_equal(watched(0)->kind, WSS_WINDOW_CANARY);
	assert_true(watched(0)->pace.doublings >= 1);
	end_pages();
}

static void test_ages_survive_the_watch(void **unused)
{
	char *tree = make_tree();
	uint64_t since_ns;

	(void)unused;
	prepare_pages(true);
	options.ages = tree;
	begin();
	STEP_UNTIL(told.samples >= 4);
	since_ns = cold().since_ns;
	wss_watch_hold(watch, "it ends");
	STEP_UNTIL(!guests[0].is_open);
	step_for(PERIOD_NS);
	wss_watch_free(watch);
	memset(&told, 0, sizeof(told));
	begin();
	STEP_UNTIL(told.samples >= 4);
	assert_int_equal(cold().since_ns, since_ns);
	end_pages();
	remove_tree(tree);
}

/* Memory is of another age after a reboot, and that lasts over a restart of the service. */
static void test_a_reboot_ends_ages(void **unused)
{
	char *tree = make_tree(), path[PATH_MAX];
	uint64_t rebooted_ns;

	(void)unused;
	prepare_pages(true);
	options.ages = tree;
	begin();
	STEP_UNTIL(told.samples >= 4);
	make_path(path, "%s/%s", tree, guests[0].uuid);
	wss_watch_hold(watch, "it ends");
	STEP_UNTIL(!guests[0].is_open);
	step_for(PERIOD_NS);
	wss_watch_free(watch);
	assert_int_equal(access(path, F_OK), 0);
	memset(&told, 0, sizeof(told));
	begin();
	STEP_UNTIL(told.samples >= 4);
	rebooted_ns = wss_clock_now_ns();
	assert_true(cold().since_ns < rebooted_ns);
	reboot_guest(0);
	STEP_UNTIL(!guests[0].reboots);
	STEP_UNTIL(access(path, F_OK) != 0);
	told.samples = 0;
	STEP_UNTIL(told.samples >= 4);
	assert_true(cold().since_ns >= rebooted_ns);
	end_pages();
	remove_tree(tree);
}

/* --- clock steps --- */

#define YEAR_S (365 * 24 * 3600)

static atomic_int years;

static time_t stepped_wall_seconds(void *unused)
{
	(void)unused;
	return time(NULL) + (time_t)years * YEAR_S;
}

/* The time of day goes a year ahead, and then two back: only times of samples show it. */
static void test_clock_steps(void **unused)
{
	static const struct wss_clock_source stepped = {
		.now_ns = real_now_ns,
		.sleep_until_ns = real_sleep_until_ns,
		.wall_seconds = stepped_wall_seconds,
	};
	char *tree = make_tree();
	uint64_t since_ns;

	(void)unused;
	wss_clock_inject(&stepped);
	prepare_pages(true);
	options.ages = tree;
	begin();
	STEP_UNTIL(told.samples >= 4);
	since_ns = cold().since_ns;
	for (int i = 0; i < 2; i++) {
		unsigned samples = told.samples;

		years = i ? -1 : 1;
		STEP_UNTIL(told.samples >= samples + 4);
		assert_true(watched(0)->next_ns < wss_clock_now_ns() + 2 * PERIOD_NS);
		assert_int_equal(cold().since_ns, since_ns);
		assert_true(cold().ages[WSS_COLD_SINCE_WATCHED].observed > 0.4);
	}
	/* Ages that were stored in another year are those of the same run of the guest. */
	wss_watch_hold(watch, "it ends");
	STEP_UNTIL(!guests[0].is_open);
	step_for(PERIOD_NS);
	wss_watch_free(watch);
	years = 1;
	memset(&told, 0, sizeof(told));
	begin();
	STEP_UNTIL(told.samples >= 4);
	assert_int_equal(cold().since_ns, since_ns);
	years = 0;
	end_pages();
	wss_clock_inject(NULL);
	remove_tree(tree);
}

/* A guest that would be due in an hour has its next window within the new period. */
static void test_changes_its_options(void **unused)
{
	(void)unused;
	prepare(1);
	options.period_ns = 3600 * WSS_NS_PER_S;
	begin();
	STEP_UNTIL(told.samples == 1);
	step_for(200 * MS);
	assert_int_equal(told.samples, 1);
	options.period_ns = PERIOD_NS;
	options.measure.window.track.window_ns = 30 * MS;
	wss_watch_change(watch, &options);
	STEP_UNTIL(told.samples >= 3);
	assert_int_equal(told.window_ns[2], 30 * MS);
	assert_int_equal(watched(0)->period_ns, PERIOD_NS);
	end();
}

/* --- fine windows --- */

static void prepare_large(size_t n)
{
	prepare(n);
	options.measure.window.track.granularity = WSS_GRANULARITY_AUTO;
	for (size_t i = 0; i < n; i++)
		guests[i].large = true;
}

/* First the cheapest windows; a guest that has no large pages needs none by 4 KiB. */
static void test_fine_windows_of_large_guests(void **unused)
{
	(void)unused;
	prepare_large(2);
	guests[1].large = false;
	begin();
	STEP_UNTIL(watched(0) && watched(0)->kind == WSS_WINDOW_COARSE && watched(0)->windows >= 2);
	assert_int_equal(watched(0)->sample.wss_bytes.value, 64 * WSS_MIB);
	assert_true(guests[0].begins >= 2);
	STEP_UNTIL(guests[0].begun_4k >= 3 && guests[1].begins >= 5);
	STEP_UNTIL(watched(0)->kind == WSS_WINDOW_FINE);
	assert_int_equal(watched(0)->sample.granularity_bytes.value, 4096);
	assert_int_equal(watched(0)->coarse, WSS_COARSE_NOT);
	assert_int_equal(guests[0].begins - guests[0].begun_4k, 2);
	assert_int_equal(guests[1].tried_4k, 0);
	assert_int_equal(watched(1)->coarse, WSS_COARSE_NOT);
	end();
}

/* It is tried once, and costs the guest no figure. */
static void test_a_guest_whose_devices_allow_none_stays_coarse(void **unused)
{
	(void)unused;
	prepare_large(1);
	guests[0].by_4k = BY_4K_UNSUPPORTED;
	begin();
	STEP_UNTIL(guests[0].tried_4k == 1 && guests[0].begins >= 6);
	assert_int_equal(guests[0].tried_4k, 1);
	assert_int_equal(watched(0)->kind, WSS_WINDOW_COARSE);
	assert_int_equal(watched(0)->coarse, WSS_COARSE_UNSUPPORTED);
	assert_string_equal(watched(0)->coarse_why.text, "a device does not survive it");
	assert_int_equal(watched(0)->why.code, 0);
	/* A guest that has rebooted may be another. */
	reboot_guest(0);
	STEP_UNTIL(guests[0].tried_4k == 2);
	end();
}

/* Another program's calculation is a normal answer: coarse windows take the place of fine ones, and cost nothing more. */
static void test_coarse_windows_while_the_dirty_rate_is_busy(void **unused)
{
	(void)unused;
	prepare_large(1);
	guests[0].by_4k = BY_4K_BUSY;
	guests[0].predicted = guests[0].predicted_4k =
		(struct wss_prediction){ .stall_ns = MS, .faults = wss_amount_of(1000) };
	guests[0].faults = wss_amount_of(1000);
	begin();
	STEP_UNTIL(guests[0].tried_4k >= 2 && guests[0].begins >= 5);
	assert_int_equal(guests[0].begun_4k, 0);
	assert_int_equal(watched(0)->windows, told.samples - guests[0].tried_4k);
	assert_int_equal(watched(0)->kind, WSS_WINDOW_COARSE);
	assert_int_equal(watched(0)->coarse, WSS_COARSE_BUSY);
	guests[0].by_4k = BY_4K_WORKS;
	STEP_UNTIL(guests[0].begun_4k && watched(0)->kind == WSS_WINDOW_FINE);
	assert_int_equal(watched(0)->coarse, WSS_COARSE_NOT);
	end();
}

/* What the budget does not cover is never begun, for the stall as for the faults, and coarse windows go on. */
static void test_the_budget_decides_on_fine_windows(void **unused)
{
	(void)unused;
	prepare_large(2);
	options.budget.guest_share = 0.01;
	guests[0].predicted_4k.stall_ns = 101 * MS;
	/* Ten seconds of faults, for more than a quarter of an hour. */
	guests[1].predicted = (struct wss_prediction){ .stall_ns = 100, .faults = wss_amount_of(1) };
	guests[1].predicted_4k = (struct wss_prediction){ .stall_ns = 100, .faults = wss_amount_of(10000000) };
	options.fault_ns = 1e6;
	begin();
	for (size_t i = 0; i < 2; i++) {
		STEP_UNTIL(guests[i].tried_4k == 1 && watched(i)->coarse == WSS_COARSE_BUDGET);
		STEP_UNTIL(guests[i].begins >= 4);
		assert_int_equal(guests[i].begun_4k, 0);
		assert_int_equal(watched(i)->kind, WSS_WINDOW_COARSE);
		assert_int_not_equal(watched(i)->state, WSS_WATCHED_REFUSED);
	}
	assert_non_null(strstr(watched(0)->coarse_why.text, "stall"));
	assert_non_null(strstr(watched(1)->coarse_why.text, "of vCPU time"));
	end();
}

/* The zap before the log and its start stall the guest, too. */
static void test_charges_what_precedes_a_fine_window(void **unused)
{
	uint64_t before_ns;

	(void)unused;
	prepare_large(1);
	guests[0].predicted_4k = guests[0].predicted =
		(struct wss_prediction){ .stall_ns = 20 * MS, .faults = wss_amount_of(1000) };
	guests[0].faults = wss_amount_of(1000);
	begin();
	STEP_UNTIL(watched(0) && watched(0)->kind == WSS_WINDOW_COARSE && watched(0)->windows == 2);
	before_ns = watched(0)->spent_vcpu_ns;
	STEP_UNTIL(watched(0)->windows == 3);
	assert_int_equal(watched(0)->kind, WSS_WINDOW_FINE);
	assert_int_equal(watched(0)->spent_vcpu_ns - before_ns,
			 20 * MS + 1000 * 1000 + watched(0)->sample.cost.arm_ns.value);
	end();
}

/* Two fine windows that cost more than predicted lead back to coarse ones, half as often. */
static void test_backs_off_from_fine_windows(void **unused)
{
	(void)unused;
	prepare_large(1);
	guests[0].predicted_4k = guests[0].predicted =
		(struct wss_prediction){ .stall_ns = MS, .faults = wss_amount_of(1000) };
	guests[0].faults = wss_amount_of(1000);
	begin();
	STEP_UNTIL(guests[0].begun_4k == 1);
	guests[0].faults = wss_amount_of(100000);
	STEP_UNTIL(watched(0)->dearer == 2);
	assert_int_equal(watched(0)->pace.kind, WSS_WINDOW_COARSE);
	assert_int_equal(watched(0)->pace.doublings, 1);
	end();
}

static void test_granularity_is_a_setting(void **unused)
{
	(void)unused;
	prepare_large(2);
	guests[1].large = false;
	options.measure.window.track.granularity = WSS_GRANULARITY_NATIVE;
	begin();
	STEP_UNTIL(watched(0) && watched(0)->windows >= 4);
	assert_int_equal(guests[0].tried_4k, 0);
	assert_int_equal(watched(0)->coarse, WSS_COARSE_SETTING);
	options.measure.window.track.granularity = WSS_GRANULARITY_4K;
	guests[0].by_4k = BY_4K_UNSUPPORTED;
	wss_watch_change(watch, &options);
	STEP_UNTIL(watched(1)->kind == WSS_WINDOW_FINE);
	STEP_UNTIL(watched(0)->why.code == WSS_ERR_UNSUPPORTED);
	options.measure.window.track.granularity = WSS_GRANULARITY_AUTO;
	options.continuous = true;
	wss_watch_change(watch, &options);
	STEP_UNTIL(watched(0)->coarse == WSS_COARSE_CONTINUOUS);
	end();
}

/* --- profiles --- */

/* Each guest's once, however many windows follow; none of a guest that opted out. */
static void test_publishes_each_profile_once(void **unused)
{
	(void)unused;
	prepare(7);
	wants_publishing = true;
	guests[6].opted_out = true;
	begin();
	for (size_t i = 0; i < 6; i++)
		STEP_UNTIL(guests[i].published && watched(i)->published);
	step_for(2500 * MS);
	for (size_t i = 0; i < 6; i++)
		assert_int_equal(guests[i].published, 1);
	assert_int_equal(guests[6].published, 0);
	end();
}

static void test_publishes_nothing_that_is_not_wanted(void **unused)
{
	(void)unused;
	prepare(1);
	begin();
	STEP_UNTIL(told.samples >= 4);
	step_for(1500 * MS);
	assert_int_equal(guests[0].published, 0);
	wants_publishing = true;
	STEP_UNTIL(guests[0].published);
	end();
}

/* A busy guest is skipped, and not for a quarter of an hour. */
static void test_publishes_when_the_guest_is_idle_again(void **unused)
{
	(void)unused;
	prepare(1);
	wants_publishing = true;
	guests[0].busy = true;
	begin();
	STEP_UNTIL(guests[0].refused >= 2);
	assert_int_equal(guests[0].published, 0);
	assert_false(watched(0)->published);
	guests[0].busy = false;
	STEP_UNTIL(watched(0)->published);
	assert_int_equal(guests[0].published, 1);
	end();
}

/* More guests than profiles that are written at a time: the windows go on, and so does the guest that is well. */
static void test_publishing_that_hangs_delays_no_window(void **unused)
{
	unsigned begins;

	(void)unused;
	prepare(6);
	wants_publishing = true;
	for (size_t i = 0; i < 3; i++)
		guests[i].hang = HANG_PUBLISH;
	begin();
	for (size_t i = 3; i < 6; i++)
		STEP_UNTIL(guests[i].published);
	begins = guests[0].begins;
	STEP_UNTIL(guests[0].begins >= begins + 5);
	assert_int_equal(guests[0].published, 0);
	end();
}

/* Written for the guest of before: the one that has the same UUID now has no profile yet. */
static void test_a_late_profile_is_of_no_new_guest(void **unused)
{
	(void)unused;
	prepare(1);
	wants_publishing = true;
	guests[0].hang = HANG_PUBLISH;
	begin();
	STEP_UNTIL(told.samples >= 4);
	step_for(1500 * MS);
	guests[0].gone = true;
	STEP_UNTIL(told.gone == 1);
	wants_publishing = false;
	guests[0].gone = false;
	STEP_UNTIL(watched(0));
	guests[0].hang = HANG_NOWHERE;
	STEP_UNTIL(guests[0].published);
	step_for(500 * MS);
	assert_false(watched(0)->published);
	end();
}

/* A visit that never ends does not keep its guest from being published. */
static void test_publishes_while_windows_go_on(void **unused)
{
	(void)unused;
	prepare_pages(true);
	wants_publishing = true;
	begin();
	STEP_UNTIL(guests[0].published);
	end_pages();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fine_windows_of_large_guests),
		cmocka_unit_test(test_a_guest_whose_devices_allow_none_stays_coarse),
		cmocka_unit_test(test_coarse_windows_while_the_dirty_rate_is_busy),
		cmocka_unit_test(test_the_budget_decides_on_fine_windows),
		cmocka_unit_test(test_charges_what_precedes_a_fine_window),
		cmocka_unit_test(test_backs_off_from_fine_windows),
		cmocka_unit_test(test_granularity_is_a_setting),
		cmocka_unit_test(test_publishes_each_profile_once),
		cmocka_unit_test(test_publishes_nothing_that_is_not_wanted),
		cmocka_unit_test(test_publishes_when_the_guest_is_idle_again),
		cmocka_unit_test(test_publishing_that_hangs_delays_no_window),
		cmocka_unit_test(test_publishes_while_windows_go_on),
		cmocka_unit_test(test_again_and_again),
		cmocka_unit_test(test_spreads_and_keeps_the_period),
		cmocka_unit_test(test_sleeps_until_a_guest_is_due),
		cmocka_unit_test(test_one_that_hangs),
		cmocka_unit_test(test_ends_soon_with_many_guests),
		cmocka_unit_test(test_ends_soon_while_all_hang),
		cmocka_unit_test(test_one_that_opted_out),
		cmocka_unit_test(test_backs_off),
		cmocka_unit_test(test_the_switch_makes_windows_dear),
		cmocka_unit_test(test_refuses_what_the_budget_does_not_cover),
		cmocka_unit_test(test_measures_less_often_within_the_budget),
		cmocka_unit_test(test_charges_faults_after_the_sample),
		cmocka_unit_test(test_charges_the_prediction_where_faults_are_not_counted),
		cmocka_unit_test(test_charges_windows_that_fail),
		cmocka_unit_test(test_held),
		cmocka_unit_test(test_held_before_arming),
		cmocka_unit_test(test_held_by_memory_pressure),
		cmocka_unit_test(test_pressure_releases_no_order),
		cmocka_unit_test(test_changes_the_limit_of_pressure),
		cmocka_unit_test(test_unknown_pressure_holds_nothing),
		cmocka_unit_test(test_leaves_a_guest_with_a_job_alone),
		cmocka_unit_test(test_comes_and_goes),
		cmocka_unit_test(test_libvirt_comes_and_goes),
		cmocka_unit_test(test_leaves_a_booting_guest_alone),
		cmocka_unit_test(test_begins_anew_with_another_process),
		cmocka_unit_test(test_a_late_sample_is_of_no_new_guest),
		cmocka_unit_test(test_a_late_profile_is_of_no_new_guest),
		cmocka_unit_test(test_begins_anew_after_a_reboot),
		cmocka_unit_test(test_a_reboot_holds_whatever_is_under_way),
		cmocka_unit_test(test_reboots_without_end_do_not_fill_the_log),
		cmocka_unit_test(test_continuous),
		cmocka_unit_test(test_no_call_between_two_windows),
		cmocka_unit_test(test_single_windows_have_no_low_bound),
		cmocka_unit_test(test_continuous_without_pages),
		cmocka_unit_test(test_a_hold_ends_windows_that_go_on),
		cmocka_unit_test(test_a_job_ends_windows_that_go_on),
		cmocka_unit_test(test_opts_out_while_windows_go_on),
		cmocka_unit_test(test_backs_off_while_windows_go_on),
		cmocka_unit_test(test_ages_survive_the_watch),
		cmocka_unit_test(test_a_reboot_ends_ages),
		cmocka_unit_test(test_clock_steps),
		cmocka_unit_test(test_changes_its_options),
	};

	wss_stop_install();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
