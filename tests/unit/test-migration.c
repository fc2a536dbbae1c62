/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The model of live migration, compared with a small simulation that moves single pages: an
 * array of dirty bits, a guest that sets them, and a sender that follows QEMU's loop.
 */
#include "hosttest.h"

#include <math.h>

#include "../random.h"
#include "measure/writes.h"
#include "migration/migration.h"
#include "recording/recorded-writes.h"

#define MIB (1ULL << 20)
#define PAGES 32768u
#define RAM ((double)PAGES * 4096)
#define SLOT_S 0.1

/* A guest that writes to one set, page by page at random or in a loop. */
struct guest {
	unsigned set; /* pages, from the first on */
	double rate;  /* writes of a page, per second */
	bool at_random;
	unsigned content; /* pages that are not zero */
	/* State. */
	double due;
	unsigned next;
};

struct source {
	struct guest guest;
	bool dirty[PAGES], written[PAGES];
	unsigned left, at;
	double bandwidth, downtime_s, threshold;
	double bytes, seconds;
	unsigned passes;
	/* Auto-converge. */
	bool throttles, written_much;
	unsigned throttle, newly;
	double period_s, period_bytes;
};

static void guest_run(struct source *source, double seconds)
{
	struct guest *guest = &source->guest;

	guest->due += guest->rate * seconds * (1 - source->throttle / 100.0);
	for (; guest->due >= 1; guest->due--) {
		unsigned page = guest->at_random ? (unsigned)random_below(guest->set)
						 : guest->next++ % guest->set;

		source->written[page] = true;
	}
}

static void source_throttle(struct source *source)
{
	if (source->seconds <= source->period_s + 1)
		return;
	if (source->throttles &&
	    source->newly * 4096.0 > (source->bytes - source->period_bytes) / 2) {
		if (source->written_much)
			source->throttle = source->throttle ? source->throttle + 10 : 20;
		if (source->throttle > 99)
			source->throttle = 99;
		source->written_much = !source->written_much;
	}
	source->newly = 0;
	source->period_s = source->seconds;
	source->period_bytes = source->bytes;
}

static void source_sync(struct source *source)
{
	for (unsigned i = 0; i < PAGES; i++) {
		if (source->written[i] && !source->dirty[i]) {
			source->dirty[i] = true;
			source->left++;
			source->newly++;
		}
		source->written[i] = false;
	}
	source->passes++;
	source_throttle(source);
}

/* Returns the bytes that a page costs. */
static unsigned source_send_page(struct source *source)
{
	unsigned cost;

	while (!source->dirty[source->at])
		source->at = (source->at + 1) % PAGES;
	source->dirty[source->at] = false;
	source->left--;
	cost = source->at < source->guest.content ? 4104 : 9;
	source->bytes += cost;
	return cost;
}

/* Migrates; false if the guest still runs after limit_s. */
static bool source_migrate(struct source *source, double limit_s)
{
	source->left = PAGES;
	memset(source->dirty, true, sizeof(source->dirty));
	source->passes = 1;
	while (source->seconds < limit_s) {
		double before = source->bytes;

		if (source->left * 4096.0 < source->threshold)
			source_sync(source);
		if (!source->left || source->left * 4096.0 < source->threshold)
			break;
		while (source->left && source->bytes - before < source->bandwidth * SLOT_S) {
			double seconds = source_send_page(source) / source->bandwidth;

			/* The guest runs while pages are sent. */
			guest_run(source, seconds);
			source->seconds += seconds;
		}
		source->threshold = source->bandwidth * source->downtime_s;
	}
	if (source->seconds >= limit_s)
		return false;
	while (source->left)
		source_send_page(source);
	return true;
}

static double guest_writes(const struct guest *guest, double seconds)
{
	double set = guest->set * 4096.0, bytes = guest->rate * 4096 * seconds;

	return guest->at_random ? set * (1 - exp(-bytes / set)) : fmin(set, bytes);
}

static struct wss_migration migration_of(const struct guest *guest, double bandwidth)
{
	struct wss_migration migration = {
		.bandwidth = bandwidth, .downtime_s = WSS_MIGRATION_DOWNTIME_S, .ram_bytes = RAM};

