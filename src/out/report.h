/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One list of columns, three forms: a table for people, CSV, JSON. Rows are written as they
 * come, so that a long series can be followed and costs no memory, unless they are to be sorted.
 *
 * A table shows a choice of the columns; CSV and JSON have all of them. JSON always does,
 * whatever the view says, and keeps the rows in their own order.
 */
#ifndef WSS_OUT_REPORT_H
#define WSS_OUT_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "wss/sample.h"

struct wss_json;

enum wss_format { WSS_FORMAT_TABLE, WSS_FORMAT_JSON, WSS_FORMAT_CSV };

enum wss_kind {
	WSS_KIND_ABSENT, /* not known: "-" in tables, empty in CSV, no member in JSON */
	WSS_KIND_TEXT,
	WSS_KIND_BYTES,	   /* number */
	WSS_KIND_DURATION, /* number, ns; seconds in CSV and JSON */
	WSS_KIND_SHARE,	   /* real, 1 = 100 % */
	WSS_KIND_FACTOR,   /* real */
	WSS_KIND_COUNT,	   /* number */
	WSS_KIND_AGE,	   /* number, seconds */
	WSS_KIND_BOOL,	   /* number, 0 or 1 */
	WSS_KIND_PERCENT,  /* number, with its sign in tables */
	WSS_KIND_ADDRESS,  /* number, a text in hexadecimal in all forms */
};

struct wss_value {
	enum wss_kind kind;
	/* Of a text: it. Of another kind: what a table says in place of the figure; NULL: nothing. */
	const char *text;
	uint64_t number;
	double real;
	enum wss_bound bound; /* a table marks a figure that is not exact: "<= 144 MiB", "<5.1%" */
};

/* The value that stands for "not known". */
struct wss_value wss_value_absent(void);

/* A text; NULL and "" are absent. */
struct wss_value wss_value_text(const char *text);

/* A number of the given kind; an unknown one is absent. */
struct wss_value wss_value_number(uint64_t number, enum wss_kind kind);
struct wss_value wss_value_amount(struct wss_amount amount, enum wss_kind kind);

/* The same value, marked as a bound. */
struct wss_value wss_value_bounded(struct wss_value value, enum wss_bound bound);

/* A time of day, ISO 8601 in UTC. Valid until the next call in the same thread. */
struct wss_value wss_value_time(time_t when);

struct wss_column {
	const char *key;    /* its name, in CSV's heading, in JSON and for the view; with its unit */
	/* Object inside the JSON row that holds it, and its neighbours; NULL: the row itself. */
	const char *group;
	const char *header; /* in the table */
	int width;	    /* least width there; negative: left-aligned */
	/* The value in a row; the text must live as long as the row. */
	struct wss_value (*get)(const void *row);
	const char *help; /* one line: what it is, and its unit */
	bool table_only;  /* not in JSON, and in CSV only where it is asked for */
};

/* Adds to a JSON row what is no column (lists), see report-private.h. */
typedef void (*wss_report_extra)(const void *row, struct wss_json *json);

struct wss_report_layout {
	const char *schema;    /* "virt-wss/samples/1" */
	const char *array_key; /* "samples" */
	const struct wss_column *columns;
	size_t n_columns;
	wss_report_extra extra; /* may be NULL */
	const char *list_key;	/* a column that extra writes as a list in JSON; may be NULL */
	/*
	 * The columns of the table in their order, and of the wide table: keys with commas between
	 * them. The first column of the layout is the one that grows with long names. NULL: no
	 * table is made of this layout.
	 */
	const char *shown;
	const char *wide;
};

/* What the reader wants to see. All of it 0: the usual table, or the whole CSV, of no terminal. */
struct wss_view {
	bool wide;	     /* table: all the usual columns, however wide it becomes */
	const char *columns; /* table and CSV: these, keys with commas between them; NULL: the usual */
	const char *sort;    /* a key, "-" before it: falling; NULL: rows as they come */
	int width;	     /* table: columns of the terminal; 0: no terminal, nothing is cut */
};

/*
 * Whether all names in a list with commas, or the one of a column to sort by ("-" before it or
 * not), are keys of the layout; else WSS_ERR_USAGE, with the nearest one and a list of them.
 */
int wss_view_check_columns(const struct wss_report_layout *layout, const char *list,
			   struct wss_error *err);
int wss_view_check_sort(const struct wss_report_layout *layout, const char *sort,
			struct wss_error *err);

/*
 * Prints each column of the layouts, a list that ends in NULL: name, heading, where it is shown,
 * what it is. width: columns of the terminal, or 0. WSS_ERR_FAILED, WSS_ERR_NO_MEMORY.
 */
int wss_columns_print(FILE *stream, const struct wss_report_layout *const *layouts, int width,
		      struct wss_error *err);

struct wss_report;

/* "table", "json", "csv"; else WSS_ERR_USAGE. */
int wss_format_parse(const char *text, enum wss_format *ret_format, struct wss_error *err);

/*
 * Starts; nothing is written before the first row or the end. layout and stream outlive it. view
 * may be NULL: the usual one. WSS_ERR_USAGE where the view names what is no column.
 */
int wss_report_open(FILE *stream, enum wss_format format, const struct wss_view *view,
		    const struct wss_report_layout *layout, struct wss_report **ret_report,
		    struct wss_error *err);

/* Rows come all at once: they need not be out before the next. */
void wss_report_set_batch(struct wss_report *report);

/*
 * The table's first column is at least this wide, so that rows that come later fit; on a terminal
 * no wider than leaves room for the others.
 */
void wss_report_set_first_width(struct wss_report *report, size_t width);

/* A table's rows wait until the end, so that its columns are as wide as what is in them. */
void wss_report_hold(struct wss_report *report);

/* Writes one row and flushes it, unless rows are held back. */
void wss_report_row(struct wss_report *report, const void *row);

/*
 * The row of something that went wrong: a record in CSV and JSON, where each thing asked for
 * has one. A table shows only what there is; the caller's message says the rest.
 */
void wss_report_bad_row(struct wss_report *report, const void *row);

/*
 * One thing about all rows, after the last: an object beside the list in JSON, a table of its own;
 * CSV has no place for it. At most one, just before the end.
 */
void wss_report_total(struct wss_report *report, const char *key,
		      const struct wss_report_layout *layout, const void *row);

/*
 * Closes what is open (brackets, the heading where there was nothing to report) and frees.
 * WSS_ERR_FAILED when anything could not be written. Takes NULL.
 */
int wss_report_close(struct wss_report *report, struct wss_error *err);

/* Frees a report that nothing has been written to, and writes nothing. Takes NULL. */
void wss_report_free(struct wss_report *report);

#endif
