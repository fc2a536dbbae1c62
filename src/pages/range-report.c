/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "pages/range-report.h"

#include <errno.h>
#include <stdlib.h>

#include "base/io.h"
#include "base/units.h"
#include "show/report-private.h"

struct wss_range_report {
	FILE *stream;
	enum wss_format format;
	const struct wss_report_layout *layout;
	struct wss_report *table; /* NULL: JSON */
	const struct wss_recording *recording;
	struct wss_region_index regions;
	struct wss_diff_side a, b;
	uint64_t windows; /* of all recordings */
	uint64_t rows;
};

/* Data behind the columns of a row. */
struct range_row {
	const struct wss_range_report *report;
	const struct wss_page_range *range;
	uint64_t address, last; /* of its first and its last byte */
	const struct wss_region *region;
};

#define ROW(row) ((const struct range_row *)(row))

static const void *range_of(const void *row)
{
	return ROW(row)->range;
}

static const void *region_of(const void *row)
{
	return ROW(row)->region;
}

#define FIELD(member, kind) WSS_FIELD(struct range_row, member, kind)
#define RANGE(member, kind) WSS_FIELD_OF(range_of, struct wss_page_range, member, kind)
#define REGION(member, kind) WSS_FIELD_OF(region_of, struct wss_region, member, kind)

static struct wss_value range_get_change(const void *row)
{
	return wss_value_text(ROW(row)->range->value ? "gained" : "lost");
}

static struct wss_value range_get_region(const void *row)
{
	return wss_value_text(wss_region_kind_name(ROW(row)->region->kind));
}

/*
 * Counts the pages that changed and were written: of gained pages in the second set, of lost pages
 * in the first. Unchanged pages within the range do not count.
 */
static struct wss_value range_get_written(const void *row)
{
	const struct wss_page_range *range = ROW(row)->range;
	const struct wss_range_report *report = ROW(row)->report;
	const struct wss_diff_side *in = range->value ? &report->b : &report->a;
	const struct wss_diff_side *out = range->value ? &report->a : &report->b;
	const struct wss_run run = {range->first, range->n};
	uint64_t pages;

	if (!in->written)
		return wss_value_absent();
	/* Pages that are not in the other set, minus those that are not in this set either. */
	pages = wss_pageset_compare(out->pages, out->pages, in->written, run).neither -
		wss_pageset_compare(out->pages, in->pages, in->written, run).neither;
	return wss_value_number(pages << WSS_PAGE_SHIFT, WSS_KIND_BYTES);
}

static struct wss_value range_get_share(const void *row)
{
	uint64_t windows = ROW(row)->report->windows;

	return (struct wss_value){.kind = windows ? WSS_KIND_SHARE : WSS_KIND_ABSENT,
				  .real = windows ? (double)ROW(row)->range->value / (double)windows
						  : 0};
}

static const struct wss_column diff_columns[] = {
	{"change", NULL, "CHANGE", -6, WSS_GET(range_get_change),
	 "gained: in the second set only; lost: in the first"},
	{"start_address", NULL, "START", 14, FIELD(address, ADDRESS),
	 "First guest-physical address of the range, hexadecimal"},
	{"end_address", NULL, "END", 14, FIELD(last, ADDRESS), "Its last address, hexadecimal"},
	{"bytes", NULL, "CHANGED", 8, RANGE(pages, PAGES),
	 "Memory in the range that changed, in bytes"},
	{"span_bytes", NULL, "SPAN", 8, RANGE(n, PAGES),
	 "Length of the range from end to end, in bytes"},
	{"region", NULL, "REGION", -8, WSS_GET(range_get_region),
	 "Kind of the region of guest memory"},
	{"node", NULL, "NODE", 4, REGION(node, COUNT), "NUMA node of the guest, a number"},
	{"name", NULL, "NAME", -16, REGION(name, TEXT), "Name of the region's memory device"},
	{"written_bytes", NULL, "WRITTEN", 8, WSS_GET(range_get_written),
	 "The changed memory that was written to, in bytes"},
};

