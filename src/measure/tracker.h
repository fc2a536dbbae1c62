/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The tracker: one method of observing which memory a guest touches. Each method is one file
 * with one wss_tracker_ops, listed in methods.h in the order in which "auto" prefers them.
 *
 * A window (measure/window.h) drives a tracker: probe, open, begin, poll as often as needed,
 * close. The window, not the tracker, checks that the guest runs, holds the lock that excludes
 * other controllers, pauses the guest if requested, and keeps time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "host/guest.h"
#include "host/host.h"
#include "measure/sample.h"
#include "pages/pages.h"

/* When an observation began and ended, times of wss_clock_now_ns(). */
struct wss_span {
	uint64_t start_ns;
	uint64_t end_ns;
};

/*
 * What has been touched since begin, as far as the method can see. Only faults may be unknown.
 * The touched set lies between low_bytes and high_bytes: where no lower bound is
 * known, low_bytes is 0, and where no upper bound is known, high_bytes is all of the guest's
 * memory (guest->config.maximum_bytes). wss_bytes equals both if the figure is exact, else the
 * one that is nearer the truth, because output marks it as a bound: "<= 144 MiB". A sample
 * whose figure is a lower bound is degraded, so that no guest is sized by it.
 */
struct wss_reading {
	struct wss_span span; /* time of the reading itself */
	uint64_t wss_bytes;
	uint64_t low_bytes;
	uint64_t high_bytes;
	uint64_t granularity_bytes; /* size of the largest entry that was counted */
	struct wss_amount faults;
};

enum wss_granularity {
	WSS_GRANULARITY_NATIVE, /* as the host maps memory */
	WSS_GRANULARITY_4K,
	WSS_GRANULARITY_AUTO, /* 4 KiB if that is safe and cheap enough, else native */
};

/* What a window must find out: how much was touched, or which pages. */
enum wss_recorder_choice {
	WSS_RECORDER_AUTO,     /* which pages if the method can, else how much */
	WSS_RECORDER_PAGES,    /* which pages, else WSS_ERR_UNSUPPORTED */
	WSS_RECORDER_COUNTERS, /* how much, without recording pages */
};

/*
 * The longest stall of a guest's vCPUs that is accepted by default: a third of the 300 ms that
 * QEMU's live migration uses as its downtime limit, and half of Linux's shortest TCP
 * retransmission timeout (200 ms), so that no connection of the guest notices.
 */
#define WSS_MAX_STALL_DEFAULT_NS 100000000ULL
#define WSS_MAX_STALL_MAX_NS (60 * WSS_NS_PER_S) /* the longest that can be allowed */
/*
 * Default limit of faults of 4 KiB, which cover 8 GiB. WSS_GRANULARITY_AUTO causes no more
 * faults than that in a guest: at about 2 us each, four seconds of one CPU over the window.
 */
#define WSS_MAX_FAULTS_DEFAULT (2u << 20)

/* Largest number of options that a method has of its own. */
#define WSS_METHOD_OPTIONS_MAX 8

/*
 * An option that only one method has. A command takes it with the name of the method,
 * "NAME,OPTION=VALUE", and need not know it. The value is a number: a count, bytes, ns, or the
 * index of a word.
 */
struct wss_method_option {
	const char *name; /* lower-case letters, digits and hyphens */
	const char *help; /* one line: its meaning, unit, range and default */
	/*
	 * Parses a value, for example by wss_size_parse(). what is the name of the option, for
	 * the error: WSS_ERR_USAGE.
	 */
	int (*parse)(const char *text, const char *what, uint64_t *ret_value,
		     struct wss_error *err);
	uint64_t default_value;
};

/* Requirements on a method. */
struct wss_track_options {
	uint64_t window_ns;
	enum wss_granularity granularity;
	enum wss_recorder_choice recorder;
	/* The longest stall of the guest's vCPUs that arming may cause. */
	uint64_t max_stall_ns;
	/* WSS_GRANULARITY_AUTO uses 4 KiB only if no more faults than this are expected. */
	uint64_t max_faults;
	/*
	 * Time for which windows follow each other, so that one preparation can serve many of
	 * them; 0: each needs its own, UINT64_MAX: without end.
	 */
	uint64_t chain_ns;
	/*
	 * Values of the method's own options, in the order of its table; unknown: the default.
	 * Set by wss_tracker_parse(), read by wss_tracker_option().
	 */
	struct wss_amount own[WSS_METHOD_OPTIONS_MAX];
};

