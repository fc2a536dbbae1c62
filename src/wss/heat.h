/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How often the pages of a recorded guest were touched: as a map of address against time, and
 * as ranges, hottest first.
 */
#ifndef WSS_WSS_HEAT_H
#define WSS_WSS_HEAT_H

#include "base/error.h"
#include "wss/recording.h"
#include "wss/top.h"

#define WSS_HEATMAP_ROWS 128 /* about; each stretch of addresses begins a new one */
#define WSS_HEATMAP_COLUMNS 160

/* Some pages that lie together: a row of the map. */
struct wss_heatmap_row {
	uint64_t address;
	uint64_t first; /* index */
	uint64_t n;
	bool hole_before; /* of the address space: no RAM of 1 MiB or more */
	uint64_t touched; /* of it, in the window under way */
	/* Columns before this one have all that is to be added to them. */
	size_t column;
	uint64_t windows; /* of all, when it was added last */
};

struct wss_heatmap {
	uint64_t end_ns; /* columns are slices of 0 to this, all of one length */
	size_t n_rows;
	size_t n_columns;
	uint64_t row_pages; /* of a row that is not the last of its stretch */
	struct wss_heatmap_row *rows; /* by address */
	/*
	 * [i] + [i - 1] + ... + [0]: how many times more row i came than it went as a whole in the
	 * window under way, modulo 2^64; one more number than there are rows.
	 */
	uint64_t *whole;
	bool any_whole;
	size_t column;	    /* in which the last window began */
	size_t columns_used; /* behind the last column in which a window lies */
	uint64_t all_windows;
	uint32_t *windows;  /* a column: windows that lie in it; 0: a gap */
	uint32_t *added;    /* [row * n_columns + column]: how many of them touched[] has */
	double *touched;    /* [row * n_columns + column]: pages touched, summed over its windows */
};

/* end_ns: of the recording. WSS_ERR_NO_MEMORY. */
int wss_heatmap_new(const struct wss_recording *recording, uint64_t end_ns,
		    struct wss_heatmap **ret_map, struct wss_error *err);

/* As those of struct wss_recfile_visitor; opaque: the map. */
int wss_heatmap_change(void *map, enum wss_change change, struct wss_run run,
		       struct wss_error *err);
int wss_heatmap_end(void *map, const struct wss_interval *interval,
		    const struct wss_recording_sets *sets, struct wss_error *err);

/* After the last window, before the cells are looked at. */
void wss_heatmap_finish(struct wss_heatmap *map);

/* How many of the pages of a cell were touched in a window, on average: 0 to 1; -1 in a gap. */
double wss_heatmap_cell(const struct wss_heatmap *map, size_t row, size_t column);

/* Takes NULL. */
void wss_heatmap_free(struct wss_heatmap *map);

/*
 * Counts in how many windows each page was touched, with two notes for each change however long
 * its run is: what begins and ends at a page. They are added up along the memory. Recordings with
 * many changes are done slice by slice, in passes: first all are gone through once, which counts
 * the notes, and keeps them as long as they are few; then once for each slice.
 */
struct wss_heat {
	uint64_t pages;
	size_t n_chunks;
	uint32_t *notes; /* of each chunk of WSS_PAGESET_CHUNK_PAGES */
	uint64_t *place; /* in store, of the chunks of the slice: where the next note goes */
	bool counting;	 /* the first pass */
	bool kept;	 /* all notes of it are in store */
	size_t first, end;   /* chunks of the slice */
	uint32_t *store; /* see heat-slice.c */
	uint64_t n, room;
	uint32_t windows_left; /* of the recording that is being replayed */
	uint32_t *differences; /* of one chunk, while it is added up */
};

/* WSS_ERR_NO_MEMORY. */
int wss_heat_init(struct wss_heat *heat, uint64_t pages, struct wss_error *err);

/* A recording of so many windows follows. Several add up. */
void wss_heat_recording(struct wss_heat *heat, uint64_t windows);

/* As those of struct wss_recfile_visitor; opaque: the heat. */
int wss_heat_change(void *heat, enum wss_change change, struct wss_run run, struct wss_error *err);
int wss_heat_end(void *heat, const struct wss_interval *interval,
		 const struct wss_recording_sets *sets, struct wss_error *err);

/*
 * The next slice, after the first pass: 1 when there is one, 0 when not. *ret_replay: all recordings
 * are to be replayed for it. WSS_ERR_NO_MEMORY.
 */
int wss_heat_slice(struct wss_heat *heat, bool *ret_replay, struct wss_error *err);

/*
 * Offers the ranges of pages of the slice touched equally often, at least once. carry is the one
 * that may go on in the next slice; n 0 at first. It is offered by wss_heat_flush() at the end.
 */
void wss_heat_ranges(struct wss_heat *heat, const struct wss_recording *recording,
		     struct wss_page_range *carry, struct wss_top *top);
void wss_heat_flush(struct wss_page_range *carry, struct wss_top *top);

void wss_heat_free(struct wss_heat *heat);

#endif