static const struct wss_column heat_columns[] = {
	{"start_address", NULL, "START", 14, FIELD(address, ADDRESS),
	 "First guest-physical address of the range, hexadecimal"},
	{"end_address", NULL, "END", 14, FIELD(last, ADDRESS), "Its last address, hexadecimal"},
	{"bytes", NULL, "SIZE", 8, RANGE(pages, PAGES), "Size of the range, in bytes"},
	{"windows", NULL, "WINDOWS", 7, RANGE(value, COUNT),
	 "Windows in which it was touched, a count"},
	{"share", NULL, "SHARE", 6, WSS_GET(range_get_share),
	 "The same as a share of all windows, 1 = 100%"},
	{"region", NULL, "REGION", -8, WSS_GET(range_get_region),
	 "Kind of the region of guest memory"},
	{"node", NULL, "NODE", 4, REGION(node, COUNT), "NUMA node of the guest, a number"},
	{"name", NULL, "NAME", -16, REGION(name, TEXT), "Name of the region's memory device"},
};

#define DIFF_KEYS "change,start_address,end_address,bytes,span_bytes,region"
#define HEAT_KEYS "start_address,end_address,bytes,windows,share,region,node"

const struct wss_report_layout wss_diff_layout = {
	.schema = "virt-wss/diff/1",
	.array_key = "ranges",
	.columns = diff_columns,
	.n_columns = sizeof(diff_columns) / sizeof(diff_columns[0]),
	.shown = DIFF_KEYS ",written_bytes",
	.wide = DIFF_KEYS ",node,written_bytes",
};

const struct wss_report_layout wss_heat_layout = {
	.schema = "virt-wss/heat/1",
	.array_key = "ranges",
	.columns = heat_columns,
	.n_columns = sizeof(heat_columns) / sizeof(heat_columns[0]),
	.shown = HEAT_KEYS,
	.wide = HEAT_KEYS,
};

#define DIFF(member, kind) WSS_FIELD(struct wss_diff_summary, member, kind)
#define HEAT(member, kind) WSS_FIELD(struct wss_heat_summary, member, kind)

static const struct wss_column diff_summary_columns[] = {
	{"a", NULL, NULL, 0, DIFF(a, TEXT), "The first set: its file, and its time"},
	{"b", NULL, NULL, 0, DIFF(b, TEXT), "The second set"},
	{"a_bytes", NULL, NULL, 0, DIFF(a_pages, PAGES), "Size of the first set, in bytes"},
	{"b_bytes", NULL, NULL, 0, DIFF(b_pages, PAGES), "Size of the second set, in bytes"},
	{"gained_bytes", NULL, NULL, 0, DIFF(gained, PAGES), "In the second set only, in bytes"},
	{"lost_bytes", NULL, NULL, 0, DIFF(lost, PAGES), "In the first set only, in bytes"},
	{"kept_bytes", NULL, NULL, 0, DIFF(kept, PAGES), "In both, in bytes"},
	{"a_gap_start_seconds", NULL, NULL, 0, DIFF(a_gap_start_ns, DURATION),
	 "Start of the gap in which the time of the first set is, in seconds since the recording began; absent if the guest was observed then"},
	{"a_gap_end_seconds", NULL, NULL, 0, DIFF(a_gap_end_ns, DURATION),
	 "End of this gap, in seconds likewise"},
	{"b_gap_start_seconds", NULL, NULL, 0, DIFF(b_gap_start_ns, DURATION),
	 "Start of the gap in which the time of the second set is, in seconds likewise"},
	{"b_gap_end_seconds", NULL, NULL, 0, DIFF(b_gap_end_ns, DURATION),
	 "End of this gap, in seconds likewise"},
};

static const struct wss_column heat_summary_columns[] = {
	{"domain", NULL, NULL, 0, HEAT(domain, TEXT), "Name of the guest"},
	{"recordings", NULL, NULL, 0, HEAT(recordings, COUNT),
	 "Recordings that were added up, a count"},
	{"windows", NULL, NULL, 0, HEAT(windows, COUNT), "Windows in all of them, a count"},
	{"ranges", NULL, NULL, 0, HEAT(ranges, COUNT), "Ranges, listed or not, a count"},
};

const struct wss_report_layout wss_diff_summary_layout = {
	.array_key = "summary",
	.columns = diff_summary_columns,
	.n_columns = sizeof(diff_summary_columns) / sizeof(diff_summary_columns[0]),
};

const struct wss_report_layout wss_heat_summary_layout = {
	.array_key = "summary",
	.columns = heat_summary_columns,
	.n_columns = sizeof(heat_summary_columns) / sizeof(heat_summary_columns[0]),
};

