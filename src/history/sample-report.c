/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "history/sample-report.h"

#include "history/history-report.h"

#include <stdio.h>

#include "base/units.h"
#include "measure/sample.h"
#include "show/report-private.h"

static struct wss_value sample_get_quality(const void *row)
{
	return wss_value_text(wss_quality_name(((const struct wss_sample *)row)->quality));
}

static struct wss_value sample_get_observes(const void *row)
{
	const struct wss_sample *sample = row;

	return wss_value_text(sample->method ? wss_observes_name(sample->observes) : NULL);
}

static struct wss_value sample_get_bloat(const void *row)
{
	double factor;

	if (!wss_sample_bloat(row, &factor))
		return wss_value_absent();
	return (struct wss_value){.kind = WSS_KIND_FACTOR, .real = factor};
}

/* A degraded window may have missed what was touched, also where its method is exact. */
static enum wss_bound bound_of(const struct wss_sample *sample)
{
	enum wss_bound bound =
		wss_bound_of(sample->wss_bytes.value, sample->low_bytes, sample->high_bytes);

	return bound == WSS_BOUND_EXACT && sample->quality == WSS_QUALITY_DEGRADED
		       ? WSS_BOUND_AT_LEAST
		       : bound;
}

static struct wss_value sample_get_wss(const void *row)
{
	const struct wss_sample *sample = row;

	return wss_value_bounded(wss_value_amount(sample->wss_bytes, WSS_KIND_BYTES),
				 bound_of(sample));
}

static struct wss_value sample_get_native_wss(const void *row)
{
	const struct wss_sample *sample = row;

	return wss_value_bounded(wss_value_amount(sample->native.wss_bytes, WSS_KIND_BYTES),
				 wss_bound_of(sample->native.wss_bytes.value,
					      sample->native.low_bytes, sample->native.high_bytes));
}

static struct wss_value sample_get_share(const void *row)
{
	double share;

	if (!wss_sample_share(row, &share))
		return wss_value_absent();
	return (struct wss_value){.kind = WSS_KIND_SHARE, .real = share, .bound = bound_of(row)};
}

static struct wss_value sample_get_tool_cpu(const void *row)
{
	const struct wss_sample *sample = row;

	if (!sample->cost.user_ns.known)
		return wss_value_absent();
	return wss_value_number(sample->cost.user_ns.value + sample->cost.system_ns.value,
				WSS_KIND_DURATION);
}

/* For people: how far the figure may be off. */
static struct wss_value sample_get_bounds(const void *row)
{
	static _Thread_local char text[40];
	const struct wss_sample *sample = row;
	char low[16], high[16];

	if (!sample->low_bytes.known || !sample->high_bytes.known)
		return wss_value_absent();
	wss_size_format(sample->low_bytes.value, low, sizeof(low));
	wss_size_format(sample->high_bytes.value, high, sizeof(high));
	snprintf(text, sizeof(text), "%s-%s", low, high);
	/* The reasons for a degraded sample are in its notes, not in its bounds. */
	if (sample->low_bytes.value == sample->high_bytes.value)
		snprintf(text, sizeof(text), "%s",
			 sample->quality == WSS_QUALITY_OK ? "exact" : "uncertain");
	return wss_value_text(text);
}

static struct wss_value sample_get_notes(const void *row)
{
	static _Thread_local char text[WSS_NOTES_MAX * (WSS_NOTE_LEN + 2)];
	const struct wss_sample *sample = row;
	size_t len = 0;

	text[0] = '\0';
	for (size_t i = 0; i < sample->n_notes; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s", i ? "; " : "",
					sample->notes[i]);
	return wss_value_text(text);
}

#define FIELD(member, kind) WSS_FIELD(struct wss_sample, member, kind)

