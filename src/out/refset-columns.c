/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "out/refset-columns.h"

static const struct wss_refset_result *result_of(const void *row)
{
	return ((const struct wss_refset_row *)row)->report->result;
}

static const struct wss_recording *recording_of(const void *row)
{
	return ((const struct wss_refset_row *)row)->report->recording;
}

static const struct wss_refset_point *point_of(const void *row)
{
	return &result_of(row)->points[((const struct wss_refset_row *)row)->i];
}

static const struct wss_region *region_of(const void *row)
{
	return &recording_of(row)->regions[((const struct wss_refset_row *)row)->i];
}

static struct wss_value pages_value(uint64_t n)
{
	return wss_value_number(n << WSS_PAGE_SHIFT, WSS_KIND_BYTES);
}

/* Defines refset_get_NAME(row), which returns EXPRESSION. */
#define GETTER(name, expression)                                                              \
	static struct wss_value refset_get_##name(const void *row)                            \
	{                                                                                     \
		return expression;                                                            \
	}

#define REPORT(row) (((const struct wss_refset_row *)(row))->report)

GETTER(file, wss_value_text(REPORT(row)->file))
GETTER(domain, wss_value_text(recording_of(row)->domain))
GETTER(uuid, wss_value_text(recording_of(row)->uuid))
GETTER(host, wss_value_text(recording_of(row)->host))
GETTER(tool, wss_value_text(recording_of(row)->tool))
GETTER(method, wss_value_text(recording_of(row)->method))
GETTER(start, wss_value_time((time_t)(recording_of(row)->start_realtime_ns / 1000000000)))
GETTER(boottime, wss_value_number(recording_of(row)->start_boottime_ns, WSS_KIND_DURATION))
GETTER(duration, wss_value_number(REPORT(row)->duration_ns, WSS_KIND_DURATION))
GETTER(interval, wss_value_number(recording_of(row)->interval_ns, WSS_KIND_DURATION))
GETTER(window, wss_value_number(recording_of(row)->window_ns, WSS_KIND_DURATION))
GETTER(granularity, wss_value_number(recording_of(row)->granularity_bytes, WSS_KIND_BYTES))
GETTER(memory, pages_value(wss_recording_pages(recording_of(row))))
GETTER(file_bytes, wss_value_number(REPORT(row)->file_bytes, WSS_KIND_BYTES))
GETTER(ended, wss_value_number(REPORT(row)->ended, WSS_KIND_BOOL))
GETTER(whole, wss_value_number(REPORT(row)->whole, WSS_KIND_BOOL))

static const struct wss_column recording_columns[] = {
	{"file", NULL, NULL, 0, refset_get_file, "The file", false},
	{"domain", NULL, NULL, 0, refset_get_domain, "Name of the guest", false},
	{"uuid", NULL, NULL, 0, refset_get_uuid, "UUID of the guest", false},
	{"tool", NULL, NULL, 0, refset_get_tool, "Program and version that recorded it",
	 false},
	{"method", NULL, NULL, 0, refset_get_method, "How it was recorded", false},
	{"time", NULL, NULL, 0, refset_get_start, "When the recording began, UTC", false},
	{"boottime_seconds", NULL, NULL, 0, refset_get_boottime,
	 "The same by the host's clock since boot, in seconds", false},
	{"duration_seconds", NULL, NULL, 0, refset_get_duration,
	 "Length of the recording, in seconds", false},
	{"interval_seconds", NULL, NULL, 0, refset_get_interval,
	 "From the start of one window to the start of the next, in seconds", false},
	{"window_seconds", NULL, NULL, 0, refset_get_window, "Length of a window, in seconds",
	 false},
	{"granularity_bytes", NULL, NULL, 0, refset_get_granularity,
	 "Granularity of the recording, in bytes", false},
	{"memory_bytes", NULL, NULL, 0, refset_get_memory,
	 "Guest memory that the recording covers, in bytes", false},
	{"file_bytes", NULL, NULL, 0, refset_get_file_bytes, "Size of the file, in bytes",
	 false},
	{"ended", NULL, NULL, 0, refset_get_ended,
	 "Whether the recording was ended, not cut off", false},
	{"whole", NULL, NULL, 0, refset_get_whole, "Whether all of the file could be read",
	 false},
	{"host", NULL, NULL, 0, refset_get_host, "Name of the host", false},
};