/* Native granularity, and the default limits. The caller sets the length of the window. */
#define WSS_TRACK_OPTIONS_INIT                                                                 \
	{                                                                                      \
		.max_stall_ns = WSS_MAX_STALL_DEFAULT_NS, .max_faults = WSS_MAX_FAULTS_DEFAULT \
	}

/* What arming a window will do to the guest, known before anything is done. */
struct wss_prediction {
	uint64_t stall_ns; /* for which its vCPUs wait while it is armed; 0: not worth predicting */
	uint64_t
		log_ns; /* for which they may wait besides while a dirty log is started; nobody measures it */
	/* Second-level faults that it takes: a method says how many there are at most (measure/lessons.h). */
	struct wss_amount faults;
	uint64_t most_faults;		 /* what the method said */
	struct wss_amount faults_so_far; /* those that it has taken since it started */
	/* Of walks of QEMU's page tables, which stall no vCPU: the method's own, if any, and that for memory figures. */
	uint64_t memory_ns;
};

struct wss_tracker_ops;

/* First member of every instance. */
struct wss_tracker {
	const struct wss_tracker_ops *ops;
};

struct wss_tracker_ops {
	/*
	 * Lower-case letters and digits, less than WSS_METHOD_NAME_MAX of them; the same as in
	 * methods.h, and as the name of the file.
	 */
	const char *name;
	const char *summary;
	enum wss_observes observes;
	const char *granularity; /* for messages and tables */
	const char
		*costs; /* what a window costs the guest; shown to the operator, as is the next */
	const char *limits; /* where its figure may be wrong */
	/* The method's own options, ending with a name of NULL; NULL: it has none. */
	const struct wss_method_option *options;
	/* A poll costs a few microseconds, so the growth curve may be sampled densely. */
	bool cheap_poll;
	/* Its figures are worse than those of the others: "auto" never chooses it. */
	bool by_name_only;
	/* The first touch of a page costs the guest a fault, which slows down the curve's beginning. */
	bool touch_faults;

	/*
	 * Checks whether this method can measure this guest here, or if guest is NULL, any
	 * guest of this host. Has no side effect on the guest. Returns 0, or -1 with the
	 * reason.
	 */
	int (*probe)(const struct wss_host *host, struct wss_guest *guest, struct wss_error *err);

	/*
	 * Makes an instance for an attached guest whose lock the window holds
	 * (measure/control.h). Changes nothing yet. WSS_ERR_UNSUPPORTED if it cannot do what
	 * options require, above all a granularity.
	 */
	int (*open)(const struct wss_host *host, struct wss_guest *guest,
		    const struct wss_track_options *options, struct wss_tracker **ret_tracker,
		    struct wss_error *err);

	/*
	 * Takes one step of what must precede begin and takes a while, such as starting QEMU's
	 * dirty log. Never waits. Returns 1: begin may be called; 0: call again in a moment;
	 * -1 with err set. NULL: nothing to prepare.
	 */
	int (*prepare)(struct wss_tracker *tracker, struct wss_error *err);

	/* Whether the next step of prepare stalls the guest, as begin does. NULL: none does. */
	bool (*prepare_stalls)(const struct wss_tracker *tracker);

	/* What begin would cost the guest. NULL: not worth predicting. */
	int (*predict)(struct wss_tracker *tracker, struct wss_prediction *ret_prediction,
		       struct wss_error *err);

	/*
	 * Checks whether begin and poll work while QEMU is stopped, because they ask only the
	 * kernel. Returns 0, or -1 with WSS_ERR_UNSUPPORTED and what is missing. NULL: they do
	 * not work.
	 */
	int (*check_stopped)(const struct wss_tracker *tracker, struct wss_error *err);

	/* Arms a window. *ret_span is the time in which arming blocked the guest's memory. */
	int (*begin)(struct wss_tracker *tracker, struct wss_span *ret_span, struct wss_error *err);

	/*
	 * Called after begin, and after a guest that was held has been resumed: the window
	 * counts from start_ns, a time of wss_clock_now_ns(). May be NULL.
	 */
	void (*started)(struct wss_tracker *tracker, uint64_t start_ns);

	/* Called before a poll that is for a sample, so that it knows pages, too. May be NULL. */
	void (*want_pages)(struct wss_tracker *tracker);

