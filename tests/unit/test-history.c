/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "hosttest.h"
#include "ways.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdnoreturn.h>
#include <sqlite3.h>
#include <sys/mman.h>
#include <sys/xattr.h>

#include "balloon/journal.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/number.h"
#include "base/stop.h"
#include "history/history.h"

#define NOW 1795197600 /* 2026-11-20T18:00:00Z */
#define MIB (1ULL << 20)

static char *tree;
static char path[PATH_MAX];

#define UUID_C "a1b2c3d4-0000-4000-8000-00000000cccc"

/* The time of day; everything lies in the past unless a test sets it. */
static time_t present;

static time_t invented_wall(void *unused)
{
	return present;
}

static const struct wss_clock_source clock_source = {
	.now_ns = real_now_ns,
	.wall_seconds = invented_wall,
};

static int set_up(void **unused)
{
	present = WSS_TIME_MAX_S;
	wss_clock_inject(&clock_source);
	tree = make_tree();
	make_path(path, "%s/a/b/history.db", tree);
	return 0;
}

static int tear_down(void **unused)
{
	remove_tree(tree);
	return 0;
}

static struct wss_history *open_history(void)
{
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_history *history = NULL;

	if (wss_history_open(path, &history, &err) < 0)
		fail_msg("%s", err.text);
	return history;
}

static struct wss_sample sample_of(const char *uuid, uint64_t bytes, time_t when)
{
	struct wss_sample sample = {
		.wall = when,
		.method = "mmu",
		.granularity_bytes = wss_amount_of(4096),
		.requested_window_ns = 4000000000,
		.wss_bytes = wss_amount_of(bytes),
		.low_bytes = wss_amount_of(bytes),
		.high_bytes = wss_amount_of(bytes),
		.memory = {.rss_bytes = wss_amount_of(900 * MIB),
			   .maximum_bytes = wss_amount_of(1024 * MIB)},
	};

	snprintf(sample.domain, sizeof(sample.domain), "web'1\";--");
	snprintf(sample.uuid, sizeof(sample.uuid), "%s", uuid);
	wss_sample_curve_add(&sample, 1000000, bytes / 2);
	wss_sample_curve_add(&sample, 4000000000, bytes);
	return sample;
}

static void add(struct wss_history *history, const struct wss_sample *sample)
{
	struct wss_error err = WSS_ERROR_INIT;

	if (wss_history_add(history, sample, &err) < 0)
		fail_msg("%s", err.text);
}

static void fill(struct wss_history *history, const char *uuid, unsigned n, time_t from,
		 time_t step)
{
	for (unsigned i = 0; i < n; i++) {
		struct wss_sample sample = sample_of(uuid, (i + 1) * MIB, from + (time_t)i * step);

		add(history, &sample);
	}
}

static uint64_t count_since(struct wss_history *history, const char *uuid, time_t since)
{
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_history_series series;
	uint64_t samples = 0;
	int r = wss_history_series(history, uuid, since, 0, &series, &err);

	if (r < 0)
		fail_msg("%s", err.text);
	if (r == 1) {
		samples = series.summary.samples;
		wss_summary_free(&series.summary);
	}
	return samples;
}

/* Samples that are added together are stored all, or none where one has no guest. */
TEST(test_added_together)
{
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_history *history = open_history();
	struct wss_sample samples[] = {
		sample_of(UUID_A, 10 * MIB, NOW),
		sample_of(UUID_A, 20 * MIB, NOW + 60),
		sample_of("", 30 * MIB, NOW + 120),
	};
	size_t added;

	assert_int_equal(wss_history_add_all(history, samples, 3, &added, NULL, &err), -1);
	assert_error(&err, WSS_ERR_UNSUPPORTED, "without a UUID");
	assert_int_equal(count_since(history, UUID_A, 0), 0);
	assert_int_equal(wss_history_add_all(history, samples, 2, &added, NULL, NULL), 0);
	assert_int_equal(added, 2);
	assert_int_equal(wss_history_add_all(history, samples, 0, &added, NULL, NULL), 0);
	assert_int_equal(added, 0);
	assert_int_equal(count_since(history, UUID_A, 0), 2);
	wss_history_close(history);
}

TEST(test_stored_and_read)
{
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_history_series series;
	struct wss_history *history = open_history();
	struct wss_amount last;
	struct stat st;

	fill(history, UUID_A, 100, NOW, 300);
	assert_int_equal(wss_history_series(history, UUID_B, 0, 0, &series, &err), 0);
	assert_int_equal(wss_history_last(history, UUID_B, &last, &err), 0);
	assert_false(last.known);
	assert_int_equal(wss_history_last(history, UUID_A, &last, &err), 0);
	assert_int_equal(last.value, NOW + 99 * 300);
	wss_history_close(history);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07, 0);

	assert_int_equal(wss_history_open_readonly(path, &history, &err), 0);
	assert_int_equal(wss_history_series(history, UUID_A, 0, WSS_HISTORY_CURVE, &series, &err),
			 1);
	assert_string_equal(series.method, "mmu");
	assert_int_equal(series.granularity_bytes, 4096);
	assert_int_equal(series.window_ns, 4000000000);
	assert_int_equal(series.summary.samples, 100);
	assert_int_equal(series.summary.first, NOW);
	assert_int_equal(series.summary.last, NOW + 99 * 300);
	assert_int_equal(series.summary.max_bytes, 100 * MIB);
	assert_int_equal(wss_histogram_percentile(&series.summary.sizes, 0.95),
			 wss_histogram_edge(95 * MIB));
	assert_int_equal(series.wss_bytes.value, 100 * MIB);
	assert_int_equal(series.rss_bytes.value, 900 * MIB);
	assert_false(series.balloon_bytes.known);
	/* Half at 1 ms: the mean of 1 to 100 MiB, halved. */
	assert_int_equal(series.summary.curve[0].n, 100);
	assert_int_equal(series.summary.curve[0].sum_pages, 5050 * 256 / 2);
	wss_summary_free(&series.summary);
	wss_history_close(history);
	wss_history_close(NULL);
}

static int count_hours;

static void on_hour(time_t start, uint64_t max_bytes, void *opaque)
{
	assert_int_equal(start % 3600, 0);
	assert_int_equal(max_bytes, (uint64_t)(count_hours + 1) * 12 * MIB);
	count_hours++;
}

static int count_hours_of(struct wss_history *history, const char *uuid)
{
	struct wss_history_series series;

	count_hours = 0;
	assert_int_equal(wss_history_series(history, uuid, 0, 0, &series, NULL), 1);
	assert_int_equal(wss_history_hours(history, &series, 0, on_hour, NULL, NULL), 0);
	wss_summary_free(&series.summary);
	return count_hours;
}

/* A span in whole hours, summed up from hours and days, equals its samples. */
TEST(test_spans)
{
	struct wss_history *history = open_history();
	time_t start = NOW - NOW % 86400;

	/* Every five minutes for four days. */
	fill(history, UUID_A, 4 * 288, start, 300);
	assert_int_equal(count_since(history, UUID_A, 0), 4 * 288);
	assert_int_equal(count_since(history, UUID_A, start + 86400), 3 * 288);
	for (int hour = 0; hour < 72; hour += 5)
		assert_int_equal(count_since(history, UUID_A, start + hour * 3600 + 1),
				 4 * 288 - hour * 12);
	assert_int_equal(count_hours_of(history, UUID_A), 96);
	wss_history_close(history);
}

/* An hour with degraded windows alone is like one without a window. */
TEST(test_degraded_hours)
{
	struct wss_history *history = open_history();
	struct wss_sample sample = sample_of(UUID_A, 500 * MIB, NOW + 12 * 300);

	fill(history, UUID_A, 12, NOW, 300);
	sample.quality = WSS_QUALITY_DEGRADED;
	sample.low_bytes = wss_amount_of(MIB);
	add(history, &sample);
	assert_int_equal(count_hours_of(history, UUID_A), 1);
	wss_history_close(history);
}

/* Series are never mixed; the one with most samples represents the guest. */
TEST(test_series)
{
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_history_series series;
	struct wss_history *history = open_history();
	struct wss_sample other = sample_of(UUID_A, 500 * MIB, NOW + 50);

	fill(history, UUID_A, 3, NOW, 60);
	fill(history, UUID_B, 7, NOW, 60);
	other.requested_window_ns = 10000000000;
	add(history, &other);
	add(history, &other);
	other.granularity_bytes = wss_amount_of(2 * MIB);
	add(history, &other);
	other.method = "refs";
	add(history, &other);
	assert_int_equal(wss_history_series(history, UUID_A, 0, 0, &series, &err), 1);
	assert_int_equal(series.summary.samples, 3);
	assert_int_equal(series.summary.max_bytes, 3 * MIB);
	wss_summary_free(&series.summary);
	assert_int_equal(count_since(history, UUID_B, 0), 7);
	/*
	 * Windows that see only writes do not represent a guest that has others, however many
	 * they are.
	 */
	other = sample_of(UUID_B, 500 * MIB, NOW + 50);
	other.observes = WSS_OBSERVES_WRITES;
	for (int i = 0; i < 8; i++)
		add(history, &other);
	assert_int_equal(wss_history_series(history, UUID_B, 0, 0, &series, &err), 1);
	assert_int_equal(series.observes, WSS_OBSERVES_ACCESSES);
	assert_int_equal(series.other_windows, 8);
	wss_summary_free(&series.summary);
	wss_history_close(history);
}

/* Samples before the span, on its first day, do not count. */
TEST(test_series_of_span)
{
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_history_series series;
	struct wss_history *history = open_history();
	time_t day = NOW - NOW % 86400;

	fill(history, UUID_A, 12, day, 60);
	for (int i = 0; i < 5; i++) {
		struct wss_sample other = sample_of(UUID_A, 500 * MIB, day + 15 * 3600 + i);

		other.requested_window_ns = 10000000000;
		add(history, &other);
	}
	assert_int_equal(count_since(history, UUID_A, day), 12);
	assert_int_equal(wss_history_series(history, UUID_A, day + 14 * 3600, 0, &series, &err), 1);
	assert_int_equal(series.window_ns, 10000000000);
	assert_int_equal(series.summary.samples, 5);
	wss_summary_free(&series.summary);
	assert_int_equal(wss_history_series(history, UUID_A, day + 20 * 3600, 0, &series, &err), 0);
	wss_history_close(history);
}

