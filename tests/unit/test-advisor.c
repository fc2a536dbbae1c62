/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The advisor and the metrics of invented guests. With WSS_PAGES set to a directory, the pages of metrics
 * with as many series as there can be are left there.
 */
#include "invented.h"

#include <inttypes.h>
#include <sqlite3.h>

#include "balloon/look.h"
#include "history/history.h"
#include "serve/guest-metrics.h"
#include "serve/guests-page.h"
#include "serve/host-page.h"
#include "watch/advisor.h"
#include "watch/watch.h"

#define PATIENCE_NS (300 * WSS_NS_PER_S)
#define HOST_BYTES (4096 * WSS_MIB)

static char *tree;
static char path[PATH_MAX];
static struct wss_history *history;
static struct wss_watch_options options;
static struct wss_hypervisor *hypervisor;
static struct wss_watch *watch;
static struct wss_advisor *advisor;
static struct wss_cancel cancel;
static unsigned samples;

static void on_sample(const struct wss_watched *guest, const struct wss_sample *sample,
		      void *unused)
{
	samples++;
}

/* What else is read: how often, and whether it fails. */
static struct {
	unsigned calls;
	bool fails;
} more;

static int read_more(const char *uuid, void *opaque, struct wss_error *err)
{
	assert_ptr_equal(opaque, &more);
	assert_non_null(wss_advisor_find(advisor, uuid));
	more.calls++;
	return more.fails ? wss_error_set(err, WSS_ERR_FAILED, "invented") : 0;
}

static void advisor_begin(void)
{
	struct wss_advisor_options advice;

	wss_advisor_options_init(&advice);
	assert_true(advice.host_bytes.known && advice.host_bytes.value > 64 * WSS_MIB);
	advice.host_bytes = wss_amount_of(HOST_BYTES);
	advice.period_ns = 0;
	advice.pauses = 0;
	advice.read_more = read_more;
	advice.opaque = &more;
	more.calls = 0;
	advisor = wss_advisor_new(history, &advice);
	assert_non_null(advisor);
}

static void watch_begin(void)
{
	static const struct wss_watch_events events = {.sample = on_sample};

	samples = 0;
	wss_watch_options_init(&options);
	wss_measure_options_init(&options.measure, 20 * MS);
	options.measure.method = &method_ops;
	options.canary_ns = 10 * MS;
	options.period_ns = 100 * MS;
	options.boot_ns = 0;
	options.budget.guest_share = 1;
	options.budget.stall_ns = 100 * MS;
	assert_int_equal(wss_cancel_open(&cancel, NULL, NULL), 0);
	options.cancel = &cancel;
	hypervisor = hypervisor_new();
	assert_int_equal(wss_watch_new_with(hypervisor, &options, &events, NULL, &watch, NULL), 0);
}

/* What guests report that they cannot give up. */
static struct wss_amount unreclaimable;

static int set_up(void **unused)
{
	unreclaimable = wss_amount_of(WSS_MIB);
	tree = make_tree();
	make_path(path, "%s/history.db", tree);
	assert_int_equal(wss_history_open(path, &history, NULL), 0);
	return patient_begin(unused);
}

static void end(void)
{
	uint64_t end_ns = wss_clock_now_ns() + PATIENCE_NS;

	go_on = true;
	wss_cancel_request(&cancel);
	while (wss_watch_step(watch))
		assert_true(wss_clock_now_ns() < end_ns);
	wss_watch_free(watch);
	wss_advisor_free(advisor);
	wss_hypervisor_unref(hypervisor);
	forget();
	wss_cancel_close(&cancel);
}

static int tear_down(void **unused)
{
	patient_end(unused);
	wss_history_close(history);
	remove_tree(tree);
	return 0;
}

