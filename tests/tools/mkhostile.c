/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Makes recordings that are valid, or nearly so, and expensive to read:
 *
 *   mkhostile KIND FILE [BYTES]
 *
 * of about that many bytes [33554432]. Without arguments it lists the kinds, one per line.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "recording/codec.h"
#include "recording/tokens.h"

#define PAGES WSS_PAGESET_MAX_PAGES
#define PAYLOAD_BYTES (512U << 10)
/* Approximate size of a frame, and of an interval's beginning and end. */
#define INTERVAL_BYTES 64

struct output {
	FILE *stream;
	uint32_t seed, sequence;
	uint64_t bytes, limit;
	/* State of the current interval. */
	uint8_t data[PAYLOAD_BYTES + INTERVAL_BYTES];
	struct wss_buffer payload;
	struct wss_token_state tokens;
	uint8_t flags;
	uint64_t counts[3];
	uint64_t windows, step_ns;
	uint64_t random;
};

static struct wss_recording recording;

static void die(const char *what)
{
	fprintf(stderr, "mkhostile: %s\n", what);
	exit(1);
}

static uint64_t random_below(struct output *out, uint64_t limit)
{
	out->random ^= out->random << 13;
	out->random ^= out->random >> 7;
	out->random ^= out->random << 17;
	return out->random % limit;
}

static void write_frame(struct output *out, enum wss_frame_type type, uint8_t flags,
			const uint8_t *payload, size_t length)
{
	const struct wss_frame frame = {
		.type = (uint8_t)type,
		.flags = flags,
		.length = (uint32_t)length,
		.sequence = out->sequence++,
		.payload_crc = wss_crc32c(out->seed, payload, length),
	};
	uint8_t head[WSS_REC_FRAME_BYTES];

	wss_rec_encode_frame(&frame, out->seed, head);
	fwrite(head, sizeof(head), 1, out->stream);
	fwrite(payload, 1, length, out->stream);
	out->bytes += sizeof(head) + length;
}

/*
 * Regions of the same length, with or without holes between them. If uneven, all but the last have
 * a page each.
 */
static void open_file(struct output *out, const char *path, size_t regions, uint64_t hole,
		      bool uneven)
{
	uint64_t pages = uneven ? 1 : PAGES / regions;
	static uint8_t data[1 << 17];
	size_t size;

	recording = (struct wss_recording){.tool = "hostile",
					   .domain = "web1",
					   .method = "mmu",
					   .granularity_bytes = 4096,
					   .n_regions = regions,
					   .interval_ns = 1000,
					   .window_ns = 1000};
	for (size_t i = 0; i < regions; i++)
		recording.regions[i] = (struct wss_region){
			.start = i * ((pages << 12) + hole),
			.length = pages << 12,
			.kind = WSS_REGION_HIGH,
			.node = (int)i,
		};
	if (uneven)
		recording.regions[regions - 1].length = (PAGES - regions) << 12;
	size = wss_rec_encode_header(&recording, data, sizeof(data), &out->seed);
	out->stream = fopen(path, "we");
	if (!size || !out->stream)
		die("cannot make the file");
	fwrite(data, size, 1, out->stream);
	out->bytes = size;
	out->step_ns = 1000;
}

static bool room(const struct output *out, size_t bytes)
{
	return out->bytes + out->payload.length + bytes + INTERVAL_BYTES <= out->limit;
}

static void begin(struct output *out)
{
	const struct wss_interval interval = {.start_ns = out->windows * out->step_ns,
					      .end_ns = (out->windows + 1) * out->step_ns};

	out->payload = (struct wss_buffer){.data = out->data, .size = sizeof(out->data)};
	out->tokens = (struct wss_token_state)WSS_TOKEN_STATE_INIT;
	out->flags = WSS_FRAME_FIRST;
	wss_rec_encode_interval(&out->payload, &interval);
}

static void run(struct output *out, enum wss_change change, uint64_t gfn, uint64_t n)
{
	if (out->payload.length > PAYLOAD_BYTES) {
		write_frame(out, WSS_FRAME_INTERVAL, out->flags, out->data, out->payload.length);
		out->payload.length = 0;
		out->tokens = (struct wss_token_state)WSS_TOKEN_STATE_INIT;
		out->flags = 0;
	}
	/* A list starts again when addresses go back. */
	if (gfn < out->tokens.gfn)
		out->tokens.change = WSS_CHANGES;
	wss_token_put_run(&out->payload, &out->tokens, change, gfn, n);
	out->counts[change / 2] += change % 2 ? 0 - n : n;
}

