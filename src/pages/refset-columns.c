/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "pages/refset-columns.h"

/* Where the members of a row are. */
static const struct wss_refset_row *row_of(const void *row)
{
	return row;
}

static const void *report_of(const void *row)
{
	return row_of(row)->report;
}

static const void *recording_of(const void *row)
{
	return row_of(row)->report->recording;
}

static const void *result_of(const void *row)
{
	return row_of(row)->report->result;
}

static const void *region_of(const void *row)
{
	return &row_of(row)->report->recording->regions[row_of(row)->i];
}

static const void *classes_of(const void *row)
{
	return &row_of(row)->report->result->regions[row_of(row)->i];
}

static const void *phase_of(const void *row)
{
	return &row_of(row)->report->result->phases[row_of(row)->i];
}

static const void *mark_of(const void *row)
{
	return &row_of(row)->report->result->marks.list[row_of(row)->i];
}

static const void *interval_of(const void *row)
{
	return &row_of(row)->report->result->points[row_of(row)->i];
}

static const struct wss_refset_point *point_of(const void *row)
{
	return interval_of(row);
}

/* The pages of an interval, which are unknown in a gap. */
static const void *pages_of(const void *row)
{
	return point_of(row)->gap ? NULL : point_of(row);
}

#define ROW(member, kind) WSS_FIELD(struct wss_refset_row, member, kind)
#define REPORT(member, kind) WSS_FIELD_OF(report_of, struct wss_refset_report, member, kind)
#define RECORDING(member, kind) WSS_FIELD_OF(recording_of, struct wss_recording, member, kind)
#define RESULT(member, kind) WSS_FIELD_OF(result_of, struct wss_refset_result, member, kind)
#define REGION(member, kind) WSS_FIELD_OF(region_of, struct wss_region, member, kind)
#define CLASS(member) WSS_FIELD_OF(classes_of, struct wss_refset_classes, member, PAGES)
#define PHASE(member, kind) WSS_FIELD_OF(phase_of, struct wss_refset_phase, member, kind)
#define MARK(member, kind) WSS_FIELD_OF(mark_of, struct wss_mark, member, kind)
#define POINT(member, kind) WSS_FIELD_OF(interval_of, struct wss_refset_point, member, kind)
#define PAGES(member) WSS_FIELD_OF(pages_of, struct wss_refset_point, member, PAGES)

static struct wss_value pages_value(uint64_t n)
{
	return wss_value_number(n << WSS_PAGE_SHIFT, WSS_KIND_BYTES);
}

/* Defines refset_get_NAME(row), which returns EXPRESSION. */
#define GETTER(name, expression)                                   \
	static struct wss_value refset_get_##name(const void *row) \
	{                                                          \
		return expression;                                 \
	}

#define RESULT_OF(row) row_of(row)->report->result

GETTER(start,
       wss_value_time((time_t)(row_of(row)->report->recording->start_realtime_ns / 1000000000)))
GETTER(memory, pages_value(wss_recording_pages(recording_of(row))))

static const struct wss_column recording_columns[] = {
	{"file", NULL, NULL, 0, REPORT(file, TEXT), "The file"},
	{"domain", NULL, NULL, 0, RECORDING(domain, TEXT), "Name of the guest"},
	{"uuid", NULL, NULL, 0, RECORDING(uuid, TEXT), "UUID of the guest"},
	{"tool", NULL, NULL, 0, RECORDING(tool, TEXT), "Program and version that recorded it"},
	{"method", NULL, NULL, 0, RECORDING(method, TEXT), "How it was recorded"},
	{"time", NULL, NULL, 0, WSS_GET(refset_get_start), "When the recording began, UTC"},
	{"boottime_seconds", NULL, NULL, 0, RECORDING(start_boottime_ns, DURATION),
	 "The same by the host's clock since boot, in seconds"},
	{"duration_seconds", NULL, NULL, 0, REPORT(duration_ns, DURATION),
	 "Length of the recording, in seconds"},
	{"interval_seconds", NULL, NULL, 0, RECORDING(interval_ns, DURATION),
	 "From the start of one window to the start of the next, in seconds"},
	{"window_seconds", NULL, NULL, 0, RECORDING(window_ns, DURATION),
	 "Length of a window, in seconds"},
	{"granularity_bytes", NULL, NULL, 0, RECORDING(granularity_bytes, BYTES),
	 "Granularity of the recording, in bytes"},
	{"memory_bytes", NULL, NULL, 0, WSS_GET(refset_get_memory),
	 "Guest memory that the recording covers, in bytes"},
	{"file_bytes", NULL, NULL, 0, REPORT(file_bytes, BYTES), "Size of the file, in bytes"},
	{"ended", NULL, NULL, 0, REPORT(ended, BOOL),
	 "Whether the recording was ended, not cut off"},
	{"whole", NULL, NULL, 0, REPORT(whole, BOOL), "Whether all of the file could be read"},
	{"host", NULL, NULL, 0, RECORDING(host, TEXT), "Name of the host"},
};

