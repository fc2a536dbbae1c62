/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The advice on a guest: what its history says about the memory that it needs. */
#pragma once

#include <stdbool.h>

#include "base/clock.h"
#include "base/units.h"
#include "history/history.h"
#include "sizing/sizing.h"

/* The history keeps hourly sums: a shorter span would include windows from before it. */
#define WSS_ADVICE_SPAN_MIN_NS (WSS_HISTORY_HOUR * WSS_NS_PER_S)
#define WSS_ADVICE_SPAN_MAX_NS (366ULL * WSS_HISTORY_DAY * WSS_NS_PER_S)

struct wss_advice_options {
	struct wss_sizing_rule rule;
	uint64_t span_ns;		 /* largest age of windows to use */
	struct wss_amount what_if_bytes; /* size to be judged */
	/*
	 * Learn sizes from the hours of 13 weeks (sizing/learner.h) once there are enough, unless the
	 * guest's policy has a headroom; otherwise the rule applies.
	 */
	bool learn;
	uint64_t hold_ns; /* how long the size is to be kept */
};

#define WSS_ADVICE_WEEK_HOURS 168
/* The weeks that the hours of the week are from. */
#define WSS_ADVICE_WEEK_SPAN_S (28 * WSS_HISTORY_DAY)

#define WSS_ADVICE_OPTIONS_INIT                                               \
	{                                                                     \
		.rule = {.percentile = 0.99,                                  \
			 .headroom_percent = 20,                              \
			 .minimum_bytes = 256 * WSS_MIB,                      \
			 .minimum_is_default = true},                         \
		.span_ns = 7 * WSS_HISTORY_DAY * WSS_NS_PER_S, .learn = true, \
		.hold_ns = 7 * WSS_HISTORY_DAY * WSS_NS_PER_S,                \
	}

/* Facts about the guest that the history does not have. */
struct wss_advice_guest {
	const char *uuid; /* NULL or "": unknown, and so is its history */
	bool active;	  /* absent if the guest does not run */
	const struct wss_policy *policy;
	bool reports_free; /* its balloon reports free pages to the host */
};

enum wss_advice_status {
	WSS_ADVICE_FAILED, /* its policy or its history could not be read */
	/*
	 * The history has no window of this guest, or only windows of a method that sees no
	 * reads.
	 */
	WSS_ADVICE_UNKNOWN,
	WSS_ADVICE_TOO_EARLY, /* fewer than WSS_SIZING_SAMPLES_MIN windows */
	WSS_ADVICE_OPTED_OUT,
	WSS_ADVICE_NO_SIZE, /* what it cannot give up is unknown: only its need is known */
	WSS_ADVICE_OK,
};

/* "failed", "unknown", "too early", "opted out", "no size", "ok". */
const char *wss_advice_status_name(enum wss_advice_status status);

/* Reports on a guest's memory that are older say nothing about now. */
#define WSS_ADVICE_COLD_MAX_S WSS_HISTORY_HOUR

/* What is known of the memory that has been idle for 24 hours. */
enum wss_advice_cold_status {
	WSS_ADVICE_COLD_UNWATCHED, /* no service has watched it, or it does not run */
	WSS_ADVICE_COLD_STALE,	   /* nor within the last WSS_ADVICE_COLD_MAX_S */
	WSS_ADVICE_COLD_YOUNG,	   /* watched for less than 24 hours: an upper bound only */
	WSS_ADVICE_COLD_GAPS,	   /* not watched all the time: an upper bound only */
	WSS_ADVICE_COLD_OK,
};

/* "unwatched", "stale", "too early", "gaps", "ok". */
const char *wss_advice_cold_status_name(enum wss_advice_cold_status status);

/* How cold a guest's memory is. */
struct wss_advice_cold {
	enum wss_advice_cold_status status;
	struct wss_history_coldness newest; /* unless UNWATCHED */
	/* Idle for 24 hours. What is below low can be reclaimed for certain; high promises nothing. */
	struct wss_amount low_bytes;  /* OK only */
	struct wss_amount high_bytes; /* YOUNG, GAPS, OK */
};

/* All zero stands for a guest that could not be read. */
struct wss_advice {
	enum wss_advice_status status;
	bool only_writes; /* all windows saw only writes: the guest cannot be sized */
	bool has_series;  /* the fields below are set */
	struct wss_history_series series;
	struct wss_sizing_rule rule; /* the policy's values included */
	struct wss_sizing sizing;
	struct wss_amount held_bytes; /* resident memory; absent if the guest does not run */
	struct wss_amount assigned_bytes;
	uint64_t hold_ns; /* for which the size is */
	struct wss_learned learned;
	uint64_t
		hours_above; /* with learned: the hours that needed more than the size, or the need if there is no size */
	/*
	 * The largest working set of each hour of the week in the last four weeks; 0: it was not
	 * measured. The first hour begins on Monday, 00:00 UTC.
	 */
	uint64_t week_bytes[WSS_ADVICE_WEEK_HOURS];
	struct wss_advice_cold cold;	      /* also without a series */
	struct wss_history_overhead overhead; /* within the span */
	struct wss_floor floor;		      /* what it could not give up in the span */
	struct {
		struct wss_amount bytes; /* the size to be judged */
		/* What the guest cannot give up, as far as it is known; 0: it is not. */
		uint64_t floor_bytes;
		double exceeded; /* share of windows above it, 0 to 1; 1 if it is below floor_bytes */
	} what_if;
};

/* Returns the time, relative to now, since which windows count. */
time_t wss_advice_since(const struct wss_advice_options *options, time_t now);

/*
 * Makes the advice on a guest from its windows since a given time. history may be NULL if
 * there is none yet. The caller frees *ret_advice, which is untouched on error:
 * WSS_ERR_NO_MEMORY, and the errors of wss_history_series().
 */
int wss_advice_read(struct wss_history *history, const struct wss_advice_guest *guest, time_t since,
		    const struct wss_advice_options *options, struct wss_advice *ret_advice,
		    struct wss_error *err);

/*
 * Whether sums over guests may count it with what it needs in each hour. Any other guest counts with all of its memory: a
 * working set alone leaves out what the guest holds and does not touch.
 */
bool wss_advice_is_sized(const struct wss_advice *advice);

/* Returns what the guest's size is at least whatever it touches, in bytes; 0: nothing shows it. */
uint64_t wss_advice_floor_bytes(const struct wss_advice *advice);

/* Returns the bytes that each window is short of, because the set still grew at its end. */
uint64_t wss_advice_beyond_bytes(const struct wss_advice *advice);

/* The guest's memory stays on the host (wss_config_blocks()): a smaller balloon reclaims nothing. */
void wss_advice_block(struct wss_advice *advice);

void wss_advice_free(struct wss_advice *advice);