static struct wss_value written_pages(uint64_t n, uint8_t meaning)
{
	return meaning == WSS_WRITTEN_ABSENT ? wss_value_absent() : pages_value(n);
}

static uint64_t size_of(const struct wss_refset_classes *classes)
{
	return classes->persistent + classes->gained + classes->lost + classes->transient;
}

GETTER(from, wss_value_number(result_of(row)->from_ns, WSS_KIND_DURATION))
GETTER(to, wss_value_number(result_of(row)->to_ns, WSS_KIND_DURATION))
GETTER(windows, wss_value_number(result_of(row)->windows, WSS_KIND_COUNT))
GETTER(gaps, wss_value_number(result_of(row)->gap_ns, WSS_KIND_DURATION))
GETTER(peak, pages_value(result_of(row)->all.peak))
GETTER(peak_time, wss_value_number(result_of(row)->peak_ns, WSS_KIND_DURATION))
GETTER(steady, result_of(row)->steady.known ? pages_value(result_of(row)->steady.value)
					    : wss_value_absent())
GETTER(steady_since, wss_value_number(result_of(row)->steady_since_ns,
				      result_of(row)->steady.known ? WSS_KIND_DURATION
								   : WSS_KIND_ABSENT))
GETTER(reference, pages_value(result_of(row)->all.reference))
GETTER(size, pages_value(size_of(&result_of(row)->all)))
GETTER(persistent, pages_value(result_of(row)->all.persistent))
GETTER(unbroken, pages_value(result_of(row)->all.unbroken))
GETTER(impacting, pages_value(result_of(row)->all.gained + result_of(row)->all.lost))
GETTER(gained, pages_value(result_of(row)->all.gained))
GETTER(lost, pages_value(result_of(row)->all.lost))
GETTER(transient, pages_value(result_of(row)->all.transient))
GETTER(written, written_pages(result_of(row)->all.written, result_of(row)->written_meaning))
GETTER(meaning, wss_value_text(wss_written_name((enum wss_written)result_of(row)->written_meaning)))

static const struct wss_column viewport_columns[] = {
	{"from_seconds", NULL, NULL, 0, refset_get_from,
	 "Start of the viewport, in seconds since the recording began", false},
	{"to_seconds", NULL, NULL, 0, refset_get_to,
	 "End of the viewport, in seconds since the recording began", false},
	{"windows", NULL, NULL, 0, refset_get_windows, "Windows in the viewport, a count",
	 false},
	{"gap_seconds", NULL, NULL, 0, refset_get_gaps,
	 "Time in it in which nothing was observed, in seconds", false},
	{"peak_bytes", NULL, NULL, 0, refset_get_peak, "Largest outstanding set, in bytes",
	 false},
	{"peak_at_seconds", NULL, NULL, 0, refset_get_peak_time,
	 "When that was, in seconds since the recording began", false},
	{"steady_bytes", NULL, NULL, 0, refset_get_steady,
	 "Steady state: the size of the last phase, in bytes", false},
	{"steady_since_seconds", NULL, NULL, 0, refset_get_steady_since,
	 "Since when, in seconds since the recording began", false},
	{"reference_bytes", NULL, NULL, 0, refset_get_reference,
	 "Reference set: memory touched at least once since the recording began, in "
	 "bytes",
	 false},
	{"size_bytes", NULL, NULL, 0, refset_get_size,
	 "Memory that was outstanding at any time in the viewport, in bytes", false},
	{"persistent_bytes", NULL, NULL, 0, refset_get_persistent,
	 "The part of it that is outstanding at both ends, in bytes", false},
	{"unbroken_bytes", NULL, NULL, 0, refset_get_unbroken,
	 "The part of the persistent set that never left, in bytes", false},
	{"impacting_bytes", NULL, NULL, 0, refset_get_impacting,
	 "The part that is outstanding at one end only, gained and lost, in bytes", false},
	{"gained_bytes", NULL, NULL, 0, refset_get_gained,
	 "Outstanding at the second end only, in bytes", false},
	{"lost_bytes", NULL, NULL, 0, refset_get_lost,
	 "Outstanding at the first end only, in bytes", false},
	{"transient_bytes", NULL, NULL, 0, refset_get_transient,
	 "Outstanding within the viewport and at neither end, in bytes", false},
	{"written_bytes", NULL, NULL, 0, refset_get_written,
	 "Memory that was written to, in bytes", false},
	{"written", NULL, NULL, 0, refset_get_meaning,
	 "Accuracy of that figure: exact, an upper bound or a lower bound", false},
};

