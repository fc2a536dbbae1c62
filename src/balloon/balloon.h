/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The room balloon/: reclaims memory that guests do not need, and gives it back when they do; or
 * squeezes guests, to find how little they need.
 *
 *   in    the guests (scope.h), what they need (need.h, by the advice of sizing/), and their state
 *         and reports (look.h)
 *   out   sizes of balloons, events (events.h), and the journal of all steps in the history
 *
 *   controller.c         the process: starts the watchdog, then two threads for each guest
 *   controlled.h         one guest: its states, and why a step is safe
 *   balloon.h            this file: decides the next step; squeeze.h and edge.h take its place for a
 *                        squeeze, and plan.h says what the controller would do
 *   plan-report.h, squeeze-report.h  their tables
 *   step.c, give-back.c  carry a decision out; mover.h says who has moved the balloon
 *   journal.h, watchdog.h, restore.h  return the memory that a killed controller did not
 *
 * The watchdog is a process of its own. The states of a guest and its threads are in controlled.h.
 *
 * Begin with controlled.h and this file. A reason to leave a guest alone goes into
 * balloon-refusal.c, a limit of a step into balloon.c, and what either has to know into look.c.
 */
#pragma once

/*
 * Decisions about a guest's balloon: whether it may be shrunk at all, how far, and the next step.
 * Pure functions: the caller looks at the guest and carries out the decision.
 */

#include <stdbool.h>
#include <stdint.h>

#include "measure/sample.h"
#include "sizing/sizing.h"

/* Conditions that must hold before a guest's balloon is touched. */
struct wss_balloon_facts {
	/* Another controller, or one that was killed, has not given back all that it took. */
	bool unfinished;
	bool foreign; /* its hypervisor is not QEMU */
	bool running, job;
	bool has_device;
	bool fixed;	   /* nothing can set the balloon through this connection */
	const char *owner; /* why it is another's to set, a constant; NULL: it is not */
	bool unsized;	   /* the size that it leaves to the guest is not known */
	bool opted_out;
	/* Why the balloon could not return memory to the host (static); NULL if it can. */
	const char *hazard;
	/* The guest takes memory back by itself before it would kill a process. */
	bool autodeflate;
	/* Its balloon driver has reported at least once, so it has one. */
	bool answers;
	/* The guest is configured to report its memory periodically. */
	bool asked;
	bool statistics; /* it has reported recently */
	enum wss_confidence confidence;
	bool current; /* the newest window is at most two periods old */
};

/* The refusal of facts.unfinished, for callers that know the remedy. */
extern const char wss_balloon_unfinished[];

/* Why the balloon of a guest of another inventory than libvirt's is not moved. */
extern const char wss_balloon_fixed[];

/* An error begins with this if the guest has its memory back but the journal still lists its steps. */
extern const char wss_balloon_left_open[];

/* Two that an operator can lift: the guest's kernel lacks the driver, or nobody asks it for statistics. */
extern const char wss_balloon_no_driver[], wss_balloon_no_statistics[];

/* Two refusals that a caller may replace by ones with figures. */
extern const char wss_balloon_too_early[], wss_balloon_outdated[];

/* Returns why the guest may not be shrunk, as static text for messages; NULL if it may. */
const char *wss_balloon_refusal(const struct wss_balloon_facts *facts);

/* Returns the first of these reasons that has nothing to do with the history; NULL if none has. */
const char *wss_balloon_guest_refusal(const struct wss_balloon_facts *facts);

/*
 * Returns the first of these reasons that also ends shrinking once it has begun; NULL if there
 * is none.
 */
const char *wss_balloon_objection(const struct wss_balloon_facts *facts);

struct wss_balloon_limits {
	/* Size to give back; follows the guest's size while nothing is taken. */
	uint64_t original_bytes;
	uint64_t minimum_bytes; /* from the policy */
	uint64_t needed_bytes;	/* size according to the history; 0 if unknown */
	uint64_t headroom_percent;
	uint64_t period_s;  /* time between two windows */
	uint64_t pause_s;   /* time after a step */
	uint64_t timeout_s; /* longest time for a step without progress */
};

#define WSS_BALLOON_STEP_PERCENT 5
/* Number of steps after which the guest must hold less of the host's memory. */
#define WSS_BALLOON_PROOF_STEPS 2

/* One look at the guest. Figures that are unknown, or older than the previous look, are absent. */
struct wss_balloon_view {
	uint64_t now_s;			/* monotonic time */
	struct wss_amount actual_bytes; /* size that the balloon leaves to the guest */
	struct wss_amount rss_bytes;	/* guest memory on the host */
	/* rss_bytes was just read for guest RAM alone, or cannot be known any better. */
	bool rss_checked;
	struct wss_amount wss_bytes; /* newest window */
	uint64_t wss_age_s;
	bool may_step; /* the guest runs, has no job, and nothing else forbids a step */
	struct wss_amount usable_bytes;	    /* the guest could give this up without swapping */
	struct wss_amount free_bytes;	    /* unused part of usable_bytes */
	struct wss_amount cache_bytes;	    /* page cache: usable except for reserves */
	struct wss_amount managed_bytes;    /* all memory that its kernel hands out */
	struct wss_amount managed_of_bytes; /* size of the guest when it reported that */
	uint64_t statistics_age_s;	    /* age of this and the following figures */
	struct wss_amount swapped_bytes;    /* swapped in and out since the guest booted */
	struct wss_amount major_faults;	    /* since the guest booted */
	struct wss_amount read_bytes;	    /* total of its disks; read only now and then */
	/* Time in which tasks of the host waited for memory, in thousandths; for the squeeze. */
	struct wss_amount pressure_permille;
};

