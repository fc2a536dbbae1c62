/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The tracker: one method of observing which memory a guest touches. Each
 * method is one file with one wss_tracker_ops, listed in methods.h in the order in
 * which "auto" prefers them.
 *
 * A window (track/window.h) drives a tracker: probe, open, begin, poll as often as
 * it likes, close. The window, not the tracker, checks that the guest runs, holds the
 * lock that keeps other controllers away, pauses the guest where asked, and keeps time.
 */
#ifndef WSS_TRACK_TRACKER_H
#define WSS_TRACK_TRACKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "host/guest.h"
#include "host/host.h"
#include "wss/pages.h"
#include "wss/sample.h"

/* When an observation began and ended, wss_clock_now_ns(). */
struct wss_span {
	uint64_t start_ns;
	uint64_t end_ns;
};

/* What has been touched since begin, as far as the method can tell. */
struct wss_reading {
	struct wss_span span; /* of reading it */
	uint64_t wss_bytes;
	uint64_t low_bytes;
	uint64_t high_bytes;
	uint64_t granularity_bytes;
	struct wss_amount faults;
};

enum wss_granularity {
	WSS_GRANULARITY_NATIVE, /* as the host maps */
	WSS_GRANULARITY_4K,
	WSS_GRANULARITY_AUTO, /* 4 KiB where that is safe and cheap enough, else native */
};

/* What a window must learn: how much was touched, or which pages. */
enum wss_recorder_choice {
	WSS_RECORDER_AUTO,     /* which pages where the method can tell, else how much */
	WSS_RECORDER_PAGES,    /* which pages, or WSS_ERR_UNSUPPORTED */
	WSS_RECORDER_COUNTERS, /* how much: whatever records pages stays unused */
};

/*
 * The longest stall of a guest's vCPUs that is accepted by default: a third of the
 * 300 ms that QEMU's live migration takes as its downtime limit, and half of Linux's
 * shortest TCP retransmission timeout (200 ms), so that no connection of the guest notices.
 */
#define WSS_MAX_STALL_DEFAULT_NS 100000000ULL
/*
 * Of 4 KiB: 8 GiB. WSS_GRANULARITY_AUTO puts no more faults than that on a guest: at about
 * 2 us each, four seconds of one CPU over the window.
 */
#define WSS_MAX_FAULTS_DEFAULT (2u << 20)

/* What a method is asked for. */
struct wss_track_options {
	uint64_t window_ns;
	enum wss_granularity granularity;
	enum wss_recorder_choice recorder;
	/* The longest stall of the guest's vCPUs that arming may cause. */
	uint64_t max_stall_ns;
	/* WSS_GRANULARITY_AUTO takes 4 KiB only where no more faults than this are to be expected. */
	uint64_t max_faults;
	/*
	 * Windows follow each other for this long, so that what one needs may serve many; 0: each
	 * needs its own, UINT64_MAX: without end.
	 */
	uint64_t chain_ns;
};

/* Native granularity, and the default limits. How long a window lasts is for the caller to say. */
#define WSS_TRACK_OPTIONS_INIT \
	{ .max_stall_ns = WSS_MAX_STALL_DEFAULT_NS, .max_faults = WSS_MAX_FAULTS_DEFAULT }

struct wss_tracker_ops;

/* First member of every instance. */
struct wss_tracker {
	const struct wss_tracker_ops *ops;
};

struct wss_tracker_ops {
	const char *name;
	const char *summary;
	enum wss_observes observes;
	const char *granularity; /* for people */
	/* A poll costs a few microseconds, so that the growth curve may be sampled densely. */
	bool cheap_poll;
	/* The first touch of a page costs the guest a fault, which slows down the curve's beginning. */
	bool touch_faults;

	/*
	 * Can this method measure this guest here? Without any side effect on it. guest
	 * NULL: can it work on this host at all? 0, or -1 with the reason.
	 */
	int (*probe)(const struct wss_host *host, struct wss_guest *guest, struct wss_error *err);

	/*
	 * An instance for an attached guest whose lock the window holds (track/control.h).
	 * Changes nothing yet. WSS_ERR_UNSUPPORTED where it cannot do what options ask, above all
	 * a granularity.
	 */
	int (*open)(const struct wss_host *host, struct wss_guest *guest,
		    const struct wss_track_options *options, struct wss_tracker **ret_tracker,
		    struct wss_error *err);

	/*
	 * One step of what must come before begin and takes a while, such as having QEMU
	 * start its dirty log. Never waits. 1: begin may come; 0: call again in a moment; -1.
	 * NULL: nothing to prepare.
	 */
	int (*prepare)(struct wss_tracker *tracker, struct wss_error *err);

