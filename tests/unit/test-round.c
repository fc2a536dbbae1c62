/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The round over invented guests. Threads are real, and the clock leaps while all of them wait. */
#include "../random.h"
#include "invented.h"

#include <time.h>

#include "measure/round.h"

static struct wss_round_options options;

/* --- the caller --- */

static bool wants_publishing;

static void on_left_out(struct wss_target *target, void *unused)
{
	((struct invented *)target->data)->left_out++;
}

static void on_sample(struct wss_target *target, const struct wss_sample *sample, bool last,
		      void *unused)
{
	struct invented *guest = target->data;

	guest->lasts += last;
	if (wss_sample_measured(sample)) {
		assert_string_equal(sample->domain, guest->name);
		guest->samples++;
		return;
	}
	guest->bad++;
	guest->error = sample->error;
}

static bool on_publish(struct wss_target *target, struct wss_profile *ret_profile, void *unused)
{
	*ret_profile = (struct wss_profile){.version = 1,
					    .time = 1,
					    .window_ns = 1,
					    .granularity_bytes = 4096,
					    .method = "mmu",
					    .observes = "accesses",
					    .confidence = "single",
					    .tool = "1"};
	return wants_publishing;
}

static void on_trouble(struct wss_target *target, const struct wss_error *error, void *unused)
{
	struct invented *guest = target->data;

	guest->troubles++;
	guest->error = *error;
}

static struct wss_round *running;

static void on_progress(const struct wss_round_progress *progress, void *unused)
{
	for (size_t i = 0; i < n_guests; i++) {
		if (!guests[i].leaves || !guests[i].is_open)
			continue;
		guests[i].leaves = false;
		wss_round_leave(running, guests[i].target);
	}
}

static const struct wss_round_events events = {
	.left_out = on_left_out,
	.sample = on_sample,
	.publish = on_publish,
	.trouble = on_trouble,
	.progress = on_progress,
};

static void invent(size_t n)
{
	invent_guests(n);
	wants_publishing = false;
	options = (struct wss_round_options){.jobs = 8};
	wss_measure_options_init(&options.measure, 40 * MS);
	options.measure.method = &method_ops;
}

static void join(struct wss_round *round, struct wss_hypervisor *hypervisor, size_t i,
		 uint64_t deadline_ns)
{
	const struct wss_domain_ref ref = {guests[i].name, guests[i].uuid};
	struct wss_target *target = wss_target_new(hypervisor, &ref, deadline_ns, NULL, NULL);
	struct wss_error err = WSS_ERROR_INIT;

	assert_non_null(target);
	target->data = &guests[i];
	guests[i].target = target;
	if (wss_round_join(round, target, NULL, true, &err) < 0)
		fail_msg("%s", err.text);
}

/* Runs all guests in one round. Returns how long it took. */
static uint64_t run(uint64_t deadline_ns)
{
	struct wss_hypervisor *hypervisor = hypervisor_new();
	struct wss_error err = WSS_ERROR_INIT;
	uint64_t began_ns = wss_clock_now_ns();
	struct wss_round *round;

	assert_int_equal(wss_round_new(&options, &events, NULL, &round, &err), 0);
	running = round;
	for (size_t i = 0; i < n_guests; i++)
		join(round, hypervisor, i, deadline_ns);
	if (wss_round_run(round, &err) < 0)
		fail_msg("%s", err.text);
	wss_round_free(round);
	wss_hypervisor_unref(hypervisor);
	return wss_clock_now_ns() - began_ns;
}

static void assert_samples(size_t i, unsigned n)
{
	if (guests[i].samples != n || guests[i].lasts != 1 || guests[i].begins != n ||
	    guests[i].bad || guests[i].troubles)
		fail_msg("%s: %u samples, %u bad, %u troubles: %s", guests[i].name,
			 guests[i].samples, guests[i].bad, guests[i].troubles,
			 guests[i].error.text);
}

static void assert_one_sample(size_t i)
{
	assert_samples(i, 1);
}

TEST(test_none)
{
	invent(0);
	run(0);
	forget();
}

/* Windows overlap, as many as there are jobs; armings never do. */
TEST(test_jobs)
{
	invent(8);
	options.jobs = 3;
	options.measure.window.track.window_ns = options.measure.interval_ns = 2500 * MS;
	run(0);
	for (size_t i = 0; i < n_guests; i++)
		assert_one_sample(i);
	assert_int_equal(most_arming, 1);
	assert_in_range(most_open, 2, 3);
	forget();
}