static void end(struct output *out)
{
	wss_token_put_counts(&out->payload, out->counts);
	write_frame(out, WSS_FRAME_INTERVAL, out->flags | WSS_FRAME_LAST, out->data,
		    out->payload.length);
	out->payload.length = 0;
	out->windows++;
}

static void window(struct output *out, enum wss_change change, uint64_t gfn, uint64_t n)
{
	begin(out);
	if (n)
		run(out, change, gfn, n);
	end(out);
}

static void mark(struct output *out, uint64_t time_ns)
{
	uint8_t data[64];
	struct wss_buffer payload = {.data = data, .size = sizeof(data)};

	wss_buffer_number(&payload, time_ns);
	wss_buffer_text(&payload, "m");
	write_frame(out, WSS_FRAME_MARK, 0, data, payload.length);
}

static void make_few(struct output *out)
{
	window(out, WSS_CHANGE_TOUCHED, 0, PAGES);
	window(out, WSS_CHANGE_UNTOUCHED, 1, PAGES / 2);
}

static void make_marks(struct output *out, bool descending)
{
	window(out, WSS_CHANGE_TOUCHED, 0, 4);
	for (uint32_t i = 0; i < WSS_REC_MARKS_MAX && room(out, 40); i++)
		mark(out, descending ? WSS_REC_TIME_MAX_NS - i : 7);
}

static void make_marks_descending(struct output *out)
{
	make_marks(out, true);
}

static void make_marks_equal(struct output *out)
{
	make_marks(out, false);
}

static void make_windows(struct output *out)
{
	while (room(out, 0) && out->windows < WSS_REC_INTERVALS_MAX)
		window(out, WSS_CHANGE_TOUCHED, out->windows, out->windows < 8);
}

/* Levels that change every two windows: the largest number of phases. */
static void make_phases(struct output *out)
{
	while (room(out, 20) && out->windows < WSS_REC_INTERVALS_MAX)
		window(out, out->windows % 4 ? WSS_CHANGE_UNTOUCHED : WSS_CHANGE_TOUCHED, 0,
		       out->windows % 2 ? 0 : 100000);
}

/* All of the memory comes and goes. */
static void make_alternate(struct output *out, uint64_t first, uint64_t n)
{
	while (room(out, 20) && out->windows < WSS_REC_INTERVALS_MAX)
		window(out, out->windows % 2 ? WSS_CHANGE_UNTOUCHED : WSS_CHANGE_TOUCHED, first, n);
}

static void make_alternate_all(struct output *out)
{
	make_alternate(out, 0, PAGES);
}

static void make_alternate_most(struct output *out)
{
	make_alternate(out, 1, PAGES - 2);
}

static void make_centuries(struct output *out)
{
	out->step_ns = WSS_REC_TIME_MAX_NS / WSS_REC_INTERVALS_MAX;
	make_alternate(out, 33333, PAGES - 77777);
}

static void make_alternate_regions(struct output *out)
{
	uint64_t n = PAGES / WSS_REGIONS_MAX;

	while (room(out, WSS_REGIONS_MAX * 16) && out->windows < WSS_REC_INTERVALS_MAX) {
		begin(out);
		for (uint64_t i = 0; i < WSS_REGIONS_MAX; i++)
			run(out, out->windows % 2 ? WSS_CHANGE_UNTOUCHED : WSS_CHANGE_TOUCHED,
			    i * (n + 4096), n);
		end(out);
	}
}

/*
 * Runs of n pages at regular distances, in one window after the first; then one page of each
 * leaf again.
 */
static void make_runs(struct output *out, uint64_t distance, uint64_t n, uint64_t again)
{
	uint64_t end_gfn = 0;

	window(out, WSS_CHANGE_TOUCHED, PAGES - 1, 1);
	begin(out);
	for (uint64_t gfn = distance;
	     gfn + n < PAGES - 1 && gfn < (WSS_REC_PARTS_MAX - 2) * 32768ULL && room(out, again);
	     gfn += n + distance) {
		run(out, WSS_CHANGE_TOUCHED, gfn, n);
		end_gfn = gfn + n;
	}
	end(out);
	for (int i = 0; i < 2 && again; i++) {
		begin(out);
		for (uint64_t gfn = distance; gfn < end_gfn && room(out, 20);
		     gfn += (4096 + n + distance - 1) / (n + distance) * (n + distance))
			run(out, WSS_CHANGE_UNTOUCHED, gfn + (uint64_t)i * (n > 1), 1);
		end(out);
	}
}