static const struct wss_refset_classes *region_classes(const void *row)
{
	return &result_of(row)->regions[((const struct wss_refset_row *)row)->i];
}

static struct wss_value node_value(int node)
{
	return wss_value_number((uint64_t)node, node < 0 ? WSS_KIND_ABSENT : WSS_KIND_COUNT);
}

GETTER(region, wss_value_text(wss_region_kind_name(region_of(row)->kind)))
GETTER(region_name, wss_value_text(region_of(row)->name))
GETTER(region_node, node_value(region_of(row)->node))
GETTER(region_start, wss_value_number(region_of(row)->start, WSS_KIND_ADDRESS))
GETTER(region_length, wss_value_number(region_of(row)->length, WSS_KIND_BYTES))
GETTER(region_peak, pages_value(region_classes(row)->peak))
GETTER(region_size, pages_value(size_of(region_classes(row))))
GETTER(region_persistent, pages_value(region_classes(row)->persistent))
GETTER(region_gained, pages_value(region_classes(row)->gained))
GETTER(region_lost, pages_value(region_classes(row)->lost))
GETTER(region_transient, pages_value(region_classes(row)->transient))
GETTER(region_reference, pages_value(region_classes(row)->reference))

static const struct wss_column region_columns[] = {
	{"region", NULL, "REGION", -8, refset_get_region, "Kind of the region of guest memory",
	 false},
	{"name", NULL, "NAME", -16, refset_get_region_name,
	 "Name of its memory device or backend", false},
	{"node", NULL, "NODE", 4, refset_get_region_node, "NUMA node of the guest, a number",
	 false},
	{"start_address", NULL, "START", 12, refset_get_region_start,
	 "First guest-physical address, hexadecimal", false},
	{"length_bytes", NULL, "LENGTH", 8, refset_get_region_length,
	 "Length of the region, in bytes", false},
	{"peak_bytes", NULL, "PEAK", 8, refset_get_region_peak,
	 "Largest outstanding set in the region, in bytes", false},
	{"size_bytes", NULL, "SIZE", 8, refset_get_region_size,
	 "Outstanding at any time in the viewport, in bytes", false},
	{"persistent_bytes", NULL, "PERSIST", 8, refset_get_region_persistent,
	 "Outstanding at both ends of the viewport, in bytes", false},
	{"gained_bytes", NULL, "GAINED", 8, refset_get_region_gained,
	 "Outstanding at its second end only, in bytes", false},
	{"lost_bytes", NULL, "LOST", 8, refset_get_region_lost,
	 "Outstanding at its first end only, in bytes", false},
	{"transient_bytes", NULL, "TRANSIENT", 9, refset_get_region_transient,
	 "Outstanding within, and at neither end, in bytes", false},
	{"reference_bytes", NULL, "REFERENCE", 9, refset_get_region_reference,
	 "Reference set: touched at least once since the recording began, in bytes", false},
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
#define NODE_SUM(name, expression)                                                            \
	static struct wss_value refset_get_node_##name(const void *row)                       \
	{                                                                                     \
		int node = ((const struct wss_refset_row *)row)->node;                        \
		uint64_t sum = 0;                                                             \
                                                                                              \
		for (size_t i = 0; i < recording_of(row)->n_regions; i++) {                   \
			const struct wss_refset_classes *classes =                            \
				&result_of(row)->regions[i];                                  \
                                                                                              \
			(void)classes;                                                        \
			if (recording_of(row)->regions[i].node == node)                       \
				sum += expression;                                            \
		}                                                                             \
		return pages_value(sum);                                                      \
	}

NODE_SUM(length, recording_of(row)->regions[i].length >> WSS_PAGE_SHIFT)
NODE_SUM(size, size_of(classes))
NODE_SUM(persistent, classes->persistent)
NODE_SUM(gained, classes->gained)
NODE_SUM(lost, classes->lost)
NODE_SUM(transient, classes->transient)
NODE_SUM(reference, classes->reference)
GETTER(node, node_value(((const struct wss_refset_row *)row)->node))

static const struct wss_column node_columns[] = {
	{"node", NULL, "NODE", 4, refset_get_node, "NUMA node of the guest, a number", false},
	{"length_bytes", NULL, "LENGTH", 8, refset_get_node_length,
	 "Memory of the node, in bytes", false},
	{"size_bytes", NULL, "SIZE", 8, refset_get_node_size,
	 "Outstanding at any time in the viewport, in bytes", false},
	{"persistent_bytes", NULL, "PERSIST", 8, refset_get_node_persistent,
	 "Outstanding at both ends of the viewport, in bytes", false},
	{"gained_bytes", NULL, "GAINED", 8, refset_get_node_gained,
	 "Outstanding at its second end only, in bytes", false},
	{"lost_bytes", NULL, "LOST", 8, refset_get_node_lost,
	 "Outstanding at its first end only, in bytes", false},
	{"transient_bytes", NULL, "TRANSIENT", 9, refset_get_node_transient,
	 "Outstanding within, and at neither end, in bytes", false},
	{"reference_bytes", NULL, "REFERENCE", 9, refset_get_node_reference,
	 "Reference set: touched at least once since the recording began, in bytes", false},
};

#define PHASE(row) (&result_of(row)->phases[((const struct wss_refset_row *)(row))->i])
#define MARK(row) (&result_of(row)->marks.list[((const struct wss_refset_row *)(row))->i])

GETTER(phase_start, wss_value_number(PHASE(row)->start_ns, WSS_KIND_DURATION))
GETTER(phase_end, wss_value_number(PHASE(row)->end_ns, WSS_KIND_DURATION))
GETTER(phase_windows, wss_value_number(PHASE(row)->windows, WSS_KIND_COUNT))
GETTER(phase_size, pages_value(PHASE(row)->pages))

static const struct wss_column phase_columns[] = {
	{"start_seconds", NULL, "PHASE FROM", 10, refset_get_phase_start,
	 "Start of the phase, in seconds since the recording began", false},
	{"end_seconds", NULL, "TO", 9, refset_get_phase_end,
	 "End of the phase, in seconds since the recording began", false},
	{"windows", NULL, "WINDOWS", 7, refset_get_phase_windows,
	 "Windows in the phase, a count", false},
	{"median_bytes", NULL, "MEDIAN", 9, refset_get_phase_size,
	 "Median of the outstanding sets in the phase, in bytes", false},
};

GETTER(mark_time, wss_value_number(MARK(row)->time_ns, WSS_KIND_DURATION))
GETTER(mark_text, wss_value_text(MARK(row)->text))

static const struct wss_column mark_columns[] = {
	{"seconds", NULL, "MARK AT", 10, refset_get_mark_time,
	 "Time of the mark, in seconds since the recording began", false},
	{"text", NULL, "TEXT", -24, refset_get_mark_text, "Text of the mark", false},
};

static struct wss_value point_pages(const struct wss_refset_point *point, uint64_t n)
{
	return point->gap ? wss_value_absent() : pages_value(n);
}

GETTER(point_start, wss_value_number(point_of(row)->start_ns, WSS_KIND_DURATION))
GETTER(point_end, wss_value_number(point_of(row)->end_ns, WSS_KIND_DURATION))
GETTER(point_kind, wss_value_text(point_of(row)->gap	   ? "gap"
				  : point_of(row)->degraded ? "degraded"
							    : "window"))
GETTER(point_outstanding, point_pages(point_of(row), point_of(row)->touched))
GETTER(point_first, point_pages(point_of(row), point_of(row)->first))
GETTER(point_again, point_pages(point_of(row), point_of(row)->touched - point_of(row)->first))
GETTER(point_written, point_of(row)->gap ? wss_value_absent()
					 : written_pages(point_of(row)->written,
							 point_of(row)->written_meaning))
GETTER(point_meaning, wss_value_text(wss_written_name((enum wss_written)point_of(row)->written_meaning)))
GETTER(point_gained, point_pages(point_of(row), point_of(row)->gained))
GETTER(point_lost, point_pages(point_of(row), point_of(row)->lost))
GETTER(point_ballooned, point_pages(point_of(row), point_of(row)->ballooned))
GETTER(point_returned, point_pages(point_of(row), point_of(row)->returned))
GETTER(point_reference, point_pages(point_of(row), point_of(row)->reference))

static const struct wss_column interval_columns[] = {
	{"start_seconds", NULL, "START", 9, refset_get_point_start,
	 "Start of the window or gap, in seconds since the recording began", false},
	{"end_seconds", NULL, "END", 9, refset_get_point_end,
	 "Its end, in seconds since the recording began", false},
	{"kind", NULL, "KIND", -8, refset_get_point_kind,
	 "window; degraded (its bounds are wide); gap (nothing was observed)", false},
	{"outstanding_bytes", NULL, "SET", 9, refset_get_point_outstanding,
	 "Outstanding set: memory touched in the window, in bytes", false},
	{"first_touched_bytes", NULL, "FIRST", 9, refset_get_point_first,
	 "The part of it that was touched for the first time, in bytes", false},
	{"touched_again_bytes", NULL, "AGAIN", 9, refset_get_point_again,
	 "The part of it that had been touched before, in bytes", false},
	{"gained_bytes", NULL, "GAINED", 9, refset_get_point_gained,
	 "Outstanding now and not in the window before, in bytes", false},
	{"lost_bytes", NULL, "LOST", 9, refset_get_point_lost,
	 "Outstanding in the window before and not now, in bytes", false},
	{"written_bytes", NULL, "WRITTEN", 9, refset_get_point_written,
	 "Memory that was written to in the window, in bytes", false},
	{"written", NULL, "WRITTEN-IS", -11, refset_get_point_meaning,
	 "Accuracy of that figure: exact, an upper bound or a lower bound", false},
	{"ballooned_bytes", NULL, "BALLOONED", 9, refset_get_point_ballooned,
	 "Memory that the balloon took, in bytes", false},
	{"returned_bytes", NULL, "RETURNED", 9, refset_get_point_returned,
	 "Memory that the balloon returned, in bytes", false},
	{"reference_bytes", NULL, "REFERENCE", 9, refset_get_point_reference,
	 "Reference set: touched at least once since the recording began, in bytes", false},
};

#define LAYOUT(key, list, shown_keys, wide_keys)                                  \
	{                                                                         \
		.schema = "virt-wss/report/1", .array_key = key, .columns = list, \
		.n_columns = sizeof(list) / sizeof(list[0]),                      \
		.shown = (shown_keys), .wide = (wide_keys),                       \
	}
#define PHASE_KEYS "start_seconds,end_seconds,windows,median_bytes"
#define NODE_KEYS                                                                     \
	"node,length_bytes,size_bytes,persistent_bytes,gained_bytes,lost_bytes,"      \
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
		       "reference_bytes"),
};
