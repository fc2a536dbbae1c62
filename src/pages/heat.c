/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "pages/heat.h"

#include <stdlib.h>

#include "base/alloc.h"
#define HOLE_LEAST_BYTES (1ULL << 20)

/* Whether there is a hole worth showing in the address space before region i. */
static bool hole_before(const struct wss_recording *recording, size_t i)
{
	const struct wss_region *before = &recording->regions[i ? i - 1 : 0];

	return i &&
	       recording->regions[i].start - (before->start + before->length) >= HOLE_LEAST_BYTES;
}

/*
 * Lays out rows of row_pages pages, with a new row after each hole; only counts them if rows
 * is NULL.
 */
static size_t rows_lay_out(const struct wss_recording *recording, uint64_t row_pages,
			   struct wss_heatmap_row *rows)
{
	uint64_t first = 0, room = 0;
	size_t n = 0;

	for (size_t i = 0; i < recording->n_regions; i++) {
		uint64_t left = recording->regions[i].length >> WSS_PAGE_SHIFT;
		bool hole = hole_before(recording, i);

		while (left) {
			uint64_t part;

			if (!room || hole) {
				if (rows)
					rows[n] = (struct wss_heatmap_row){
						.address = wss_recording_address(recording, first),
						.first = first,
						.hole_before = hole,
					};
				n++;
				room = row_pages;
				hole = false;
			}
			part = left < room ? left : room;
			if (rows)
				rows[n - 1].n += part;
			first += part;
			left -= part;
			room -= part;
		}
	}
	return n;
}

static size_t count_stretches(const struct wss_recording *recording)
{
	size_t n = 1;

	for (size_t i = 0; i < recording->n_regions; i++)
		n += hole_before(recording, i);
	return n;
}

/* Returns the number of columns: one for each interval of the recording, up to a limit. */
static size_t count_columns(const struct wss_recording *recording, uint64_t end_ns)
{
	uint64_t n = recording->interval_ns
			     ? (end_ns + recording->interval_ns / 2) / recording->interval_ns
			     : WSS_HEATMAP_COLUMNS;

	return n > WSS_HEATMAP_COLUMNS ? WSS_HEATMAP_COLUMNS : n ? (size_t)n : 1;
}

struct wss_heatmap *wss_heatmap_new(const struct wss_recording *recording, uint64_t end_ns)
{
	struct wss_heatmap *map = wss_xcalloc(1, sizeof(*map));
	uint64_t pages = wss_recording_pages(recording);

	map->end_ns = end_ns ? end_ns : 1;
	map->n_columns = count_columns(recording, map->end_ns);
	for (map->row_pages = 16; map->row_pages < pages / WSS_HEATMAP_ROWS; map->row_pages *= 2)
		;
	while (rows_lay_out(recording, map->row_pages, NULL) >
	       WSS_HEATMAP_ROWS + count_stretches(recording))
		map->row_pages *= 2;
	map->n_rows = rows_lay_out(recording, map->row_pages, NULL);
	map->rows = wss_xcalloc(map->n_rows, sizeof(*map->rows));
	map->whole = wss_xcalloc(map->n_rows + 1, sizeof(*map->whole));
	map->windows = wss_xcalloc(map->n_columns, sizeof(*map->windows));
	map->touched = wss_xcalloc(map->n_rows * map->n_columns, sizeof(*map->touched));
	map->added = wss_xcalloc(map->n_rows * map->n_columns, sizeof(*map->added));
	rows_lay_out(recording, map->row_pages, map->rows);
	return map;
}

static size_t heatmap_row_of(const struct wss_heatmap *map, uint64_t index)
{
	size_t low = 0, high = map->n_rows - 1;

	while (low < high) {
		size_t middle = (low + high + 1) / 2;

		if (map->rows[middle].first <= index)
			low = middle;
		else
			high = middle - 1;
	}
	return low;
}

/* Adds the windows since a row's last change. */
static void add_windows(struct wss_heatmap *map, size_t row)
{
	struct wss_heatmap_row *of = &map->rows[row];
	size_t at = row * map->n_columns;

	if (of->windows == map->all_windows)
		return;
	for (size_t c = of->column; c < map->columns_used; c++) {
		map->touched[at + c] +=
			(double)of->touched * (double)(map->windows[c] - map->added[at + c]);
		map->added[at + c] = map->windows[c];
	}
	of->column = map->column;
	of->windows = map->all_windows;
}

