/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The watch over invented guests. Threads are real, and the clock leaps while all of them wait. */
#include "invented.h"

#include "base/cancel.h"
#include "base/log.h"
#include "cold/coldness.h"
#include "watch/watch.h"

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

static void on_sample(const struct wss_watched *guest, const struct wss_sample *sample,
		      void *unused)
{
	if (told.samples < 8)
		told.window_ns[told.samples] = sample->requested_window_ns;
	told.samples++;
}

static void on_gone(const struct wss_watched *guest, void *unused)
{
	told.gone++;
}

static void on_connection(const struct wss_error *error, void *unused)
{
	if (error)
		told.lost++;
	else
		told.found++;
}

static bool wants_publishing;

static bool on_profile(const struct wss_watched *guest, struct wss_profile *ret_profile,
		       void *unused)
{
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
#define STEP_UNTIL(condition)                                                 \
	do {                                                                  \
		uint64_t step_end_ns = wss_clock_now_ns() + PATIENCE_NS;      \
		while (!(condition)) {                                        \
			assert_true(wss_watch_step(watch));                   \
			if (wss_clock_now_ns() >= step_end_ns)                \
				fail_msg("never came to be: %s", #condition); \
		}                                                             \
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

TEST(test_again_and_again)
{
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
TEST(test_spreads_and_keeps_the_period)
{
	uint64_t began_ns;
	unsigned most = 0;

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
TEST(test_sleeps_until_a_guest_is_due)
{
	unsigned steps = 0;
	uint64_t end_ns;

	prepare(1);
	options.period_ns = 3600 * WSS_NS_PER_S;
	begin();
	STEP_UNTIL(told.samples == 1 && watched(0)->state == WSS_WATCHED_WAITING);
	end_ns = wss_clock_now_ns() + WSS_NS_PER_S;
	for (; wss_clock_now_ns() < end_ns; steps++)
		assert_true(wss_watch_step(watch));
	assert_true(steps <= 12);
	end();
}

TEST(test_one_that_hangs)
{
	prepare(8);
	guests[3].hang = HANG_OPEN;
	begin();
	STEP_UNTIL(told.samples >= 30);
	assert_int_equal(watched(3)->state, WSS_WATCHED_MEASURING);
	assert_false(watched(3)->measured);
	end();
}

/* The end comes within the five seconds that a service has, and closes all windows. */
static void assert_ends_soon(void)
{
	uint64_t end_ns = wss_clock_now_ns() + 4 * WSS_NS_PER_S;

	wss_cancel_request(&cancel);
	while (wss_watch_step(watch))
		assert_true(wss_clock_now_ns() < end_ns);
	wss_watch_free(watch);
	assert_int_equal(open_windows, 0);
	forget();
	wss_hypervisor_unref(hypervisor);
	wss_cancel_close(&cancel);
}

/* With windows open, and others that hang. */
TEST(test_ends_soon_with_many_guests)
{
	prepare(100);
	options.period_ns = 5 * WSS_NS_PER_S;
	wss_measure_options_init(&options.measure, 2 * WSS_NS_PER_S);
	options.measure.method = &method_ops;
	for (size_t i = 0; i < 100; i += 10)
		guests[i].hang = i % 20 ? HANG_OPEN : HANG_REFRESH;
	begin();
	STEP_UNTIL(open_windows >= 10);
	assert_ends_soon();
}

/* As while libvirtd hangs: nothing comes back. */
TEST(test_ends_soon_while_all_hang)
{
	prepare(100);
	for (size_t i = 0; i < 100; i++)
		guests[i].hang = HANG_OPEN;
	begin();
	step_for(500 * MS);
	assert_ends_soon();
}

TEST(test_one_that_opted_out)
{
	prepare(2);
	guests[1].opted_out = true;
	begin();
	STEP_UNTIL(guests[0].begins >= 3 && watched(1) &&
		   watched(1)->state == WSS_WATCHED_LEFT_OUT);
	assert_int_equal(guests[1].begins, 0);
	assert_non_null(strstr(watched(1)->why.text, "opts out"));
	end();
}

TEST(test_backs_off)
{
	uint64_t windows;

	prepare(1);
	guests[0].predicted =
		(struct wss_prediction){.stall_ns = 10 * MS, .faults = wss_amount_of(1000)};
	guests[0].faults = wss_amount_of(1000);
	begin();
	STEP_UNTIL(watched(0) && watched(0)->windows == 2);
	assert_int_equal(watched(0)->kind, WSS_WINDOW_COARSE);
	assert_true(wss_watched_has_wss(watched(0)));
	/*
	 * Ten times as dear as predicted: within two windows it is measured less, and cheaper. On a busy machine one before
	 * them may have been dear, too.
	 */
	guests[0].faults = wss_amount_of(100000);
	windows = watched(0)->windows;
	STEP_UNTIL(watched(0)->pace.doublings == 1);
	assert_true(watched(0)->windows <= windows + 2);
	assert_int_equal(watched(0)->pace.kind, WSS_WINDOW_CANARY);
	assert_true(watched(0)->period_ns >= 2 * PERIOD_NS);
	windows = watched(0)->windows;
	STEP_UNTIL(watched(0)->windows == windows + 1);
	assert_int_equal(watched(0)->kind, WSS_WINDOW_CANARY);
	/* Such a short window finds no working set. */
	assert_true(watched(0)->measured);
	assert_false(wss_watched_has_wss(watched(0)) || watched(0)->sample.low_bytes.known ||
		     watched(0)->sample.high_bytes.known || watched(0)->sample.n_curve);
	end();
}

TEST(test_the_switch_makes_windows_dear)
{
	setenv("VIRT_WSS_FAULT", "dear-window", 1);
	prepare(1);
	options.budget.stall_ns = 20 * MS;
	guests[0].predicted =
		(struct wss_prediction){.stall_ns = 3 * MS, .faults = wss_amount_of(1000)};
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

TEST(test_refuses_what_the_budget_does_not_cover)
{
	prepare(3);
	options.budget.guest_share = 0.001;
	guests[0].predicted.stall_ns = 101 * MS;
	/* A millisecond a second, for an hour. */
	guests[1].predicted =
		(struct wss_prediction){.stall_ns = MS, .faults = wss_amount_of(4000000)};
	guests[2].predicted = (struct wss_prediction){.stall_ns = 100, .faults = wss_amount_of(1)};
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
TEST(test_measures_less_often_within_the_budget)
{
	uint64_t began_ns = wss_clock_now_ns();

	prepare(1);
	options.budget.guest_share = 0.001;
	guests[0].predicted =
		(struct wss_prediction){.stall_ns = 100, .faults = wss_amount_of(1000)};
	guests[0].faults = wss_amount_of(1000);
	begin();
	STEP_UNTIL(told.samples == 1);
	/* A millisecond and the stall of arming. */
	assert_true(watched(0)->period_ns >= WSS_NS_PER_S);
	assert_true(watched(0)->next_ns >= began_ns + WSS_NS_PER_S);
	end();
}

/* The sample of the next window of that kind. */
static struct wss_sample next_sample(enum wss_window_kind kind)
{
	uint64_t windows = watched(0)->windows;

	STEP_UNTIL(watched(0)->windows > windows && watched(0)->kind == kind);
	return watched(0)->sample;
}

/* KVM here maps eight pages at a fault, and the zaps take much longer than the constants say. */
TEST(test_predicts_by_what_windows_have_cost)
{
	struct wss_sample sample;

	prepare(1);
	options.budget.stall_ns = 10 * WSS_NS_PER_S;
	guests[0].predicted = (struct wss_prediction){.stall_ns = 1, .faults = wss_amount_of(8000)};
	guests[0].faults = wss_amount_of(1000);
	begin();
	STEP_UNTIL(watched(0) && watched(0)->windows >= 1);
	STEP_UNTIL(watched(0)->kind == WSS_WINDOW_COARSE);
	assert_int_equal(watched(0)->sample.cost.predicted_faults.value, 8000);
	assert_int_equal(watched(0)->sample.cost.predicted_stall_ns.value, 1);
	for (int i = 0; i < 3; i++)
		sample = next_sample(WSS_WINDOW_COARSE);
	assert_int_equal(sample.cost.predicted_faults.value, 1000);
	assert_true(sample.cost.predicted_stall_ns.value > 1);
	/* One with more memory and one that touches more than before: a fault for each entry is the most. */
	guests[0].predicted.faults.value = 16000;
	guests[0].faults.value = 2000;
	next_sample(WSS_WINDOW_COARSE);
	assert_int_equal(next_sample(WSS_WINDOW_COARSE).cost.predicted_faults.value, 2000);
	end();
}

/*
 * Of 1000 entries that a window dropped 100 come back before its sample. Others do so before the next window,
 * which is charged for them, but for no more than were dropped: the guest takes faults of its own.
 */
TEST(test_charges_faults_after_the_sample)
{
	uint64_t before_ns;

	prepare(1);
	options.fault_ns = 1e6;
	options.budget.guest_share = 2;
	guests[0].predicted = (struct wss_prediction){.stall_ns = 10 * MS,
						      .faults = wss_amount_of(1000),
						      .faults_so_far = wss_amount_of(5000)};
	guests[0].faults = wss_amount_of(100);
	begin();
	STEP_UNTIL(watched(0) && watched(0)->windows == 1);
	assert_int_equal(watched(0)->spent_vcpu_ns,
			 100 * MS + watched(0)->sample.cost.arm_ns.value);
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
TEST(test_charges_the_prediction_where_faults_are_not_counted)
{
	prepare(1);
	options.fault_ns = 1e6;
	guests[0].predicted =
		(struct wss_prediction){.stall_ns = 10 * MS, .faults = wss_amount_of(1000)};
	begin();
	STEP_UNTIL(watched(0) && watched(0)->windows == 1);
	assert_int_equal(watched(0)->spent_vcpu_ns,
			 WSS_NS_PER_S + watched(0)->sample.cost.arm_ns.value);
	end();
}

/* A window that gives no figure costs the guest as much as one that does. */
TEST(test_charges_windows_that_fail)
{
	uint64_t began_ns = wss_clock_now_ns();

	prepare(2);
	options.fault_ns = 1e6;
	options.budget.guest_share = 0.5;
	guests[0].predicted =
		(struct wss_prediction){.stall_ns = 10 * MS, .faults = wss_amount_of(1000)};
	guests[0].untouched = true;
	begin();
	STEP_UNTIL(watched(0) && watched(0)->why.code);
	assert_false(watched(0)->measured);
	if (watched(0)->windows != 1)
		fail_msg("%s", watched(0)->why.text);
	assert_int_equal(watched(0)->spent_vcpu_ns, WSS_NS_PER_S + 10 * MS);
	/* A second of faults, and half of the vCPU's time. */
	assert_true(watched(0)->period_ns >= 2 * WSS_NS_PER_S);
	assert_true(watched(0)->next_ns >= began_ns + 2 * WSS_NS_PER_S);
	/* It is not forgotten with the guest. */
	assert_int_equal(wss_watch_spent_before(watch).windows, 0);
	guests[0].gone = true;
	STEP_UNTIL(wss_watch_count(watch) == 1);
	assert_int_equal(wss_watch_spent_before(watch).windows, 1);
	assert_int_equal(wss_watch_spent_before(watch).vcpu_ns, WSS_NS_PER_S + 10 * MS);
	end();
}

/* What is under way at the end is charged at the next end of its work, and then all of it is. */
TEST(test_charges_add_up_to_the_cpu_time_of_the_process)
{
	static const struct wss_clock_source burning = {LEAPING_TIMES, .thread_ns = burnt_thread_ns,
							.process_ns = burnt_process_ns};
	uint64_t before_ns, sum_ns;

	wss_clock_inject(&burning);
	prepare(5);
	for (size_t i = 1; i < 5; i++)
		guests[i].burns_ns = i * 2 * MS;
	wants_publishing = true;
	/* Threads of before may hold what they burnt for other guests. */
	before_ns = process_burnt_ns;
	begin();
	STEP_UNTIL(told.samples >= 40);
	for (size_t i = 1; i < 5; i++)
		STEP_UNTIL(guests[i].published);
	guests[4].gone = true;
	STEP_UNTIL(wss_watch_count(watch) == 4);
	wss_watch_hold(watch, "the sum is made");
	for (size_t i = 0; i < 4; i++)
		STEP_UNTIL(watched(i)->state == WSS_WATCHED_WAITING);
	step_for(300 * MS);
	sum_ns = wss_watch_spent_before(watch).tool_ns;
	assert_int_equal(sum_ns, guests[4].burnt_ns);
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(watched(i)->spent_tool_ns, guests[i].burnt_ns);
		sum_ns += watched(i)->spent_tool_ns;
	}
	assert_int_equal(sum_ns, process_burnt_ns - before_ns);
	/* What is under way may be in both for a while. */
	assert_true(sum_ns + wss_watch_uncharged_ns(watch) >= process_burnt_ns);
	assert_true(wss_watch_uncharged_ns(watch) < process_burnt_ns);
	end();
	wss_clock_inject(NULL);
}

TEST(test_held)
{
	unsigned begins;

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
TEST(test_held_before_arming)
{
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

#define SLICE "sys/fs/cgroup/machine.slice/"
#define SCOPE(n) "machine-qemu\\x2d" #n "\\x2dguest" #n ".scope"

/* Of all tasks that are not idle; some of them always wait. */
static void put_pressure_at(const char *tree, const char *path, const char *full)
{
	char text[256];

	snprintf(text, sizeof(text),
		 "some avg10=99.00 avg60=0.00 avg300=0.00 total=1\n"
		 "full avg10=%s avg60=0.00 avg300=0.00 total=1\n",
		 full);
	put_text(tree, path, text);
}

static void put_pressure(const char *tree, const char *full)
{
	put_pressure_at(tree, "proc/pressure/memory", full);
}

TEST(test_held_by_memory_pressure)
{
	char *tree = make_tree();
	unsigned begins;

	put_pressure(tree, "10.00");
	setenv("VIRT_WSS_SYSROOT", tree, 1);
	prepare(1);
	options.pressure_share = 0.1;
	begin();
	STEP_UNTIL(told.samples >= 2);
	put_pressure(tree, "10.01");
	STEP_UNTIL(wss_watch_held(watch));
	assert_string_equal(
		wss_watch_held(watch),
		"all tasks of the host wait for memory 10.01% of the time, more than 10%");
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
TEST(test_pressure_releases_no_order)
{
	char *tree = make_tree();

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

TEST(test_changes_the_limit_of_pressure)
{
	char *tree = make_tree();
	unsigned begins;

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

TEST(test_unknown_pressure_holds_nothing)
{
	char *tree = make_tree();

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

/* The cgroups of that guest's process, as the kernel lists them. */
static void put_cgroup(const char *tree, size_t i, const char *text)
{
	char name[64];

	snprintf(name, sizeof(name), "proc/%d/cgroup", guests[i].child);
	put_text(tree, name, text);
}

/* The host's programs may wait as they like: what the guests do together counts. */
TEST(test_held_by_pressure_of_machine_slice)
{
	char *tree = make_tree();
	unsigned begins;

	put_pressure(tree, "60.00");
	put_pressure_at(tree, SLICE "memory.pressure", "10.00");
	put_pressure_at(tree, SLICE SCOPE(1) "/memory.pressure", "0.00");
	setenv("VIRT_WSS_SYSROOT", tree, 1);
	prepare(1);
	put_cgroup(tree, 0, "0::/machine.slice/" SCOPE(1) "/libvirt/emulator\n");
	options.pressure_share = 0.1;
	begin();
	STEP_UNTIL(told.samples >= 2);
	assert_int_equal(wss_watch_held_ns(watch, WSS_HOLDER_PRESSURE), 0);
	put_pressure_at(tree, SLICE "memory.pressure", "12.50");
	STEP_UNTIL(wss_watch_held(watch));
	assert_string_equal(
		wss_watch_held(watch),
		"all tasks of machine.slice wait for memory 12.5% of the time, more than 10%");
	STEP_UNTIL(!guests[0].is_open);
	begins = guests[0].begins;
	STEP_UNTIL(wss_watch_held_now_ns(watch) > PERIOD_NS);
	assert_true(wss_watch_held_ns(watch, WSS_HOLDER_PRESSURE) > PERIOD_NS);
	put_pressure_at(tree, SLICE "memory.pressure", "1.00");
	STEP_UNTIL(guests[0].begins > begins);
	assert_true(begins);
	assert_null(wss_watch_held(watch));
	assert_int_equal(wss_watch_held_now_ns(watch), 0);
	assert_true(wss_watch_held_ns(watch, WSS_HOLDER_PRESSURE) > PERIOD_NS);
	assert_int_equal(wss_watch_held_ns(watch, WSS_HOLDER_OPERATOR), 0);
	/* A reload forgets nothing. */
	wss_watch_change(watch, &options);
	assert_true(wss_watch_held_ns(watch, WSS_HOLDER_PRESSURE) > PERIOD_NS);
	end();
	unsetenv("VIRT_WSS_SYSROOT");
	remove_tree(tree);
}

/* Guests in several places: the cgroup that has them all, or the host. */
TEST(test_pressure_where_all_guests_are)
{
	static const struct {
		const char *cgroups[2], *who;
	} rows[] = {
		{{"machine.slice/machine-a.slice/" SCOPE(1),
		  "machine.slice/machine-a.slice/" SCOPE(2)},
		 "machine.slice/machine-a.slice"},
		{{"machine.slice/machine-qemu.slice/" SCOPE(1),
		  "machine.slice/machine-qemub.slice/" SCOPE(2)},
		 "machine.slice"},
		{{"machine/qemu-1-a.libvirt-qemu", "machine/qemu-2-b.libvirt-qemu/vcpu0"},
		 "machine"},
		{{"user.slice/a.scope", "user.slice/a.scope"}, "user.slice/a.scope"},
		{{"machine.slice/" SCOPE(1), "system.slice/vm.service"}, "the host"},
		{{"", "machine.slice/" SCOPE(2)}, "the host"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char *tree = make_tree(), file[512], text[PATH_MAX];

		put_pressure(tree, "0.00");
		setenv("VIRT_WSS_SYSROOT", tree, 1);
		prepare(2);
		options.pressure_share = 0.1;
		for (size_t j = 0; j < 2; j++)
			put_cgroup(tree, j, make_path(text, "0::/%s\n", rows[i].cgroups[j]));
		begin();
		STEP_UNTIL(told.samples >= 4);
		snprintf(file, sizeof(file), "sys/fs/cgroup/%s/memory.pressure", rows[i].who);
		put_pressure_at(tree,
				strcmp(rows[i].who, "the host") ? file : "proc/pressure/memory",
				"50.00");
		STEP_UNTIL(wss_watch_held(watch));
		snprintf(text, sizeof(text),
			 "all tasks of %s wait for memory 50%% of the time, more than 10%%",
			 rows[i].who);
		assert_string_equal(wss_watch_held(watch), text);
		end();
		unsetenv("VIRT_WSS_SYSROOT");
		remove_tree(tree);
	}
}

TEST(test_own_pressure_holds_one_guest)
{
	char *tree = make_tree();
	unsigned begins[2];

	put_pressure(tree, "0.00");
	put_pressure_at(tree, SLICE "memory.pressure", "0.00");
	put_pressure_at(tree, SLICE SCOPE(1) "/memory.pressure", "30.00");
	put_pressure_at(tree, SLICE SCOPE(2) "/memory.pressure", "0.00");
	setenv("VIRT_WSS_SYSROOT", tree, 1);
	prepare(2);
	put_cgroup(tree, 0, "0::/machine.slice/" SCOPE(1) "\n");
	put_cgroup(tree, 1, "0::/machine.slice/" SCOPE(2) "\n");
	options.pressure_share = 0.1;
	begin();
	STEP_UNTIL(wss_watch_count(watch) == 2);
	STEP_UNTIL(strstr(watched(0)->why.text, "memory"));
	assert_int_equal(watched(0)->state, WSS_WATCHED_HELD);
	assert_string_equal(watched(0)->why.text,
			    "all its tasks wait for memory 30% of the time, more than 10%");
	begins[1] = guests[1].begins;
	STEP_UNTIL(guests[1].begins > begins[1] + 2);
	assert_null(wss_watch_held(watch));
	assert_int_equal(guests[0].begins, 0);
	/* Less is not enough. */
	put_pressure_at(tree, SLICE SCOPE(1) "/memory.pressure", "5.01");
	begins[1] = guests[1].begins;
	STEP_UNTIL(guests[1].begins > begins[1] + 4);
	assert_int_equal(guests[0].begins, 0);
	assert_true(wss_watch_held_ns(watch, WSS_HOLDER_GUEST_PRESSURE) > PERIOD_NS);
	put_pressure_at(tree, SLICE SCOPE(1) "/memory.pressure", "5.00");
	STEP_UNTIL(guests[0].begins > 1 && watched(0)->state != WSS_WATCHED_MEASURING);
	assert_int_equal(watched(0)->pressed_since_ns, 0);
	assert_true(watched(0)->pressed_ns > PERIOD_NS);
	begins[0] = guests[0].begins;
	/* Of a guest that is gone, what it was held stays. */
	guests[0].gone = true;
	STEP_UNTIL(told.gone);
	assert_true(wss_watch_held_ns(watch, WSS_HOLDER_GUEST_PRESSURE) > PERIOD_NS);
	end();
	unsetenv("VIRT_WSS_SYSROOT");
	remove_tree(tree);
}

static unsigned unreported;

static void count_unreported(enum wss_log_level level, const char *text)
{
	unreported += strstr(text, "memory pressure of single guests is not known") != NULL;
}

/* On a host with version 1, or without PSI in the cgroup, which is said once. */
TEST(test_unknown_pressure_of_guests_holds_none)
{
	char *tree = make_tree();

	put_pressure(tree, "0.00");
	setenv("VIRT_WSS_SYSROOT", tree, 1);
	prepare(2);
	put_cgroup(tree, 0, "4:memory:/machine.slice/" SCOPE(1) "\n");
	put_cgroup(tree, 1, "0::/machine.slice/" SCOPE(2) "\n");
	options.pressure_share = 0.1;
	unreported = 0;
	wss_log_set_sink(count_unreported);
	begin();
	STEP_UNTIL(guests[0].begins >= 2 && guests[1].begins >= 2 && unreported);
	step_for(1200 * MS);
	wss_log_set_sink(NULL);
	assert_int_equal(unreported, 1);
	assert_null(wss_watch_held(watch));
	end();
	unsetenv("VIRT_WSS_SYSROOT");
	remove_tree(tree);
}

TEST(test_leaves_a_guest_with_a_job_alone)
{
	unsigned begins;

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

TEST(test_comes_and_goes)
{
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

TEST(test_libvirt_comes_and_goes)
{
	uint64_t lost_ns, found_ns;
	unsigned samples;

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
	found_ns = wss_clock_now_ns();
	STEP_UNTIL(told.samples > samples);
	assert_int_equal(told.gone, 0);
	assert_int_equal(told.lost, 1);
	assert_true(found_ns - lost_ns < 2 * WSS_NS_PER_S);
	end();
}

TEST(test_leaves_a_booting_guest_alone)
{
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

/* A guest that has restarted is another one: it gets a canary first, also after it was held while it booted. */
static void check_another_process(uint64_t boot_ns)
{
	pid_t first;

	prepare(1);
	options.boot_ns = boot_ns;
	begin();
	STEP_UNTIL(told.samples >= 2);
	first = guests[0].child;
	start_child(&guests[0]);
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

TEST(test_begins_anew_with_another_process)
{
	check_another_process(0);
	if (have_pidfd())
		check_another_process(300 * MS);
}

/* Gone and back under the same UUID while a window of before is still open: that one's sample is not of this guest. */
TEST(test_a_late_sample_is_of_no_new_guest)
{
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
TEST(test_begins_anew_after_a_reboot)
{
	unsigned begins, of_the_other;
	uint64_t spent_ns;

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
TEST(test_a_reboot_holds_whatever_is_under_way)
{
	uint64_t rebooted_ns;
	unsigned samples;

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
	told_of_reboots += strstr(text, "has rebooted") != NULL;
}

/* A guest can reset itself as often as it likes, but not fill the log of the host with that. */
TEST(test_reboots_without_end_do_not_fill_the_log)
{
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
TEST(test_continuous)
{
	struct wss_cold_report report;

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

/* What is touched after the sample of a window that goes on belongs to that window, too. */
TEST(test_continuous_windows_are_read_at_their_end)
{
	struct wss_pageset *later = wss_pageset_new(64 * WSS_MIB / 4096);
	struct wss_cold_report report;

	prepare_pages(true);
	assert_int_equal(wss_pageset_add(later, 1024, 512), 512);
	guests[0].touched_later = later;
	guests[0].later_ns = 50 * MS;
	begin();
	STEP_UNTIL(told.samples >= 8);
	report = cold();
	assert_int_equal(report.ages[WSS_COLD_SINCE_WATCHED].high_bytes, COLD_RAM - 2 * WSS_MIB);
	end_pages();
	wss_pageset_free(later);
}

/* Whatever the host unmaps is seen before, as within a window. */
TEST(test_continuous_windows_are_polled_to_their_end)
{
	unsigned polls;

	prepare_pages(true);
	options.period_ns = 15 * WSS_NS_PER_S;
	options.measure.window.curve = true;
	begin();
	STEP_UNTIL(told.samples >= 2);
	polls = guests[0].polls;
	STEP_UNTIL(guests[0].polls >= polls + 2);
	assert_int_equal(told.samples, 2);
	end_pages();
}

/* Two guests touch a page of so many units each; then their ages take this without those of single pages. */
static uint64_t prepare_ages(uint64_t first, uint64_t second)
{
	static const struct wss_run ram = {0, COLD_RAM / 4096};
	struct wss_coldness *ages = wss_coldness_new(&ram, 1, 0, NULL);
	uint64_t bytes = wss_coldness_bytes(ages);

	wss_coldness_free(ages);
	prepare(2);
	for (size_t i = 0; i < 2; i++) {
		guests[i].touched = wss_pageset_new(COLD_RAM / 4096);
		for (uint64_t unit = 0; unit < (i ? second : first); unit++)
			assert_int_equal(
				wss_pageset_add(guests[i].touched, unit * WSS_COLD_UNIT_PAGES, 1),
				1);
	}
	return 2 * bytes;
}

static bool lacks_memory(size_t i)
{
	const struct wss_sample *sample = &watched(i)->sample;
	bool lacks = false;

	for (size_t j = 0; j < sample->n_notes; j++)
		lacks = lacks || strstr(sample->notes[j], "ages of memory are known by 2 MiB");
	return lacks;
}

/* The largest gives way, and says so, whoever is measured first; with enough memory again it has all of it back. */
TEST(test_ages_share_a_budget)
{
	struct wss_pageset *touched[2];

	options.ages_bytes = 0;
	for (size_t largest = 0; largest < 2; largest++) {
		uint64_t base = largest ? prepare_ages(4, 30) : prepare_ages(30, 4);

		for (size_t i = 0; i < 2; i++)
			touched[i] = guests[i].touched;
		options.ages_bytes = base + 31 * 1024;
		begin();
		STEP_UNTIL(wss_watch_count(watch) == 2 && lacks_memory(largest));
		STEP_UNTIL(told.samples >= 8 && watched(!largest)->measured &&
			   !lacks_memory(!largest));
		assert_true(lacks_memory(largest));
		options.ages_bytes = base + WSS_MIB;
		wss_watch_change(watch, &options);
		STEP_UNTIL(!lacks_memory(largest));
		end();
		for (size_t i = 0; i < 2; i++)
			wss_pageset_free(touched[i]);
	}
}

/* What the guest touches after its pages were read, and before it is armed again, is lost: no call may lie between. */
TEST(test_no_call_between_two_windows)
{
	prepare_pages(true);
	guests[0].slow_refresh_us = 30000;
	begin();
	STEP_UNTIL(guests[0].pages_read);
	STEP_UNTIL(told.samples >= 6);
	assert_int_equal(guests[0].most_calls, 0);
	end_pages();
}

TEST(test_single_windows_have_no_low_bound)
{
	struct wss_cold_report report;

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
TEST(test_continuous_without_pages)
{
	struct wss_cold_report report;

	prepare(1);
	options.continuous = true;
	begin();
	STEP_UNTIL(told.samples >= 4);
	assert_true(guests[0].opens >= 4);
	assert_false(wss_watch_cold(watch, 0, &report));
	end();
}

TEST(test_a_hold_ends_windows_that_go_on)
{
	unsigned begins;

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
TEST(test_a_job_ends_windows_that_go_on)
{
	unsigned begins;

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
TEST(test_opts_out_while_windows_go_on)
{
	unsigned begins;

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

TEST(test_backs_off_while_windows_go_on)
{
	prepare_pages(true);
	guests[0].predicted =
		(struct wss_prediction){.stall_ns = 10 * MS, .faults = wss_amount_of(1000)};
	guests[0].faults = wss_amount_of(1000);
	begin();
	STEP_UNTIL(watched(0) && watched(0)->windows == 3);
	guests[0].dearer = 100;
	STEP_UNTIL(watched(0)->windows >= 6);
	assert_int_equal(watched(0)->kind, WSS_WINDOW_CANARY);
	assert_true(watched(0)->pace.doublings >= 1);
	end_pages();
}

TEST(test_ages_survive_the_watch)
{
	char *tree = make_tree();
	uint64_t since_ns;

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
TEST(test_a_reboot_ends_ages)
{
	char *tree = make_tree(), path[PATH_MAX];
	uint64_t rebooted_ns;

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
	return time(NULL) + (time_t)years * YEAR_S;
}

/* The time of day goes a year ahead, and then two back: only times of samples show it. */
TEST(test_clock_steps)
{
	static const struct wss_clock_source stepped = {
		LEAPING_SOURCE,
		.wall_seconds = stepped_wall_seconds,
	};
	char *tree = make_tree();
	uint64_t since_ns;

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
TEST(test_changes_its_options)
{
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
TEST(test_fine_windows_of_large_guests)
{
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

static bool all_begun_by_4k(unsigned times)
{
	for (size_t i = 0; i < n_guests; i++)
		if (guests[i].begun_4k < times)
			return false;
	return true;
}

/* What comes before the dirty log stalls a guest as much as the start of its window. */
TEST(test_no_two_guests_are_stalled_before_fine_windows)
{
	prepare_large(8);
	arming_us = 10000;
	begin();
	STEP_UNTIL(all_begun_by_4k(3));
	assert_int_equal(most_arming, 1);
	end();
	arming_us = 2000;
}

/* It is tried once, and costs the guest no figure. */
TEST(test_a_guest_whose_devices_allow_none_stays_coarse)
{
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
TEST(test_coarse_windows_while_the_dirty_rate_is_busy)
{
	prepare_large(1);
	guests[0].by_4k = BY_4K_BUSY;
	guests[0].predicted = guests[0].predicted_4k =
		(struct wss_prediction){.stall_ns = MS, .faults = wss_amount_of(1000)};
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

static unsigned coarse_said, upper_said;

static void count_coarse(enum wss_log_level level, const char *text)
{
	(void)level;
	coarse_said +=
		strstr(text, "on pages of more than 4 KiB: a device does not survive it") != NULL;
	upper_said += strstr(text, "upper limit") != NULL;
}

/* Who else is at the guest says nothing about its figures, and does not keep the true reason from being said later. */
TEST(test_why_a_guest_stays_coarse_is_said_after_it_was_busy)
{
	prepare_large(1);
	guests[0].by_4k = BY_4K_UNSUPPORTED;
	options.measure.window.track.granularity = WSS_GRANULARITY_NATIVE;
	coarse_said = upper_said = 0;
	begin();
	STEP_UNTIL(watched(0) && watched(0)->kind == WSS_WINDOW_COARSE && watched(0)->windows >= 2);
	/* Few messages about a guest are logged within a minute, and other tests have had theirs. */
	wss_watch_hold(watch, "it is too early");
	step_for(70 * WSS_NS_PER_S);
	wss_watch_hold(watch, NULL);
	wss_log_set_sink(count_coarse);
	guests[0].job = true;
	options.measure.window.track.granularity = WSS_GRANULARITY_AUTO;
	wss_watch_change(watch, &options);
	STEP_UNTIL(watched(0)->state == WSS_WATCHED_HELD);
	assert_non_null(strstr(watched(0)->why.text, "has a job running"));
	assert_int_equal(watched(0)->coarse, WSS_COARSE_SETTING);
	assert_int_equal(upper_said, 0);
	guests[0].job = false;
	STEP_UNTIL(watched(0)->coarse == WSS_COARSE_UNSUPPORTED);
	assert_int_equal(coarse_said, 1);
	assert_int_equal(upper_said, 1);
	wss_log_set_sink(NULL);
	end();
}

/* An answer of QEMU's that comes late, or a pause, costs a guest no more than a window by 4 KiB. */
TEST(test_fine_windows_after_a_late_answer_and_a_pause)
{
	unsigned begun;

	prepare_large(1);
	begin();
	STEP_UNTIL(guests[0].begun_4k >= 1);
	guests[0].by_4k = BY_4K_SLOW;
	STEP_UNTIL(watched(0)->coarse == WSS_COARSE_BUSY && watched(0)->kind == WSS_WINDOW_COARSE);
	guests[0].by_4k = BY_4K_WORKS;
	begun = guests[0].begun_4k;
	STEP_UNTIL(guests[0].begun_4k > begun && watched(0)->kind == WSS_WINDOW_FINE);
	assert_int_equal(watched(0)->coarse, WSS_COARSE_NOT);
	guests[0].state = WSS_GUEST_PAUSED;
	STEP_UNTIL(watched(0)->state == WSS_WATCHED_PAUSED);
	assert_int_equal(watched(0)->coarse, WSS_COARSE_NOT);
	guests[0].state = WSS_GUEST_RUNNING;
	begun = guests[0].begun_4k;
	STEP_UNTIL(guests[0].begun_4k > begun);
	end();
}

/* What the budget does not cover is never begun, for the stall as for the faults, and coarse windows go on. */
TEST(test_the_budget_decides_on_fine_windows)
{
	prepare_large(2);
	options.budget.guest_share = 0.01;
	guests[0].predicted_4k.stall_ns = 101 * MS;
	/* Ten seconds of faults, for more than a quarter of an hour. */
	guests[1].predicted = (struct wss_prediction){.stall_ns = 100, .faults = wss_amount_of(1)};
	guests[1].predicted_4k =
		(struct wss_prediction){.stall_ns = 100, .faults = wss_amount_of(10000000)};
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
TEST(test_charges_what_precedes_a_fine_window)
{
	uint64_t before_ns;

	prepare_large(1);
	guests[0].predicted_4k = guests[0].predicted =
		(struct wss_prediction){.stall_ns = 20 * MS, .faults = wss_amount_of(1000)};
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
TEST(test_backs_off_from_fine_windows)
{
	prepare_large(1);
	guests[0].predicted_4k = guests[0].predicted =
		(struct wss_prediction){.stall_ns = MS, .faults = wss_amount_of(1000)};
	guests[0].faults = wss_amount_of(1000);
	begin();
	STEP_UNTIL(guests[0].begun_4k == 1);
	guests[0].faults = wss_amount_of(100000);
	/* On a busy machine single windows cost more than predicted before these two. */
	STEP_UNTIL(watched(0)->pace.doublings == 1);
	assert_int_equal(watched(0)->pace.kind, WSS_WINDOW_COARSE);
	assert_true(watched(0)->dearer >= 2);
	end();
}

TEST(test_granularity_is_a_setting)
{
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
TEST(test_publishes_each_profile_once)
{
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

TEST(test_publishes_nothing_that_is_not_wanted)
{
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
TEST(test_publishes_when_the_guest_is_idle_again)
{
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
TEST(test_publishing_that_hangs_delays_no_window)
{
	unsigned begins;

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
TEST(test_a_late_profile_is_of_no_new_guest)
{
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
TEST(test_publishes_while_windows_go_on)
{
	prepare_pages(true);
	wants_publishing = true;
	begin();
	STEP_UNTIL(guests[0].published);
	end_pages();
}

int main(void)
{
	wss_stop_install();
	return tests_run_each(leaping_begin, leaping_end);
}
