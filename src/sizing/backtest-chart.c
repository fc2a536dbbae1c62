/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sizing/backtest-chart.h"

#include "base/number.h"
#include "show/chart.h"
#include "show/svg.h"

#define LEFT 92.0
#define RIGHT 40.0
#define PLOT_HEIGHT 400.0
#define HOUR 3600
#define NS_PER_S 1e9
/* The points of a line go out in pieces of this size, each beginning where the last one ended.
 */
#define PIECE 512
#define DOT 4.0

struct backtest_frame {
	struct wss_axis_box box;
	time_t from, to;
	uint64_t end_bytes; /* of the axis */
};

static double backtest_x(const struct backtest_frame *frame, time_t when)
{
	return frame->box.left + (frame->box.right - frame->box.left) *
					 (double)(when - frame->from) /
					 (double)(frame->to - frame->from);
}

static double backtest_y(const struct backtest_frame *frame, uint64_t bytes)
{
	return frame->box.bottom -
	       (frame->box.bottom - frame->box.top) * (double)bytes / (double)frame->end_bytes;
}

/* Draws a line of steps, an hour wide each; where hours were not measured, it ends. player -1:
 * need. */
static void draw_steps(FILE *f, const struct backtest_frame *frame,
		       const struct wss_backtest_moment *moments, size_t n, int player,
		       const char *class)
{
	struct wss_svg_point points[PIECE + 2];
	size_t used = 0;

	for (size_t i = 0; i < n; i++) {
		double y = backtest_y(frame, player < 0 ? moments[i].need_bytes
							: moments[i].sizes[player]);
		time_t start = moments[i].start;

		if (used >= PIECE || (i && start - moments[i - 1].start > HOUR)) {
			wss_svg_path(f, points, used, false, class);
			if (start - moments[i - 1].start > HOUR)
				used = 0;
			else {
				points[0] = points[used - 1];
				used = 1;
			}
		}
		points[used++] = (struct wss_svg_point){backtest_x(frame, start), y};
		points[used++] = (struct wss_svg_point){backtest_x(frame, start + HOUR), y};
	}
	if (used)
		wss_svg_path(f, points, used, false, class);
}

static void draw_gaps(FILE *f, const struct backtest_frame *frame,
		      const struct wss_backtest_moment *moments, size_t n)
{
	for (size_t i = 1; i < n; i++) {
		double from = backtest_x(frame, moments[i - 1].start + HOUR),
		       to = backtest_x(frame, moments[i].start);

		if (moments[i].start - moments[i - 1].start > HOUR)
			wss_svg_rect(f, from, frame->box.top, to - from,
				     frame->box.bottom - frame->box.top, "gap");
	}
}

static void backtest_axes(FILE *f, struct backtest_frame *frame, uint64_t largest)
{
	struct wss_ticks across = {.n = 0}, up = {.vertical = true};

	wss_ticks_time(&across, &frame->box, 0, (double)(frame->to - frame->from) * NS_PER_S);
	frame->end_bytes = wss_ticks_size(&up, &frame->box, largest);
	wss_axis_draw(f, &frame->box, &up, "memory", true);
	wss_axis_draw(f, &frame->box, &across, "time since the start of the test", false);
}

void wss_backtest_plot(FILE *f, const char *domain, const struct wss_backtest_moment *moments,
		       size_t n)
{
	struct backtest_frame frame = {.from = moments[0].start, .to = moments[n - 1].start + HOUR};
	uint64_t largest = 1, violations = 0;
	struct wss_chart_key keys[] = {
		{WSS_CHART_LINE, "curve s2", "recommended, from earlier hours only", "", false},
		{WSS_CHART_LINE, "curve s0", "needed: largest working set of the hour", "", false},
		{WSS_CHART_DOT, "s1", "", "", false},
	};
	struct wss_chart chart = {.name = "Backtest",
				  .before = "What would have been recommended: ",
				  .domain = domain,
				  .after = "",
				  .source = {.start = frame.from, .end = frame.to},
				  .keys = keys,
				  .n_keys = sizeof(keys) / sizeof(keys[0]),
				  .left = LEFT,
				  .right = RIGHT,
				  .plot_height = PLOT_HEIGHT,
				  .below = WSS_AXIS_BELOW};

	for (size_t i = 0; i < n; i++) {
		uint64_t size = moments[i].sizes[WSS_BACKTEST_ADVICE];

		largest = wss_u64_max(largest, wss_u64_max(moments[i].need_bytes, size));
		violations += moments[i].need_bytes > size;
	}
	snprintf(keys[2].text, sizeof(keys[2].text), "more needed: %llu of %zu hour%s",
		 (unsigned long long)violations, n, wss_plural(n));
	wss_chart_begin(f, &chart, &frame.box);
	backtest_axes(f, &frame, largest);
	draw_gaps(f, &frame, moments, n);
	draw_steps(f, &frame, moments, n, WSS_BACKTEST_ADVICE, "curve s2");
	draw_steps(f, &frame, moments, n, -1, "curve s0");
	for (size_t i = 0; i < n; i++)
		if (moments[i].need_bytes > moments[i].sizes[WSS_BACKTEST_ADVICE])
			wss_svg_circle(f, backtest_x(&frame, moments[i].start + HOUR / 2),
				       backtest_y(&frame, moments[i].need_bytes), DOT, "s1");
	wss_svg_end(f);
}
