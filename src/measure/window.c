/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "measure/window.h"

#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/number.h"
#include "base/units.h"
#include "measure/control.h"
#include "measure/hold.h"
#include "measure/window-sample.h"

/*
 * Polls for the curve start after 1 ms, eight a decade, and are never more than MAX_POLL_NS
 * apart.
 */
/* How often a VM looks whether it is its turn. */
#define TURN_NS (50 * WSS_NS_PER_MS)
#define FIRST_POLL_NS WSS_NS_PER_MS
#define POLL_FACTOR 1.3335 /* 10^(1/8) */
#define MAX_POLL_NS (100 * WSS_NS_PER_MS)
#define PREPARE_STEP_NS (20 * WSS_NS_PER_MS)
/* A guest found ready this recently is not checked again before its window is armed. */
#define READY_NS (20 * WSS_NS_PER_MS)
#define STALLS_KEPT 3

struct wss_window {
	const struct wss_host *host;
	struct wss_guest *guest;
	const struct wss_window_options *options;
	struct wss_tracker *tracker;
	struct wss_hold *hold; /* NULL unless options->pause */
	bool locked;	       /* we hold the guest's lock */
	bool asks_qemu;	       /* polls wait for a QEMU that is stopped */

	struct wss_window_facts facts; /* about this window, for its sample */
	bool preparing;		       /* wss_window_prepare() has begun and is not done */
	/* When the check began that found the guest ready for the next window, or 0. */
	uint64_t ready_ns;
	bool checked; /* by wss_window_check(), for the next window */
	uint64_t end_ns;
	uint64_t next_poll_ns;
	uint64_t stalls_ns[STALLS_KEPT]; /* of the last windows; 0 if there were none yet */
	size_t n_stalls;
	struct wss_prediction said; /* by the method, of the window that is armed next */
	struct wss_lessons *lessons, own_lessons;
};

static uint64_t timeval_ns(struct timeval tv)
{
	return (uint64_t)tv.tv_sec * WSS_NS_PER_S + (uint64_t)tv.tv_usec * 1000;
}

static struct wss_cpu_time cpu_now(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return (struct wss_cpu_time){timeval_ns(usage.ru_utime), timeval_ns(usage.ru_stime)};
}

static void cpu_charge(struct wss_window *window, struct wss_cpu_time since)
{
	struct wss_cpu_time now = cpu_now();

	window->facts.cpu.user_ns += now.user_ns - since.user_ns;
	window->facts.cpu.system_ns += now.system_ns - since.system_ns;
}

static uint64_t span_middle(struct wss_span span)
{
	return span.start_ns + (span.end_ns - span.start_ns) / 2;
}

static int check_stopped(const struct wss_tracker *tracker, struct wss_error *err)
{
	if (tracker->ops->check_stopped)
		return tracker->ops->check_stopped(tracker, err);
	return wss_error_set(err, WSS_ERR_UNSUPPORTED,
			     "method %s cannot measure a guest while it is paused",
			     tracker->ops->name);
}

/* The VMs of a process share its lock, and are measured in turn. */
static int take_control(struct wss_guest *guest, struct wss_error *err)
{
	while (wss_control_take(&guest->process, err) < 0) {
		if (!guest->shares_process || !guest->deadline || err->code != WSS_ERR_BUSY)
			return -1;
		wss_error_clear(err);
		if (wss_cancel_sleep_until_ns(guest->deadline->cancel,
					      wss_clock_now_ns() + TURN_NS) != 0)
			return wss_error_set(err, WSS_ERR_INTERRUPTED, "interrupted");
	}
	return 0;
}

int wss_window_open(const struct wss_host *host, struct wss_guest *guest,
		    const struct wss_tracker_ops *ops, const struct wss_window_options *options,
		    struct wss_window **ret_window, struct wss_error *err)
{
	struct wss_window *window = calloc(1, sizeof(*window));

	if (!window)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	window->host = host;
	window->guest = guest;
	window->options = options;
	window->lessons = options->lessons ? options->lessons : &window->own_lessons;
	if (take_control(guest, err) < 0)
		goto failed;
	window->locked = true;
	if (ops->open(host, guest, &options->track, &window->tracker, err) < 0)
		goto failed;
	if (options->pause && (check_stopped(window->tracker, err) < 0 ||
			       wss_hold_open(&guest->process, &window->hold, err) < 0))
		goto failed;
	window->asks_qemu = check_stopped(window->tracker, NULL) < 0;
	window->facts.host = host;
	window->facts.guest = guest;
	window->facts.options = options;
	window->facts.tracker = window->tracker;
	*ret_window = window;
	return 0;
failed:
	wss_window_close(window);
	return -1;
}

