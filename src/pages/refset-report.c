/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "pages/refset-report.h"

#include <errno.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/number.h"
#include "base/stop.h"
#include "base/units.h"
#include "pages/refset-columns.h"
#include "show/report-private.h"

/* Largest number of rows in the graph of a text report. */
#define GRAPH_ROWS 40

static uint64_t node_count(const struct wss_recording *recording)
{
	uint64_t n = 0;

	for (int node = -1; (node = wss_refset_next_node(recording, node)) >= 0; n++)
		;
	return n;
}

static uint64_t row_count(const struct wss_refset_report *report, enum wss_refset_part part)
{
	switch (part) {
	case WSS_REFSET_REGIONS:
		return report->recording->n_regions;
	case WSS_REFSET_NODES:
		return node_count(report->recording);
	case WSS_REFSET_PHASES:
		return report->result->n_phases;
	case WSS_REFSET_MARKS:
		return report->result->marks.n;
	case WSS_REFSET_INTERVALS:
		return report->result->n_points;
	default:
		return 1;
	}
}

/* Calls give for each row of a part. Returns false after give has, or on a stop request. */
static bool each_row(const struct wss_refset_report *report, enum wss_refset_part part,
		     bool (*give)(void *opaque, const struct wss_refset_row *row), void *opaque)
{
	struct wss_refset_row row = {.report = report, .node = -1};
	uint64_t n = row_count(report, part);

	for (; row.i < n; row.i++) {
		if (part == WSS_REFSET_NODES)
			row.node = wss_refset_next_node(report->recording, row.node);
		if (wss_stop_requested() || !give(opaque, &row))
			return false;
	}
	return true;
}

static bool write_row(void *table, const struct wss_refset_row *row)
{
	wss_report_row(table, row);
	return true;
}

static int print_part(FILE *stream, enum wss_format format, const struct wss_view *view,
		      const struct wss_refset_report *report, enum wss_refset_part part,
		      struct wss_error *err)
{
	struct wss_report *table;

	if (wss_report_open(stream, format, view, &wss_refset_layouts[part], &table, err) < 0)
		return -1;
	wss_report_set_batch(table);
	each_row(report, part, write_row, table);
	return wss_report_close(table, err);
}

struct json_part {
	FILE *stream;
	const struct wss_report_layout *layout;
	bool list;
};

static bool write_json_row(void *opaque, const struct wss_refset_row *row)
{
	const struct json_part *part = opaque;

	if (part->list)
		fputs(row->i ? ",\n" : "\n", part->stream);
	wss_json_write_row(part->stream, part->layout, row);
	return !ferror(part->stream);
}

static bool write_json_part(FILE *stream, const struct wss_refset_report *report,
			    enum wss_refset_part part)
{
	struct json_part json = {.stream = stream,
				 .layout = &wss_refset_layouts[part],
				 .list = part >= WSS_REFSET_REGIONS};

	fprintf(stream, ",\n\"%s\": %s", json.layout->array_key, json.list ? "[" : "");
	if (!each_row(report, part, write_json_row, &json))
		return false;
	fputs(json.list ? "]" : "", stream);
	return true;
}

static int print_json(FILE *stream, const struct wss_refset_report *report, struct wss_error *err)
{
	bool ok = true;

	errno = 0;
	fputs("{\"schema\": \"virt-wss/report/1\"", stream);
	for (int part = 0; part < WSS_REFSET_PARTS && ok; part++)
		ok = write_json_part(stream, report, (enum wss_refset_part)part);
	if (wss_stop_requested())
		return wss_error_set(err, WSS_ERR_INTERRUPTED, "interrupted");
	fputs("}\n", stream);
	if (fflush(stream) != 0 || ferror(stream) || !ok)
		return wss_io_output_error(errno ? errno : EIO, "cannot write the output", err);
	return 0;
}

static void size_text(uint64_t pages, char *text, size_t size)
{
	wss_size_format(pages << WSS_PAGE_SHIFT, text, size);
}

