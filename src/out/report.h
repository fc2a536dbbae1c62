/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One column table, three forms: a table for people, CSV, JSON. Rows are
 * written as they come, so a long series can be followed and costs no memory.
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
};

struct wss_value {
	enum wss_kind kind;
	const char *text;
	uint64_t number;
	double real;
};

/* The value that stands for "not known". */
struct wss_value wss_value_absent(void);

/* A text; NULL and "" are absent. */
struct wss_value wss_value_text(const char *text);

/* A number of the given kind; an unknown one is absent. */
struct wss_value wss_value_number(uint64_t number, enum wss_kind kind);
struct wss_value wss_value_amount(struct wss_amount amount, enum wss_kind kind);

/* A time of day, ISO 8601 in UTC. Valid until the next call in the same thread. */
struct wss_value wss_value_time(time_t when);

struct wss_column {
	const char *key;    /* in CSV's heading and in JSON; with its unit; NULL: table only */
	const char *group;  /* object inside the JSON row that holds it; NULL: the row itself */
	const char *header; /* in the table; NULL: not shown there */
	int width;	    /* least width there; negative: left-aligned */
	/* The value in a row; the text must live as long as the row. */
	struct wss_value (*get)(const void *row);
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
};

struct wss_report;

/* "table", "json", "csv"; else WSS_ERR_USAGE. */
int wss_format_parse(const char *text, enum wss_format *ret_format, struct wss_error *err);

/* Starts; nothing is written before the first row or the end. layout and stream outlive it. */
int wss_report_open(FILE *stream, enum wss_format format, const struct wss_report_layout *layout,
		    struct wss_report **ret_report, struct wss_error *err);

/* Rows come all at once: they need not be out before the next. */
void wss_report_set_batch(struct wss_report *report);

/* The table's first column is at least this wide, so that rows that come later fit. */
void wss_report_set_first_width(struct wss_report *report, size_t width);

/* Writes one row and flushes it. */
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