static struct wss_value written_pages(uint64_t n, uint8_t meaning)
{
	return meaning == WSS_WRITTEN_ABSENT ? wss_value_absent() : pages_value(n);
}

static uint64_t size_of(const struct wss_refset_classes *classes)
{
	return classes->persistent + classes->gained + classes->lost + classes->transient;
}

GETTER(steady_since,
       wss_value_number(RESULT_OF(row)->steady_since_ns,
			RESULT_OF(row)->steady.known ? WSS_KIND_DURATION : WSS_KIND_ABSENT))
GETTER(size, pages_value(size_of(&RESULT_OF(row)->all)))
GETTER(impacting, pages_value(RESULT_OF(row)->all.gained + RESULT_OF(row)->all.lost))
GETTER(written, written_pages(RESULT_OF(row)->all.written, RESULT_OF(row)->written_meaning))
GETTER(meaning, wss_value_text(wss_written_name((enum wss_written)RESULT_OF(row)->written_meaning)))

static const struct wss_column viewport_columns[] = {
	{"from_seconds", NULL, NULL, 0, RESULT(from_ns, DURATION),
	 "Start of the viewport, in seconds since the recording began"},
	{"to_seconds", NULL, NULL, 0, RESULT(to_ns, DURATION),
	 "End of the viewport, in seconds since the recording began"},
	{"windows", NULL, NULL, 0, RESULT(windows, COUNT), "Windows in the viewport, a count"},
	{"gap_seconds", NULL, NULL, 0, RESULT(gap_ns, DURATION),
	 "Time in it in which nothing was observed, in seconds"},
	{"peak_bytes", NULL, NULL, 0, RESULT(all.peak, PAGES), "Largest outstanding set, in bytes"},
	{"peak_at_seconds", NULL, NULL, 0, RESULT(peak_ns, DURATION),
	 "When that was, in seconds since the recording began"},
	{"steady_bytes", NULL, NULL, 0, RESULT(steady, PAGES),
	 "Steady state: the size of the last phase, in bytes"},
	{"steady_since_seconds", NULL, NULL, 0, WSS_GET(refset_get_steady_since),
	 "Since when, in seconds since the recording began"},
	{"reference_bytes", NULL, NULL, 0, RESULT(all.reference, PAGES),
	 "Reference set: memory touched at least once since the recording began, in bytes"},
	{"size_bytes", NULL, NULL, 0, WSS_GET(refset_get_size),
	 "Memory that was outstanding at any time in the viewport, in bytes"},
	{"persistent_bytes", NULL, NULL, 0, RESULT(all.persistent, PAGES),
	 "The part of it that is outstanding at both ends, in bytes"},
	{"unbroken_bytes", NULL, NULL, 0, RESULT(all.unbroken, PAGES),
	 "The part of the persistent set that never left, in bytes"},
	{"impacting_bytes", NULL, NULL, 0, WSS_GET(refset_get_impacting),
	 "The part that is outstanding at one end only, gained and lost, in bytes"},
	{"gained_bytes", NULL, NULL, 0, RESULT(all.gained, PAGES),
	 "Outstanding at the second end only, in bytes"},
	{"lost_bytes", NULL, NULL, 0, RESULT(all.lost, PAGES),
	 "Outstanding at the first end only, in bytes"},
	{"transient_bytes", NULL, NULL, 0, RESULT(all.transient, PAGES),
	 "Outstanding within the viewport and at neither end, in bytes"},
	{"written_bytes", NULL, NULL, 0, WSS_GET(refset_get_written),
	 "Memory that was written to, in bytes"},
	{"written", NULL, NULL, 0, WSS_GET(refset_get_meaning),
	 "Accuracy of that figure: exact, an upper bound or a lower bound"},
};

GETTER(region,
       wss_value_text(wss_region_kind_name(((const struct wss_region *)region_of(row))->kind)))
GETTER(region_size, pages_value(size_of(classes_of(row))))

