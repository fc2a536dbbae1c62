/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Counts how often the pages of a recorded guest were touched, as a map of address against
 * time, and as a list of ranges, hottest first.
 */
#pragma once

#include "base/error.h"
#include "pages/recording.h"
#include "pages/top.h"

#define WSS_HEATMAP_ROWS 128 /* approximate; each stretch of addresses begins a new row */
#define WSS_HEATMAP_COLUMNS 160

/* Row of the map: adjacent pages. */
struct wss_heatmap_row {
	uint64_t address;
	uint64_t first; /* index of the first page */
	uint64_t n;
	bool hole_before; /* preceded by 1 MiB or more of address space without RAM */
	uint64_t touched; /* pages of the row touched so far in the current window */
	/* Columns before this one are complete for this row. */
	size_t column;
	uint64_t windows; /* total number of windows when the row was last added */
};

struct wss_heatmap {
	uint64_t end_ns; /* columns are slices of equal length from 0 to this */
	size_t n_rows;
	size_t n_columns;
	uint64_t row_pages;	      /* pages in each row except the last one of a stretch */
	struct wss_heatmap_row *rows; /* in the order of addresses */
	/*
	 * The sum of [0] to [i] is how often row i has come as a whole in the current window,
	 * minus how often it has gone, modulo 2^64. The array has one element more than there
	 * are rows.
	 */
	uint64_t *whole;
	bool any_whole;
	size_t column;	     /* column in which the last window began */
	size_t columns_used; /* end of the columns that contain a window */
	uint64_t all_windows;
	uint32_t *windows; /* per column: number of windows in it; 0 for a gap */
	uint32_t *added;   /* [row * n_columns + column]: windows that touched[] includes */
	double *touched;   /* [row * n_columns + column]: sum of pages touched in its windows */
};

/* Makes a map for a recording that ends at end_ns. */
struct wss_heatmap *wss_heatmap_new(const struct wss_recording *recording, uint64_t end_ns);

/* Functions of struct wss_recfile_visitor; opaque is the map. */
int wss_heatmap_change(void *map, enum wss_change change, struct wss_run run,
		       struct wss_error *err);
int wss_heatmap_end(void *map, const struct wss_interval *interval,
		    const struct wss_recording_sets *sets, struct wss_error *err);

/* Call after the last window, before reading cells. */
void wss_heatmap_finish(struct wss_heatmap *map);

/* Returns the mean share of a cell's pages that a window touched, 0 to 1; -1 in a gap. */
double wss_heatmap_cell(const struct wss_heatmap *map, size_t row, size_t column);

/* Frees a map; accepts NULL. */
void wss_heatmap_free(struct wss_heatmap *map);

/*
 * Counts the windows in which each page was touched, with two notes for each change, however long
 * its run is: one at its beginning and one at its end. Adding them up along the memory gives the
 * counts. Recordings with many changes are evaluated slice by slice: a first pass counts the notes,
 * and keeps them while they are few; then each slice takes one more pass.
 */
struct wss_heat {
	uint64_t pages;
	size_t n_chunks;
	uint32_t *notes;   /* number of notes in each chunk of WSS_PAGESET_CHUNK_PAGES */
	uint64_t *place;   /* position in store of the next note, for each chunk of the slice */
	bool counting;	   /* in the first pass */
	bool kept;	   /* store has all notes of the first pass */
	size_t first, end; /* chunks of the slice */
	uint32_t *store;   /* see heat-slice.c */
	uint64_t n, room;
	uint64_t slice_room;   /* largest count of numbers in store for a slice */
	uint32_t windows_left; /* in the recording that is being replayed */
	uint32_t *differences; /* differences of one chunk while it is added up */
};

/*
 * Starts counting over pages. data_bytes is the total size of what is read of the recordings;
 * slices are in proportion to it, so that few passes suffice.
 */
void wss_heat_init(struct wss_heat *heat, uint64_t pages, uint64_t data_bytes);

/* Announces a recording with this number of windows. Several recordings add up. */
void wss_heat_recording(struct wss_heat *heat, uint64_t windows);

/* Functions of struct wss_recfile_visitor; opaque is the heat. */
int wss_heat_change(void *heat, enum wss_change change, struct wss_run run, struct wss_error *err);
int wss_heat_end(void *heat, const struct wss_interval *interval,
		 const struct wss_recording_sets *sets, struct wss_error *err);

/*
 * Starts the next slice after the first pass; false: there is none. *ret_replay: all recordings
 * must be replayed for it.
 */
bool wss_heat_slice(struct wss_heat *heat, bool *ret_replay);

/*
 * Offers the ranges of adjacent pages of the slice that were touched equally often, at least once.
 * carry is a range that may continue in the next slice, with n 0 at first; wss_heat_flush() offers
 * the last one.
 */
void wss_heat_ranges(struct wss_heat *heat, const struct wss_recording *recording,
		     struct wss_page_range *carry, struct wss_top *top);
void wss_heat_flush(struct wss_page_range *carry, struct wss_top *top);

void wss_heat_free(struct wss_heat *heat);
