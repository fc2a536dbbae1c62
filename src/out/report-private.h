/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the parts of the report share: the choice of columns (report-view.c), cells as texts
 * (report-cell.c), and JSON straight into a stream (json.c). Neither a cell nor JSON takes memory,
 * so no output is lost or cut short where there is none; whether all of it arrived is for the
 * stream to say (ferror()).
 */
#ifndef WSS_OUT_REPORT_PRIVATE_H
#define WSS_OUT_REPORT_PRIVATE_H

#include "out/report.h"

/* An object or a list that is being written. */
struct wss_json {
	FILE *stream;
	bool any; /* has a member */
};

/* Begins an object as the next member of its parent (NULL: it stands alone): key NULL in a
 * list. */
struct wss_json wss_json_object(FILE *stream, struct wss_json *parent, const char *key);

/* The same for a list. */
struct wss_json wss_json_list(FILE *stream, struct wss_json *parent, const char *key);

/* The next member: key NULL in a list. An absent value is left out. */
void wss_json_value(struct wss_json *json, const char *key, const struct wss_value *value);

/* The end of what wss_json_object() or wss_json_list() began. */
void wss_json_object_end(struct wss_json *json);
void wss_json_list_end(struct wss_json *json);

/* Writes a row as a JSON object in one line without newline. */
void wss_json_write_row(FILE *stream, const struct wss_report_layout *layout, const void *row);

/*
 * The columns that a table or a CSV shows, in their order: an array to free, of pointers into the
 * layout. WSS_ERR_USAGE, WSS_ERR_NO_MEMORY.
 */
int wss_view_select(const struct wss_view *view, const struct wss_report_layout *layout,
		    enum wss_format format, const struct wss_column ***ret_columns, size_t *ret_n,
		    struct wss_error *err);

/* The column to sort by, NULL for none. WSS_ERR_USAGE. */
int wss_view_sort_column(const struct wss_view *view, const struct wss_report_layout *layout,
			 const struct wss_column **ret_column, bool *ret_falling,
			 struct wss_error *err);

/* The longest cell and its NUL: longer texts are cut. In a CSV record all of it may be quotes. */
#define WSS_CELL_TEXT_MAX 2048
#define WSS_CELL_MAX (2 * WSS_CELL_TEXT_MAX + 4)

/* A value as a table or a CSV record has it. */
void wss_cell_for_people(const struct wss_value *value, char cell[static WSS_CELL_MAX]);
void wss_cell_for_csv(const struct wss_value *value, char cell[static WSS_CELL_MAX]);

/*
 * Orders two values of a column: figures by their size, texts by their bytes after all figures.
 * Less than, equal to or greater than 0. What is not known is the caller's business.
 */
int wss_value_compare(const struct wss_value *a, const struct wss_value *b);

#endif
