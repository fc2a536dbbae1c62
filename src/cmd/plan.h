/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The parts of plan: what is to be packed, the operator's constraints, the rows. */
#ifndef WSS_CMD_PLAN_H
#define WSS_CMD_PLAN_H

#include "client/estate.h"
#include "client/prometheus.h"
#include "cmd/cmd.h"
#include "wss/pack.h"

struct plan_options {
	enum wss_pack_goal goal;
	double limit;	    /* share of a host's memory that guests may need */
	double risk;	    /* share of the hours of a week in which they may need more */
	uint64_t max_moves; /* UINT64_MAX: any number */
	struct wss_amount host_memory_bytes; /* of hosts whose memory is not known */
	const char *constraints, *plot;	     /* files, or NULL */
	struct wss_prometheus_options prometheus; /* without a URL: files alone */
};

/* A guest of the fleet, as the plan sees it. */
struct plan_guest {
	bool unknown;	    /* nothing says how much it needs: it stays, and its host gets no guest */
	bool off;	    /* it is shut off: it needs nothing, and stays */
	bool doubtful;	    /* its host or its own figures contradict each other: it stays */
	uint64_t peak_bytes; /* its need in its worst hour */
	/* The least that it may shrink to: its need at the stated risk, without QEMU's memory. */
	uint64_t steady_bytes;
	struct wss_amount shrink_to_bytes; /* known if it has to shrink */
};

/* A host before and after the plan. */
struct plan_host {
	const char *name;
	uint64_t memory_bytes, limit_bytes; /* memory 0: unknown, and the host is left alone */
	struct plan_load {
		uint64_t guests;
		uint64_t peak_bytes; /* need of its guests in their worst hour together */
		uint64_t hour;	     /* that hour of the week */
		uint64_t over_hours; /* hours in which it is over the limit */
	} before, after;
	bool closed, keep;
};

struct plan {
	const struct plan_options *options;
	struct wss_estate fleet;
	struct plan_guest *guests; /* as in the fleet */
	struct plan_host *hosts;   /* as in the fleet */
	struct wss_pack_guest *pack_guests;
	struct wss_pack_host *pack_hosts;
	struct wss_pack_apart *aparts;
	size_t n_aparts, n_apart_guests;
	struct wss_pack_problem problem;
	struct wss_pack_plan solved;
	uint64_t n_unknown, n_off, n_shrinks, shrink_bytes, n_aside;
};

void plan_release(struct plan *plan);

/*
 * Makes plan->problem from plan->fleet, the constraints and the options. Errors name the host or guest, or the
 * line of the constraints. WSS_ERR_FAILED, WSS_ERR_NO_MEMORY.
 */
int plan_prepare(struct plan *plan, struct wss_error *err);

/* Solves it, and finds which guests have to shrink, so that their hosts stay within the limits. */
int plan_solve(struct plan *plan, struct wss_error *err);

/*
 * Reads the operator's constraints from plan->options->constraints into plan->pack_guests, plan->hosts and
 * plan->aparts. WSS_ERR_FAILED, WSS_ERR_NO_MEMORY.
 */
int plan_constraints_read(struct plan *plan, struct wss_error *err);

/* Prints the plan. The report is open, and closed by the caller. */
void plan_report(const struct plan *plan, struct wss_report *report);

/* Draws the hosts before and after to the file of plan->options->plot. The errors of wss_plot_write(). */
int plan_plot(const struct plan *plan, struct wss_error *err);

extern const struct wss_report_layout plan_layout;
extern const struct wss_report_layout *const plan_layouts[];

#endif
