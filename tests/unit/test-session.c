/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "hosttest.h"

#include <sys/resource.h>

#include "base/clock.h"
#include "measure/regions.h"
#include "pages/refset.h"
#include "recording/reader.h"
#include "recording/session.h"

#define MIB (1ULL << 20)
#define GIB (1ULL << 30)
#define SECOND WSS_NS_PER_S
#define WINDOWS 12
/* 4 GiB of address space and 512 MiB above it. */
#define BITS ((4 * GIB + 512 * MIB) >> 12)

static struct wss_guest guest;
static uint64_t now_ns = 1000 * SECOND;
static uint64_t *touched, *written;

static uint64_t fake_now(void *opaque)
{
	return now_ns;
}

static int setup(void **state)
{
	static const struct wss_clock_source source = {.now_ns = fake_now};

	memset(&guest, 0, sizeof(guest));
	guest.config = (struct wss_domxml){.name = "web1",
					   .arch = "x86_64",
					   .machine = "pc",
					   .initial_bytes = 7 * GIB / 2,
					   .n_blocks = 1,
					   .block_bytes = {7 * GIB / 2}};
	touched = calloc(BITS / 64, 8);
	written = calloc(BITS / 64, 8);
	wss_clock_inject(&source);
	return touched && written ? 0 : -1;
}

static int teardown(void **state)
{
	wss_clock_inject(NULL);
	free(touched);
	free(written);
	return 0;
}

static void set_bits(uint64_t *bits, uint64_t address, uint64_t bytes, bool value)
{
	for (uint64_t i = address >> 12; i < (address + bytes) >> 12; i++) {
		bits[i / 64] &= ~(1ULL << (i % 64));
		bits[i / 64] |= (uint64_t)value << (i % 64);
	}
}

static void assert_region(const struct wss_recording *recording, size_t i, uint64_t start,
			  uint64_t length, enum wss_region_kind kind, int node)
{
	assert_true(i < recording->n_regions);
	assert_int_equal(recording->regions[i].start, start);
	assert_int_equal(recording->regions[i].length, length);
	assert_int_equal(recording->regions[i].kind, kind);
	assert_int_equal(recording->regions[i].node, node);
}

TEST(test_regions)
{
	static struct wss_recording recording;
	struct wss_domxml *config = &guest.config;

	assert_int_equal(wss_regions_of(&guest, &recording, NULL), 0);
	assert_int_equal(recording.n_regions, 4);
	assert_region(&recording, 0, 0, 640 << 10, WSS_REGION_BELOW_1M, -1);
	assert_region(&recording, 1, 768 << 10, 256 << 10, WSS_REGION_BELOW_1M, -1);
	assert_region(&recording, 2, MIB, 3 * GIB - MIB, WSS_REGION_LOW, -1);
	assert_region(&recording, 3, 4 * GIB, 512 * MIB, WSS_REGION_HIGH, -1);
	/*
	 * Two nodes whose border lies below 4 GiB, and one above; the fourth is a device after
	 * them.
	 */
	config->initial_bytes = 6 * GIB;
	config->n_blocks = 4;
	config->block_bytes[0] = 2 * GIB;
	config->block_bytes[1] = 3 * GIB;
	config->block_bytes[2] = GIB;
	config->block_bytes[3] = GIB;
	config->n_cells = 4;
	for (int i = 0; i < 3; i++)
		config->block_nodes[i] = i;
	config->n_devices = 1;
	config->devices[0] = (struct wss_memory_device){7 * GIB, GIB, 3};
	assert_int_equal(wss_regions_of(&guest, &recording, NULL), 0);
	assert_int_equal(recording.n_regions, 7);
	assert_region(&recording, 2, MIB, 2 * GIB - MIB, WSS_REGION_LOW, 0);
	assert_region(&recording, 3, 2 * GIB, GIB, WSS_REGION_LOW, 1);
	assert_region(&recording, 4, 4 * GIB, 2 * GIB, WSS_REGION_HIGH, 1);
	assert_region(&recording, 5, 6 * GIB, GIB, WSS_REGION_HIGH, 2);
	assert_region(&recording, 6, 7 * GIB, GIB, WSS_REGION_DEVICE, 3);
	assert_string_equal(recording.regions[6].name, "memory device 0");
	strcpy(config->machine, "microvm");
	assert_int_equal(wss_regions_of(&guest, &recording, NULL), -1);
}

