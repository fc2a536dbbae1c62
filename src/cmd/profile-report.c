/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "cmd/plot.h"
#include "cmd/profile.h"
#include "out/growth-chart.h"
#include "out/width.h"

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
};

static const struct wss_sample *last_of(const void *row)
{
	return &((const struct point_row *)row)->profile->last;
}

static struct wss_value point_get_domain(const void *row)
{
	return wss_value_text(last_of(row)->domain);
}

static struct wss_value point_get_method(const void *row)
{
	return wss_value_text(last_of(row)->method);
}

static struct wss_value point_get_granularity(const void *row)
{
	return wss_value_amount(last_of(row)->granularity_bytes, WSS_KIND_BYTES);
}

static struct wss_value point_get_seconds(const void *row)
{
	return wss_value_number(((const struct point_row *)row)->point->ns, WSS_KIND_DURATION);
}

/* Windows of pages larger than 4 KiB give upper bounds. */
static struct wss_value point_size_value(const void *row, uint64_t bytes)
{
	return wss_value_bounded(wss_value_number(bytes, WSS_KIND_BYTES),
				 last_of(row)->granularity_bytes.value > 4096 ? WSS_BOUND_AT_MOST
									      : WSS_BOUND_EXACT);
}

static struct wss_value point_get_mean(const void *row)
{
	const struct wss_grid_point *point = ((const struct point_row *)row)->point;

	return point_size_value(row, wss_u64_from_double(point->mean_bytes + 0.5));
}

static struct wss_value point_get_min(const void *row)
{
	return point_size_value(row, ((const struct point_row *)row)->point->min_bytes);
}

static struct wss_value point_get_max(const void *row)
{
	return point_size_value(row, ((const struct point_row *)row)->point->max_bytes);
}

static struct wss_value point_get_high(const void *row)
{
	return wss_value_amount(((const struct point_row *)row)->point->high_bytes,
				WSS_KIND_BYTES);
}

/* The method's own bound; without one the mean is the best estimate. */
static struct wss_value point_get_bound_low(const void *row)
{
	return wss_value_amount(((const struct point_row *)row)->point->bound_low_bytes,
				WSS_KIND_BYTES);
}

static struct wss_value point_get_bound_high(const void *row)
{
	return wss_value_amount(((const struct point_row *)row)->point->bound_high_bytes,
				WSS_KIND_BYTES);
}

static struct wss_value point_get_windows(const void *row)
{
	return wss_value_number(((const struct point_row *)row)->point->n, WSS_KIND_COUNT);
}

static struct wss_value point_get_knee(const void *row)
{
	const struct point_row *r = row;
	const struct wss_grid *grid = &r->profile->grid;

	return wss_value_number(grid->knee < grid->n && r->point == &grid->points[grid->knee],
				WSS_KIND_BOOL);
}

static struct wss_value point_get_degraded(const void *row)
{
	return wss_value_number(((const struct point_row *)row)->profile->degraded, WSS_KIND_COUNT);
}

static const struct wss_column columns[] = {
	{"domain", NULL, "DOMAIN", -12, point_get_domain, "Name of the guest", false},
	{"method", NULL, "METHOD", -6, point_get_method, "Name of the method that measured it",
	 false},
	{"granularity_bytes", NULL, "GRAN", 5, point_get_granularity,
	 "Granularity: the largest page-table entry seen, in bytes", false},
	{"seconds", NULL, "TIME", 8, point_get_seconds, "Time since the start of the window, in seconds",
	 false},
	{"mean_bytes", NULL, "WSS", 11, point_get_mean,
	 "Working set within that time, mean of the windows, in bytes", false},
	{"min_bytes", NULL, "MIN", 11, point_get_min, "The smallest of the windows, in bytes",
	 false},
	{"max_bytes", NULL, "MAX", 11, point_get_max, "The largest of the windows, in bytes",
	 false},
	{"fault_high_bytes", NULL, "HIGH", 8, point_get_high,
	 "Upper bound that allows for the time spent in faults, in bytes", false},
	{"windows", NULL, "WINDOWS", 7, point_get_windows,
	 "Windows that reached this time, a count", false},
	{"knee", NULL, "KNEE", -4, point_get_knee, "Whether growth stops here", false},
	{"degraded_windows", NULL, "DEGRADED", 8, point_get_degraded,
	 "Degraded windows of the guest, a count", false},
	{"low_bytes", NULL, "WSS-LOW", 8, point_get_bound_low,
	 "Smallest lower bound of the windows, if the method only bounds the set, in bytes",
	 false},
	{"high_bytes", NULL, "WSS-HIGH", 8, point_get_bound_high,
	 "Largest upper bound of the windows, in bytes", false},
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

static int print_rows(const struct profile_run *run, struct wss_error *err)
{
	struct wss_report *report;

	if (wss_report_open(stdout, run->cli->format, &run->cli->view, &wss_profile_layout, &report, err) < 0)
		return -1;
	wss_report_set_first_width(report, run->name_width);
	for (size_t i = 0; i < run->n; i++) {
		const struct guest_profile *profile = &run->profiles[i];

		for (size_t k = 0; k < profile->grid.n; k++)
			if (profile->grid.points[k].n)
				wss_report_row(report, &(struct point_row){
							       profile, &profile->grid.points[k] });
	}
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
	wss_auto_free struct wss_growth_drawn *list = calloc(run->n + 1, sizeof(*list));
	struct profile_chart chart = { .guests = list };
	char extra[48] = "";

	if (!list)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	for (size_t i = 0; i < run->n; i++) {
		if (!run->profiles[i].windows)
			continue;
		list[chart.n++] = growth_of(&run->profiles[i]);
		profile_describe_source(run, &run->profiles[i], &chart.source, extra,
					sizeof(extra));
	}
	return chart.n ? wss_plot_write(run->options->plot, profile_draw, &chart, err) : 0;
}
