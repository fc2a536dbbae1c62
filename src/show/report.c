/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The columns of a table are as wide as the heading was written for: later rows cannot widen them.
 * The width of the first column, which has the names, is therefore set beforehand. A text that does
 * not fit is cut if stdout is a terminal, or if it is longer than any name should be, and shifts the rest of its row
 * otherwise. A table that
 * nobody follows line by line holds its rows back instead, and gets widths that fit.
 */
#include "show/report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/stop.h"
#include "show/held-rows.h"
#include "show/name-cuts.h"
#include "show/report-private.h"
#include "show/width.h"

/* Narrowest column in which a text broken into lines is still readable. */
#define WRAP_MIN 12

struct wss_report {
	FILE *stream;
	enum wss_format format;
	struct wss_view view;
	const struct wss_report_layout *layout;
	const struct wss_column **columns; /* columns that a table or CSV shows */
	size_t n_columns;
	int *widths;
	size_t first_width;
	const struct wss_column *sort; /* NULL: rows are written as they come */
	bool falling;
	bool hold;
	struct wss_held_rows held;
	struct wss_name_cuts names; /* those that did not fit the first column */
	int start;		    /* terminal column at which the next cell of a table begins */
	bool batch;		    /* rows need not be flushed one by one */
	size_t rows;		    /* number of rows that were written or are held */
	bool head;		    /* the heading has been written */
	bool total;		    /* the list is closed */
	int failed;		    /* errno of the first write that failed, or 0 */
	bool left_out;		    /* an item that failed has no row */
};

int wss_format_parse(const char *text, enum wss_format *ret_format, struct wss_error *err)
{
	static const char *const names[] = {"table", "json", "csv"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (!strcmp(text, names[i])) {
			*ret_format = (enum wss_format)i;
			return 0;
		}
	}
	return wss_error_set(err, WSS_ERR_USAGE, "'%s' is not table, json or csv", text);
}

void wss_report_free(struct wss_report *report)
{
	if (!report)
		return;
	wss_held_rows_free(&report->held);
	wss_name_cuts_free(&report->names);
	free(report->columns);
	free(report->widths);
	free(report);
}

/* Selects the columns of a table or CSV and their smallest widths. */
static int report_select(struct wss_report *report, struct wss_error *err)
{
	if (report->format == WSS_FORMAT_JSON)
		return 0;
	if (wss_view_select(&report->view, report->layout, report->format, &report->columns,
			    &report->n_columns, err) < 0 ||
	    wss_view_sort_column(&report->view, report->layout, &report->sort, &report->falling,
				 err) < 0)
		return -1;
	report->widths = calloc(report->n_columns, sizeof(*report->widths));
	if (!report->widths)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	for (size_t i = 0; i < report->n_columns; i++) {
		int heading = wss_text_width(report->columns[i]->header);

		report->widths[i] = abs(report->columns[i]->width);
		if (report->widths[i] < heading)
			report->widths[i] = heading;
	}
	return 0;
}

int wss_report_open(FILE *stream, enum wss_format format, const struct wss_view *view,
		    const struct wss_report_layout *layout, struct wss_report **ret_report,
		    struct wss_error *err)
{
	struct wss_report *report = calloc(1, sizeof(*report));

	if (!report)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	report->stream = stream;
	report->format = format;
	if (view)
		report->view = *view;
	report->layout = layout;
	if (report_select(report, err) < 0) {
		wss_report_free(report);
		return -1;
	}
	report->hold = report->sort != NULL;
	*ret_report = report;
	return 0;
}

void wss_report_set_first_width(struct wss_report *report, size_t width)
{
	if (width > report->first_width)
		report->first_width = width;
}

void wss_report_set_batch(struct wss_report *report)
{
	report->batch = true;
}

void wss_report_hold(struct wss_report *report)
{
	if (report->format == WSS_FORMAT_TABLE)
		report->hold = true;
}

static bool is_text_column(const struct wss_report *report, size_t i)
{
	return report->columns[i]->width < 0;
}

/* Whether it is the column that has the names, wherever it is shown. */
static bool is_first_column(const struct wss_report *report, size_t i)
{
	return report->columns[i] == &report->layout->columns[0];
}

/* Returns the width of all columns but one, with the blanks between them. */
static int width_of_others(const struct wss_report *report, size_t one)
{
	int width = 2 * (int)(report->n_columns - 1);

	for (size_t i = 0; i < report->n_columns; i++)
		width += i == one ? 0 : report->widths[i];
	return width;
}

/*
 * Widens the name column to fit all names; on a terminal only as far as the other columns
 * leave room.
 */
static void fit_first_column(struct wss_report *report)
{
	for (size_t i = 0; i < report->n_columns; i++) {
		int want = (int)report->first_width, room;

		if (!is_first_column(report, i))
			continue;
		room = report->view.width - width_of_others(report, i);
		if (report->view.width && want > room)
			want = room;
		if (want > WSS_NAME_WIDTH_MAX)
			want = WSS_NAME_WIDTH_MAX;
		if (want > report->widths[i])
			report->widths[i] = want;
	}
}

