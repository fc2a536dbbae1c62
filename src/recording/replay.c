/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "base/number.h"
#include "base/stop.h"
#include "recording/reader-private.h"
#include "recording/tokens.h"

/* Number of runs between two checks for a stop request; they take some milliseconds. */
#define RUNS_A_LOOK 16384

/*
 * Runs are collected, and announced before they are applied: the pages of sets come from anywhere
 * in memory, and the processor fetches those of several runs at the same time.
 */
#define RUNS_WAITING 32

struct waiting_run {
	enum wss_change change;
	struct wss_run run;
};

struct replay {
	struct wss_recfile *file;
	const struct wss_recfile_visitor *visitor;
	void *opaque;
	bool keeps_sets; /* the sets are kept, and the content checked against them */
	struct wss_pageset *touched;
	struct wss_pageset *written;
	struct wss_pageset *ballooned;
	struct wss_recording_sets sets; /* the three sets below */
	struct wss_interval interval;
	uint64_t last_end_ns;
	uint64_t frame_at;  /* offset of the current frame */
	uint64_t intervals; /* number of complete intervals before it */
	uint64_t windows;   /* of them */
	struct wss_region_index regions;
	struct wss_pageset_parts parts;
	uint64_t crossings; /* runs that continue from one region into the next */
	uint32_t runs;	    /* runs since the last check for a stop request, modulo RUNS_A_LOOK */
	unsigned n_waiting;
	struct waiting_run waiting[RUNS_WAITING];
};

static int apply_waiting(struct replay *replay, struct wss_error *err);

static int too_much_work(const struct replay *replay, struct wss_error *err)
{
	return wss_error_set(
		err, WSS_ERR_FAILED,
		"%s: reading it would take too long: its changes are more scattered than those of any guest",
		replay->file->name);
}

/* Looks for a stop request, and whether the work so far is in proportion to the file. */
static int replay_may_go_on(const struct replay *replay, struct wss_error *err)
{
	if (wss_stop_requested())
		return wss_error_set(err, WSS_ERR_INTERRUPTED, "interrupted");
	return wss_pageset_steps_exceeded(&replay->file->budget) ? too_much_work(replay, err) : 0;
}

/* Reports content that is inconsistent, unless earlier content was already. */
static int inconsistent(struct replay *replay, const char *what, struct wss_error *err)
{
	if (apply_waiting(replay, err) < 0)
		return -1;
	replay->file->nonsense_at = replay->frame_at;
	return wss_error_set(
		err, WSS_ERR_FAILED,
		"%s: contradicts itself at byte %llu, after %llu whole interval%s: %s (%s)",
		replay->file->name, (unsigned long long)replay->frame_at,
		(unsigned long long)replay->intervals, wss_plural(replay->intervals), what,
		wss_recfile_salvageable(replay->windows, replay->intervals));
}

static struct wss_pageset *set_of(const struct replay *replay, enum wss_change change)
{
	struct wss_pageset *const sets[] = {replay->touched, replay->written, replay->ballooned};

	return sets[change / 2];
}

/*
 * Adds the pages of a run to the set of a change, or removes them. A page that is added must not be
 * in the set yet, and one that is removed must be.
 */
static int apply_run(struct replay *replay, enum wss_change change, struct wss_run run,
		     struct wss_error *err)
{
	struct wss_pageset *set = set_of(replay, change);
	int64_t changed = (int64_t)run.n;

	if (replay->keeps_sets && wss_pageset_note_parts(&replay->parts, run) > WSS_REC_PARTS_MAX)
		return inconsistent(replay, "its pages are scattered over more than 4 TiB", err);
	if (replay->keeps_sets)
		changed = change % 2 ? wss_pageset_remove(set, run.first, run.n)
				     : wss_pageset_add(set, run.first, run.n);
	if (changed < 0)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	if ((uint64_t)changed != run.n)
		return inconsistent(replay, "a page comes or goes twice", err);
	return replay->visitor->change ? replay->visitor->change(replay->opaque, change, run, err)
				       : 0;
}

