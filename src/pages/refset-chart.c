/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "pages/refset-chart.h"

#include <math.h>
#include <stdlib.h>

#include "pages/recording-chart.h"
#include "show/svg.h"

#define LEFT 92.0
#define RIGHT 40.0
#define PLOT_HEIGHT 360.0
/* Finer steps would be invisible. */
#define STEPS 1200
#define GAP_LEAST 0.5
#define KEYS_MAX 4

struct refset_frame {
	struct wss_axis_box box;
	double from_ns, to_ns;
	double high_pages;
};

enum refset_series { SERIES_TOUCHED, SERIES_EVER, SERIES_WRITTEN };

static uint64_t value_of(const struct wss_refset_point *point, enum refset_series series)
{
	return series == SERIES_EVER	  ? point->reference
	       : series == SERIES_WRITTEN ? point->written
					  : point->touched;
}

/* Returns the position of a time; times outside of the viewport are at its ends. */
static double refset_x(const struct refset_frame *frame, uint64_t ns)
{
	double part = ((double)ns - frame->from_ns) / (frame->to_ns - frame->from_ns);

	return frame->box.left + (frame->box.right - frame->box.left) * (part < 0   ? 0
									 : part > 1 ? 1
										    : part);
}

static double refset_y(const struct refset_frame *frame, uint64_t pages)
{
	return frame->box.bottom -
	       (frame->box.bottom - frame->box.top) * (double)pages / frame->high_pages;
}

static bool mark_is_shown(const struct refset_frame *frame, const struct wss_refset_point *point)
{
	return (double)point->end_ns > frame->from_ns && (double)point->start_ns < frame->to_ns;
}

static bool is_absent(const struct wss_refset_point *point, enum refset_series series)
{
	return point->gap ||
	       (series == SERIES_WRITTEN && point->written_meaning == WSS_WRITTEN_ABSENT);
}

static uint64_t highest_pages(const struct refset_frame *frame,
			      const struct wss_refset_result *result)
{
	uint64_t high = 0;

	for (size_t i = 0; i < result->n_points; i++)
		for (enum refset_series series = SERIES_TOUCHED; series <= SERIES_WRITTEN; series++)
			if (mark_is_shown(frame, &result->points[i]) &&
			    value_of(&result->points[i], series) > high)
				high = value_of(&result->points[i], series);
	return high;
}

static void refset_draw_axes(FILE *f, struct refset_frame *frame, uint64_t high_pages)
{
	struct wss_ticks across = {.vertical = false}, down = {.vertical = true};

	frame->high_pages =
		(double)(wss_ticks_size(&down, &frame->box, high_pages << WSS_PAGE_SHIFT) >>
			 WSS_PAGE_SHIFT);
	wss_axis_draw(f, &frame->box, &down, "guest memory", true);
	wss_ticks_time(&across, &frame->box, frame->from_ns, frame->to_ns);
	wss_axis_draw(f, &frame->box, &across, "time since the recording began", false);
}

static void draw_gaps(FILE *f, const struct refset_frame *frame,
		      const struct wss_refset_result *result)
{
	for (size_t i = 0; i < result->n_points; i++) {
		const struct wss_refset_point *point = &result->points[i];
		double x = refset_x(frame, point->start_ns),
		       width = refset_x(frame, point->end_ns) - x;

		/* Gaps between chained windows take milliseconds and are too short to be seen. */
		if (point->gap && width >= GAP_LEAST)
			wss_svg_rect(f, x, frame->box.top, width,
				     frame->box.bottom - frame->box.top, "gap");
	}
}

/* Draws a series as steps, which visible gaps interrupt. */
static void draw_series(FILE *f, const struct refset_frame *frame,
			const struct wss_refset_result *result, enum refset_series series,
			const char *class)
{
	struct wss_svg_point *line = calloc(2 * result->n_points + 2, sizeof(*line));
	double least = (frame->box.right - frame->box.left) / STEPS;
	size_t n = 0;

	if (!line)
		return;
	for (size_t i = 0; i < result->n_points; i++) {
		const struct wss_refset_point *point = &result->points[i];
		double from = refset_x(frame, point->start_ns), to = refset_x(frame, point->end_ns);
		double y = refset_y(frame, value_of(point, series));
		bool absent = is_absent(point, series);

		if (!mark_is_shown(frame, point))
			continue;
		if (absent && to - from >= GAP_LEAST) {
			wss_svg_path(f, line, n, false, class);
			n = 0;
		}
		if (absent)
			continue;
		if (n && to - line[n - 2].x < least) {
			/* Keeps the highest of several steps that are too short to be seen. */
			if (y < line[n - 1].y)
				line[n - 1].y = line[n - 2].y = y;
			line[n - 1].x = to;
			continue;
		}
		line[n++] = (struct wss_svg_point){from, y};
		line[n++] = (struct wss_svg_point){to, y};
	}
	wss_svg_path(f, line, n, false, class);
	free(line);
}

