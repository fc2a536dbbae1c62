/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A plan for a fleet: what is to be packed, made of a cluster and the operator's constraints, how it was packed, which guests
 * have to shrink for it, and its picture.
 */
#pragma once

#include <stdio.h>

#include "fleet/cluster.h"
#include "fleet/pack.h"
#include "fleet/prometheus.h"

struct wss_plan_options {
	enum wss_pack_goal goal;
	double limit;	    /* share of a host's memory that guests may need */
	double risk;	    /* share of the hours of a week in which they may need more */
	double overcommit;  /* how many times a host's memory its guests may take */
	uint64_t max_moves; /* UINT64_MAX: any number */
	struct wss_amount host_memory_bytes;	  /* of hosts whose memory is not known */
	const char *host_memory_setting;	  /* its name in messages */
	const char *constraints, *plot;		  /* files, or NULL */
	struct wss_prometheus_options prometheus; /* without a URL: files alone */
};

/* A guest of the fleet, as the plan sees it. */
struct wss_plan_guest {
	bool unknown;	/* nothing says how much it needs: it stays, and its host gets no guest */
	bool too_large; /* it is unknown because no sum can hold it */
	bool off;	/* it is shut off: it needs nothing, and stays */
	bool doubtful;	/* its host or its own figures contradict each other: it stays */
	bool unsized;	/* it counts with the memory that it has, because no size is recommended */
	uint64_t peak_bytes; /* its need in its worst hour */
	/*
	 * The size that it may shrink to, without QEMU's memory: the recommended one, but not less than its need at
	 * the stated risk. Unknown: it must not shrink.
	 */
	struct wss_amount least_bytes;
	struct wss_amount shrink_to_bytes; /* known if it has to shrink */
};

/* A host before and after the plan. */
struct wss_plan_host {
	const char *name;
	uint64_t memory_bytes, limit_bytes; /* memory 0: unknown, and the host is left alone */
	uint64_t size_limit_bytes;	    /* what its guests may take */
	uint64_t n_unknown; /* guests of which nothing is known, which are in no sum */
	struct wss_plan_load {
		uint64_t guests;
		uint64_t peak_bytes; /* need of its guests in their worst hour together */
		uint64_t hour;	     /* that hour of the week */
		uint64_t over_hours; /* hours in which it is over the limit */
		uint64_t size_bytes; /* what its guests may take */
	} before, after;
	bool closed, keep;
};

struct wss_plan {
	const struct wss_plan_options *options;
	struct wss_cluster fleet;
	struct wss_plan_guest *guests; /* as in the fleet */
	struct wss_plan_host *hosts;   /* as in the fleet */
	struct wss_pack_guest *pack_guests;
	struct wss_pack_host *pack_hosts;
	struct wss_pack_apart *aparts;
	size_t n_aparts, n_apart_guests;
	struct wss_pack_problem problem;
	struct wss_pack_plan solved;
	uint64_t n_unknown, n_unsized, n_off, n_shrinks, shrink_bytes, n_aside;
};

void wss_plan_release(struct wss_plan *plan);

/*
 * Makes plan->problem from plan->fleet, the constraints and the options. Errors name the host or guest, or the
 * line of the constraints. WSS_ERR_FAILED.
 */
int wss_plan_prepare(struct wss_plan *plan, struct wss_error *err);

/* Solves it, and finds which guests have to shrink, so that their hosts stay within the limits. */
int wss_plan_solve(struct wss_plan *plan, struct wss_error *err);

/* Whether no guest can move between that host and another one, because different programs manage their guests. */
bool wss_plan_host_is_foreign(const struct wss_plan *plan, size_t i);

/* Has a guest count in plan->pack_guests with its shrink_to_bytes if known, or else with what it has. */
void wss_plan_guest_count(struct wss_plan *plan, size_t i);

/*
 * Finds which guests have to shrink before the first step, so that each step and all hosts in the end have room, and
 * counts them with their new sizes in plan->pack_guests.
 */
void wss_plan_shrinks_find(struct wss_plan *plan);

/*
 * Reads the operator's constraints from plan->options->constraints into plan->pack_guests, plan->hosts and
 * plan->aparts. WSS_ERR_FAILED.
 */
int wss_plan_constraints_read(struct wss_plan *plan, struct wss_error *err);

/* Draws the hosts before and after as an SVG picture. The caller checks the stream for errors. */
void wss_plan_draw(FILE *f, const struct wss_plan *plan);
