/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "show/chart.h"

#include <stdarg.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "base/units.h"
#include "show/svg.h"

/* Base lines of the title, the line below it, and the legend's first row. */
#define TITLE_Y 28.0
#define SOURCE_Y 49.0
#define LEGEND_Y 75.0
#define LEGEND_ROW 21.0
#define BELOW_LEGEND 16.0
#define KEY_TEXT 20.0  /* from a symbol to its text */
#define KEY_APART 16.0 /* from a text to the next symbol */
#define HOST_WIDTH 260.0
#define MARGIN 40.0
/* Width of a letter in the legend, which is not bold. */
#define LEGEND_WIDTH 0.8

void wss_chart_fit_name(const char *name, double font, double width, char *ret_text, size_t size)
{
	snprintf(ret_text, size, "%s", name);
	wss_text_sanitize(ret_text);
	wss_svg_fit(ret_text, size, font, width);
}

bool wss_chart_more(struct wss_chart_key *key, size_t n)
{
	if (n <= WSS_CHART_NAMED_MAX)
		return false;
	*key = (struct wss_chart_key){.symbol = WSS_CHART_NO_SYMBOL, .own_row = true};
	snprintf(key->text, sizeof(key->text), "and %zu more", n - (WSS_CHART_NAMED_MAX - 1));
	return true;
}

static void text_append(char *text, size_t size, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Appends to a list separated by commas. */
static void text_append(char *text, size_t size, const char *format, ...)
{
	size_t len = strlen(text);
	va_list ap;

	if (len && len + 2 < size) {
		memcpy(text + len, ", ", 3);
		len += 2;
	}
	va_start(ap, format);
	vsnprintf(text + len, size - len, format, ap);
	va_end(ap);
}

/* Formats "2026-11-20 18:00:00" for people; the text next to it states that this is UTC. */
static void format_time(time_t when, char ret_text[WSS_CLOCK_TEXT_MAX])
{
	wss_clock_format(when, ret_text);
	ret_text[strcspn(ret_text, "Z")] = '\0';
	if (strchr(ret_text, 'T'))
		*strchr(ret_text, 'T') = ' ';
}

/* Formats "host1, 2026-11-20 18:00:00 UTC, 22 s, mmu, 4 KiB granularity". */
static void chart_describe_source(const struct wss_chart_source *source, char *text, size_t size)
{
	char part[256], until[WSS_CLOCK_TEXT_MAX];

	*text = '\0';
	if (source->host && *source->host) {
		wss_chart_fit_name(source->host, WSS_SVG_FONT_SMALL, HOST_WIDTH, part,
				   sizeof(part));
		text_append(text, size, "%s", part);
	}
	if (source->start) {
		format_time(source->start, part);
		format_time(source->end, until);
		text_append(text, size, "%s%s%s UTC", part, source->end ? " to " : "",
			    source->end ? until : "");
	}
	if (source->length_ns) {
		wss_duration_format(source->length_ns, part, sizeof(part));
		wss_axis_trim(part);
		text_append(text, size, "%s", part);
	}
	if (source->method && *source->method) {
		wss_chart_fit_name(source->method, WSS_SVG_FONT_SMALL, HOST_WIDTH, part,
				   sizeof(part));
		text_append(text, size, "%s", part);
	}
	if (source->granularity_bytes) {
		wss_size_format(source->granularity_bytes, part, sizeof(part));
		text_append(text, size, "%s granularity", part);
	}
	if (source->extra && *source->extra)
		text_append(text, size, "%s", source->extra);
}

static void draw_title(FILE *f, const struct wss_chart *chart, double width)
{
	double room = width - wss_svg_text_width(chart->before, WSS_SVG_FONT_TITLE) -
		      wss_svg_text_width(chart->after, WSS_SVG_FONT_TITLE);
	char name[256], text[512];

	wss_chart_fit_name(chart->domain ? chart->domain : "", WSS_SVG_FONT_TITLE, room, name,
			   sizeof(name));
	snprintf(text, sizeof(text), "%s%s%s", chart->before, name, chart->after);
	wss_svg_text(f, chart->left, TITLE_Y, WSS_ANCHOR_START, "title", text);
	chart_describe_source(&chart->source, text, sizeof(text));
	wss_svg_fit(text, sizeof(text), WSS_SVG_FONT_SMALL, width);
	wss_svg_text(f, chart->left, SOURCE_Y, WSS_ANCHOR_START, "small source", text);
}

static double key_width(const struct wss_chart_key *key)
{
	return KEY_TEXT + LEGEND_WIDTH * wss_svg_text_width(key->text, WSS_SVG_FONT) + KEY_APART;
}

static void draw_key(FILE *f, const struct wss_chart_key *key, double x, double y)
{
	char class[64];

	snprintf(class, sizeof(class), "%s key", key->class ? key->class : "");
	if (key->symbol == WSS_CHART_DOT)
		wss_svg_circle(f, x + 7, y - 5, 5, class);
	else if (key->symbol == WSS_CHART_LINE)
		wss_svg_line(f, x, y - 5, x + 15, y - 5, class);
	else if (key->symbol == WSS_CHART_AREA)
		wss_svg_rect(f, x, y - 12, 14, 14, class);
	wss_svg_text(f, key->symbol == WSS_CHART_NO_SYMBOL ? x : x + KEY_TEXT, y, WSS_ANCHOR_START,
		     "legend", key->text);
}

/*
 * Draws the legend row by row, as far as it fits, and returns the number of rows; only counts them
 * if f is NULL.
 */
static size_t lay_out_legend(FILE *f, const struct wss_chart *chart, double right)
{
	double x = chart->left;
	size_t rows = 0;

	for (size_t i = 0; i < chart->n_keys; i++) {
		const struct wss_chart_key *key = &chart->keys[i];
		double y;

		if (i == 0 || key->own_row || chart->keys[i - 1].own_row ||
		    x + key_width(key) > right) {
			x = chart->left;
			rows++;
		}
		y = LEGEND_Y + LEGEND_ROW * (double)(rows - 1);
		if (f)
			draw_key(f, key, x, y);
		if (f && key->note[0])
			wss_svg_text(f, right, y, WSS_ANCHOR_END, "small", key->note);
		x += key_width(key);
	}
	return rows;
}

void wss_chart_begin(FILE *f, const struct wss_chart *chart, struct wss_axis_box *ret_box)
{
	/* The legend may extend into the margin beside the plot. */
	double right = WSS_CHART_WIDTH - MARGIN;
	size_t rows = lay_out_legend(NULL, chart, right);
	double top = LEGEND_Y + LEGEND_ROW * ((double)rows - 1) + BELOW_LEGEND + chart->above;

	*ret_box = (struct wss_axis_box){chart->left, WSS_CHART_WIDTH - chart->right, top,
					 top + chart->plot_height};
	wss_svg_begin(f, WSS_CHART_WIDTH, ret_box->bottom + chart->below, chart->name);
	draw_title(f, chart, right - chart->left);
	lay_out_legend(f, chart, right);
}
