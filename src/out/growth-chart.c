/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "out/growth-chart.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "base/units.h"
#include "out/axis.h"
#include "out/svg.h"

#define WIDTH 960.0
#define HEIGHT 400.0 /* of the part between the axes */
#define LEFT 92.0
#define RIGHT 34.0
#define TOP 56.0
#define BOTTOM 66.0
#define LEGEND_ROW 21.0
#define FONT 14.0 /* the style sheet's */
/* Pixels of a name in the legend; of several guests the sizes stand there, too. */
#define NAME_WIDTH 440.0
#define NAME_WIDTH_OF_MANY 240.0
/* Columns of the terminal: what stands beside the bars, and the longest bar. */
#define BESIDE 34
#define BAR_MAX 192

#define TIMES_MAX 32

/* Logarithmic axes, and where they end on the paper. */
struct frame {
	double t_low, t_high; /* ns */
	double b_low, b_high; /* bytes */
	double left, right, top, bottom;
};

static double x_of(const struct frame *frame, double ns)
{
	return frame->left + (frame->right - frame->left) * log(ns / frame->t_low) /
				     log(frame->t_high / frame->t_low);
}

static double y_of(const struct frame *frame, double bytes)
{
	if (bytes < frame->b_low)
		bytes = frame->b_low;
	return frame->bottom - (frame->bottom - frame->top) * log(bytes / frame->b_low) /
				       log(frame->b_high / frame->b_low);
}

static void widen(struct frame *frame, double bytes)
{
	if (bytes <= 0)
		return;
	if (bytes < frame->b_low)
		frame->b_low = bytes;
	if (bytes > frame->b_high)
		frame->b_high = bytes;
}

static double upper(const struct wss_grid_point *point)
{
	return point->high_bytes.known && point->high_bytes.value > point->max_bytes
		       ? (double)point->high_bytes.value
		       : (double)point->max_bytes;
}

static struct frame fit(const struct wss_growth *guests, size_t n)
{
	struct frame frame = { .t_low = 1e300, .b_low = 1e300,
			       .left = LEFT, .right = WIDTH - RIGHT };

	for (size_t i = 0; i < n; i++) {
		const struct wss_grid *grid = guests[i].grid;

		frame.t_low = fmin(frame.t_low, (double)grid->points[0].ns);
		frame.t_high = fmax(frame.t_high, (double)grid->points[grid->n - 1].ns);
		for (size_t k = 0; k < grid->n; k++) {
			if (!grid->points[k].n)
				continue;
			widen(&frame, (double)grid->points[k].min_bytes);
			widen(&frame, upper(&grid->points[k]));
		}
		if (guests[i].rss_bytes.known)
			widen(&frame, (double)guests[i].rss_bytes.value);
		if (guests[i].balloon_bytes.known)
			widen(&frame, (double)guests[i].balloon_bytes.value);
	}
	if (frame.b_high <= 0)
		frame.b_low = frame.b_high = 1024.0 * 1024;
	/* Whole powers of four, so that the ticks are at round sizes. */
	frame.b_low = pow(4, floor(log(frame.b_low) / log(4) + 1e-9));
	frame.b_high = pow(4, ceil(log(frame.b_high * 1.05) / log(4)));
	/* The picture grows with the legend, not at the cost of the curves. */
	frame.top = TOP + LEGEND_ROW * (double)n;
	frame.bottom = frame.top + HEIGHT;
	return frame;
}

static void draw_time(FILE *f, const struct frame *frame, double t)
{
	double x = x_of(frame, t);
	char text[16];

	wss_svg_line(f, x, frame->top, x, frame->bottom, "grid");
	/* "1 s", where a measured duration would say "1.00 s". */
	snprintf(text, sizeof(text), t < 1e6 ? "%g us" : t < 1e9 ? "%g ms" : "%g s",
		 t < 1e6 ? t / 1e3 : t < 1e9 ? t / 1e6 : t / 1e9);
	wss_svg_text(f, x, frame->bottom + 23, WSS_ANCHOR_MIDDLE, "tick", text);
}

/* Every decade; where there are few of them, what lies between, too. Returns how many. */
static size_t find_times(const struct frame *frame, double ret_times[TIMES_MAX])
{
	bool few = frame->t_high < frame->t_low * 100;
	size_t n = 0;

	for (double t = pow(10, floor(log10(frame->t_low))); t <= frame->t_high * 1.001; t *= 10)
		for (int i = 0; i < (few ? 3 : 1) && n < TIMES_MAX; i++) {
			double time = t * (i == 0 ? 1 : i == 1 ? 2 : 5);

			if (time >= frame->t_low * 0.999 && time <= frame->t_high * 1.001)
				ret_times[n++] = time;
		}
	return n;
}

