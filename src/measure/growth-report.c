/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "measure/growth-report.h"

#include "base/number.h"

/* Whether two windows may be averaged, that is, have the same method and granularity. */
static bool same_kind(const struct wss_sample *a, const struct wss_sample *b)
{
	return a->method == b->method && a->granularity_bytes.value == b->granularity_bytes.value;
}

bool wss_growth_add(struct wss_growth *growth, const struct wss_sample *sample, unsigned vcpus)
{
	if (growth->windows && !same_kind(sample, &growth->last))
		return false;
	wss_grid_add(&growth->grid, sample->curve, sample->n_curve, vcpus);
	growth->last = *sample;
	growth->windows++;
	if (sample->quality == WSS_QUALITY_DEGRADED)
		growth->degraded++;
	return true;
}

struct wss_growth_drawn wss_growth_drawn(const struct wss_growth *growth)
{
	return (struct wss_growth_drawn){
		.domain = growth->last.domain,
		.method = growth->last.method,
		.granularity_bytes = growth->last.granularity_bytes.value,
		.degraded = growth->degraded > 0,
		.rss_bytes = growth->last.memory.rss_bytes,
		.balloon_bytes = growth->last.memory.balloon_bytes,
		.grid = &growth->grid,
	};
}

/* Row of a table: a grid point of a guest's curve. */
struct point_row {
	const struct wss_growth *growth;
	const struct wss_grid_point *point;
	struct wss_value mean, min, max;
	bool knee;
};

static const void *growth_of(const void *row)
{
	return ((const struct point_row *)row)->growth;
}

static const void *point_of(const void *row)
{
	return ((const struct point_row *)row)->point;
}

#define FIELD(member, kind) WSS_FIELD(struct point_row, member, kind)
#define GROWTH(member, kind) WSS_FIELD_OF(growth_of, struct wss_growth, member, kind)
#define POINT(member, kind) WSS_FIELD_OF(point_of, struct wss_grid_point, member, kind)

static const struct wss_column columns[] = {
	{"domain", NULL, "DOMAIN", -12, GROWTH(last.domain, TEXT), "Name of the guest"},
	{"method", NULL, "METHOD", -6, GROWTH(last.method, TEXT),
	 "Name of the method that measured it"},
	{"granularity_bytes", NULL, "GRAN", 5, GROWTH(last.granularity_bytes, BYTES),
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
	{"degraded_windows", NULL, "DEGRADED", 8, GROWTH(degraded, COUNT),
	 "Degraded windows of the guest, a count"},
	{"low_bytes", NULL, "WSS-LOW", 8, POINT(bound_low_bytes, BYTES),
	 "Smallest lower bound of the windows, if the method only bounds the set, in bytes"},
	{"high_bytes", NULL, "WSS-HIGH", 8, POINT(bound_high_bytes, BYTES),
	 "Largest upper bound of the windows, in bytes"},
};

const struct wss_report_layout wss_growth_layout = {
	.schema = "virt-wss/growth/1",
	.array_key = "points",
	.columns = columns,
	.n_columns = sizeof(columns) / sizeof(columns[0]),
	.shown = "domain,seconds,mean_bytes,min_bytes,max_bytes,windows,knee",
	.wide = "domain,method,granularity_bytes,seconds,mean_bytes,min_bytes,max_bytes,"
		"fault_high_bytes,low_bytes,high_bytes,windows,degraded_windows,knee",
};

/* Windows of pages larger than 4 KiB give upper bounds. */
static struct wss_value point_size(const struct wss_growth *growth, uint64_t bytes)
{
	return wss_value_bounded(wss_value_number(bytes, WSS_KIND_BYTES),
				 wss_bound_of_granularity(growth->last.granularity_bytes.value));
}

static void print_row(struct wss_report *report, const struct wss_growth *growth, size_t i)
{
	const struct wss_grid_point *point = &growth->grid.points[i];
	const struct point_row row = {
		.growth = growth,
		.point = point,
		.mean = point_size(growth, wss_u64_from_double(point->mean_bytes + 0.5)),
		.min = point_size(growth, point->min_bytes),
		.max = point_size(growth, point->max_bytes),
		.knee = i == growth->grid.knee,
	};

	if (point->n)
		wss_report_row(report, &row);
}

void wss_growth_report(const struct wss_growth *growth, struct wss_report *report)
{
	for (size_t i = 0; i < growth->grid.n; i++)
		print_row(report, growth, i);
}