static const struct wss_recfile_visitor visitor = {
	.begin = wss_refset_begin,
	.change = wss_refset_change,
	.end = wss_refset_end,
	.last = wss_refset_last,
	.mark = wss_refset_mark,
};

/* Windows of a second, one of which has unknown pages, and 10 ms between two. */
TEST(test_windows)
{
	char path[] = "/tmp/wss-test-session.XXXXXX";
	const struct wss_refset_result *result;
	struct wss_session_progress progress;
	struct wss_sample sample = {.quality = WSS_QUALITY_OK};
	struct wss_session *session;
	struct wss_refset *refset;
	struct wss_recfile *file;
	uint64_t start_ns = now_ns;
	struct stat st;
	int fd = mkstemp(path);

	close(fd);
	unlink(path);
	sample.written_high_bytes = wss_amount_of(MIB);
	sample.granularity_bytes = wss_amount_of(2 * MIB);
	assert_int_equal(
		wss_session_open(path, &guest, "some", "boot", SECOND, SECOND, &session, NULL), 0);
	for (unsigned w = 0; w < WINDOWS; w++) {
		struct wss_session_window window = {
			.start_ns = start_ns + w * (SECOND + 10 * WSS_NS_PER_MS),
			.sample = &sample,
		};

		window.end_ns = window.start_ns + SECOND;
		now_ns = window.end_ns + WSS_NS_PER_MS;
		/*
		 * Each MiB from 3 GiB - 8 MiB on; there is no memory above 3 GiB, whatever the
		 * bits.
		 */
		set_bits(touched, 3 * GIB - 8 * MIB, (w + 1) * MIB, true);
		set_bits(touched, 4 * GIB + 511 * MIB, MIB, w % 2);
		set_bits(written, 4 * GIB + 511 * MIB, MIB / 2, w % 2);
		sample.written_bytes.known = w < 4;
		if (w != 5)
			window.pages.touched = wss_pages_of_bits(touched, BITS / 64);
		if (w < 9)
			window.pages.written = wss_pages_of_bits(written, BITS / 64);
		assert_int_equal(wss_session_add(session, &window, NULL), 0);
	}
	wss_session_progress(session, &progress);
	assert_true(progress.windows == WINDOWS - 1 && progress.gaps == 1);
	assert_int_equal(progress.touched_bytes, 9 * MIB);
	/* Half a window, of which only the reason for its end is known. */
	wss_session_note(session, "the guest is paused");
	now_ns += SECOND / 2;
	assert_int_equal(wss_session_close(session, now_ns, &progress, NULL), 0);
	/* What is told of the recording is what the file has. */
	assert_true(progress.ends_in_gap);
	assert_string_equal(progress.gap_why, "the guest is paused");
	assert_int_equal(progress.length_ns, now_ns - start_ns);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(progress.file_bytes, st.st_size);

	assert_int_equal(wss_recfile_open(path, false, &file, NULL), 0);
	assert_int_equal(wss_recfile_state(file)->windows, WINDOWS - 1);
	assert_int_equal(wss_recfile_recording(file)->start_boottime_ns, start_ns);
	assert_int_equal(wss_recfile_recording(file)->granularity_bytes, 2 * MIB);
	assert_int_equal(wss_refset_new(wss_recfile_recording(file), 0, UINT64_MAX, &refset, NULL),
			 0);
	assert_int_equal(wss_recfile_replay(file, &visitor, refset, NULL), 0);
	assert_int_equal(wss_refset_finish(refset, wss_recfile_state(file)->end_ns, &result, NULL),
			 0);
	assert_true(result->points[result->n_points - 1].gap);
	assert_string_equal(result->notes + result->points[result->n_points - 1].why,
			    "the guest is paused");
	/* A lost window is one gap, with what precedes it, and has its reason. */
	assert_true(result->points[9].gap && !result->points[11].gap);
	assert_string_equal(result->notes + result->points[9].why,
			    "the touched pages are not known exactly");
	assert_int_equal(result->points[1].why, 0);
	assert_in_range(progress.gap_ns, SECOND * 3 / 2, SECOND * 3 / 2 + 25 * WSS_NS_PER_MS);
	assert_in_range(result->points[result->n_points - 1].end_ns -
				result->points[result->n_points - 1].start_ns,
			SECOND / 2, SECOND);
	for (size_t i = 0, w = 0; i < result->n_points; i++) {
		const struct wss_refset_point *point = &result->points[i];
		uint64_t low = w < 8 ? w + 1 : 8;

		if (point->gap)
			continue;
		w += w == 5;
		low = w < 8 ? w + 1 : 8;
		assert_int_equal(point->start_ns, w * (SECOND + 10 * WSS_NS_PER_MS));
		assert_int_equal(point->touched << 12, (low + w % 2) * MIB);
		/* What was touched above 3 GiB is missing. */
		assert_int_equal(point->degraded, w >= 8);
		assert_int_equal(point->written_meaning, w < 4	 ? WSS_WRITTEN_EXACT
							 : w < 9 ? WSS_WRITTEN_HIGH
								 : WSS_WRITTEN_ABSENT);
		if (w < 9)
			assert_int_equal(point->written << 12, w % 2 * MIB / 2);
		w++;
	}
	assert_in_range(result->gap_ns, SECOND * 3 / 2 + 110 * WSS_NS_PER_MS,
			SECOND * 3 / 2 + 115 * WSS_NS_PER_MS);
	wss_refset_free(refset);
	wss_recfile_close(file);
	unlink(path);
}