/*
 * With sanitizers this would take a minute in each build and find no more than a part of it
 * does.
 */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(__clang__)
#define MANY 20
#else
#define MANY 100
#endif

/*
 * Over a hundred guests a round takes less than half of what their windows of 4 s take one after the other; a hung
 * guest does not make it longer.
 */
TEST(test_hundred)
{
	invent((size_t)MANY);
	guests[3].hang = HANG_BEGIN;
	options.measure.window.track.window_ns = options.measure.interval_ns = 4 * WSS_NS_PER_S;
	assert_true(run(10 * WSS_NS_PER_S) < MANY * 4 * WSS_NS_PER_S / 2);
	for (size_t i = 0; i < n_guests; i++)
		if (i != 3)
			assert_one_sample(i);
	assert_int_equal(guests[3].troubles, 1);
	assert_int_equal(most_arming, 1);
	assert_in_range(most_open, options.jobs / 2, options.jobs);
	forget();
}

/* The start of a countdown includes guests that have to wait for a place. */
TEST(test_length)
{
	static const struct {
		unsigned n, jobs, count, window_s, interval_s, low_s, high_s;
	} cases[] = {
		{0, 8, 1, 40, 40, 0, 0},      {1, 8, 1, 40, 40, 40, 40},
		{1, 1, 3, 40, 40, 120, 120},  {8, 8, 1, 40, 40, 45, 48},
		{20, 8, 1, 40, 40, 120, 128}, {20, 20, 1, 40, 40, 55, 60},
		{3, 1, 2, 10, 10, 60, 62},    {3, 8, 2, 10, 60, 70, 73},
		{100, 8, 1, 4, 4, 52, 60},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct wss_round_options round = {.jobs = cases[i].jobs};
		uint64_t length_s;

		wss_measure_options_init(&round.measure, cases[i].window_s * WSS_NS_PER_S);
		round.measure.count = cases[i].count;
		round.measure.interval_ns = cases[i].interval_s * WSS_NS_PER_S;
		length_s = wss_round_length_ns(&round, cases[i].n) / WSS_NS_PER_S;
		assert_in_range(length_s, cases[i].low_s, cases[i].high_s);
	}
}

/* Few guests are armed at least a second apart. */
TEST(test_stagger)
{
	invent(4);
	run(0);
	for (size_t i = 0; i < n_guests; i++)
		for (size_t k = 0; k < i; k++) {
			uint64_t a = guests[i].armed_ns, b = guests[k].armed_ns;

			assert_true((a > b ? a - b : b - a) > 950 * MS);
		}
	forget();
}

/* Wherever a guest hangs, the others finish, and it is given up at its deadline. */
TEST(test_hangs)
{
	static const enum hang places[] = {HANG_OPEN, HANG_REFRESH, HANG_BEGIN, HANG_POLL,
					   HANG_PUBLISH};

	for (size_t p = 0; p < sizeof(places) / sizeof(places[0]); p++) {
		invent(3);
		wants_publishing = true;
		options.jobs = 1;
		guests[0].hang = places[p];
		assert_true(run(500 * MS) < 20 * WSS_NS_PER_S);
		assert_int_equal(guests[0].troubles, 1);
		assert_error(&guests[0].error, WSS_ERR_TIMEOUT, "500 ms");
		assert_int_equal(guests[0].published, 0);
		for (size_t i = 1; i < n_guests; i++) {
			assert_one_sample(i);
			assert_int_equal(guests[i].published, 1);
		}
		forget();
	}
}

/* A worker that wakes up late restores its guest, and reports nothing. */
TEST(test_wakes_late)
{
	invent(2);
	guests[0].hang = HANG_POLL;
	run(300 * MS);
	assert_int_equal(guests[0].closes, 0);
	assert_int_equal(guests[0].samples + guests[0].bad, 0);
	forget();
	assert_int_equal(guests[0].closes, 1);
	assert_int_equal(guests[0].samples + guests[0].bad, 0);
}

/* Guests that opted out, were shut off or are gone are neither missed nor touched. */
static void check_left_out(bool at_once)
{
	invent(4);
	options.at_once = at_once;
	guests[0].opted_out = true;
	guests[1].state = WSS_GUEST_SHUTOFF;
	guests[2].gone = true;
	run(0);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(guests[i].left_out, 1);
		assert_int_equal(guests[i].begins + guests[i].bad + guests[i].samples, 0);
	}
	assert_one_sample(3);
	forget();
}

TEST(test_left_out)
{
	check_left_out(false);
	check_left_out(true);
}