static void make_single_pages(struct output *out)
{
	make_runs(out, 1, 1, 0);
}

static void make_scattered(struct output *out)
{
	make_runs(out, 127, 127, 0);
}

static void make_straddling(struct output *out)
{
	make_runs(out, 64, 64, 2 << 20);
}

static void make_unshared(struct output *out)
{
	make_runs(out, 16, 16, 2 << 20);
}

static void make_thin(struct output *out)
{
	make_runs(out, 4000, 3, 0);
}

/* Pages in alternating places. */
static void make_random(struct output *out)
{
	static uint8_t in[PAGES >> 18];

	window(out, WSS_CHANGE_TOUCHED, 0, 1);
	begin(out);
	while (room(out, 20)) {
		uint64_t i = 1 + random_below(out, sizeof(in) - 1);

		run(out, in[i] ? WSS_CHANGE_UNTOUCHED : WSS_CHANGE_TOUCHED, i << 18 | i % 4096 << 6,
		    1);
		in[i] = !in[i];
		if (out->payload.length > PAYLOAD_BYTES) {
			end(out);
			begin(out);
		}
	}
	end(out);
}

/* The balloon takes everything, repeatedly, from a guest that touches every other run. */
static void make_balloon(struct output *out)
{
	begin(out);
	for (uint64_t gfn = 64; out->bytes + out->payload.length < out->limit / 2; gfn += 64)
		run(out, WSS_CHANGE_TOUCHED, gfn, 32);
	end(out);
	while (room(out, 40) && out->windows < WSS_REC_INTERVALS_MAX) {
		begin(out);
		run(out, out->windows % 2 ? WSS_CHANGE_UNTOUCHED : WSS_CHANGE_TOUCHED, 64, 1);
		run(out, out->windows % 2 ? WSS_CHANGE_BALLOONED : WSS_CHANGE_RETURNED, 0, PAGES);
		end(out);
	}
}

/* Each range is hotter than the previous one. */
static void make_hotter(struct output *out)
{
	for (uint64_t gfn = 1 << 20; room(out, 16384) && out->windows < WSS_REC_INTERVALS_MAX;) {
		begin(out);
		for (unsigned i = 0; i < 256; i++)
			run(out, WSS_CHANGE_TOUCHED, gfn - (out->windows * 256 + i) * 2 % (1 << 20),
			    1);
		end(out);
		if (out->windows % 2048 == 0)
			gfn += 1 << 20;
	}
}

/* Written pages that are unrelated to the touched ones. */
static void make_written(struct output *out)
{
	while (room(out, 1 << 17) && out->windows < WSS_REC_INTERVALS_MAX) {
		begin(out);
		for (uint64_t i = 0; i < 32768; i++)
			run(out, out->windows % 2 ? WSS_CHANGE_UNWRITTEN : WSS_CHANGE_WRITTEN,
			    1 + i * 16384, 100);
		end(out);
	}
}

/*
 * A page in each leaf that a recording may cover in part comes and goes, which takes three
 * bytes. The leaf goes with it, unless another page stays.
 */
static void make_hops(struct output *out, bool stay)
{
	const uint64_t end_gfn = (WSS_REC_PARTS_MAX - 2) * 32768ULL;
	bool in = false;

	if (stay) {
		begin(out);
		for (uint64_t gfn = 4097; gfn < end_gfn; gfn += 4096)
			run(out, WSS_CHANGE_TOUCHED, gfn, 1);
		end(out);
	}
	while (room(out, end_gfn / 4096 * 4) && out->windows < WSS_REC_INTERVALS_MAX) {
		begin(out);
		for (uint64_t gfn = 4200; gfn < end_gfn; gfn += 4096)
			run(out, in ? WSS_CHANGE_UNTOUCHED : WSS_CHANGE_TOUCHED, gfn, 1);
		in = !in;
		end(out);
	}
}

static void make_hops_gone(struct output *out)
{
	make_hops(out, false);
}

static void make_hops_stay(struct output *out)
{
	make_hops(out, true);
}

