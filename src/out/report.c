/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "out/report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "base/units.h"
#include "out/report-private.h"

struct wss_report {
	FILE *stream;
	enum wss_format format;
	const struct wss_report_layout *layout;
	size_t first_width;
	size_t rows;
	bool batch;    /* nobody waits for single rows */
	bool total;    /* the list is closed */
	int failed;    /* errno of the first write that failed, 0 where none did */
	bool left_out; /* a bad row, by a table */
};

int wss_format_parse(const char *text, enum wss_format *ret_format, struct wss_error *err)
{
	static const char *const names[] = { "table", "json", "csv" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (!strcmp(text, names[i])) {
			*ret_format = (enum wss_format)i;
			return 0;
		}
	}
	return wss_error_set(err, WSS_ERR_USAGE, "--output: '%s' is not table, json or csv", text);
}

int wss_report_open(FILE *stream, enum wss_format format, const struct wss_report_layout *layout,
		    struct wss_report **ret_report, struct wss_error *err)
{
	struct wss_report *report = calloc(1, sizeof(*report));

	if (!report)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	report->stream = stream;
	report->format = format;
	report->layout = layout;
	*ret_report = report;
	return 0;
}

void wss_report_set_first_width(struct wss_report *report, size_t width)
{
	report->first_width = width;
}

void wss_report_set_batch(struct wss_report *report)
{
	report->batch = true;
}

struct wss_value wss_value_absent(void)
{
	return (struct wss_value){ .kind = WSS_KIND_ABSENT };
}

struct wss_value wss_value_text(const char *text)
{
	return (struct wss_value){ .kind = text && *text ? WSS_KIND_TEXT : WSS_KIND_ABSENT,
				   .text = text };
}

struct wss_value wss_value_number(uint64_t number, enum wss_kind kind)
{
	return (struct wss_value){ .kind = kind, .number = number };
}

struct wss_value wss_value_amount(struct wss_amount amount, enum wss_kind kind)
{
	return wss_value_number(amount.value, amount.known ? kind : WSS_KIND_ABSENT);
}

struct wss_value wss_value_time(time_t when)
{
	static _Thread_local char text[WSS_CLOCK_TEXT_MAX];

	wss_clock_format(when, text);
	return wss_value_text(text);
}

static void format_for_people(const struct wss_value *value, char *buf, size_t size)
{
	switch (value->kind) {
	case WSS_KIND_ABSENT:
		snprintf(buf, size, "-");
		break;
	case WSS_KIND_TEXT:
		snprintf(buf, size, "%s", value->text);
		break;
	case WSS_KIND_BYTES:
		wss_size_format(value->number, buf, size);
		break;
	case WSS_KIND_DURATION:
		wss_duration_format(value->number, buf, size);
		break;
	case WSS_KIND_SHARE:
		snprintf(buf, size, "%.1f%%", value->real * 100);
		break;
	case WSS_KIND_FACTOR:
		snprintf(buf, size, "%.2f", value->real);
		break;
	case WSS_KIND_COUNT:
		snprintf(buf, size, "%" PRIu64, value->number);
		break;
	case WSS_KIND_AGE:
		wss_age_format(value->number, buf, size);
		break;
	case WSS_KIND_BOOL:
		snprintf(buf, size, "%s", value->number ? "yes" : "no");
		break;
	}
}

static void format_for_csv(const struct wss_value *value, char *buf, size_t size)
{
	char number[WSS_NUMBER_TEXT_MAX];

	switch (value->kind) {
	case WSS_KIND_ABSENT:
		buf[0] = '\0';
		break;
	case WSS_KIND_DURATION:
		wss_seconds_format(value->number, buf, size);
		break;
	case WSS_KIND_SHARE:
	case WSS_KIND_FACTOR:
		snprintf(buf, size, "%.6f", value->real);
		break;
	case WSS_KIND_TEXT:
		snprintf(buf, size, "%s", value->text);
		break;
	default:
		snprintf(buf, size, "%s", wss_number_format(value->number, number));
		break;
	}
}

/* Columns of the terminal that a UTF-8 text takes: its characters, near enough. */
static int display_width(const char *text)
{
	int width = 0;

	for (; *text; text++)
		if ((*text & 0xc0) != 0x80)
			width++;
	return width;
}

static void write_cell(struct wss_report *report, size_t index, const char *text, bool last)
{
	int want = report->layout->columns[index].width;
	bool left = want < 0;
	int pad;

	want = abs(want);
	if (index == 0 && report->first_width > (size_t)want)
		want = (int)report->first_width;
	pad = want - display_width(text);
	if (pad < 0)
		pad = 0;
	if (!left)
		fprintf(report->stream, "%*s", pad, "");
	fputs(text, report->stream);
	if (left && !last)
		fprintf(report->stream, "%*s", pad, "");
	if (!last)
		fputs("  ", report->stream);
}

static size_t last_shown(const struct wss_report_layout *layout)
{
	size_t last = 0;

	for (size_t i = 0; i < layout->n_columns; i++)
		if (layout->columns[i].header)
			last = i;
	return last;
}