/* The same guest twice would wait for its own lock. */
TEST(test_repeated)
{
	invent(2);
	options.measure.window.track.window_ns = options.measure.interval_ns = 500 * MS;
	memcpy(guests[1].uuid, guests[0].uuid, sizeof(guests[1].uuid));
	run(0);
	assert_int_equal(guests[0].samples + guests[1].samples, 1);
	assert_int_equal(guests[0].left_out + guests[1].left_out, 1);
	forget();
}

TEST(test_series)
{
	invent(3);
	options.measure.count = 4;
	options.measure.interval_ns = 200 * MS;
	run(0);
	for (size_t i = 0; i < n_guests; i++)
		assert_samples(i, 4);
	assert_int_equal(most_arming, 1);
	forget();
}

/* One joins while the round runs, and one leaves before its window is over. */
TEST(test_join_and_leave)
{
	struct wss_hypervisor *hypervisor = hypervisor_new();
	const struct wss_domain_ref ref = {"guest0", NULL};
	struct wss_target *leaver;
	struct wss_round *round;

	invent(2);
	options.measure.window.track.window_ns = options.measure.interval_ns = 30 * WSS_NS_PER_S;
	assert_int_equal(wss_round_new(&options, &events, NULL, &round, NULL), 0);
	leaver = wss_target_new(hypervisor, &ref, 0, NULL, NULL);
	leaver->data = &guests[0];
	assert_int_equal(wss_round_join(round, leaver, NULL, true, NULL), 0);
	while (!guests[0].begins)
		wss_round_step(round);
	join(round, hypervisor, 1, 0);
	wss_round_leave(round, leaver);
	while (guests[0].closes == 0)
		wss_round_step(round);
	assert_int_equal(guests[0].samples + guests[0].bad, 0);
	while (!guests[1].begins)
		wss_round_step(round);
	/* It leaves running workers behind, which restore their guests themselves. */
	wss_round_free(round);
	wss_hypervisor_unref(hypervisor);
	forget();
	assert_int_equal(guests[1].closes, 1);
}

/* --- guests that do anything --- */

/* What becomes of each guest of a round, and what it must come to. */
enum fate { FATE_MEASURED, FATE_OPTED_OUT, FATE_GONE, FATE_DIES, FATE_LEAVES, FATE_HANGS };

static void fate_choose(size_t i, enum fate fate)
{
	static const enum hang places[] = {HANG_OPEN, HANG_REFRESH, HANG_BEGIN, HANG_POLL,
					   HANG_PUBLISH};

	guests[i].opted_out = fate == FATE_OPTED_OUT;
	guests[i].gone = fate == FATE_GONE;
	guests[i].dies = fate == FATE_DIES;
	guests[i].leaves = fate == FATE_LEAVES;
	if (fate == FATE_HANGS)
		guests[i].hang = places[random_below(sizeof(places) / sizeof(places[0]))];
}

static void fate_check(size_t i, enum fate fate, unsigned count)
{
	const struct invented *guest = &guests[i];
	bool ok = false;

	switch (fate) {
	case FATE_MEASURED:
		ok = guest->samples == count && guest->begins == count && guest->lasts == 1 &&
		     guest->published == 1 && !guest->bad && !guest->troubles;
		break;
	case FATE_OPTED_OUT:
		ok = guest->left_out == 1 && !guest->begins && !guest->bad;
		break;
	case FATE_GONE:
		ok = guest->left_out == 1 && !guest->opens && !guest->bad;
		break;
	case FATE_DIES:
		ok = !guest->samples && guest->bad == 1 && guest->lasts == 1 && !guest->troubles;
		break;
	case FATE_LEAVES:
		ok = guest->samples < count && !guest->bad && !guest->troubles && !guest->published;
		break;
	case FATE_HANGS:
		ok = guest->troubles == 1 && guest->error.code == WSS_ERR_TIMEOUT &&
		     !guest->published && guest->bad == 0;
		break;
	}
	if (!ok)
		fail_msg("%s, fate %d, hang %d: %u samples, %u bad, %u lasts, %u begins, %u left "
			 "out, %u troubles, %u published: %s",
			 guest->name, fate, guest->hang, guest->samples, guest->bad, guest->lasts,
			 guest->begins, guest->left_out, guest->troubles, guest->published,
			 guest->error.text);
}