#define STEP_UNTIL(condition)                                            \
	do {                                                             \
		uint64_t step_end_ns = wss_clock_now_ns() + PATIENCE_NS; \
		while (!(condition)) {                                   \
			assert_true(wss_watch_step(watch));              \
			if (wss_clock_now_ns() >= step_end_ns)           \
				fail_msg("never came: %s", #condition);  \
		}                                                        \
	} while (0)

/* As many hours, back from now, each with one window; the host holds 900 MiB of the guest. */
static void add_hours(const char *uuid, unsigned n, uint64_t wss_mib)
{
	for (unsigned i = 1; i <= n; i++) {
		struct wss_sample sample = {
			.wall = wss_clock_wall_seconds() - (time_t)i * 3600,
			.method = "mmu",
			.granularity_bytes = wss_amount_of(4096),
			.requested_window_ns = 4 * WSS_NS_PER_S,
			.wss_bytes = wss_amount_of(wss_mib * WSS_MIB),
			.low_bytes = wss_amount_of(wss_mib * WSS_MIB),
			.high_bytes = wss_amount_of(wss_mib * WSS_MIB),
			.memory = {.rss_bytes = wss_amount_of(900 * WSS_MIB),
				   .balloon_bytes = wss_amount_of(1024 * WSS_MIB),
				   .unreclaimable_bytes = unreclaimable,
				   .reserve_bytes = wss_amount_of(20 * WSS_MIB),
				   .maximum_bytes = wss_amount_of(1024 * WSS_MIB),
				   .qemu_bytes = wss_amount_of(10 * WSS_MIB)},
		};
		struct wss_error err = WSS_ERROR_INIT;

		snprintf(sample.domain, sizeof(sample.domain), "guest");
		snprintf(sample.uuid, sizeof(sample.uuid), "%s", uuid);
		for (uint64_t ns = WSS_NS_PER_MS; ns < 4 * WSS_NS_PER_S; ns *= 2)
			wss_sample_curve_add(&sample, ns, wss_mib * WSS_MIB);
		wss_sample_curve_add(&sample, 4 * WSS_NS_PER_S, wss_mib * WSS_MIB);
		if (wss_history_add(history, &sample, &err) < 0)
			fail_msg("%s", err.text);
	}
}

/* A whole pass; returns how it ended. */
static int pass(void)
{
	int r = 0;
	bool failed = false;

	for (size_t i = 0; i <= wss_watch_count(watch); i++) {
		r = wss_advisor_step(advisor, watch, NULL);
		failed |= r < 0;
	}
	return failed ? -1 : r;
}

TEST(test_recommends_what_recommend_does)
{
	static const struct wss_advice_options asked = WSS_ADVICE_OPTIONS_INIT;
	const struct wss_policy policy = {.opt_out = false};
	const struct wss_advice_guest guest = {
		.uuid = guests[0].uuid, .active = true, .policy = &policy};
	const struct wss_advised *advised;
	struct wss_advice advice;

	invent_guests(3);
	add_hours(guests[0].uuid, 100, 500);
	add_hours(guests[1].uuid, 4, 500);
	watch_begin();
	advisor_begin();
	/* Not before the guests are known. */
	assert_int_equal(wss_advisor_step(advisor, watch, NULL), 0);
	assert_null(wss_advisor_host(advisor));
	STEP_UNTIL(wss_watch_listed(watch));
	assert_null(wss_advisor_find(advisor, guests[0].uuid));
	assert_int_equal(pass(), 1);
	advised = wss_advisor_find(advisor, guests[0].uuid);
	assert_int_equal(wss_advice_read(history, &guest,
					 wss_advice_since(&asked, wss_clock_wall_seconds()), &asked,
					 &advice, NULL),
			 0);
	assert_int_equal(advised->status, WSS_ADVICE_OK);
	assert_int_equal(advised->recommended_bytes.value, advice.sizing.recommended_bytes.value);
	/* 1.5 times its set, and what its kernel keeps. */
	assert_int_equal(advised->recommended_bytes.value, (750 + 20) * WSS_MIB);
	assert_int_equal(advised->beyond_bytes.value, (900 - 770) * WSS_MIB);
	assert_true(advised->recommended_bytes.value > 500 * WSS_MIB);
	assert_int_equal(advised->p95_bytes.value, advice.sizing.p95_bytes.value);
	assert_int_equal(advised->peak_bytes.value, advice.sizing.peak_bytes.value);
	assert_int_equal(advised->windows, 100);
	assert_int_equal(advised->first, advice.series.summary.first);
	assert_true(advised->n_why > 0 && *advised->why[0]);
	wss_advice_free(&advice);
	/* What is not known is absent. */
	advised = wss_advisor_find(advisor, guests[1].uuid);
	assert_int_equal(advised->status, WSS_ADVICE_TOO_EARLY);
	assert_false(advised->recommended_bytes.known || advised->p50_bytes.known);
	assert_int_equal(advised->windows, 4);
	advised = wss_advisor_find(advisor, guests[2].uuid);
	assert_int_equal(advised->status, WSS_ADVICE_UNKNOWN);
	assert_false(advised->beyond_bytes.known);
	assert_int_equal(advised->windows, 0);
	assert_int_equal(advised->n_why, 1);
	assert_string_equal(advised->why[0],
			    "its history has no windows yet that show what it reads");
	end();
}

TEST(test_host)
{
	const struct wss_host_sum *sum;

	invent_guests(2);
	for (size_t i = 0; i < 2; i++)
		add_hours(guests[i].uuid, 100, 500);
	watch_begin();
	advisor_begin();
	STEP_UNTIL(wss_watch_listed(watch));
	assert_int_equal(pass(), 1);
	sum = wss_advisor_host(advisor);
	assert_int_equal(sum->guests, 2);
	assert_int_equal(sum->unsized, 0);
	assert_int_equal(sum->assigned_bytes.value, 2048 * WSS_MIB);
	assert_in_range(sum->needed_bytes.value, 1000 * WSS_MIB, 1020 * WSS_MIB);
	assert_int_equal(sum->fits_bytes.value,
			 HOST_BYTES - sum->needed_bytes.value - 20 * WSS_MIB);
	/* The next pass forgets a guest that is gone. */
	guests[1].gone = true;
	STEP_UNTIL(wss_watch_count(watch) == 1);
	assert_int_equal(pass(), 1);
	sum = wss_advisor_host(advisor);
	assert_in_range(sum->needed_bytes.value, 500 * WSS_MIB, 510 * WSS_MIB);
	assert_null(wss_advisor_find(advisor, guests[1].uuid));
	/* A host without guests has all of its memory to give. */
	guests[0].gone = true;
	STEP_UNTIL(wss_watch_count(watch) == 0);
	assert_int_equal(pass(), 1);
	assert_int_equal(wss_advisor_host(advisor)->fits_bytes.value, HOST_BYTES);
	end();
}

/* A guest without a size counts with all of its memory; one of which not even that is known is counted only. */
TEST(test_host_with_an_unsized_guest)
{
	const struct wss_host_sum *sum;

	invent_guests(2);
	add_hours(guests[0].uuid, 100, 500);
	guests[1].touched = wss_pageset_new(64 * WSS_MIB / 4096);
	watch_begin();
	wss_watch_hold(watch, "a test");
	advisor_begin();
	STEP_UNTIL(wss_watch_listed(watch));
	assert_int_equal(pass(), 1);
	sum = wss_advisor_host(advisor);
	assert_int_equal(sum->unsized, 1);
	assert_int_equal(sum->unknown_memory, 1);
	assert_true(sum->assigned_bytes.known && sum->host_bytes.known);
	assert_in_range(sum->needed_bytes.value, 500 * WSS_MIB, 510 * WSS_MIB);
	assert_int_equal(sum->fits_bytes.value,
			 HOST_BYTES - sum->needed_bytes.value - 10 * WSS_MIB);
	/* Once its windows have shown it. */
	wss_watch_hold(watch, NULL);
	STEP_UNTIL(samples >= 6);
	assert_int_equal(pass(), 1);
	sum = wss_advisor_host(advisor);
	assert_int_equal(sum->unsized, 1);
	assert_int_equal(sum->unknown_memory, 0);
	assert_in_range(sum->needed_bytes.value, 564 * WSS_MIB, 574 * WSS_MIB);
	assert_true(sum->fits_bytes.known);
	end();
	wss_pageset_free(guests[1].touched);
}

/* Guests of which only the working sets are known count with all of their memory, also where none has a size. */
TEST(test_host_of_guests_without_a_size)
{
	const struct wss_host_sum *sum;

	invent_guests(2);
	unreclaimable.known = false;
	for (size_t i = 0; i < 2; i++)
		add_hours(guests[i].uuid, 100, 500);
	watch_begin();
	advisor_begin();
	STEP_UNTIL(wss_watch_listed(watch));
	assert_int_equal(pass(), 1);
	assert_int_equal(wss_advisor_find(advisor, guests[0].uuid)->status, WSS_ADVICE_NO_SIZE);
	sum = wss_advisor_host(advisor);
	assert_int_equal(sum->unsized, 2);
	assert_int_equal(sum->needed_bytes.value, 2048 * WSS_MIB);
	assert_true(sum->fits_bytes.known);
	end();
}

TEST(test_a_damaged_history)
{
	sqlite3 *db;

	invent_guests(2);
	add_hours(guests[0].uuid, 100, 500);
	add_hours(guests[1].uuid, 100, 500);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db,
				      "UPDATE summary SET sizes = x'ff' WHERE series_id IN "
				      "(SELECT id FROM series WHERE guest_id = "
				      "(SELECT min(id) FROM guest))",
				      NULL, NULL, NULL),
			 SQLITE_OK);
	sqlite3_close(db);
	watch_begin();
	advisor_begin();
	STEP_UNTIL(wss_watch_listed(watch));
	assert_int_equal(pass(), -1);
	assert_int_equal(wss_advisor_find(advisor, guests[0].uuid)->status, WSS_ADVICE_FAILED);
	assert_int_equal(wss_advisor_find(advisor, guests[1].uuid)->status, WSS_ADVICE_OK);
	end();
}