	for (size_t end = 0; end < WSS_ENDS; end++) {
		migration.content_bytes[end] = guest->content * 4096.0;
		migration.busy[end] = 1;
	}
	for (double t = 0.001; t < 60; t *= 1.2) {
		double bytes = guest_writes(guest, t);

		wss_writes_add(&migration.writes, t, bytes, bytes, bytes);
	}
	return migration;
}

/* Whether got is within 10 % of the truth, and the bounds include it within 1 %. */
static void assert_figure(const char *what, const double *ends, double truth)
{
	double low = fmin(ends[WSS_END_LOW], fmin(ends[WSS_END_EXPECTED], ends[WSS_END_HIGH]));
	double high = fmax(ends[WSS_END_LOW], fmax(ends[WSS_END_EXPECTED], ends[WSS_END_HIGH]));

	printf("# %s: %.4g, expected %.4g, bounds %.4g to %.4g\n", what, truth,
	       ends[WSS_END_EXPECTED], low, high);
	if (fabs(ends[WSS_END_EXPECTED] - truth) > 0.1 * truth || low > 1.01 * truth ||
	    high < 0.99 * truth)
		fail_msg("%s: %g, expected %g, bounds %g to %g", what, truth,
			 ends[WSS_END_EXPECTED], low, high);
}

/* Compares the model with the simulation, both of which must converge. */
static struct source compare(struct guest guest, double bandwidth, bool throttles)
{
	static struct source source;
	struct wss_migration migration = migration_of(&guest, bandwidth);
	double bytes[WSS_ENDS], seconds[WSS_ENDS];

	source = (struct source){.guest = guest,
				 .bandwidth = bandwidth,
				 .throttles = throttles,
				 .downtime_s = WSS_MIGRATION_DOWNTIME_S};
	assert_true(source_migrate(&source, 1000));
	for (size_t end = 0; end < WSS_ENDS; end++) {
		struct wss_migration_run run =
			wss_migration_precopy(&migration, throttles, (enum wss_end)end);

		assert_true(run.converges);
		bytes[end] = run.bytes;
		seconds[end] = run.seconds - run.downtime_s;
	}
	assert_figure("bytes", bytes, source.bytes);
	assert_figure("seconds", seconds, source.seconds);
	return source;
}

/* A guest that writes nothing is sent once. */
TEST(test_idle)
{
	struct wss_migration_run run;
	struct wss_migration migration = migration_of(
		&(struct guest){.set = 1, .rate = 0, .content = PAGES / 4}, 20.0 * MIB);

	assert_int_equal(
		compare((struct guest){.set = 1, .content = PAGES / 4}, 20.0 * MIB, false).passes,
		2);
	run = wss_migration_precopy(&migration, false, WSS_END_EXPECTED);
	assert_int_equal(run.passes, 2);
	assert_true(run.downtime_s <= WSS_MIGRATION_DOWNTIME_S + 0.02);
	assert_int_equal(run.throttle_percent, 0);
}

/* Memory of zeros costs its headers. */
TEST(test_zeros)
{
	struct wss_migration migration = migration_of(&(struct guest){.set = 1}, 100.0 * MIB);
	struct wss_migration_run run = wss_migration_precopy(&migration, false, WSS_END_EXPECTED);

	assert_true(run.converges);
	assert_true(fabs(run.bytes - 9.0 * PAGES) < 1);
}

TEST(test_some_passes)
{
	/* 48 MiB at random, 10 MiB/s, and 20 MiB/s are sent. */
	assert_true(compare((struct guest){.set = 12288,
					   .rate = 2560,
					   .at_random = true,
					   .content = PAGES},
			    20.0 * MIB, false)
			    .passes > 3);
	/* The same in a loop, with half of the content. */
	compare((struct guest){.set = 12288, .rate = 2560, .content = PAGES / 2}, 20.0 * MIB,
		false);
	compare((struct guest){.set = 2048, .rate = 512, .content = PAGES / 2}, 8.0 * MIB, false);
}

/* A set that is smaller than the threshold is sent twice, however fast it is written. */
TEST(test_small_hot_set)
{
	compare((struct guest){.set = 1024, .rate = 1e5, .at_random = true, .content = PAGES / 2},
		20.0 * MIB, false);
}