struct wss_page_view wss_window_pages(const struct wss_window *window)
{
	const struct wss_tracker_ops *ops = window->tracker->ops;
	struct wss_page_view view = {.touched = {.known = false}};

	if (ops->pages)
		ops->pages(window->tracker, &view);
	return view;
}

void wss_window_close(struct wss_window *window)
{
	if (!window)
		return;
	wss_hold_close(window->hold);
	if (window->tracker)
		window->tracker->ops->close(window->tracker);
	if (window->locked)
		wss_control_release(&window->guest->process);
	free(window);
}

/* Returns the shortest stall of the last windows; 0 until there are enough of them. */
static uint64_t shortest_stall_ns(const struct wss_window *window)
{
	uint64_t shortest = window->stalls_ns[0];

	for (size_t i = 1; i < STALLS_KEPT; i++)
		if (window->stalls_ns[i] < shortest)
			shortest = window->stalls_ns[i];
	return shortest;
}

/*
 * If a guest stalls for longer than predicted several times in a row, the measured stall
 * counts, and the next window may be refused.
 */
static int check_stall(const struct wss_window *window, struct wss_error *err)
{
	uint64_t expected_ns;
	char expected[16], limit[16];

	expected_ns = wss_u64_max(wss_u64_add(window->said.stall_ns, window->said.log_ns),
				  shortest_stall_ns(window));
	if (expected_ns <= window->options->track.max_stall_ns)
		return 0;
	wss_duration_format(expected_ns, expected, sizeof(expected));
	wss_duration_format(window->options->track.max_stall_ns, limit, sizeof(limit));
	return wss_error_set(
		err, WSS_ERR_UNSUPPORTED,
		"starting a window would stall the guest for about %s, over the limit of %s for one stall",
		expected, limit);
}

static int check_cost(struct wss_window *window, struct wss_error *err)
{
	const struct wss_tracker_ops *ops = window->tracker->ops;
	const struct wss_window_options *options = window->options;
	struct wss_prediction *predicted = &window->facts.predicted;

	window->said = (struct wss_prediction){.stall_ns = 0};
	if ((ops->predict && ops->predict(window->tracker, &window->said, err) < 0) ||
	    check_stall(window, err) < 0)
		return -1;
	window->said.most_faults = window->said.faults.value;
	window->said.memory_ns += wss_window_predict_memory_ns(&window->facts);
	*predicted = window->said;
	wss_lessons_apply(window->lessons, predicted);
	return options->admit ? options->admit(predicted, options->admit_opaque, err) : 0;
}

static int hold_if_asked(struct wss_window *window, uint64_t *ret_start_ns, struct wss_error *err)
{
	*ret_start_ns = wss_clock_now_ns();
	return window->hold ? wss_hold_stop(window->hold, err) : 0;
}

/* Resumes the guest. Returns when that was, 0 if it was not held. */
static uint64_t window_release(struct wss_window *window)
{
	if (!window->hold)
		return 0;
	if (!wss_hold_release(window->hold))
		window->facts.slipped = true;
	return wss_clock_now_ns();
}

static int window_arm(struct wss_window *window, struct wss_error *err)
{
	uint64_t hold_ns, released_ns;
	int r;

	if (hold_if_asked(window, &hold_ns, err) < 0)
		return -1;
	r = window->tracker->ops->begin(window->tracker, &window->facts.armed, err);
	released_ns = window_release(window);
	if (r < 0)
		return -1;
	if (released_ns) {
		window->facts.armed = (struct wss_span){hold_ns, released_ns};
		window->facts.start_ns = released_ns;
	} else {
		window->facts.start_ns = span_middle(window->facts.armed);
	}
	if (window->tracker->ops->started)
		window->tracker->ops->started(window->tracker, window->facts.start_ns);
	window->stalls_ns[window->n_stalls++ % STALLS_KEPT] =
		window->facts.armed.end_ns - window->facts.armed.start_ns;
	return 0;
}

