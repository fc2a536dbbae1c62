/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "show/axis.h"

#include <math.h>
#include <string.h>

#include "base/number.h"
#include "show/svg.h"

/* Smallest distance between labels. */
#define APART_ACROSS 8.0
#define APART_DOWN 18.0
#define TIME_TICKS 8
#define SIZE_TICKS 6
#define TICK 5.0

static double label_width(const struct wss_tick *tick)
{
	return wss_svg_text_width(tick->text, WSS_SVG_FONT);
}

static bool is_room(const struct wss_ticks *ticks, const struct wss_tick *added)
{
	for (size_t i = 0; i < ticks->n; i++) {
		const struct wss_tick *tick = &ticks->list[i];
		double apart =
			ticks->vertical
				? APART_DOWN
				: APART_ACROSS + (label_width(tick) + label_width(added)) / 2;

		if (fabs(tick->at - added->at) < apart)
			return false;
	}
	return ticks->n < WSS_TICKS_MAX;
}

void wss_ticks_add(struct wss_ticks *ticks, double at, const char *text)
{
	struct wss_tick added = {.at = at};

	snprintf(added.text, sizeof(added.text), "%s", text);
	if (is_room(ticks, &added))
		ticks->list[ticks->n++] = added;
}

void wss_axis_trim(char *text)
{
	size_t digits = strspn(text, "0123456789."), kept = digits;

	if (!memchr(text, '.', digits))
		return;
	while (text[kept - 1] == '0')
		kept--;
	if (text[kept - 1] == '.')
		kept--;
	memmove(text + kept, text + digits, strlen(text + digits) + 1);
}

void wss_axis_size_label(uint64_t bytes, char *ret_text, size_t size)
{
	static const char *const names[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	size_t i = sizeof(names) / sizeof(names[0]) - 1;

	while (i > 0 && (bytes >> (10 * i) == 0 ||
			 (bytes & ((1ULL << (10 * i)) - 1)) % (1ULL << (10 * i - 2)) != 0))
		i--;
	snprintf(ret_text, size, "%.2f %s", (double)bytes / (double)(1ULL << (10 * i)), names[i]);
	wss_axis_trim(ret_text);
}

double wss_axis_time_step(double length_ns, unsigned ticks)
{
	static const double round_seconds[] = {
		1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 21600, 43200,
	};
	double least = length_ns / ticks;

	for (double step = 1e3; step < 1e9; step *= 10)
		for (int i = 0; i < 3; i++)
			if (step * round_seconds[i] >= least)
				return step * round_seconds[i];
	for (size_t i = 0; i < sizeof(round_seconds) / sizeof(round_seconds[0]); i++)
		if (round_seconds[i] * 1e9 >= least)
			return round_seconds[i] * 1e9;
	return ceil(least / 86400e9) * 86400e9;
}

void wss_axis_time_label(double ns, double step_ns, double end_ns, char *ret_text, size_t size)
{
	static const struct {
		double ns;
		const char *name;
	} units[] = {{3600e9, "h"}, {60e9, "min"}, {1e9, "s"}, {1e6, "ms"}, {1e3, "us"}};
	size_t i = 0;

	/* Hours and minutes have no decimals, so only whole ones are a unit for steps. */
	while (i < 4 && (i < 2 ? step_ns : end_ns) < units[i].ns)
		i++;
	/* The ends may not be multiples of the step, so tenths of it are shown. */
	snprintf(ret_text, size, "%.*f %s",
		 (int)fmax(0, ceil(-log10(step_ns / units[i].ns / 50) - 1e-9)), ns / units[i].ns,
		 units[i].name);
	wss_axis_trim(ret_text);
}

static void time_tick(struct wss_ticks *ticks, const struct wss_axis_box *box, double ns,
		      double step_ns, double from_ns, double to_ns)
{
	char text[16];

	wss_axis_time_label(ns, step_ns, to_ns, text, sizeof(text));
	wss_ticks_add(ticks,
		      box->left + (box->right - box->left) * (ns - from_ns) / (to_ns - from_ns),
		      text);
}

void wss_ticks_time(struct wss_ticks *ticks, const struct wss_axis_box *box, double from_ns,
		    double to_ns)
{
	double step = wss_axis_time_step(to_ns - from_ns, TIME_TICKS);

	/* The ends come first, so that their labels win over those of round times. */
	time_tick(ticks, box, from_ns, step, from_ns, to_ns);
	time_tick(ticks, box, to_ns, step, from_ns, to_ns);
	for (double ns = ceil(from_ns / step) * step; ns < to_ns; ns += step)
		time_tick(ticks, box, ns, step, from_ns, to_ns);
}

uint64_t wss_ticks_size(struct wss_ticks *ticks, const struct wss_axis_box *box, uint64_t bytes)
{
	double from = ticks->vertical ? box->bottom : box->left;
	double to = ticks->vertical ? box->top : box->right;
	uint64_t step = 4096, n;
	char text[24];

	while (step < 1ULL << 62 && bytes / step >= SIZE_TICKS)
		step *= 2;
	n = bytes / step + (bytes % step || !bytes);
	for (uint64_t i = 0; i <= n; i++) {
		wss_axis_size_label(wss_u64_mul(i, step), text, sizeof(text));
		wss_ticks_add(ticks, from + (to - from) * (double)i / (double)n, text);
	}
	return wss_u64_mul(n, step);
}

static void draw_across(FILE *f, const struct wss_axis_box *box, const struct wss_ticks *ticks,
			const char *label, bool grid)
{
	for (size_t i = 0; i < ticks->n; i++) {
		double x = ticks->list[i].at;

		wss_svg_line(f, x, grid ? box->top : box->bottom, x,
			     grid ? box->bottom : box->bottom + TICK, grid ? "grid" : "axis");
		wss_svg_text(f, x, box->bottom + 23, WSS_ANCHOR_MIDDLE, "tick",
			     ticks->list[i].text);
	}
	wss_svg_line(f, box->left, box->bottom, box->right, box->bottom, "axis");
	wss_svg_text(f, (box->left + box->right) / 2, box->bottom + 48, WSS_ANCHOR_MIDDLE, "label",
		     label);
}

static void draw_down(FILE *f, const struct wss_axis_box *box, const struct wss_ticks *ticks,
		      const char *label, bool grid)
{
	for (size_t i = 0; i < ticks->n; i++) {
		double y = ticks->list[i].at;

		wss_svg_line(f, grid ? box->left : box->left - TICK, y,
			     grid ? box->right : box->left, y, grid ? "grid" : "axis");
		wss_svg_text(f, box->left - 9, y + 5, WSS_ANCHOR_END, "tick", ticks->list[i].text);
	}
	wss_svg_line(f, box->left, box->top, box->left, box->bottom, "axis");
	wss_svg_text_upright(f, 20, (box->top + box->bottom) / 2, "label", label);
}

void wss_axis_draw(FILE *f, const struct wss_axis_box *box, const struct wss_ticks *ticks,
		   const char *label, bool grid)
{
	(ticks->vertical ? draw_down : draw_across)(f, box, ticks, label, grid);
}