/* A set that is written faster than it is sent. */
TEST(test_never)
{
	static struct source source;
	struct guest guest = {.set = 12288, .rate = 25600, .at_random = true, .content = PAGES};
	struct wss_migration migration = migration_of(&guest, 20.0 * MIB);
	struct wss_migration_run run = wss_migration_precopy(&migration, false, WSS_END_EXPECTED);
	double before;

	source = (struct source){.guest = guest, .bandwidth = 20.0 * MIB, .downtime_s = 0.3};
	assert_false(source_migrate(&source, 100));
	assert_false(run.converges);
	assert_true(run.downtime_s == 0);
	assert_int_equal(wss_migration_precopy(&migration, false, WSS_END_LOW).converges, false);
	assert_int_equal(wss_migration_precopy(&migration, false, WSS_END_HIGH).converges, false);
	/* The mean of the passes after the first, which took 6.4 s. */
	before = PAGES * 4104.0;
	printf("# pass: %g, expected %g\n", (source.bytes - before) / (source.passes - 1),
	       run.pass_bytes);
	assert_true(fabs((source.bytes - before) / (source.passes - 1) / run.pass_bytes - 1) < 0.1);
	assert_true(fabs(run.pass_bytes / run.pass_seconds / (20.0 * MIB) - 1) < 0.05);
}

/* No downtime that is too short for a page, and no link that is too slow for one, lets it end. */
TEST(test_less_than_a_page)
{
	static const struct guest guest = {
		.set = 12288, .rate = 25600, .at_random = true, .content = PAGES};
	static const struct {
		double bandwidth, downtime_s;
	} links[] = {{20.0 * MIB, 1e-6}, {50 * 1024.0, 0.001}, {1024, 0.3}, {1, 0.3}};

	for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++)
		for (size_t end = 0; end < WSS_ENDS; end++) {
			struct wss_migration migration = migration_of(&guest, links[i].bandwidth);

			migration.downtime_s = links[i].downtime_s;
			assert_false(wss_migration_precopy(&migration, false, (enum wss_end)end)
					     .converges);
		}
}

/* Slowing down the CPUs makes it converge. */
TEST(test_auto_converge)
{
	struct guest guest = {.set = 12288, .rate = 12000, .at_random = true, .content = PAGES};
	struct wss_migration migration = migration_of(&guest, 20.0 * MIB);
	struct wss_migration_run run = wss_migration_precopy(&migration, true, WSS_END_EXPECTED);
	struct source source;

	assert_false(wss_migration_precopy(&migration, false, WSS_END_EXPECTED).converges);
	source = compare(guest, 20.0 * MIB, true);
	printf("# throttle: %u, expected %u\n", source.throttle, run.throttle_percent);
	assert_true(source.throttle > 0 &&
		    abs((int)source.throttle - (int)run.throttle_percent) <= 10);
}

/* A throttle takes idle time first: these CPUs are busy for a fifth of the time. */
TEST(test_throttle_of_idle_cpus)
{
	struct guest guest = {.set = 12288, .rate = 12000, .at_random = true, .content = PAGES};
	struct wss_migration migration = migration_of(&guest, 20.0 * MIB);
	struct wss_migration_run busy = wss_migration_precopy(&migration, true, WSS_END_EXPECTED),
				 idle;

	migration.busy[WSS_END_EXPECTED] = 0.2;
	idle = wss_migration_precopy(&migration, true, WSS_END_EXPECTED);
	assert_true(busy.converges && idle.converges);
	assert_true(busy.throttle_percent < 80 && idle.throttle_percent > 80);
	assert_true(idle.bytes > busy.bytes);
	migration.busy[WSS_END_EXPECTED] = 0;
	assert_false(wss_migration_precopy(&migration, true, WSS_END_EXPECTED).converges);
}

/* The throttle has an end, and a guest may write too much even so. */
TEST(test_throttle_ends)
{
	struct guest guest = {.set = 24576, .rate = 1e7, .at_random = true, .content = PAGES};
	struct wss_migration migration = migration_of(&guest, 2.0 * MIB);
	struct wss_migration_run run = wss_migration_precopy(&migration, true, WSS_END_EXPECTED);

	assert_false(run.converges);
	assert_int_equal(run.throttle_percent, 99);
}

