/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "measure/growth-chart.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/units.h"
#include "measure/growth-private.h"
#include "show/svg.h"

#define LEFT 92.0
#define RIGHT 40.0
#define PLOT_HEIGHT 400.0
/* Width of a name in the legend; with several guests, sizes follow the name. */
#define NAME_WIDTH 330.0
#define NAME_WIDTH_OF_MANY 190.0
/* Approximate number of ticks on the size axis. */
#define SIZE_TICKS 8
/* The bounds of more guests than this would cover each other. */
#define FAINT_FROM 3
/* Legend keys that belong to no guest: the bands and the line styles. */
#define KEYS_MORE 5

/* Logarithmic axes and their ends in the picture. */
struct growth_frame {
	double t_low, t_high; /* ns */
	double b_low, b_high; /* bytes */
	struct wss_axis_box box;
};

static double growth_x(const struct growth_frame *frame, double ns)
{
	return frame->box.left + (frame->box.right - frame->box.left) * log(ns / frame->t_low) /
					 log(frame->t_high / frame->t_low);
}

static double growth_y(const struct growth_frame *frame, double bytes)
{
	if (bytes < frame->b_low)
		bytes = frame->b_low;
	return frame->box.bottom - (frame->box.bottom - frame->box.top) *
					   log(bytes / frame->b_low) /
					   log(frame->b_high / frame->b_low);
}

static void frame_widen(struct growth_frame *frame, double bytes)
{
	if (bytes <= 0)
		return;
	frame->b_low = fmin(frame->b_low, bytes);
	frame->b_high = fmax(frame->b_high, bytes);
}

/* Skips times without a known value. */
static void widen_by_curve(struct growth_frame *frame, const struct wss_grid *grid)
{
	for (size_t i = 0; i < grid->n; i++) {
		const struct wss_grid_point *point = &grid->points[i];

		if (!point->n)
			continue;
		frame->t_low = fmin(frame->t_low, (double)point->ns);
		frame->t_high = fmax(frame->t_high, (double)point->ns);
		frame_widen(frame, (double)wss_growth_low(point));
		frame_widen(frame, (double)wss_growth_high(point));
	}
}

static struct growth_frame growth_fit(const struct wss_growth_drawn *guests, size_t n)
{
	struct growth_frame frame = {.t_low = 1e300, .b_low = 1e300};

	for (size_t i = 0; i < n; i++) {
		widen_by_curve(&frame, guests[i].grid);
		if (guests[i].rss_bytes.known)
			frame_widen(&frame, (double)guests[i].rss_bytes.value);
		if (guests[i].balloon_bytes.known)
			frame_widen(&frame, (double)guests[i].balloon_bytes.value);
	}
	if (frame.b_high <= 0)
		frame.b_low = frame.b_high = 1024.0 * 1024;
	if (frame.t_high <= 0) {
		frame.t_low = (double)guests[0].grid->points[0].ns;
		frame.t_high = (double)guests[0].grid->points[guests[0].grid->n - 1].ns;
	}
	if (frame.t_low >= frame.t_high)
		frame.t_low = frame.t_high / 10;
	return frame;
}

/* Finds round, evenly spaced sizes from one end of the axis to the other. */
static void find_sizes(struct growth_frame *frame, struct wss_ticks *ticks)
{
	int low = (int)floor(log2(frame->b_low) + 1e-9),
	    high = (int)ceil(log2(frame->b_high * 1.05));
	int step = (high - low + SIZE_TICKS - 1) / SIZE_TICKS;
	char text[24];

	if (step < 1)
		step = 1;
	high = low + (high - low + step - 1) / step * step;
	frame->b_low = exp2(low);
	frame->b_high = exp2(high);
	for (int i = low; i <= high && i < 64; i += step) {
		wss_axis_size_label(wss_u64_from_double(exp2(i)), text, sizeof(text));
		wss_ticks_add(ticks, growth_y(frame, exp2(i)), text);
	}
}

static void add_time(const struct growth_frame *frame, struct wss_ticks *ticks, double ns)
{
	char text[16];

	if (ns < frame->t_low * 0.999 || ns > frame->t_high * 1.001)
		return;
	/* Each has its own unit and three digits, because they lie decades apart. */
	wss_axis_time_label(ns, fmin(ns, 10e9) / 2, ns, text, sizeof(text));
	wss_ticks_add(ticks, growth_x(frame, ns), text);
}

/*
 * Finds the ticks of time: the ends, every decade, and times in between if there are few decades.
 */
static void find_times(const struct growth_frame *frame, struct wss_ticks *ticks)
{
	bool few = frame->t_high < frame->t_low * 100;
	double first = pow(10, floor(log10(frame->t_low)));
	size_t ends;

	add_time(frame, ticks, frame->t_low);
	add_time(frame, ticks, frame->t_high);
	ends = ticks->n;
	for (double t = first; t <= frame->t_high * 1.001; t *= 10)
		add_time(frame, ticks, t);
	for (double t = first; few && t <= frame->t_high * 1.001; t *= 10) {
		add_time(frame, ticks, 2 * t);
		add_time(frame, ticks, 5 * t);
	}
	/* From 2.1 s to 4 s there is no such time. */
	if (ticks->n == ends) {
		double step = wss_axis_time_step(frame->t_high - frame->t_low, 4);

		for (double t = ceil(frame->t_low / step) * step; t < frame->t_high; t += step)
			add_time(frame, ticks, t);
	}
}