TEST(test_clock_set_back)
{
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_history *history = open_history();
	struct wss_history_limits limits = WSS_HISTORY_LIMITS_DEFAULT;
	struct wss_amount last;

	fill(history, UUID_A, 10, NOW, 60);
	/* A year ago: nothing collides, nothing is lost, and the newest sample is known. */
	fill(history, UUID_A, 10, NOW - 365 * 86400, 60);
	fill(history, UUID_A, 10, NOW, 60);
	fill(history, UUID_A, 1, 0, 1);
	fill(history, UUID_A, 1, -5, 1);
	fill(history, UUID_A, 1, NOW - 600, 60);
	assert_int_equal(count_since(history, UUID_A, 0), 33);
	/* Everything later counts, even the future. */
	assert_int_equal(count_since(history, UUID_A, NOW - 365 * 86400 - 7200), 31);
	assert_int_equal(wss_history_last(history, UUID_A, &last, &err), 0);
	assert_int_equal(last.value, NOW - 600);
	assert_int_equal(wss_history_prune(history, &limits, NOW - 300 * 86400, &err), 0);
	assert_int_equal(count_since(history, UUID_A, NOW - 365 * 86400 - 7200), 31);
	wss_history_close(history);
}

TEST(test_retention_by_age)
{
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_history *history = open_history();
	struct wss_history_limits limits = WSS_HISTORY_LIMITS_DEFAULT;
	struct wss_amount last;

	fill(history, UUID_A, 20, NOW - 20 * 86400, 86400);
	fill(history, UUID_B, 5, NOW - 500 * 86400, 86400);
	fill(history, UUID_C, 30, NOW - 30 * 3600, 3600);
	assert_int_equal(wss_history_prune(history, &limits, NOW, &err), 0);
	/* Samples are deleted after two weeks, their sums are not. */
	assert_int_equal(count_since(history, UUID_A, NOW - 20 * 86400), 20);
	limits.days_s = limits.hours_s = 10 * 86400;
	assert_int_equal(wss_history_prune(history, &limits, NOW, &err), 0);
	assert_int_equal(count_since(history, UUID_A, 0), 10);
	/* Nothing of the other guest is left. */
	assert_int_equal(count_since(history, UUID_B, 0), 0);
	assert_int_equal(wss_history_last(history, UUID_B, &last, &err), 0);
	assert_false(last.known);
	wss_history_close(history);
}

/* A clock that jumps ahead by years, for some rounds, or for good. */
TEST(test_clock_jumps_ahead)
{
	const time_t ahead = NOW + 3000LL * 86400;
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_history *history = open_history();
	struct wss_history_limits limits = WSS_HISTORY_LIMITS_DEFAULT;

	fill(history, UUID_A, 300, NOW - 300 * 3600, 3600);
	for (int round = 1; round <= 12; round++) {
		fill(history, UUID_A, 1, ahead + round * 3600, 1);
		assert_int_equal(wss_history_prune(history, &limits, ahead + round * 3600, &err),
				 0);
		assert_int_equal(count_since(history, UUID_A, 0), 300 + round);
	}
	/* The clock is right again. */
	assert_int_equal(wss_history_prune(history, &limits, NOW, &err), 0);
	assert_int_equal(count_since(history, UUID_A, 0), 312);
	/* If that is really the time, it counts after a day of rounds. */
	fill(history, UUID_A, 24, ahead + 13 * 3600, 3600);
	assert_int_equal(wss_history_prune(history, &limits, ahead + 37 * 3600, &err), 0);
	assert_int_equal(count_since(history, UUID_A, 0), 36);
	wss_history_close(history);
}

TEST(test_retention_by_size)
{
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_history *history = open_history();
	struct wss_history_limits limits = WSS_HISTORY_LIMITS_DEFAULT;
	struct stat before, after;

	fill(history, UUID_A, 3000, NOW - 3000 * 300, 300);
	wss_history_close(history);
	history = open_history();
	assert_int_equal(stat(path, &before), 0);
	limits.max_bytes = (uint64_t)before.st_size / 2;
	assert_int_equal(wss_history_prune(history, &limits, NOW, &err), 0);
	/* The finest data goes first: the percentiles are still complete. */
	assert_int_equal(count_since(history, UUID_A, 0), 3000);
	wss_history_close(history);
	assert_int_equal(stat(path, &after), 0);
	assert_true(after.st_size <= before.st_size / 2);
	/* A limit so small that nothing fits: pruning ends all the same. */
	history = open_history();
	limits.max_bytes = 1;
	assert_int_equal(wss_history_prune(history, &limits, NOW, &err), 0);
	assert_int_equal(count_since(history, UUID_A, 0), 0);
	fill(history, UUID_A, 1, NOW, 1);
	wss_history_close(history);
}

static uint64_t log_bytes(void)
{
	char log[PATH_MAX + 8];
	struct stat st;

	snprintf(log, sizeof(log), "%s-wal", path);
	return stat(log, &st) < 0 ? 0 : (uint64_t)st.st_size;
}

static bool log_can_be_emptied(void)
{
	sqlite3 *db;
	int r;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, "UPDATE guest SET name = name", NULL, NULL, NULL),
			 SQLITE_OK);
	r = sqlite3_wal_checkpoint_v2(db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
	sqlite3_close(db);
	return r == SQLITE_OK && !log_bytes();
}

static void empty_log_on_sample(const struct wss_sample *sample, void *opaque)
{
	(*(unsigned *)opaque)++;
	assert_true(log_can_be_emptied());
}

static void empty_log_on_span(const struct wss_history_span *span, void *opaque)
{
	(*(unsigned *)opaque)++;
	assert_true(log_can_be_emptied());
}

/* Whoever gets the rows may wait for a reader of its output: the log can be written back meanwhile. */
TEST(test_no_transaction_while_rows_are_passed_on)
{
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_history *writer = open_history(), *reader = NULL;
	unsigned rows = 0;

	fill(writer, UUID_A, 5, NOW, 3600);
	assert_int_equal(wss_history_open_readonly(path, &reader, &err), 0);
	assert_int_equal(wss_history_samples(reader, UUID_A, 0, NOW + 86400, empty_log_on_sample,
					     &rows, &err),
			 0);
	assert_int_equal(rows, 5);
	assert_int_equal(wss_history_spans(reader, UUID_A, WSS_HISTORY_HOUR, 0, NOW + 86400,
					   empty_log_on_span, &rows, &err),
			 0);
	assert_int_equal(rows, 10);
	wss_history_close(reader);
	wss_history_close(writer);
}

/* A reader that was stopped in the middle. */
TEST(test_stalled_reader)
{
	struct wss_history_limits limits = WSS_HISTORY_LIMITS_DEFAULT;
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_history *history = open_history();
	struct wss_sample sample = sample_of(UUID_A, MIB, NOW);
	unsigned added = 0;
	sqlite3 *reader;

	wss_history_set_patience(history, 20);
	fill(history, UUID_A, 100, NOW - 100, 1);
	limits.max_bytes = 32 * MIB;
	assert_int_equal(sqlite3_open(path, &reader), SQLITE_OK);
	assert_int_equal(sqlite3_exec(reader, "BEGIN; SELECT * FROM guest", NULL, NULL, NULL),
			 SQLITE_OK);
	assert_int_equal(wss_history_prune(history, &limits, NOW, &err), 0);
	for (; added < 5000 && wss_history_add(history, &sample, &err) == 0; added++)
		sample.wall++;
	assert_in_range(added, 50, 4999);
	assert_int_equal(err.code, WSS_ERR_BUSY);
	assert_non_null(strstr(err.text, "its write-ahead log has reached its limit of 8 MiB"));
	assert_in_range(log_bytes(), 8 * MIB, 9 * MIB);
	/* Nor is the history deleted for the sake of the log. */
	assert_int_equal(wss_history_prune(history, &limits, NOW, NULL), -1);
	sqlite3_close(reader);
	add(history, &sample);
	assert_int_equal(count_since(history, UUID_A, 0), 100 + added + 1);
	assert_true(log_bytes() < 8 * MIB);
	assert_int_equal(wss_history_prune(history, &limits, NOW, NULL), 0);
	wss_history_close(history);
}

/* Opens the history and adds n samples to each guest. Returns whether that succeeded. */
static bool child_fill(const char *const *uuids, unsigned n)
{
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_history *history = NULL;
	int r = wss_history_open(path, &history, &err);

	for (; r == 0 && *uuids; uuids++)
		for (unsigned i = 0; i < n && r == 0; i++) {
			struct wss_sample sample = sample_of(*uuids, MIB, NOW + i);

			r = wss_history_add(history, &sample, &err);
		}
	if (r < 0)
		fprintf(stderr, "writer: %s\n", err.text);
	wss_history_close(history);
	return r == 0;
}

#define WRITERS 4

/* Processes that begin each round at the same time, and then report. */
static struct writers {
	pthread_barrier_t *start; /* shared with them */
	int reports[WRITERS];
	pid_t pids[WRITERS];
} writers;

static const char own[WRITERS][40] = {
	"a1b2c3d4-0000-4000-8000-000000000000",
	"a1b2c3d4-0000-4000-8000-000000000001",
	"a1b2c3d4-0000-4000-8000-000000000002",
	"a1b2c3d4-0000-4000-8000-000000000003",
};

/* Runs in a child; nothing may return to the test runner. */
static noreturn void writer_run(const char *uuid, unsigned n, int report)
{
	const char *const uuids[] = {uuid, UUID_A, NULL};
	bool done = true;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (done) {
		pthread_barrier_wait(writers.start);
		done = child_fill(uuids, n);
		done = done && write(report, "", 1) == 1;
	}
	_exit(1);
}

/* In each round each writer adds n samples to a guest of its own and n to UUID_A. */
static void writers_begin(unsigned n)
{
	pthread_barrierattr_t shared;

	writers.start = mmap(NULL, sizeof(*writers.start), PROT_READ | PROT_WRITE,
			     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(writers.start != MAP_FAILED);
	pthread_barrierattr_init(&shared);
	pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
	pthread_barrier_init(writers.start, &shared, WRITERS + 1);
	for (size_t i = 0; i < WRITERS; i++) {
		int ends[2];

		assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
		writers.pids[i] = fork();
		if (writers.pids[i] == 0)
			writer_run(own[i], n, ends[1]);
		close(ends[1]);
		writers.reports[i] = ends[0];
	}
}

static void writers_round(unsigned n)
{
	struct wss_history *history;

	pthread_barrier_wait(writers.start);
	for (size_t i = 0; i < WRITERS; i++) {
		char byte;

		assert_int_equal(read(writers.reports[i], &byte, 1), 1);
	}
	history = open_history();
	assert_int_equal(count_since(history, UUID_A, 0), WRITERS * n);
	assert_int_equal(count_since(history, own[WRITERS - 1], 0), n);
	wss_history_close(history);
}

static void writers_end(void)
{
	for (size_t i = 0; i < WRITERS; i++) {
		end_child(writers.pids[i]);
		close(writers.reports[i]);
	}
	munmap(writers.start, sizeof(*writers.start));
}

/* Simultaneous writers wait for each other, and no sample is lost. */
TEST(test_two_writers)
{
	writers_begin(50);
	writers_round(50);
	writers_end();
}

static void write_file(const char *name, const void *data, size_t len, off_t at)
{
	int fd = open(name, O_WRONLY | O_CREAT, 0600);

	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, data, len, at), len);
	close(fd);
}

