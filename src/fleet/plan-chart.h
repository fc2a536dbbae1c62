/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Picture of a plan: what the guests of each host need and may take, before and after. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum wss_plan_state {
	WSS_PLAN_WITHIN, /* its limit */
	WSS_PLAN_RISKED, /* over the limit, in no more hours than may be */
	WSS_PLAN_OVER, /* in more hours than that, or over all memory, or guests may take too much */
};

struct wss_plan_bar {
	const char *name; /* of the host */
	/* Need of its guests in their worst hour as a share of its memory; 0: no guest. */
	double before, after;
	/* Sum of the memory that they may take, likewise. */
	double size_before, size_after;
	enum wss_plan_state state_before, state_after;
};

struct wss_plan_chart {
	const struct wss_plan_bar *bars; /* in the order of the picture */
	size_t n;
	double limit;	   /* safe share of a host's memory */
	double overcommit; /* how many times a host's memory its guests may take */
	double risk;	   /* share of the hours in which a host may be over it */
	size_t hosts_before, hosts_after, hosts_bound, moves;
	uint64_t copy_bytes;
};

/*
 * Draws an SVG with a bar for each host, before and below that after. The caller checks the
 * stream for errors.
 */
void wss_plan_plot(FILE *f, const struct wss_plan_chart *plan);
