/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "out/refset-chart.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/units.h"
#include "out/axis.h"
#include "out/svg.h"

#define WIDTH 960.0
#define LEFT 92.0
#define RIGHT 24.0
#define TOP 92.0
#define PLOT_HEIGHT 360.0
#define BELOW 66.0
#define MARK_ROW 18.0
#define MARKS_LISTED 10
/* Of the list of marks: the style sheet's "small". */
#define MARK_FONT 12.0
/* A number of a mark stands over its line if the one before is so far away. */
#define MARK_DISTANCE 26.0
/* Finer steps than that cannot be seen. */
#define STEPS 1200

struct frame {
	double left, right, top, bottom;
	double end_ns;
	double high_pages;
};

static double x_of(const struct frame *frame, uint64_t ns)
{
	return frame->left + (frame->right - frame->left) * (double)ns / frame->end_ns;
}

static double y_of(const struct frame *frame, uint64_t pages)
{
	return frame->bottom - (frame->bottom - frame->top) * (double)pages / frame->high_pages;
}

static struct frame fit(const struct wss_refset_result *result, uint64_t end_ns)
{
	struct frame frame = { LEFT, WIDTH - RIGHT, TOP, TOP + PLOT_HEIGHT, (double)end_ns, 1 };
	uint64_t high = 1, step;

	if (!end_ns)
		frame.end_ns = 1;
	for (size_t i = 0; i < result->n_points; i++) {
		if (result->points[i].touched > high)
			high = result->points[i].touched;
		if (result->points[i].reference > high)
			high = result->points[i].reference;
	}
	/* Whole steps of the axis. */
	step = wss_axis_size_step(high << WSS_PAGE_SHIFT, 6) >> WSS_PAGE_SHIFT;
	frame.high_pages = (double)((high + step - 1) / step * step);
	return frame;
}

static void draw_axes(FILE *f, const struct frame *frame)
{
	uint64_t step = wss_axis_size_step((uint64_t)frame->high_pages << WSS_PAGE_SHIFT, 7);
	char text[16];

	for (uint64_t bytes = 0; bytes >> WSS_PAGE_SHIFT <= (uint64_t)frame->high_pages;
	     bytes += step) {
		double y = y_of(frame, bytes >> WSS_PAGE_SHIFT);

		wss_svg_line(f, frame->left, y, frame->right, y, "grid");
		wss_size_format(bytes, text, sizeof(text));
		wss_svg_text(f, frame->left - 8, y + 5, WSS_ANCHOR_END, "tick", text);
	}
	wss_axis_draw_time(f,
			   &(struct wss_axis_box){ frame->left, frame->right, frame->top, frame->bottom },
			   frame->end_ns);
	wss_svg_text_upright(f, 20, (frame->top + frame->bottom) / 2, "label", "guest memory");
}

static void draw_gaps(FILE *f, const struct frame *frame, const struct wss_refset_result *result)
{
	for (size_t i = 0; i < result->n_points; i++) {
		const struct wss_refset_point *point = &result->points[i];
		double x = x_of(frame, point->start_ns), width = x_of(frame, point->end_ns) - x;

		/* Those between chained windows take milliseconds: too short to be seen. */
		if (point->gap && width >= 0.5)
			wss_svg_rect(f, x, frame->top, width, frame->bottom - frame->top, "gap");
	}
}

enum series { SERIES_OUTSTANDING, SERIES_REFERENCE, SERIES_WRITTEN };

static uint64_t value_of(const struct wss_refset_point *point, enum series series)
{
	return series == SERIES_REFERENCE ? point->reference
	       : series == SERIES_WRITTEN ? point->written
					  : point->touched;
}

/* Steps; a gap that can be seen interrupts them. */
static void draw_series(FILE *f, const struct frame *frame, const struct wss_refset_result *result,
			enum series series, const char *class)
{
	struct wss_svg_point *line = calloc(2 * result->n_points + 2, sizeof(*line));
	double least = (frame->right - frame->left) / STEPS;
	size_t n = 0;

	if (!line)
		return;
	for (size_t i = 0; i < result->n_points; i++) {
		const struct wss_refset_point *point = &result->points[i];
		double from = x_of(frame, point->start_ns), to = x_of(frame, point->end_ns);
		double y = y_of(frame, value_of(point, series));
		bool absent = point->gap || (series == SERIES_WRITTEN &&
					     point->written_meaning == WSS_WRITTEN_ABSENT);

		if (absent && to - from >= 0.5) {
			wss_svg_path(f, line, n, false, class);
			n = 0;
		}
		if (absent)
			continue;
		if (n && to - line[n - 2].x < least) {
			/* Of steps too short to be seen the highest. */
			if (y < line[n - 1].y)
				line[n - 1].y = line[n - 2].y = y;
			line[n - 1].x = to;
			continue;
		}
		line[n++] = (struct wss_svg_point){ from, y };
		line[n++] = (struct wss_svg_point){ to, y };
	}
	wss_svg_path(f, line, n, false, class);
	free(line);
}

