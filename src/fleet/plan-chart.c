/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fleet/plan-chart.h"

#include <math.h>

#include "base/number.h"
#include "base/units.h"
#include "show/chart.h"
#include "show/svg.h"

#define LEFT 92.0
#define RIGHT 40.0
#define PANEL_HEIGHT 190.0
/* Room between the panels, for the names of hosts and the heading of the second one. */
#define PANEL_GAP 64.0
#define HEADING_Y 8.0
#define NAME_Y 18.0
/* The legend's entry for what guests may take at most. */
#define LIMIT_KEY 4
/* More hosts than that have no names. */
#define NAMED_MAX 16
/* Share of its room that a bar fills; thin bars fill all of it. */
#define BAR_SHARE 0.8
#define THIN 4.0

struct plan_panel {
	struct wss_axis_box box;
	const struct wss_plan_chart *plan;
	bool after;
	double most; /* share at the top */
};

static double panel_y(const struct plan_panel *panel, double share)
{
	return panel->box.bottom -
	       (panel->box.bottom - panel->box.top) * fmin(1, share / panel->most);
}

static void panel_draw_axis(FILE *f, const struct plan_panel *panel)
{
	struct wss_ticks ticks = {.vertical = true};
	char text[16];

	for (int i = 0; i <= (int)(panel->most * 4 + 0.001); i++) {
		snprintf(text, sizeof(text), "%d %%", i * 25);
		wss_ticks_add(&ticks, panel_y(panel, i / 4.0), text);
	}
	wss_axis_draw(f, &panel->box, &ticks, "of the host's memory", true);
	wss_svg_line(f, panel->box.left, panel->box.bottom, panel->box.right, panel->box.bottom,
		     "axis");
}

static void panel_draw_bars(FILE *f, const struct plan_panel *panel)
{
	const struct wss_plan_chart *plan = panel->plan;
	double room = (panel->box.right - panel->box.left) / (double)plan->n;
	double width = room < THIN ? room : room * BAR_SHARE;
	static const char *const colours[] = {
		[WSS_PLAN_WITHIN] = "s0", [WSS_PLAN_RISKED] = "s3", [WSS_PLAN_OVER] = "s1"};
	char name[256];

	for (size_t i = 0; i < plan->n; i++) {
		const struct wss_plan_bar *bar = &plan->bars[i];
		double share = panel->after ? bar->after : bar->before;
		double x = panel->box.left + room * (double)i, y = panel_y(panel, share);

		if (share > 0)
			wss_svg_rect(f, x + (room - width) / 2, y, width, panel->box.bottom - y,
				     colours[panel->after ? bar->state_after : bar->state_before]);
		share = panel->after ? bar->size_after : bar->size_before;
		y = panel_y(panel, share);
		if (share > 0)
			wss_svg_line(f, x + (room - width) / 2, y, x + (room + width) / 2, y,
				     "curve s2");
		if (plan->n > NAMED_MAX)
			continue;
		wss_chart_fit_name(bar->name, WSS_SVG_FONT_SMALL, room, name, sizeof(name));
		wss_svg_text(f, x + room / 2, panel->box.bottom + NAME_Y, WSS_ANCHOR_MIDDLE,
			     "small", name);
	}
}

static void panel_draw(FILE *f, const struct plan_panel *panel)
{
	double y = panel_y(panel, panel->plan->limit), most_y;
	size_t hosts = panel->after ? panel->plan->hosts_after : panel->plan->hosts_before;
	char text[64];

	snprintf(text, sizeof(text), "%s: %zu host%s in use", panel->after ? "After" : "Before",
		 hosts, wss_plural(hosts));
	wss_svg_text(f, panel->box.left, panel->box.top - HEADING_Y, WSS_ANCHOR_START, "value",
		     text);
	panel_draw_axis(f, panel);
	most_y = panel_y(panel, panel->plan->overcommit);
	wss_svg_line(f, panel->box.left, most_y, panel->box.right, most_y, "mark");
	if (panel->plan->n)
		panel_draw_bars(f, panel);
	wss_svg_line(f, panel->box.left, y, panel->box.right, y, "reference");
}

/* Returns the share at the top of both panels: a multiple of 25 %, at least all memory. */
static double largest_share(const struct wss_plan_chart *plan)
{
	double most = fmax(1, fmin(plan->overcommit, 3));

	for (size_t i = 0; i < plan->n; i++) {
		most = fmax(most, fmax(plan->bars[i].before, plan->bars[i].after));
		most = fmax(most, fmax(plan->bars[i].size_before, plan->bars[i].size_after));
	}
	/* What is far over is cut off there. */
	return fmin(3, ceil(most * 4) / 4);
}

void wss_plan_plot(FILE *f, const struct wss_plan_chart *plan)
{
	struct wss_chart_key keys[] = {
		{WSS_CHART_AREA, "s0", "need of its guests in their worst hour of the week", "",
		 false},
		{WSS_CHART_AREA, "s1", "over a limit", "", false},
		{WSS_CHART_LINE, "reference", "safe limit of that", "", false},
		{WSS_CHART_LINE, "curve s2", "memory that its guests may take", "", false},
		{WSS_CHART_LINE, "mark", "limit of that", "", false},
		{WSS_CHART_AREA, "s3", "over the limit in no more hours than the risk allows", "",
		 false},
	};
	char copy[16], risk[64] = "", extra[256];
	const struct wss_chart chart = {
		.name = "Plan for a fleet",
		.before = "What the hosts' guests need and may take, before and after",
		.after = "",
		.source = {.extra = extra},
		.keys = keys,
		/* Without a risk no host has the last state. */
		.n_keys = sizeof(keys) / sizeof(keys[0]) - !(plan->risk > 0),
		.left = LEFT,
		.right = RIGHT,
		.above = 24,
		.plot_height = 2 * PANEL_HEIGHT + PANEL_GAP,
		.below = WSS_AXIS_BELOW};
	struct plan_panel before = {.plan = plan, .most = largest_share(plan)}, after;

	wss_size_format(plan->copy_bytes, copy, sizeof(copy));
	if (plan->risk > 0)
		snprintf(risk, sizeof(risk), "; risk %.4g %%", plan->risk * 100);
	if (plan->overcommit < 1 || plan->overcommit > 1)
		snprintf(keys[LIMIT_KEY].text, sizeof(keys[LIMIT_KEY].text),
			 "limit of that: overcommit %.4g", plan->overcommit);
	snprintf(extra, sizeof(extra),
		 "%zu host%s, fullest first%s; %zu move%s of %s; no plan needs fewer than %zu",
		 plan->n, wss_plural(plan->n), risk, plan->moves, wss_plural(plan->moves), copy,
		 plan->hosts_bound);
	wss_chart_begin(f, &chart, &before.box);
	after = before;
	after.after = true;
	before.box.bottom = before.box.top + PANEL_HEIGHT;
	after.box.top = after.box.bottom - PANEL_HEIGHT;
	panel_draw(f, &before);
	panel_draw(f, &after);
	wss_svg_end(f);
}
