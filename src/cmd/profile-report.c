/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/number.h"
#include "show/plot.h"
#include "cmd/profile.h"
#include "measure/growth-chart.h"

static struct wss_growth_drawn growth_of(struct guest_profile *profile)
{
	return (struct wss_growth_drawn){
		.domain = profile->last.domain,
		.method = profile->last.method,
		.granularity_bytes = profile->last.granularity_bytes.value,
		.degraded = profile->degraded > 0,
		.rss_bytes = profile->last.memory.rss_bytes,
		.balloon_bytes = profile->last.memory.balloon_bytes,
		.grid = &profile->grid,
	};
}

/* Row of a table: a grid point of a guest's curve. */
struct point_row {
	const struct guest_profile *profile;
	const struct wss_grid_point *point;
	struct wss_value mean, min, max;
	bool knee;
};

static const void *profile_of(const void *row)
{
	return ((const struct point_row *)row)->profile;
}

static const void *point_of(const void *row)
{
	return ((const struct point_row *)row)->point;
}

#define FIELD(member, kind) WSS_FIELD(struct point_row, member, kind)
#define PROFILE(member, kind) WSS_FIELD_OF(profile_of, struct guest_profile, member, kind)
#define POINT(member, kind) WSS_FIELD_OF(point_of, struct wss_grid_point, member, kind)

static const struct wss_column columns[] = {
	{"domain", NULL, "DOMAIN", -12, PROFILE(last.domain, TEXT), "Name of the guest"},
	{"method", NULL, "METHOD", -6, PROFILE(last.method, TEXT),
	 "Name of the method that measured it"},
	{"granularity_bytes", NULL, "GRAN", 5, PROFILE(last.granularity_bytes, BYTES),
	 "Granularity: the largest page-table entry seen, in bytes"},
	{"seconds", NULL, "TIME", 8, POINT(ns, DURATION),
	 "Time since the start of the window, in seconds"},
	{"mean_bytes", NULL, "WSS", 11, FIELD(mean, BYTES),
	 "Working set within that time, mean of the windows, in bytes"},
	{"min_bytes", NULL, "MIN", 11, FIELD(min, BYTES), "The smallest of the windows, in bytes"},
	{"max_bytes", NULL, "MAX", 11, FIELD(max, BYTES), "The largest of the windows, in bytes"},
	{"fault_high_bytes", NULL, "HIGH", 8, POINT(high_bytes, BYTES),
	 "Upper bound that allows for the time spent in faults, in bytes"},
	{"windows", NULL, "WINDOWS", 7, POINT(n, COUNT), "Windows that reached this time, a count"},
	{"knee", NULL, "KNEE", -4, FIELD(knee, BOOL), "Whether growth stops here"},
	{"degraded_windows", NULL, "DEGRADED", 8, PROFILE(degraded, COUNT),
	 "Degraded windows of the guest, a count"},
	{"low_bytes", NULL, "WSS-LOW", 8, POINT(bound_low_bytes, BYTES),
	 "Smallest lower bound of the windows, if the method only bounds the set, in bytes"},
	{"high_bytes", NULL, "WSS-HIGH", 8, POINT(bound_high_bytes, BYTES),
	 "Largest upper bound of the windows, in bytes"},
};

const struct wss_report_layout wss_profile_layout = {
	.schema = "virt-wss/growth/1",
	.array_key = "points",
	.columns = columns,
	.n_columns = sizeof(columns) / sizeof(columns[0]),
	.shown = "domain,seconds,mean_bytes,min_bytes,max_bytes,windows,knee",
	.wide = "domain,method,granularity_bytes,seconds,mean_bytes,min_bytes,max_bytes,"
		"fault_high_bytes,low_bytes,high_bytes,windows,degraded_windows,knee",
};

/* Windows of pages larger than 4 KiB give upper bounds. */
static struct wss_value point_size(const struct guest_profile *profile, uint64_t bytes)
{
	return wss_value_bounded(wss_value_number(bytes, WSS_KIND_BYTES),
				 wss_bound_of_granularity(profile->last.granularity_bytes.value));
}

static void print_row(struct wss_report *report, const struct guest_profile *profile, size_t i)
{
	const struct wss_grid_point *point = &profile->grid.points[i];
	const struct point_row row = {
		.profile = profile,
		.point = point,
		.mean = point_size(profile, wss_u64_from_double(point->mean_bytes + 0.5)),
		.min = point_size(profile, point->min_bytes),
		.max = point_size(profile, point->max_bytes),
		.knee = i == profile->grid.knee,
	};

	if (point->n)
		wss_report_row(report, &row);
}

static int print_rows(const struct profile_run *run, struct wss_error *err)
{
	struct wss_report *report;

	if (wss_report_open(stdout, run->cli->format, &run->cli->view, &wss_profile_layout, &report,
			    err) < 0)
		return -1;
	wss_report_set_first_width(report, run->name_width);
	for (size_t i = 0; i < run->n; i++)
		for (size_t k = 0; k < run->profiles[i].grid.n; k++)
			print_row(report, &run->profiles[i], k);
	return wss_report_close(report, err);
}

/* Prints the table as a drawing, unless columns or an order were requested. */
int wss_profile_print(struct profile_run *run, struct wss_error *err)
{
	const struct wss_view *view = &run->cli->view;

	if (run->cli->format != WSS_FORMAT_TABLE || view->wide || view->columns || view->sort)
		return print_rows(run, err);
	for (size_t i = 0; i < run->n; i++) {
		struct wss_growth_drawn growth = growth_of(&run->profiles[i]);

		if (run->profiles[i].windows)
			wss_growth_print(stdout, &growth, wss_terminal_width());
	}
	return 0;
}

/* Content of one chart. */
struct profile_chart {
	struct wss_chart_source source;
	const struct wss_growth_drawn *guests;
	size_t n;
};

static void profile_draw(FILE *f, const void *opaque)
{
	const struct profile_chart *chart = opaque;

	wss_growth_plot(f, &chart->source, chart->guests, chart->n);
}

/*
 * Shows the time of the first guest's last window. The number of windows may differ between
 * guests.
 */
static void profile_describe_source(const struct profile_run *run,
				    const struct guest_profile *profile,
				    struct wss_chart_source *source, char *extra, size_t size)
{
	if (source->host)
		return;
	source->host = run->host;
	source->start = profile->last.wall;
	source->length_ns = profile->last.requested_window_ns;
	if (profile->windows > 1)
		snprintf(extra, size, "mean of %u windows", profile->windows);
	source->extra = extra;
}

int wss_profile_plot(struct profile_run *run, struct wss_error *err)
{
	wss_auto_free struct wss_growth_drawn *list = wss_xcalloc(run->n, sizeof(*list));
	struct profile_chart chart = {.guests = list};
	char extra[48] = "";

	for (size_t i = 0; i < run->n; i++) {
		if (!run->profiles[i].windows)
			continue;
		list[chart.n++] = growth_of(&run->profiles[i]);
		profile_describe_source(run, &run->profiles[i], &chart.source, extra,
					sizeof(extra));
	}
	return chart.n ? wss_plot_write("--plot", run->options->plot, profile_draw, &chart, err)
		       : 0;
}
