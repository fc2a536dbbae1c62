/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "hosttest.h"

#include <dirent.h>
#include <sqlite3.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/stop.h"
#include "history/db.h"
#include "serve/archive.h"

#define MIB (1ULL << 20)

static char *tree;
static char path[PATH_MAX];
static struct wss_archive *archive;
static uint64_t now_ns = 1000 * WSS_NS_PER_S;

static uint64_t clock_now_ns(void *unused)
{
	return now_ns;
}

static void clock_sleep_until_ns(void *unused, uint64_t when_ns)
{
	now_ns = when_ns;
}

static int set_up(void **unused)
{
	static const struct wss_clock_source clock = {
		.now_ns = clock_now_ns,
		.sleep_until_ns = clock_sleep_until_ns,
	};
	struct wss_error err = WSS_ERROR_INIT;

	tree = make_tree();
	make_path(path, "%s/history.db", tree);
	wss_clock_inject(&clock);
	if (wss_archive_open(path, &archive, &err) < 0)
		fail_msg("%s", err.text);
	return 0;
}

static int tear_down(void **unused)
{
	assert_true(wss_archive_close(archive));
	wss_clock_inject(NULL);
	remove_tree(tree);
	return 0;
}

static void add_of(const char *name, const char *uuid, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct wss_sample sample = {
			.wall = wss_clock_wall_seconds(),
			.method = "mmu",
			.granularity_bytes = wss_amount_of(4096),
			.requested_window_ns = 4 * WSS_NS_PER_S,
			.wss_bytes = wss_amount_of(i * MIB),
		};

		snprintf(sample.domain, sizeof(sample.domain), "%s", name);
		snprintf(sample.uuid, sizeof(sample.uuid), "%s", uuid);
		wss_archive_add(archive, &sample);
	}
}

/* One that no guest can have. */
static void add_large(const char *name, const char *uuid)
{
	struct wss_sample sample = {
		.wall = wss_clock_wall_seconds(),
		.method = "mmu",
		.granularity_bytes = wss_amount_of(4096),
		.requested_window_ns = 4 * WSS_NS_PER_S,
		.wss_bytes = wss_amount_of(UINT64_MAX),
	};

	snprintf(sample.domain, sizeof(sample.domain), "%s", name);
	snprintf(sample.uuid, sizeof(sample.uuid), "%s", uuid);
	wss_archive_add(archive, &sample);
}

static void add(unsigned n)
{
	add_of("web1", UUID_A, n);
}

static void step_after(uint64_t delay_ns)
{
	now_ns += delay_ns;
	wss_archive_step(archive, NULL);
	while (wss_archive_is_busy(archive))
		usleep(1000);
}

static void assert_counts(uint64_t stored, uint64_t lost)
{
	struct wss_archive_counts counts = wss_archive_count(archive);

	assert_int_equal(counts.stored, stored);
	assert_int_equal(counts.lost, lost);
	assert_int_equal(counts.added, counts.stored + counts.waiting + counts.lost);
}

/* Returns how many samples another reader finds. */
static unsigned samples_on_disk(void)
{
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_history *history;
	struct wss_history_series series;
	unsigned n = 0;

	if (wss_history_open_readonly(path, &history, &err) < 0)
		fail_msg("%s", err.text);
	if (wss_history_series(history, UUID_A, 0, 0, &series, &err) == 1) {
		n = (unsigned)series.summary.samples;
		wss_summary_free(&series.summary);
	}
	wss_history_close(history);
	return n;
}

/* Another process writes. */
static sqlite3 *lock(void)
{
	sqlite3 *db;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
	return db;
}

TEST(test_together)
{
	add(2);
	step_after(WSS_ARCHIVE_DELAY_NS / 2);
	add(1);
	step_after(WSS_ARCHIVE_DELAY_NS / 2 - 1);
	assert_counts(0, 0);
	assert_int_equal(samples_on_disk(), 0);
	step_after(1);
	assert_counts(3, 0);
	assert_int_equal(samples_on_disk(), 3);
	step_after(WSS_ARCHIVE_DELAY_NS);
	assert_counts(3, 0);
}

TEST(test_many)
{
	add(WSS_ARCHIVE_SAMPLES_MAX);
	step_after(0);
	assert_counts(WSS_ARCHIVE_SAMPLES_MAX, 0);
}

TEST(test_finish)
{
	add(5);
	wss_archive_finish(archive, NULL);
	assert_counts(5, 0);
	assert_int_equal(samples_on_disk(), 5);
}

