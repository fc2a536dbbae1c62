/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The files of ages: what is written is read, and nothing else is. */
#include "hosttest.h"

#include "base/file.h"
#include "base/log.h"
#include "base/units.h"
#include "cold/ages.h"
#include "cold/aging.h"
#include "host/guest.h"
#include "recording/codec.h"

#define MIN_NS (60 * WSS_NS_PER_S)
#define PAGES 8192ULL /* 32 MiB */
/* The VGA window hides some of them. */
#define RAM_PAGES (PAGES - 32)

static const struct wss_run parts[] = {{0, 4096}, {1 << 20, 4096}};

static char *tree, *path;
static struct wss_ages_key key;
static struct wss_pageset *touched;

static uint64_t later_ns;

static uint64_t later(void *unused)
{
	return later_ns += 1000;
}

static int setup(void **unused)
{
	static const struct wss_clock_source source = {.now_ns = later};

	later_ns = 5000 * WSS_NS_PER_S;
	wss_clock_inject(&source);
	tree = make_tree();
	path = wss_ages_path(tree, UUID_A);
	touched = wss_pageset_new(1 << 21);
	assert_non_null(path);
	assert_non_null(touched);
	key = (struct wss_ages_key){
		.uuid = UUID_A, .name = "web1", .boot_id = "boot", .pid = 7, .start_ticks = 12345};
	return 0;
}

static int teardown(void **unused)
{
	wss_clock_inject(NULL);
	wss_pageset_free(touched);
	free(path);
	remove_tree(tree);
	return 0;
}

/* Of a guest that touched some runs of pages in the last ten seconds. */
static struct wss_coldness *make_coldness(void)
{
	struct wss_coldness *coldness = wss_coldness_new(parts, 2, WSS_MIB, NULL);
	uint64_t now_ns = wss_clock_now_ns() - 10 * WSS_NS_PER_S;

	assert_non_null(coldness);
	for (uint64_t i = 0; i < 10; i++) {
		struct wss_cold_window window = {.start_ns = now_ns,
						 .end_ns = now_ns + WSS_NS_PER_S};

		wss_pageset_remove(touched, 0, wss_pageset_size(touched));
		wss_pageset_add(touched, 37 * i, 90);
		wss_pageset_add(touched, (1 << 20) + 100 * i, 3);
		window.touched = wss_pages_of_set(touched);
		wss_coldness_add(coldness, &window);
		now_ns = window.end_ns;
	}
	return coldness;
}

static int write_ages(const char *where, const struct wss_coldness *coldness, uint64_t limit_bytes,
		      struct wss_error *err)
{
	uint8_t *data;
	size_t size;
	int r = wss_ages_encode(&key, coldness, limit_bytes, &data, &size, err);

	if (r < 0)
		return -1;
	r = wss_ages_write(where, data, size, err);
	free(data);
	return r;
}

static struct wss_coldness *write_some(void)
{
	struct wss_coldness *coldness = make_coldness();

	assert_int_equal(write_ages(path, coldness, WSS_AGES_BYTES_MAX, NULL), 0);
	return coldness;
}

TEST(test_what_is_written_is_read)
{
	struct wss_coldness *coldness = write_some(), *again = NULL;
	struct wss_cold_run run, other;
	struct wss_ages ages;

	assert_int_equal(wss_ages_read(path, WSS_MIB, NULL, &ages, &again, NULL), 0);
	assert_true(wss_ages_same_guest(&ages.key, &key));
	assert_string_equal(ages.key.name, "web1");
	assert_int_equal(ages.n_parts, 2);
	assert_memory_equal(ages.parts, parts, sizeof(parts));
	assert_true(ages.written_ns <= wss_clock_now_ns());
	for (uint64_t at = 0; wss_coldness_next(coldness, at, &run); at += run.n) {
		assert_true(wss_coldness_next(again, at, &other));
		assert_int_equal(run.serial, other.serial);
		assert_int_equal(run.n, other.n);
	}
	assert_memory_equal(wss_coldness_timeline(coldness)->slots, ages.timeline.slots,
			    ages.timeline.n * sizeof(ages.timeline.slots[0]));
	assert_int_equal(ages.timeline.never_pages, wss_coldness_timeline(again)->never_pages);
	/* Without the pages. */
	assert_int_equal(wss_ages_read(path, 0, NULL, &ages, NULL, NULL), 0);
	wss_coldness_free(coldness);
	wss_coldness_free(again);
}