static int window_check_alive(const struct wss_window *window, struct wss_error *err)
{
	if (wss_process_alive(&window->guest->process))
		return 0;
	return wss_error_set(err, WSS_ERR_GONE, "the guest ended within the window");
}

static int check_ready(struct wss_window *window, struct wss_error *err)
{
	enum wss_standstill_cause cause;

	if (wss_guest_check_ready(window->guest, err) < 0)
		return -1;
	/* This shows neither in libvirt's state of the guest nor in QEMU's. */
	cause = wss_standstill_now(&window->host->root, &window->guest->process);
	if (cause != WSS_STANDSTILL_NONE)
		return wss_error_set(err, WSS_ERR_FAILED, "QEMU's process has been %s",
				     wss_standstill_text(cause));
	return 0;
}

/* Every window has a check of its own: the one before it was prepared, if that was a moment ago. */
static int check_still_ready(struct wss_window *window, struct wss_error *err)
{
	uint64_t ready_ns = window->ready_ns;

	window->ready_ns = 0;
	if (ready_ns && wss_clock_now_ns() - ready_ns < READY_NS)
		return 0;
	return check_ready(window, err);
}

static int window_prepare_step(struct wss_window *window, struct wss_error *err)
{
	const struct wss_tracker_ops *ops = window->tracker->ops;
	uint64_t now_ns = wss_clock_now_ns();

	if (!window->preparing) {
		window->facts.cpu = (struct wss_cpu_time){0, 0};
		window->ready_ns = 0;
		if (check_ready(window, err) < 0 || check_cost(window, err) < 0)
			return -1;
		window->ready_ns = now_ns;
		/* Not before the caller has seen to it that no other guest is stalled meanwhile. */
		if (ops->prepare_stalls && ops->prepare_stalls(window->tracker))
			return 0;
	}
	return ops->prepare ? ops->prepare(window->tracker, err) : 1;
}

int wss_window_prepare(struct wss_window *window, struct wss_error *err)
{
	struct wss_cpu_time since = cpu_now();
	int r = window_check_alive(window, err) < 0 ? -1 : window_prepare_step(window, err);

	window->preparing = r == 0;
	window->next_poll_ns = wss_clock_now_ns() + PREPARE_STEP_NS;
	cpu_charge(window, since);
	return r;
}

bool wss_window_prepare_stalls(const struct wss_window *window)
{
	const struct wss_tracker_ops *ops = window->tracker->ops;

	return window->preparing && ops->prepare_stalls && ops->prepare_stalls(window->tracker);
}

/* Whether the method is asked with each poll. */
static bool window_polls_are_cheap(const struct wss_window *window)
{
	return window->tracker->ops->cheap_poll || window->options->curve;
}

/* Returns the time of the single poll within the window that shows growth at its end. */
static uint64_t growth_poll_ns(const struct wss_window *window)
{
	return window->facts.start_ns + window->options->track.window_ns / 5 * 2;
}

static bool growth_is_due(const struct wss_window *window)
{
	return window->options->growth && !window->facts.curve.n_curve &&
	       wss_clock_now_ns() >= growth_poll_ns(window);
}

/* Sets the end of the window; cuts the window short if the method's observation ends earlier. */
static void window_set_end(struct wss_window *window)
{
	const struct wss_tracker_ops *ops = window->tracker->ops;
	uint64_t valid_ns = ops->valid_until_ns ? ops->valid_until_ns(window->tracker) : 0;

	window->end_ns = window->facts.start_ns + window->options->track.window_ns;
	window->facts.cut = valid_ns && valid_ns < window->end_ns;
	if (window->facts.cut)
		window->end_ns =
			valid_ns > window->facts.start_ns ? valid_ns : window->facts.start_ns;
	window->next_poll_ns = window_polls_are_cheap(window)
				       ? window->facts.start_ns + FIRST_POLL_NS
			       : window->options->growth ? growth_poll_ns(window)
							 : window->end_ns;
}

/* The CPU time tells work from waiting for the CPU. */
static void say_armed(const struct wss_window *window, struct wss_cpu_time since)
{
	const struct wss_window_facts *facts = &window->facts;
	struct wss_cpu_time now = cpu_now();
	uint64_t cpu_ns = now.user_ns - since.user_ns + now.system_ns - since.system_ns;

	wss_log_guest(WSS_LOG_DEBUG, window->guest->config.name, window->guest->config.uuid,
		      "armed by %s in %.3f ms, predicted %.3f ms, CPU time %.3f ms",
		      window->tracker->ops->name,
		      (double)(facts->armed.end_ns - facts->armed.start_ns) / 1e6,
		      (double)facts->predicted.stall_ns / 1e6, (double)cpu_ns / 1e6);
}