TEST(test_postcopy)
{
	struct guest guest = {.set = 12288, .rate = 25600, .at_random = true, .content = PAGES};
	struct wss_migration migration = migration_of(&guest, 20.0 * MIB);
	struct wss_migration_run run = wss_migration_postcopy(&migration, WSS_END_EXPECTED);

	assert_true(run.converges);
	/* All of the memory, and the set again, together with what was left. */
	assert_true(run.bytes > RAM + 48.0 * MIB - 6.0 * MIB && run.bytes < RAM + 60.0 * MIB);
	assert_true(run.downtime_s < 0.1);
	assert_true(run.pass_seconds > 2 && run.pass_seconds < 3);
}

/* A huge guest on a slow link takes years, but not to compute. */
TEST(test_slow_link)
{
	struct wss_migration migration = {.bandwidth = 1, .downtime_s = 1e-9, .ram_bytes = 0x1p44};
	struct wss_migration_run run;

	for (size_t end = 0; end < WSS_ENDS; end++) {
		migration.content_bytes[end] = 0x1p44;
		run = wss_migration_precopy(&migration, true, (enum wss_end)end);
		assert_true(run.seconds > 0x1p44);
	}
}

TEST(test_writes)
{
	struct wss_writes writes = {.n = 0};

	assert_true(wss_writes_at(&writes, 5, WSS_END_HIGH) == 0);
	assert_true(wss_writes_seconds(&writes) == 0);
	wss_writes_add(&writes, 0, 1, 1, 1);
	assert_int_equal(writes.n, 0);
	wss_writes_add(&writes, 1, 50, 100, 200);
	wss_writes_add(&writes, 2, 60, 150, 400);
	assert_true(wss_writes_at(&writes, 0, WSS_END_HIGH) == 0);
	assert_true(wss_writes_at(&writes, 0.5, WSS_END_LOW) == 25);
	assert_true(wss_writes_at(&writes, 0.5, WSS_END_EXPECTED) == 50);
	assert_true(wss_writes_at(&writes, 0.5, WSS_END_HIGH) == 200);
	assert_true(wss_writes_at(&writes, 1.5, WSS_END_EXPECTED) == 125);
	assert_true(wss_writes_at(&writes, 2, WSS_END_EXPECTED) == 150);
	/* Beyond the end: not at all, with the logarithm, along a line. */
	assert_true(wss_writes_at(&writes, 4, WSS_END_LOW) == 60);
	assert_true(wss_writes_at(&writes, 4, WSS_END_EXPECTED) == 200);
	assert_true(wss_writes_at(&writes, 4, WSS_END_HIGH) == 800);
	/* A set does not shrink, and a later point replaces the ones from there on. */
	wss_writes_add(&writes, 3, 10, 20, 30);
	assert_true(writes.points[2].bytes[WSS_END_EXPECTED] == 150);
	wss_writes_add(&writes, 1.5, 90, 80, 70);
	assert_int_equal(writes.n, 2);
	assert_true(writes.points[1].bytes[WSS_END_LOW] == 80);
	assert_true(writes.points[1].bytes[WSS_END_EXPECTED] == 100);
	assert_true(writes.points[1].bytes[WSS_END_HIGH] == 200);
}

/* The share of sampled pages that changed, with its error. */
TEST(test_sampled)
{
	struct wss_writes_point point = wss_writes_sampled(RAM, 4, 8, 4096);

	assert_true(point.seconds == 4);
	assert_true(point.bytes[WSS_END_EXPECTED] == 34.0 * MIB);
	/* A quarter of 512 pages, within two standard errors of 2 %, and the rounding. */
	assert_true(fabs(point.bytes[WSS_END_LOW] / MIB - 27.1) < 0.2);
	assert_true(fabs(point.bytes[WSS_END_HIGH] / MIB - 40.9) < 0.2);
	point = wss_writes_sampled(RAM, 1, 0, 512);
	assert_true(point.bytes[WSS_END_LOW] == 0 && point.bytes[WSS_END_HIGH] > 1.0 * MIB);
	point = wss_writes_sampled(RAM, 60, UINT64_MAX / 2, 1);
	assert_true(point.bytes[WSS_END_LOW] <= RAM && point.bytes[WSS_END_HIGH] == RAM);
}

