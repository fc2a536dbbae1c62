/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "track/window.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/units.h"
#include "track/control.h"
#include "track/hold.h"

/* The curve: from 1 ms, eight points a decade, but never more than this far apart. */
#define FIRST_POLL_NS WSS_NS_PER_MS
#define POLL_FACTOR 1.3335 /* 10^(1/8) */
#define MAX_POLL_NS (100 * WSS_NS_PER_MS)

#define PREPARE_STEP_NS (20 * WSS_NS_PER_MS)
#define STALLS_KEPT 3

struct cpu_time {
	uint64_t user_ns;
	uint64_t system_ns;
};

struct wss_window {
	const struct wss_host *host;
	struct wss_guest *guest;
	const struct wss_window_options *options;
	struct wss_tracker *tracker;
	struct wss_hold *hold; /* NULL unless options->pause */
	int clear_refs;
	bool slipped; /* the guest went on while it was to be held */
	bool stopped; /* QEMU was seen stopped by a signal within this window */

	struct wss_span armed;	/* time in which arming may have kept the guest waiting */
	bool preparing;		/* wss_window_prepare() has begun and is not done */
	uint64_t start_ns;	/* of the measured window */
	uint64_t end_ns;
	bool cut; /* ends before its time */
	uint64_t next_poll_ns;
	uint64_t predicted_ns;
	uint64_t stalls_ns[STALLS_KEPT]; /* of the last windows, 0 where there was none yet */
	size_t n_stalls;
	struct cpu_time cpu;	 /* spent on this window */
	struct wss_sample curve; /* only the curve of it is used */
};

static uint64_t timeval_ns(struct timeval tv)
{
	return (uint64_t)tv.tv_sec * WSS_NS_PER_S + (uint64_t)tv.tv_usec * 1000;
}

static struct cpu_time cpu_now(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return (struct cpu_time){ timeval_ns(usage.ru_utime), timeval_ns(usage.ru_stime) };
}

static void cpu_charge(struct wss_window *window, struct cpu_time since)
{
	struct cpu_time now = cpu_now();

	window->cpu.user_ns += now.user_ns - since.user_ns;
	window->cpu.system_ns += now.system_ns - since.system_ns;
}

static uint64_t middle(struct wss_span span)
{
	return span.start_ns + (span.end_ns - span.start_ns) / 2;
}

int wss_window_open(const struct wss_host *host, struct wss_guest *guest,
		    const struct wss_tracker_ops *ops, const struct wss_window_options *options,
		    struct wss_window **ret_window, struct wss_error *err)
{
	const struct wss_track_options track = {
		.granularity = options->granularity,
		.window_ns = options->window_ns,
		.max_faults = options->max_faults,
		.recorder = options->recorder,
		.max_stall_ns = options->max_stall_ns,
	};
	struct wss_window *window = calloc(1, sizeof(*window));

	if (!window)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	window->host = host;
	window->guest = guest;
	window->options = options;
	window->clear_refs = -1;
	if (wss_control_open(&guest->process, &window->clear_refs, err) < 0 ||
	    ops->open(host, guest, window->clear_refs, &track, &window->tracker, err) < 0)
		goto failed;
	if (options->pause) {
		if (!ops->works_stopped(window->tracker)) {
			wss_error_set(err, WSS_ERR_UNSUPPORTED,
				      "--pause needs KVM's counters in debugfs: a stopped QEMU cannot be asked");
			goto failed;
		}
		if (wss_hold_open(&guest->process, &window->hold, err) < 0)
			goto failed;
	}
	*ret_window = window;
	return 0;
failed:
	wss_window_close(window);
	return -1;
}

void wss_window_rest(struct wss_window *window)
{
	if (window->tracker->ops->rest)
		window->tracker->ops->rest(window->tracker);
}

void wss_window_close(struct wss_window *window)
{
	if (!window)
		return;
	wss_hold_close(window->hold);
	if (window->tracker)
		window->tracker->ops->close(window->tracker);
	if (window->clear_refs >= 0)
		close(window->clear_refs);
	free(window);
}

/* Of the last windows, once there are enough of them; else 0. */
static uint64_t shortest_stall_ns(const struct wss_window *window)
{
	uint64_t shortest = window->stalls_ns[0];

	for (size_t i = 1; i < STALLS_KEPT; i++)
		if (window->stalls_ns[i] < shortest)
			shortest = window->stalls_ns[i];
	return shortest;
}

/*
 * A guest that is stalled for longer than predicted again and again is judged by what was
 * measured: the next window is refused rather than hoped for.
 */
