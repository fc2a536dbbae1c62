/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "out/sample-report.h"

#include "out/history-report.h"

#include <stdio.h>

#include "base/units.h"
#include "out/report-private.h"
#include "wss/sample.h"

static struct wss_value sample_get_domain(const void *row)
{
	return wss_value_text(((const struct wss_sample *)row)->domain);
}

static struct wss_value sample_get_uuid(const void *row)
{
	return wss_value_text(((const struct wss_sample *)row)->uuid);
}

static struct wss_value sample_get_time(const void *row)
{
	return wss_value_time(((const struct wss_sample *)row)->wall);
}

static struct wss_value sample_get_quality(const void *row)
{
	return wss_value_text(wss_quality_name(((const struct wss_sample *)row)->quality));
}

static struct wss_value sample_get_method(const void *row)
{
	return wss_value_text(((const struct wss_sample *)row)->method);
}

static struct wss_value sample_get_observes(const void *row)
{
	const struct wss_sample *sample = row;

	return wss_value_text(sample->method ? wss_observes_name(sample->observes) : NULL);
}

static struct wss_value sample_get_recorder(const void *row)
{
	return wss_value_text(((const struct wss_sample *)row)->recorder);
}

static struct wss_value sample_get_requested(const void *row)
{
	return wss_value_number(((const struct wss_sample *)row)->requested_window_ns,
				WSS_KIND_DURATION);
}

static struct wss_value sample_get_bloat(const void *row)
{
	double factor;

	if (!wss_sample_bloat(row, &factor))
		return wss_value_absent();
	return (struct wss_value){ .kind = WSS_KIND_FACTOR, .real = factor };
}

static struct wss_value sample_get_error(const void *row)
{
	return wss_value_text(((const struct wss_sample *)row)->error.text);
}

/* Defines a getter for a figure that may be unknown. */
#define AMOUNT(name, field, kind)                                                             \
	static struct wss_value sample_get_##name(const void *row)                            \
	{                                                                                     \
		return wss_value_amount(((const struct wss_sample *)row)->field, kind);       \
	}

AMOUNT(granularity, granularity_bytes, WSS_KIND_BYTES)
AMOUNT(window, window_ns, WSS_KIND_DURATION)
AMOUNT(low, low_bytes, WSS_KIND_BYTES)
AMOUNT(high, high_bytes, WSS_KIND_BYTES)
AMOUNT(mapped, mapped_bytes, WSS_KIND_BYTES)
AMOUNT(written, written_bytes, WSS_KIND_BYTES)
AMOUNT(written_low, written_low_bytes, WSS_KIND_BYTES)
AMOUNT(written_high, written_high_bytes, WSS_KIND_BYTES)
AMOUNT(native_granularity, native.granularity_bytes, WSS_KIND_BYTES)
AMOUNT(native_window, native.window_ns, WSS_KIND_DURATION)
AMOUNT(native_low, native.low_bytes, WSS_KIND_BYTES)
AMOUNT(native_high, native.high_bytes, WSS_KIND_BYTES)
AMOUNT(maximum, memory.maximum_bytes, WSS_KIND_BYTES)
AMOUNT(balloon, memory.balloon_bytes, WSS_KIND_BYTES)
AMOUNT(rss, memory.rss_bytes, WSS_KIND_BYTES)
AMOUNT(pss, memory.pss_bytes, WSS_KIND_BYTES)
AMOUNT(swap, memory.swap_bytes, WSS_KIND_BYTES)
AMOUNT(huge, memory.huge_bytes, WSS_KIND_BYTES)
AMOUNT(qemu, memory.qemu_bytes, WSS_KIND_BYTES)
AMOUNT(arm, cost.arm_ns, WSS_KIND_DURATION)
AMOUNT(read, cost.read_ns, WSS_KIND_DURATION)
AMOUNT(faults, cost.faults, WSS_KIND_COUNT)
AMOUNT(predicted, cost.predicted_stall_ns, WSS_KIND_DURATION)
AMOUNT(predicted_faults, cost.predicted_faults, WSS_KIND_COUNT)
AMOUNT(user, cost.user_ns, WSS_KIND_DURATION)
AMOUNT(system, cost.system_ns, WSS_KIND_DURATION)

static enum wss_bound bound_of(const struct wss_sample *sample)
{
	return wss_bound_of(sample->wss_bytes.value, sample->low_bytes, sample->high_bytes);
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
					      sample->native.low_bytes,
					      sample->native.high_bytes));
}