/* Has the memory fetched that the waiting runs need. */
static void announce_waiting(const struct replay *replay, unsigned n)
{
	uint64_t leaf = UINT64_MAX;

	for (unsigned i = 0; i < n; i++) {
		const struct waiting_run *waiting = &replay->waiting[i];

		/* Most runs are near the one before. */
		if (waiting->run.first / WSS_PAGESET_NEAR_PAGES == leaf)
			continue;
		leaf = waiting->run.first / WSS_PAGESET_NEAR_PAGES;
		wss_pageset_expect(set_of(replay, waiting->change), waiting->run.first);
		if (replay->visitor->expect)
			replay->visitor->expect(replay->opaque, waiting->change,
						waiting->run.first);
	}
}

static int apply_waiting(struct replay *replay, struct wss_error *err)
{
	unsigned n = replay->n_waiting;

	replay->n_waiting = 0;
	if (replay->keeps_sets)
		announce_waiting(replay, n);
	for (unsigned i = 0; i < n; i++)
		if (apply_run(replay, replay->waiting[i].change, replay->waiting[i].run, err) < 0)
			return -1;
	return 0;
}

/* Queues a run of frame numbers, which may span several regions without a hole between them. */
static int queue_gfns(struct replay *replay, enum wss_change change, uint64_t gfn, uint64_t n,
		      struct wss_error *err)
{
	while (n) {
		uint64_t index, room;

		if (!wss_region_index_gfn(&replay->regions, gfn, &index, &room))
			return inconsistent(replay, "a page where there is no memory", err);
		if (room > n)
			room = n;
		else if (room < n && ++replay->crossings > WSS_REC_CROSSINGS_MAX)
			return inconsistent(replay, "too many runs go on into the next region",
					    err);
		if (++replay->runs % RUNS_A_LOOK == 0 && replay_may_go_on(replay, err) < 0)
			return -1;
		replay->waiting[replay->n_waiting++] = (struct waiting_run){change, {index, room}};
		if (replay->n_waiting == RUNS_WAITING && apply_waiting(replay, err) < 0)
			return -1;
		gfn += room;
		n -= room;
	}
	return 0;
}

static int check_counts(struct replay *replay, struct wss_cursor *cursor, struct wss_error *err)
{
	const struct wss_pageset *const sets[] = {replay->touched, replay->written,
						  replay->ballooned};

	if (apply_waiting(replay, err) < 0)
		return -1;
	for (int i = 0; i < 3; i++)
		if (wss_cursor_number(cursor, UINT64_MAX) != wss_pageset_count(sets[i]) &&
		    replay->keeps_sets)
			return inconsistent(replay, "its pages are not as many as it says", err);
	return 0;
}

static int replay_tokens(struct replay *replay, struct wss_cursor *cursor, bool *ret_counted,
			 struct wss_error *err)
{
	struct wss_token_state state = WSS_TOKEN_STATE_INIT;

	*ret_counted = false;
	while (cursor->data < cursor->end && !cursor->bad && !*ret_counted) {
		uint64_t number = wss_cursor_number(cursor, 1ULL << 40);
		uint64_t n = wss_cursor_number(cursor, 1ULL << 40);

		if (n == 0 && number < WSS_CHANGES) {
			state = (struct wss_token_state){.change = (unsigned)number};
		} else if (n == 0 && number == WSS_TOKEN_COUNTS) {
			*ret_counted = true;
			if (check_counts(replay, cursor, err) < 0)
				return -1;
		} else if (n == 0 || state.change == WSS_CHANGES || replay->interval.gap) {
			return inconsistent(replay, "an unknown change", err);
		} else {
			state.gfn += number;
			if (queue_gfns(replay, (enum wss_change)state.change, state.gfn, n, err) <
			    0)
				return -1;
			state.gfn += n;
		}
	}
	return cursor->bad || cursor->data != cursor->end
		       ? inconsistent(replay, "an interval that is not well formed", err)
		       : apply_waiting(replay, err);
}

static int begin_interval(struct replay *replay, struct wss_cursor *cursor, struct wss_error *err)
{
	wss_rec_decode_interval(cursor, &replay->interval);
	if (cursor->bad || replay->interval.start_ns < replay->last_end_ns ||
	    replay->interval.end_ns > WSS_REC_TIME_MAX_NS)
		return inconsistent(replay, "times that go backwards", err);
	replay->last_end_ns = replay->interval.end_ns;
	return replay->visitor->begin ? replay->visitor->begin(replay->opaque, &replay->interval,
							       &replay->sets, err)
				      : 0;
}