/* The file is complete when it appears, whichever process creates it. */
TEST(test_made_at_once)
{
	writers_begin(1);
	for (int i = 0; i < 100; i++) {
		writers_round(1);
		/* Simulates manual removal: the files next to it do not belong to the new one. */
		assert_int_equal(unlink(path), 0);
	}
	writers_end();
}

/* Files left by a killed creator are removed; a user's file with a similar name is kept. */
TEST(test_half_made)
{
	char left[PATH_MAX], theirs[PATH_MAX], log[PATH_MAX];
	struct wss_history *history = open_history();

	wss_history_close(history);
	assert_int_equal(truncate(path, 0), 0);
	write_file(make_path(left, "%s/a/b/.virt-wss-0123456789abcdef.new", tree), "half", 4, 0);
	write_file(make_path(theirs, "%s.new", path), "mine", 4, 0);
	/* The log of a database that is gone. */
	write_file(make_path(log, "%s-wal", path), "\x37\x7f\x06\x82 old", 8, 0);
	history = open_history();
	fill(history, UUID_A, 1, NOW, 1);
	wss_history_close(history);
	assert_int_equal(access(left, F_OK), -1);
	assert_file_holds(theirs, "mine");
}

/* SQLite would overwrite them, too. */
TEST(test_files_in_the_way)
{
	static const char *const suffixes[] = {"-journal", "-wal", "-shm"};
	char name[PATH_MAX];

	wss_history_close(open_history());
	assert_int_equal(unlink(path), 0);
	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++)
		unlink(make_path(name, "%s%s", path, suffixes[i]));
	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
		struct wss_error err = WSS_ERROR_INIT;
		struct wss_history *history;

		write_file(make_path(name, "%s%s", path, suffixes[i]), "a letter", 8, 0);
		assert_int_equal(wss_history_open(path, &history, &err), -1);
		assert_error(&err, WSS_ERR_FAILED,
			     "is not SQLite's, but has a name that SQLite uses: move it away");
		assert_non_null(strstr(err.text, name));
		assert_file_holds(name, "a letter");
		assert_int_equal(access(path, F_OK), -1);
		assert_int_equal(unlink(name), 0);
	}
}

/*
 * Killed at any moment: every sample that was reported as written is there, and the file is intact.
 */
TEST(test_killed)
{
	uint64_t written = 0, state = 12345;

	for (int i = 0; i < 30; i++) {
		struct wss_history *history;
		int fds[2];
		pid_t pid;
		char byte;

		assert_int_equal(pipe(fds), 0);
		pid = fork();
		if (pid == 0) {
			close(fds[0]);
			history = open_history();
			for (;;) {
				struct wss_sample sample = sample_of(UUID_A, MIB, NOW);

				add(history, &sample);
				if (write(fds[1], "", 1) != 1)
					_exit(1);
			}
		}
		close(fds[1]);
		state = state * 6364136223846793005ULL + 1;
		for (uint64_t n = 1 + (state >> 60); n; n--)
			if (read(fds[0], &byte, 1) == 1)
				written++;
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		while (read(fds[0], &byte, 1) == 1)
			written++;
		close(fds[0]);
		history = open_history();
		/* The sample being written may be there or not. */
		assert_in_range(count_since(history, UUID_A, 0), written, written + 1);
		written = count_since(history, UUID_A, 0);
		wss_history_close(history);
	}
	assert_true(written >= 30);
}

static void refused(enum wss_error_code code, const char *part)
{
	struct wss_history *history = NULL;
	struct wss_error err = WSS_ERROR_INIT;

	assert_int_equal(wss_history_open(path, &history, &err), -1);
	assert_error(&err, code, part);
	wss_error_clear(&err);
	assert_int_equal(wss_history_open_readonly(path, &history, &err), -1);
	assert_error(&err, code, "history");
}

/* A damaged or foreign file is refused and left as it is. */
TEST(test_damaged)
{
	static char garbage[65536];
	struct wss_history *history = open_history();
	struct stat before, after;

	fill(history, UUID_A, 200, NOW, 300);
	wss_history_close(history);
	memset(garbage, 0x5a, sizeof(garbage));
	write_file(path, garbage, 20000, 8192);
	assert_int_equal(stat(path, &before), 0);
	refused(WSS_ERR_DAMAGED, "damaged");
	assert_int_equal(stat(path, &after), 0);
	assert_int_equal(before.st_size, after.st_size);
	make_path(path, "%s/other", tree);
	write_file(path, garbage, sizeof(garbage), 0);
	refused(WSS_ERR_DAMAGED, "history");
}

/* Changes the file as another program may. */
static void change(const char *sql)
{
	sqlite3 *db;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
		fail_msg("%s: %s", sql, sqlite3_errmsg(db));
	sqlite3_close(db);
}

/* Gives a guest a single day with this number of windows, and a histogram that agrees. */
static void forge(uint64_t samples, uint64_t degraded)
{
	struct wss_histogram_bucket bucket = {.index = 7, .count = samples};
	const struct wss_histogram histogram = {.total = samples, .n = 1, .buckets = &bucket};
	sqlite3_stmt *stmt;
	uint8_t sizes[64];
	sqlite3 *db;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(
		sqlite3_prepare_v2(db,
				   "UPDATE summary SET samples = ?1, degraded = ?2, sizes = ?3 "
				   "WHERE level = 86400",
				   -1, &stmt, NULL),
		SQLITE_OK);
	sqlite3_bind_int64(stmt, 1, (int64_t)samples);
	sqlite3_bind_int64(stmt, 2, (int64_t)degraded);
	sqlite3_bind_blob(stmt, 3, sizes,
			  (int)wss_histogram_encode(&histogram, sizes, sizeof(sizes)),
			  SQLITE_STATIC);
	assert_int_equal(sqlite3_step(stmt), SQLITE_DONE);
	assert_int_equal(sqlite3_changes(db), 1);
	sqlite3_finalize(stmt);
	sqlite3_close(db);
}

/* Impossible figures, which would make results wrong or undefined. */
TEST(test_figures_that_cannot_be)
{
	static const char *const forged[] = {
		"first = 9223372036854775807",
		"last = -9223372036854775808",
	};
	struct wss_history *history = open_history();
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_history_series series;

	for (size_t i = 0; i < sizeof(forged) / sizeof(forged[0]); i++) {
		char sql[128];
		sqlite3 *db;

		fill(history, UUID_A, 5, NOW, 60);
		assert_int_equal(wss_history_series(history, UUID_A, 0, 0, &series, &err), 1);
		wss_summary_free(&series.summary);
		snprintf(sql, sizeof(sql), "UPDATE summary SET %s", forged[i]);
		assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
		assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
		assert_int_equal(wss_history_series(history, UUID_A, 0, 0, &series, &err), -1);
		assert_error(&err, WSS_ERR_FAILED, "damaged");
		wss_error_clear(&err);
		assert_int_equal(sqlite3_exec(db, "DELETE FROM summary", NULL, NULL, NULL),
				 SQLITE_OK);
		sqlite3_close(db);
	}
	wss_history_close(history);
}

/* A size larger than any guest's memory is not stored: the hours of the guest could no longer be read. */
TEST(test_sizes_that_cannot_be)
{
	struct wss_sample all = sample_of(UUID_A, 1ULL << 61, NOW),
			  at_end = sample_of(UUID_A, MIB, NOW), within = at_end, degraded = at_end;
	const struct wss_sample *const forged[] = {&all, &at_end, &within, &degraded};
	const struct wss_sample both[] = {all, sample_of(UUID_B, MIB, NOW)};
	size_t added = 0;
	struct wss_history *history = open_history();
	struct wss_error err = WSS_ERROR_INIT;

	at_end.wss_bytes.value = WSS_BYTES_MAX + 1;
	within.curve[0].bytes = WSS_BYTES_MAX + 1;
	degraded.quality = WSS_QUALITY_DEGRADED;
	degraded.low_bytes.value = UINT64_MAX;
	for (size_t i = 0; i < sizeof(forged) / sizeof(forged[0]); i++) {
		assert_int_equal(wss_history_add(history, forged[i], &err), -1);
		assert_error(&err, WSS_ERR_FAILED, "larger than any guest");
		wss_error_clear(&err);
		fill(history, UUID_A, 1, NOW + 1, 1);
		assert_int_equal(count_since(history, UUID_A, 0), i + 1);
	}
	assert_int_equal(wss_history_add_all(history, both, 2, &added, NULL, NULL), 0);
	assert_int_equal(added, 1);
	assert_int_equal(count_since(history, UUID_B, 0), 1);
	wss_history_close(history);
}

static char left_out[512];
static unsigned n_left_out;

static void note_left_out(enum wss_log_level level, const char *text)
{
	assert_int_equal(level, WSS_LOG_WARNING);
	snprintf(left_out, sizeof(left_out), "%s", text);
	n_left_out++;
}

static void count_hour(time_t start, uint64_t max_bytes, void *opaque)
{
	assert_true(max_bytes <= WSS_BYTES_MAX);
	++*(unsigned *)opaque;
}

static int count_hour_summary(time_t start, const struct wss_summary *summary, void *opaque)
{
	count_hour(start, summary->max_bytes, opaque);
	return 0;
}

static void count_span(const struct wss_history_span *span, void *opaque)
{
	count_hour(span->start, span->summary.max_bytes, opaque);
}

/* Reads everything, and expects this many hours from each reader, and samples. */
static void assert_hours(struct wss_history *history, unsigned expected, unsigned samples)
{
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_history_series series;
	unsigned hours = 0, summaries = 0, spans = 0;

	assert_int_equal(wss_history_series(history, UUID_A, NOW, WSS_HISTORY_CURVE, &series, &err),
			 1);
	assert_int_equal(series.summary.samples, samples);
	assert_true(series.summary.max_bytes <= WSS_BYTES_MAX);
	assert_int_equal(wss_history_hours(history, &series, 0, count_hour, &hours, &err), 0);
	wss_summary_free(&series.summary);
	assert_int_equal(
		wss_history_hour_summaries(history, UUID_A, count_hour_summary, &summaries, &err),
		0);
	assert_int_equal(wss_history_spans(history, UUID_A, WSS_HISTORY_HOUR, 0, WSS_TIME_MAX_S,
					   count_span, &spans, &err),
			 0);
	assert_int_equal(hours, expected);
	assert_int_equal(summaries, expected);
	assert_int_equal(spans, expected);
}