static void draw_times(FILE *f, const struct frame *frame)
{
	double times[TIMES_MAX], step;
	size_t n = find_times(frame, times);

	for (size_t i = 0; i < n && n > 1; i++)
		draw_time(f, frame, times[i]);
	if (n > 1)
		return;
	/* From 2.1 s to 4 s there is no such time. */
	step = wss_axis_time_step(frame->t_high - frame->t_low, 4);
	for (double t = ceil(frame->t_low / step - 1e-9) * step; t <= frame->t_high * 1.0001; t += step)
		draw_time(f, frame, t);
}

static void draw_axes(FILE *f, const struct frame *frame)
{
	char text[16];

	for (double b = frame->b_low; b <= frame->b_high * 1.001; b *= 4) {
		double y = y_of(frame, b);

		wss_svg_line(f, frame->left, y, frame->right, y, "grid");
		wss_size_format(wss_u64_from_double(b + 0.5), text, sizeof(text));
		wss_svg_text(f, frame->left - 8, y + 5, WSS_ANCHOR_END, "tick", text);
	}
	draw_times(f, frame);
	wss_svg_line(f, frame->left, frame->bottom, frame->right, frame->bottom, "axis");
	wss_svg_line(f, frame->left, frame->top, frame->left, frame->bottom, "axis");
	wss_svg_text(f, (frame->left + frame->right) / 2, frame->bottom + BOTTOM - 18, WSS_ANCHOR_MIDDLE, "label",
		     "time since the invalidation (logarithmic)");
	wss_svg_text_upright(f, 20, (frame->top + frame->bottom) / 2, "label",
			     "touched at least once (logarithmic)");
}

/* name NULL: the line alone, in the colour of its guest. */
static void draw_reference(FILE *f, const struct frame *frame, struct wss_amount amount,
			   const char *class, const char *name, bool above)
{
	char size[16], text[64];
	double y;

	if (!amount.known || !amount.value)
		return;
	y = y_of(frame, (double)amount.value);
	wss_svg_line(f, frame->left, y, frame->right, y, class);
	if (!name)
		return;
	wss_size_format(amount.value, size, sizeof(size));
	snprintf(text, sizeof(text), "%s %s", name, size);
	wss_svg_text(f, frame->left + 6, above ? y - 5 : y + 14, WSS_ANCHOR_START, "small", text);
}

static void draw_curve(FILE *f, const struct frame *frame, const struct wss_grid *grid,
		       const char *class)
{
	struct wss_svg_point line[WSS_GRID_MAX], band[2 * WSS_GRID_MAX];
	size_t n = 0;

	for (size_t i = 0; i < grid->n; i++) {
		const struct wss_grid_point *point = &grid->points[i];
		double x = x_of(frame, (double)point->ns);

		if (!point->n)
			continue;
		line[n] = (struct wss_svg_point){ x, y_of(frame, point->mean_bytes) };
		band[n] = (struct wss_svg_point){ x, y_of(frame, upper(point)) };
		n++;
	}
	/* Back along the lower edge. */
	for (size_t i = grid->n, k = n; i-- > 0;)
		if (grid->points[i].n)
			band[k++] = (struct wss_svg_point){
				x_of(frame, (double)grid->points[i].ns),
				y_of(frame, (double)grid->points[i].min_bytes)
			};
	wss_svg_path(f, band, 2 * n, true, class);
	wss_svg_path(f, line, n, false, class);
	if (grid->knee < grid->n)
		wss_svg_circle(f, x_of(frame, (double)grid->points[grid->knee].ns),
			       y_of(frame, grid->points[grid->knee].mean_bytes), 6, class);
}

/* What stands behind the name: "(mmu, 4 KiB, knee at 64.0 MiB after 1.00 s)". */
static void describe(const struct wss_growth *guest, char *text, size_t size)
{
	char granularity[16], knee_size[16], knee_time[16], knee[64] = "";
	const struct wss_grid *grid = guest->grid;

	wss_size_format(guest->granularity_bytes, granularity, sizeof(granularity));
	if (grid->knee < grid->n) {
		const struct wss_grid_point *point = &grid->points[grid->knee];

		wss_size_format(wss_u64_from_double(point->mean_bytes), knee_size, sizeof(knee_size));
		wss_duration_format(point->ns, knee_time, sizeof(knee_time));
		snprintf(knee, sizeof(knee), ", knee at %s after %s", knee_size, knee_time);
	}
	snprintf(text, size, "(%s, %s%s%s)", guest->method, granularity,
		 guest->degraded ? ", degraded" : "", knee);
}