static int replay_interval(struct replay *replay, const struct wss_frame *frame,
			   struct wss_error *err)
{
	struct wss_cursor cursor = {.data = replay->file->payload,
				    .end = replay->file->payload + frame->length};
	bool counted, last = frame->flags & WSS_FRAME_LAST;

	if ((frame->flags & WSS_FRAME_FIRST) && begin_interval(replay, &cursor, err) < 0)
		return -1;
	if (replay_tokens(replay, &cursor, &counted, err) < 0)
		return -1;
	if (counted != last)
		return inconsistent(replay, "counts that are missing", err);
	replay->intervals += last;
	replay->windows += last && !replay->interval.gap;
	return last && replay->visitor->end
		       ? replay->visitor->end(replay->opaque, &replay->interval, &replay->sets, err)
		       : 0;
}

static int replay_mark(struct replay *replay, const struct wss_frame *frame, struct wss_error *err)
{
	struct wss_cursor cursor = {.data = replay->file->payload,
				    .end = replay->file->payload + frame->length};
	uint64_t time_ns = wss_cursor_number(&cursor, WSS_REC_TIME_MAX_NS);
	char text[WSS_MARK_TEXT_MAX];

	wss_cursor_text(&cursor, text, sizeof(text));
	if (cursor.bad || cursor.data != cursor.end)
		return inconsistent(replay, "a mark that is not well formed", err);
	return replay->visitor->mark ? replay->visitor->mark(replay->opaque, time_ns, text, err)
				     : 0;
}

static int replay_frames(struct replay *replay, struct wss_error *err)
{
	struct wss_recfile *file = replay->file;
	uint64_t offset = file->first_frame;
	uint32_t sequence = 0;
	int r = 0;

	while (r == 0 && offset < file->whole) {
		struct wss_frame frame;

		if (replay_may_go_on(replay, err) < 0)
			return -1;
		replay->frame_at = offset;
		if (!wss_recfile_frame(file, &offset, &sequence, &frame))
			return wss_error_set(err, WSS_ERR_FAILED,
					     "%s: was changed while it was read", file->name);
		if (frame.type == WSS_FRAME_INTERVAL)
			r = replay_interval(replay, &frame, err);
		else if (frame.type == WSS_FRAME_MARK)
			r = replay_mark(replay, &frame, err);
		else if (frame.type == WSS_FRAME_END && file->state.end_ns < replay->last_end_ns)
			r = inconsistent(replay, "an end before its last interval", err);
	}
	return r;
}

int wss_recfile_replay(struct wss_recfile *file, const struct wss_recfile_visitor *visitor,
		       void *opaque, struct wss_error *err)
{
	uint64_t pages = wss_recording_pages(file->recording);
	struct replay replay = {.file = file,
				.visitor = visitor,
				.opaque = opaque,
				.keeps_sets = !visitor->without_sets || !file->consistent};
	int r;
	uint64_t steps = wss_pageset_steps();

	wss_region_index_init(&replay.regions, file->recording);
	/* 0 would mean that there is no limit. */
	file->budget.last_step = steps + file->steps_left + 1;
	replay.touched = wss_pageset_new(pages);
	replay.written = wss_pageset_new(pages);
	replay.ballooned = wss_pageset_new(pages);
	replay.sets = (struct wss_recording_sets){replay.touched, replay.written, replay.ballooned};
	if (!replay.touched || !replay.written || !replay.ballooned) {
		r = wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	} else {
		wss_pageset_limit(replay.touched, &file->budget);
		wss_pageset_limit(replay.written, &file->budget);
		wss_pageset_limit(replay.ballooned, &file->budget);
		r = replay_frames(&replay, err);
		file->consistent |= r == 0;
		if (r == 0 && visitor->last)
			r = visitor->last(opaque, &replay.sets, err);
	}
	wss_pageset_free(replay.touched);
	wss_pageset_free(replay.written);
	wss_pageset_free(replay.ballooned);
	if (r < 0 && wss_pageset_steps_exceeded(&file->budget))
		return too_much_work(&replay, err);
	steps = wss_pageset_steps() - steps;
	file->steps_left -= steps < file->steps_left ? steps : file->steps_left;
	file->budget.last_step = 0;
	if (r < 0 && file->budget.exceeded)
		return wss_error_set(
			err, WSS_ERR_FAILED,
			"%s: reading it would take more than %llu MiB: too many windows, or pages too widely scattered",
			file->name, (unsigned long long)(file->budget.limit_bytes >> 20));
	return r;
}
