/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "fleet/plan-chart.h"
#include "fleet/plan.h"

static enum wss_plan_state load_state(const struct wss_plan *plan, const struct wss_plan_host *host,
				      const struct wss_plan_load *load)
{
	if (load->over_hours > plan->problem.over_hours ||
	    (host->memory_bytes && load->peak_bytes > host->memory_bytes) ||
	    load->size_bytes > host->size_limit_bytes)
		return WSS_PLAN_OVER;
	return load->over_hours ? WSS_PLAN_RISKED : WSS_PLAN_WITHIN;
}

static int bars_compare(const void *a, const void *b)
{
	const struct wss_plan_bar *left = a, *right = b;

	if (left->before > right->before)
		return -1;
	return left->before < right->before;
}

static void bars_fill(const struct wss_plan *plan, struct wss_plan_bar *bars)
{
	for (size_t i = 0; i < plan->fleet.n_hosts; i++) {
		const struct wss_plan_host *host = &plan->hosts[i];
		/* Without its memory its load is not known. */
		double memory = host->memory_bytes ? (double)host->memory_bytes : INFINITY;

		bars[i] = (struct wss_plan_bar){
			.name = host->name,
			.before = (double)host->before.peak_bytes / memory,
			.after = (double)host->after.peak_bytes / memory,
			.size_before = (double)host->before.size_bytes / memory,
			.size_after = (double)host->after.size_bytes / memory,
			.state_before = load_state(plan, host, &host->before),
			.state_after = load_state(plan, host, &host->after),
		};
	}
	qsort(bars, plan->fleet.n_hosts, sizeof(*bars), bars_compare);
}

void wss_plan_draw(FILE *f, const struct wss_plan *plan)
{
	wss_auto_free struct wss_plan_bar *bars = wss_xcalloc(plan->fleet.n_hosts, sizeof(*bars));
	const struct wss_plan_chart chart = {.bars = bars,
					     .n = plan->fleet.n_hosts,
					     .limit = plan->options->limit,
					     .risk = plan->options->risk,
					     .overcommit = plan->options->overcommit,
					     .hosts_before = plan->solved.hosts_before,
					     .hosts_after = plan->solved.hosts_after,
					     .hosts_bound = plan->solved.bound,
					     .moves = plan->solved.moves,
					     .copy_bytes = plan->solved.copy_bytes};

	bars_fill(plan, bars);
	wss_plan_plot(f, &chart);
}
