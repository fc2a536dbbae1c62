/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A report has one list of columns in three forms. Rows are written as they come, so that a long
 * series can be followed and needs no memory, unless they are to be sorted. A table shows a choice
 * of the columns, CSV all unless the view names some. JSON ignores the view: it always has all
 * columns, and keeps the rows in their own order.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#include "base/bound.h"
#include "base/error.h"

struct wss_json;

enum wss_format { WSS_FORMAT_TABLE, WSS_FORMAT_JSON, WSS_FORMAT_CSV };

enum wss_kind {
	WSS_KIND_ABSENT, /* unknown: "-" in tables, empty in CSV, no member in JSON */
	WSS_KIND_TEXT,
	WSS_KIND_BYTES,	   /* number */
	WSS_KIND_DURATION, /* number, ns; seconds in CSV and JSON */
	WSS_KIND_SHARE,	   /* real, 1 = 100 % */
	WSS_KIND_FACTOR,   /* real */
	WSS_KIND_COUNT,	   /* number */
	WSS_KIND_AGE,	   /* number, seconds */
	WSS_KIND_BOOL,	   /* number, 0 or 1 */
	WSS_KIND_PERCENT,  /* number, with a percent sign in tables */
	WSS_KIND_ADDRESS,  /* number, as hexadecimal text in all forms */
	WSS_KIND_PAGES,	   /* of a member only: number of 4 KiB pages, whose bytes are shown */
};

struct wss_value {
	enum wss_kind kind;
	/*
	 * For a text, the text. For other kinds, text that a table shows instead of the
	 * figure, or NULL.
	 */
	const char *text;
	uint64_t number;
	double real;
	enum wss_bound bound; /* a table marks a figure that is a bound: "<= 144 MiB", "<=5.1%" */
};

/* Returns the value for "unknown". */
struct wss_value wss_value_absent(void);

/* Returns a text; NULL and "" are absent. */
struct wss_value wss_value_text(const char *text);

/* Returns a number of the given kind; an unknown one is absent. */
struct wss_value wss_value_number(uint64_t number, enum wss_kind kind);
struct wss_value wss_value_amount(struct wss_amount amount, enum wss_kind kind);

/* Returns a share, 1 = 100 %. */
struct wss_value wss_value_share(double share);

/* Returns the same value, marked as a bound. */
struct wss_value wss_value_bounded(struct wss_value value, enum wss_bound bound);

/* Returns a time of day, ISO 8601 in UTC. Valid until the next call in the same thread. */
struct wss_value wss_value_time(time_t when);

/* Where a column's value comes from. WSS_GET() and WSS_FIELD() make one. */
struct wss_source {
	/* Returns the value in a row; a text must live as long as the row. NULL: it is a member of the row. */
	struct wss_value (*get)(const void *row);
	/* Where the members are: NULL: in the row itself; a function that returns NULL: nowhere, all are absent. */
	const void *(*of)(const void *row);
	enum wss_member {
		WSS_MEMBER_ARRAY,  /* char[] */
		WSS_MEMBER_TEXT,   /* const char * */
		WSS_MEMBER_AMOUNT, /* struct wss_amount */
		WSS_MEMBER_NUMBER, /* uint64_t */
		WSS_MEMBER_UNSIGNED,
		WSS_MEMBER_INT,	   /* absent below 0 */
		WSS_MEMBER_DOUBLE, /* real; seconds of a duration, else rounded */
		WSS_MEMBER_VALUE,  /* struct wss_value: whoever made the row knew all about it */
		WSS_MEMBER_BOOL,
		WSS_MEMBER_TIME, /* time_t */
	} member;
	enum wss_kind kind; /* of a number */
	size_t offset;
};

/* A function of the row. */
#define WSS_GET(function)         \
	{                         \
		.get = (function) \
	}

/* A member of a row of this type; kind: that of enum wss_kind, without its prefix. */
#define WSS_FIELD(type, field, what) WSS_FIELD_OF(NULL, type, field, what)

/* A member of something else of this type, which get_base(row) finds. */
#define WSS_FIELD_OF(get_base, type, field, what)                                                                     \
	{                                                                                                             \
		.of = (get_base), .kind = WSS_KIND_##what, .offset = offsetof(type, field),                         \
		.member = _Generic(&((type *)NULL)->field, const char **: WSS_MEMBER_TEXT, char **: WSS_MEMBER_TEXT, \
				   struct wss_amount *: WSS_MEMBER_AMOUNT, uint64_t *: WSS_MEMBER_NUMBER,            \
				   unsigned *: WSS_MEMBER_UNSIGNED, bool *: WSS_MEMBER_BOOL, time_t *: WSS_MEMBER_TIME, \
				   int *: WSS_MEMBER_INT, double *: WSS_MEMBER_DOUBLE,                               \
				   struct wss_value *: WSS_MEMBER_VALUE,                                             \
				   char(*)[sizeof(((type *)NULL)->field)]: WSS_MEMBER_ARRAY) \
	}

