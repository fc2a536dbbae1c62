/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Packs guests onto hosts by what each of them needs in each hour of the week: guests that
 * need their memory at different hours share it. What guests may take and what is resident of them
 * adds up as well, whatever the hour. The number of hosts is what matters; of two plans with the same
 * number the one that copies less is better.
 *
 * Needs are whole numbers of MiB below 2^24, so that sums in float are exact as long as they
 * stay below that, which limits ensure: a plan obeys its limits to the byte.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define WSS_PACK_HOURS 168 /* of a week; hour 0 begins on Monday at 00:00 UTC */
/* Largest limit of a host and need of a guest, in MiB: 8 TiB. */
#define WSS_PACK_MIB_MAX ((float)(1 << 23))

/* Sums over the guests of a host that do not depend on the hour. */
enum wss_pack_sum {
	WSS_PACK_SIZE, /* memory that guests may take */
	WSS_PACK_HELD, /* their memory that is resident */
	WSS_PACK_SUMS
};
/* Largest part of a guest in a sum, so that the sums of all do not overflow: 8 TiB. */
#define WSS_PACK_BYTES_MAX ((uint64_t)1 << 43)

struct wss_pack_guest {
	float need_mib[WSS_PACK_HOURS]; /* 0 to WSS_PACK_MIB_MAX, whole numbers */
	uint32_t host;			/* where it runs: an index */
	bool pinned;			/* never moves */
	bool off;			/* pinned, needs nothing, and its host need not be in use */
	uint64_t copy_bytes;		/* what moving it copies */
	uint64_t sum_bytes[WSS_PACK_SUMS]; /* its parts, at most WSS_PACK_BYTES_MAX */
};

struct wss_pack_host {
	float limit_mib;  /* safe limit, at most WSS_PACK_MIB_MAX, a whole number */
	float memory_mib; /* not exceeded even in the hours that may be over the limit; at
			     least the limit */
	bool keep;	  /* counts as used even if no guest is left on it */
	bool closed;	  /* gets no further guest */
	uint64_t most_bytes[WSS_PACK_SUMS]; /* no sum is larger */
};

/* Guests of which no two may be on one host, as indexes. */
struct wss_pack_apart {
	uint32_t *guests;
	size_t n;
};

enum wss_pack_goal {
	WSS_PACK_EMPTY, /* repair hosts over their limits, then empty as many hosts as possible
			 */
	WSS_PACK_SAFE,	/* repair hosts over their limits, move nothing else */
};

struct wss_pack_problem {
	const struct wss_pack_guest *guests;
	size_t n_guests;
	const struct wss_pack_host *hosts;
	size_t n_hosts;
	const struct wss_pack_apart *aparts;
	size_t n_aparts;
	unsigned over_hours; /* hours of the week in which a host may be over its limit */
	size_t max_moves;    /* SIZE_MAX: any number */
	enum wss_pack_goal goal;
};

/* One move of a plan, after all steps before it are complete. */
struct wss_pack_step {
	uint32_t guest, from, to;
	bool aside; /* temporary: it moves on in a later step, once there is room for it */
};

/* Why a host stays bad. */
enum wss_pack_stay {
	WSS_PACK_STAY_PINNED,	 /* the guests that would have to leave it are pinned */
	WSS_PACK_STAY_NO_HOST,	 /* every other host is closed or bad, or there is none */
	WSS_PACK_STAY_LEFT_OUT,	 /* moves off it wait for each other */
	WSS_PACK_STAY_MAX_MOVES, /* max_moves allows no more */
	WSS_PACK_STAY_NO_ROOM,	 /* the guests that could leave it fit on no other host */
	WSS_PACK_STAYS
};

struct wss_pack_plan {
	uint32_t *host_of;   /* the host of each guest; free() it */
	size_t moves;	     /* guests that change hosts, or steps once there are any */
	uint64_t copy_bytes; /* sum of theirs */
	size_t hosts_before, hosts_after; /* hosts with guests, or to be kept */
	size_t bad_before, bad_after;	  /* hosts that are over their limits or have guests to be
					 kept apart */
	size_t bound;			  /* no plan, whatever it moves, has fewer hosts */
	/* Set by wss_pack_order(); free() both lists. */
	struct wss_pack_step *steps;
	size_t n_steps;
	uint32_t *left_out; /* guests whose moves wait for each other */
	size_t n_left_out;
	size_t bad_why[WSS_PACK_STAYS]; /* bad_after, by the reason */
};

/*
 * Makes a plan. A host that is bad before and cannot be repaired stays bad, but gets no further
 * guest; no other becomes bad. The same problem always has the same plan.
 * WSS_ERR_INTERRUPTED.
 */
int wss_pack_solve(const struct wss_pack_problem *problem, struct wss_pack_plan *ret_plan,
		   struct wss_error *err);

/*
 * Finds an order for the moves of a plan in which no move brings a host over its limit, or to a
 * guest that it must be apart from, at any moment: a guest needs its memory on both hosts until
 * its move is complete. Moves that wait for each other are broken up by moving a guest aside to a
 * third host in use, within max_moves. If that is not possible they are left out, and the plan's
 * other figures become those without them. WSS_ERR_INTERRUPTED.
 */
int wss_pack_order(const struct wss_pack_problem *problem, struct wss_pack_plan *plan,
		   struct wss_error *err);

/* Returns the number of hosts that are bad before any move. */
size_t wss_pack_count_bad(const struct wss_pack_problem *problem);

/*
 * Returns the volume lower bound: the smallest number of hosts whose limits add up to what all
 * guests need together, in each hour, and to each of their sums. Hosts that cannot be emptied are among them. If even all
 * hosts are too few, returns their number.
 */
size_t wss_pack_bound(const struct wss_pack_problem *problem);
