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
};

struct wss_heatmap {
	uint64_t end_ns; /* columns are slices of 0 to this, all of one length */
	size_t n_rows;
	size_t n_columns;
	uint64_t row_pages; /* of a row that is not the last of its stretch */
	struct wss_heatmap_row *rows; /* by address */
	uint32_t *windows;  /* a column: windows that lie in it; 0: a gap */
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

/* How many of the pages of a cell were touched in a window, on average: 0 to 1; -1 in a gap. */
double wss_heatmap_cell(const struct wss_heatmap *map, size_t row, size_t column);

/* Takes NULL. */
void wss_heatmap_free(struct wss_heatmap *map);

/*
 * Counts in how many windows each page of a slice of the memory was touched, with two
 * additions for each change however long its run is: the slice holds differences between
 * neighbouring pages, which are added up at the end. A large memory is done slice by slice,
 * in passes over the recording.
 */
#define WSS_HEAT_SLICE_PAGES (1ULL << 25) /* 128 GiB of the guest, 128 MiB of ours */

struct wss_heat_slice {
	uint64_t first; /* index */
	uint64_t n;
	uint32_t *differences; /* n + 1 */
	uint32_t windows_left; /* of the recording that is being replayed */
};

int wss_heat_slice_init(struct wss_heat_slice *slice, uint64_t pages, struct wss_error *err);

/* Empty, from page first on; at most pages of the memory in all. */
void wss_heat_slice_start(struct wss_heat_slice *slice, uint64_t first, uint64_t pages);

/* A recording of so many windows follows. Several add up. */
void wss_heat_slice_recording(struct wss_heat_slice *slice, uint64_t windows);

/* As those of struct wss_recfile_visitor; opaque: the slice. */
int wss_heat_slice_change(void *slice, enum wss_change change, struct wss_run run,
			  struct wss_error *err);
int wss_heat_slice_end(void *slice, const struct wss_interval *interval,
		       const struct wss_recording_sets *sets, struct wss_error *err);

/*
 * Offers the ranges of pages touched equally often, at least once. carry is the one that
 * may go on in the next slice; n 0 at first. It is offered by wss_heat_flush() at the end.
 */
void wss_heat_slice_ranges(const struct wss_heat_slice *slice,
			   const struct wss_recording *recording, struct wss_page_range *carry,
			   struct wss_top *top);
void wss_heat_flush(struct wss_page_range *carry, struct wss_top *top);

void wss_heat_slice_free(struct wss_heat_slice *slice);

#endif
