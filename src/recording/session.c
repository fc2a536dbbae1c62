/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "recording/session.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "measure/regions.h"

struct wss_session {
	char *path;
	struct wss_recording recording;
	/* NULL until the first window; its file has a name once that is complete. */
	struct wss_recwriter *writer;
	/* Sets of the last window, and of the one that is being added. */
	struct wss_pageset *touched, *touched_now;
	struct wss_pageset *written, *written_now;
	struct wss_pageset *ballooned, *ballooned_now;
	struct wss_pageset *resident, *resident_now; /* at the last check */
	bool resident_known;
	uint64_t last_end_ns; /* since the start */
	char note[WSS_MARK_TEXT_MAX];
	bool stopped;
	struct wss_session_progress progress;
};

static int no_memory(struct wss_error *err)
{
	return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
}

static void session_free(struct wss_session *session)
{
	wss_pageset_free(session->touched);
	wss_pageset_free(session->touched_now);
	wss_pageset_free(session->written);
	wss_pageset_free(session->written_now);
	wss_pageset_free(session->ballooned);
	wss_pageset_free(session->ballooned_now);
	wss_pageset_free(session->resident);
	wss_pageset_free(session->resident_now);
	wss_recwriter_free(session->writer);
	free(session->path);
	free(session);
}

static int make_sets(struct wss_session *session)
{
	struct wss_pageset **const sets[] = {&session->touched,	  &session->touched_now,
					     &session->written,	  &session->written_now,
					     &session->ballooned, &session->ballooned_now,
					     &session->resident,  &session->resident_now};
	uint64_t pages = wss_recording_pages(&session->recording);

	for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++) {
		*sets[i] = wss_pageset_new(pages);
		if (!*sets[i])
			return -1;
	}
	return 0;
}

static void describe_recording(struct wss_recording *recording, const struct wss_guest *guest,
			       const char *method, const char *boot_id, uint64_t interval_ns,
			       uint64_t window_ns)
{
	snprintf(recording->tool, sizeof(recording->tool), "%s", PACKAGE_VERSION);
	snprintf(recording->domain, sizeof(recording->domain), "%s", guest->config.name);
	snprintf(recording->uuid, sizeof(recording->uuid), "%s", guest->config.uuid);
	snprintf(recording->method, sizeof(recording->method), "%s", method);
	snprintf(recording->boot_id, sizeof(recording->boot_id), "%s", boot_id);
	recording->interval_ns = interval_ns;
	recording->window_ns = window_ns;
}

int wss_session_open(const char *path, struct wss_guest *guest, const char *method,
		     const char *boot_id, uint64_t interval_ns, uint64_t window_ns,
		     struct wss_session **ret_session, struct wss_error *err)
{
	struct wss_session *session = calloc(1, sizeof(*session));

	if (!session)
		return no_memory(err);
	describe_recording(&session->recording, guest, method, boot_id, interval_ns, window_ns);
	if (wss_regions_of(guest, &session->recording, err) < 0 ||
	    wss_recwriter_check(path, err) < 0) {
		session_free(session);
		return -1;
	}
	session->path = strdup(path);
	if (!session->path || make_sets(session) < 0) {
		session_free(session);
		return no_memory(err);
	}
	*ret_session = session;
	return 0;
}

void wss_session_set_host(struct wss_session *session, const char *host)
{
	snprintf(session->recording.host, sizeof(session->recording.host), "%s", host);
}

static uint64_t sample_granularity_bytes(const struct wss_sample *sample)
{
	return sample->granularity_bytes.known ? sample->granularity_bytes.value : WSS_PAGE_BYTES;
}

/* Creates the file, which begins with its first window and has that window's granularity. */
static int start_file(struct wss_session *session, const struct wss_session_window *window,
		      struct wss_error *err)
{
	uint64_t start_ns = window->start_ns, ago_ns = wss_clock_now_ns() - start_ns;

	session->recording.granularity_bytes = sample_granularity_bytes(window->sample);
	session->recording.start_boottime_ns = start_ns;
	session->note[0] = '\0';
	session->recording.start_realtime_ns =
		(int64_t)wss_clock_wall_seconds() * (int64_t)WSS_NS_PER_S - (int64_t)ago_ns;
	return wss_recwriter_create(session->path, &session->recording, &session->writer, err);
}

static int end_interval(struct wss_session *session, struct wss_error *err)
{
	return wss_recwriter_end(session->writer, wss_pageset_count(session->touched),
				 wss_pageset_count(session->written),
				 wss_pageset_count(session->ballooned), err);
}