static void growth_draw_axes(FILE *f, struct growth_frame *frame)
{
	struct wss_ticks across = {.vertical = false}, down = {.vertical = true};

	find_sizes(frame, &down);
	wss_axis_draw(f, &frame->box, &down, "touched at least once (logarithmic)", true);
	find_times(frame, &across);
	wss_axis_draw(f, &frame->box, &across, "time since measuring began (logarithmic)", true);
}

/* Draws a reference line. If name is NULL, it has no label, and the colour of its guest. */
static void draw_reference(FILE *f, const struct growth_frame *frame, struct wss_amount amount,
			   const char *class, const char *name, bool above)
{
	char size[16], text[64];
	double y;

	if (!amount.known || !amount.value)
		return;
	y = growth_y(frame, (double)amount.value);
	wss_svg_line(f, frame->box.left, y, frame->box.right, y, class);
	if (!name)
		return;
	wss_size_format(amount.value, size, sizeof(size));
	snprintf(text, sizeof(text), "%s %s", name, size);
	wss_svg_text(f, frame->box.left + 6, above ? y - 5 : y + 14, WSS_ANCHOR_START, "small",
		     text);
}

/* The two are close together for most guests, so the larger one is labelled above its line. */
static void draw_references(FILE *f, const struct growth_frame *frame,
			    const struct wss_growth_drawn *guest)
{
	bool rss_above = guest->rss_bytes.value > guest->balloon_bytes.value;

	draw_reference(f, frame, guest->rss_bytes, "reference", "RSS", rss_above);
	draw_reference(f, frame, guest->balloon_bytes, "reference balloon", "balloon", !rss_above);
}

/*
 * Draws the references of several guests, each in the guest's colour; their sizes are in the
 * legend.
 */
static void draw_coloured_references(FILE *f, const struct growth_frame *frame,
				     const struct wss_growth_drawn *guest, const char *colour)
{
	char class[32];

	snprintf(class, sizeof(class), "reference %s", colour);
	draw_reference(f, frame, guest->rss_bytes, class, NULL, false);
	snprintf(class, sizeof(class), "reference balloon %s", colour);
	draw_reference(f, frame, guest->balloon_bytes, class, NULL, false);
}

/*
 * Draws the area between two values of each point, from the first to the last point that
 * wanted() accepts.
 */
static void draw_area(FILE *f, const struct growth_frame *frame, const struct wss_grid *grid,
		      bool (*wanted)(const struct wss_grid_point *point),
		      uint64_t (*low)(const struct wss_grid_point *point),
		      uint64_t (*high)(const struct wss_grid_point *point), const char *class)
{
	struct wss_svg_point area[2 * WSS_GRID_MAX];
	size_t n = 0;

	for (size_t i = 0; i < grid->n; i++)
		if (wanted(&grid->points[i]))
			area[n++] = (struct wss_svg_point){
				growth_x(frame, (double)grid->points[i].ns),
				growth_y(frame, (double)high(&grid->points[i]))};
	/* Back along the lower edge. */
	for (size_t i = grid->n, k = n; i-- > 0;)
		if (wanted(&grid->points[i]))
			area[k++] = (struct wss_svg_point){
				growth_x(frame, (double)grid->points[i].ns),
				growth_y(frame, (double)low(&grid->points[i]))};
	wss_svg_path(f, area, 2 * n, true, class);
}

static uint64_t min_of(const struct wss_grid_point *point)
{
	return point->min_bytes;
}

static uint64_t max_of(const struct wss_grid_point *point)
{
	return point->max_bytes;
}

static bool is_spread(const struct wss_grid_point *point)
{
	return point->n > 1 && point->max_bytes > point->min_bytes;
}

static void draw_bands(FILE *f, const struct growth_frame *frame, const struct wss_grid *grid,
		       const char *colour, bool many)
{
	char class[32];

	snprintf(class, sizeof(class), "bounds%s %s", many ? " faint" : "", colour);
	draw_area(f, frame, grid, wss_growth_is_bounded, wss_growth_low, wss_growth_high, class);
	snprintf(class, sizeof(class), "band %s", colour);
	draw_area(f, frame, grid, is_spread, min_of, max_of, class);
}

static void growth_draw_curve(FILE *f, const struct growth_frame *frame,
			      const struct wss_grid *grid, const char *colour)
{
	struct wss_svg_point line[WSS_GRID_MAX];
	char class[32];
	size_t n = 0;

	for (size_t i = 0; i < grid->n; i++)
		if (grid->points[i].n)
			line[n++] =
				(struct wss_svg_point){growth_x(frame, (double)grid->points[i].ns),
						       growth_y(frame, grid->points[i].mean_bytes)};
	snprintf(class, sizeof(class), "curve%s %s", wss_growth_is_bound(grid) ? " bound" : "",
		 colour);
	wss_svg_path(f, line, n, false, class);
	if (grid->knee < grid->n)
		wss_svg_circle(f, growth_x(frame, (double)grid->points[grid->knee].ns),
			       growth_y(frame, grid->points[grid->knee].mean_bytes), 6, colour);
}