static int check_stall(struct wss_window *window, struct wss_error *err)
{
	const struct wss_tracker_ops *ops = window->tracker->ops;
	uint64_t expected_ns = 0;
	char expected[16], limit[16];

	window->predicted_ns = 0;
	if (ops->predict && ops->predict(window->tracker, &window->predicted_ns, err) < 0)
		return -1;
	expected_ns = window->predicted_ns > shortest_stall_ns(window)
			      ? window->predicted_ns
			      : shortest_stall_ns(window);
	if (expected_ns <= window->options->max_stall_ns)
		return 0;
	wss_duration_format(expected_ns, expected, sizeof(expected));
	wss_duration_format(window->options->max_stall_ns, limit, sizeof(limit));
	return wss_error_set(err, WSS_ERR_UNSUPPORTED,
			     "arming would stall the guest for about %s, which is over --max-stall %s",
			     expected, limit);
}

static int hold_if_asked(struct wss_window *window, uint64_t *ret_start_ns, struct wss_error *err)
{
	*ret_start_ns = wss_clock_now_ns();
	return window->hold ? wss_hold_stop(window->hold, err) : 0;
}

/* Returns when the guest went on, 0 where it was not held. */
static uint64_t release(struct wss_window *window)
{
	if (!window->hold)
		return 0;
	if (!wss_hold_release(window->hold))
		window->slipped = true;
	return wss_clock_now_ns();
}

static int arm(struct wss_window *window, struct wss_error *err)
{
	uint64_t hold_ns, released_ns;
	int r;

	if (hold_if_asked(window, &hold_ns, err) < 0)
		return -1;
	r = window->tracker->ops->begin(window->tracker, &window->armed, err);
	released_ns = release(window);
	if (r < 0)
		return -1;
	if (released_ns) {
		window->armed = (struct wss_span){ hold_ns, released_ns };
		window->start_ns = released_ns;
	} else {
		window->start_ns = middle(window->armed);
	}
	if (window->tracker->ops->started)
		window->tracker->ops->started(window->tracker, window->start_ns);
	window->stalls_ns[window->n_stalls++ % STALLS_KEPT] =
		window->armed.end_ns - window->armed.start_ns;
	return 0;
}

static int check_alive(const struct wss_window *window, struct wss_error *err)
{
	if (wss_process_alive(&window->guest->process))
		return 0;
	return wss_error_set(err, WSS_ERR_GONE, "the guest ended within the window");
}

/* Has somebody stopped QEMU with a signal? libvirt and QEMU's own state do not show that. */
static bool stopped_by_signal(const struct wss_window *window)
{
	char state;

	return wss_process_state(&window->guest->process, &state) == 0 &&
	       (state == 'T' || state == 't');
}

static int check_ready(struct wss_window *window, struct wss_error *err)
{
	if (wss_guest_check_ready(window->guest, err) < 0)
		return -1;
	if (stopped_by_signal(window))
		return wss_error_set(err, WSS_ERR_FAILED,
				     "QEMU's process has been stopped by a signal");
	return 0;
}

static int prepare(struct wss_window *window, struct wss_error *err)
{
	const struct wss_tracker_ops *ops = window->tracker->ops;

	if (!window->preparing) {
		window->cpu = (struct cpu_time){ 0, 0 };
		if (check_ready(window, err) < 0 || check_stall(window, err) < 0)
			return -1;
	}
	return ops->prepare ? ops->prepare(window->tracker, err) : 1;
}

int wss_window_prepare(struct wss_window *window, struct wss_error *err)
{
	struct cpu_time since = cpu_now();
	int r = check_alive(window, err) < 0 ? -1 : prepare(window, err);

	window->preparing = r == 0;
	window->next_poll_ns = wss_clock_now_ns() + PREPARE_STEP_NS;
	cpu_charge(window, since);
	return r;
}

/* Where what the method needs ends before the window does, the window is cut short. */
static void set_end(struct wss_window *window)
{
	const struct wss_tracker_ops *ops = window->tracker->ops;
	uint64_t valid_ns = ops->valid_until_ns ? ops->valid_until_ns(window->tracker) : 0;

	window->end_ns = window->start_ns + window->options->window_ns;
	window->cut = valid_ns && valid_ns < window->end_ns;
	if (window->cut)
		window->end_ns = valid_ns > window->start_ns ? valid_ns : window->start_ns;
	window->next_poll_ns = window->start_ns + FIRST_POLL_NS;
}