/* Counts pages of a row that came or went. */
static void change_row(struct wss_heatmap *map, size_t row, uint64_t pages, bool in)
{
	add_windows(map, row);
	map->rows[row].touched += in ? pages : 0 - pages;
}

/* Adds the rows that came or went as a whole in the current window. */
static void add_whole_rows(struct wss_heatmap *map)
{
	uint64_t times = 0; /* modulo 2^64, because rows may go more often than they come */

	for (size_t i = 0; i < map->n_rows && map->any_whole; i++) {
		times += map->whole[i];
		map->whole[i] = 0;
		if (times)
			change_row(map, i, times * map->rows[i].n, true);
	}
	map->whole[map->n_rows] = 0;
	map->any_whole = false;
}

int wss_heatmap_change(void *opaque, enum wss_change change, struct wss_run run,
		       struct wss_error *err)
{
	struct wss_heatmap *map = opaque;
	uint64_t at = run.first, end = run.first + run.n;
	bool in = change == WSS_CHANGE_TOUCHED;
	size_t first, last;

	(void)err;
	if (!run.n || (!in && change != WSS_CHANGE_UNTOUCHED))
		return 0;
	first = heatmap_row_of(map, at);
	if (end <= map->rows[first].first + map->rows[first].n) {
		change_row(map, first, run.n, in);
		return 0;
	}
	last = heatmap_row_of(map, end - 1);
	change_row(map, first, map->rows[first].first + map->rows[first].n - at, in);
	change_row(map, last, end - map->rows[last].first, in);
	/* The rows in between are updated at the end of the window, however often they change. */
	map->whole[first + 1] += in ? 1 : UINT64_MAX;
	map->whole[last] -= in ? 1 : UINT64_MAX;
	map->any_whole = true;
	return 0;
}

static size_t heatmap_column_of(const struct wss_heatmap *map, uint64_t ns)
{
	double column = (double)ns / (double)map->end_ns * (double)map->n_columns;

	return column >= (double)map->n_columns ? map->n_columns - 1 : (size_t)column;
}

/*
 * A window counts in the column of its middle, and in each column of which it covers at least
 * a quarter.
 */
int wss_heatmap_end(void *opaque, const struct wss_interval *interval,
		    const struct wss_recording_sets *sets, struct wss_error *err)
{
	struct wss_heatmap *map = opaque;
	double length = (double)map->end_ns / (double)map->n_columns;
	double start = (double)interval->start_ns / length, end = (double)interval->end_ns / length;
	size_t middle;

	(void)sets;
	(void)err;
	add_whole_rows(map);
	if (interval->gap)
		return 0;
	map->all_windows++;
	map->column = heatmap_column_of(map, interval->start_ns);
	middle = heatmap_column_of(map, interval->start_ns +
						(interval->end_ns - interval->start_ns) / 2);
	for (size_t c = map->column; c < map->n_columns; c++) {
		double from = start > (double)c ? start : (double)c;
		double to = end < (double)c + 1 ? end : (double)c + 1;

		if (c > middle && from >= end)
			break;
		if (c != middle && to - from < .25)
			continue;
		map->windows[c]++;
		if (map->columns_used <= c)
			map->columns_used = c + 1;
	}
	return 0;
}

void wss_heatmap_finish(struct wss_heatmap *map)
{
	for (size_t r = 0; r < map->n_rows; r++)
		add_windows(map, r);
}

double wss_heatmap_cell(const struct wss_heatmap *map, size_t row, size_t column)
{
	if (!map->windows[column])
		return -1;
	return map->touched[row * map->n_columns + column] /
	       ((double)map->rows[row].n * map->windows[column]);
}

void wss_heatmap_free(struct wss_heatmap *map)
{
	if (!map)
		return;
	free(map->rows);
	free(map->whole);
	free(map->windows);
	free(map->touched);
	free(map->added);
	free(map);
}