/* Older versions stored sizes larger than any guest's memory: such hours are left out, which is said once. */
TEST(test_stored_sizes_that_cannot_be)
{
	static const char *const forged[] = {
		"max_bytes = 2305843009213693952",
		"max_bytes = 9223372036854775807, min_bytes = 9223372036854775807",
		"min_bytes = 1152921504606846977, max_bytes = 1152921504606846977",
		"max_bytes = 1152921504606846977, degraded = 1",
		"sum_pages = 281474976710657", /* 2^48 + 1, of one sample */
		"sum_pages = 9223372036854775807",
	};
	struct wss_history *history = open_history();
	struct wss_sample again = sample_of(UUID_A, MIB, NOW + 2 * 3600),
			  all = sample_of(UUID_B, MIB, NOW);
	struct wss_history_series series;
	struct wss_error err = WSS_ERROR_INIT;

	/* All within one day, the summary of which is not read. */
	fill(history, UUID_A, 4, NOW, 3600);
	for (size_t i = 0; i < sizeof(forged) / sizeof(forged[0]); i++) {
		char sql[256];

		wss_history_close(history);
		snprintf(sql, sizeof(sql), "UPDATE summary SET %s WHERE start IN (%d, %d)",
			 forged[i], NOW + 3600, NOW + 2 * 3600);
		change(sql);
		history = open_history();
		n_left_out = 0;
		wss_log_set_sink(note_left_out);
		assert_hours(history, 2, 2);
		assert_int_equal(n_left_out, 1);
		assert_non_null(strstr(left_out, "left out 2 hours or days"));
		/* A new sample is stored, and its hour counts again, with those that it had. */
		add(history, &again);
		assert_hours(history, 3, 4);
		assert_int_equal(n_left_out, 1);
		wss_log_set_sink(NULL);
		change("DELETE FROM summary; DELETE FROM sample");
		fill(history, UUID_A, 4, NOW, 3600);
	}
	/* Nothing else is known of a guest. */
	add(history, &all);
	change("UPDATE summary SET max_bytes = 2305843009213693952");
	wss_log_set_sink(note_left_out);
	assert_int_equal(wss_history_series(history, UUID_B, 0, 0, &series, &err), 0);
	wss_log_set_sink(NULL);
	wss_history_close(history);
}

/* A series that has more windows, all of them left out, does not take the place of one that can be read. */
TEST(test_series_of_sizes_that_cannot_be)
{
	struct wss_history *history = open_history();
	struct wss_sample other = sample_of(UUID_A, MIB, NOW);

	fill(history, UUID_A, 9, NOW, 60);
	change("UPDATE summary SET max_bytes = 2305843009213693952");
	other.requested_window_ns = 8000000000;
	other.observes = WSS_OBSERVES_WRITES;
	add(history, &other);
	assert_int_equal(count_since(history, UUID_A, 0), 1);
	wss_history_close(history);
}

/* The same for the growth curve of an hour. */
TEST(test_stored_curves_that_cannot_be)
{
	struct wss_history *history = open_history();
	struct wss_history_series series;
	struct wss_error err = WSS_ERROR_INIT;

	fill(history, UUID_A, 4, NOW, 3600);
	/* Format 1, one point: its sum of 2^48 + 1 pages, and the histogram of one window. */
	change("UPDATE summary SET curve = x'010181808080808040010701' WHERE start = 1795201200");
	wss_log_set_sink(note_left_out);
	assert_int_equal(wss_history_series(history, UUID_A, NOW, WSS_HISTORY_CURVE, &series, &err),
			 1);
	wss_log_set_sink(NULL);
	assert_non_null(strstr(left_out, "left out 1 hours or days"));
	assert_int_equal(series.summary.samples, 3);
	wss_summary_free(&series.summary);
	wss_history_close(history);
}

/* Sizing takes longer with more windows; a number with which it would never end is refused. */
TEST(test_windows_that_cannot_be)
{
	static const struct {
		uint64_t samples, degraded;
	} forged[] = {
		{WSS_SUMMARY_DAY_MAX + 1, 0},
		{1ULL << 40, 0},
		{5, WSS_SUMMARY_DAY_MAX + 1},
		{5, INT64_MAX},
	};
	struct wss_history *history = open_history();
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_sample sample = sample_of(UUID_A, MIB, NOW);
	struct wss_history_series series;

	fill(history, UUID_A, 5, NOW, 60);
	forge(WSS_SUMMARY_DAY_MAX, WSS_SUMMARY_DAY_MAX);
	assert_int_equal(count_since(history, UUID_A, 0), WSS_SUMMARY_DAY_MAX);
	for (size_t i = 0; i < sizeof(forged) / sizeof(forged[0]); i++) {
		forge(forged[i].samples, forged[i].degraded);
		assert_int_equal(wss_history_series(history, UUID_A, 0, 0, &series, &err), -1);
		assert_error(&err, WSS_ERR_FAILED, "damaged");
		wss_error_clear(&err);
		wss_log_set_sink(note_left_out);
		assert_int_equal(wss_history_add(history, &sample, &err), 0);
		wss_log_set_sink(NULL);
		assert_non_null(strstr(
			left_out, "a summary of the day from 2026-11-20T00:00:00Z was damaged"));
		assert_int_equal(count_since(history, UUID_A, 0), 6 + i);
	}
	wss_history_close(history);
}

/* A damaged hour or day costs no sample: neither the new one nor those that it had. */
TEST(test_damaged_summaries_are_made_anew)
{
	static const char *const damages[] = {
		"sizes = x'ff'",
		"curve = 'nonsense' WHERE level = 86400",
		"first = 9000000000000, last = 1",
		"samples = -1, sizes = zeroblob(3) WHERE level = 3600",
		"sizes = zeroblob(100000), curve = x''",
	};
	struct wss_history *history = open_history();
	struct wss_sample degraded = sample_of(UUID_A, 400 * MIB, NOW + 600);
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_history_series series;

	degraded.quality = WSS_QUALITY_DEGRADED;
	degraded.low_bytes = wss_amount_of(100 * MIB);
	add(history, &degraded);
	fill(history, UUID_A, 5, NOW - 3600, 60);
	fill(history, UUID_A, 5, NOW, 60);
	wss_log_set_sink(note_left_out);
	for (size_t i = 0; i < sizeof(damages) / sizeof(damages[0]); i++) {
		char sql[128];

		snprintf(sql, sizeof(sql), "UPDATE summary SET %s", damages[i]);
		change(sql);
		fill(history, UUID_A, 1, NOW + 700 + (time_t)i, 1);
		fill(history, UUID_A, 1, NOW - 700 + (time_t)i, 1);
		/* By hours, and by the day. */
		for (int by_day = 0; by_day < 2; by_day++) {
			assert_int_equal(wss_history_series(history, UUID_A,
							    by_day ? NOW - 18 * 3600 : NOW - 3600,
							    0, &series, &err),
					 1);
			assert_int_equal(series.summary.samples, 12 + 2 * i);
			assert_int_equal(series.summary.degraded, 1);
			assert_int_equal(series.summary.max_bytes, 100 * MIB);
			assert_int_equal(series.summary.min_bytes, MIB);
			assert_int_equal(series.summary.first, NOW - 3600);
			wss_summary_free(&series.summary);
		}
	}
	wss_log_set_sink(NULL);
	wss_history_close(history);
}

static void fill_and_close(void)
{
	struct wss_history *history = open_history();

	fill(history, UUID_A, 5, NOW, 60);
	wss_history_close(history);
}

/* Impossible times, whose differences would overflow. */
TEST(test_times_that_cannot_be)
{
	static const char *const forged[] = {
		"first = -9223372036854775807 - 1, last = 9223372036854775807",
		"first = 0, last = 253402300800",
		"first = -62167219201, last = 0",
		"first = 2, last = 1",
	};
	struct wss_history *history = open_history();
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_history_series series;

	fill(history, UUID_A, 5, NOW, 60);
	for (size_t i = 0; i < sizeof(forged) / sizeof(forged[0]); i++) {
		char sql[128];

		snprintf(sql, sizeof(sql), "UPDATE summary SET %s", forged[i]);
		change(sql);
		assert_int_equal(wss_history_series(history, UUID_A, 0, 0, &series, &err), -1);
		assert_error(&err, WSS_ERR_FAILED, "damaged");
		wss_error_clear(&err);
	}
	change("UPDATE summary SET first = -62167219200, last = 253402300799");
	assert_int_equal(count_since(history, UUID_A, 0), 5);
	wss_history_close(history);
}

/*
 * An hour before the valid range is not taken as the present, which would make pruning delete
 * everything.
 */
TEST(test_hours_that_cannot_be)
{
	static const struct wss_history_limits limits = WSS_HISTORY_LIMITS_DEFAULT;
	struct wss_history *history = open_history();
	struct wss_error err = WSS_ERROR_INIT;

	fill(history, UUID_A, 23, NOW - 22 * 3600, 3600);
	change("INSERT INTO summary SELECT series_id, level, -9223372036854775807 - 1, "
	       "samples, degraded, "
	       "first, last, min_bytes, max_bytes, sum_pages, sizes, curve FROM summary "
	       "WHERE level = 3600 LIMIT 1");
	assert_int_equal(wss_history_prune(history, &limits, NOW, &err), 0);
	assert_int_equal(count_since(history, UUID_A, 0), 23);
	wss_history_close(history);
}

/* Refuses a history at once after somebody has run this SQL, and accepts it after the undo. */
static void refuse_changed(const char *sql, const char *undo)
{
	change(sql);
	refused(WSS_ERR_FAILED, "not those of virt-wss");
	change(undo);
	wss_history_close(open_history());
}

#define NEVER_ENDS "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT "

/* Definitions that others have put into the file are never run, because they may not terminate. */
TEST(test_tables_of_others)
{
	struct wss_history *history = open_history();

	fill(history, UUID_A, 5, NOW, 60);
	wss_history_close(history);
	refuse_changed("ALTER TABLE summary RENAME TO hidden; CREATE VIEW summary AS " NEVER_ENDS
		       "1 AS series_id, 3600 AS level, x AS start, 1 AS samples, 0 AS degraded, "
		       "0 AS first, 0 AS last, 0 AS min_bytes, 0 AS max_bytes, 0 AS sum_pages, "
		       "x'00' AS sizes, x'0100' AS curve FROM c",
		       "DROP VIEW summary; ALTER TABLE hidden RENAME TO summary;"
		       "PRAGMA writable_schema = ON;"
		       "UPDATE sqlite_schema SET sql = replace(sql, '\"summary\"', 'summary');");
	refuse_changed("CREATE TRIGGER late AFTER INSERT ON sample BEGIN "
		       "DELETE FROM guest WHERE id IN (" NEVER_ENDS "x FROM c); END",
		       "DROP TRIGGER late");
	refuse_changed("CREATE INDEX late ON sample (abs(wss_bytes))", "DROP INDEX late");
	refuse_changed("CREATE TABLE late (x CHECK (x LIKE '%a%a%a%a%a%a%'))", "DROP TABLE late");
	refuse_changed("DROP INDEX sample_time", "CREATE INDEX sample_time ON sample (time)");
	/* The tables that ANALYZE leaves are accepted. */
	change("ANALYZE");
	history = open_history();
	assert_int_equal(count_since(history, UUID_A, 0), 5);
	wss_history_close(history);
}

/* Queries copy a name to each row, so that a long one would take any amount of memory. */
TEST(test_texts_that_cannot_be)
{
	static const char *const long_ones[] = {
		"UPDATE guest SET name = CAST(zeroblob(5000000) AS TEXT)",
		"UPDATE guest SET name = 'a', uuid = hex(zeroblob(100))",
		"UPDATE guest SET uuid = 'u'; UPDATE series SET method = hex(zeroblob(100))",
	};

	fill_and_close();
	for (size_t i = 0; i < sizeof(long_ones) / sizeof(long_ones[0]); i++) {
		change(long_ones[i]);
		refused(WSS_ERR_FAILED, "damaged: a name in it is too long");
	}
	change("UPDATE series SET method = 'mmu'; UPDATE guest SET name = hex(zeroblob(120))");
	wss_history_close(open_history());
}

static void set_access_list(const char *file, unsigned mask)
{
	/* linux/posix_acl_xattr.h: the version, then tag, permissions and ID of each entry. */
	const struct {
		uint32_t version;
		struct {
			uint16_t tag, permissions;
			uint32_t id;
		} entries[5];
	} list = {2,
		  {{0x01, 7, UINT32_MAX},
		   {0x02, 7, 65534},
		   {0x04, 0, UINT32_MAX},
		   {0x10, (uint16_t)mask, UINT32_MAX},
		   {0x20, 0, UINT32_MAX}}};

	if (setxattr(file, "system.posix_acl_access", &list, sizeof(list), 0) == 0)
		return;
	assert_int_equal(errno, EOPNOTSUPP);
	print_message("# no access control lists on this file system\n");
	skip();
}

/* The mode shows no more of another user's right to write than the bits of our own group. */
TEST(test_access_list)
{
	char directory[PATH_MAX];

	fill_and_close();
	make_path(directory, "%s/a/b", tree);
	set_access_list(directory, 7);
	refused(WSS_ERR_FAILED, "other users may write to its directory");
	set_access_list(directory, 5);
	wss_history_close(open_history());
	set_access_list(path, 6);
	refused(WSS_ERR_FAILED, "other users may write to it");
	set_access_list(path, 4);
	wss_history_close(open_history());
}

TEST(test_versions)
{
	sqlite3 *db;

	wss_history_close(open_history());
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, "PRAGMA user_version = 1000", NULL, NULL, NULL),
			 SQLITE_OK);
	sqlite3_close(db);
	refused(WSS_ERR_FAILED, "newer");
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, "PRAGMA user_version = -1", NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
	refused(WSS_ERR_FAILED, "damaged");
	make_path(path, "%s/somebody.db", tree);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, "CREATE TABLE important (x)", NULL, NULL, NULL),
			 SQLITE_OK);
	sqlite3_close(db);
	refused(WSS_ERR_FAILED, "not a history of virt-wss");
}

static void write_step(struct wss_history *history, const char *uuid, uint64_t original,
		       uint64_t from, uint64_t to)
{
	struct wss_journal_step step = {uuid, "web'1",	 NOW,	      original, from,
					to,   "because", "test:///x", to + 1};
	struct wss_error err = WSS_ERROR_INIT;

	if (wss_journal_write(history, &step, &err) < 0)
		fail_msg("%s", err.text);
}

TEST(test_journal)
{
	struct wss_history *history = open_history();
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_journal_open *open;
	size_t n;

	write_step(history, UUID_A, 1000, 1000, 900);
	write_step(history, UUID_A, 1000, 900, 800);
	write_step(history, UUID_B, 500, 500, 400);
	assert_int_equal(wss_journal_unfinished(history, NULL, &open, &n, &err), 0);
	assert_int_equal(n, 2);
	free(open);
	assert_int_equal(wss_journal_unfinished(history, UUID_A, &open, &n, &err), 0);
	assert_int_equal(n, 1);
	assert_int_equal(open[0].original_bytes, 1000);
	assert_int_equal(open[0].first_maximum_bytes, 901);
	assert_int_equal(open[0].maximum_bytes, 801);
	assert_string_equal(open[0].name, "web'1");
	assert_string_equal(open[0].uri, "test:///x");
	free(open);
	assert_int_equal(wss_journal_done(history, UUID_A, &err), 0);
	assert_int_equal(wss_journal_unfinished(history, UUID_A, &open, &n, &err), 0);
	assert_int_equal(n, 0);
	free(open);
	/* The next run starts from the size that it found. */
	write_step(history, UUID_A, 700, 700, 600);
	assert_int_equal(wss_journal_unfinished(history, UUID_A, &open, &n, &err), 0);
	assert_int_equal(open[0].original_bytes, 700);
	free(open);
	/* Cut to its first characters, a damaged UUID would be that of a guest. */
	assert_int_equal(wss_journal_done(history, UUID_A, &err), 0);
	assert_int_equal(wss_journal_done(history, UUID_B, &err), 0);
	write_step(history, UUID_B "-", 700, 700, 600);
	assert_int_equal(wss_journal_unfinished(history, NULL, &open, &n, &err), 0);
	assert_int_equal(n, 1);
	assert_string_equal(open[0].uuid, "");
	free(open);
	wss_history_close(history);
}

/* Of two that begin at the same moment one succeeds. */
TEST(test_journal_begin)
{
	struct wss_history *history = open_history(), *other = open_history();
	struct wss_journal_step step = {UUID_A, "web1", NOW, 10, 10, 9, "because", NULL, 0};
	struct wss_error err = WSS_ERROR_INIT;

	assert_int_equal(wss_journal_check(other, UUID_A, &err), 0);
	assert_int_equal(wss_journal_begin(history, &step, &err), 0);
	assert_int_equal(wss_journal_begin(other, &step, &err), -1);
	assert_error(&err, WSS_ERR_FAILED, "has not restored it");
	wss_error_clear(&err);
	assert_int_equal(wss_journal_check(other, UUID_A, &err), -1);
	wss_error_clear(&err);
	step.uuid = UUID_B;
	assert_int_equal(wss_journal_begin(other, &step, &err), 0);
	assert_int_equal(wss_journal_done(history, UUID_A, &err), 0);
	step.uuid = UUID_A;
	assert_int_equal(wss_journal_begin(other, &step, &err), 0);
	wss_history_close(history);
	wss_history_close(other);
}

TEST(test_in_place)
{
	struct wss_history *history = open_history(), *other;
	char aside[PATH_MAX];

	assert_true(wss_history_is_in_place(history));
	make_path(aside, "%s.aside", path);
	assert_int_equal(rename(path, aside), 0);
	assert_false(wss_history_is_in_place(history));
	other = open_history();
	assert_false(wss_history_is_in_place(history));
	assert_true(wss_history_is_in_place(other));
	wss_history_close(other);
	wss_history_close(history);
}

/* --- how cold memory was --- */

/* Each figure is another one. */
static struct wss_cold_report cold_report(uint64_t mib)
{
	struct wss_cold_report report = {.since_ns = 1000000000,
					 .as_of_ns = 3601000000000,
					 .held_bytes = 900 * MIB,
					 .absent_bytes = 100 * MIB,
					 .granularity_bytes = 2 * MIB};

	for (unsigned i = 0; i < WSS_COLD_AGES; i++)
		report.ages[i] = (struct wss_cold_class){.low_bytes = (mib + i) * MIB,
							 .high_bytes = (2 * mib + i) * MIB,
							 .observed = 0.5 + i / 10.0,
							 .whole = true};
	report.ages[WSS_COLD_24H].whole = false;
	report.ages[WSS_COLD_24H].low_bytes = 0;
	return report;
}

static void add_coldness(struct wss_history *history, time_t time, uint64_t mib)
{
	struct wss_cold_report report = cold_report(mib);
	struct wss_error err = WSS_ERROR_INIT;

	if (wss_history_add_coldness(history, UUID_A, time, &report, &err) < 0)
		fail_msg("%s", err.text);
}

static bool read_coldness(struct wss_history *history, struct wss_history_coldness *coldness)
{
	struct wss_error err = WSS_ERROR_INIT;
	int r = wss_history_coldness(history, UUID_A, coldness, &err);

	if (r < 0)
		fail_msg("%s", err.text);
	return r == 1;
}

static void assert_cold_report(const struct wss_cold_report *report, uint64_t mib)
{
	struct wss_cold_report expected = cold_report(mib);

	assert_int_equal(report->as_of_ns - report->since_ns,
			 expected.as_of_ns - expected.since_ns);
	assert_int_equal(report->held_bytes, expected.held_bytes);
	assert_int_equal(report->absent_bytes, expected.absent_bytes);
	assert_int_equal(report->granularity_bytes, expected.granularity_bytes);
	for (unsigned i = 0; i < WSS_COLD_AGES; i++) {
		assert_int_equal(report->ages[i].low_bytes, expected.ages[i].low_bytes);
		assert_int_equal(report->ages[i].high_bytes, expected.ages[i].high_bytes);
		assert_true(fabs(report->ages[i].observed - expected.ages[i].observed) < 1e-6);
		assert_int_equal(report->ages[i].whole, expected.ages[i].whole);
	}
}