	/*
	 * How long begin would keep the guest's vCPUs waiting, ns. NULL: not worth
	 * predicting.
	 */
	int (*predict)(struct wss_tracker *tracker, uint64_t *ret_ns, struct wss_error *err);

	/*
	 * Do begin and poll work while QEMU is stopped, because they ask nobody but the kernel?
	 * 0, or -1 with WSS_ERR_UNSUPPORTED and what is missing. NULL: they do not.
	 */
	int (*check_stopped)(const struct wss_tracker *tracker, struct wss_error *err);

	/* Arms a window. ret_span is the time that arming took the guest's memory. */
	int (*begin)(struct wss_tracker *tracker, struct wss_span *ret_span,
		     struct wss_error *err);

	/*
	 * After begin, and after the guest was let go where it was held: the window counts from
	 * start_ns, wss_clock_now_ns(). May be NULL.
	 */
	void (*started)(struct wss_tracker *tracker, uint64_t start_ns);

	/* Reads what has been touched since begin, without disturbing it. */
	int (*poll)(struct wss_tracker *tracker, struct wss_reading *ret_reading,
		    struct wss_error *err);

	/*
	 * Until when, wss_clock_now_ns(), the observation that was begun holds; 0: without end.
	 * May be NULL.
	 */
	uint64_t (*valid_until_ns)(const struct wss_tracker *tracker);

	/*
	 * Has what begin set up been lost, and is there time to begin again? Looked at after
	 * each poll. May be NULL.
	 */
	bool (*spoilt)(const struct wss_tracker *tracker);

	/*
	 * One step of seeing, after the window, that the guest is as it was before; never waits.
	 * True: done, and what there is to say is in the sample; false: call again in a moment. May be NULL.
	 */
	bool (*settle)(struct wss_tracker *tracker, struct wss_sample *sample);

	/*
	 * The growth curve as of the last poll, up to until_ns after the start, where the method
	 * knows it better than from polls: how many points, at most n; else 0. May be NULL.
	 */
	size_t (*curve)(const struct wss_tracker *tracker, uint64_t until_ns,
			struct wss_curve_point *ret_points, size_t n);

	/*
	 * The pages that the last poll has counted, where each of them is known; ret_view is zero,
	 * and what is not known stays so. Valid until the next begin or rest. NULL: the method
	 * never knows pages, and no window with WSS_RECORDER_PAGES is opened.
	 */
	void (*pages)(const struct wss_tracker *tracker, struct wss_page_view *ret_view);

	/*
	 * By what a window of this guest would count, as its samples say it ("bpf"); where that
	 * does not know pages, ret_why says why. guest NULL: any guest of this host. No side effect.
	 * NULL: the method has only one way.
	 */
	const char *(*recorder)(const struct wss_host *host, const struct wss_guest *guest,
				struct wss_error *ret_why);

	/*
	 * Adds what the method knows of its own limits in this window, and figures that only it
	 * has. Those of memory are in the sample already. May be NULL.
	 */
	void (*explain)(const struct wss_tracker *tracker, struct wss_sample *sample);

	/*
	 * Nothing more is read until the next begin: what costs something meanwhile can go. May
	 * be NULL.
	 */
	void (*rest)(struct wss_tracker *tracker);

	/* Takes NULL and half-open state. */
	void (*close)(struct wss_tracker *tracker);
};

/* All methods in auto's order, NULL at the end. */
extern const struct wss_tracker_ops *const wss_trackers[];

/* By name; NULL where there is none. */
const struct wss_tracker_ops *wss_tracker_by_name(const char *name);

/* The names of all methods with separator between two, before the last one last. Returns ret_text. */
const char *wss_tracker_names(const char *separator, const char *last, char *ret_text, size_t size);

/*
 * Can the method give this guest a window as options ask? As its probe, and WSS_ERR_UNSUPPORTED
 * where pages are wanted of a method that never knows them. No side effect on the guest.
 */
int wss_tracker_check(const struct wss_tracker_ops *ops, const struct wss_host *host,
		      struct wss_guest *guest, const struct wss_track_options *options,
		      struct wss_error *err);

/*
 * The first method that can give this guest a window as options ask. Where none can, err says why
 * for each: WSS_ERR_UNSUPPORTED.
 */
const struct wss_tracker_ops *wss_tracker_choose(const struct wss_host *host,
						 struct wss_guest *guest,
						 const struct wss_track_options *options,
						 struct wss_error *err);

#endif