TEST(test_whose_they_are)
{
	struct wss_ages_key other = key;

	assert_true(wss_ages_same_guest(&key, &other));
	other.start_ticks++;
	assert_false(wss_ages_same_guest(&key, &other));
	other = key;
	other.boot_id[0] = 'x';
	assert_false(wss_ages_same_guest(&key, &other));
	other = key;
	other.pid++;
	assert_false(wss_ages_same_guest(&key, &other));
	other = key;
	other.uuid[0] = 'b';
	assert_false(wss_ages_same_guest(&key, &other));
	/* An unknown boot is no boot. */
	other = key;
	other.boot_id[0] = key.boot_id[0] = '\0';
	assert_false(wss_ages_same_guest(&key, &other));
}

static void assert_refused(const char *history, const char *text)
{
	struct wss_error error = WSS_ERROR_INIT;
	char *name = NULL;

	assert_int_equal(wss_ages_find_directory(history, true, &name, &error), -1);
	assert_error(&error, WSS_ERR_FAILED, text);
	assert_null(name);
}

TEST(test_paths)
{
	struct wss_error error = WSS_ERROR_INIT;
	char history[PATH_MAX], expected[PATH_MAX], *name;

	make_path(history, "%s/history.db", tree);
	make_path(expected, "%s/ages", tree);
	assert_int_equal(wss_ages_find_directory(history, false, &name, &error), -1);
	assert_error(&error, WSS_ERR_GONE, "ages");
	if (wss_ages_find_directory(history, true, &name, &error) < 0)
		fail_msg("%s", error.text);
	assert_string_equal(name, expected);
	free(name);
	assert_int_equal(wss_ages_find_directory(history, true, &name, NULL), 0);
	free(name);
	/* The same checks as those of the history. */
	assert_int_equal(chmod(expected, 0777), 0);
	assert_refused(history, "/ages: other users may write to it");
	assert_int_equal(rmdir(expected), 0);
	assert_int_equal(symlink(tree, expected), 0);
	assert_refused(history, "/ages: it is not a directory");
	assert_null(wss_ages_path("/a", "../../../../../../../../../../etc/passwd"));
	assert_null(wss_ages_path("/a", ".."));
	assert_null(wss_ages_path("/a", ""));
}

