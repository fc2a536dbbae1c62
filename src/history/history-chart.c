/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "history/history-chart.h"

#include <langinfo.h>
#include <locale.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "base/units.h"
#include "show/width.h"

#define LINES 8
#define EIGHTHS 8
#define COLUMNS_MAX 240
/* Room for "1023.9 MiB |". */
#define BESIDE 12
#define WIDTH_MIN 40

/* Finds the largest point of each of n columns; absent ones are 0. */
static void fill_columns(const struct wss_history_chart *chart, uint64_t *columns, size_t n)
{
	time_t first = chart->points[0].time, last = chart->points[chart->n_points - 1].time;
	double length = (double)(last - first);

	memset(columns, 0, n * sizeof(*columns));
	for (size_t i = 0; i < chart->n_points; i++) {
		const struct wss_history_point *point = &chart->points[i];
		double part = length > 0 ? (double)(point->time - first) / length : 0;
		size_t at = (size_t)(part * (double)(n - 1) + 0.5);

		if (point->bytes > columns[at])
			columns[at] = point->bytes;
	}
}

/*
 * If there are fewer points than columns, fills the columns up to the next point, unless that
 * comes much later than usual: a gap in the history stays a gap.
 */
static void close_small_gaps(uint64_t *columns, size_t n, size_t n_points)
{
	size_t usual = n / n_points + 1, from = 0;

	for (size_t i = 1; i < n; i++) {
		if (!columns[i])
			continue;
		for (size_t k = from + 1; k < i && i - from <= 2 * usual; k++)
			columns[k] = columns[from];
		from = i;
	}
}

/*
 * Returns the block that a column shows in a line, counted from the bottom; height is in
 * eighths of a line.
 */
static const char *cell_of(unsigned height, unsigned line, bool blocks)
{
	static const char *const parts[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
	unsigned here = height > line * EIGHTHS ? height - line * EIGHTHS : 0;

	if (here > EIGHTHS)
		here = EIGHTHS;
	if (blocks)
		return parts[here];
	return here >= EIGHTHS / 2 || (here && !line) ? "#" : " ";
}

static void print_label(FILE *f, uint64_t bytes)
{
	char text[16];

	wss_size_format(bytes, text, sizeof(text));
	fprintf(f, "%*s |", BESIDE - 2, text);
}

static void print_times(FILE *f, const struct wss_history_chart *chart, int room)
{
	char first[WSS_CLOCK_TEXT_MAX], last[WSS_CLOCK_TEXT_MAX];

	wss_clock_format(chart->points[0].time, first);
	wss_clock_format(chart->points[chart->n_points - 1].time, last);
	if (!strcmp(first, last) || room < (int)(strlen(first) + strlen(last) + 1))
		fprintf(f, "%*s%s\n", BESIDE, "", last);
	else
		fprintf(f, "%*s%s%*s\n", BESIDE, "", first, room - (int)strlen(first), last);
}

void wss_history_chart_print(FILE *f, const struct wss_history_chart *chart, int width)
{
	uint64_t columns[COLUMNS_MAX], largest = 1;
	char title[256];
	int room;

	if (width < WIDTH_MIN)
		width = WIDTH_MIN;
	room = width - BESIDE < COLUMNS_MAX ? width - BESIDE : COLUMNS_MAX;
	fill_columns(chart, columns, (size_t)room);
	close_small_gaps(columns, (size_t)room, chart->n_points);
	for (int i = 0; i < room; i++)
		largest = columns[i] > largest ? columns[i] : largest;
	snprintf(title, sizeof(title), "%s", chart->title);
	wss_text_sanitize(title);
	wss_text_cut(title, sizeof(title), width);
	fprintf(f, "%s\n", title);
	for (unsigned line = LINES; line-- > 0;) {
		if (line == LINES - 1 || line == LINES / 2 - 1)
			print_label(f, line == LINES - 1 ? largest : largest / 2);
		else
			fprintf(f, "%*s |", BESIDE - 2, line ? "" : "0");
		for (int i = 0; i < room; i++) {
			double part = (double)columns[i] / (double)largest;
			unsigned height = (unsigned)(part * LINES * EIGHTHS + 0.5);

			/* Every value is visible. */
			fputs(cell_of(columns[i] && !height ? 1 : height, line, chart->blocks), f);
		}
		fputc('\n', f);
	}
	print_times(f, chart, room);
}

bool wss_locale_is_utf8(void)
{
	locale_t locale = newlocale(LC_CTYPE_MASK, "", (locale_t)0);
	bool utf8 = locale && !strcmp(nl_langinfo_l(CODESET, locale), "UTF-8");

	if (locale)
		freelocale(locale);
	return utf8;
}