TEST(test_locked)
{
	sqlite3 *other;

	other = lock();
	add(10);
	step_after(WSS_ARCHIVE_DELAY_NS);
	assert_counts(0, 0);
	add(WSS_ARCHIVE_SAMPLES_MAX);
	step_after(WSS_ARCHIVE_DELAY_NS);
	assert_counts(0, 10);
	sqlite3_close(other);
	step_after(WSS_ARCHIVE_DELAY_NS);
	assert_counts(WSS_ARCHIVE_SAMPLES_MAX, 10);
	assert_int_equal(samples_on_disk(), WSS_ARCHIVE_SAMPLES_MAX);
}

TEST(test_removed)
{
	add(1);
	assert_int_equal(unlink(path), 0);
	step_after(WSS_ARCHIVE_DELAY_NS);
	assert_counts(1, 0);
	assert_int_equal(samples_on_disk(), 1);
}

static char told[4096];

static void keep_text(enum wss_log_level level, const char *text)
{
	size_t len = strlen(told);

	if (level <= WSS_LOG_INFO)
		snprintf(told + len, sizeof(told) - len, "%s\n", text);
}

static unsigned count_lines(const char *text)
{
	unsigned n = 0;

	for (; *text; text++)
		n += *text == '\n';
	return n;
}

static ssize_t write_to_full_disk(int fd, const void *data, size_t size, off_t offset)
{
	errno = ENOSPC;
	return -1;
}

static void fill_disk(bool full)
{
	static const char *const calls[] = {"pwrite", "pwrite64", "write"};
	sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);

	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		vfs->xSetSystemCall(vfs, calls[i],
				    full ? (sqlite3_syscall_ptr)write_to_full_disk : NULL);
}

/* Samples wait for room on a full disk as they do for a lock, and the log says how many are lost. */
TEST(test_full_disk)
{
	told[0] = '\0';
	wss_log_set_sink(keep_text);
	fill_disk(true);
	add(8);
	step_after(WSS_ARCHIVE_DELAY_NS);
	assert_counts(0, 0);
	assert_int_equal(wss_archive_count(archive).waiting, 8);
	assert_non_null(strstr(told, "8 samples waiting, 0 lost"));
	for (unsigned i = 0; i < WSS_ARCHIVE_SAMPLES_MAX; i++) {
		add(1);
		step_after(WSS_ARCHIVE_DELAY_NS);
	}
	assert_counts(0, 8);
	assert_int_equal(wss_archive_count(archive).waiting, WSS_ARCHIVE_SAMPLES_MAX);
	fill_disk(false);
	step_after(WSS_ARCHIVE_DELAY_NS);
	assert_counts(WSS_ARCHIVE_SAMPLES_MAX, 8);
	assert_int_equal(samples_on_disk(), WSS_ARCHIVE_SAMPLES_MAX);
	wss_log_set_sink(NULL);
	/* In five minutes: the beginning, the end, and once a minute between. */
	assert_in_range(count_lines(told), 4, 10);
}

/* A service that ends with samples that it cannot store says how many. */
TEST(test_end_with_full_disk)
{
	told[0] = '\0';
	wss_log_set_sink(keep_text);
	fill_disk(true);
	add(3);
	wss_archive_finish(archive, NULL);
	fill_disk(false);
	wss_log_set_sink(NULL);
	assert_counts(0, 3);
	assert_non_null(strstr(told, "3 samples lost"));
}

/* What the history has of one guest is damaged: its samples are stored, and so are the others'. */
static unsigned works_again;

static void count_works_again(enum wss_log_level level, const char *text)
{
	(void)level;
	works_again += strstr(text, "it works again") != NULL;
}

/* Samples of other guests that are stored meanwhile say nothing about one whose samples are lost. */
TEST(test_one_guest_is_lost)
{
	wss_log_set_sink(count_works_again);
	works_again = 0;
	for (unsigned i = 1; i <= 3; i++) {
		add_large("web2", UUID_B);
		step_after(WSS_ARCHIVE_DELAY_NS);
		assert_counts(i - 1, i);
		add(1);
		step_after(WSS_ARCHIVE_DELAY_NS);
		assert_counts(i, i);
		assert_int_equal(works_again, 0);
	}
	add_of("web2", UUID_B, 1);
	step_after(WSS_ARCHIVE_DELAY_NS);
	assert_counts(4, 3);
	assert_int_equal(works_again, 1);
	wss_log_set_sink(NULL);
}

