/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A plan in the making, shared by the parts of the packer. */
#pragma once

#include "fleet/pack.h"

#define PACK_NOWHERE UINT32_MAX

/* Vectors of hours are read and added four at a time. */
typedef float pack_four __attribute__((vector_size(16), aligned(4), may_alias));
typedef int32_t pack_mask __attribute__((vector_size(16)));
#define PACK_FOURS (WSS_PACK_HOURS / 4)

static inline pack_four pack_four_of(const float *mib, int i)
{
	return *(const pack_four *)(const void *)(mib + 4 * i);
}

struct pack_load {
	float mib[WSS_PACK_HOURS];
	uint32_t n;	/* guests */
	unsigned over;	/* hours over the limit */
	uint16_t worst; /* the hour of the largest load */
	uint64_t sum_bytes[WSS_PACK_SUMS];
	bool open; /* guests may be put there */
};

struct pack_state {
	const struct wss_pack_problem *problem;
	uint32_t *host_of;	   /* of each guest, or PACK_NOWHERE */
	struct pack_load *loads;   /* of each host */
	uint32_t *next, *previous; /* guests of a host are a list that PACK_NOWHERE ends */
	uint32_t *first;	   /* of each host */
	/* Of each guest: */
	uint16_t *worst; /* the hour of its largest need */
	float *mean_mib;
	uint32_t *groups_at; /* n_guests + 1 places in groups */
	uint32_t *groups;    /* aparts of each guest */
	uint64_t work;	     /* exchanges that may still be considered */
};

/* Starts with every guest on its own host, all hosts open. */
void pack_state_init(struct pack_state *state, const struct wss_pack_problem *problem);
void pack_state_release(struct pack_state *state);

void pack_put(struct pack_state *state, uint32_t guest, uint32_t host);
void pack_take(struct pack_state *state, uint32_t guest);

/* Whether a host has room for a guest that is not on it, and no guest from which it must be
 * kept apart. */
bool pack_fits(const struct pack_state *state, uint32_t guest, uint32_t host);

/* Whether a guest must be kept apart from one on the host, other than without (or
 * PACK_NOWHERE). */
bool pack_conflicts(const struct pack_state *state, uint32_t guest, uint32_t host,
		    uint32_t without);

/* Returns by how much the sums of a host are too large with these bytes more and less, in MiB. */
double pack_sums_excess(const struct pack_state *state, uint32_t host, const uint64_t *more,
			const uint64_t *less);

/* Whether the needs or the sums of a host are over its limits. */
bool pack_is_over(const struct pack_state *state, uint32_t host);

/* Whether a host is over its limits, or has guests that must be kept apart. */
bool pack_is_bad(const struct pack_state *state, uint32_t host);

/*
 * Puts a guest that is nowhere on the host where it leaves the least room, the sum of its
 * squares over the hours, that is where its hours match the free ones. Not on the host except.
 * False: it fits nowhere.
 */
bool pack_place(struct pack_state *state, uint32_t guest, uint32_t except);

/*
 * Puts n guests that are nowhere, the largest first; reorders the list. Returns the number of
 * those that fit nowhere, and keeps them at the beginning of the list.
 */
size_t pack_place_all(struct pack_state *state, uint32_t *guests, size_t n);

/*
 * Puts n guests that are nowhere on hosts without room for them, then moves and exchanges
 * guests until all hosts are within their limits. False: some are not, or some guests are
 * still nowhere.
 */
bool pack_squeeze(struct pack_state *state, const uint32_t *guests, size_t n);

/*
 * Moves guests off bad hosts, with as few moves as possible; within max_moves it repairs as many hosts as
 * possible. Hosts that stay bad are closed then. Returns how many were bad before.
 */
size_t pack_repair(struct pack_state *state);

/* Returns why a bad host stays so; left_out: n_left_out guests whose moves are left out. */
enum wss_pack_stay pack_why_bad(const struct pack_state *state, uint32_t host,
				const uint32_t *left_out, size_t n_left_out);

/* Number of hosts in use: with guests, or to be kept. */
size_t pack_count_used(const struct pack_state *state);

/* Number of guests that are not where they run. */
size_t pack_count_moves(const struct pack_state *state);
