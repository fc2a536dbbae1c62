/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <math.h>
#include <stdio.h>

#include "base/number.h"
#include "base/text.h"
#include "base/units.h"
#include "measure/growth-private.h"

/* Columns of the text next to the bars, and of the longest bar. */
#define BESIDE 34
#define BAR_MAX 192

uint64_t wss_growth_low(const struct wss_grid_point *point)
{
	return point->bound_low_bytes.known ? point->bound_low_bytes.value : point->min_bytes;
}

uint64_t wss_growth_high(const struct wss_grid_point *point)
{
	uint64_t high = point->max_bytes;

	if (point->bound_high_bytes.known && point->bound_high_bytes.value > high)
		high = point->bound_high_bytes.value;
	if (point->high_bytes.known && point->high_bytes.value > high)
		high = point->high_bytes.value;
	return high;
}

bool wss_growth_is_bounded(const struct wss_grid_point *point)
{
	return point->n && (wss_growth_low(point) < point->min_bytes ||
			    wss_growth_high(point) > point->max_bytes);
}

bool wss_growth_is_bound(const struct wss_grid *grid)
{
	size_t last = grid->n;

	while (last > 0 && !grid->points[last - 1].n)
		last--;
	return last && grid->points[last - 1].bound_high_bytes.known;
}

void wss_growth_describe(const struct wss_growth_drawn *guest, char *ret_text, size_t size)
{
	char granularity[16], knee_size[16], knee_time[16], knee[64] = "";
	const struct wss_grid *grid = guest->grid;

	wss_size_format(guest->granularity_bytes, granularity, sizeof(granularity));
	if (grid->knee < grid->n) {
		const struct wss_grid_point *point = &grid->points[grid->knee];
		bool bound = point->bound_high_bytes.known;

		wss_size_format(bound ? point->bound_high_bytes.value
				      : wss_u64_from_double(point->mean_bytes),
				knee_size, sizeof(knee_size));
		wss_duration_format(point->ns, knee_time, sizeof(knee_time));
		snprintf(knee, sizeof(knee), ", knee %s%s at %s", bound ? "<= " : "", knee_size,
			 knee_time);
	}
	snprintf(ret_text, size, "%s, %s granularity%s%s", guest->method, granularity,
		 guest->degraded ? ", degraded" : "", knee);
}

static void print_point(FILE *f, const struct wss_grid_point *point, bool knee, double largest,
			int room)
{
	bool bound = point->bound_high_bytes.known;
	uint64_t low =
		bound ? point->bound_low_bytes.value : wss_u64_from_double(point->mean_bytes);
	char time[16], size[16], high[16] = "";
	int bar, rest = 0;

	wss_duration_format(point->ns, time, sizeof(time));
	wss_size_format(low, size, sizeof(size));
	if (bound || wss_growth_high(point) > point->max_bytes)
		wss_size_format(wss_growth_high(point), high, sizeof(high));
	bar = largest > 0 ? (int)lround((double)low / largest * room) : 0;
	if (*high)
		rest = (int)lround((double)wss_growth_high(point) / largest * room) - bar;
	fprintf(f, "%9s %9s %s%-11s%c", time, size, *high ? "-" : " ", high, knee ? '*' : '|');
	for (int i = 0; i < bar; i++)
		fputc('#', f);
	for (int i = 0; i < rest; i++)
		fputc('-', f);
	fputc('\n', f);
}

void wss_growth_print(FILE *f, const struct wss_growth_drawn *guest, int width)
{
	const struct wss_grid *grid = guest->grid;
	char name[256], text[WSS_GROWTH_DETAILS_MAX];
	int room = width - BESIDE;
	double largest = 0;

	if (room > BAR_MAX)
		room = BAR_MAX;
	if (room < 4)
		room = 4;
	for (size_t i = 0; i < grid->n; i++)
		if (grid->points[i].n)
			largest = fmax(largest, fmax(grid->points[i].mean_bytes,
						     (double)wss_growth_high(&grid->points[i])));
	wss_growth_describe(guest, text, sizeof(text));
	snprintf(name, sizeof(name), "%s", guest->domain);
	wss_text_sanitize(name);
	fprintf(f, "%s (%s)\n", name, text);
	for (size_t i = 0; i < grid->n; i++)
		if (grid->points[i].n)
			print_point(f, &grid->points[i], i == grid->knee, largest, room);
}