int wss_window_check(struct wss_window *window, struct wss_error *err)
{
	window->checked = check_still_ready(window, err) == 0;
	return window->checked ? 0 : -1;
}

int wss_window_begin(struct wss_window *window, struct wss_error *err)
{
	struct wss_cpu_time since;
	int r;

	window->facts.curve.n_curve = 0;
	window->facts.slipped = false;
	window->facts.disturbance = (struct wss_disturbance){.stopped = false};
	if (!window->checked && wss_window_check(window, err) < 0)
		return -1;
	window->checked = false;
	since = cpu_now();
	r = window_arm(window, err);
	cpu_charge(window, since);
	window_set_end(window);
	window->facts.suspended_ns = wss_clock_suspended_ns();
	wss_standstill_begin(&window->facts.standstill, &window->host->root,
			     &window->guest->process, window->guest->kvm, window->facts.start_ns);
	if (r == 0)
		say_armed(window, since);
	return r;
}

uint64_t wss_window_start_ns(const struct wss_window *window)
{
	return window->facts.start_ns;
}

uint64_t wss_window_end_ns(const struct wss_window *window)
{
	return window->end_ns;
}

static uint64_t next_look_ns(const struct wss_window *window)
{
	return wss_standstill_next_ns(&window->facts.standstill, window->options->track.window_ns);
}

uint64_t wss_window_next_ns(const struct wss_window *window)
{
	if (window->preparing)
		return window->next_poll_ns;
	return wss_u64_min(wss_u64_min(window->next_poll_ns, next_look_ns(window)), window->end_ns);
}

static void schedule_poll(struct wss_window *window, uint64_t now_ns)
{
	const struct wss_sample *curve = &window->facts.curve;
	uint64_t since = now_ns - window->facts.start_ns;
	uint64_t step = wss_u64_from_double((double)since * (POLL_FACTOR - 1));
	uint64_t point_ns =
		curve->n_curve ? wss_u64_from_double((double)curve->curve[curve->n_curve - 1].ns *
						     POLL_FACTOR)
			       : 0;

	if (step < FIRST_POLL_NS / 4)
		step = FIRST_POLL_NS / 4;
	/*
	 * Frequent polls catch the peak of the gauge; methods with expensive polls have no
	 * gauge.
	 */
	if (window->tracker->ops->cheap_poll && step > MAX_POLL_NS)
		step = MAX_POLL_NS;
	/* One is where the next point of the curve is due. */
	if (point_ns > since && point_ns - since < step)
		step = point_ns - since;
	window->next_poll_ns = window_polls_are_cheap(window) ? now_ns + step : window->end_ns;
}

static int read_tracker(struct wss_window *window, struct wss_reading *ret_reading,
			struct wss_error *err)
{
	struct wss_standstill *standstill = &window->facts.standstill;
	uint64_t asked_ns = wss_clock_now_ns();
	int r;

	if (window_check_alive(window, err) < 0)
		return -1;
	if (window->asks_qemu)
		wss_standstill_look(standstill, asked_ns);
	r = window->tracker->ops->poll(window->tracker, ret_reading, err);
	if (window->asks_qemu)
		wss_standstill_answered(standstill, asked_ns, wss_clock_now_ns());
	return r;
}

/*
 * A reading for a sample may be more exact than those before it, which had device memory, too: nothing that was known
 * earlier is more than what is known now.
 */
static void curve_lower(struct wss_sample *curve, const struct wss_reading *reading)
{
	for (size_t i = 0; i < curve->n_curve; i++) {
		struct wss_curve_point *point = &curve->curve[i];

		point->bytes = wss_u64_min(point->bytes, reading->wss_bytes);
		if (point->high_bytes) {
			point->high_bytes = wss_u64_min(point->high_bytes, reading->high_bytes);
			point->low_bytes = wss_u64_min(point->low_bytes, reading->low_bytes);
		}
	}
}