TEST(test_combine)
{
	static const struct wss_curve_point touched[] = {
		{.ns = 500000000, .bytes = 20},
		{.ns = 1000000000, .bytes = 40},
		{.ns = 2000000000, .bytes = 60, .low_bytes = 50, .high_bytes = 90},
	};
	static const struct wss_writes_point measured[] = {
		{1, {8, 10, 12}}, {2, {16, 18, 20}}, {4, {28, 30, 32}}};
	struct wss_writes writes;

	/* Nothing is known about writes, so all that is touched may be written. */
	wss_writes_combine(&writes, touched, 3, NULL, 0);
	assert_int_equal(writes.n, 3);
	assert_true(wss_writes_at(&writes, 2, WSS_END_LOW) == 0);
	assert_true(wss_writes_at(&writes, 2, WSS_END_EXPECTED) == 90);
	/* Before the first figure it has the shape of what is touched. */
	wss_writes_combine(&writes, touched, 3, measured, 3);
	assert_int_equal(writes.n, 4);
	assert_true(wss_writes_at(&writes, 0.5, WSS_END_LOW) == 4);
	assert_true(wss_writes_at(&writes, 0.5, WSS_END_EXPECTED) == 5);
	assert_true(wss_writes_at(&writes, 0.5, WSS_END_HIGH) == 20);
	assert_true(wss_writes_at(&writes, 2, WSS_END_EXPECTED) == 18);
	/* The figure is below the low bound, 50 to 90, of what was touched. */
	assert_true(wss_writes_at(&writes, 2, WSS_END_HIGH) == 50);
	/* Beyond the window nothing bounds it but what was measured. */
	assert_true(wss_writes_at(&writes, 4, WSS_END_EXPECTED) == 30);
	assert_true(wss_writes_at(&writes, 4, WSS_END_HIGH) == 50);
	wss_writes_combine(&writes, NULL, 0, measured, 3);
	assert_int_equal(writes.n, 3);
	assert_true(wss_writes_at(&writes, 0.5, WSS_END_HIGH) == 12);
	wss_writes_combine(&writes, NULL, 0, NULL, 0);
	assert_int_equal(writes.n, 0);
}

/* Feeds windows of one second, which write to the pages of one run each; the one at degraded is so. */
static void feed(struct wss_recorded_writes *writes, enum wss_written meaning,
		 const struct wss_run *runs, size_t n, size_t degraded)
{
	struct wss_pageset *touched = wss_pageset_new(PAGES), *written = wss_pageset_new(PAGES);
	struct wss_pageset *ballooned = wss_pageset_new(PAGES);
	struct wss_recording_sets sets = {touched, written, ballooned};

	wss_pageset_add(ballooned, PAGES - 10, 10);
	for (size_t i = 0; i < n; i++) {
		struct wss_interval interval = {.written = meaning,
						.start_ns = i * 1000000000ULL,
						.end_ns = (i + 1) * 1000000000ULL};

		interval.gap = !runs[i].n;
		interval.degraded = i == degraded;
		if (!interval.gap) {
			/* As in a file, only what comes is announced: here all of it, which is
			 * harmless. */
			wss_pageset_remove(touched, 0, PAGES);
			wss_pageset_remove(written, 0, PAGES);
			wss_pageset_add(touched, runs[i].first, 2 * runs[i].n);
			wss_pageset_add(written, runs[i].first, runs[i].n);
			assert_int_equal(wss_recorded_writes_change(
						 writes, WSS_CHANGE_TOUCHED,
						 (struct wss_run){runs[i].first, 2 * runs[i].n},
						 NULL),
					 0);
			assert_int_equal(wss_recorded_writes_change(writes, WSS_CHANGE_WRITTEN,
								    runs[i], NULL),
					 0);
			assert_int_equal(wss_recorded_writes_change(writes, WSS_CHANGE_UNWRITTEN,
								    runs[i], NULL),
					 0);
		}
		assert_int_equal(wss_recorded_writes_end(writes, &interval, &sets, NULL), 0);
	}
	wss_pageset_free(touched);
	wss_pageset_free(written);
	wss_pageset_free(ballooned);
}