/* The advice does not need what else is read. */
TEST(test_reads_more)
{
	invent_guests(2);
	add_hours(guests[0].uuid, 100, 500);
	watch_begin();
	advisor_begin();
	STEP_UNTIL(wss_watch_listed(watch));
	assert_int_equal(pass(), 1);
	assert_int_equal(more.calls, 2);
	more.fails = true;
	assert_int_equal(pass(), -1);
	assert_int_equal(more.calls, 4);
	assert_int_equal(wss_advisor_find(advisor, guests[0].uuid)->status, WSS_ADVICE_OK);
	more.fails = false;
	assert_int_equal(pass(), 1);
	end();
}

/* A guest that had too few windows for a size waits for no whole period once it has enough. */
TEST(test_a_guest_that_comes_of_age)
{
	struct wss_advisor_options patient;

	invent_guests(1);
	watch_begin();
	wss_advisor_options_init(&patient);
	patient.pauses = 0;
	patient.look_ns = 0;
	advisor = wss_advisor_new(history, &patient);
	STEP_UNTIL(wss_watch_listed(watch));
	assert_int_equal(pass(), 1);
	assert_int_equal(wss_advisor_find(advisor, guests[0].uuid)->status, WSS_ADVICE_UNKNOWN);
	STEP_UNTIL(samples >= 2);
	assert_int_equal(pass(), 0);
	STEP_UNTIL(wss_watch_guest(watch, 0)->windows >= WSS_ADVISOR_WINDOWS);
	add_hours(guests[0].uuid, 100, 500);
	assert_int_equal(pass(), 1);
	assert_int_equal(wss_advisor_find(advisor, guests[0].uuid)->status, WSS_ADVICE_OK);
	/* Only once. */
	assert_int_equal(pass(), 0);
	end();
}