static struct wss_value sample_get_share(const void *row)
{
	double share;

	if (!wss_sample_share(row, &share))
		return wss_value_absent();
	return (struct wss_value){ .kind = WSS_KIND_SHARE, .real = share, .bound = bound_of(row) };
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

static const struct wss_column columns[] = {
	{"domain", NULL, "DOMAIN", -12, sample_get_domain, "Name of the guest", false},
	{"uuid", NULL, "UUID", -36, sample_get_uuid, "UUID of the guest", false},
	{"time", NULL, "TIME", -20, sample_get_time, "When the window was read, UTC", false},
	{"quality", NULL, "QUALITY", -8, sample_get_quality,
	 "ok; degraded (measured, but the notes say what widens the bounds); unsupported; "
	 "failed",
	 false},
	{"method", NULL, "METHOD", -6, sample_get_method,
	 "Name of the method that measured it", false},
	{"observes", NULL, "OBSERVES", -9, sample_get_observes,
	 "Kind of use observed: accesses, writes or residency", false},
	{"granularity_bytes", NULL, "GRAN", 5, sample_get_granularity,
	 "Granularity: the largest page-table entry seen, in bytes", false},
	{"requested_window_seconds", NULL, "REQUESTED", 9, sample_get_requested,
	 "Requested length of the window, in seconds", false},
	{"window_seconds", NULL, "WINDOW", 7, sample_get_window,
	 "Length of the window as measured, middle of its start to middle of reading, in seconds",
	 false},
	{"maximum_bytes", "memory", "MAXIMUM", 8, sample_get_maximum,
	 "Maximum memory of the guest, in bytes", false},
	{"balloon_bytes", "memory", "BALLOON", 8, sample_get_balloon,
	 "Memory that the balloon leaves to the guest, in bytes", false},
	{"rss_bytes", "memory", "RSS", 8, sample_get_rss,
	 "Guest memory that is resident on the host, without QEMU's own memory, in bytes",
	 false},
	{"pss_bytes", "memory", "PSS", 8, sample_get_pss,
	 "The same, with shared pages divided among those that share them, in bytes", false},
	{"swap_bytes", "memory", "SWAP", 8, sample_get_swap,
	 "Guest memory that the host has swapped out, in bytes", false},
	{"huge_bytes", "memory", "HUGE", 8, sample_get_huge,
	 "Guest memory that lies on huge pages of the host, in bytes", false},
	{"qemu_bytes", "memory", "QEMU", 8, sample_get_qemu,
	 "Resident memory of QEMU that is not guest memory, in bytes", false},
	{"wss_bytes", NULL, "WSS", 11, sample_get_wss,
	 "Working set: memory that the guest touched within the window, in bytes; "
	 "<= or >= where only that bound is known",
	 false},
	{"wss_low_bytes", NULL, "WSS-LOW", 8, sample_get_low,
	 "Lower bound of the working set, in bytes", false},
	{"wss_high_bytes", NULL, "WSS-HIGH", 8, sample_get_high,
	 "Upper bound of the working set, in bytes", false},
	{"bounds", NULL, "BOUNDS", 17, sample_get_bounds,
	 "Both bounds of the working set; exact or uncertain if they are equal", true},
	{"recorder", NULL, "RECORDER", -8, sample_get_recorder,
	 "Source of the counts: bpf (page by page) or KVM's counters", false},
	{"mapped_bytes", NULL, "MAPPED", 8, sample_get_mapped,
	 "Memory mapped in KVM's second-level page tables, the largest value seen, in bytes",
	 false},
	{"written_bytes", NULL, "WRITTEN", 8, sample_get_written,
	 "Memory that the guest wrote to within the window, in bytes", false},
	{"written_low_bytes", NULL, "WR-LOW", 8, sample_get_written_low,
	 "Lower bound of the written memory, in bytes", false},
	{"written_high_bytes", NULL, "WR-HIGH", 8, sample_get_written_high,
	 "Upper bound of the written memory, in bytes", false},
	{"wss_of_balloon", NULL, "WSS/BAL", 7, sample_get_share,
	 "Working set as a share of the balloon, 1 = 100%", false},
	{"arm_seconds", "cost", "ARM", 8, sample_get_arm,
	 "Time that the start of the window took, in seconds; virtual CPUs may have waited for it", false},
	{"read_seconds", "cost", "READ", 8, sample_get_read,
	 "Time that reading took, in seconds", false},
	{"faults", "cost", "FAULTS", 9, sample_get_faults,
	 "Second-level page faults that the guest took in the window, a count", false},
	{"predicted_stall_seconds", "cost", "STALL", 8, sample_get_predicted,
	 "Predicted longest stall of a virtual CPU at the start of a window, in seconds", false},
	{"predicted_faults", "cost", "MAX-FLT", 9, sample_get_predicted_faults,
	 "Faults that a window would cost the guest at most, a count", false},
	{"tool_cpu_seconds", "cost", "CPU", 8, sample_get_tool_cpu,
	 "CPU time of virt-wss itself in the window, in seconds", false},
	{"tool_user_seconds", "cost", "CPU-USER", 8, sample_get_user,
	 "The part of it in user mode, in seconds", false},
	{"tool_system_seconds", "cost", "CPU-SYS", 8, sample_get_system,
	 "The part of it in the kernel, in seconds; includes the start of the window", false},
	{"error", NULL, "ERROR", -30, sample_get_error, "Why the guest could not be measured",
	 false},
	/* JSON has a list of the same name instead. */
	{"notes", NULL, "NOTES", -30, sample_get_notes, "Notes on this sample", false},
	/* Columns from here on are shown only if both granularities were requested. */
	{"native_granularity_bytes", NULL, "N-GRAN", 6, sample_get_native_granularity,
	 "Granularity of the window by the host's mappings, in bytes", false},
	{"native_window_seconds", NULL, "N-WINDOW", 8, sample_get_native_window,
	 "Length of that window, in seconds", false},
	{"native_wss_bytes", NULL, "NATIVE", 11, sample_get_native_wss,
	 "Working set by the host's mappings, in bytes", false},
	{"native_wss_low_bytes", NULL, "N-LOW", 8, sample_get_native_low,
	 "Its lower bound, in bytes", false},
	{"native_wss_high_bytes", NULL, "N-HIGH", 8, sample_get_native_high,
	 "Its upper bound, in bytes", false},
	{"huge_page_bloat", NULL, "BLOAT", 6, sample_get_bloat,
	 "Working set by the host's huge pages over that by 4 KiB, a factor; absent where the "
	 "host "
	 "maps 4 KiB",
	 false},
};

#define N_COLUMNS (sizeof(columns) / sizeof(columns[0]))
#define N_BOTH_COLUMNS 6

#define SHOWN "domain,quality,method,window_seconds,balloon_bytes,rss_bytes,wss_bytes"
#define SHOWN_BOTH "domain,quality,method,window_seconds,wss_bytes,native_wss_bytes,huge_page_bloat"
#define SHOWN_SERIES "domain,time,quality,method,window_seconds,wss_bytes"
#define SHOWN_BOTH_SERIES "domain,time,quality,wss_bytes,native_wss_bytes,huge_page_bloat"
#define WIDE_REST                                                                     \
	"quality,method,granularity_bytes,window_seconds,maximum_bytes,balloon_bytes,"  \
	"rss_bytes,pss_bytes,swap_bytes,wss_bytes,bounds,wss_of_balloon"
#define HISTORY_REST                                                                  \
	"quality,method,granularity_bytes,window_seconds,maximum_bytes,balloon_bytes,"  \
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
		struct wss_value note = { .kind = WSS_KIND_TEXT, .text = sample->notes[i] };

		wss_json_value(&notes, NULL, &note);
	}
	wss_json_list_end(&notes);
}

#define LAYOUT(n, shown_keys, wide_keys)                                  \
	{                                                                  \
		.schema = "virt-wss/samples/1", .array_key = "samples",    \
		.columns = columns, .n_columns = (n), .extra = add_lists, \
		.list_key = "notes",                                       \
		.shown = (shown_keys), .wide = (wide_keys),                \
	}

static const struct wss_report_layout layouts[2][2] = {
	{ LAYOUT(N_COLUMNS - N_BOTH_COLUMNS, SHOWN, "domain," WIDE_REST),
	  LAYOUT(N_COLUMNS - N_BOTH_COLUMNS, SHOWN_SERIES, "domain,time," WIDE_REST) },
	{ LAYOUT(N_COLUMNS, SHOWN_BOTH, "domain," WIDE_BOTH_REST),
	  LAYOUT(N_COLUMNS, SHOWN_BOTH_SERIES, "domain,time," WIDE_BOTH_REST) },
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
	.shown = SHOWN_SERIES,
	.wide = "domain,time," HISTORY_REST,
};

const struct wss_report_layout *wss_sample_layout(bool both, bool series)
{
	return &layouts[both][series];
}