static void session_add_second(struct wss_session *session, bool known, int expected)
{
	struct wss_sample sample = {.quality = WSS_QUALITY_OK};
	struct wss_session_window window = {
		.start_ns = now_ns, .end_ns = now_ns + SECOND, .sample = &sample};

	if (known)
		window.pages.touched = wss_pages_of_bits(touched, BITS / 64);
	now_ns += SECOND;
	assert_int_equal(wss_session_add(session, &window, NULL), expected);
}

/* A recording that gets no window, or whose first one does not fit the disk, leaves the earlier one as it is. */
TEST(test_a_good_recording_stays)
{
	char path[] = "/tmp/wss-test-session.XXXXXX";
	const struct rlimit none = {600, RLIM_INFINITY};
	struct rlimit limit;
	struct wss_session *session;
	struct stat good, st;
	struct wss_error err = WSS_ERROR_INIT;
	int r, fd = mkstemp(path);

	close(fd);
	assert_int_equal(wss_session_open(path, &guest, "some", "", SECOND, SECOND, &session, NULL),
			 0);
	session_add_second(session, true, 0);
	assert_int_equal(wss_session_close(session, now_ns, NULL, NULL), 0);
	assert_int_equal(stat(path, &good), 0);
	assert_true(good.st_size > 0);

	assert_int_equal(wss_session_open(path, &guest, "some", "", SECOND, SECOND, &session, NULL),
			 0);
	for (int i = 0; i < 3; i++)
		session_add_second(session, false, 0);
	assert_string_equal(wss_session_why_not(session),
			    "the touched pages are not known exactly");
	assert_int_equal(wss_session_close(session, now_ns, NULL, NULL), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_ino, good.st_ino);

	/* Room for the header, and not for the window. */
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	signal(SIGXFSZ, SIG_IGN);
	for (uint64_t at = 0; at < 512 * MIB; at += 8192)
		set_bits(touched, 4 * GIB + at, 4096, true);
	assert_int_equal(wss_session_open(path, &guest, "some", "", SECOND, SECOND, &session, NULL),
			 0);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
	session_add_second(session, true, -1);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	wss_session_close(session, now_ns, NULL, NULL);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_ino, good.st_ino);

	/* Room for nothing: that is known before any window is taken. */
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &(struct rlimit){0, limit.rlim_max}), 0);
	r = wss_session_open(path, &guest, "some", "", SECOND, SECOND, &session, &err);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	assert_int_equal(r, -1);
	assert_non_null(strstr(err.text, "cannot write to it"));
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_ino, good.st_ino);

	/* The windows that were lost before the first one are no gap of the recording. */
	assert_int_equal(wss_session_open(path, &guest, "some", "", SECOND, SECOND, &session, NULL),
			 0);
	session_add_second(session, false, 0);
	session_add_second(session, true, 0);
	assert_string_equal(wss_session_why_not(session), "");
	assert_int_equal(wss_session_close(session, now_ns, NULL, NULL), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_not_equal(st.st_ino, good.st_ino);
	unlink(path);
}

/* Without a window there is no file. */
TEST(test_nothing)
{
	const char *path = "/tmp/wss-test-session.nothing";
	struct wss_session *session;

	assert_int_equal(wss_session_open(path, &guest, "some", "", SECOND, SECOND, &session, NULL),
			 0);
	assert_int_equal(wss_session_close(session, now_ns, NULL, NULL), 0);
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(wss_session_close(NULL, now_ns, NULL, NULL), 0);
}

int main(void)
{
	return tests_run_each(setup, teardown);
}