static void print_size_line(FILE *stream, const char *name, uint64_t pages, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

static void print_size_line(FILE *stream, const char *name, uint64_t pages, const char *format, ...)
{
	char size[16];
	va_list ap;

	size_text(pages, size, sizeof(size));
	fprintf(stream, "%-14s%9s", name, size);
	va_start(ap, format);
	vfprintf(stream, format, ap);
	va_end(ap);
	fputc('\n', stream);
}

static void print_classes(FILE *stream, const struct wss_refset_result *result)
{
	const struct wss_refset_classes *all = &result->all;
	char a[16], b[16], since[16];

	wss_duration_format(result->peak_ns, since, sizeof(since));
	print_size_line(stream, "peak", all->peak, "  at %s", since);
	wss_duration_format(result->steady_since_ns, since, sizeof(since));
	if (result->steady.known)
		print_size_line(stream, "steady state", result->steady.value, "  since %s", since);
	else
		fprintf(stream, "%-14s%9s  it is not level when it ends\n", "steady state", "-");
	print_size_line(stream, "reference set", all->reference, "  touched at least once");
	if (result->written_meaning != WSS_WRITTEN_ABSENT)
		print_size_line(stream, "written", all->written, "  %s",
				wss_written_name((enum wss_written)result->written_meaning));
	print_size_line(stream, "size", all->persistent + all->gained + all->lost + all->transient,
			"  outstanding at any time");
	size_text(all->unbroken, a, sizeof(a));
	print_size_line(stream, "  persistent", all->persistent,
			"  at both ends, %s of it all the time", a);
	size_text(all->gained, a, sizeof(a));
	size_text(all->lost, b, sizeof(b));
	print_size_line(stream, "  impacting", all->gained + all->lost,
			"  at one end: %s gained, %s lost", a, b);
	print_size_line(stream, "  transient", all->transient, "  at neither end");
}

static void print_head(FILE *stream, const struct wss_refset_report *report)
{
	const struct wss_recording *recording = report->recording;
	char duration[16], from[16], to[16], gaps[16], started[WSS_CLOCK_TEXT_MAX], name[256];

	wss_duration_format(report->duration_ns, duration, sizeof(duration));
	wss_duration_format(report->result->from_ns, from, sizeof(from));
	wss_duration_format(report->result->to_ns, to, sizeof(to));
	wss_duration_format(report->result->gap_ns, gaps, sizeof(gaps));
	wss_clock_format((time_t)(recording->start_realtime_ns / (int64_t)WSS_NS_PER_S), started);
	snprintf(name, sizeof(name), "%s", recording->domain);
	wss_text_sanitize(name);
	fprintf(stream, "%s, recorded%s%s for %s from %s by %s%s\n", name,
		*recording->host ? " on " : "", recording->host, duration, started,
		recording->method, report->ended ? "" : "; the recording was not ended");
	fprintf(stream, "from %s to %s: %llu window%s, gaps of %s in all\n\n", from, to,
		(unsigned long long)report->result->windows, wss_plural(report->result->windows),
		gaps);
}

/*
 * Whether a point is in the viewport and gets a row. Gaps between chained windows last only
 * milliseconds and get none.
 */
static bool point_has_row(const struct wss_refset_report *report,
			  const struct wss_refset_point *point)
{
	return point->in_viewport &&
	       (!point->gap || point->end_ns - point->start_ns >= report->recording->window_ns / 4);
}

static void print_graph_row(FILE *stream, uint64_t at_ns, const struct wss_refset_point *shown,
			    uint64_t peak, int room)
{
	int bar = (int)((double)shown->touched / (double)peak * room + 0.5);
	char time[16], size[16];

	wss_duration_format(at_ns, time, sizeof(time));
	size_text(shown->touched, size, sizeof(size));
	fprintf(stream, "%9s  %9s |", time, shown->gap ? "gap" : size);
	while (bar--)
		fputc('#', stream);
	fputc('\n', stream);
}

/*
 * Prints the graph. If there are too many points, neighbours share a row, which shows the largest.
 */
static void print_graph(FILE *stream, const struct wss_refset_report *report, int width)
{
	const struct wss_refset_result *result = report->result;
	const struct wss_refset_point *shown = NULL;
	int room = width - 24 > 10 ? width - 24 : 10;
	uint64_t peak = 1, at_ns = 0;
	size_t rows = 0, taken = 0, per_row;

	for (size_t i = 0; i < result->n_points; i++) {
		const struct wss_refset_point *point = &result->points[i];

		if (!point_has_row(report, point))
			continue;
		rows++;
		if (point->touched > peak)
			peak = point->touched;
	}
	per_row = (rows + GRAPH_ROWS - 1) / GRAPH_ROWS;
	fprintf(stream, "%9s  %9s\n", "TIME", "SET");
	for (size_t i = 0; i < result->n_points; i++) {
		const struct wss_refset_point *point = &result->points[i];

		if (!point_has_row(report, point))
			continue;
		if (!taken++)
			at_ns = point->start_ns;
		if (!shown || shown->gap || (!point->gap && point->touched > shown->touched))
			shown = point;
		if (taken == per_row) {
			print_graph_row(stream, at_ns, shown, peak, room);
			shown = NULL;
			taken = 0;
		}
	}
	if (shown)
		print_graph_row(stream, at_ns, shown, peak, room);
}

static int print_text(FILE *stream, const struct wss_view *view,
		      const struct wss_refset_report *report, int width, struct wss_error *err)
{
	const struct wss_view others = {.wide = view->wide, .width = view->width};
	static const enum wss_refset_part tables[] = {WSS_REFSET_REGIONS, WSS_REFSET_NODES,
						      WSS_REFSET_PHASES, WSS_REFSET_MARKS};

	print_head(stream, report);
	print_classes(stream, report->result);
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
		if (!row_count(report, tables[i]))
			continue;
		fputc('\n', stream);
		if (print_part(stream, WSS_FORMAT_TABLE, &others, report, tables[i], err) < 0)
			return -1;
	}
	fputc('\n', stream);
	/* Columns or an order can only be those of a table of windows. */
	if (view->wide || view->columns || view->sort)
		return print_part(stream, WSS_FORMAT_TABLE, view, report, WSS_REFSET_INTERVALS,
				  err);
	print_graph(stream, report, width);
	return 0;
}

int wss_refset_report_print(FILE *stream, enum wss_format format, const struct wss_view *view,
			    const struct wss_refset_report *report, int width,
			    struct wss_error *err)
{
	switch (format) {
	case WSS_FORMAT_JSON:
		return print_json(stream, report, err);
	case WSS_FORMAT_CSV:
		return print_part(stream, WSS_FORMAT_CSV, view, report, WSS_REFSET_INTERVALS, err);
	default:
		return print_text(stream, view, report, width, err);
	}
}