static struct wss_recorded_result recorded_but(enum wss_written meaning, const struct wss_run *runs,
					       size_t n, size_t degraded)
{
	static struct wss_recording recording = {.n_regions = 1, .window_ns = 1000000000};
	struct wss_recorded_writes *writes;
	struct wss_recorded_result result;

	recording.regions[0].length = PAGES * 4096;
	assert_int_equal(wss_recorded_writes_new(&recording, NULL, &writes, NULL), 0);
	feed(writes, meaning, runs, n, degraded);
	wss_recorded_writes_result(writes, &result);
	wss_recorded_writes_free(writes);
	return result;
}

static struct wss_recorded_result recorded(enum wss_written meaning, const struct wss_run *runs,
					   size_t n)
{
	return recorded_but(meaning, runs, n, SIZE_MAX);
}

/* The union over successive windows of a recording. */
TEST(test_recorded)
{
	/* Four windows of 10 pages each, two of them the same; then a gap, and three more. */
	static const struct wss_run runs[] = {{0, 10}, {100, 10}, {0, 10}, {200, 20},
					      {0, 0},  {300, 5},  {0, 10}, {0, 10}};
	struct wss_recorded_result result = recorded(WSS_WRITTEN_EXACT, runs, 8);

	assert_int_equal(result.writes.n, 2);
	assert_true(result.ram_bytes == RAM);
	assert_true(result.ballooned_bytes == 10 * 4096);
	assert_true(result.touched_bytes == (20 + 20 + 40 + 10) * 4096);
	assert_true(wss_writes_at(&result.writes, 1, WSS_END_LOW) == 5 * 4096);
	assert_true(wss_writes_at(&result.writes, 1, WSS_END_HIGH) == 20 * 4096);
	assert_true(fabs(wss_writes_at(&result.writes, 1, WSS_END_EXPECTED) - 75.0 / 7 * 4096) < 1);
	/* The gap has ended the second succession. */
	assert_true(wss_writes_seconds(&result.writes) == 4);
	assert_true(wss_writes_at(&result.writes, 4, WSS_END_LOW) == 40 * 4096);
	assert_true(wss_writes_at(&result.writes, 4, WSS_END_HIGH) == 40 * 4096);
	/* Other meanings leave a bound open. */
	result = recorded(WSS_WRITTEN_LOW, runs, 4);
	assert_true(wss_writes_at(&result.writes, 4, WSS_END_LOW) == 40 * 4096);
	assert_true(wss_writes_at(&result.writes, 4, WSS_END_EXPECTED) == 80 * 4096);
	result = recorded(WSS_WRITTEN_HIGH, runs, 4);
	assert_true(wss_writes_at(&result.writes, 4, WSS_END_LOW) == 0);
	assert_true(wss_writes_at(&result.writes, 4, WSS_END_HIGH) == 40 * 4096);
	result = recorded(WSS_WRITTEN_ABSENT, runs, 4);
	assert_true(wss_writes_at(&result.writes, 4, WSS_END_LOW) == 0);
	assert_true(wss_writes_at(&result.writes, 4, WSS_END_HIGH) == 80 * 4096);
}

/* Pages are missing in a degraded window, whose meaning of writes may be another, too. */
TEST(test_recorded_degraded)
{
	static const struct wss_run runs[] = {{0, 10},	 {100, 10}, {500, 1}, {0, 10},
					      {200, 20}, {300, 10}, {0, 10}};
	struct wss_recorded_result result = recorded_but(WSS_WRITTEN_EXACT, runs, 7, 2);

	assert_int_equal(result.n_windows, 6);
	assert_int_equal(result.n_degraded, 1);
	/* The least of the others; and only those after it are four in succession. */
	assert_true(wss_writes_at(&result.writes, 1, WSS_END_LOW) == 10 * 4096);
	assert_true(wss_writes_at(&result.writes, 1, WSS_END_HIGH) == 20 * 4096);
	assert_int_equal(result.writes.n, 2);
	assert_true(wss_writes_seconds(&result.writes) == 4);
	assert_true(wss_writes_at(&result.writes, 4, WSS_END_LOW) == 40 * 4096);
	result = recorded_but(WSS_WRITTEN_EXACT, runs, 1, 0);
	assert_int_equal(result.n_windows, 0);
	assert_int_equal(result.n_degraded, 1);
	assert_int_equal(result.writes.n, 0);
}

