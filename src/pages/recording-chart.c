/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "pages/recording-chart.h"

#include "base/clock.h"
#include "base/units.h"
#include "show/svg.h"

#define ABOVE 18.0
#define ROW 18.0
#define LISTED 10
/* More lines would hide the curves that they cross. */
#define LINES_MAX 12
#define TICK_ABOVE 4.0
#define TICK_WITHIN 8.0
/* A mark shows its number if the previous mark is at least this far away. */
#define NUMBER_DISTANCE 26.0

struct wss_chart_source wss_recording_source(const struct wss_recording *recording, uint64_t end_ns)
{
	return (struct wss_chart_source){
		.host = recording->host,
		.start = (time_t)(recording->start_realtime_ns / (int64_t)WSS_NS_PER_S),
		.length_ns = end_ns,
		.method = recording->method,
		.granularity_bytes = recording->granularity_bytes,
	};
}

static bool is_shown(const struct wss_mark_chart *chart, size_t i)
{
	double ns = (double)chart->marks->list[i].time_ns;

	return ns >= chart->from_ns && ns <= chart->to_ns;
}

static size_t count_shown(const struct wss_mark_chart *chart)
{
	size_t n = 0;

	for (size_t i = 0; i < chart->marks->n; i++)
		n += is_shown(chart, i);
	return n;
}

double wss_mark_chart_above(const struct wss_mark_chart *chart)
{
	return count_shown(chart) ? ABOVE : 0;
}

double wss_mark_chart_below(const struct wss_mark_chart *chart)
{
	size_t n = count_shown(chart);

	return ROW * (double)(n < LISTED ? n : LISTED);
}

static void draw_lines(FILE *f, const struct wss_mark_chart *chart, const struct wss_axis_box *box,
		       double bottom)
{
	double last = -1e9;
	char text[24];

	for (size_t i = 0; i < chart->marks->n; i++) {
		double x = box->left +
			   (box->right - box->left) *
				   ((double)chart->marks->list[i].time_ns - chart->from_ns) /
				   (chart->to_ns - chart->from_ns);

		if (!is_shown(chart, i))
			continue;
		wss_svg_line(f, x, box->top - TICK_ABOVE, x, bottom,
			     bottom < box->bottom ? "mark" : "mark through");
		if (x - last < NUMBER_DISTANCE)
			continue;
		snprintf(text, sizeof(text), "%zu", i + 1);
		wss_svg_text(f, x, box->top - TICK_ABOVE - 4, WSS_ANCHOR_MIDDLE, "small", text);
		last = x;
	}
}

static void draw_list(FILE *f, const struct wss_mark_chart *chart, const struct wss_axis_box *box,
		      double y)
{
	size_t left = count_shown(chart), row = 0;
	char text[WSS_MARK_TEXT_MAX + 64], time[16];

	for (size_t i = 0; i < chart->marks->n && row < LISTED; i++) {
		if (!is_shown(chart, i))
			continue;
		wss_duration_format(chart->marks->list[i].time_ns, time, sizeof(time));
		wss_axis_trim(time);
		if (++row == LISTED && left > 1)
			snprintf(text, sizeof(text), "and %zu more marks", left);
		else
			snprintf(text, sizeof(text), "%zu: %s, %s", i + 1, time,
				 chart->marks->list[i].text);
		left--;
		wss_svg_fit(text, sizeof(text), WSS_SVG_FONT_SMALL, box->right - box->left);
		wss_svg_text(f, box->left, y + ROW * (double)row - 6, WSS_ANCHOR_START, "small",
			     text);
	}
}

void wss_mark_chart_draw(FILE *f, const struct wss_mark_chart *chart,
			 const struct wss_axis_box *box, double y)
{
	bool many = count_shown(chart) > LINES_MAX;

	draw_lines(f, chart, box,
		   chart->outside ? box->top
		   : many	  ? box->top + TICK_WITHIN
				  : box->bottom);
	draw_list(f, chart, box, y);
}