/* The same leaves in random order. */
static void make_random_leaves(struct output *out)
{
	static uint8_t in[(WSS_REC_PARTS_MAX - 2) * 8];

	window(out, WSS_CHANGE_TOUCHED, 0, 1);
	begin(out);
	while (room(out, 20)) {
		uint64_t i = 1 + random_below(out, sizeof(in) - 1);

		run(out, in[i] ? WSS_CHANGE_UNTOUCHED : WSS_CHANGE_TOUCHED, i * 4096 + i % 64 * 64,
		    1);
		in[i] = !in[i];
		if (out->payload.length > PAYLOAD_BYTES) {
			end(out);
			begin(out);
		}
	}
	end(out);
}

/* All of the memory comes and goes, over and over within each window. */
static void make_sweeps(struct output *out)
{
	while (room(out, 64) && out->windows < WSS_REC_INTERVALS_MAX) {
		begin(out);
		for (unsigned i = 0; i < 4096 && room(out, 32); i++) {
			run(out, WSS_CHANGE_TOUCHED, 1, PAGES - 2);
			run(out, WSS_CHANGE_UNTOUCHED, 1, PAGES - 2);
		}
		end(out);
	}
}

/* A balloon takes all memory and gives it back; the guest's pages are scattered. */
static void make_balloon_pages(struct output *out)
{
	make_runs(out, 2048, 1, 0);
	while (room(out, 64) && out->windows < WSS_REC_INTERVALS_MAX) {
		begin(out);
		run(out, out->windows % 2 ? WSS_CHANGE_RETURNED : WSS_CHANGE_BALLOONED, 0, PAGES);
		run(out, out->windows % 2 ? WSS_CHANGE_UNTOUCHED : WSS_CHANGE_TOUCHED, 5, 1);
		end(out);
	}
}