TEST(test_coldness)
{
	struct wss_history *history = open_history();
	struct wss_history_coldness coldness;

	/* Of a guest without samples nothing is kept. */
	add_coldness(history, NOW, 10);
	assert_false(read_coldness(history, &coldness));
	fill(history, UUID_A, 5, NOW, 60);
	assert_false(read_coldness(history, &coldness));
	add_coldness(history, NOW, 10);
	add_coldness(history, NOW + 300, 20);
	assert_true(read_coldness(history, &coldness));
	assert_int_equal(coldness.time, NOW + 300);
	assert_cold_report(&coldness.report, 20);
	wss_history_close(history);
}

struct cold_spans {
	unsigned n, known;
	uint64_t mib[8];
};

static void count_cold_span(const struct wss_history_span *span, void *opaque)
{
	struct cold_spans *spans = opaque;

	assert_true(spans->n < 8);
	spans->mib[spans->n] = span->cold ? span->cold->ages[WSS_COLD_2MIN].low_bytes / MIB : 0;
	if (span->cold)
		assert_cold_report(span->cold, spans->mib[spans->n]);
	spans->known += span->cold != NULL;
	spans->n++;
}

static struct cold_spans read_cold_spans(struct wss_history *history, int level)
{
	struct cold_spans spans = {0};
	struct wss_error err = WSS_ERROR_INIT;

	if (wss_history_spans(history, UUID_A, level, 0, NOW + 86400 * 2, count_cold_span, &spans,
			      &err) < 0)
		fail_msg("%s", err.text);
	return spans;
}

/* The last report of an hour and of a day is theirs. */
TEST(test_coldness_of_spans)
{
	struct wss_history *history = open_history();
	struct cold_spans spans;

	fill(history, UUID_A, 3, NOW, 3600);
	add_coldness(history, NOW, 10);
	add_coldness(history, NOW + 3599, 20);
	add_coldness(history, NOW + 7200, 30);
	spans = read_cold_spans(history, WSS_HISTORY_HOUR);
	assert_int_equal(spans.n, 3);
	assert_int_equal(spans.known, 2);
	assert_int_equal(spans.mib[0], 20);
	assert_int_equal(spans.mib[2], 30);
	spans = read_cold_spans(history, WSS_HISTORY_DAY);
	assert_int_equal(spans.n, 1);
	assert_int_equal(spans.mib[0], 30);
	wss_history_close(history);
}

/* The clock was years ahead and was set back: the newest report of the past counts, and none where there is none. */
TEST(test_coldness_from_the_future)
{
	struct wss_history *history = open_history();
	struct wss_history_coldness coldness;
	struct wss_error err = WSS_ERROR_INIT;

	fill(history, UUID_A, 5, NOW, 60);
	add_coldness(history, NOW + 10LL * 366 * 86400, 10);
	present = NOW;
	assert_int_equal(wss_history_coldness(history, UUID_A, &coldness, &err), 0);
	add_coldness(history, NOW + 300, 20);
	present = NOW + 299;
	assert_int_equal(wss_history_coldness(history, UUID_A, &coldness, &err), 0);
	present = NOW + 300;
	assert_int_equal(wss_history_coldness(history, UUID_A, &coldness, &err), 1);
	assert_int_equal(coldness.time, NOW + 300);
	assert_cold_report(&coldness.report, 20);
	wss_history_close(history);
}

static void count_sample(const struct wss_sample *sample, void *opaque)
{
	(*(unsigned *)opaque)++;
}

/* The clock was years ahead for half a day and was set back: nothing that was stored then counts before its time. */
TEST(test_rows_from_the_future)
{
	const time_t ahead = NOW + 3000LL * 86400;
	struct wss_history *history = open_history();
	struct wss_history_overhead overhead;
	struct wss_history_series series;
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_amount last;

	present = NOW;
	fill(history, UUID_A, 5, NOW - 5 * 3600, 3600);
	for (int i = 0; i < 12; i++) {
		struct wss_sample late = sample_of(UUID_A, 999 * MIB, ahead + i * 3600);

		late.memory.qemu_bytes = wss_amount_of(MIB);
		add(history, &late);
		late.requested_window_ns = 10000000000;
		add(history, &late);
	}
	for (int later = 0; later < 2; later++) {
		unsigned hours = 0, summaries = 0, rows = 0;

		assert_int_equal(wss_history_last(history, UUID_A, &last, &err), 0);
		assert_int_equal(last.value, later ? ahead + 11 * 3600 : NOW - 3600);
		assert_int_equal(wss_history_series(history, UUID_A, 0, 0, &series, &err), 1);
		assert_int_equal(series.window_ns, 4000000000);
		assert_int_equal(series.other_windows, later ? 12 : 0);
		assert_int_equal(series.summary.samples, later ? 17 : 5);
		assert_int_equal(series.time, later ? ahead + 11 * 3600 : NOW - 3600);
		assert_int_equal(wss_history_hours(history, &series, 0, count_hour, &hours, &err),
				 0);
		assert_int_equal(hours, later ? 17 : 5);
		wss_summary_free(&series.summary);
		assert_int_equal(wss_history_hour_summaries(history, UUID_A, count_hour_summary,
							    &summaries, &err),
				 0);
		assert_int_equal(summaries, later ? 17 : 5);
		assert_int_equal(wss_history_overhead(history, UUID_A, 0, &overhead, &err), 0);
		assert_int_equal(overhead.samples, later ? 24 : 0);
		/* What was asked for by time is there all along. */
		assert_int_equal(wss_history_samples(history, UUID_A, ahead, ahead + 86400,
						     count_sample, &rows, &err),
				 0);
		assert_int_equal(rows, 24);
		present = ahead + 86400;
	}
	wss_history_close(history);
}

static void most_of_hours(time_t start, uint64_t bytes, void *opaque)
{
	uint64_t *most = opaque;

	if (bytes > *most)
		*most = bytes;
}

/*
 * The clock was ahead by hours of the same day, and by minutes of the same hour: no size of then counts before its time,
 * the day's older hours do.
 */
TEST(test_rows_from_the_future_of_the_same_day)
{
	const time_t day = NOW - NOW % 86400, now = day + 10 * 3600 + 600;
	struct wss_history *history = open_history();
	struct wss_error err = WSS_ERROR_INIT;

	present = now;
	fill(history, UUID_A, 10, day, 3600);
	fill(history, UUID_A, 10, day - 86400, 3600);
	for (int i = 0; i < 8; i++) {
		struct wss_sample late = sample_of(UUID_A, 999 * MIB, now + 1800 + i * 1800);

		add(history, &late);
	}
	for (int later = 0; later < 2; later++) {
		for (int days = 0; days < 2; days++) {
			struct wss_history_series series;
			uint64_t most = 0;

			assert_int_equal(wss_history_series(history, UUID_A, day - days * 86400, 0,
							    &series, &err),
					 1);
			assert_int_equal(series.summary.samples, (days + 1) * 10 + (later ? 8 : 0));
			assert_int_equal(series.summary.max_bytes, (later ? 999 : 10) * MIB);
			assert_true(series.summary.last <= present);
			assert_int_equal(wss_history_hours(history, &series, day - 86400,
							   most_of_hours, &most, &err),
					 0);
			assert_int_equal(most, (later ? 999 : 10) * MIB);
			wss_summary_free(&series.summary);
		}
		present = now + 6 * 3600;
	}
	/* What is measured meanwhile counts once the hour's rows of the future do. */
	present = now;
	fill(history, UUID_A, 1, now - 60, 1);
	assert_int_equal(count_since(history, UUID_A, day), 10);
	present = now + 3600;
	assert_int_equal(count_since(history, UUID_A, day), 12);
	wss_history_close(history);
}

static unsigned count_samples(struct wss_history *history, const char *uuid, time_t since,
			      time_t until)
{
	struct wss_error err = WSS_ERROR_INIT;
	unsigned rows = 0;

	assert_int_equal(
		wss_history_samples(history, uuid, since, until, count_sample, &rows, &err), 0);
	return rows;
}

/* Writes the log back first. */
static uint64_t file_bytes(void)
{
	struct stat st;

	assert_true(log_can_be_emptied());
	assert_int_equal(stat(path, &st), 0);
	return (uint64_t)st.st_size;
}

static char announced[512];
static unsigned n_announced;

static void note_announced(enum wss_log_level level, const char *text)
{
	assert_int_equal(level, WSS_LOG_WARNING);
	n_announced++;
	snprintf(announced, sizeof(announced), "%s", text);
}

/* Deleting what a lowered limit makes too old or too much is announced; what time makes old is not. */
TEST(test_unusual_retention_is_announced)
{
	struct wss_history *history = open_history();
	struct wss_history_limits limits = WSS_HISTORY_LIMITS_DEFAULT;
	struct wss_error err = WSS_ERROR_INIT;

	n_announced = 0;
	wss_log_set_sink(note_announced);
	fill(history, UUID_A, 3000, NOW - 3000 * 3600, 3600);
	limits.days_s = 120 * 86400;
	assert_int_equal(wss_history_prune(history, &limits, NOW, &err), 0);
	assert_int_equal(n_announced, 0);
	limits.days_s = limits.hours_s = limits.samples_s = 86400;
	assert_int_equal(wss_history_prune(history, &limits, NOW, &err), 0);
	assert_int_equal(n_announced, 1);
	assert_non_null(
		strstr(announced, ": deleting 119 days of data, which are older than keep = 1d"));
	assert_int_equal(wss_history_prune(history, &limits, NOW, &err), 0);
	assert_int_equal(n_announced, 1);
	limits.max_bytes = file_bytes() / 2;
	assert_int_equal(wss_history_prune(history, &limits, NOW, &err), 0);
	assert_int_equal(n_announced, 2);
	assert_non_null(strstr(announced, "(keep-size, less its log)"));
	wss_log_set_sink(NULL);
	wss_history_close(history);
}

/* The size limit takes what does not count yet, the farthest first, before anything that does. */
TEST(test_rows_from_the_future_go_first)
{
	const time_t ahead = NOW + 3000LL * 86400;
	struct wss_history_limits limits = WSS_HISTORY_LIMITS_DEFAULT;
	struct wss_history *history = open_history();
	struct wss_error err = WSS_ERROR_INIT;
	uint64_t present_bytes;

	fill(history, UUID_A, 500, NOW - 500 * 60, 60);
	present_bytes = file_bytes();
	fill(history, UUID_B, 10, NOW + 60, 1);
	fill(history, UUID_B, 1000, ahead, 20);
	limits.max_bytes = file_bytes() - 32768;
	assert_int_equal(wss_history_prune(history, &limits, NOW, &err), 0);
	assert_int_equal(count_samples(history, UUID_A, 0, NOW), 500);
	assert_int_equal(count_samples(history, UUID_B, NOW, ahead - 1), 10);
	assert_in_range(count_samples(history, UUID_B, ahead, WSS_TIME_MAX_S), 1, 900);
	/* Summaries, too, before any sample of the present. */
	limits.max_bytes = present_bytes;
	assert_int_equal(wss_history_prune(history, &limits, NOW, &err), 0);
	assert_int_equal(count_samples(history, UUID_A, 0, NOW), 500);
	assert_int_equal(count_samples(history, UUID_B, NOW, WSS_TIME_MAX_S), 0);
	wss_history_close(history);
}