/* Prints a text from column start on, in as many lines as the terminal's width requires. */
static void write_wrapped(struct wss_report *report, const char *text, int start)
{
	int room = report->view.width - start;

	if (!report->view.width || room < WRAP_MIN) {
		fputs(text, report->stream);
		return;
	}
	while (*text) {
		size_t len = wss_text_line(text, room);

		fwrite(text, 1, len, report->stream);
		text += len;
		text += strspn(text, " ");
		if (*text)
			fprintf(report->stream, "\n%*s", start, "");
	}
}

/* Writes n blanks, if any. A report may have a million rows, for which printf(3) takes seconds. */
static void write_blanks(struct wss_report *report, int n)
{
	while (n-- > 0)
		putc_unlocked(' ', report->stream);
}

static void write_padded(struct wss_report *report, size_t i, const char *text)
{
	int pad = report->widths[i] - wss_text_width(text);

	if (pad < 0)
		pad = 0;
	if (is_text_column(report, i)) {
		fputs_unlocked(text, report->stream);
		write_blanks(report, pad + 2);
		return;
	}
	write_blanks(report, pad);
	fputs_unlocked(text, report->stream);
	if (i + 1 < report->n_columns)
		write_blanks(report, 2);
}

static void write_table_cell(struct wss_report *report, size_t i, char cell[static WSS_CELL_MAX])
{
	if (i == 0)
		report->start = 0;
	if (i + 1 == report->n_columns && is_text_column(report, i)) {
		write_wrapped(report, cell, report->start);
		return;
	}
	if (is_text_column(report, i)) {
		int room = report->view.width || report->widths[i] > WSS_NAME_WIDTH_MAX
				   ? report->widths[i]
				   : WSS_NAME_WIDTH_MAX;

		if (is_first_column(report, i))
			wss_name_cuts_apply(&report->names, cell, WSS_CELL_MAX, room);
		else
			wss_text_cut(cell, WSS_CELL_MAX, room);
	}
	write_padded(report, i, cell);
	report->start += report->widths[i] + 2;
}

/* Formats the cell of a row, or of the heading if row is NULL. */
static void make_cell(const struct wss_report *report, size_t i, const void *row,
		      char cell[static WSS_CELL_MAX])
{
	const struct wss_column *column = report->columns[i];
	bool csv = report->format == WSS_FORMAT_CSV;
	struct wss_value value;

	if (!row) {
		snprintf(cell, WSS_CELL_MAX, "%s", csv ? column->key : column->header);
		return;
	}
	value = wss_column_value(column, row);
	if (csv)
		wss_cell_for_csv(&value, cell);
	else
		wss_cell_for_people(&value, cell);
}

static void write_cell(struct wss_report *report, size_t i, char cell[static WSS_CELL_MAX])
{
	bool csv = report->format == WSS_FORMAT_CSV, last = i + 1 == report->n_columns;

	if (!csv)
		write_table_cell(report, i, cell);
	else
		fputs(cell, report->stream);
	if (last)
		fputs(csv ? "\r\n" : "\n", report->stream);
	else if (csv)
		fputc(',', report->stream);
}

static void write_line(struct wss_report *report, const void *row)
{
	char cell[WSS_CELL_MAX];

	for (size_t i = 0; i < report->n_columns; i++) {
		make_cell(report, i, row, cell);
		write_cell(report, i, cell);
	}
}

static void write_held_line(struct wss_report *report, const char *cells)
{
	char cell[WSS_CELL_MAX];

	for (size_t i = 0; i < report->n_columns; i++) {
		size_t bytes = strlen(cells) + 1;

		/* A cell may be cut short. */
		memcpy(cell, cells, bytes);
		write_cell(report, i, cell);
		cells += bytes;
	}
}

static void write_head(struct wss_report *report)
{
	if (report->head)
		return;
	report->head = true;
	if (report->format == WSS_FORMAT_JSON) {
		fprintf(report->stream, "{\"schema\": \"%s\", \"%s\": [", report->layout->schema,
			report->layout->array_key);
		return;
	}
	if (report->format == WSS_FORMAT_TABLE)
		fit_first_column(report);
	write_line(report, NULL);
}

static void note_failure(struct wss_report *report, bool failed)
{
	if ((failed || ferror(report->stream)) && !report->failed)
		report->failed = errno ? errno : EIO;
	/* A closed pipe ends the run: nobody would read further rows. */
	if (report->failed == EPIPE)
		wss_stop_on_closed_pipe();
}

static bool hold_cells(struct wss_report *report, const void *row)
{
	char cell[WSS_CELL_MAX];

	for (size_t i = 0; i < report->n_columns; i++) {
		make_cell(report, i, row, cell);
		if (!wss_held_rows_text(&report->held, cell))
			return false;
	}
	return true;
}

static bool hold_row(struct wss_report *report, const void *row)
{
	struct wss_value key = {.kind = WSS_KIND_ABSENT};

	if (report->sort)
		key = wss_column_value(report->sort, row);
	if (!wss_held_rows_add(&report->held, &key))
		return false;
	if (hold_cells(report, row))
		return true;
	wss_held_rows_drop(&report->held);
	return false;
}

