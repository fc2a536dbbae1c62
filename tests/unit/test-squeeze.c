/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Decisions of the squeeze on an invented guest, which is looked at each second. */
#include "hosttest.h"

#include "balloon/squeeze.h"
#include "base/units.h"

#define MIB WSS_MIB
#define FULL (1024 * MIB)
#define KERNEL (80 * MIB)
#define LOOKS_MAX 5000
#define TIMEOUT_S 30

static struct guest {
	uint64_t set_bytes; /* page cache in use */
	uint64_t anonymous_bytes;
	bool deflates; /* takes memory back when it has none */
	uint64_t actual, target;
	uint64_t speed_bytes; /* by which the balloon moves in a second */
	uint64_t now_s, read_bytes, said_s, report_s;
	bool silent_disks, busy, silent;
	uint64_t pressure_permille;
	unsigned looks, shrinks;
	uint64_t least_bytes;
	struct wss_balloon_view reported;
} guest;

static struct wss_squeeze squeeze;
static struct wss_balloon_decision decision;

/* What happens to the guest at a look; NULL: nothing. */
static void (*happening)(void);

static uint64_t room(void)
{
	uint64_t used = KERNEL + guest.anonymous_bytes;

	return guest.actual > used ? guest.actual - used : 0;
}

static void guest_live(void)
{
	uint64_t move = guest.speed_bytes;

	guest.now_s++;
	if (guest.actual > guest.target) {
		move = move < guest.actual - guest.target ? move : guest.actual - guest.target;
		/* A balloon never takes the last memory. */
		move = move < room() ? move : room();
		guest.actual -= move;
	} else {
		guest.actual = guest.target;
	}
	if (guest.actual < guest.least_bytes)
		guest.least_bytes = guest.actual;
	if (room() < guest.set_bytes)
		guest.read_bytes += guest.set_bytes - room();
	if (guest.deflates && room() < 20 * MIB && guest.actual < FULL)
		guest.target = guest.actual = guest.actual + 30 * MIB;
}

static void guest_report(void)
{
	uint64_t cache = guest.set_bytes < room() ? guest.set_bytes : room();

	if (guest.silent || guest.now_s % guest.report_s)
		return;
	guest.said_s = guest.now_s;
	guest.reported.usable_bytes = wss_amount_of(room());
	guest.reported.free_bytes = wss_amount_of(room() - cache);
	guest.reported.cache_bytes = wss_amount_of(cache);
	guest.reported.managed_bytes = wss_amount_of(guest.actual - 30 * MIB);
	guest.reported.managed_of_bytes = wss_amount_of(guest.actual);
	guest.reported.swapped_bytes = wss_amount_of(0);
	guest.reported.major_faults = wss_amount_of(0);
}

static void guest_look(void)
{
	struct wss_balloon_view view = guest.reported;

	view.now_s = guest.now_s;
	view.actual_bytes = wss_amount_of(guest.actual);
	view.statistics_age_s = guest.now_s - guest.said_s;
	view.may_step = !guest.busy;
	view.pressure_permille = wss_amount_of(guest.pressure_permille);
	if (!guest.silent_disks)
		view.read_bytes = wss_amount_of(guest.read_bytes);
	decision = wss_squeeze_next(&squeeze, &view);
	assert_non_null(decision.reason);
	if (decision.action == WSS_BALLOON_HOLD)
		return;
	guest.target = decision.target_bytes;
	guest.shrinks += decision.action == WSS_BALLOON_SHRINK;
}

static void prepare(uint64_t set_bytes, uint64_t anonymous_bytes, bool deflates)
{
	const struct wss_squeeze_options options = {
		.step_percent = 4, .settle_s = 2, .interval_s = 4, .floor_bytes = 64 * MIB};

	guest = (struct guest){.set_bytes = set_bytes,
			       .anonymous_bytes = anonymous_bytes,
			       .deflates = deflates,
			       .actual = FULL,
			       .target = FULL,
			       .speed_bytes = 20 * MIB,
			       .now_s = 1000,
			       .report_s = 1,
			       .least_bytes = FULL};
	happening = NULL;
	wss_squeeze_init(&squeeze, &options, FULL, TIMEOUT_S, deflates);
}

/* Runs until the squeeze is over, and leaves its edges. */
static struct wss_edges run(void)
{
	struct wss_edges edges;