int wss_window_begin(struct wss_window *window, struct wss_error *err)
{
	struct cpu_time since;
	int r;

	window->curve.n_curve = 0;
	window->stopped = window->slipped = false;
	if (check_ready(window, err) < 0)
		return -1;
	since = cpu_now();
	r = arm(window, err);
	cpu_charge(window, since);
	set_end(window);
	if (r == 0)
		wss_debug("%s: armed by %s in %.3f ms, %.3f ms were predicted",
			  window->guest->config.name, window->tracker->ops->name,
			  (double)(window->armed.end_ns - window->armed.start_ns) / 1e6,
			  (double)window->predicted_ns / 1e6);
	return r;
}

uint64_t wss_window_start_ns(const struct wss_window *window)
{
	return window->start_ns;
}

uint64_t wss_window_end_ns(const struct wss_window *window)
{
	return window->end_ns;
}

uint64_t wss_window_next_ns(const struct wss_window *window)
{
	if (window->preparing)
		return window->next_poll_ns;
	return window->next_poll_ns < window->end_ns ? window->next_poll_ns : window->end_ns;
}

static void schedule_poll(struct wss_window *window, uint64_t now_ns)
{
	uint64_t since = now_ns - window->start_ns;
	uint64_t step = (uint64_t)((double)since * (POLL_FACTOR - 1));

	if (step < FIRST_POLL_NS / 4)
		step = FIRST_POLL_NS / 4;
	/* The largest gauge is caught by frequent polls; where they are dear, there is none. */
	if (window->tracker->ops->cheap_poll && step > MAX_POLL_NS)
		step = MAX_POLL_NS;
	window->next_poll_ns = now_ns + step;
}

static int read_tracker(struct wss_window *window, struct wss_reading *ret_reading,
			struct wss_error *err)
{
	if (check_alive(window, err) < 0)
		return -1;
	return window->tracker->ops->poll(window->tracker, ret_reading, err);
}

/*
 * Polls come every 100 ms at the latest, to catch the largest gauge; the curve
 * keeps only those that are a step apart on its logarithmic time axis.
 */
static void add_to_curve(struct wss_window *window, const struct wss_reading *reading, bool last)
{
	struct wss_sample *curve = &window->curve;
	uint64_t now_ns = middle(reading->span), since, previous;

	since = now_ns > window->start_ns ? now_ns - window->start_ns : 0;
	previous = curve->n_curve ? curve->curve[curve->n_curve - 1].ns : 0;
	if (last || (double)since >= (double)previous * (1 + (POLL_FACTOR - 1) * 0.9))
		wss_sample_curve_add(curve, since, reading->wss_bytes);
}

/* Looked at with every poll: a stop and a continue between two of them stay unseen. */
static void watch_stopped(struct wss_window *window)
{
	if (!window->stopped && stopped_by_signal(window))
		window->stopped = true;
}

/* Where a poll is dear, only whether the guest still lives is looked at. */
static int watch(struct wss_window *window, struct wss_error *err)
{
	window->next_poll_ns = wss_clock_now_ns() + MAX_POLL_NS;
	watch_stopped(window);
	return check_alive(window, err);
}

int wss_window_poll(struct wss_window *window, struct wss_error *err)
{
	struct cpu_time since = cpu_now();
	struct wss_reading reading;
	int r;

	if (!window->tracker->ops->cheap_poll && !window->options->curve)
		return watch(window, err);
	watch_stopped(window);
	r = read_tracker(window, &reading, err);
	if (r == 0) {
		add_to_curve(window, &reading, false);
		schedule_poll(window, reading.span.end_ns);
	}
	cpu_charge(window, since);
	return r;
}

bool wss_window_spoilt(const struct wss_window *window)
{
	const struct wss_tracker_ops *ops = window->tracker->ops;

	return ops->spoilt && ops->spoilt(window->tracker);
}

bool wss_window_settle(struct wss_window *window, struct wss_sample *sample)
{
	const struct wss_tracker_ops *ops = window->tracker->ops;

	return !ops->settle || ops->settle(window->tracker, sample);
}

static void read_memory(struct wss_window *window, struct wss_sample *sample)
{
	struct wss_error why = WSS_ERROR_INIT;
	const struct wss_guest *guest = window->guest;
	struct wss_smaps smaps;

	if (!guest->ram_known) {
		wss_sample_note(sample, "memory figures are absent: %s", guest->ram_error.text);
		return;
	}
	if (wss_smaps_read(&guest->process, &guest->ram, &smaps, &why) < 0) {
		wss_sample_note(sample, "memory figures are absent: %s", why.text);
		return;
	}
	sample->memory.rss_bytes = wss_amount_of(smaps.guest.rss);
	sample->memory.pss_bytes = wss_amount_of(smaps.guest.pss);
	sample->memory.swap_bytes = wss_amount_of(smaps.guest.swap);
	sample->memory.huge_bytes = wss_amount_of(smaps.guest.huge);
	sample->memory.qemu_bytes = wss_amount_of(smaps.qemu.rss);
}

