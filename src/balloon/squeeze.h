/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Decisions of the squeeze experiment: a guest is shrunk step by step and observed at each
 * size until it pages, then it gets everything back and is observed once more. A pure
 * function, as wss_balloon_next() is, whose place it takes: the caller looks at the guest and
 * carries out the decision, by the same means.
 *
 * States:
 *
 *   observing  The guest has reached a size and settled. An observation lasts from one of its
 *              reports to another; wss_edge_judge() decides whether it is repeated.
 *   ready      The guest does not page at this size: a step comes next, as soon as one is possible.
 *   stepping   The balloon is on its way to the next size.
 *   returned   The guest has all its memory back. It is observed until the signs of paging have
 *              ended, for a while.
 *   over       Nothing more is decided.
 */
#pragma once

#include "balloon/balloon.h"
#include "balloon/edge.h"
#include "measure/policy.h"

#define WSS_SQUEEZE_STEP_PERCENT_MAX 20
#define WSS_SQUEEZE_POINTS_MAX 1024

struct wss_squeeze_options {
	uint64_t step_percent; /* largest step, of the guest's size; 1 to the maximum */
	uint64_t settle_s;     /* time after the guest has reached a size */
	uint64_t interval_s;   /* shortest observation, at least 1 */
	uint64_t floor_bytes;  /* smallest size */
};

#define WSS_SQUEEZE_OPTIONS_INIT                                                           \
	{                                                                                  \
		.step_percent = WSS_BALLOON_STEP_PERCENT, .settle_s = 5, .interval_s = 10, \
		.floor_bytes = 64ULL << 20                                                 \
	}

/*
 * A guest's memory by its own reports, at its full size. The largest figures seen: after it was squeezed, its page
 * cache is smaller than before.
 */
struct wss_squeeze_memory {
	uint64_t reserve_bytes; /* that its kernel keeps, see wss_balloon_reserve() */
	/* In use by its kernel and its programs, and page cache. Absent if never reported. */
	struct wss_amount used_bytes, cache_bytes;
};

/* Takes account of a report of a guest at its full size. */
void wss_squeeze_memory_note(struct wss_squeeze_memory *memory,
			     const struct wss_balloon_view *view);

enum wss_squeeze_state {
	WSS_SQUEEZE_OBSERVING,
	WSS_SQUEEZE_READY,
	WSS_SQUEEZE_STEPPING,
	WSS_SQUEEZE_RETURNED,
	WSS_SQUEEZE_OVER,
};

/* Figures at the beginning of an observation, or the newest ones. */
struct wss_squeeze_reading {
	uint64_t said_s; /* time of the guest's report */
	struct wss_amount major_faults, swapped_bytes;
	struct wss_amount read_bytes;
	uint64_t read_s; /* time of the last */
};

struct wss_squeeze {
	struct wss_squeeze_options options;
	uint64_t original_bytes, target_bytes;
	uint64_t timeout_s; /* longest time for a step without progress */
	bool autodeflate;
	struct wss_squeeze_memory memory;
	const char *end; /* why it ended, static; NULL while it has not */
	enum wss_squeeze_state state;
	struct wss_balloon_decision last; /* the newest that was not to hold */
	bool put_off;			  /* it was not carried out, and is to be repeated */
	uint64_t best_bytes, progress_s;  /* smallest size seen in this step, and when */
	uint64_t settled_s;		  /* no observation begins before */
	uint64_t until_s;		  /* when a returned guest is no longer observed */
	bool begun;			  /* an observation has */
	struct wss_squeeze_reading begin, newest;
	struct wss_amount pressure_permille; /* highest in this observation */
	size_t n_points;
	struct wss_edge_point points[WSS_SQUEEZE_POINTS_MAX];
};

/* Returns why a guest may not be squeezed, as static text for messages; NULL if it may. */
const char *wss_squeeze_refusal(const struct wss_balloon_facts *facts);

/* States that the floor leaves no step below the guest's size, for which it is refused. Returns false unless that is so. */
#define WSS_SQUEEZE_TEXT_MAX 100
bool wss_squeeze_no_step(uint64_t bytes, uint64_t floor_bytes, char ret_text[WSS_SQUEEZE_TEXT_MAX]);

/* Returns the first reason that also ends it once it has begun; NULL if there is none. */
const char *wss_squeeze_objection(const struct wss_balloon_facts *facts);

/* Returns the floor of a guest: floor_bytes, or the minimum of its policy if that is larger. */
uint64_t wss_squeeze_floor(const struct wss_policy *policy, uint64_t floor_bytes);

/* Begins with a guest of this size. A guest without autodeflate never grows by itself. */
void wss_squeeze_init(struct wss_squeeze *squeeze, const struct wss_squeeze_options *options,
		      uint64_t original_bytes, uint64_t timeout_s, bool autodeflate);

/*
 * Evaluates a look at the guest and returns what to do: WSS_BALLOON_HOLD, _SHRINK, _RETURN,
 * and at last _DONE, or _RESTORE if somebody else moves the balloon. The look's disk reads and
 * pressure may be absent.
 */
struct wss_balloon_decision wss_squeeze_next(struct wss_squeeze *squeeze,
					     const struct wss_balloon_view *view);

/*
 * Notes that a decision other than to hold could not be carried out. A step is decided on
 * again, all else is repeated.
 */
void wss_squeeze_put_off(struct wss_squeeze *squeeze);

/* Whether a step is under way, and whether one could be next. */
bool wss_squeeze_is_stepping(const struct wss_squeeze *squeeze);
bool wss_squeeze_is_ready(const struct wss_squeeze *squeeze);

/* Returns the smallest size at which the guest was observed. */
uint64_t wss_squeeze_smallest(const struct wss_squeeze *squeeze);
