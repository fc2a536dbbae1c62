/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Decisions about a guest's balloon: whether it may be shrunk at all, how far, and step by step
 * what to do next. Pure: whoever drives it looks at the guest, and does what it says.
 */
#ifndef WSS_WSS_BALLOON_H
#define WSS_WSS_BALLOON_H

#include <stdbool.h>
#include <stdint.h>

#include "wss/sample.h"
#include "wss/sizing.h"

/* What must be right before a guest's balloon is touched. */
struct wss_balloon_facts {
	bool running, job;
	bool has_device;
	bool opted_out;
	/* The balloon could not return memory to the host; static text, NULL where it can. */
	const char *hazard;
	bool autodeflate;	 /* the guest takes memory back itself rather than kill a process */
	bool answers;		 /* its balloon driver has reported at least once: there is one */
	bool asked;		 /* the guest is configured to report its memory regularly */
	bool statistics;	 /* it does, and has done so of late */
	enum wss_confidence confidence;
	bool current;		 /* the newest window is not older than two periods */
};

/* Two refusals to which who knows more may add figures. */
extern const char wss_balloon_too_early[], wss_balloon_outdated[];

/* Why the balloon may not be shrunk, for a person: static; NULL where it may. */
const char *wss_balloon_refusal(const struct wss_balloon_facts *facts);

/* Of these reasons one that ends it for a guest that was shrunk already; NULL. */
const char *wss_balloon_objection(const struct wss_balloon_facts *facts);

struct wss_balloon_limits {
	uint64_t original_bytes; /* what is given back: follows the guest while nothing is taken */
	uint64_t minimum_bytes;	 /* policy */
	uint64_t needed_bytes;	 /* by the history: working set with headroom, or the curve; 0 unknown */
	uint64_t headroom_percent;
	uint64_t period_s;	 /* between two windows */
	uint64_t pause_s;	 /* after a step */
	uint64_t timeout_s;	 /* of a step without any progress */
};

#define WSS_BALLOON_STEP_PERCENT 5
/* Steps after which the host's memory must have fallen. */
#define WSS_BALLOON_PROOF_STEPS 2

/* One look at the guest. What is not known, or is older than the look before, is absent. */
struct wss_balloon_view {
	uint64_t now_s; /* of a clock that never goes back */
	struct wss_amount actual_bytes; /* what the balloon leaves */
	struct wss_amount rss_bytes;	/* of the guest's memory, on the host */
	struct wss_amount wss_bytes;	/* newest window */
	uint64_t wss_age_s;
	bool may_step; /* the guest was seen running, with no job, and nothing speaks against it */
	struct wss_amount usable_bytes;		/* the guest could give up without swapping */
	struct wss_amount free_bytes;		/* of that, nobody has it */
	struct wss_amount cache_bytes;		/* page cache: usable but for what is kept in reserve */
	struct wss_amount managed_bytes;	/* all that its kernel has to hand out */
	struct wss_amount managed_of_bytes;	/* the size of the guest to which that belongs */
	uint64_t statistics_age_s;		/* of this and what follows */
	struct wss_amount swapped_bytes;	/* in and out, since it booted */
	struct wss_amount major_faults;		/* likewise */
	struct wss_amount read_bytes; /* by its disks in all; asked for now and then */
};

enum wss_balloon_action {
	WSS_BALLOON_HOLD,
	WSS_BALLOON_SHRINK,  /* to target_bytes */
	WSS_BALLOON_GROW,    /* to target_bytes, as it needs more than it was left with */
	WSS_BALLOON_RETURN,  /* to target_bytes, the original, at once; and go on */
	WSS_BALLOON_RESTORE, /* likewise, and never touch it again */
};

struct wss_balloon_decision {
	enum wss_balloon_action action;
	uint64_t target_bytes;
	const char *reason; /* static */
};