/* With a clock that is behind, nearly all rows lie ahead: the newest must not be the first to go. */
TEST(test_clock_behind_deletes_the_oldest)
{
	struct wss_history_limits limits = WSS_HISTORY_LIMITS_DEFAULT;
	struct wss_history *history = open_history();
	struct wss_error err = WSS_ERROR_INIT;

	fill(history, UUID_A, 2000, NOW - 2000 * 60, 60);
	limits.max_bytes = file_bytes() * 9 / 10;
	n_announced = 0;
	wss_log_set_sink(note_announced);
	assert_int_equal(wss_history_prune(history, &limits, NOW - 3000 * 86400LL, &err), 0);
	wss_log_set_sink(NULL);
	assert_int_equal(n_announced, 1);
	assert_non_null(strstr(announced, "is the clock behind?"));
	assert_int_equal(count_samples(history, UUID_A, NOW - 6000, NOW), 100);
	assert_in_range(count_samples(history, UUID_A, 0, NOW), 100, 1990);
	wss_history_close(history);
}

TEST(test_coldness_is_forgotten)
{
	struct wss_history_limits limits = WSS_HISTORY_LIMITS_DEFAULT;
	struct wss_history *history = open_history();
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_history_coldness coldness;

	fill(history, UUID_A, 60, NOW, 3600);
	add_coldness(history, NOW, 10);
	add_coldness(history, NOW + 59 * 3600, 20);
	limits.hours_s = limits.days_s = 86400;
	assert_int_equal(wss_history_prune(history, &limits, NOW + 59 * 3600, &err), 0);
	change("CREATE TEMP TABLE t (n CHECK (n = 0)); INSERT INTO t SELECT count(*) FROM coldness "
	       "WHERE time < 1795197601");
	assert_true(read_coldness(history, &coldness));
	/* The size limit takes it, too. */
	limits.max_bytes = 1;
	assert_int_equal(wss_history_prune(history, &limits, NOW + 59 * 3600, &err), 0);
	assert_false(read_coldness(history, &coldness));
	wss_history_close(history);
}

/* What cannot be is not known. */
TEST(test_coldness_that_cannot_be)
{
	static const char *const forged[] = {
		"low_24h = 2000000000000",
		"high_2m = 2000000000000",
		"observed_1h = 1000001",
		"high_never = -1",
		"watched_s = -1",
		"time = 253402300800",
		"held_bytes = 9223372036854775807",
		"watched_s = 9223372036854775807",
	};
	struct wss_history *history = open_history();
	struct wss_history_coldness coldness;

	fill(history, UUID_A, 1, NOW, 60);
	for (size_t i = 0; i < sizeof(forged) / sizeof(forged[0]); i++) {
		char sql[128];

		add_coldness(history, NOW, 10);
		assert_true(read_coldness(history, &coldness));
		snprintf(sql, sizeof(sql), "UPDATE coldness SET %s", forged[i]);
		change(sql);
		if (read_coldness(history, &coldness))
			fail_msg("%s", forged[i]);
		assert_int_equal(read_cold_spans(history, WSS_HISTORY_HOUR).known, 0);
		change("DELETE FROM coldness");
	}
	wss_history_close(history);
}

/* A report on more memory than any guest has does not hide an older one, nor is a figure in it taken for 0. */
TEST(test_coldness_of_sizes_that_cannot_be)
{
	static const char *const forged[] = {
		"held_bytes", "high_never", "absent_bytes", "granularity_bytes", "high_2m",
	};
	struct wss_history *history = open_history();
	struct wss_history_coldness coldness;

	fill(history, UUID_A, 1, NOW, 60);
	for (size_t i = 0; i < sizeof(forged) / sizeof(forged[0]); i++) {
		char sql[128];

		add_coldness(history, NOW, 10);
		add_coldness(history, NOW + 3600, 20);
		snprintf(sql, sizeof(sql),
			 "UPDATE coldness SET %s = 1152921504606846977 WHERE time > %d", forged[i],
			 NOW);
		change(sql);
		assert_true(read_coldness(history, &coldness));
		assert_int_equal(coldness.time, NOW);
		assert_int_equal(read_cold_spans(history, WSS_HISTORY_HOUR).known, 1);
		change("DELETE FROM coldness");
	}
	wss_history_close(history);
}

/* --- what a guest cannot give up --- */

/* Stores a sample of a guest of 1 GiB with this balloon, resident memory and floor, 0: unknown, in MiB. */
static void floor_add(struct wss_history *history, const char *uuid, time_t time,
		      uint64_t balloon_mib, uint64_t resident_mib, uint64_t unreclaimable_mib)
{
	struct wss_sample sample = sample_of(uuid, 100, time);

	sample.memory = (typeof(sample.memory)){
		.maximum_bytes = wss_amount_of(1024 * MIB),
		.balloon_bytes = {balloon_mib != 0, balloon_mib * MIB},
		.rss_bytes = {resident_mib != 0, resident_mib * MIB},
		.unreclaimable_bytes = {unreclaimable_mib != 0, unreclaimable_mib * MIB},
	};
	assert_int_equal(wss_history_add(history, &sample, NULL), 0);
}

static void cached_add(struct wss_history *history, const char *uuid, time_t time,
		       uint64_t unreclaimable_mib, uint64_t cache_mib)
{
	struct wss_sample sample = sample_of(uuid, 100 * MIB, time);

	sample.memory.unreclaimable_bytes = wss_amount_of(unreclaimable_mib * MIB);
	sample.memory.cache_bytes = wss_amount_of(cache_mib * MIB);
	assert_int_equal(wss_history_add(history, &sample, NULL), 0);
}

static void check_floor(struct wss_history *history, const char *uuid, time_t since,
			bool reports_free, enum wss_floor_source source, uint64_t mib)
{
	struct wss_floor floor;

	assert_int_equal(wss_history_floor(history, uuid, since, reports_free, &floor, NULL), 0);
	assert_int_equal(floor.source, source);
	assert_int_equal(floor.bytes, mib * MIB);
}

TEST(test_floor)
{
	struct wss_history *history = open_history();
	time_t hour = NOW - NOW % 3600 - 7200;
	struct wss_floor floor;

	check_floor(history, UUID_A, 0, true, WSS_FLOOR_UNKNOWN, 0);
	/* A guest with its whole memory shows nothing, unless it reports what is free. */
	for (time_t t = 0; t < 3600; t += 300)
		floor_add(history, UUID_A, hour + t, 1024, 500 + (uint64_t)t / 100, 0);
	check_floor(history, UUID_A, 0, false, WSS_FLOOR_UNKNOWN, 0);
	check_floor(history, UUID_A, 0, true, WSS_FLOOR_FREE_REPORTING, 533);
	/* One with a smaller balloon has shown that it can live with that, once it lasts. */
	floor_add(history, UUID_A, hour + 3600, 300, 200, 0);
	floor_add(history, UUID_A, hour + 3900, 300, 200, 0);
	check_floor(history, UUID_A, 0, false, WSS_FLOOR_UNKNOWN, 0);
	floor_add(history, UUID_A, hour + 5600, 400, 200, 0);
	check_floor(history, UUID_A, 0, true, WSS_FLOOR_BALLOONING, 400);
	/* What the guest itself says counts most: the most of it, and when it was said last. */
	floor_add(history, UUID_A, hour + 5700, 400, 200, 310);
	floor_add(history, UUID_A, hour + 5800, 400, 200, 250);
	check_floor(history, UUID_A, 0, true, WSS_FLOOR_STATISTICS, 310);
	assert_int_equal(wss_history_floor(history, UUID_A, 0, true, &floor, NULL), 0);
	assert_int_equal(floor.time, hour + 5800);
	check_floor(history, UUID_A, hour + 5750, true, WSS_FLOOR_STATISTICS, 250);
	/* Its window of 100 MiB may be page cache, as far as it has any. */
	cached_add(history, UUID_A, hour + 5900, 300, 30);
	check_floor(history, UUID_A, 0, true, WSS_FLOOR_STATISTICS, 330);
	cached_add(history, UUID_A, hour + 6000, 300, 700);
	check_floor(history, UUID_A, 0, true, WSS_FLOOR_STATISTICS, 400);
	check_floor(history, UUID_B, 0, true, WSS_FLOOR_UNKNOWN, 0);
	wss_history_close(history);
}

/* What a squeeze has found counts for four weeks: beside the guest's statistics only if it paged with less. */
TEST(test_floor_of_a_squeeze)
{
	struct wss_history *history = open_history();
	struct wss_floor floor;

	present = NOW;
	floor_add(history, UUID_A, NOW - 60, 1024, 900, 0);
	assert_int_equal(wss_history_note_squeeze(history, UUID_A, 700 * MIB, true, NULL), 0);
	check_floor(history, UUID_A, 0, true, WSS_FLOOR_SQUEEZE, 700);
	assert_int_equal(wss_floor_bytes(&(struct wss_floor){WSS_FLOOR_SQUEEZE, 700 * MIB, 0, 0},
					 100 * MIB, 20),
			 700 * MIB);
	floor_add(history, UUID_A, NOW - 30, 1024, 900, 300);
	check_floor(history, UUID_A, 0, true, WSS_FLOOR_STATISTICS, 300);
	assert_int_equal(wss_history_floor(history, UUID_A, 0, true, &floor, NULL), 0);
	assert_int_equal(floor.least_bytes, 700 * MIB);
	assert_int_equal(wss_floor_bytes(&floor, 100 * MIB, 20), 700 * MIB);
	/* The next one replaces it, and ended before the guest paged. */
	assert_int_equal(wss_history_note_squeeze(history, UUID_A, 600 * MIB, false, NULL), 0);
	assert_int_equal(wss_history_floor(history, UUID_A, 0, true, &floor, NULL), 0);
	assert_int_equal(floor.least_bytes, 0);
	present = NOW + WSS_FLOOR_SQUEEZE_S;
	check_floor(history, UUID_A, NOW + 60, true, WSS_FLOOR_SQUEEZE, 600);
	present++;
	check_floor(history, UUID_A, NOW + 60, true, WSS_FLOOR_UNKNOWN, 0);
	wss_history_close(history);
}