	/*
	 * Reads what has been touched since begin, without disturbing it. A method that need not look each time may
	 * return an earlier reading of this window again, with its span, if want_pages was not called.
	 */
	int (*poll)(struct wss_tracker *tracker, struct wss_reading *ret_reading,
		    struct wss_error *err);

	/*
	 * Returns the time of wss_clock_now_ns() until which the observation is valid; 0:
	 * without end. May be NULL.
	 */
	uint64_t (*valid_until_ns)(const struct wss_tracker *tracker);

	/*
	 * Whether what begin set up has been lost and there is time to begin again. Called
	 * after each poll. May be NULL.
	 */
	bool (*spoilt)(const struct wss_tracker *tracker);

	/*
	 * Takes one step of checking, after the window, that the guest is as it was before.
	 * Never waits. Returns true when done, with any remarks noted in the sample; false:
	 * call again in a moment. May be NULL.
	 */
	bool (*settle)(struct wss_tracker *tracker, struct wss_sample *sample);

	/*
	 * Returns the pages that the last poll after want_pages has counted, if each of them is
	 * known. ret_view is zero on entry, and what is unknown stays so. Valid until the next begin.
	 * NULL: the method never knows pages, and no window with WSS_RECORDER_PAGES is opened.
	 */
	void (*pages)(const struct wss_tracker *tracker, struct wss_page_view *ret_view);

	/*
	 * Returns the source of a window's counts for this guest, as its samples name it
	 * ("bpf"). If that source does not know pages, ret_why gives the reason. guest NULL:
	 * any guest of this host. No side effect. NULL: the method has only one source.
	 */
	const char *(*recorder)(const struct wss_host *host, const struct wss_guest *guest,
				struct wss_error *ret_why);

	/*
	 * Adds to the sample what the method knows about its limits in this window, and
	 * figures that only it has. The memory figures are in the sample already. May be NULL.
	 */
	void (*explain)(const struct wss_tracker *tracker, struct wss_sample *sample);

	/*
	 * Restores the host and the guest, and frees the instance; accepts NULL and half-open
	 * state.
	 */
	void (*close)(struct wss_tracker *tracker);
};

/* All methods in the order of "auto", NULL at the end. */
extern const struct wss_tracker_ops *const wss_trackers[];

/* Returns the method of that name; NULL if there is none. */
const struct wss_tracker_ops *wss_tracker_by_name(const char *name);

/*
 * Writes the names of all methods with separator between two, and last before the last one.
 * Returns ret_text.
 */
const char *wss_tracker_names(const char *separator, const char *last, char *ret_text, size_t size);

/*
 * Parses the choice of a method: "auto", "NAME" or "NAME,OPTION=VALUE,...". Sets *ret_ops, to
 * NULL for auto, and options->own, where values of an earlier choice are forgotten. On failure
 * *ret_ops is untouched: WSS_ERR_USAGE, WSS_ERR_NO_MEMORY.
 */
int wss_tracker_parse(const char *text, const struct wss_tracker_ops **ret_ops,
		      struct wss_track_options *options, struct wss_error *err);

/* Whether text means a granularity of 4 KiB: "4k", or the form that tables print. */
bool wss_granularity_is_4k(const char *text);

/* Parses "native", "auto" or a form of "4k". -1: it is none of these. */
int wss_granularity_parse(const char *text, enum wss_granularity *ret_granularity);

/* Returns the value of the method's own option at this place in its table, or its default. */
uint64_t wss_tracker_option(const struct wss_tracker_ops *ops,
			    const struct wss_track_options *options, size_t i);

/*
 * Checks whether the method can open a window for this guest as options require: like its
 * probe, and WSS_ERR_UNSUPPORTED if pages are wanted from a method that never knows them. No
 * side effect on the guest.
 */
int wss_tracker_check(const struct wss_tracker_ops *ops, const struct wss_host *host,
		      struct wss_guest *guest, const struct wss_track_options *options,
		      struct wss_error *err);

/*
 * Returns the first method, but for those that must be named, that can open a window for this guest as options require. If none
 * can, err has the reason of each: WSS_ERR_UNSUPPORTED. Any other error of a method is returned at once.
 */
const struct wss_tracker_ops *wss_tracker_choose(const struct wss_host *host,
						 struct wss_guest *guest,
						 const struct wss_track_options *options,
						 struct wss_error *err);