static const struct wss_column region_columns[] = {
	{"region", NULL, "REGION", -8, WSS_GET(refset_get_region),
	 "Kind of the region of guest memory"},
	{"name", NULL, "NAME", -16, REGION(name, TEXT), "Name of its memory device or backend"},
	{"node", NULL, "NODE", 4, REGION(node, COUNT), "NUMA node of the guest, a number"},
	{"start_address", NULL, "START", 12, REGION(start, ADDRESS),
	 "First guest-physical address, hexadecimal"},
	{"length_bytes", NULL, "LENGTH", 8, REGION(length, BYTES),
	 "Length of the region, in bytes"},
	{"peak_bytes", NULL, "PEAK", 8, CLASS(peak),
	 "Largest outstanding set in the region, in bytes"},
	{"size_bytes", NULL, "SIZE", 8, WSS_GET(refset_get_region_size),
	 "Outstanding at any time in the viewport, in bytes"},
	{"persistent_bytes", NULL, "PERSIST", 8, CLASS(persistent),
	 "Outstanding at both ends of the viewport, in bytes"},
	{"gained_bytes", NULL, "GAINED", 8, CLASS(gained),
	 "Outstanding at its second end only, in bytes"},
	{"lost_bytes", NULL, "LOST", 8, CLASS(lost), "Outstanding at its first end only, in bytes"},
	{"transient_bytes", NULL, "TRANSIENT", 9, CLASS(transient),
	 "Outstanding within, and at neither end, in bytes"},
	{"reference_bytes", NULL, "REFERENCE", 9, CLASS(reference),
	 "Reference set: touched at least once since the recording began, in bytes"},
};

int wss_refset_next_node(const struct wss_recording *recording, int last)
{
	int next = -1;

	for (size_t i = 0; i < recording->n_regions; i++) {
		int node = recording->regions[i].node;

		if (node > last && (next < 0 || node < next))
			next = node;
	}
	return next;
}

/* Sums a class over the regions of the row's node. */
#define NODE_SUM(name, expression)                                                              \
	static struct wss_value refset_get_node_##name(const void *row)                         \
	{                                                                                       \
		const struct wss_recording *recording = recording_of(row);                      \
		uint64_t sum = 0;                                                               \
                                                                                                \
		for (size_t i = 0; i < recording->n_regions; i++) {                             \
			const struct wss_refset_classes *classes = &RESULT_OF(row)->regions[i]; \
                                                                                                \
			(void)classes;                                                          \
			if (recording->regions[i].node == row_of(row)->node)                    \
				sum += expression;                                              \
		}                                                                               \
		return pages_value(sum);                                                        \
	}

NODE_SUM(length, recording->regions[i].length >> WSS_PAGE_SHIFT)
NODE_SUM(size, size_of(classes))
NODE_SUM(persistent, classes->persistent)
NODE_SUM(gained, classes->gained)
NODE_SUM(lost, classes->lost)
NODE_SUM(transient, classes->transient)
NODE_SUM(reference, classes->reference)

static const struct wss_column node_columns[] = {
	{"node", NULL, "NODE", 4, ROW(node, COUNT), "NUMA node of the guest, a number"},
	{"length_bytes", NULL, "LENGTH", 8, WSS_GET(refset_get_node_length),
	 "Memory of the node, in bytes"},
	{"size_bytes", NULL, "SIZE", 8, WSS_GET(refset_get_node_size),
	 "Outstanding at any time in the viewport, in bytes"},
	{"persistent_bytes", NULL, "PERSIST", 8, WSS_GET(refset_get_node_persistent),
	 "Outstanding at both ends of the viewport, in bytes"},
	{"gained_bytes", NULL, "GAINED", 8, WSS_GET(refset_get_node_gained),
	 "Outstanding at its second end only, in bytes"},
	{"lost_bytes", NULL, "LOST", 8, WSS_GET(refset_get_node_lost),
	 "Outstanding at its first end only, in bytes"},
	{"transient_bytes", NULL, "TRANSIENT", 9, WSS_GET(refset_get_node_transient),
	 "Outstanding within, and at neither end, in bytes"},
	{"reference_bytes", NULL, "REFERENCE", 9, WSS_GET(refset_get_node_reference),
	 "Reference set: touched at least once since the recording began, in bytes"},
};

static const struct wss_column phase_columns[] = {
	{"start_seconds", NULL, "PHASE FROM", 10, PHASE(start_ns, DURATION),
	 "Start of the phase, in seconds since the recording began"},
	{"end_seconds", NULL, "TO", 9, PHASE(end_ns, DURATION),
	 "End of the phase, in seconds since the recording began"},
	{"windows", NULL, "WINDOWS", 7, PHASE(windows, COUNT), "Windows in the phase, a count"},
	{"median_bytes", NULL, "MEDIAN", 9, PHASE(pages, PAGES),
	 "Median of the outstanding sets in the phase, in bytes"},
};

static const struct wss_column mark_columns[] = {
	{"seconds", NULL, "MARK AT", 10, MARK(time_ns, DURATION),
	 "Time of the mark, in seconds since the recording began"},
	{"text", NULL, "TEXT", -24, MARK(text, TEXT), "Text of the mark"},
};

GETTER(point_kind, wss_value_text(point_of(row)->gap	    ? "gap"
				  : point_of(row)->degraded ? "degraded"
							    : "window"))
GETTER(point_why, point_of(row)->why ? wss_value_text(RESULT_OF(row)->notes + point_of(row)->why)
				     : wss_value_absent())