	do {
		assert_true(guest.looks++ < LOOKS_MAX);
		guest_live();
		if (happening)
			happening();
		guest_report();
		guest_look();
	} while (decision.action != WSS_BALLOON_DONE && decision.action != WSS_BALLOON_RESTORE);
	guest_live();
	/* The guest always has everything back in the end. */
	assert_int_equal(guest.target, FULL);
	assert_int_equal(guest.actual, FULL);
	assert_string_equal(decision.reason, squeeze.end ? squeeze.end : decision.reason);
	wss_edges_find(squeeze.points, squeeze.n_points, &edges);
	return edges;
}

static void assert_edge(const struct wss_edge *edge, uint64_t bytes)
{
	if (!edge->edge_bytes.known)
		fail_msg("%s", edge->reason);
	assert_in_range(bytes, edge->low_bytes.value, edge->high_bytes.value);
}

TEST(test_page_cache)
{
	struct wss_edges edges;

	for (uint64_t set = 100; set <= 800; set += 100) {
		prepare(set * MIB, 0, false);
		edges = run();
		assert_string_equal(squeeze.end, "it pages");
		assert_edge(&edges.paging, set * MIB + KERNEL);
		/* It went no further than one step below. */
		assert_true(guest.least_bytes > (set * MIB + KERNEL) / 100 * 95);
		assert_int_equal(squeeze.points[squeeze.n_points - 1].returned, true);
		assert_in_range(squeeze.memory.reserve_bytes, 30 * MIB, 31 * MIB);
		assert_int_equal(wss_squeeze_smallest(&squeeze), edges.paging.low_bytes.value);
	}
}

TEST(test_reports_now_and_then)
{
	struct wss_edges edges;

	prepare(300 * MIB, 0, false);
	guest.report_s = 7;
	edges = run();
	assert_edge(&edges.paging, 300 * MIB + KERNEL);
}

static void read_after_each_move(void)
{
	static uint64_t actual, moved_s;

	if (guest.actual != actual)
		moved_s = guest.now_s;
	actual = guest.actual;
	if (guest.now_s < moved_s + 2)
		guest.read_bytes += 100 * MIB;
}

/* What the balloon's own moves cause does not count. */
TEST(test_it_settles)
{
	struct wss_edges edges;

	prepare(300 * MIB, 0, false);
	happening = read_after_each_move;
	edges = run();
	assert_edge(&edges.paging, 300 * MIB + KERNEL);
	/* No observation was repeated except where it pages. */
	assert_int_equal(squeeze.n_points, WSS_EDGE_BASE_POINTS + guest.shrinks + 2);
}

/* No step takes what the guest could not do without. */
TEST(test_anonymous_memory)
{
	struct wss_edges edges;

	prepare(0, 400 * MIB, false);
	edges = run();
	assert_edge(&edges.paging, 400 * MIB + KERNEL);
	assert_true(guest.least_bytes >= 400 * MIB + KERNEL + 8 * MIB);
}

TEST(test_autodeflate)
{
	struct wss_edges edges;

	prepare(0, 400 * MIB, true);
	edges = run();
	assert_string_equal(squeeze.end, "it took memory back by itself");
	assert_in_range(edges.paging.high_bytes.value, 400 * MIB + KERNEL, 540 * MIB);
}

static void stop_moving(void)
{
	if (guest.actual < 700 * MIB)
		guest.speed_bytes = 0;
}

TEST(test_a_balloon_that_stops)
{
	struct wss_edges edges;

	prepare(100 * MIB, 0, false);
	happening = stop_moving;
	edges = run();
	assert_string_equal(squeeze.end, "it does not release more memory");
	assert_in_range(edges.paging.high_bytes.value, 670 * MIB, 700 * MIB);
}

static void grow_fast(void)
{
	if (guest.actual < 700 * MIB && guest.target < FULL)
		guest.anonymous_bytes = guest.actual - KERNEL - 4 * MIB;
}

/* Within a look of the guest's report, also while a step is under way. */
TEST(test_a_guest_that_takes_all_it_has)
{
	struct wss_edges edges;

	prepare(0, 100 * MIB, false);
	happening = grow_fast;
	edges = run();
	assert_string_equal(squeeze.end, "it has nearly nothing left to give up");
	assert_true(guest.least_bytes > 640 * MIB);
	assert_true(edges.paging.edge_bytes.known);
}