/*
 * Polls come at least every 100 ms, to catch the peak of the gauge; the curve keeps only those
 * that are a step apart on its logarithmic time axis.
 */
static void add_to_curve(struct wss_window *window, const struct wss_reading *reading, bool last)
{
	struct wss_sample *curve = &window->facts.curve;
	uint64_t now_ns = span_middle(reading->span), since, previous;

	since = now_ns > window->facts.start_ns ? now_ns - window->facts.start_ns : 0;
	previous = curve->n_curve ? curve->curve[curve->n_curve - 1].ns : 0;
	if (!last && (double)since < (double)previous * (1 + (POLL_FACTOR - 1) * 0.9))
		return;
	if (last)
		curve_lower(curve, reading);
	wss_sample_curve_add(curve, since, reading->wss_bytes);
	wss_sample_curve_bound(curve, reading->low_bytes, reading->high_bytes);
}

int wss_window_poll(struct wss_window *window, struct wss_error *err)
{
	struct wss_cpu_time since = cpu_now();
	uint64_t now_ns = wss_clock_now_ns();
	bool look = now_ns >= next_look_ns(window);
	struct wss_reading reading;
	int r;

	if (look)
		wss_standstill_look(&window->facts.standstill, now_ns);
	if (look && window->guest->ops->look)
		window->guest->ops->look(window->guest);
	/* Those who poll at times of their own want a reading each time. */
	if ((look && now_ns < window->next_poll_ns) ||
	    (!window_polls_are_cheap(window) && !growth_is_due(window))) {
		r = window_check_alive(window, err);
	} else {
		r = read_tracker(window, &reading, err);
		if (r == 0) {
			add_to_curve(window, &reading, false);
			schedule_poll(window, wss_clock_now_ns());
		}
	}
	cpu_charge(window, since);
	return r;
}

int wss_window_read_pages(struct wss_window *window, struct wss_error *err)
{
	struct wss_cpu_time since = cpu_now();
	struct wss_reading reading;
	int r;

	if (window->tracker->ops->want_pages)
		window->tracker->ops->want_pages(window->tracker);
	r = read_tracker(window, &reading, err);
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

/*
 * A running guest always touches something, if only its own kernel's data, so a count of zero
 * does not mean a small working set. Early in a window it may not have touched anything yet.
 */
static int check_touched(const struct wss_window *window, const struct wss_reading *reading,
			 struct wss_error *err)
{
	char text[WSS_STOOD_STILL_LEN];

	if (reading->high_bytes)
		return 0;
	if (wss_window_stood_still(&window->facts, wss_clock_now_ns(), text))
		return wss_error_set(err, WSS_ERR_FAILED,
				     "the guest was %s, and touched nothing at all", text);
	return wss_error_set(
		err, WSS_ERR_FAILED,
		"the guest touched nothing at all within the window: it did not run, or needs a longer window");
}

int wss_window_read(struct wss_window *window, struct wss_sample *ret_sample, struct wss_error *err)
{
	bool over = wss_clock_now_ns() >= window->end_ns;
	struct wss_cpu_time since = cpu_now();
	struct wss_reading reading;
	uint64_t hold_ns, end_ns;
	int r;

	wss_standstill_look_at_all(&window->facts.standstill, wss_clock_now_ns());
	if (hold_if_asked(window, &hold_ns, err) < 0)
		return -1;
	/* A held guest touches nothing: its window ended when it was stopped. */
	end_ns = window->hold ? wss_clock_now_ns() : 0;
	if (window->tracker->ops->want_pages)
		window->tracker->ops->want_pages(window->tracker);
	r = read_tracker(window, &reading, err);
	window_release(window);
	if (r == 0)
		wss_window_sample_begin(&window->facts, ret_sample);
	cpu_charge(window, since);
	if (r < 0)
		return -1;
	if (!end_ns)
		end_ns = span_middle(reading.span);
	add_to_curve(window, &reading, true);
	if (window->guest->ops->disturbed)
		window->facts.disturbance = window->guest->ops->disturbed(window->guest);
	wss_window_sample(&window->facts, &reading, end_ns, ret_sample);
	if (window_check_alive(window, err) < 0)
		return -1;
	if (!over)
		return 0;
	wss_lessons_learn(window->lessons, &window->said, &ret_sample->cost.arm_ns,
			  &ret_sample->cost.faults);
	return check_touched(window, &reading, err);
}