/* Both are near each other for most guests: the larger one's name goes above its line. */
static void draw_references(FILE *f, const struct frame *frame, const struct wss_growth *guest)
{
	bool rss_above = guest->rss_bytes.value > guest->balloon_bytes.value;

	draw_reference(f, frame, guest->rss_bytes, "reference", "RSS", rss_above);
	draw_reference(f, frame, guest->balloon_bytes, "reference balloon", "balloon", !rss_above);
}

/* Of several guests each has its colour, and its sizes stand in the legend. */
static void draw_coloured_references(FILE *f, const struct frame *frame,
				     const struct wss_growth *guest, const char *colour)
{
	char class[32];

	snprintf(class, sizeof(class), "reference %s", colour);
	draw_reference(f, frame, guest->rss_bytes, class, NULL, false);
	snprintf(class, sizeof(class), "reference balloon %s", colour);
	draw_reference(f, frame, guest->balloon_bytes, class, NULL, false);
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

static void draw_legend(FILE *f, const struct wss_growth *guest, double y, bool alone)
{
	char name[256], details[128], text[400], sizes[64] = "";

	snprintf(name, sizeof(name), "%s", guest->domain);
	wss_text_sanitize(name);
	wss_svg_fit(name, sizeof(name), FONT, alone ? NAME_WIDTH : NAME_WIDTH_OF_MANY);
	describe(guest, details, sizeof(details));
	snprintf(text, sizeof(text), "%s %s", name, details);
	wss_svg_text(f, LEFT + 18, y, WSS_ANCHOR_START, "legend", text);
	if (alone)
		return;
	add_size("RSS", guest->rss_bytes, sizes, sizeof(sizes));
	add_size("balloon", guest->balloon_bytes, sizes, sizeof(sizes));
	wss_svg_text(f, WIDTH - RIGHT, y, WSS_ANCHOR_END, "small", sizes);
}

static void draw_guest(FILE *f, const struct frame *frame, const struct wss_growth *guest,
		       size_t index, bool alone)
{
	double y = TOP - 6 + LEGEND_ROW * (double)index;
	char colour[8];

	snprintf(colour, sizeof(colour), "s%zu", index % WSS_SVG_SERIES);
	if (alone)
		draw_references(f, frame, guest);
	else
		draw_coloured_references(f, frame, guest, colour);
	draw_curve(f, frame, guest->grid, colour);
	wss_svg_circle(f, LEFT + 6, y - 5, 5, colour);
	draw_legend(f, guest, y, alone);
}

void wss_growth_plot(FILE *f, const struct wss_growth *guests, size_t n)
{
	struct frame frame = fit(guests, n);
	double height = frame.bottom + BOTTOM;

	wss_svg_begin(f, WIDTH, height, "Growth of the working set");
	wss_svg_text(f, LEFT, 30, WSS_ANCHOR_START, "title", "Growth of the working set");
	if (n > 1)
		wss_svg_text(f, WIDTH - RIGHT, 30, WSS_ANCHOR_END, "small",
			     "dashed: RSS, dotted: balloon, dot: knee");
	draw_axes(f, &frame);
	for (size_t i = 0; i < n; i++)
		draw_guest(f, &frame, &guests[i], i, n == 1);
	wss_svg_end(f);
}

void wss_growth_print(FILE *f, const struct wss_growth *guest, int width)
{
	const struct wss_grid *grid = guest->grid;
	int room = width - BESIDE;
	char name[256], text[128];
	double largest = 0;

	if (room > BAR_MAX)
		room = BAR_MAX;
	if (room < 4)
		room = 4;
	for (size_t i = 0; i < grid->n; i++)
		if (grid->points[i].n)
			largest = fmax(largest, grid->points[i].mean_bytes);
	describe(guest, text, sizeof(text));
	snprintf(name, sizeof(name), "%s", guest->domain);
	wss_text_sanitize(name);
	fprintf(f, "%s %s\n", name, text);
	for (size_t i = 0; i < grid->n; i++) {
		const struct wss_grid_point *point = &grid->points[i];
		char time[16], size[16], high[16] = "";
		int bar;

		if (!point->n)
			continue;
		wss_duration_format(point->ns, time, sizeof(time));
		wss_size_format(wss_u64_from_double(point->mean_bytes), size, sizeof(size));
		if (point->high_bytes.known && point->high_bytes.value > point->max_bytes)
			wss_size_format(point->high_bytes.value, high, sizeof(high));
		bar = largest > 0 ? (int)lround(point->mean_bytes / largest * room) : 0;
		fprintf(f, "%9s %9s %s%-11s%c%.*s\n", time, size, *high ? "-" : " ", high,
			i == grid->knee ? '*' : '|', bar,
			"################################################################"
			"################################################################"
			"################################################################");
	}
}