static int range_report_start(FILE *stream, enum wss_format format, const struct wss_view *view,
			      const struct wss_recording *recording,
			      const struct wss_report_layout *layout,
			      const struct wss_report_layout *summary_layout, const void *summary,
			      struct wss_range_report **ret_report, struct wss_error *err)
{
	struct wss_range_report *report = calloc(1, sizeof(*report));

	if (!report)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	*report = (struct wss_range_report){
		.stream = stream, .format = format, .layout = layout, .recording = recording};
	wss_region_index_init(&report->regions, recording);
	if (format != WSS_FORMAT_JSON) {
		if (wss_report_open(stream, format, view, layout, &report->table, err) < 0) {
			free(report);
			return -1;
		}
		wss_report_set_batch(report->table);
	} else {
		fprintf(stream, "{\"schema\": \"%s\",\n\"summary\": ", layout->schema);
		wss_json_write_row(stream, summary_layout, summary);
		fprintf(stream, ",\n\"%s\": [", layout->array_key);
	}
	*ret_report = report;
	return 0;
}

static void print_size(FILE *stream, const char *name, uint64_t pages, const char *sign)
{
	char text[16];

	wss_size_format(pages << WSS_PAGE_SHIFT, text, sizeof(text));
	fprintf(stream, "%-10s%s%9s\n", name, sign, text);
}

static void print_diff(FILE *stream, const struct wss_diff_summary *summary)
{
	bool more = summary->b_pages >= summary->a_pages;

	print_size(stream, "first", summary->a_pages, " ");
	print_size(stream, "second", summary->b_pages, " ");
	print_size(stream, "net",
		   more ? summary->b_pages - summary->a_pages : summary->a_pages - summary->b_pages,
		   more ? "+" : "-");
	print_size(stream, "gained", summary->gained, "+");
	print_size(stream, "lost", summary->lost, "-");
	print_size(stream, "kept", summary->kept, " ");
	fputc('\n', stream);
}

int wss_range_report_diff(FILE *stream, enum wss_format format, const struct wss_view *view,
			  const struct wss_recording *recording,
			  const struct wss_diff_summary *summary, struct wss_diff_side a,
			  struct wss_diff_side b, struct wss_range_report **ret_report,
			  struct wss_error *err)
{
	if (format == WSS_FORMAT_TABLE)
		print_diff(stream, summary);
	if (range_report_start(stream, format, view, recording, &wss_diff_layout,
			       &wss_diff_summary_layout, summary, ret_report, err) < 0)
		return -1;
	(*ret_report)->a = a;
	(*ret_report)->b = b;
	return 0;
}

int wss_range_report_heat(FILE *stream, enum wss_format format, const struct wss_view *view,
			  const struct wss_recording *recording,
			  const struct wss_heat_summary *summary,
			  struct wss_range_report **ret_report, struct wss_error *err)
{
	if (range_report_start(stream, format, view, recording, &wss_heat_layout,
			       &wss_heat_summary_layout, summary, ret_report, err) < 0)
		return -1;
	(*ret_report)->windows = summary->windows;
	return 0;
}

void wss_range_report_row(struct wss_range_report *report, const struct wss_page_range *range)
{
	struct range_row row = {.report = report, .range = range};
	size_t i = wss_region_index_of(&report->regions, range->first);

	row.region = &report->recording->regions[i];
	row.address =
		row.region->start + ((range->first - report->regions.first[i]) << WSS_PAGE_SHIFT);
	row.last = row.address + (range->n << WSS_PAGE_SHIFT) - 1;
	if (report->table) {
		wss_report_row(report->table, &row);
		return;
	}
	fputs(report->rows++ ? ",\n" : "\n", report->stream);
	wss_json_write_row(report->stream, report->layout, &row);
}

int wss_range_report_close(struct wss_range_report *report, struct wss_error *err)
{
	int r = 0;

	if (!report)
		return 0;
	if (report->table) {
		r = wss_report_close(report->table, err);
	} else {
		errno = 0;
		fputs("\n]}\n", report->stream);
		if (fflush(report->stream) != 0 || ferror(report->stream))
			r = wss_io_output_error(errno ? errno : EIO, "cannot write the output",
						err);
	}
	free(report);
	return r;
}