/* However many guests there are, and whatever some of them do, the others are measured in time. */
TEST(test_anything)
{
	const char *rounds = getenv("WSS_ROUNDS"), *seed = getenv("WSS_SEED");

	if (seed)
		random_state = strtoull(seed, NULL, 0);
	for (int r = rounds ? atoi(rounds) : 3; r > 0; r--) {
		enum fate fates[24];
		uint64_t took_ns;

		print_message("# WSS_SEED=%#llx\n", (unsigned long long)random_state);
		invent(1 + (size_t)random_below(24));
		wants_publishing = true;
		options.at_once = random_below(2);
		options.jobs = 1 + (unsigned)random_below(10);
		options.measure.count = 2 + (unsigned)random_below(2);
		options.measure.window.track.window_ns = (100 + random_below(400)) * MS;
		options.measure.interval_ns = 2 * options.measure.window.track.window_ns;
		for (size_t i = 0; i < n_guests; i++) {
			fates[i] = random_below(2) ? FATE_MEASURED : (enum fate)random_below(6);
			fate_choose(i, fates[i]);
		}
		took_ns = run(4 * WSS_NS_PER_S);
		for (size_t i = 0; i < n_guests; i++)
			fate_check(i, fates[i], options.measure.count);
		assert_true(most_arming <= 1);
		/* Each window once, one at a time at worst, and the deadline of those that hang. */
		assert_true(took_ns < 24 * 3 * options.measure.interval_ns + 12 * WSS_NS_PER_S);
		forget();
	}
}

static int run_and_stop(void)
{
	struct wss_hypervisor *hypervisor = hypervisor_new();
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_round *round;
	unsigned closes = 0, begins = 0;

	wss_stop_install();
	if (leaping_begin(NULL) < 0 || wss_round_new(&options, &events, NULL, &round, NULL) < 0)
		return 1;
	for (size_t i = 0; i < n_guests; i++)
		join(round, hypervisor, i, 0);
	while (!guests[0].begins || !guests[1].begins)
		wss_round_step(round);
	raise(SIGTERM);
	if (wss_round_run(round, &err) == 0 || err.code != WSS_ERR_INTERRUPTED)
		return 2;
	for (size_t i = 0; i < n_guests; i++) {
		begins += guests[i].begins;
		closes += guests[i].closes;
		if (guests[i].samples || guests[i].bad || guests[i].troubles)
			return 3;
	}
	wss_round_free(round);
	wss_hypervisor_unref(hypervisor);
	leaping_end(NULL);
	return begins >= 2 && closes >= begins && !open_windows && wss_threads_end(0) ? 0 : 4;
}

TEST(test_stop)
{
	invent(3);
	options.measure.window.track.window_ns = options.measure.interval_ns = 30 * WSS_NS_PER_S;
	leaping_end(NULL);
	assert_int_equal(in_child(run_and_stop), 0);
	forget();
}

static uint64_t ahead_now_ns(void *unused)
{
	return leaping_now_ns(unused) + ahead_ns;
}

static void step_of_20_s(struct wss_target *target)
{
	ahead_ns += 20 * WSS_NS_PER_S;
	wss_deadline_check(&target->deadline, &target->error);
}

/* Opening a guest and all that is asked about it has one deadline, not one each. */
TEST(test_steps_share_a_deadline)
{
	static const struct wss_clock_source clock = {
		.now_ns = ahead_now_ns, .wait = leaping_wait, .poll = leaping_poll};
	struct wss_hypervisor *hypervisor = hypervisor_new();
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_targets targets;

	invent(2);
	guests[0].opens_ns = 20 * WSS_NS_PER_S;
	ahead_ns = 0;
	wss_clock_inject(&clock);
	for (size_t i = 0; i < 2; i++) {
		const struct wss_domain_ref ref = {guests[i].name, guests[i].uuid};
		const struct wss_targets_query query = {
			.refs = &ref, .n = 1, .deadline_ns = 30 * WSS_NS_PER_S};

		assert_int_equal(wss_targets_find(hypervisor, &query, &targets, &err), 0);
		assert_int_equal(wss_targets_open(&targets, &err), 0);
		assert_non_null(targets.list[0]->guest);
		assert_int_equal(wss_targets_run(&targets, step_of_20_s, false, &err), 0);
		if (i == 0)
			assert_error(&targets.list[0]->error, WSS_ERR_TIMEOUT, "30.0 s");
		else
			assert_int_equal(targets.list[0]->error.code, WSS_OK);
		wss_targets_free(&targets);
	}
	wss_clock_inject(NULL);
	wss_hypervisor_unref(hypervisor);
	forget();
}

int main(void)
{
	return tests_run_each(leaping_begin, leaping_end);
}