/* The longest texts, of characters that JSON writes as two. */
static void make_marks_long(struct output *out)
{
	uint8_t data[WSS_MARK_TEXT_MAX + 32];
	char text[WSS_MARK_TEXT_MAX];

	memset(text, '"', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	window(out, WSS_CHANGE_TOUCHED, 0, 4);
	for (uint32_t i = 0; i < WSS_REC_MARKS_MAX && room(out, sizeof(data)); i++) {
		struct wss_buffer payload = {.data = data, .size = sizeof(data)};

		wss_buffer_number(&payload, i);
		wss_buffer_text(&payload, text);
		write_frame(out, WSS_FRAME_MARK, 0, data, payload.length);
	}
	window(out, WSS_CHANGE_TOUCHED, 8, 4);
}

/* Gaps and windows alternate, each with the longest note. */
static void make_gaps(struct output *out)
{
	struct wss_interval interval = {.degraded = true};

	memset(interval.note, '&', sizeof(interval.note) - 1);
	while (room(out, sizeof(interval.note) + 8) && out->windows < WSS_REC_INTERVALS_MAX) {
		begin(out);
		out->payload.length = 0;
		interval.gap = out->windows % 2;
		interval.start_ns = out->windows * out->step_ns;
		interval.end_ns = interval.start_ns + out->step_ns;
		wss_rec_encode_interval(&out->payload, &interval);
		if (!interval.gap)
			run(out, out->windows % 4 ? WSS_CHANGE_UNTOUCHED : WSS_CHANGE_TOUCHED, 64,
			    4096);
		end(out);
	}
}

/* Pages are touched, written and taken by the balloon, one of eight leaves each, and all go
 * again. */
static void make_mixed(struct output *out)
{
	static const enum wss_change changes[] = {WSS_CHANGE_TOUCHED,	WSS_CHANGE_WRITTEN,
						  WSS_CHANGE_BALLOONED, WSS_CHANGE_UNTOUCHED,
						  WSS_CHANGE_UNWRITTEN, WSS_CHANGE_RETURNED};

	while (room(out, 1 << 18) && out->windows < WSS_REC_INTERVALS_MAX) {
		begin(out);
		for (unsigned i = 0; i < 3; i++)
			for (uint64_t k = 0; k < 16384; k++)
				run(out, changes[out->windows % 2 * 3 + i], 1 + k * 32769, 1);
		end(out);
	}
}

/* Rows of a heat map come and go, next to the largest possible number of rows that do not. */
static void make_rows(struct output *out)
{
	uint64_t first = (WSS_REGIONS_MAX - 1) * ((1ULL << 20 >> 12) + 1);

	make_alternate(out, first + 1, PAGES - WSS_REGIONS_MAX - 2);
}

/* Windows of zero length. */
static void make_instants(struct output *out)
{
	out->step_ns = 0;
	make_phases(out);
}

/* One page of each region comes and goes. */
static void make_each_region(struct output *out)
{
	uint64_t n = PAGES / WSS_REGIONS_MAX;

	while (room(out, WSS_REGIONS_MAX * 16) && out->windows < WSS_REC_INTERVALS_MAX) {
		begin(out);
		for (uint64_t i = 0; i < WSS_REGIONS_MAX; i++)
			run(out, out->windows % 2 ? WSS_CHANGE_UNTOUCHED : WSS_CHANGE_TOUCHED,
			    i * (n + 4096) + 77, 1);
		end(out);
	}
}

/* The balloon takes a page in each leaf of a guest that touches all of them, and gives it back. */
static void make_balloon_churn(struct output *out)
{
	const uint64_t end_gfn = (WSS_REC_PARTS_MAX - 2) * 32768ULL;

	begin(out);
	for (uint64_t gfn = 4097; gfn < end_gfn; gfn += 4096)
		run(out, WSS_CHANGE_TOUCHED, gfn, 2);
	end(out);
	while (room(out, end_gfn / 4096 * 4) && out->windows < WSS_REC_INTERVALS_MAX) {
		begin(out);
		for (uint64_t gfn = 4097; gfn < end_gfn; gfn += 4096)
			run(out, out->windows % 2 ? WSS_CHANGE_BALLOONED : WSS_CHANGE_RETURNED, gfn,
			    1);
		end(out);
	}
}

/*
 * The balloon takes runs of n pages at this distance, and gives them back, in a guest that touches
 * some pages at the end of each leaf of the set.
 */
static void make_balloon_runs(struct output *out, uint64_t first, uint64_t distance, uint64_t n)
{
	const uint64_t end_gfn = (WSS_REC_PARTS_MAX - 2) * 32768ULL;

	begin(out);
	for (uint64_t gfn = 4094; gfn < end_gfn; gfn += 4096)
		run(out, WSS_CHANGE_TOUCHED, gfn, 5);
	end(out);
	while (room(out, end_gfn / 4096 * 8) && out->windows < WSS_REC_INTERVALS_MAX) {
		begin(out);
		for (uint64_t gfn = first; gfn + n < end_gfn; gfn += distance)
			run(out, out->windows % 2 ? WSS_CHANGE_BALLOONED : WSS_CHANGE_RETURNED, gfn,
			    n);
		end(out);
	}
}

static void make_balloon_edges(struct output *out)
{
	make_balloon_runs(out, 4095, 8192, 2);
}

static void make_balloon_divided(struct output *out)
{
	make_balloon_runs(out, 4097, 3 * 4096 + 1, 3 * 4096);
}

/* A guest of 64 GiB of which each window touches 4096 other pages. */
static void make_sparse(struct output *out)
{
	static uint64_t pages[2][4096];
	const size_t n = sizeof(pages[0]) / sizeof(pages[0][0]);

	while (room(out, 10 * n) && out->windows < WSS_REC_INTERVALS_MAX) {
		uint64_t *now = pages[out->windows % 2], *before = pages[(out->windows + 1) % 2];
		bool first = !out->windows;

		/* One of each 4096 pages, in the other half of them than before. */
		for (size_t i = 0; i < n; i++)
			now[i] = i * 4096 + out->windows % 2 * 2048 + random_below(out, 2048);
		begin(out);
		for (size_t i = 0; i < n; i++)
			run(out, WSS_CHANGE_TOUCHED, now[i], 1);
		for (size_t i = 0; i < n && !first; i++)
			run(out, WSS_CHANGE_UNTOUCHED, before[i], 1);
		end(out);
	}
}

/* An interval of frames without content. */
static void make_frames(struct output *out)
{
	window(out, WSS_CHANGE_TOUCHED, 0, 4);
	begin(out);
	while (room(out, 2 * INTERVAL_BYTES)) {
		write_frame(out, WSS_FRAME_INTERVAL, out->flags, out->data, out->payload.length);
		out->payload.length = 0;
		out->flags = 0;
	}
	end(out);
}

/* Valid up to the last interval, whose page counts are wrong. */
static void make_nonsense(struct output *out)
{
	make_hops(out, true);
	out->counts[0]++;
	window(out, WSS_CHANGE_TOUCHED, 3, 1);
}

static void make_sparse_nonsense(struct output *out)
{
	make_sparse(out);
	out->counts[0]++;
	window(out, WSS_CHANGE_TOUCHED, 3, 1);
}

static void make_optional(struct output *out)
{
	window(out, WSS_CHANGE_TOUCHED, 0, 4);
	while (room(out, 24))
		write_frame(out, (enum wss_frame_type)77, WSS_FRAME_OPTIONAL, out->data, 0);
}

/* A sparse file of one TiB, all zeros behind the first windows. */
static void make_hole(struct output *out)
{
	make_few(out);
	fflush(out->stream);
	if (ftruncate(fileno(out->stream), 1LL << 40) < 0)
		die("cannot make it so long");
}

static const struct {
	const char *name;
	void (*make)(struct output *out);
	size_t regions;
	uint64_t hole;
	bool uneven;
} kinds[] = {
	{"few", make_few, 1, 0, false},
	{"marks-descending", make_marks_descending, 1, 0, false},
	{"marks-equal", make_marks_equal, 1, 0, false},
	{"windows", make_windows, 1, 0, false},
	{"windows-regions", make_windows, WSS_REGIONS_MAX, 1 << 24, false},
	{"phases", make_phases, 1, 0, false},
	{"alternate-all", make_alternate_all, 1, 0, false},
	{"alternate-most", make_alternate_most, 1, 0, false},
	{"alternate-regions", make_alternate_regions, WSS_REGIONS_MAX, 1 << 24, false},
	{"crossings", make_alternate_all, WSS_REGIONS_MAX, 0, false},
	{"centuries", make_centuries, 1, 0, false},
	{"single-pages", make_single_pages, 1, 0, false},
	{"scattered", make_scattered, 1, 0, false},
	{"straddling", make_straddling, 1, 0, false},
	{"unshared", make_unshared, 1, 0, false},
	{"thin", make_thin, 1, 0, false},
	{"random", make_random, 1, 0, false},
	{"random-regions", make_random, 64, 0, false},
	{"balloon", make_balloon, 1, 0, false},
	{"hotter", make_hotter, 1, 0, false},
	{"written", make_written, 1, 0, false},
	{"hops-gone", make_hops_gone, 1, 0, false},
	{"hops-stay", make_hops_stay, 1, 0, false},
	{"random-leaves", make_random_leaves, 1, 0, false},
	{"sweeps", make_sweeps, 1, 0, false},
	{"balloon-pages", make_balloon_pages, 1, 0, false},
	{"marks-long", make_marks_long, 1, 0, false},
	{"gaps", make_gaps, 1, 0, false},
	{"mixed", make_mixed, 1, 0, false},
	{"rows", make_rows, WSS_REGIONS_MAX, 1 << 20, true},
	{"instants", make_instants, 1, 0, false},
	{"each-region", make_each_region, WSS_REGIONS_MAX, 1 << 24, false},
	{"balloon-churn", make_balloon_churn, 1, 0, false},
	{"balloon-edges", make_balloon_edges, 1, 0, false},
	{"balloon-divided", make_balloon_divided, 1, 0, false},
	{"sparse", make_sparse, 1, 0, false},
	{"sparse-nonsense", make_sparse_nonsense, 1, 0, false},
	{"frames", make_frames, 1, 0, false},
	{"nonsense", make_nonsense, 1, 0, false},
	{"optional", make_optional, 1, 0, false},
	{"hole", make_hole, 1, 0, false},
};

int main(int argc, char **argv)
{
	static struct output out = {.limit = 32 << 20, .random = 0x9e3779b97f4a7c15};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (argc < 3) {
			puts(kinds[i].name);
			continue;
		}
		if (strcmp(argv[1], kinds[i].name) != 0)
			continue;
		if (argc > 3)
			out.limit = strtoull(argv[3], NULL, 10);
		open_file(&out, argv[2], kinds[i].regions, kinds[i].hole, kinds[i].uneven);
		kinds[i].make(&out);
		if (fclose(out.stream) != 0)
			die("cannot write the file");
		return 0;
	}
	return argc < 3 ? 0 : 2;
}