static void add_size(const char *name, struct wss_amount amount, char *text, size_t size)
{
	size_t len = strlen(text);
	char bytes[16];

	if (!amount.known)
		return;
	wss_size_format(amount.value, bytes, sizeof(bytes));
	snprintf(text + len, size - len, "%s%s %s", len ? ", " : "", name, bytes);
}

static void growth_name_guest(const struct wss_growth_drawn *guest, size_t index, bool alone,
			      struct wss_chart_key *key)
{
	char name[256], details[WSS_GROWTH_DETAILS_MAX];

	*key = (struct wss_chart_key){
		.symbol = WSS_CHART_DOT, .class = wss_svg_series(index), .own_row = true};
	wss_chart_fit_name(guest->domain, WSS_SVG_FONT, alone ? NAME_WIDTH : NAME_WIDTH_OF_MANY,
			   name, sizeof(name));
	wss_growth_describe(guest, details, sizeof(details));
	snprintf(key->text, sizeof(key->text), "%s (%s)", name, details);
	if (alone)
		return;
	add_size("RSS", guest->rss_bytes, key->note, sizeof(key->note));
	add_size("balloon", guest->balloon_bytes, key->note, sizeof(key->note));
}

static bool growth_any(const struct wss_growth_drawn *guests, size_t n,
		       bool (*is)(const struct wss_grid_point *point))
{
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < guests[i].grid->n; k++)
			if (is(&guests[i].grid->points[k]))
				return true;
	return false;
}

static bool is_bounded_by_method(const struct wss_grid_point *point)
{
	return point->n && point->bound_high_bytes.known;
}

/* Explains the bands, the line styles and the dots. */
static size_t growth_explain(const struct wss_growth_drawn *guests, size_t n,
			     struct wss_chart_key *keys)
{
	const bool alone = n == 1;
	size_t used = 0;

	if (growth_any(guests, n, wss_growth_is_bounded))
		keys[used++] = (struct wss_chart_key){
			WSS_CHART_AREA, alone ? "bounds s0" : "bounds s6", "", "", false};
	if (used)
		snprintf(keys[0].text, sizeof(keys[0].text), "%s",
			 growth_any(guests, n, is_bounded_by_method)
				 ? "between the low and the high bound"
				 : "upper bound: faults slow the guest");
	if (growth_any(guests, n, is_spread))
		keys[used++] = (struct wss_chart_key){WSS_CHART_AREA, alone ? "band s0" : "band s6",
						      "smallest to largest window", "", false};
	if (alone)
		return used;
	keys[used++] = (struct wss_chart_key){WSS_CHART_LINE, "reference", "RSS", "", false};
	keys[used++] =
		(struct wss_chart_key){WSS_CHART_LINE, "reference balloon", "balloon", "", false};
	keys[used++] = (struct wss_chart_key){WSS_CHART_DOT, "s6", "knee", "", false};
	return used;
}

static void draw_guests(FILE *f, const struct growth_frame *frame,
			const struct wss_growth_drawn *guests, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		draw_bands(f, frame, guests[i].grid, wss_svg_series(i), n > FAINT_FROM);
		if (n == 1)
			draw_references(f, frame, &guests[i]);
		else
			draw_coloured_references(f, frame, &guests[i], wss_svg_series(i));
		growth_draw_curve(f, frame, guests[i].grid, wss_svg_series(i));
	}
}

void wss_growth_plot(FILE *f, const struct wss_chart_source *source,
		     const struct wss_growth_drawn *guests, size_t n)
{
	struct wss_chart_key keys[WSS_CHART_NAMED_MAX + KEYS_MORE];
	struct wss_chart chart = {.name = "Growth of the working set",
				  .before = "Growth of the working set",
				  .after = "",
				  .source = *source,
				  .keys = keys,
				  .left = LEFT,
				  .right = RIGHT,
				  .plot_height = PLOT_HEIGHT,
				  .below = WSS_AXIS_BELOW};
	struct growth_frame frame = growth_fit(guests, n);
	size_t named = n <= WSS_CHART_NAMED_MAX ? n : WSS_CHART_NAMED_MAX - 1;

	for (chart.n_keys = 0; chart.n_keys < named; chart.n_keys++)
		growth_name_guest(&guests[chart.n_keys], chart.n_keys, n == 1, &keys[chart.n_keys]);
	chart.n_keys += wss_chart_more(&keys[chart.n_keys], n);
	chart.n_keys += growth_explain(guests, n, &keys[chart.n_keys]);
	wss_chart_begin(f, &chart, &frame.box);
	growth_draw_axes(f, &frame);
	draw_guests(f, &frame, guests, n);
	wss_svg_end(f);
}