static const struct wss_column columns[] = {
	{"domain", NULL, "DOMAIN", -12, FIELD(domain, TEXT), "Name of the guest"},
	{"uuid", NULL, "UUID", -36, FIELD(uuid, TEXT), "UUID of the guest"},
	{"time", NULL, "TIME", -20, FIELD(wall, TEXT), "When the window was read, UTC"},
	{"quality", NULL, "QUALITY", -8, WSS_GET(sample_get_quality),
	 "ok; degraded (measured, but the notes say what widens the bounds); unsupported; "
	 "failed"},
	{"method", NULL, "METHOD", -6, FIELD(method, TEXT), "Name of the method that measured it"},
	{"observes", NULL, "OBSERVES", -9, WSS_GET(sample_get_observes),
	 "Kind of use observed: accesses, writes or residency"},
	{"granularity_bytes", NULL, "GRAN", 5, FIELD(granularity_bytes, BYTES),
	 "Granularity: the largest page-table entry seen, in bytes"},
	{"requested_window_seconds", NULL, "REQUESTED", 9, FIELD(requested_window_ns, DURATION),
	 "Requested length of the window, in seconds"},
	{"window_seconds", NULL, "WINDOW", 7, FIELD(window_ns, DURATION),
	 "Length of the window as measured, middle of its start to middle of reading, in seconds"},
	{"maximum_bytes", "memory", "MAXIMUM", 8, FIELD(memory.maximum_bytes, BYTES),
	 "Maximum memory of the guest, in bytes"},
	{"balloon_bytes", "memory", "BALLOON", 8, FIELD(memory.balloon_bytes, BYTES),
	 "Memory that the balloon leaves to the guest, in bytes"},
	{"rss_bytes", "memory", "RSS", 8, FIELD(memory.rss_bytes, BYTES),
	 "Guest memory that is resident on the host, without QEMU's own memory, in bytes"},
	{"pss_bytes", "memory", "PSS", 8, FIELD(memory.pss_bytes, BYTES),
	 "The same, with shared pages divided among those that share them, in bytes"},
	{"swap_bytes", "memory", "SWAP", 8, FIELD(memory.swap_bytes, BYTES),
	 "Guest memory that the host has swapped out, in bytes"},
	{"huge_bytes", "memory", "HUGE", 8, FIELD(memory.huge_bytes, BYTES),
	 "Guest memory that lies on huge pages of the host, in bytes"},
	{"qemu_bytes", "memory", "QEMU", 8, FIELD(memory.qemu_bytes, BYTES),
	 "Resident memory of QEMU that is not guest memory, in bytes"},
	{"wss_bytes", NULL, "WSS", 11, WSS_GET(sample_get_wss),
	 "Working set: memory that the guest touched within the window, in bytes; "
	 "<= or >= where only that bound is known"},
	{"wss_low_bytes", NULL, "WSS-LOW", 8, FIELD(low_bytes, BYTES),
	 "Lower bound of the working set, in bytes"},
	{"wss_high_bytes", NULL, "WSS-HIGH", 8, FIELD(high_bytes, BYTES),
	 "Upper bound of the working set, in bytes"},
	{"bounds", NULL, "BOUNDS", 17, WSS_GET(sample_get_bounds),
	 "Both bounds of the working set; exact or uncertain if they are equal"},
	{"recorder", NULL, "RECORDER", -8, FIELD(recorder, TEXT),
	 "Source of the counts: bpf (page by page) or KVM's counters"},
	{"mapped_bytes", NULL, "MAPPED", 8, FIELD(mapped_bytes, BYTES),
	 "Memory mapped in KVM's second-level page tables, the largest value seen, in bytes"},
	{"written_bytes", NULL, "WRITTEN", 8, FIELD(written_bytes, BYTES),
	 "Memory that the guest wrote to within the window, in bytes"},
	{"written_low_bytes", NULL, "WR-LOW", 8, FIELD(written_low_bytes, BYTES),
	 "Lower bound of the written memory, in bytes"},
	{"written_high_bytes", NULL, "WR-HIGH", 8, FIELD(written_high_bytes, BYTES),
	 "Upper bound of the written memory, in bytes"},
	{"wss_of_balloon", NULL, "WSS/BAL", 7, WSS_GET(sample_get_share),
	 "Working set as a share of the balloon, 1 = 100%"},
	{"arm_seconds", "cost", "ARM", 8, FIELD(cost.arm_ns, DURATION),
	 "Time that the start of the window took, in seconds; virtual CPUs may have waited for it"},
	{"read_seconds", "cost", "READ", 8, FIELD(cost.read_ns, DURATION),
	 "Time that reading took, in seconds"},
	{"faults", "cost", "FAULTS", 9, FIELD(cost.faults, COUNT),
	 "Second-level page faults that the guest took in the window, a count"},
	{"predicted_stall_seconds", "cost", "STALL", 8, FIELD(cost.predicted_stall_ns, DURATION),
	 "Predicted longest stall of a virtual CPU at the start of the window, in seconds"},
	{"predicted_faults", "cost", "EXP-FLT", 9, FIELD(cost.predicted_faults, COUNT),
	 "Faults that the window was expected to cost the guest, a count: at most so many, or as "
	 "earlier windows taught"},
	{"tool_cpu_seconds", "cost", "CPU", 8, WSS_GET(sample_get_tool_cpu),
	 "CPU time of virt-wss itself in the window, in seconds"},
	{"tool_user_seconds", "cost", "CPU-USER", 8, FIELD(cost.user_ns, DURATION),
	 "The part of it in user mode, in seconds"},
	{"tool_system_seconds", "cost", "CPU-SYS", 8, FIELD(cost.system_ns, DURATION),
	 "The part of it in the kernel, in seconds; includes the start of the window"},
	{"error", NULL, "ERROR", -30, FIELD(error.text, TEXT),
	 "Why the guest could not be measured"},
	/* JSON has a list of the same name instead. */
	{"notes", NULL, "NOTES", -30, WSS_GET(sample_get_notes), "Notes on this sample"},
	/* Columns from here on are shown only if both granularities were requested. */
	{"native_granularity_bytes", NULL, "N-GRAN", 6, FIELD(native.granularity_bytes, BYTES),
	 "Granularity of the window by the host's mappings, in bytes"},
	{"native_window_seconds", NULL, "N-WINDOW", 8, FIELD(native.window_ns, DURATION),
	 "Length of that window, in seconds"},
	{"native_wss_bytes", NULL, "NATIVE", 11, WSS_GET(sample_get_native_wss),
	 "Working set by the host's mappings, in bytes"},
	{"native_wss_low_bytes", NULL, "N-LOW", 8, FIELD(native.low_bytes, BYTES),
	 "Its lower bound, in bytes"},
	{"native_wss_high_bytes", NULL, "N-HIGH", 8, FIELD(native.high_bytes, BYTES),
	 "Its upper bound, in bytes"},
	{"huge_page_bloat", NULL, "BLOAT", 6, WSS_GET(sample_get_bloat),
	 "Working set by the host's huge pages over that by 4 KiB, a factor; absent where the "
	 "host "
	 "maps 4 KiB"},
};