static void write_table_line(struct wss_report *report, const void *row)
{
	const struct wss_report_layout *layout = report->layout;
	size_t last = last_shown(layout);

	for (size_t i = 0; i < layout->n_columns; i++) {
		const struct wss_column *column = &layout->columns[i];
		char text[512];

		if (!column->header)
			continue;
		if (row) {
			struct wss_value value = column->get(row);

			format_for_people(&value, text, sizeof(text));
			wss_text_sanitize(text);
		} else {
			snprintf(text, sizeof(text), "%s", column->header);
		}
		write_cell(report, i, text, i == last);
	}
	fputc('\n', report->stream);
}

/* A spreadsheet may look behind blanks, and takes the wide forms for the same. */
static bool is_formula(const char *text)
{
	static const char *const begins[] = { "=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20" };
	int blank;

	while ((blank = wss_text_space(text)) > 0)
		text += blank;
	for (size_t i = 0; i < sizeof(begins) / sizeof(begins[0]); i++)
		if (!strncmp(text, begins[i], strlen(begins[i])))
			return true;
	return false;
}

/*
 * RFC 4180 quoting. A text that a spreadsheet would take for a formula gets a
 * quotation mark before it: names come from guests' owners.
 */
static void write_csv_text(FILE *stream, const char *text, bool from_outside)
{
	bool formula = from_outside && is_formula(text);

	if (!formula && !strpbrk(text, ",\"")) {
		fputs(text, stream);
		return;
	}
	fputc('"', stream);
	if (formula)
		fputc('\'', stream);
	for (; *text; text++) {
		if (*text == '"')
			fputc('"', stream);
		fputc(*text, stream);
	}
	fputc('"', stream);
}

static void write_csv_line(struct wss_report *report, const void *row)
{
	const struct wss_report_layout *layout = report->layout;
	bool first = true;

	for (size_t i = 0; i < layout->n_columns; i++) {
		const struct wss_column *column = &layout->columns[i];
		struct wss_value value = { .kind = WSS_KIND_TEXT, .text = column->key };
		char text[2048];

		if (!column->key)
			continue;
		if (row)
			value = column->get(row);
		format_for_csv(&value, text, sizeof(text));
		/* One record is one line, and no text moves a terminal's cursor. */
		wss_text_sanitize(text);
		if (!first)
			fputc(',', report->stream);
		first = false;
		write_csv_text(report->stream, text, row && value.kind == WSS_KIND_TEXT);
	}
	fputs("\r\n", report->stream);
}

static void write_json_head(struct wss_report *report)
{
	fprintf(report->stream, "{\"schema\": \"%s\", \"%s\": [", report->layout->schema,
		report->layout->array_key);
}

static void write_head(struct wss_report *report)
{
	switch (report->format) {
	case WSS_FORMAT_TABLE:
		write_table_line(report, NULL);
		break;
	case WSS_FORMAT_CSV:
		write_csv_line(report, NULL);
		break;
	case WSS_FORMAT_JSON:
		write_json_head(report);
		break;
	}
}

static void note_failure(struct wss_report *report, bool failed)
{
	if ((failed || ferror(report->stream)) && !report->failed)
		report->failed = errno ? errno : EIO;
}

void wss_report_row(struct wss_report *report, const void *row)
{
	errno = 0;
	if (!report->rows)
		write_head(report);
	switch (report->format) {
	case WSS_FORMAT_TABLE:
		write_table_line(report, row);
		break;
	case WSS_FORMAT_CSV:
		write_csv_line(report, row);
		break;
	case WSS_FORMAT_JSON:
		fputs(report->rows ? ",\n" : "\n", report->stream);
		wss_json_write_row(report->stream, report->layout, row);
		break;
	}
	report->rows++;
	note_failure(report, !report->batch && fflush(report->stream) != 0);
}

void wss_report_bad_row(struct wss_report *report, const void *row)
{
	if (report->format == WSS_FORMAT_TABLE)
		report->left_out = true;
	else
		wss_report_row(report, row);
}

static void end_list(struct wss_report *report)
{
	if (!report->rows && !report->left_out)
		write_head(report);
	if (report->format == WSS_FORMAT_JSON)
		fputs("\n]", report->stream);
}

void wss_report_total(struct wss_report *report, const char *key,
		      const struct wss_report_layout *layout, const void *row)
{
	const struct wss_report_layout *rows = report->layout;

	errno = 0;
	end_list(report);
	report->total = true;
	if (report->format == WSS_FORMAT_JSON) {
		fprintf(report->stream, ", \"%s\": ", key);
		wss_json_write_row(report->stream, layout, row);
	} else if (report->format == WSS_FORMAT_TABLE) {
		report->layout = layout;
		report->first_width = 0;
		fputc('\n', report->stream);
		write_table_line(report, NULL);
		write_table_line(report, row);
		report->layout = rows;
	}
	note_failure(report, false);
}

void wss_report_free(struct wss_report *report)
{
	free(report);
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
	return failed ? wss_error_errno(err, WSS_ERR_FAILED, failed, "cannot write the output")
		      : 0;
}