static bool any_gap(const struct refset_frame *frame, const struct wss_refset_result *result)
{
	for (size_t i = 0; i < result->n_points; i++)
		if (mark_is_shown(frame, &result->points[i]) && result->points[i].gap)
			return true;
	return false;
}

static bool any_written(const struct refset_frame *frame, const struct wss_refset_result *result)
{
	for (size_t i = 0; i < result->n_points; i++)
		if (mark_is_shown(frame, &result->points[i]) &&
		    !is_absent(&result->points[i], SERIES_WRITTEN))
			return true;
	return false;
}

/* Makes the legend and returns the number of its keys. */
static size_t refset_make_legend(const struct refset_frame *frame,
				 const struct wss_refset_result *result,
				 struct wss_chart_key keys[KEYS_MAX])
{
	size_t n = 0;

	keys[n++] =
		(struct wss_chart_key){WSS_CHART_LINE, "curve s0", "touched in window", "", false};
	keys[n++] = (struct wss_chart_key){WSS_CHART_LINE, "curve s1", "touched ever", "", false};
	if (any_written(frame, result)) {
		bool exact = result->written_meaning == WSS_WRITTEN_EXACT ||
			     result->written_meaning == WSS_WRITTEN_ABSENT;

		keys[n] = (struct wss_chart_key){WSS_CHART_LINE, "curve s2", "", "", false};
		snprintf(keys[n].text, sizeof(keys[n].text), "written in window%s%s%s",
			 exact ? "" : " (",
			 exact ? "" : wss_written_name((enum wss_written)result->written_meaning),
			 exact ? "" : ")");
		n++;
	}
	if (any_gap(frame, result))
		keys[n++] =
			(struct wss_chart_key){WSS_CHART_AREA, "gap", "not observed", "", false};
	return n;
}

/* Formats "shown: 5 s to 12 s". */
static void describe_view(const struct refset_frame *frame, uint64_t end_ns, char *text,
			  size_t size)
{
	double step = wss_axis_time_step(frame->to_ns - frame->from_ns, 8);
	char from[16], to[16];

	*text = '\0';
	if (frame->from_ns <= 0 && frame->to_ns >= (double)end_ns)
		return;
	wss_axis_time_label(frame->from_ns, step, frame->to_ns, from, sizeof(from));
	wss_axis_time_label(frame->to_ns, step, frame->to_ns, to, sizeof(to));
	snprintf(text, size, "shown: %s to %s", from, to);
}

static void refset_draw_plot(FILE *f, const struct refset_frame *frame,
			     const struct wss_refset_result *result)
{
	draw_gaps(f, frame, result);
	if (any_written(frame, result))
		draw_series(f, frame, result, SERIES_WRITTEN, "curve s2");
	draw_series(f, frame, result, SERIES_EVER, "curve s1");
	draw_series(f, frame, result, SERIES_TOUCHED, "curve s0");
}

void wss_refset_plot(FILE *f, const struct wss_recording *recording,
		     const struct wss_refset_result *result, uint64_t end_ns)
{
	struct refset_frame frame = {.from_ns = (double)result->from_ns,
				     .to_ns = (double)result->to_ns};
	struct wss_mark_chart marks = {.marks = &result->marks};
	struct wss_chart_key keys[KEYS_MAX];
	struct wss_chart chart = {.name = "Memory touched in windows and ever, over time",
				  .before = "Memory touched by ",
				  .domain = recording->domain,
				  .after = "",
				  .keys = keys,
				  .left = LEFT,
				  .right = RIGHT,
				  .plot_height = PLOT_HEIGHT};
	char view[64];

	/* Shorter times are indistinguishable at the end of a recording of many years. */
	frame.to_ns = fmax(frame.to_ns, frame.from_ns + 1e3);
	marks.from_ns = frame.from_ns;
	marks.to_ns = frame.to_ns;
	chart.n_keys = refset_make_legend(&frame, result, keys);
	chart.above = wss_mark_chart_above(&marks);
	chart.below = WSS_AXIS_BELOW + wss_mark_chart_below(&marks);
	describe_view(&frame, end_ns, view, sizeof(view));
	chart.source = wss_recording_source(recording, end_ns);
	chart.source.extra = view;
	wss_chart_begin(f, &chart, &frame.box);
	/* Leave room above the curves for the marks. */
	refset_draw_axes(f, &frame, highest_pages(&frame, result) * 51 / 50);
	refset_draw_plot(f, &frame, result);
	wss_mark_chart_draw(f, &marks, &frame.box, frame.box.bottom + WSS_AXIS_BELOW);
	wss_svg_end(f);
}