#define N_COLUMNS (sizeof(columns) / sizeof(columns[0]))
#define N_BOTH_COLUMNS 6

#define SHOWN "domain,quality,method,window_seconds,balloon_bytes,rss_bytes,wss_bytes"
#define SHOWN_BOTH "domain,quality,method,window_seconds,wss_bytes,native_wss_bytes,huge_page_bloat"
#define SHOWN_SERIES "domain,time,quality,method,window_seconds,wss_bytes"
#define SHOWN_BOTH_SERIES "domain,time,quality,wss_bytes,native_wss_bytes,huge_page_bloat"
#define WIDE_REST                                                                      \
	"quality,method,granularity_bytes,window_seconds,maximum_bytes,balloon_bytes," \
	"rss_bytes,pss_bytes,swap_bytes,wss_bytes,bounds,wss_of_balloon"
#define HISTORY_REST                                                                   \
	"quality,method,granularity_bytes,window_seconds,maximum_bytes,balloon_bytes," \
	"rss_bytes,swap_bytes,wss_bytes,bounds"
#define WIDE_BOTH_REST WIDE_REST ",native_wss_bytes,huge_page_bloat"

static void add_lists(const void *row, struct wss_json *json)
{
	const struct wss_sample *sample = row;
	struct wss_json curve = wss_json_list(json->stream, json, "curve"), notes;

	for (size_t i = 0; i < sample->n_curve; i++) {
		struct wss_json point = wss_json_object(json->stream, &curve, NULL);
		struct wss_value at = wss_value_number(sample->curve[i].ns, WSS_KIND_DURATION);
		struct wss_value bytes = wss_value_number(sample->curve[i].bytes, WSS_KIND_BYTES);

		wss_json_value(&point, "seconds", &at);
		wss_json_value(&point, "bytes", &bytes);
		wss_json_object_end(&point);
	}
	wss_json_list_end(&curve);
	notes = wss_json_list(json->stream, json, "notes");
	for (size_t i = 0; i < sample->n_notes; i++) {
		struct wss_value note = {.kind = WSS_KIND_TEXT, .text = sample->notes[i]};

		wss_json_value(&notes, NULL, &note);
	}
	wss_json_list_end(&notes);
}

#define LAYOUT(n, shown_keys, wide_keys)                                                           \
	{                                                                                          \
		.schema = "virt-wss/samples/1", .array_key = "samples", .columns = columns,        \
		.n_columns = (n), .extra = add_lists, .list_key = "notes", .table_only = "bounds", \
		.shown = (shown_keys), .wide = (wide_keys),                                        \
	}

static const struct wss_report_layout layouts[2][2] = {
	{LAYOUT(N_COLUMNS - N_BOTH_COLUMNS, SHOWN, "domain," WIDE_REST),
	 LAYOUT(N_COLUMNS - N_BOTH_COLUMNS, SHOWN_SERIES, "domain,time," WIDE_REST)},
	{LAYOUT(N_COLUMNS, SHOWN_BOTH, "domain," WIDE_BOTH_REST),
	 LAYOUT(N_COLUMNS, SHOWN_BOTH_SERIES, "domain,time," WIDE_BOTH_REST)},
};

const struct wss_report_layout wss_sample_all_layout =
	LAYOUT(N_COLUMNS, SHOWN, "domain," WIDE_BOTH_REST);

/* The history keeps the first columns of a sample, up to the bounds. */
#define N_HISTORY_COLUMNS 20

const struct wss_report_layout wss_history_sample_layout = {
	.schema = "virt-wss/history/1",
	.array_key = "samples",
	.columns = columns,
	.n_columns = N_HISTORY_COLUMNS,
	.table_only = "bounds",
	.shown = SHOWN_SERIES,
	.wide = "domain,time," HISTORY_REST,
};

const struct wss_report_layout *wss_sample_layout(bool both, bool series)
{
	return &layouts[both][series];
}
