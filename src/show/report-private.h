/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Shared by the parts of the report: the choice of columns (report-view.c), cells as texts
 * (report-cell.c). A cell allocates no memory, so no output is lost or cut short for lack of it.
 */
#pragma once

#include "show/json.h"
#include "show/report.h"

/* Writes a row as a JSON object in one line, without newline. */
void wss_json_write_row(FILE *stream, const struct wss_report_layout *layout, const void *row);

/*
 * Returns the columns that a table or a CSV shows, in their order: an array to free, of pointers
 * into the layout. WSS_ERR_USAGE, WSS_ERR_NO_MEMORY.
 */
int wss_view_select(const struct wss_view *view, const struct wss_report_layout *layout,
		    enum wss_format format, const struct wss_column ***ret_columns, size_t *ret_n,
		    struct wss_error *err);

/* Whether a list of keys, separated by commas, has this one. NULL: no list. */
bool wss_key_is_in(const char *key, const char *list);

/* Returns the column to sort by, or NULL for none. WSS_ERR_USAGE. */
int wss_view_sort_column(const struct wss_view *view, const struct wss_report_layout *layout,
			 const struct wss_column **ret_column, bool *ret_falling,
			 struct wss_error *err);

/* Longest cell with its NUL: longer texts are cut. In a CSV record all of it may be quotes. */
#define WSS_CELL_TEXT_MAX 16384
#define WSS_CELL_MAX (2 * WSS_CELL_TEXT_MAX + 4)

/* Formats a value for a table or a CSV record. */
void wss_cell_for_people(const struct wss_value *value, char cell[static WSS_CELL_MAX]);
void wss_cell_for_csv(const struct wss_value *value, char cell[static WSS_CELL_MAX]);

/*
 * Compares two values of a column, figures by size and texts by their bytes; texts come after
 * all figures. Returns a number less than, equal to or greater than 0. The caller handles
 * unknown values.
 */
int wss_value_compare(const struct wss_value *a, const struct wss_value *b);