void wss_report_row(struct wss_report *report, const void *row)
{
	bool failed = false;

	errno = 0;
	if (report->hold) {
		failed = !hold_row(report, row);
	} else {
		write_head(report);
		if (report->format == WSS_FORMAT_JSON) {
			fputs(report->rows ? ",\n" : "\n", report->stream);
			wss_json_write_row(report->stream, report->layout, row);
		} else {
			write_line(report, row);
		}
		failed = !report->batch && fflush(report->stream) != 0;
	}
	report->rows++;
	note_failure(report, failed);
}

void wss_report_leave_out(struct wss_report *report)
{
	if (report)
		report->left_out = true;
}

void wss_report_bad_row(struct wss_report *report, const void *row)
{
	if (report->format == WSS_FORMAT_TABLE)
		wss_report_leave_out(report);
	else
		wss_report_row(report, row);
}

/* Makes column i as wide as its widest cell; on a terminal texts keep the layout's widths. */
static void fit_column(struct wss_report *report, size_t i, int widest)
{
	bool first = is_first_column(report, i);

	if (is_text_column(report, i) && widest > WSS_NAME_WIDTH_MAX)
		widest = WSS_NAME_WIDTH_MAX;
	if (first && widest > (int)report->first_width)
		report->first_width = (size_t)widest;
	else if (!first && widest > report->widths[i] &&
		 (!report->view.width || !is_text_column(report, i)) &&
		 (i + 1 < report->n_columns || !is_text_column(report, i)))
		report->widths[i] = widest;
}

/* Whether to drop the remaining held rows, because a stop was requested. */
static bool is_given_up(const struct wss_report *report)
{
	return report->batch && wss_stop_requested();
}

static void fit_held(struct wss_report *report)
{
	for (size_t k = 0; k < report->held.n && !is_given_up(report); k++) {
		const char *cell = wss_held_rows_cells(&report->held, k);

		for (size_t i = 0; i < report->n_columns; i++, cell += strlen(cell) + 1)
			fit_column(report, i, wss_text_width(cell));
	}
}

static void write_held(struct wss_report *report)
{
	if (!report->held.n)
		return;
	if (report->sort)
		wss_held_rows_sort(&report->held, report->falling, report->batch);
	if (report->format == WSS_FORMAT_TABLE)
		fit_held(report);
	write_head(report);
	for (size_t k = 0; k < report->held.n && !is_given_up(report); k++)
		write_held_line(report, wss_held_rows_cells(&report->held, k));
	wss_held_rows_free(&report->held);
}

static void end_list(struct wss_report *report)
{
	write_held(report);
	/* Programs need a header without rows; after an error people would take it for an answer. */
	if (!report->rows && (!report->left_out || report->format != WSS_FORMAT_TABLE))
		write_head(report);
	if (report->format == WSS_FORMAT_JSON)
		fputs("\n]", report->stream);
}

static void list_close(struct wss_report *report)
{
	if (!report->total)
		end_list(report);
	report->total = true;
}

static void write_table(struct wss_report *report, const struct wss_report_layout *layout,
			const void *rows, size_t n, size_t size)
{
	const struct wss_view view = {.wide = report->view.wide, .width = report->view.width};
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_report *total;

	fputc('\n', report->stream);
	if (wss_report_open(report->stream, WSS_FORMAT_TABLE, &view, layout, &total, &err) < 0) {
		errno = ENOMEM;
		note_failure(report, true);
		return;
	}
	wss_report_hold(total);
	for (size_t i = 0; i < n; i++)
		wss_report_row(total, (const char *)rows + i * size);
	errno = total->failed;
	note_failure(report, total->failed);
	wss_report_close(total, NULL);
}

void wss_report_table(struct wss_report *report, const struct wss_report_layout *layout,
		      const void *rows, size_t n, size_t size)
{
	errno = 0;
	if (report->format != WSS_FORMAT_TABLE)
		return;
	list_close(report);
	write_table(report, layout, rows, n, size);
	note_failure(report, false);
}

void wss_report_total(struct wss_report *report, const char *key,
		      const struct wss_report_layout *layout, const void *row)
{
	errno = 0;
	list_close(report);
	if (report->format == WSS_FORMAT_JSON) {
		fprintf(report->stream, ", \"%s\": ", key);
		wss_json_write_row(report->stream, layout, row);
	} else if (report->format == WSS_FORMAT_TABLE) {
		write_table(report, layout, row, 1, 0);
	}
	note_failure(report, false);
}

int wss_report_close(struct wss_report *report, struct wss_error *err)
{
	int failed;

	if (!report)
		return 0;
	errno = 0;
	if (!report->total)
		end_list(report);
	if (report->format == WSS_FORMAT_JSON)
		fputs("}\n", report->stream);
	note_failure(report, fflush(report->stream) != 0);
	failed = report->failed;
	wss_report_free(report);
	return failed ? wss_io_output_error(failed, "cannot write the output", err) : 0;
}