static void give_all_back(void)
{
	if (guest.actual < 700 * MIB)
		guest.target = guest.actual = FULL;
}

static void take_some(void)
{
	if (guest.looks == 5)
		guest.target = guest.actual = FULL - 100 * MIB;
}

TEST(test_others_move_its_balloon)
{
	for (int i = 0; i < 2; i++) {
		prepare(0, 100 * MIB, i == 1);
		happening = give_all_back;
		run();
		assert_int_equal(decision.action, WSS_BALLOON_RESTORE);
	}
	prepare(0, 100 * MIB, false);
	happening = take_some;
	while (decision.action != WSS_BALLOON_RESTORE || guest.looks < 5) {
		guest.looks++;
		guest_report();
		take_some();
		guest_look();
		guest.now_s++;
		assert_true(guest.looks < 6);
	}
	assert_int_equal(guest.shrinks, 0);
}

static void be_busy(void)
{
	guest.busy = guest.looks % 20 < 15;
}

TEST(test_steps_wait_for_a_job)
{
	struct wss_edges edges;

	prepare(300 * MIB, 0, false);
	happening = be_busy;
	edges = run();
	assert_edge(&edges.paging, 300 * MIB + KERNEL);
}

/* A decision that was not carried out is made again. */
TEST(test_a_step_that_is_put_off)
{
	prepare(100 * MIB, 0, false);
	do {
		guest_live();
		guest_report();
		guest_look();
	} while (decision.action != WSS_BALLOON_SHRINK);
	wss_squeeze_put_off(&squeeze);
	assert_false(wss_squeeze_is_stepping(&squeeze));
	assert_true(wss_squeeze_is_ready(&squeeze));
	guest.target = FULL;
	guest_live();
	guest_look();
	assert_int_equal(decision.action, WSS_BALLOON_SHRINK);
	assert_true(wss_squeeze_is_stepping(&squeeze));
}

/* Memory that could not be given back is given back at the next look. */
TEST(test_a_return_that_is_put_off)
{
	struct wss_edges edges;

	prepare(300 * MIB, 0, false);
	do {
		guest_live();
		guest_report();
		guest_look();
	} while (decision.action != WSS_BALLOON_RETURN);
	guest.target = guest.actual;
	for (int i = 0; i < 3; i++) {
		wss_squeeze_put_off(&squeeze);
		guest_look();
		assert_int_equal(decision.action, WSS_BALLOON_RETURN);
		assert_int_equal(decision.target_bytes, FULL);
	}
	edges = run();
	assert_edge(&edges.paging, 300 * MIB + KERNEL);
	wss_squeeze_put_off(&squeeze);
	guest_look();
	assert_int_equal(decision.action, WSS_BALLOON_DONE);
}

static void be_paused(void)
{
	/* For a minute and a half, during an observation. */
	guest.silent = guest.shrinks == 3 && guest.looks % 200 > 100;
}

TEST(test_an_observation_that_takes_too_long)
{
	struct wss_edges edges;

	prepare(300 * MIB, 0, false);
	happening = be_paused;
	edges = run();
	assert_edge(&edges.paging, 300 * MIB + KERNEL);
}

static void press(void)
{
	guest.pressure_permille = guest.actual < 700 * MIB ? 500 : 0;
}

TEST(test_pressure)
{
	struct wss_edges edges;

	prepare(100 * MIB, 0, false);
	happening = press;
	edges = run();
	assert_string_equal(squeeze.end, "the host is short of memory");
	assert_false(edges.paging.edge_bytes.known);
}

/* The load grows as the guest is shrunk, and goes on. */
static void read_more(void)
{
	if (guest.shrinks > 5)
		guest.read_bytes += 100 * MIB;
}

TEST(test_paging_that_goes_on)
{
	struct wss_edges edges;
	uint64_t returned_s;

	prepare(100 * MIB, 0, false);
	happening = read_more;
	edges = run();
	assert_false(edges.paging.edge_bytes.known);
	assert_non_null(strstr(edges.paging.reason, "did not end"));
	returned_s = guest.now_s - squeeze.until_s;
	assert_in_range(returned_s, 0, 10);
}