/* --- QEMU's own memory --- */

static void add_overhead(struct wss_history *history, time_t when, struct wss_amount bytes)
{
	struct wss_sample sample = sample_of(UUID_A, 100 << 20, when);

	sample.memory.qemu_bytes = bytes;
	assert_int_equal(wss_history_add(history, &sample, NULL), 0);
}

static struct wss_history_overhead read_overhead(struct wss_history *history, time_t since)
{
	struct wss_history_overhead overhead = {.samples = 1000};

	assert_int_equal(wss_history_overhead(history, UUID_A, since, &overhead, NULL), 0);
	return overhead;
}

TEST(test_overhead)
{
	struct wss_history *history = open_history();
	struct wss_history_overhead overhead;

	add_overhead(history, NOW, (struct wss_amount){0});
	overhead = read_overhead(history, 0);
	assert_false(overhead.p99_bytes.known);
	assert_int_equal(overhead.samples, 0);
	for (uint64_t i = 1; i <= 99; i++)
		add_overhead(history, NOW + (time_t)i, wss_amount_of(i << 20));
	overhead = read_overhead(history, 0);
	assert_int_equal(overhead.samples, 99);
	assert_int_equal(overhead.p99_bytes.value >> 20, 99);
	for (uint64_t i = 100; i <= 200; i++)
		add_overhead(history, NOW + (time_t)i, wss_amount_of(i << 20));
	assert_int_equal(read_overhead(history, 0).p99_bytes.value >> 20, 198);
	/* Of the samples since. */
	assert_int_equal(read_overhead(history, NOW + 200).samples, 1);
	wss_history_close(history);
}

TEST(test_no_place)
{
	struct wss_history *history = NULL;
	struct wss_error err = WSS_ERROR_INIT;

	assert_int_equal(wss_history_open_readonly(path, &history, &err), -1);
	assert_error(&err, WSS_ERR_GONE, "cannot open its directory");
	snprintf(path, sizeof(path), "/proc/nowhere/history.db");
	wss_error_clear(&err);
	assert_int_equal(wss_history_open(path, &history, &err), -1);
	assert_error(&err, WSS_ERR_FAILED, "cannot make directory /proc/nowhere");
}

static ssize_t write_to_read_only(int fd, const void *data, size_t size, off_t offset)
{
	errno = EROFS;
	return -1;
}

/*
 * The file system becomes read-only while the history is open, as after an error of its disk. The
 * history continues once that is over.
 */
TEST(test_becomes_read_only)
{
	static const char *const calls[] = {"pwrite", "pwrite64"};
	sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);
	struct wss_history *history = open_history();
	struct wss_sample sample = sample_of(UUID_A, MIB, NOW);
	struct wss_error err = WSS_ERROR_INIT;

	add(history, &sample);
	for (size_t i = 0; i < 2; i++)
		vfs->xSetSystemCall(vfs, calls[i], (sqlite3_syscall_ptr)write_to_read_only);
	assert_int_equal(wss_history_add(history, &sample, &err), -1);
	for (size_t i = 0; i < 2; i++)
		vfs->xSetSystemCall(vfs, calls[i], NULL);
	assert_error(&err, WSS_ERR_FAILED, "cannot write to it");
	add(history, &sample);
	assert_int_equal(count_since(history, UUID_A, 0), 2);
	wss_history_close(history);
}

static int assert_name(const char *uuid, const char *name, void *unused)
{
	assert_string_equal(name, strcmp(uuid, UUID_A) ? "web1" : "web2");
	return 0;
}

/*
 * A guest keeps its windows under a new name, and a guest that took over its old name has none of
 * them.
 */
TEST(test_renamed_and_replaced)
{
	struct wss_history *history = open_history();
	struct wss_sample sample = sample_of(UUID_A, MIB, NOW);
	struct wss_error err = WSS_ERROR_INIT;

	snprintf(sample.domain, sizeof(sample.domain), "web1");
	add(history, &sample);
	snprintf(sample.domain, sizeof(sample.domain), "web2");
	add(history, &sample);
	sample = sample_of(UUID_B, MIB, NOW);
	snprintf(sample.domain, sizeof(sample.domain), "web1");
	add(history, &sample);
	assert_int_equal(count_since(history, UUID_A, 0), 2);
	assert_int_equal(count_since(history, UUID_B, 0), 1);
	assert_int_equal(wss_history_guests(history, assert_name, NULL, &err), 0);
	wss_history_close(history);
}

TEST(test_no_uuid)
{
	struct wss_history *history = open_history();
	struct wss_sample sample = sample_of("", MIB, NOW);
	struct wss_error err = WSS_ERROR_INIT;

	assert_int_equal(wss_history_add(history, &sample, &err), -1);
	assert_error(&err, WSS_ERR_UNSUPPORTED, "UUID");
	wss_history_close(history);
}

/* Only a file that this handle has created is removed, and only if nobody else uses it. */
TEST(test_unused)
{
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_history *history = open_history(), *other;
	wss_auto_close int fd = -1;
	uint8_t version = 0;

	wss_history_close_unused(history);
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(wss_history_open_readonly(path, &other, &err), -1);
	assert_int_equal(err.code, WSS_ERR_GONE);

	history = open_history();
	other = open_history();
	wss_history_close_unused(history);
	assert_int_equal(access(path, F_OK), 0);
	fill(other, UUID_A, 1, NOW, 300);
	wss_history_close_unused(other);
	assert_int_equal(access(path, F_OK), 0);

	wss_history_close_unused(open_history());
	assert_int_equal(access(path, F_OK), 0);
	assert_int_equal(unlink(path), 0);

	history = open_history();
	fill(history, UUID_A, 1, NOW, 300);
	wss_history_close_unused(history);
	assert_int_equal(access(path, F_OK), 0);
	/* A history in use stays in WAL mode: byte 18 of the file (SQLite's file format). */
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(pread(fd, &version, 1, 18), 1);
	assert_int_equal(version, 2);
	wss_history_close_unused(NULL);
}

static sqlite3_mem_methods sqlite_memory;
static bool noting;
static long allocations_left; /* the one that fails; negative: none */

static bool allocation_fails(void)
{
	if (noting)
		ways_note();
	return allocations_left-- == 0;
}

static void *fail_malloc(int size)
{
	return allocation_fails() ? NULL : sqlite_memory.xMalloc(size);
}

static void *fail_realloc(void *memory, int size)
{
	return allocation_fails() ? NULL : sqlite_memory.xRealloc(memory, size);
}

static void sqlite_use(const sqlite3_mem_methods *methods)
{
	sqlite3_shutdown();
	assert_int_equal(sqlite3_config(SQLITE_CONFIG_MALLOC, methods), SQLITE_OK);
	allocations_left = -1;
	assert_int_equal(sqlite3_initialize(), SQLITE_OK);
}

/* Makes a history while the allocation of that number fails. Returns whether it is made. */
static bool made_without(size_t number)
{
	struct wss_history *history = NULL;
	struct wss_error err = WSS_ERROR_INIT;
	int r;

	allocations_left = (long)number;
	r = wss_history_open(path, &history, &err);
	if (r < 0 && access(path, F_OK) == 0)
		fail_msg("allocation %zu: a history is left: %s", number, err.text);
	wss_history_close_unused(history);
	allocations_left = -1;
	return r == 0;
}

/* Whichever allocation of SQLite fails as a history is made, none that is unused stays behind. */
TEST(test_out_of_memory)
{
	unsigned n_failed = 0;
	sqlite3_mem_methods failing;

	sqlite3_shutdown();
	assert_int_equal(sqlite3_config(SQLITE_CONFIG_GETMALLOC, &sqlite_memory), SQLITE_OK);
	failing = sqlite_memory;
	failing.xMalloc = fail_malloc;
	failing.xRealloc = fail_realloc;
	sqlite_use(&failing);
	noting = true;
	wss_history_close_unused(open_history());
	noting = false;
	for (size_t i = 0; i < ways.n_allocations; i++)
		if (ways_choose(i))
			n_failed += !made_without(i);
	sqlite_use(&sqlite_memory);
	/* SQLite can do without some of its memory. */
	assert_in_range(n_failed, ways.n, INT_MAX);
}

TEST(test_default_path)
{
	wss_auto_free char *def = NULL;
	char *set;

	unsetenv("VIRT_WSS_HISTORY");
	setenv("XDG_STATE_HOME", "/state", 1);
	def = wss_history_default_path();
	assert_string_equal(def, geteuid() == 0 ? "/var/lib/virt-wss/history.db"
						: "/state/virt-wss/history.db");
	setenv("VIRT_WSS_HISTORY", "/x/y", 1);
	set = wss_history_default_path();
	assert_string_equal(set, "/x/y");
	free(set);
}

static int64_t stored_samples(void)
{
	sqlite3_stmt *stmt;
	sqlite3 *db;
	int64_t n;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_prepare_v2(db, "SELECT count(*) FROM sample", -1, &stmt, NULL),
			 SQLITE_OK);
	assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
	n = sqlite3_column_int64(stmt, 0);
	sqlite3_finalize(stmt);
	sqlite3_close(db);
	return n;
}

/* A stop ends a long query and the deletion of a large backlog. Last: the flag stays. */
TEST(test_stop)
{
	struct wss_history_limits limits = WSS_HISTORY_LIMITS_DEFAULT;
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_history *history = open_history(), *reader = NULL;
	int64_t before;

	fill(history, UUID_A, 1, NOW, 1);
	change("INSERT INTO sample (series_id, time, quality, wss_bytes) "
	       "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n "
	       "WHERE i < 100000) SELECT 1, i, 0, 4096 FROM n");
	before = stored_samples();
	wss_stop_install();
	raise(SIGTERM);
	assert_int_equal(wss_history_prune(history, &limits, NOW, &err), -1);
	assert_error(&err, WSS_ERR_INTERRUPTED, "interrupted");
	assert_int_equal(stored_samples(), before);
	wss_history_close(history);
	wss_error_clear(&err);
	assert_int_equal(wss_history_open_readonly(path, &reader, &err), -1);
	assert_error(&err, WSS_ERR_INTERRUPTED, "interrupted");
	wss_error_clear(&err);
	assert_int_equal(wss_history_open(path, &reader, &err), -1);
	assert_error(&err, WSS_ERR_INTERRUPTED, "interrupted");
}

int main(void)
{
	return tests_run_each(set_up, tear_down);
}