/* Opaque but for its memory. */
struct wss_balloon {
	struct wss_balloon_limits limits;
	uint64_t target_bytes;
	uint64_t best_bytes;	/* least actual size seen since the step was begun */
	uint64_t progress_s;	/* when that was */
	uint64_t pending_s;	/* when a step was last seen under way */
	uint64_t rest_until_s;	/* no step before */
	unsigned steps;
	struct wss_amount rss_before_bytes; /* before the first of them */
	uint64_t size_before_bytes;
	struct wss_amount swapped_bytes, major_faults;
	uint64_t said_s; /* when that was */
	uint64_t reserve_bytes; /* the most that the guest's kernel was seen to keep for itself */
	uint64_t roomy_bytes;	/* would be enough if all that is in use were page cache; 0 unknown */
	struct wss_amount read_bytes; /* by its disks, */
	uint64_t read_s;	      /* until then, */
	bool read_tight;	      /* with less than that much memory */
	struct wss_amount usual_read_bytes; /* a second, with more */
	uint64_t careful_s, careful_until_s; /* for how long, and until when, it is not left with less */
	uint64_t actual_bytes, changed_s; /* at the last look, and when it was another */
	struct wss_amount held_bytes;	  /* by statistics of that size, */
	uint64_t held_s;		  /* from then */
	bool shrunk, pending, over;
	bool looked;	/* at least once */
	bool ready;	/* a step would be next, but for the view's may_step */
	bool returning; /* on the way back to what it had */
};

void wss_balloon_init(struct wss_balloon *balloon, const struct wss_balloon_limits *limits);

/*
 * What the guest's kernel keeps from its programs, and from the page cache, so that a working set
 * does not fit into a guest of its size: what it never hands out (its image, its table of all
 * pages, what is set aside for a crash), and the free memory below which it reclaims. By Linux's
 * MemTotal, MemFree, page cache and MemAvailable: what is free and cached is more than the last by
 * the high watermark and up to the low one (si_mem_available()), between which the free memory is
 * kept; so by half of that. At most 7.5 % of the guest, as more is no watermark: khugepaged asks
 * for 5 % at most, and the high one is half more (set_recommended_min_free_kbytes(),
 * __setup_per_zone_wmarks()). Bytes, saturated; what is unknown, or cannot be, counts as 0.
 */
uint64_t wss_balloon_reserve(const struct wss_balloon_view *view);

/* The least that the guest may be left with by its policy and its history, with that reserve. */
uint64_t wss_balloon_history_floor(const struct wss_balloon_limits *limits, uint64_t reserve_bytes);

/* And in all, as this look shows it. Both: bytes, saturated. */
uint64_t wss_balloon_floor(const struct wss_balloon_limits *limits,
			   const struct wss_balloon_view *view, uint64_t reserve_bytes);

/*
 * What the host would get back from a guest that is left with to_bytes: what of its memory is
 * resident now beyond that. Pages below that size may be given up, too, but perhaps only such as
 * were never touched. Bytes; absent where the size or the resident memory is not known.
 */
struct wss_amount wss_balloon_gain(const struct wss_balloon_view *view, uint64_t to_bytes);

/*
 * The least gain that is worth shrinking a guest of this size: one step, and 64 MiB at most. By as
 * much the memory of a QEMU process varies for reasons of its own, so that nobody could tell that
 * the guest has given anything up; and a guest that is shrunk for nothing runs a risk for nothing.
 */
uint64_t wss_balloon_least_gain(uint64_t actual_bytes);

/* Is the gain known to be less than that? */
bool wss_balloon_is_futile(const struct wss_balloon_view *view, uint64_t to_bytes);

/* Could a step be next? From this time on: a look that may step is worth its price then. */
bool wss_balloon_rested(const struct wss_balloon *balloon, uint64_t now_s);

/* Takes a look at the guest, and says what to do. */
struct wss_balloon_decision wss_balloon_next(struct wss_balloon *balloon,
					     const struct wss_balloon_view *view);

#endif