enum wss_balloon_action {
	WSS_BALLOON_HOLD,
	WSS_BALLOON_CHECK,   /* read rss_bytes for guest RAM alone, and evaluate the look again */
	WSS_BALLOON_SHRINK,  /* to target_bytes */
	WSS_BALLOON_GROW,    /* to target_bytes, because it needs more than it has */
	WSS_BALLOON_RETURN,  /* to target_bytes, the original size, at once; then continue */
	WSS_BALLOON_RESTORE, /* like WSS_BALLOON_RETURN, and never touch the guest again */
	WSS_BALLOON_DONE,    /* likewise, because there is no more to do */
};

struct wss_balloon_decision {
	enum wss_balloon_action action;
	uint64_t target_bytes;
	const char *reason; /* static */
};

/* Opaque; public only so that callers can allocate it. */
struct wss_balloon {
	struct wss_balloon_limits limits;
	uint64_t target_bytes;
	uint64_t best_bytes;   /* smallest actual size seen since the step began */
	uint64_t progress_s;   /* when best_bytes was reached */
	uint64_t pending_s;    /* when a step was last seen under way */
	uint64_t rest_until_s; /* no step before this time */
	unsigned steps;
	struct wss_amount rss_before_bytes; /* before the first step */
	uint64_t size_before_bytes;
	uint64_t check_at_s; /* rss_bytes is not checked again before this time */
	struct wss_amount swapped_bytes, major_faults;
	uint64_t said_s;	/* time of the last two */
	uint64_t reserve_bytes; /* largest reserve seen in the guest's kernel */
	uint64_t roomy_bytes;	/* enough even if all memory in use were page cache; 0 if unknown */
	struct wss_amount read_bytes;	     /* total read from its disks */
	uint64_t read_s;		     /* when read_bytes was read */
	bool read_tight;		     /* the guest had less than roomy_bytes then */
	struct wss_amount usual_read_bytes;  /* rate per second with at least roomy_bytes */
	uint64_t careful_s, careful_until_s; /* how long, and until when, it keeps roomy_bytes */
	uint64_t actual_bytes, changed_s; /* size at the last look, and time of its last change */
	/* Memory in use, from statistics at its present size. */
	struct wss_amount held_bytes;
	uint64_t held_s; /* when held_bytes was reported */
	bool shrunk, pending, over;
	bool looked;	/* at least one look was taken */
	bool ready;	/* a step would come next but for the view's may_step */
	bool returning; /* on the way back to its original size */
	bool risen;	/* and has begun to get there */
};

void wss_balloon_init(struct wss_balloon *balloon, const struct wss_balloon_limits *limits);

/* Returns wss_balloon_stats_reserve() of what the guest reported. */
uint64_t wss_balloon_reserve(const struct wss_balloon_view *view);

/*
 * Returns the memory that the guest's kernel and programs use and that is not page cache, in bytes; unknown
 * if a figure is, or if they contradict each other.
 */
struct wss_amount wss_balloon_used(const struct wss_balloon_view *view);

/*
 * Returns the smallest size of the guest according to its policy and its history, with that
 * reserve, in bytes, saturated.
 */
uint64_t wss_balloon_history_floor(const struct wss_balloon_limits *limits, uint64_t reserve_bytes);

/* Returns the floor: wss_keep_bytes() of what this look shows, in bytes, saturated. */
uint64_t wss_balloon_floor(const struct wss_balloon_limits *limits,
			   const struct wss_balloon_view *view, uint64_t reserve_bytes);

/* Returns wss_keep_gain() of what this look shows. */
struct wss_amount wss_balloon_gain(const struct wss_balloon_view *view, uint64_t to_bytes);

/* Whether the gain is known to be less than wss_keep_least_gain(). */
bool wss_balloon_is_futile(const struct wss_balloon_view *view, uint64_t to_bytes);

/*
 * Whether a step could be next, so that a full look, which is expensive, pays off from this
 * time on.
 */
bool wss_balloon_rested(const struct wss_balloon *balloon, uint64_t now_s);

/*
 * Evaluates a look at the guest and returns what to do. WSS_BALLOON_CHECK is only returned for a
 * view without rss_checked: the caller then reads the guest's resident memory, which is expensive,
 * sets rss_checked, and evaluates the same view with the balloon as it was before.
 */
struct wss_balloon_decision wss_balloon_next(struct wss_balloon *balloon,
					     const struct wss_balloon_view *view);