void wss_window_describe(const struct wss_guest *guest, const struct wss_tracker_ops *ops,
			 const struct wss_window_options *options, struct wss_sample *ret_sample)
{
	*ret_sample = (struct wss_sample){
		.wall = wss_clock_wall_seconds(),
		.method = ops ? ops->name : NULL,
		.observes = ops ? ops->observes : WSS_OBSERVES_ACCESSES,
		.requested_window_ns = options->window_ns,
	};
	memcpy(ret_sample->domain, guest->config.name, sizeof(ret_sample->domain));
	memcpy(ret_sample->uuid, guest->config.uuid, sizeof(ret_sample->uuid));
	ret_sample->memory.maximum_bytes = wss_amount_of(guest->config.maximum_bytes);
	ret_sample->memory.balloon_bytes =
		(struct wss_amount){ guest->balloon.known, guest->balloon.bytes };
}

/* The method's own curve, with this reading as its end; else that of the polls. */
static void fill_curve(const struct wss_window *window, const struct wss_reading *reading,
		       uint64_t until_ns, struct wss_sample *sample)
{
	const struct wss_tracker_ops *ops = window->tracker->ops;

	sample->n_curve = ops->curve ? ops->curve(window->tracker, until_ns, sample->curve,
						  WSS_CURVE_MAX) : 0;
	if (sample->n_curve) {
		wss_sample_curve_add(sample, until_ns, reading->wss_bytes);
		return;
	}
	sample->n_curve = window->curve.n_curve;
	memcpy(sample->curve, window->curve.curve, sizeof(sample->curve));
}

static void fill_reading(struct wss_window *window, const struct wss_reading *reading,
			 uint64_t end_ns, struct wss_sample *sample)
{
	const struct wss_tracker_ops *ops = window->tracker->ops;

	sample->granularity_bytes = wss_amount_of(reading->granularity_bytes);
	sample->window_ns = wss_amount_of(end_ns - window->start_ns);
	sample->wss_bytes = wss_amount_of(reading->wss_bytes);
	sample->low_bytes = wss_amount_of(reading->low_bytes);
	sample->high_bytes = wss_amount_of(reading->high_bytes);
	sample->cost.arm_ns = wss_amount_of(window->armed.end_ns - window->armed.start_ns);
	sample->cost.read_ns = wss_amount_of(reading->span.end_ns - reading->span.start_ns);
	sample->cost.faults = reading->faults;
	sample->cost.predicted_stall_ns =
		(struct wss_amount){ window->predicted_ns != 0, window->predicted_ns };
	sample->cost.user_ns = wss_amount_of(window->cpu.user_ns);
	sample->cost.system_ns = wss_amount_of(window->cpu.system_ns);
	fill_curve(window, reading, end_ns - window->start_ns, sample);
	if (ops->explain)
		ops->explain(window->tracker, sample);
}

int wss_window_read(struct wss_window *window, struct wss_sample *ret_sample,
		    struct wss_error *err)
{
	struct cpu_time since = cpu_now();
	struct wss_reading reading;
	uint64_t hold_ns, end_ns;
	int r;

	watch_stopped(window);
	if (hold_if_asked(window, &hold_ns, err) < 0)
		return -1;
	/* A held guest touches nothing: its window ended when it was stopped. */
	end_ns = window->hold ? wss_clock_now_ns() : 0;
	r = read_tracker(window, &reading, err);
	release(window);
	cpu_charge(window, since);
	if (r < 0)
		return -1;
	if (!end_ns)
		end_ns = middle(reading.span);
	add_to_curve(window, &reading, true);
	wss_window_describe(window->guest, window->tracker->ops, window->options, ret_sample);
	read_memory(window, ret_sample);
	fill_reading(window, &reading, end_ns, ret_sample);
	if (window->slipped)
		wss_sample_degrade(ret_sample,
				   "the guest could not be held for so long: the window is not exact");
	if (window->stopped ||
	    (window->guest->ops->disturbed && window->guest->ops->disturbed(window->guest)))
		wss_sample_degrade(ret_sample,
				   "the guest was paused or stopped within the window: it reads low");
	if (window->cut)
		wss_sample_degrade(ret_sample,
				   "the window was cut short: preparing it took too long");
	if (window->armed.end_ns - window->armed.start_ns > window->options->max_stall_ns)
		wss_sample_note(ret_sample, "arming took longer than --max-stall");
	return check_alive(window, err);
}