static enum wss_migration_ends judged(const struct wss_migration *migration)
{
	struct wss_migration_run runs[WSS_ENDS];

	for (int end = 0; end < WSS_ENDS; end++)
		runs[end] = wss_migration_precopy(migration, false, (enum wss_end)end);
	/* What a mean makes of it. */
	assert_true(runs[WSS_END_EXPECTED].converges && !runs[WSS_END_HIGH].converges);
	return wss_migration_judge(migration, false, runs);
}

/* As migrate-estimate judges a recording, over a link of 16 MiB/s. */
static enum wss_migration_ends judged_recording(enum wss_written meaning,
						const struct wss_run *runs, size_t n)
{
	struct wss_recorded_result result = recorded(meaning, runs, n);
	const struct wss_migration migration = {
		.bandwidth = 16.0 * MIB,
		.downtime_s = 0.3,
		.ram_bytes = RAM,
		.content_bytes = {RAM, RAM, RAM},
		.writes = result.writes,
		.busy = {1, 1, 0},
		.n_windows = result.n_windows,
		.fastest = wss_writes_fastest(result.writes.points, result.writes.n, WSS_END_HIGH)};

	assert_int_equal(result.n_windows, n);
	return judged(&migration);
}

/* The mean converges, but the window with most writes does not. */
TEST(test_worst_window_judges)
{
	struct wss_run rising[64], rhythmic[64], once = {0, 1984};

	for (uint64_t i = 0; i < 64; i++) {
		uint64_t first = i % 6 * 5000;

		/* To 20 MiB/s; and 18 MiB/s for a second in eight. */
		rising[i] = (struct wss_run){first, (i + 1) * 80};
		rhythmic[i] = (struct wss_run){first, i % 8 ? 100 : 4608};
	}
	assert_int_equal(judged_recording(WSS_WRITTEN_EXACT, rising, 64), WSS_MIGRATION_UNLIKELY);
	assert_int_equal(judged_recording(WSS_WRITTEN_EXACT, rhythmic, 64), WSS_MIGRATION_UNLIKELY);
	/* All that is touched may be written. */
	assert_int_equal(judged_recording(WSS_WRITTEN_ABSENT, &once, 1), WSS_MIGRATION_UNLIKELY);
}

/* What is likely needs windows, and a quarter of room above the worst of them. */
TEST(test_likely_needs_windows)
{
	struct wss_migration migration = {.bandwidth = 16.0 * MIB,
					  .downtime_s = 0.3,
					  .ram_bytes = RAM,
					  .content_bytes = {RAM, RAM, RAM},
					  .busy = {1, 1, 0},
					  .fastest = 12.0 * MIB,
					  .n_windows = WSS_MIGRATION_WINDOWS_MIN};
	struct wss_migration_run runs[WSS_ENDS] = {
		{.converges = true}, {.converges = true}, {.converges = true}};

	wss_writes_add(&migration.writes, 1, 0, 5.0 * MIB, 30.0 * MIB);
	assert_int_equal(judged(&migration), WSS_MIGRATION_LIKELY);
	migration.n_windows--;
	assert_int_equal(judged(&migration), WSS_MIGRATION_UNKNOWN);
	migration.n_windows = 1;
	migration.fastest = 0;
	assert_int_equal(judged(&migration), WSS_MIGRATION_UNKNOWN);
	migration.n_windows = 1000;
	migration.fastest = 14.0 * MIB;
	assert_int_equal(judged(&migration), WSS_MIGRATION_UNLIKELY);
	assert_int_equal(wss_migration_judge(&migration, false, runs), WSS_MIGRATION_ENDS);
	runs[WSS_END_EXPECTED].converges = runs[WSS_END_HIGH].converges = false;
	assert_int_equal(wss_migration_judge(&migration, false, runs), WSS_MIGRATION_UNLIKELY);
	runs[WSS_END_LOW].converges = false;
	assert_int_equal(wss_migration_judge(&migration, false, runs), WSS_MIGRATION_NEVER);
}

int main(void)
{
	return tests_run();
}