static void draw_marks(FILE *f, const struct frame *frame, const struct wss_refset_result *result)
{
	double last = -1e9;
	char text[512], time[16];

	for (size_t i = 0; i < result->n_marks; i++) {
		double x = x_of(frame, result->marks[i].time_ns);

		/* Set behind the last whole interval of a recording that was not ended. */
		if (x > frame->right)
			break;
		wss_svg_line(f, x, frame->top - 4, x, frame->bottom, "reference");
		if (x - last < MARK_DISTANCE)
			continue;
		snprintf(text, sizeof(text), "%zu", i + 1);
		wss_svg_text(f, x, frame->top - 8, WSS_ANCHOR_MIDDLE, "small", text);
		last = x;
	}
	for (size_t i = 0; i < result->n_marks && i < MARKS_LISTED; i++) {
		wss_duration_format(result->marks[i].time_ns, time, sizeof(time));
		if (i + 1 == MARKS_LISTED && result->n_marks > MARKS_LISTED)
			snprintf(text, sizeof(text), "and %zu more marks", result->n_marks - i);
		else
			snprintf(text, sizeof(text), "%zu: %s, %s", i + 1, time,
				 result->marks[i].text);
		wss_svg_fit(text, sizeof(text), MARK_FONT, frame->right - frame->left);
		wss_svg_text(f, frame->left, frame->bottom + BELOW + MARK_ROW * (double)(i + 1) - 6,
			     WSS_ANCHOR_START, "small", text);
	}
}

static bool any_written(const struct wss_refset_result *result)
{
	for (size_t i = 0; i < result->n_points; i++)
		if (!result->points[i].gap &&
		    result->points[i].written_meaning != WSS_WRITTEN_ABSENT)
			return true;
	return false;
}

static bool any_gap(const struct wss_refset_result *result)
{
	for (size_t i = 0; i < result->n_points; i++)
		if (result->points[i].gap)
			return true;
	return false;
}

static double draw_key(FILE *f, double x, const char *class, const char *text, double width)
{
	if (!strcmp(class, "gap"))
		wss_svg_rect(f, x, 46, 14, 14, class);
	else
		wss_svg_circle(f, x + 7, 53, 5, class);
	wss_svg_text(f, x + 20, 58, WSS_ANCHOR_START, "legend", text);
	return x + width;
}

static void draw_legend(FILE *f, const struct wss_refset_result *result)
{
	double x = LEFT;

	x = draw_key(f, x, "s0", "outstanding set", 168);
	x = draw_key(f, x, "s1", "reference set", 154);
	if (any_written(result))
		x = draw_key(f, x, "s2", "written", 110);
	if (any_gap(result))
		draw_key(f, x, "gap", "gap: not observed", 180);
}

void wss_refset_plot(FILE *f, const struct wss_recording *recording,
		     const struct wss_refset_result *result, uint64_t end_ns)
{
	struct frame frame = fit(result, end_ns);
	size_t listed = result->n_marks < MARKS_LISTED ? result->n_marks : MARKS_LISTED;

	wss_svg_begin(f, WIDTH, frame.bottom + BELOW + MARK_ROW * (double)listed,
		      "Outstanding set and reference set over time");
	wss_svg_title(f, frame.left, 28, frame.right - frame.left, "Memory that ", recording->domain,
		      " touched");
	draw_legend(f, result);
	if (result->from_ns > 0 || result->to_ns < end_ns)
		wss_svg_rect(f, x_of(&frame, result->from_ns), frame.top,
			     x_of(&frame, result->to_ns) - x_of(&frame, result->from_ns),
			     frame.bottom - frame.top, "view");
	draw_axes(f, &frame);
	draw_gaps(f, &frame, result);
	if (any_written(result))
		draw_series(f, &frame, result, SERIES_WRITTEN, "s2");
	draw_series(f, &frame, result, SERIES_REFERENCE, "s1");
	draw_series(f, &frame, result, SERIES_OUTSTANDING, "s0");
	draw_marks(f, &frame, result);
	wss_svg_end(f);
}