static int write_gap(struct wss_session *session, uint64_t end_ns, struct wss_error *err)
{
	struct wss_interval gap = {.gap = true, .start_ns = session->last_end_ns, .end_ns = end_ns};

	if (end_ns <= gap.start_ns)
		return 0;
	memcpy(gap.note, session->note, sizeof(gap.note));
	if (gap.note[0] && !session->stopped) {
		session->progress.gap_ns += end_ns - gap.start_ns;
		session->progress.ends_in_gap = true;
		memcpy(session->progress.gap_why, gap.note, sizeof(gap.note));
	}
	session->note[0] = '\0';
	session->last_end_ns = end_ns;
	if (wss_recwriter_begin(session->writer, &gap, err) < 0)
		return -1;
	return end_interval(session, err);
}

/* Fills set with the touched pages, region by region. */
static int fill_set(const struct wss_recording *recording, const struct wss_pages *pages,
		    struct wss_pageset *set)
{
	uint64_t index = 0;

	wss_pageset_remove(set, 0, wss_pageset_size(set));
	for (size_t i = 0; i < recording->n_regions; i++) {
		uint64_t first = recording->regions[i].start >> WSS_PAGE_SHIFT;
		uint64_t n = recording->regions[i].length >> WSS_PAGE_SHIFT;
		struct wss_run run = {first, 0};

		while (wss_pages_next(pages, run.first + run.n, first + n, &run))
			if (wss_pageset_add(set, index + (run.first - first), run.n) < 0)
				return -1;
		index += n;
	}
	return 0;
}

static enum wss_written written_meaning(const struct wss_session_window *window)
{
	const struct wss_sample *sample = window->sample;

	if (!window->pages.written.known || !sample->written_high_bytes.known)
		return WSS_WRITTEN_ABSENT;
	return sample->written_bytes.known ? WSS_WRITTEN_EXACT : WSS_WRITTEN_HIGH;
}

static void swap_sets(struct wss_pageset **a, struct wss_pageset **b)
{
	struct wss_pageset *c = *a;

	*a = *b;
	*b = c;
}

/*
 * Pages that the host held at the last check but no longer holds count as taken by the balloon
 * until the host holds them again.
 */
static int follow_balloon(struct wss_session *session, const struct wss_pages *pages)
{
	struct wss_pageset *resident = session->resident_now;
	struct wss_run run = {0, 0};

	if (fill_set(&session->recording, pages, resident) < 0 ||
	    wss_pageset_copy(session->ballooned_now, session->ballooned) < 0)
		return -1;
	while (session->resident_known &&
	       wss_pageset_next(session->resident, resident, run.first + run.n, &run))
		if (wss_pageset_add(session->ballooned_now, run.first, run.n) < 0)
			return -1;
	run = (struct wss_run){0, 0};
	while (wss_pageset_next(resident, NULL, run.first + run.n, &run))
		if (wss_pageset_remove(session->ballooned_now, run.first, run.n) < 0)
			return -1;
	session->resident_known = true;
	swap_sets(&session->resident, &session->resident_now);
	return 0;
}

static int write_balloon(struct wss_session *session, const struct wss_pages *resident,
			 struct wss_error *err)
{
	if (!resident->known)
		return 0;
	if (follow_balloon(session, resident) < 0)
		return no_memory(err);
	if (wss_recwriter_delta(session->writer, &session->recording, WSS_CHANGE_BALLOONED,
				session->ballooned, session->ballooned_now, err) < 0)
		return -1;
	swap_sets(&session->ballooned, &session->ballooned_now);
	return 0;
}

static int write_changes(struct wss_session *session, const struct wss_session_window *window,
			 bool written, struct wss_error *err)
{
	if (wss_recwriter_delta(session->writer, &session->recording, WSS_CHANGE_TOUCHED,
				session->touched, session->touched_now, err) < 0)
		return -1;
	swap_sets(&session->touched, &session->touched_now);
	if (written) {
		if (wss_recwriter_delta(session->writer, &session->recording, WSS_CHANGE_WRITTEN,
					session->written, session->written_now, err) < 0)
			return -1;
		swap_sets(&session->written, &session->written_now);
	}
	if (write_balloon(session, &window->resident, err) < 0)
		return -1;
	return end_interval(session, err);
}