/* A guest whose memory the host's sums lack waits for no whole period either once it has been looked at. */
TEST(test_a_guest_whose_memory_becomes_known)
{
	struct wss_advisor_options patient;

	invent_guests(1);
	guests[0].touched = wss_pageset_new(64 * WSS_MIB / 4096);
	watch_begin();
	wss_watch_hold(watch, "a test");
	wss_advisor_options_init(&patient);
	patient.pauses = 0;
	patient.look_ns = 0;
	advisor = wss_advisor_new(history, &patient);
	STEP_UNTIL(wss_watch_listed(watch));
	assert_int_equal(pass(), 1);
	assert_int_equal(wss_advisor_host(advisor)->unknown_memory, 1);
	assert_int_equal(pass(), 0);
	wss_watch_hold(watch, NULL);
	STEP_UNTIL(wss_watch_guest(watch, 0)->maximum_bytes.known);
	assert_int_equal(pass(), 1);
	assert_int_equal(wss_advisor_host(advisor)->unknown_memory, 0);
	assert_int_equal(pass(), 0);
	end();
	wss_pageset_free(guests[0].touched);
}

/* --- metrics --- */

/* Everything that a window can show. */
static void fill_guest(void)
{
	struct wss_watched *guest = (struct wss_watched *)wss_watch_guest(watch, 0);
	struct wss_sample *sample = &guest->sample;
	const struct wss_amount some = wss_amount_of(512 * WSS_MIB);

	sample->low_bytes = sample->written_bytes = some;
	sample->written_low_bytes = sample->written_high_bytes = some;
	sample->high_bytes = sample->wss_bytes = wss_amount_of(1024 * WSS_MIB);
	sample->memory.maximum_bytes = sample->memory.balloon_bytes = sample->memory.rss_bytes =
		some;
	sample->memory.pss_bytes = sample->memory.swap_bytes = sample->memory.huge_bytes =
		sample->memory.qemu_bytes = some;
	sample->n_curve = 0;
	for (uint64_t ns = MS; ns < 100 * WSS_NS_PER_S; ns *= 2)
		wss_sample_curve_add(sample, ns, WSS_MIB);
}

static char *page_of(enum wss_metrics_form form, enum wss_metrics_level level)
{
	const struct wss_service_facts facts = {.options = &options,
						.level = level,
						.advisor = advisor,
						.connected = true,
						.http = true,
						.http_up = true,
						.http_starts = 1};
	const char *directory = getenv("WSS_PAGES");
	char *page, name[PATH_MAX];
	size_t size;
	FILE *stream = open_memstream(&page, &size);

	assert_non_null(stream);
	wss_metrics_write(stream, form, watch, &facts);
	fclose(stream);
	if (directory) {
		snprintf(name, sizeof(name), "%s/%d%s", directory, level + 1,
			 form == WSS_METRICS_OPENMETRICS ? ".openmetrics" : ".prometheus");
		stream = fopen(name, "w");
		assert_non_null(stream);
		fwrite(page, size, 1, stream);
		fclose(stream);
	}
	return page;
}