TEST(test_floor)
{
	struct wss_edges edges;

	prepare(100 * MIB, 0, false);
	squeeze.options.floor_bytes = 500 * MIB;
	edges = run();
	assert_string_equal(squeeze.end, "it has reached the floor");
	assert_int_equal(guest.least_bytes, 500 * MIB);
	assert_int_equal(edges.paging.high_bytes.value, 500 * MIB);
	/* There is nothing to take at all. */
	prepare(100 * MIB, 0, false);
	squeeze.options.floor_bytes = 2 * FULL;
	run();
	assert_int_equal(guest.least_bytes, FULL);
}

TEST(test_too_many_steps)
{
	prepare(100 * MIB, 0, false);
	squeeze.n_points = WSS_SQUEEZE_POINTS_MAX - 6;
	for (size_t i = 0; i < squeeze.n_points; i++)
		squeeze.points[i].size_bytes = FULL;
	run();
	assert_string_equal(squeeze.end, "there were too many steps");
}

TEST(test_floor_of_the_policy)
{
	const struct wss_policy none = {.opt_out = false},
				policy = {.minimum_bytes = wss_amount_of(256 * MIB)};

	assert_int_equal(wss_squeeze_floor(&none, 64 * MIB), 64 * MIB);
	assert_int_equal(wss_squeeze_floor(&policy, 64 * MIB), 256 * MIB);
	assert_int_equal(wss_squeeze_floor(&policy, 512 * MIB), 512 * MIB);
}

/* On the grounds of the balloon, except for those of the history. */
TEST(test_refusals)
{
	const struct wss_balloon_facts good = {
		.running = true, .has_device = true, .answers = true, .statistics = true};
	struct wss_balloon_facts facts = good;

	assert_null(wss_squeeze_refusal(&good));
	assert_non_null(wss_balloon_refusal(&good)); /* too early */
	for (int i = 0; i < 9; i++) {
		facts = good;
		facts.confidence = WSS_CONFIDENCE_HIGH;
		facts.current = true;
		facts.running = i != 0;
		facts.job = i == 1;
		facts.has_device = i != 2;
		facts.answers = i != 3;
		facts.opted_out = i == 4;
		facts.hazard = i == 5 ? "it has VFIO" : NULL;
		facts.unfinished = i == 6;
		facts.fixed = i == 7;
		facts.unsized = i == 8;
		assert_non_null(wss_balloon_refusal(&facts));
		assert_ptr_equal(wss_squeeze_refusal(&facts), wss_balloon_refusal(&facts));
	}
	/* Autodeflate alone is enough for the balloon only. */
	facts = good;
	facts.statistics = false;
	facts.autodeflate = true;
	assert_null(wss_balloon_guest_refusal(&facts));
	assert_non_null(strstr(wss_squeeze_refusal(&facts), "no balloon statistics"));
	facts.asked = true;
	assert_non_null(strstr(wss_squeeze_objection(&facts), "have stopped"));
}

/* With both figures: an operator who takes the wrong unit sees that. */
TEST(test_a_floor_that_leaves_no_step)
{
	char text[WSS_SQUEEZE_TEXT_MAX];

	assert_true(wss_squeeze_no_step(400 * MIB, 1024 * MIB, text));
	assert_string_equal(text, "no step from its size of 400 MiB to the floor of 1 GiB");
	assert_true(wss_squeeze_no_step(400 * MIB, 399 * MIB, text));
	assert_false(wss_squeeze_no_step(400 * MIB, 398 * MIB, text));
}

/* A report without figures, or one after the page cache was dropped, takes nothing back. */
TEST(test_memory_is_the_largest)
{
	struct wss_squeeze_memory memory = {.reserve_bytes = 0};
	struct wss_balloon_view view = {
		.managed_bytes = wss_amount_of(984 * MIB),
		.managed_of_bytes = wss_amount_of(FULL),
		.free_bytes = wss_amount_of(500 * MIB),
		.cache_bytes = wss_amount_of(300 * MIB),
	};

	wss_squeeze_memory_note(&memory, &view);
	view.free_bytes = wss_amount_of(750 * MIB);
	view.cache_bytes = wss_amount_of(60 * MIB);
	wss_squeeze_memory_note(&memory, &view);
	view.cache_bytes.known = false;
	wss_squeeze_memory_note(&memory, &view);
	assert_true(memory.used_bytes.known && memory.cache_bytes.known);
	assert_int_equal(memory.used_bytes.value, 184 * MIB);
	assert_int_equal(memory.cache_bytes.value, 300 * MIB);
}

int main(void)
{
	return tests_run();
}