TEST(test_damaged_summary)
{
	static const char *const damages[] = {
		"UPDATE summary SET sizes = x'ff'",
		"UPDATE summary SET curve = 'nonsense' WHERE level = 86400",
		"UPDATE summary SET samples = -1, sizes = zeroblob(3) WHERE level = 3600",
		"UPDATE summary SET first = 9000000000000, last = 1",
	};
	sqlite3 *db;

	for (size_t i = 0; i < sizeof(damages) / sizeof(damages[0]); i++) {
		struct wss_archive_counts before;

		add(1);
		step_after(WSS_ARCHIVE_DELAY_NS);
		before = wss_archive_count(archive);
		assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
		assert_int_equal(sqlite3_exec(db, damages[i], NULL, NULL, NULL), SQLITE_OK);
		add_of("web2", UUID_B, 3);
		add(2);
		add_of("web2", UUID_B, 4);
		step_after(WSS_ARCHIVE_DELAY_NS);
		assert_counts(before.stored + 9, before.lost);
		assert_int_equal(wss_archive_count(archive).waiting, 0);
		assert_int_equal(sqlite3_exec(db, "DELETE FROM summary", NULL, NULL, NULL),
				 SQLITE_OK);
		sqlite3_close(db);
	}
}

/* Does something to the file of the history, by its name alone. */
static void spoil_by_emptying(void)
{
	assert_int_equal(truncate(path, 0), 0);
}

static void spoil_by_shortening(void)
{
	assert_int_equal(truncate(path, 100), 0);
}

static void write_text(const char *name)
{
	FILE *f = fopen(name, "w");

	assert_non_null(f);
	for (int i = 0; i < 5000; i++)
		fprintf(f, "no history\n");
	assert_int_equal(fclose(f), 0);
}

/* By the end, of which the writer has the pages in memory. */
static void spoil_by_halving(void)
{
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(truncate(path, st.st_size / 2), 0);
}

static void spoil_by_overwriting(void)
{
	write_text(path);
}

static void spoil_by_replacing(void)
{
	char other[PATH_MAX];

	make_path(other, "%s/other", tree);
	write_text(other);
	assert_int_equal(rename(other, path), 0);
}

static unsigned count_kept(void)
{
	wss_auto_dir DIR *dir = opendir(tree);
	unsigned n = 0;

	assert_non_null(dir);
	for (struct dirent *entry; (entry = readdir(dir));)
		n += strstr(entry->d_name, ".db.damaged-") && !strstr(entry->d_name, "-wal") &&
		     !strstr(entry->d_name, "-shm");
	return n;
}

/* The service goes on in a new history, and keeps what is left of the damaged one beside it. */
TEST(test_damaged_file)
{
	static const struct {
		void (*spoil)(void);
		bool in_log; /* what was stored is in the log alone */
		unsigned kept;
	} cases[] = {
		{spoil_by_emptying, false, 0},	  {spoil_by_emptying, true, 0},
		{spoil_by_shortening, false, 1},  {spoil_by_halving, false, 1},
		{spoil_by_overwriting, false, 1}, {spoil_by_overwriting, true, 1},
		{spoil_by_replacing, false, 1},
	};
	uint64_t stored = 0;
	unsigned kept = 0;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		add(3);
		step_after(WSS_ARCHIVE_DELAY_NS);
		stored += 3;
		if (!cases[i].in_log)
			assert_int_equal(sqlite3_wal_checkpoint_v2(wss_archive_history(archive)->db,
								   NULL, SQLITE_CHECKPOINT_TRUNCATE,
								   NULL, NULL),
					 SQLITE_OK);
		told[0] = '\0';
		wss_log_set_sink(keep_text);
		cases[i].spoil();
		for (int k = 0; k < 3; k++) {
			add(2);
			step_after(WSS_ARCHIVE_DELAY_NS);
		}
		wss_log_set_sink(NULL);
		stored += 6;
		kept += cases[i].kept;
		print_message("%zu: %s", i, told);
		assert_counts(stored, 0);
		assert_int_equal(samples_on_disk(), 6);
		assert_int_equal(count_lines(told), 1);
		assert_int_equal(count_kept(), kept);
		assert_int_equal(strstr(told, ".db.damaged-") != NULL, cases[i].kept);
	}
}

TEST(test_limits)
{
	struct wss_history_limits limits = {.samples_s = 60, .hours_s = 60, .days_s = 60};

	add(1);
	step_after(2 * 3600 * WSS_NS_PER_S);
	assert_int_equal(samples_on_disk(), 1);
	wss_archive_set_limits(archive, &limits);
	step_after(0);
	assert_int_equal(samples_on_disk(), 0);
}

TEST(test_none)
{
	struct wss_history_limits limits = {.samples_s = 1};
	struct wss_sample sample = {.uuid = UUID_A};

	wss_archive_set_limits(NULL, &limits);
	wss_archive_add(NULL, &sample);
	wss_archive_step(NULL, NULL);
	wss_archive_finish(NULL, NULL);
	assert_null(wss_archive_history(NULL));
	assert_int_equal(wss_archive_count(NULL).stored, 0);
	wss_archive_close(NULL);
}

int main(void)
{
	return tests_run_each(set_up, tear_down);
}
