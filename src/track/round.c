/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "track/round.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/stop.h"
#include "track/window-sample.h"

enum entry_state {
	ENTRY_WAITING, /* for the start of its next window */
	ENTRY_PREPARING,
	ENTRY_ARMED,
	ENTRY_SETTLING, /* the window is over, the guest not yet as it was before */
	ENTRY_DONE,
};

struct entry {
	struct wss_round_guest *guest;
	const struct wss_tracker_ops *ops;
	struct wss_window *window; /* NULL once done */
	enum entry_state state;
	uint64_t armed_ns;    /* start of this window */
	uint64_t next_ns;     /* when something is to be done */
	uint64_t report_ns;   /* when the next sample is due */
	unsigned windows_left;
	bool reported;		 /* a sample of this window has been emitted */
	struct wss_sample sample; /* while settling */
};

#define SETTLE_STEP_NS (50 * WSS_NS_PER_MS)
/* To restore a guest, whatever it has used of its time. */
#define RESTORE_NS (10 * WSS_NS_PER_S)

struct round {
	const struct wss_host *host;
	const struct wss_round_options *options;
	wss_round_emit emit;
	void *opaque;
};

static uint64_t max_u64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static void finish(struct entry *entry)
{
	struct wss_budget *budget = &entry->guest->budget;
	uint64_t total_ns = budget->total_ns;

	wss_budget_leave();
	wss_budget_init(budget, RESTORE_NS);
	wss_budget_enter(budget, 0);
	wss_window_close(entry->window);
	wss_budget_leave();
	wss_budget_init(budget, total_ns);
	entry->window = NULL;
	entry->state = ENTRY_DONE;
}

/* The time that whoever takes the sample needs for it is not the guest's. */
static void emit_sample(const struct round *round, struct entry *entry,
			const struct wss_sample *sample, bool last)
{
	wss_budget_leave();
	round->emit(sample, entry->guest, last, round->opaque);
}

/* Its next window, where there is one, may take as long as this one. */
static void wait_for_next(struct entry *entry, uint64_t next_ns)
{
	wss_budget_leave();
	wss_budget_init(&entry->guest->budget, entry->guest->budget.total_ns);
	entry->state = ENTRY_WAITING;
	entry->next_ns = max_u64(next_ns, wss_clock_now_ns());
}

/* Reports what went wrong with a guest; last says whether that ends its series. */
static void emit_failure(const struct round *round, struct entry *entry,
			 const struct wss_error *error, bool last)
{
	struct wss_sample sample;

	if (entry->guest->guest) {
		wss_window_describe(entry->guest->guest, entry->ops, &round->options->window,
				    &sample);
	} else {
		sample = (struct wss_sample){ .wall = wss_clock_wall_seconds() };
		sample.requested_window_ns = round->options->window.track.window_ns;
		snprintf(sample.domain, sizeof(sample.domain), "%s", entry->guest->name);
		wss_text_sanitize(sample.domain);
	}
	wss_sample_fail(&sample, error);
	emit_sample(round, entry, &sample, last);
}

bool wss_round_ends_series(const struct wss_error *error)
{
	return error->code == WSS_ERR_GONE || error->code == WSS_ERR_UNSUPPORTED ||
	       error->code == WSS_ERR_CONNECT;
}

static void fail(const struct round *round, struct entry *entry, const struct wss_error *error)
{
	bool last;

	wss_budget_leave();
	if (error->code == WSS_ERR_INTERRUPTED) {
		finish(entry);
		return;
	}
	if (entry->windows_left > 0)
		entry->windows_left--;
	last = wss_round_ends_series(error) || !entry->windows_left ||
	       round->options->cumulative || wss_budget_spent(&entry->guest->budget);
	emit_failure(round, entry, error, last);
	if (last) {
		finish(entry);
		return;
	}
	/* Nothing stays attached while the next window is waited for. */
	wss_window_rest(entry->window);
	/*
	 * From start to start, also where it failed within the window. A start that has passed
	 * meanwhile is now: one that stayed in the past would come before all other guests.
	 */
	wait_for_next(entry, (entry->state == ENTRY_ARMED ? entry->armed_ns : entry->next_ns) +
				     round->options->interval_ns);
}

static int open_entry(const struct round *round, struct entry *entry, struct wss_error *err)
{
	struct wss_guest *guest = entry->guest->guest;

	if (!guest) {
		*err = entry->guest->error;
		return -1;
	}
	/* A guest that does not run has no process: say that rather than "not found". */
	if (wss_guest_check_ready(guest, err) < 0 ||
	    wss_guest_attach(guest, round->host, err) < 0)
		return -1;
	entry->ops = round->options->method;
	if (!entry->ops)
		entry->ops = wss_tracker_choose(round->host, guest, &round->options->window.track, err);
	else if (wss_tracker_check(entry->ops, round->host, guest, &round->options->window.track, err) < 0)
		return wss_error_prefix(err, "method %s", entry->ops->name);
	if (!entry->ops)
		return -1;
	return wss_window_open(round->host, guest, entry->ops, &round->options->window,
			       &entry->window, err);
}

static uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static void schedule(struct entry *entry)
{
	entry->next_ns = min_u64(wss_window_next_ns(entry->window), entry->report_ns);
}

static void start_window(const struct round *round, struct entry *entry)
{
	const struct wss_round_options *options = round->options;
	struct wss_error error = WSS_ERROR_INIT;

	if (wss_window_begin(entry->window, &error) < 0) {
		fail(round, entry, &error);
		return;
	}
	entry->state = ENTRY_ARMED;
	entry->reported = false;
	entry->armed_ns = wss_window_start_ns(entry->window);
	entry->report_ns = entry->armed_ns + (options->cumulative
						      ? options->interval_ns
						      : options->window.track.window_ns);
	entry->report_ns = min_u64(entry->report_ns, wss_window_end_ns(entry->window));
	schedule(entry);
}