/* A file that would be too long knows units of 2 MiB only. */
TEST(test_a_long_file_has_units)
{
	struct wss_coldness *coldness = make_coldness(), *again = NULL;
	struct wss_cold_report fine, coarse;
	struct wss_ages ages;
	struct wss_error error = WSS_ERROR_INIT;
	struct wss_pages held;
	uint64_t now_ns;
	struct stat st;

	/* Of the first unit every other page is not held. */
	wss_pageset_add(touched, 0, 1 << 21);
	for (uint64_t page = 0; page < 512; page += 2)
		wss_pageset_remove(touched, page, 1);
	held = wss_pages_of_set(touched);
	wss_coldness_set_held(coldness, &held);
	assert_int_equal(write_ages(path, coldness, WSS_AGES_BYTES_MAX, NULL), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(write_ages(path, coldness, (uint64_t)st.st_size - 5, NULL), 0);
	assert_int_equal(wss_ages_read(path, WSS_MIB, NULL, &ages, &again, NULL), 0);
	now_ns = wss_clock_now_ns();
	assert_true(wss_coldness_report(coldness, now_ns, &fine));
	assert_true(wss_coldness_report(again, now_ns, &coarse));
	assert_int_equal(coarse.granularity_bytes, 2 * WSS_MIB);
	assert_int_equal(fine.absent_bytes, 256 * 4096);
	assert_int_equal(coarse.absent_bytes, 0);
	assert_int_equal(coarse.held_bytes, fine.held_bytes + fine.absent_bytes);
	/* Nothing becomes colder than it was. */
	for (int i = 0; i < WSS_COLD_AGES; i++)
		assert_true(coarse.ages[i].low_bytes <= fine.ages[i].low_bytes);
	assert_true(fine.ages[WSS_COLD_SINCE_WATCHED].high_bytes >
		    coarse.ages[WSS_COLD_SINCE_WATCHED].high_bytes);
	wss_coldness_free(again);
	/* That is too long as well: the file stays. */
	assert_int_equal(write_ages(path, coldness, 50, &error), -1);
	assert_int_equal(error.code, WSS_ERR_FAILED);
	assert_non_null(strstr(error.text, "longer than 50 bytes"));
	assert_int_equal(wss_ages_read(path, 0, NULL, &ages, NULL, NULL), 0);
	wss_coldness_free(coldness);
}

/* Each byte, changed, and each length: nothing but an error. */
TEST(test_damaged)
{
	struct wss_coldness *coldness = write_some(), *again = NULL;
	struct wss_ages *ages = malloc(sizeof(*ages));
	struct wss_error error = WSS_ERROR_INIT;
	char *data;
	size_t size;

	assert_int_equal(wss_file_read(path, 1 << 20, &data, &size, NULL), 0);
	for (size_t i = 0; i < size; i++) {
		uint8_t *copy = malloc(i ? i : 1);

		memcpy(copy, data, i);
		assert_int_equal(wss_ages_decode(copy, i, WSS_MIB, NULL, ages, &again, &error), -1);
		assert_true(error.code && error.text[0]);
		wss_error_clear(&error);
		free(copy);
		data[i] ^= 1;
		assert_int_equal(
			wss_ages_decode((uint8_t *)data, size, WSS_MIB, NULL, ages, &again, &error),
			-1);
		wss_error_clear(&error);
		data[i] ^= 1;
	}
	assert_null(again);
	data[8] = 3;
	assert_int_equal(wss_ages_decode((uint8_t *)data, size, WSS_MIB, NULL, ages, NULL, &error),
			 -1);
	assert_error(&error, WSS_ERR_UNSUPPORTED, "version 3");
	free(data);
	free(ages);
	wss_coldness_free(coldness);
}

TEST(test_missing)
{
	struct wss_error error = WSS_ERROR_INIT;
	struct wss_ages ages;

	assert_int_equal(wss_ages_read(path, 0, NULL, &ages, NULL, &error), -1);
	assert_int_equal(error.code, WSS_ERR_GONE);
}

TEST(test_files_of_others_are_refused)
{
	struct wss_error error = WSS_ERROR_INIT;
	struct wss_ages ages;
	char target[PATH_MAX];

	wss_coldness_free(write_some());
	assert_int_equal(chmod(path, 0622), 0);
	assert_int_equal(wss_ages_read(path, 0, NULL, &ages, NULL, &error), -1);
	assert_error(&error, WSS_ERR_FAILED, "other users may write to it");
	assert_int_equal(chmod(path, 0600), 0);
	make_path(target, "%s/target", tree);
	assert_int_equal(rename(path, target), 0);
	assert_int_equal(symlink(target, path), 0);
	wss_error_clear(&error);
	assert_int_equal(wss_ages_read(path, 0, NULL, &ages, NULL, &error), -1);
	assert_error(&error, WSS_ERR_FAILED, "symbolic link");
}

/* Files of guests that have ended go; those of others stay, and so does what is none of ours. */
TEST(test_prune)
{
	struct wss_coldness *coldness = make_coldness();
	char *other = wss_ages_path(tree, UUID_B);

	wss_host_boot_id("/", key.boot_id);
	key.pid = getpid();
	assert_int_equal(write_ages(path, coldness, WSS_AGES_BYTES_MAX, NULL), 0);
	put_text(tree, "notes", "of somebody");
	put_text(tree, UUID_B, "damaged");
	wss_ages_prune(tree);
	assert_int_equal(access(path, F_OK), 0);
	assert_int_equal(access(other, F_OK), 0);
	key.pid = INT32_MAX;
	assert_int_equal(write_ages(path, coldness, WSS_AGES_BYTES_MAX, NULL), 0);
	key.pid = getpid();
	key.boot_id[0] = key.boot_id[0] == '0' ? '1' : '0';
	assert_int_equal(write_ages(other, coldness, WSS_AGES_BYTES_MAX, NULL), 0);
	wss_ages_prune(tree);
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(access(other, F_OK), -1);
	free(other);
	wss_coldness_free(coldness);
}

/* --- the ages of a guest --- */

static struct wss_guest guest;
static struct wss_sample sample;

static void make_guest(void)
{
	guest = (struct wss_guest){.ops = NULL};
	snprintf(guest.config.uuid, sizeof(guest.config.uuid), UUID_A);
	snprintf(guest.config.name, sizeof(guest.config.name), "web1");
	snprintf(guest.config.machine, sizeof(guest.config.machine), "pc");
	guest.config.initial_bytes = guest.config.maximum_bytes = PAGES * 4096;
	guest.process.pid = 7;
	guest.process.start_ticks = 99;
	sample = (struct wss_sample){.quality = WSS_QUALITY_OK};
	sample.memory.maximum_bytes = sample.memory.balloon_bytes = wss_amount_of(PAGES * 4096);
	wss_pageset_remove(touched, 0, wss_pageset_size(touched));
	wss_pageset_add(touched, 100, 10);
}

static void add(struct wss_aging *aging, uint64_t ago_ns, uint64_t length_ns, bool known)
{
	uint64_t start_ns = wss_clock_now_ns() - ago_ns;
	const struct wss_aging_window window = {
		.start_ns = start_ns,
		.end_ns = start_ns + length_ns,
		.view = {.touched = known ? wss_pages_of_set(touched)
					  : (struct wss_pages){.known = false}},
		.sample = &sample,
	};

	wss_aging_add(aging, &guest, &window);
	wss_aging_look(aging, &guest);
}

static uint64_t never_high_bytes(struct wss_aging *aging)
{
	struct wss_cold_report report;

	assert_true(wss_aging_report(aging, wss_clock_now_ns(), &report));
	return report.ages[WSS_COLD_SINCE_WATCHED].high_bytes;
}

TEST(test_survive_a_restart_of_the_service)
{
	struct wss_aging *aging = wss_aging_new(tree, UUID_A, NULL);
	struct wss_cold_report report;

	make_guest();
	assert_false(wss_aging_report(aging, wss_clock_now_ns(), &report));
	add(aging, 60 * WSS_NS_PER_S, WSS_NS_PER_S, false);
	assert_false(wss_aging_report(aging, wss_clock_now_ns(), &report));
	add(aging, 50 * WSS_NS_PER_S, WSS_NS_PER_S, true);
	assert_int_equal(never_high_bytes(aging), (RAM_PAGES - 10) * 4096);
	assert_int_equal(wss_aging_save(aging, NULL), 0);
	wss_aging_unref(aging);
	/* The next service sees other pages. */
	aging = wss_aging_new(tree, UUID_A, NULL);
	wss_pageset_remove(touched, 0, wss_pageset_size(touched));
	wss_pageset_add(touched, 200, 10);
	add(aging, 5 * WSS_NS_PER_S, WSS_NS_PER_S, true);
	assert_int_equal(never_high_bytes(aging), (RAM_PAGES - 20) * 4096);
	assert_true(wss_aging_report(aging, wss_clock_now_ns(), &report));
	assert_int_equal(report.ages[WSS_COLD_SINCE_WATCHED].low_bytes, 0);
	wss_aging_unref(aging);
}

TEST(test_do_not_survive_a_restart_of_the_guest)
{
	struct wss_aging *aging = wss_aging_new(tree, UUID_A, NULL);

	make_guest();
	add(aging, 50 * WSS_NS_PER_S, WSS_NS_PER_S, true);
	assert_int_equal(wss_aging_save(aging, NULL), 0);
	/* In this service, and in the next. */
	guest.process.start_ticks++;
	wss_pageset_add(touched, 1000, 10);
	add(aging, 40 * WSS_NS_PER_S, WSS_NS_PER_S, true);
	wss_pageset_remove(touched, 0, 500);
	add(aging, 30 * WSS_NS_PER_S, WSS_NS_PER_S, true);
	assert_int_equal(never_high_bytes(aging), (RAM_PAGES - 20) * 4096);
	wss_aging_unref(aging);
	aging = wss_aging_new(tree, UUID_A, NULL);
	add(aging, 20 * WSS_NS_PER_S, WSS_NS_PER_S, true);
	assert_int_equal(never_high_bytes(aging), (RAM_PAGES - 10) * 4096);
	/* More memory: the pages have other places. */
	guest.config.initial_bytes *= 2;
	add(aging, 10 * WSS_NS_PER_S, WSS_NS_PER_S, true);
	assert_int_equal(never_high_bytes(aging), (PAGES + RAM_PAGES - 10) * 4096);
	wss_aging_unref(aging);
}

/* A guest that migrates away and back is another process, whose memory was written again. */
TEST(test_do_not_survive_a_migration)
{
	struct wss_aging *aging = wss_aging_new(tree, UUID_A, NULL);

	make_guest();
	add(aging, 50 * WSS_NS_PER_S, WSS_NS_PER_S, true);
	assert_int_equal(wss_aging_save(aging, NULL), 0);
	wss_aging_unref(aging);
	/* The service was restarted while the guest was elsewhere, and its file stayed. */
	aging = wss_aging_new(tree, UUID_A, NULL);
	guest.process.pid = 8;
	wss_pageset_remove(touched, 0, wss_pageset_size(touched));
	wss_pageset_add(touched, 200, 20);
	add(aging, 5 * WSS_NS_PER_S, WSS_NS_PER_S, true);
	assert_int_equal(never_high_bytes(aging), (RAM_PAGES - 20) * 4096);
	wss_aging_unref(aging);
}

static unsigned warnings;

static void count_warnings(enum wss_log_level level, const char *text)
{
	warnings += level <= WSS_LOG_WARNING;
}

TEST(test_a_damaged_file_is_not_used)
{
	struct wss_aging *aging = wss_aging_new(tree, UUID_A, NULL);

	make_guest();
	put_text(tree, UUID_A, "VWSSAGE\nnonsense");
	wss_log_set_sink(count_warnings);
	add(aging, 50 * WSS_NS_PER_S, WSS_NS_PER_S, true);
	wss_log_set_sink(NULL);
	assert_int_equal(warnings, 1);
	assert_int_equal(never_high_bytes(aging), (RAM_PAGES - 10) * 4096);
	assert_int_equal(wss_aging_save(aging, NULL), 0);
	wss_aging_remove(aging);
	assert_int_equal(wss_aging_save(aging, NULL), 0);
	assert_int_equal(access(path, F_OK), -1);
	wss_aging_unref(aging);
}

/* Between two windows there is no time to look what the host holds. */
TEST(test_looks_while_a_window_is_open)
{
	struct wss_aging *aging = wss_aging_new(NULL, UUID_A, NULL);
	struct wss_aging_window window = {.view = {.touched = {.known = false}}, .sample = &sample};
	struct wss_cold_report report;

	make_guest();
	add(aging, 10 * WSS_NS_PER_S, WSS_NS_PER_S, true);
	sample.memory.balloon_bytes.value -= 100 * 4096;
	window.start_ns = wss_clock_now_ns() - 9 * WSS_NS_PER_S;
	window.end_ns = window.start_ns + 8 * WSS_NS_PER_S;
	window.view.touched = wss_pages_of_set(touched);
	wss_aging_add(aging, &guest, &window);
	assert_true(wss_aging_report(aging, window.end_ns, &report));
	assert_int_equal(report.ages[WSS_COLD_SINCE_WATCHED].low_bytes, (RAM_PAGES - 10) * 4096);
	wss_aging_look(aging, &guest);
	assert_true(wss_aging_report(aging, window.end_ns, &report));
	assert_int_equal(report.ages[WSS_COLD_SINCE_WATCHED].low_bytes, (RAM_PAGES - 110) * 4096);
	wss_aging_unref(aging);
}

/* Where it is not known which pages the balloon has taken, so many of any may be. */
TEST(test_a_balloon_widens_the_bounds)
{
	struct wss_aging *aging = wss_aging_new(NULL, UUID_A, NULL);
	struct wss_cold_report report;

	make_guest();
	sample.memory.balloon_bytes.value -= 100 * 4096;
	add(aging, WSS_NS_PER_S, WSS_NS_PER_S, true);
	assert_true(wss_aging_report(aging, wss_clock_now_ns(), &report));
	assert_int_equal(report.ages[WSS_COLD_SINCE_WATCHED].high_bytes, (RAM_PAGES - 10) * 4096);
	assert_int_equal(report.ages[WSS_COLD_SINCE_WATCHED].low_bytes, (RAM_PAGES - 110) * 4096);
	assert_int_equal(wss_aging_save(aging, NULL), 0);
	wss_aging_unref(aging);
	wss_aging_unref(NULL);
}

static unsigned looks;

/* Each look at what the host holds fails here, and says so. */
static void count_looks(enum wss_log_level level, const char *text)
{
	looks += strstr(text, "its ages") == NULL;
}

static void add_rss(struct wss_aging *aging, uint64_t mib)
{
	sample.memory.rss_bytes = wss_amount_of(mib * WSS_MIB);
	add(aging, WSS_NS_PER_S, WSS_NS_PER_S, true);
}

/* Memory that is discarded bit by bit is gone as well, and some that goes is made up for by other. */
TEST(test_looks_after_small_discards)
{
	struct wss_aging *aging = wss_aging_new(NULL, UUID_A, NULL);

	make_guest();
	add_rss(aging, 500);
	wss_log_set_level(WSS_LOG_DEBUG);
	wss_log_set_sink(count_looks);
	looks = 0;
	add_rss(aging, 492);
	add_rss(aging, 498);
	add_rss(aging, 490);
	add_rss(aging, 485);
	assert_int_equal(looks, 0);
	add_rss(aging, 481);
	assert_int_equal(looks, 1);
	/* From then on it counts again. */
	add_rss(aging, 466);
	assert_int_equal(looks, 1);
	add_rss(aging, 464);
	assert_int_equal(looks, 2);
	later_ns += WSS_AGING_LOOK_NS;
	add_rss(aging, 464);
	assert_int_equal(looks, 3);
	/* Unknown is not less. */
	sample.memory.rss_bytes.known = false;
	sample.memory.rss_bytes.value = 0;
	add(aging, WSS_NS_PER_S, WSS_NS_PER_S, true);
	assert_int_equal(looks, 3);
	wss_log_set_level(WSS_LOG_INFO);
	wss_log_set_sink(NULL);
	wss_aging_unref(aging);
}

int main(void)
{
	return tests_run_each(setup, teardown);
}