struct wss_column {
	const char *key; /* name in CSV, JSON and the view; ends in the unit */
	/*
	 * JSON object within the row that contains this value and its neighbours; NULL: the
	 * row itself.
	 */
	const char *group;
	const char *header; /* heading in the table */
	int width;	    /* smallest width there; negative: left-aligned */
	struct wss_source source;
	const char *help; /* one line: its meaning and unit */
};

/* Adds whatever has no column, such as lists, to a JSON row; see report-private.h. */
typedef void (*wss_report_extra)(const void *row, struct wss_json *json);

/* Returns the value of a column in a row. */
struct wss_value wss_column_value(const struct wss_column *column, const void *row);

struct wss_report_layout {
	const char *schema;    /* "virt-wss/samples/1" */
	const char *array_key; /* "samples" */
	const struct wss_column *columns;
	size_t n_columns;
	wss_report_extra extra; /* may be NULL */
	const char *list_key;	/* column that extra writes as a list in JSON; may be NULL */
	/* Keys, separated by commas: not in JSON, and in CSV only on request; may be NULL. */
	const char *table_only;
	/*
	 * Columns of the table in order, and those of the wide table: keys separated by
	 * commas. The layout's first column grows with long names. NULL: this layout has no
	 * table.
	 */
	const char *shown;
	const char *wide;
};

/* What the user wants to see. All zero: the usual table without a terminal, or the whole CSV. */
struct wss_view {
	bool wide;	     /* table: all the usual columns, whatever its width */
	const char *columns; /* table and CSV: keys separated by commas; NULL: the usual ones */
	const char *sort;    /* a key, after "-" in descending order; NULL: rows as they come */
	int width; /* table: columns of the terminal; 0: no terminal, so only very long names are cut */
};

/*
 * Checks that all names in a list with commas, or a column to sort by (with or without "-"), are
 * keys of the layout. Otherwise WSS_ERR_USAGE, with the nearest key and a list of all.
 */
int wss_view_check_columns(const struct wss_report_layout *layout, const char *list,
			   struct wss_error *err);
int wss_view_check_sort(const struct wss_report_layout *layout, const char *sort,
			struct wss_error *err);

/*
 * Prints each column of the layouts, a list that ends in NULL: name, heading, tables that show it,
 * and meaning. width: columns of the terminal, or 0. WSS_ERR_FAILED, WSS_ERR_NO_MEMORY.
 */
int wss_columns_print(FILE *stream, const struct wss_report_layout *const *layouts, int width,
		      struct wss_error *err);

struct wss_report;

/* Parses "table", "json" or "csv"; WSS_ERR_USAGE for anything else. */
int wss_format_parse(const char *text, enum wss_format *ret_format, struct wss_error *err);

/*
 * Starts a report; nothing is written before the first row or the end. layout and stream must
 * outlive it. view may be NULL for the usual one. WSS_ERR_USAGE if the view names a column that
 * does not exist.
 */
int wss_report_open(FILE *stream, enum wss_format format, const struct wss_view *view,
		    const struct wss_report_layout *layout, struct wss_report **ret_report,
		    struct wss_error *err);

/* Announces that all rows come at once and need not be flushed one by one. */
void wss_report_set_batch(struct wss_report *report);

/*
 * Sets the smallest width of the table's first column, so that later rows fit; on a terminal
 * it never takes room from the others.
 */
void wss_report_set_first_width(struct wss_report *report, size_t width);

/* Holds a table's rows back until the end, so that its columns are as wide as their content. */
void wss_report_hold(struct wss_report *report);

/* Writes one row and flushes it, unless rows are held back. */
void wss_report_row(struct wss_report *report, const void *row);

/*
 * Writes the row of an item that failed: CSV and JSON have a record for each requested item. A
 * table leaves it out, and the caller prints a message.
 */
void wss_report_bad_row(struct wss_report *report, const void *row);

/*
 * Leaves an item that failed out of all formats: the caller prints a message, and a table without rows then has no
 * header either. NULL: does nothing.
 */
void wss_report_leave_out(struct wss_report *report);

/*
 * Writes a separate table of n rows, each of that size in bytes, after the last row and before the
 * summary; nothing in CSV and JSON.
 */
void wss_report_table(struct wss_report *report, const struct wss_report_layout *layout,
		      const void *rows, size_t n, size_t size);

/*
 * Writes a summary of all rows after the last one: an object next to the list in JSON, a
 * separate table, nothing in CSV. At most once, just before the end.
 */
void wss_report_total(struct wss_report *report, const char *key,
		      const struct wss_report_layout *layout, const void *row);

/*
 * Completes the output (closing brackets, the heading if there were no rows) and frees the
 * report. WSS_ERR_FAILED if anything could not be written. Accepts NULL.
 */
int wss_report_close(struct wss_report *report, struct wss_error *err);

/* Frees a report without writing anything; no row may have been written. Accepts NULL. */
void wss_report_free(struct wss_report *report);