/* Returns how many series the guest has; ret_found: whether a line has that part. */
static unsigned count_series(enum wss_metrics_level level, const char *part, bool *ret_found)
{
	char *page = page_of(WSS_METRICS_PROMETHEUS, level), *rest;
	unsigned n = 0;

	*ret_found = strstr(page, part) != NULL;
	for (char *line = strtok_r(page, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		n += strstr(line, guests[0].uuid) != NULL;
	free(page);
	free(page_of(WSS_METRICS_OPENMETRICS, level));
	return n;
}

/* Returns the value of the first guest's only series of a metric. */
static long value_of(const char *metric)
{
	char *page = page_of(WSS_METRICS_PROMETHEUS, WSS_METRICS_FULL), start[160];
	const char *found;
	long value;

	snprintf(start, sizeof(start), "\n%s{domain=\"%s\",uuid=\"%s\"} ", metric, guests[0].name,
		 guests[0].uuid);
	found = strstr(page, start);
	if (!found)
		fail_msg("no %s", metric);
	value = strtol(found + strlen(start), NULL, 10);
	free(page);
	return value;
}

static uint64_t later_ns(void *opaque)
{
	return *(const uint64_t *)opaque;
}

static void later_sleep_until_ns(void *opaque, uint64_t when_ns)
{
	assert_true(when_ns > 0);
}

/* Lets a bit more than a day pass in which nothing is measured, until wss_clock_inject(NULL). No window may be open. */
static void later_begin(void)
{
	static uint64_t at_ns;
	static const struct wss_clock_source source = {
		.now_ns = later_ns, .sleep_until_ns = later_sleep_until_ns, .opaque = &at_ns};

	at_ns = wss_clock_now_ns() + 25 * 3600 * WSS_NS_PER_S;
	wss_clock_inject(&source);
}

/* A guest that is paused holds what it has, also if it was never measured. */
TEST(test_host_with_a_paused_guest)
{
	const struct wss_host_sum *sum;
	char *page;

	invent_guests(3);
	add_hours(guests[0].uuid, 100, 500);
	guests[1].state = WSS_GUEST_PAUSED;
	guests[1].touched = wss_pageset_new(64 * WSS_MIB / 4096);
	/* Nothing is known of this one. */
	guests[2].hang = HANG_OPEN;
	watch_begin();
	advisor_begin();
	STEP_UNTIL(wss_watch_count(watch) == 3 &&
		   wss_watch_guest(watch, 1)->state == WSS_WATCHED_PAUSED);
	assert_int_equal(pass(), 1);
	sum = wss_advisor_host(advisor);
	assert_int_equal(sum->guests, 3);
	assert_int_equal(sum->paused, 1);
	assert_int_equal(sum->unknown_memory, 1);
	assert_in_range(sum->needed_bytes.value, 564 * WSS_MIB, 574 * WSS_MIB);
	assert_true(sum->fits_bytes.known);
	page = page_of(WSS_METRICS_PROMETHEUS, WSS_METRICS_MINIMAL);
	assert_non_null(strstr(page, "virt_wss_host_unknown_guests 1\n"));
	assert_non_null(strstr(page, "state=\"paused\""));
	/* Its source does not say what the balloon leaves it. */
	assert_null(strstr(page, "virt_wss_balloon_bytes{domain=\"guest1\""));
	free(page);
	/* It goes on. */
	guests[1].state = WSS_GUEST_RUNNING;
	STEP_UNTIL(wss_watch_guest(watch, 1)->measured);
	assert_int_not_equal(wss_watch_guest(watch, 1)->state, WSS_WATCHED_PAUSED);
	guests[2].hang = HANG_NOWHERE;
	end();
	wss_pageset_free(guests[1].touched);
}

TEST(test_host_whose_guests_are_all_paused)
{
	const struct wss_host_sum *sum;

	invent_guests(1);
	add_hours(guests[0].uuid, 100, 500);
	guests[0].state = WSS_GUEST_PAUSED;
	guests[0].touched = wss_pageset_new(64 * WSS_MIB / 4096);
	watch_begin();
	advisor_begin();
	STEP_UNTIL(wss_watch_count(watch) == 1 &&
		   wss_watch_guest(watch, 0)->state == WSS_WATCHED_PAUSED);
	assert_int_equal(pass(), 1);
	sum = wss_advisor_host(advisor);
	assert_true(sum->needed_bytes.known && sum->fits_bytes.known);
	assert_int_equal(sum->needed_bytes.value, 64 * WSS_MIB);
	end();
	wss_pageset_free(guests[0].touched);
}

/* The series that pages have shown of a guest so far, without their values. */
struct seen {
	char *series[64];
	unsigned n, infos;
};

static void seen_add(struct seen *seen, const char *uuid)
{
	char *page = page_of(WSS_METRICS_PROMETHEUS, WSS_METRICS_FULL), *rest;

	for (char *line = strtok_r(page, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		char *end = strrchr(line, ' ');
		unsigned i = 0;

		if (!strstr(line, uuid) || line[0] == '#')
			continue;
		*end = '\0';
		while (i < seen->n && strcmp(seen->series[i], line) != 0)
			i++;
		if (i < seen->n)
			continue;
		assert_true(seen->n < 64);
		seen->series[seen->n++] = strdup(line);
		seen->infos += strstr(line, "virt_wss_domain_info{") == line;
	}
	free(page);
}

/* Whatever its windows are like, a guest is one series of each metric: a store keeps each for
 * years. */
TEST(test_a_guest_is_always_the_same_series)
{
	struct seen seen = {.n = 0};
	struct wss_watched *guest;
	struct wss_advised *advised;
	const struct wss_watched *other;

	invent_guests(2);
	guests[0].touched = wss_pageset_new(64 * WSS_MIB / 4096);
	assert_int_equal(wss_pageset_add(guests[0].touched, 1024, 256), 256);
	add_hours(guests[0].uuid, 100, 500);
	watch_begin();
	advisor_begin();
	STEP_UNTIL(wss_watch_listed(watch));
	seen_add(&seen, guests[0].uuid);
	STEP_UNTIL(wss_watch_guest(watch, 0)->windows == 1);
	seen_add(&seen, guests[0].uuid);
	STEP_UNTIL(wss_watch_guest(watch, 0)->windows >= 2 &&
		   wss_watch_guest(watch, 0)->state == WSS_WATCHED_WAITING &&
		   wss_watch_guest(watch, 1)->state == WSS_WATCHED_WAITING);
	seen_add(&seen, guests[0].uuid);
	assert_int_equal(pass(), 1);
	later_begin();
	guest = (struct wss_watched *)wss_watch_guest(watch, 0);
	advised = (struct wss_advised *)wss_advisor_find(advisor, guest->uuid);
	for (int i = 0; i < 16; i++) {
		fill_guest();
		guest->sample.quality = i & 1 ? WSS_QUALITY_DEGRADED : WSS_QUALITY_OK;
		guest->sample.method = i & 2 ? "idle" : "mmu";
		guest->sample.requested_window_ns = (uint64_t)(i + 1) * WSS_NS_PER_S;
		guest->sample.granularity_bytes = wss_amount_of(i & 4 ? 4096 : 2 * WSS_MIB);
		if (i & 4)
			guest->sample.low_bytes = guest->sample.high_bytes;
		guest->kind = (enum wss_window_kind)(i % 3);
		guest->state = (enum wss_watched_state)(i % WSS_WATCHED_STATES);
		guest->coarse = (enum wss_coarse)(i % (WSS_COARSE_FAILED + 1));
		advised->status = (enum wss_advice_status)(i % (WSS_ADVICE_OK + 1));
		advised->confidence = (enum wss_confidence)(i % (WSS_CONFIDENCE_HIGH + 1));
		advised->granularity_bytes = i & 1 ? 4096 : 2 * WSS_MIB;
		seen_add(&seen, guests[0].uuid);
	}
	assert_int_equal(seen.infos, 1);
	assert_int_equal(seen.n, WSS_METRICS_FULL_MAX);
	while (seen.n)
		free(seen.series[--seen.n]);
	/* The other one was never changed. */
	other = wss_watch_guest(watch, 1);
	seen = (struct seen){.n = 0};
	seen_add(&seen, other->uuid);
	assert_int_equal(seen.infos, 1);
	while (seen.n)
		free(seen.series[--seen.n]);
	wss_clock_inject(NULL);
	end();
	wss_pageset_free(guests[0].touched);
}

static bool page_has(void (*write)(FILE *stream, const struct wss_watch *watch,
				   const struct wss_service_facts *facts),
		     const char *text)
{
	const struct wss_service_facts facts = {
		.options = &options, .advisor = advisor, .connected = true};
	char *page;
	size_t size;
	FILE *stream = open_memstream(&page, &size);
	bool found;

	assert_non_null(stream);
	write(stream, watch, &facts);
	assert_int_equal(fclose(stream), 0);
	found = strstr(page, text) != NULL;
	free(page);
	return found;
}

/* Returns what balloon would get of the guest, whose figures of now are those of its newest sample. */
static uint64_t gain_of_balloon(const char *uuid)
{
	static const struct wss_advice_options asked = WSS_ADVICE_OPTIONS_INIT;
	const struct wss_policy policy = {.opt_out = false};
	struct wss_look look = {.view = {.actual_bytes = wss_amount_of(1024 * WSS_MIB),
					 .rss_bytes = wss_amount_of(910 * WSS_MIB),
					 .usable_bytes = wss_amount_of(1023 * WSS_MIB),
					 .managed_bytes = wss_amount_of(1004 * WSS_MIB),
					 .managed_of_bytes = wss_amount_of(1024 * WSS_MIB)}};
	struct wss_need need;
	uint64_t floor;

	assert_int_equal(wss_need_read(&asked, history, uuid, &policy, &need, NULL), 0);
	wss_look_join(&need, &look);
	floor = wss_balloon_floor(&look.limits, &look.view, wss_balloon_reserve(&look.view));
	return wss_balloon_is_futile(&look.view, floor) ? 0
							: wss_balloon_gain(&look.view, floor).value;
}

/* recommend, squeeze, page, metrics and balloon; plan reads recommend's JSON, or the metrics. */
TEST(test_all_say_the_same)
{
	static const struct wss_advice_options asked = WSS_ADVICE_OPTIONS_INIT;
	static const uint64_t sets_mib[] = {300, 560, 590, 1000};
	const struct wss_policy policy = {.opt_out = false};
	char text[80];

	for (size_t i = 0; i < sizeof(sets_mib) / sizeof(sets_mib[0]); i++) {
		const struct wss_advice_guest guest = {
			.uuid = guests[0].uuid, .active = true, .policy = &policy};
		struct wss_advice advice;

		invent_guests(1);
		add_hours(guests[0].uuid, 100, sets_mib[i]);
		watch_begin();
		advisor_begin();
		STEP_UNTIL(wss_watch_listed(watch));
		assert_int_equal(pass(), 1);
		STEP_UNTIL(wss_watch_guest(watch, 0)->windows == 1);
		assert_int_equal(wss_advice_read(history, &guest,
						 wss_advice_since(&asked, wss_clock_wall_seconds()),
						 &asked, &advice, NULL),
				 0);
		assert_true(value_of("virt_wss_recommended_bytes") ==
			    (double)advice.sizing.recommended_bytes.value);
		assert_true(value_of("virt_wss_reclaimable_bytes") ==
			    (double)advice.sizing.reclaimable_bytes.value);
		snprintf(text, sizeof(text), "\"reclaimable_bytes\": %" PRIu64 ",",
			 advice.sizing.reclaimable_bytes.value);
		assert_true(page_has(wss_guests_page_write, text));
		assert_int_equal(gain_of_balloon(guests[0].uuid),
				 advice.sizing.reclaimable_bytes.value);
		/* Some gain, too little to be observed, and none of a set that fills the memory. */
		assert_int_equal(advice.sizing.reclaimable_bytes.value,
				 i ? 0 : (900 - 470) * WSS_MIB);
		assert_true(advice.sizing.filled_bytes.known == (i == 3));
		wss_advice_free(&advice);
		end();
		tear_down(NULL);
		set_up(NULL);
	}
}

/* As balloon's dry run has it: what it takes from such a guest does not come back to the host. */
TEST(test_locked_memory_cannot_be_reclaimed)
{
	static const char why[] =
		"\"blocked_why\": \"its memory cannot be reclaimed: locked memory\"";
	bool found;

	invent_guests(1);
	guests[0].locked = true;
	guests[0].hang = HANG_OPEN;
	add_hours(guests[0].uuid, 100, 500);
	watch_begin();
	advisor_begin();
	STEP_UNTIL(wss_watch_listed(watch));
	assert_int_equal(pass(), 1);
	assert_true(wss_advisor_find(advisor, guests[0].uuid)->beyond_bytes.value > 0);
	/* Its process was not seen yet. */
	count_series(WSS_METRICS_FULL, "virt_wss_reclaimable_bytes{", &found);
	assert_false(found || page_has(wss_guests_page_write, "reclaimable_bytes") ||
		     page_has(wss_host_page_write, "\"reclaimable\""));
	guests[0].hang = HANG_NOWHERE;
	STEP_UNTIL(wss_watch_guest(watch, 0)->windows == 1);
	assert_int_equal(value_of("virt_wss_reclaimable_bytes"), 0);
	assert_true(
		page_has(wss_guests_page_write, why) &&
		page_has(wss_guests_page_write, "\"reclaimable_bytes\": 0") &&
		page_has(wss_host_page_write, "\"reclaimable\": { \"bytes\": 0, \"guests\": 1 }"));
	assert_int_equal(pass(), 1);
	assert_true(page_has(wss_guests_page_write, "would free nothing"));
	/* It is seen again with each window. */
	guests[0].locked = false;
	STEP_UNTIL(!wss_watch_guest(watch, 0)->blocked[0]);
	assert_true(value_of("virt_wss_reclaimable_bytes") > 0);
	assert_false(page_has(wss_guests_page_write, "blocked_why"));
	end();
}

/* A short window is no working set; its memory is known. */
TEST(test_a_canary_is_no_working_set)
{
	bool found;

	invent_guests(1);
	watch_begin();
	advisor_begin();
	STEP_UNTIL(wss_watch_count(watch) && wss_watch_guest(watch, 0)->measured);
	assert_int_equal(wss_watch_guest(watch, 0)->windows, 1);
	count_series(WSS_METRICS_FULL, "virt_wss_working_set", &found);
	assert_false(found);
	count_series(WSS_METRICS_FULL, "virt_wss_written", &found);
	assert_false(found);
	count_series(WSS_METRICS_FULL, "virt_wss_degraded", &found);
	assert_false(found);
	count_series(WSS_METRICS_FULL, "virt_wss_sample_age_seconds{", &found);
	assert_true(found);
	STEP_UNTIL(wss_watch_guest(watch, 0)->windows == 2);
	count_series(WSS_METRICS_FULL, "virt_wss_working_set_bytes{", &found);
	assert_true(found);
	end();
}

/* Why there is no figure is a metric. */
TEST(test_why_nothing_is_advised)
{
	bool found;

	invent_guests(1);
	guests[0].hang = HANG_POLL;
	add_hours(guests[0].uuid, 4, 500);
	watch_begin();
	advisor_begin();
	STEP_UNTIL(wss_watch_listed(watch));
	count_series(WSS_METRICS_FULL, "virt_wss_advice", &found);
	assert_false(found);
	pass();
	assert_int_equal(value_of("virt_wss_advice"), 2);
	assert_int_equal(value_of("virt_wss_advice_confidence"), 0);
	assert_int_equal(value_of("virt_wss_advice_bound"), 0);
	count_series(WSS_METRICS_FULL, "virt_wss_recommended", &found);
	assert_false(found);
	count_series(WSS_METRICS_FULL, "virt_wss_reclaimable", &found);
	assert_false(found);
	/* A guest is watched whether or not a window is open at the moment. */
	STEP_UNTIL(wss_watch_guest(watch, 0)->state == WSS_WATCHED_MEASURING);
	assert_int_equal(value_of("virt_wss_state"), 0);
	end();
}

/* The last one, as it leaves the largest pages for tests/shell. */
TEST(test_levels_of_metrics)
{
	struct wss_cold_report report;
	bool found;

	invent_guests(1);
	guests[0].touched = wss_pageset_new(64 * WSS_MIB / 4096);
	assert_int_equal(wss_pageset_add(guests[0].touched, 1024, 256), 256);
	add_hours(guests[0].uuid, 100, 500);
	watch_begin();
	advisor_begin();
	STEP_UNTIL(wss_watch_count(watch) && wss_watch_cold(watch, 0, &report) &&
		   wss_watch_guest(watch, 0)->state == WSS_WATCHED_WAITING);
	assert_int_equal(pass(), 1);
	fill_guest();
	assert_int_equal(count_series(WSS_METRICS_MINIMAL, "virt_wss_cold", &found),
			 WSS_METRICS_MINIMAL_MAX);
	assert_false(found);
	count_series(WSS_METRICS_MINIMAL, "virt_wss_reclaimable_bytes{", &found);
	assert_true(found);
	/* Of no age has the guest been watched for as long. */
	assert_int_equal(count_series(WSS_METRICS_FULL, "age=\"2m\"", &found),
			 WSS_METRICS_FULL_MAX - 6);
	assert_false(found);
	assert_int_equal(count_series(WSS_METRICS_STANDARD, "age=\"24h\"", &found),
			 WSS_METRICS_STANDARD_MAX - 4);
	assert_false(found);
	assert_true(page_has(wss_guests_page_write,
			     "{ \"age\": \"24h\", \"seconds\": 86400, \"observed\":"));
	later_begin();
	count_series(WSS_METRICS_STANDARD, "age=\"2m\"", &found);
	assert_false(found);
	assert_int_equal(
		count_series(WSS_METRICS_STANDARD, "age=\"1h\",bound=\"high\"} 66977792\n", &found),
		WSS_METRICS_STANDARD_MAX);
	assert_true(found);
	assert_int_equal(count_series(WSS_METRICS_FULL, "age=\"2m\",bound=\"low\"}", &found),
			 WSS_METRICS_FULL_MAX);
	assert_true(found);
	assert_int_equal(value_of("virt_wss_working_set_bound"), 1);
	assert_int_equal(value_of("virt_wss_degraded"), 0);
	assert_int_equal(value_of("virt_wss_coarse"), 0);
	/* A lower bound is there where it differs. */
	count_series(WSS_METRICS_MINIMAL, "virt_wss_working_set_low_bytes{", &found);
	assert_true(found);
	((struct wss_watched *)wss_watch_guest(watch, 0))->sample.low_bytes =
		wss_amount_of(1024 * WSS_MIB);
	assert_int_equal(count_series(WSS_METRICS_MINIMAL, "working_set_low_bytes{", &found),
			 WSS_METRICS_MINIMAL_MAX - 1);
	assert_false(found);
	assert_int_equal(value_of("virt_wss_working_set_bound"), 0);
	/* Of a degraded window only the lower bound is sure, for the host, too. */
	((struct wss_watched *)wss_watch_guest(watch, 0))->sample.quality = WSS_QUALITY_DEGRADED;
	((struct wss_watched *)wss_watch_guest(watch, 0))->sample.low_bytes = wss_amount_of(4096);
	assert_int_equal(value_of("virt_wss_working_set_bytes"), 4096);
	assert_int_equal(value_of("virt_wss_working_set_bound"), -1);
	count_series(WSS_METRICS_MINIMAL, "virt_wss_working_set_low_bytes{", &found);
	assert_false(found);
	assert_true(page_has(wss_host_page_write,
			     "\"wss\": { \"bytes\": 4096, \"low_bytes\": 4096, \"guests\": 1 }"));
	((struct wss_watched *)wss_watch_guest(watch, 0))->sample.quality = WSS_QUALITY_OK;
	fill_guest();
	for (int level = WSS_METRICS_MINIMAL; level <= WSS_METRICS_FULL; level++)
		count_series(level, "", &found);
	assert_true(page_has(wss_guests_page_write,
			     "{ \"age\": \"24h\", \"seconds\": 86400, \"low_bytes\":"));
	wss_clock_inject(NULL);
	end();
	wss_pageset_free(guests[0].touched);
}

int main(void)
{
	wss_stop_install();
	return tests_run_each(set_up, tear_down);
}