/* Steps of different guests take turns: no guest's windows wait for another's preparation. */
static void prepare_window(const struct round *round, struct entry *entry)
{
	struct wss_error error = WSS_ERROR_INIT;
	int r = wss_window_prepare(entry->window, &error);

	if (r < 0) {
		fail(round, entry, &error);
	} else if (r == 0) {
		entry->state = ENTRY_PREPARING;
		entry->next_ns = wss_window_next_ns(entry->window);
	} else {
		start_window(round, entry);
	}
}

/* The last sample of a window goes out, and the next window is waited for. */
static void close_window(const struct round *round, struct entry *entry)
{
	bool last = --entry->windows_left == 0;

	emit_sample(round, entry, &entry->sample, last);
	if (last)
		finish(entry);
	else
		wait_for_next(entry, entry->armed_ns + round->options->interval_ns);
}

static void settle(const struct round *round, struct entry *entry)
{
	entry->state = ENTRY_SETTLING;
	entry->next_ns = wss_clock_now_ns() + SETTLE_STEP_NS;
	if (wss_window_settle(entry->window, &entry->sample))
		close_window(round, entry);
}

/* The first moment after last_ns, in steps of step_ns, that has not passed yet. */
static uint64_t next_moment(uint64_t last_ns, uint64_t step_ns)
{
	uint64_t now_ns = wss_clock_now_ns(), steps = 1;

	if (now_ns > last_ns && step_ns)
		steps = max_u64((now_ns - last_ns + step_ns - 1) / step_ns, 1);
	return last_ns + steps * step_ns;
}

/*
 * A sample is due. Where reading takes longer than the interval, the reports whose moments
 * passed meanwhile are skipped: the window ends in time, and no figure is repeated.
 */
static void report(const struct round *round, struct entry *entry)
{
	const struct wss_round_options *options = round->options;
	uint64_t end_ns = wss_window_end_ns(entry->window);
	struct wss_error error = WSS_ERROR_INIT;

	if (wss_window_read(entry->window, &entry->sample, &error) < 0) {
		fail(round, entry, &error);
		return;
	}
	entry->reported = true;
	if (!options->cumulative || entry->report_ns >= end_ns) {
		wss_window_rest(entry->window);
		settle(round, entry);
		return;
	}
	emit_sample(round, entry, &entry->sample, false);
	entry->report_ns = min_u64(next_moment(entry->report_ns, options->interval_ns), end_ns);
	schedule(entry);
}

static void look(const struct round *round, struct entry *entry)
{
	struct wss_error error = WSS_ERROR_INIT;

	if (wss_window_poll(entry->window, &error) < 0)
		fail(round, entry, &error);
	else if (!entry->reported && wss_window_spoilt(entry->window))
		start_window(round, entry);
	else
		schedule(entry);
}

static void step(const struct round *round, struct entry *entry)
{
	/* Within the window its time is what was asked for. */
	wss_budget_enter(&entry->guest->budget,
			 entry->state == ENTRY_ARMED ? wss_window_end_ns(entry->window) : 0);
	if (entry->state == ENTRY_WAITING || entry->state == ENTRY_PREPARING)
		prepare_window(round, entry);
	else if (entry->state == ENTRY_SETTLING)
		settle(round, entry);
	else if (entry->next_ns >= entry->report_ns)
		report(round, entry);
	else
		look(round, entry);
	wss_budget_leave();
}

static struct entry *earliest(struct entry *entries, size_t n)
{
	struct entry *found = NULL;

	for (size_t i = 0; i < n; i++)
		if (entries[i].state != ENTRY_DONE &&
		    (!found || entries[i].next_ns < found->next_ns))
			found = &entries[i];
	return found;
}

static void open_all(const struct round *round, struct entry *entries, size_t n)
{
	for (size_t i = 0; i < n && !wss_stop_requested(); i++) {
		struct wss_error error = WSS_ERROR_INIT;
		int r;

		wss_budget_enter(&entries[i].guest->budget, 0);
		r = open_entry(round, &entries[i], &error);
		wss_budget_leave();
		if (r == 0) {
			entries[i].state = ENTRY_WAITING;
			entries[i].next_ns = wss_clock_now_ns();
			continue;
		}
		if (error.code != WSS_ERR_INTERRUPTED)
			emit_failure(round, &entries[i], &error, true);
		finish(&entries[i]);
	}
}

int wss_round_run(const struct wss_host *host, struct wss_round_guest *guests, size_t n,
		  const struct wss_round_options *options, wss_round_emit emit, void *opaque,
		  struct wss_error *err)
{
	const struct round round = { host, options, emit, opaque };
	wss_auto_free struct entry *entries = calloc(n ? n : 1, sizeof(*entries));
	struct entry *entry;

	if (!entries)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	for (size_t i = 0; i < n; i++)
		entries[i] = (struct entry){ .guest = &guests[i],
					     .state = ENTRY_DONE,
					     .windows_left = options->count };
	open_all(&round, entries, n);
	while ((entry = earliest(entries, n)) && wss_clock_sleep_until_ns(entry->next_ns) == 0)
		step(&round, entry);
	for (size_t i = 0; i < n; i++) {
		/* Measured is measured: a stop request does not take it back. */
		if (entries[i].state == ENTRY_SETTLING)
			close_window(&round, &entries[i]);
		finish(&entries[i]);
	}
	if (wss_stop_requested())
		return wss_error_set(err, WSS_ERR_INTERRUPTED, "interrupted");
	return 0;
}