GETTER(point_again, point_of(row)->gap ? wss_value_absent()
				       : pages_value(point_of(row)->touched - point_of(row)->first))
GETTER(point_written,
       point_of(row)->gap ? wss_value_absent()
			  : written_pages(point_of(row)->written, point_of(row)->written_meaning))
GETTER(point_meaning,
       wss_value_text(wss_written_name((enum wss_written)point_of(row)->written_meaning)))

static const struct wss_column interval_columns[] = {
	{"start_seconds", NULL, "START", 9, POINT(start_ns, DURATION),
	 "Start of the window or gap, in seconds since the recording began"},
	{"end_seconds", NULL, "END", 9, POINT(end_ns, DURATION),
	 "Its end, in seconds since the recording began"},
	{"kind", NULL, "KIND", -8, WSS_GET(refset_get_point_kind),
	 "window; degraded (its bounds are wide); gap (nothing was observed)"},
	{"outstanding_bytes", NULL, "SET", 9, PAGES(touched),
	 "Outstanding set: memory touched in the window, in bytes"},
	{"first_touched_bytes", NULL, "FIRST", 9, PAGES(first),
	 "The part of it that was touched for the first time, in bytes"},
	{"touched_again_bytes", NULL, "AGAIN", 9, WSS_GET(refset_get_point_again),
	 "The part of it that had been touched before, in bytes"},
	{"gained_bytes", NULL, "GAINED", 9, PAGES(gained),
	 "Outstanding now and not in the window before, in bytes"},
	{"lost_bytes", NULL, "LOST", 9, PAGES(lost),
	 "Outstanding in the window before and not now, in bytes"},
	{"written_bytes", NULL, "WRITTEN", 9, WSS_GET(refset_get_point_written),
	 "Memory that was written to in the window, in bytes"},
	{"written", NULL, "WRITTEN-IS", -11, WSS_GET(refset_get_point_meaning),
	 "Accuracy of that figure: exact, an upper bound or a lower bound"},
	{"ballooned_bytes", NULL, "BALLOONED", 9, PAGES(ballooned),
	 "Memory that the balloon took, in bytes"},
	{"returned_bytes", NULL, "RETURNED", 9, PAGES(returned),
	 "Memory that the balloon returned, in bytes"},
	{"reference_bytes", NULL, "REFERENCE", 9, PAGES(reference),
	 "Reference set: touched at least once since the recording began, in bytes"},
	{"why", NULL, "WHY", -24, WSS_GET(refset_get_point_why),
	 "Why the window is degraded, or why nothing was observed"},
};

#define LAYOUT(key, list, shown_keys, wide_keys)                                    \
	{                                                                           \
		.schema = "virt-wss/report/1", .array_key = key, .columns = list,   \
		.n_columns = sizeof(list) / sizeof(list[0]), .shown = (shown_keys), \
		.wide = (wide_keys),                                                \
	}
#define PHASE_KEYS "start_seconds,end_seconds,windows,median_bytes"
#define NODE_KEYS                                                                \
	"node,length_bytes,size_bytes,persistent_bytes,gained_bytes,lost_bytes," \
	"transient_bytes,reference_bytes"

const struct wss_report_layout wss_refset_layouts[WSS_REFSET_PARTS] = {
	[WSS_REFSET_RECORDING] = LAYOUT("recording", recording_columns, NULL, NULL),
	[WSS_REFSET_VIEWPORT] = LAYOUT("viewport", viewport_columns, NULL, NULL),
	[WSS_REFSET_REGIONS] =
		LAYOUT("regions", region_columns,
		       "region,node,start_address,length_bytes,persistent_bytes,gained_bytes,"
		       "lost_bytes,transient_bytes",
		       "region,node,start_address,length_bytes,peak_bytes,size_bytes,"
		       "persistent_bytes,gained_bytes,lost_bytes,transient_bytes,reference_bytes"),
	[WSS_REFSET_NODES] = LAYOUT("nodes", node_columns, NODE_KEYS, NODE_KEYS),
	[WSS_REFSET_PHASES] = LAYOUT("phases", phase_columns, PHASE_KEYS, PHASE_KEYS),
	[WSS_REFSET_MARKS] = LAYOUT("marks", mark_columns, "seconds,text", "seconds,text"),
	[WSS_REFSET_INTERVALS] =
		LAYOUT("intervals", interval_columns,
		       "start_seconds,kind,outstanding_bytes,first_touched_bytes,gained_bytes,"
		       "lost_bytes,reference_bytes",
		       "start_seconds,end_seconds,kind,outstanding_bytes,first_touched_bytes,"
		       "touched_again_bytes,gained_bytes,lost_bytes,written_bytes,"
		       "reference_bytes,why"),
};
