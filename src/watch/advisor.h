/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The advisor: keeps the advice on all guests of a watch, and on the host, for readers that cannot wait
 * for the history.
 *
 * Theory of operation. A pass reads the history of one guest after the other and adds each to the host's
 * sum; its result replaces that of the pass before. A pass begins WSS_ADVISOR_PERIOD_NS after the one
 * before, or as soon as a guest that had too few windows for a size has enough of them, or the memory of
 * one becomes known. After each guest the advisor pauses for WSS_ADVISOR_PAUSES times the CPU time of the reading, so that it takes
 * 0.025 % of a processor at most. A pass over a host with hundreds of guests may therefore take an
 * hour. What else the service needs from the history of a guest is read within the pass (read_more), so
 * that all of it is read at this pace.
 */
#pragma once

#include "sizing/advice-text.h"
#include "sizing/advice.h"
#include "sizing/host-sum.h"
#include "watch/watch.h"

#define WSS_ADVISOR_PERIOD_NS (300 * WSS_NS_PER_S)
#define WSS_ADVISOR_PAUSES 4000
/* How often the advisor looks for guests that have enough windows now. */
#define WSS_ADVISOR_LOOK_NS (10 * WSS_NS_PER_S)
/* Enough: the first window is a canary, and the last one may not be stored yet. */
#define WSS_ADVISOR_WINDOWS (WSS_SIZING_SAMPLES_MIN + 2)

struct wss_advisor_options {
	struct wss_advice_options advice;
	double probability;	      /* of the host's need, 0.5 to 0.999 */
	struct wss_amount host_bytes; /* memory of the host */
	uint64_t period_ns;	      /* from the start of one pass to the next */
	uint64_t look_ns; /* how often to look for guests that have enough windows now */
	unsigned pauses;  /* WSS_ADVISOR_PAUSES; tests do not pause */
	/*
	 * Runs read(reader), which waits for a disk, in another thread. False: that has other work now, and is asked
	 * again. NULL: wss_advisor_step() reads.
	 */
	bool (*start)(void (*read)(void *reader), void *reader, void *opaque);
	/*
	 * Called by the reader for each guest of each pass; NULL: no one is interested. -1 with err: the history
	 * could not be read; the advice on the guest does not depend on it.
	 */
	int (*read_more)(const char *uuid, void *opaque, struct wss_error *err);
	void *opaque;
};

/* With all defaults, and the memory of this host. */
void wss_advisor_options_init(struct wss_advisor_options *options);

#define WSS_ADVISED_WHY_MAX 9

/* The advice on one guest, with its policy; its figures are absent unless they are known. */
struct wss_advised {
	char uuid[WSS_UUID_TEXT_MAX];
	enum wss_advice_status status;
	enum wss_confidence confidence;
	uint64_t windows; /* of the history that it is from; 0: none */
	time_t first;	  /* of these windows */
	/* Their kind: where a sample's is another, its figures do not compare with these. */
	char method[WSS_METHOD_NAME_MAX];
	uint64_t granularity_bytes, window_ns;
	struct wss_amount p50_bytes, p95_bytes, p99_bytes, peak_bytes;
	struct wss_amount recommended_bytes;
	/* What the host holds beyond that: see wss_advised_reclaimable(). */
	struct wss_amount beyond_bytes;
	size_t n_why;
	char why[WSS_ADVISED_WHY_MAX][WSS_ADVICE_TEXT_MAX]; /* sentences for people */
	uint64_t read_ns;	  /* when it was read, wss_clock_now_ns() */
	uint64_t watched_windows; /* that the watch had armed by then */
	bool has_memory;	  /* the host's sums have its memory */
	unsigned pass;		  /* the advisor's */
};

struct wss_advisor;

/*
 * Options are copied. history may be NULL, then nothing is ever advised; it must outlive the advisor. For
 * wss_advisor_free(); NULL: out of memory.
 */
struct wss_advisor *wss_advisor_new(struct wss_history *history,
				    const struct wss_advisor_options *options);

/*
 * Reads the history of one guest of the watch, if one is due, or starts that and takes the result in a later call.
 * 1: a pass has ended in which nothing failed;
 * 0: anything else. -1 with the errors of wss_advice_read(), wss_host_sum_add() and read_more: the pass goes
 * on, and if it was the first of them the guest's status is WSS_ADVICE_FAILED.
 */
int wss_advisor_step(struct wss_advisor *advisor, const struct wss_watch *watch,
		     struct wss_error *err);

/* NULL: nothing was advised yet. Valid until the next wss_advisor_step(). advisor may be NULL. */
const struct wss_advised *wss_advisor_find(const struct wss_advisor *advisor, const char *uuid);

/*
 * Returns the memory that a smaller balloon would return to the host: none where the guest's memory stays there
 * whatever its balloon does. Unknown where that is not known yet.
 */
struct wss_amount wss_advised_reclaimable(const struct wss_advised *advised,
					  const struct wss_watched *guest);

/*
 * The host's sum of the last complete pass; NULL: there is none yet. needed_bytes and fits_bytes are
 * absent if the memory of a guest without a size is unknown. advisor may be NULL.
 */
const struct wss_host_sum *wss_advisor_host(const struct wss_advisor *advisor);

/* Nothing may be read any more. Takes NULL. */
void wss_advisor_free(struct wss_advisor *advisor);