/* Memory that was plugged since the recording began is in none of its regions. */
static void note_missing(const struct wss_session *session, const struct wss_pages *touched,
			 struct wss_interval *interval)
{
	uint64_t missing = 0;
	struct wss_run run = {0, 0};

	while (wss_pages_next(touched, run.first + run.n, UINT64_MAX, &run))
		missing += run.n;
	missing -= wss_pageset_count(session->touched_now);
	if (!missing)
		return;
	interval->degraded = true;
	snprintf(
		interval->note, sizeof(interval->note),
		"%llu touched pages are missing: their memory was plugged, or moved, after the recording had begun",
		(unsigned long long)missing);
}

static int write_window(struct wss_session *session, const struct wss_session_window *window,
			uint64_t end_ns, struct wss_error *err)
{
	struct wss_interval interval = {
		.start_ns = session->last_end_ns,
		.end_ns = end_ns,
		.degraded = window->sample->quality != WSS_QUALITY_OK,
		.written = written_meaning(window),
		.granularity_bytes = sample_granularity_bytes(window->sample),
		.balloon_bytes = window->sample->memory.balloon_bytes.value,
	};
	bool written = interval.written != WSS_WRITTEN_ABSENT;

	if (interval.degraded && window->sample->n_notes)
		snprintf(interval.note, sizeof(interval.note), "%s", window->sample->notes[0]);
	if (fill_set(&session->recording, &window->pages.touched, session->touched_now) < 0 ||
	    (written &&
	     fill_set(&session->recording, &window->pages.written, session->written_now) < 0))
		return no_memory(err);
	note_missing(session, &window->pages.touched, &interval);
	if (wss_recwriter_begin(session->writer, &interval, err) < 0 ||
	    write_changes(session, window, written, err) < 0)
		return -1;
	if (!session->progress.windows && wss_recwriter_name(session->writer, err) < 0)
		return -1;
	session->last_end_ns = end_ns;
	session->progress.ends_in_gap = false;
	session->progress.windows++;
	session->progress.touched_bytes = wss_pageset_count(session->touched) << WSS_PAGE_SHIFT;
	return 0;
}

int wss_session_add(struct wss_session *session, const struct wss_session_window *window,
		    struct wss_error *err)
{
	uint64_t end_ns;

	if (!window->pages.touched.known && !session->note[0])
		wss_session_note(session, window->sample->n_notes
						  ? window->sample->notes[0]
						  : "the touched pages are not known exactly");
	if (!window->pages.touched.known)
		session->progress.gaps++;
	if (!session->writer && !window->pages.touched.known)
		return 0;
	if (!session->writer && start_file(session, window, err) < 0)
		return -1;
	end_ns = window->end_ns - session->recording.start_boottime_ns;
	if (!window->pages.touched.known)
		return write_gap(session, end_ns, err);
	if (write_gap(session, window->start_ns - session->recording.start_boottime_ns, err) < 0)
		return -1;
	return write_window(session, window, end_ns, err);
}

void wss_session_note(struct wss_session *session, const char *text)
{
	snprintf(session->note, sizeof(session->note), "%.*s", WSS_MARK_TEXT_MAX - 1, text);
}

void wss_session_note_stop(struct wss_session *session)
{
	wss_session_note(session, "the recording was stopped within this window");
	session->stopped = true;
}

const char *wss_session_why_not(const struct wss_session *session)
{
	return session->note;
}

void wss_session_progress(const struct wss_session *session,
			  struct wss_session_progress *ret_progress)
{
	*ret_progress = session->progress;
	ret_progress->length_ns = session->last_end_ns;
	ret_progress->file_bytes = session->writer ? wss_recwriter_bytes(session->writer) : 0;
}

int wss_session_close(struct wss_session *session, uint64_t now_ns,
		      struct wss_session_progress *ret_progress, struct wss_error *err)
{
	struct wss_recwriter *writer;
	int r = 0;

	if (!session)
		return 0;
	writer = session->writer;
	if (writer) {
		uint64_t end_ns = now_ns - session->recording.start_boottime_ns;

		/* With a note, the time since the last window is recorded as a gap. */
		if (session->note[0])
			r = write_gap(session, end_ns, err);
		if (session->progress.windows &&
		    wss_recwriter_end_file(writer, end_ns, r < 0 ? NULL : err) < 0)
			r = -1;
		if (end_ns > session->last_end_ns)
			session->last_end_ns = end_ns;
	}
	if (ret_progress)
		wss_session_progress(session, ret_progress);
	session_free(session);
	return r;
}
