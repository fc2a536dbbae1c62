/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "out/sample-report.h"

#include <stdio.h>

#include "base/units.h"
#include "out/report-private.h"
#include "wss/sample.h"

static struct wss_value get_domain(const void *row)
{
	return wss_value_text(((const struct wss_sample *)row)->domain);
}

static struct wss_value get_uuid(const void *row)
{
	return wss_value_text(((const struct wss_sample *)row)->uuid);
}

static struct wss_value get_time(const void *row)
{
	return wss_value_time(((const struct wss_sample *)row)->wall);
}

static struct wss_value get_quality(const void *row)
{
	return wss_value_text(wss_quality_name(((const struct wss_sample *)row)->quality));
}

static struct wss_value get_method(const void *row)
{
	return wss_value_text(((const struct wss_sample *)row)->method);
}

static struct wss_value get_observes(const void *row)
{
	const struct wss_sample *sample = row;

	return wss_value_text(sample->method ? wss_observes_name(sample->observes) : NULL);
}

static struct wss_value get_recorder(const void *row)
{
	return wss_value_text(((const struct wss_sample *)row)->recorder);
}

static struct wss_value get_requested(const void *row)
{
	return wss_value_number(((const struct wss_sample *)row)->requested_window_ns,
				WSS_KIND_DURATION);
}

static struct wss_value get_share(const void *row)
{
	double share;

	if (!wss_sample_share(row, &share))
		return wss_value_absent();
	return (struct wss_value){ .kind = WSS_KIND_SHARE, .real = share };
}

static struct wss_value get_bloat(const void *row)
{
	double factor;

	if (!wss_sample_bloat(row, &factor))
		return wss_value_absent();
	return (struct wss_value){ .kind = WSS_KIND_FACTOR, .real = factor };
}

static struct wss_value get_error(const void *row)
{
	return wss_value_text(((const struct wss_sample *)row)->error.text);
}

/* One getter for each figure that may be unknown. */
#define AMOUNT(name, field, kind)                                            \
	static struct wss_value get_##name(const void *row)                  \
	{                                                                    \
		return wss_value_amount(((const struct wss_sample *)row)->field, kind); \
	}

AMOUNT(granularity, granularity_bytes, WSS_KIND_BYTES)
AMOUNT(window, window_ns, WSS_KIND_DURATION)
AMOUNT(wss, wss_bytes, WSS_KIND_BYTES)
AMOUNT(low, low_bytes, WSS_KIND_BYTES)
AMOUNT(high, high_bytes, WSS_KIND_BYTES)
AMOUNT(mapped, mapped_bytes, WSS_KIND_BYTES)
AMOUNT(written, written_bytes, WSS_KIND_BYTES)
AMOUNT(written_low, written_low_bytes, WSS_KIND_BYTES)
AMOUNT(written_high, written_high_bytes, WSS_KIND_BYTES)
AMOUNT(outside, cost.outside_faults, WSS_KIND_COUNT)
AMOUNT(native_granularity, native.granularity_bytes, WSS_KIND_BYTES)
AMOUNT(native_window, native.window_ns, WSS_KIND_DURATION)
AMOUNT(native_wss, native.wss_bytes, WSS_KIND_BYTES)
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
AMOUNT(user, cost.user_ns, WSS_KIND_DURATION)
AMOUNT(system, cost.system_ns, WSS_KIND_DURATION)

static struct wss_value get_tool_cpu(const void *row)
{
	const struct wss_sample *sample = row;

	if (!sample->cost.user_ns.known)
		return wss_value_absent();
	return wss_value_number(sample->cost.user_ns.value + sample->cost.system_ns.value,
				WSS_KIND_DURATION);
}

/* For people: how far the figure may be off. */
static struct wss_value get_bounds(const void *row)
{
	static _Thread_local char text[40];
	const struct wss_sample *sample = row;
	char low[16], high[16];

	if (!sample->low_bytes.known || !sample->high_bytes.known)
		return wss_value_absent();
	wss_size_format(sample->low_bytes.value, low, sizeof(low));
	wss_size_format(sample->high_bytes.value, high, sizeof(high));
	snprintf(text, sizeof(text), "%s-%s", low, high);
	/* What makes a sample degraded is not in its bounds: the notes have it. */
	if (sample->low_bytes.value == sample->high_bytes.value)
		snprintf(text, sizeof(text), "%s",
			 sample->quality == WSS_QUALITY_OK ? "exact" : "uncertain");
	return wss_value_text(text);
}

static struct wss_value get_notes(const void *row)
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
	{ "domain", NULL, "DOMAIN", -12, get_domain },
	{ "uuid", NULL, NULL, 0, get_uuid },
	{ "time", NULL, NULL, 0, get_time },
	{ "quality", NULL, "QUALITY", -11, get_quality },
	{ "method", NULL, "METHOD", -6, get_method },
	{ "observes", NULL, NULL, 0, get_observes },
	{ "granularity_bytes", NULL, "GRAN", 5, get_granularity },
	{ "requested_window_seconds", NULL, NULL, 0, get_requested },
	{ "window_seconds", NULL, "WINDOW", 7, get_window },
	{ "maximum_bytes", "memory", "MAXIMUM", 8, get_maximum },
	{ "balloon_bytes", "memory", "BALLOON", 8, get_balloon },
	{ "rss_bytes", "memory", "RSS", 8, get_rss },
	{ "pss_bytes", "memory", "PSS", 8, get_pss },
	{ "swap_bytes", "memory", "SWAP", 8, get_swap },
	{ "huge_bytes", "memory", NULL, 0, get_huge },
	{ "qemu_bytes", "memory", NULL, 0, get_qemu },
	{ "wss_bytes", NULL, "WSS", 8, get_wss },
	{ "wss_low_bytes", NULL, NULL, 0, get_low },
	{ "wss_high_bytes", NULL, NULL, 0, get_high },
	{ NULL, NULL, "BOUNDS", 17, get_bounds },
	{ "recorder", NULL, NULL, 0, get_recorder },
	{ "mapped_bytes", NULL, NULL, 0, get_mapped },
	{ "written_bytes", NULL, NULL, 0, get_written },
	{ "written_low_bytes", NULL, NULL, 0, get_written_low },
	{ "written_high_bytes", NULL, NULL, 0, get_written_high },
	{ "wss_of_balloon", NULL, "WSS/BAL", 7, get_share },
	{ "arm_seconds", "cost", NULL, 0, get_arm },
	{ "read_seconds", "cost", NULL, 0, get_read },
	{ "faults", "cost", NULL, 0, get_faults },
	{ "outside_faults", "cost", NULL, 0, get_outside },
	{ "predicted_stall_seconds", "cost", NULL, 0, get_predicted },
	{ "tool_cpu_seconds", "cost", NULL, 0, get_tool_cpu },
	{ "tool_user_seconds", "cost", NULL, 0, get_user },
	{ "tool_system_seconds", "cost", NULL, 0, get_system },
	{ "error", NULL, NULL, 0, get_error },
	/* In JSON the list of the same name takes its place. */
	{ "notes", NULL, NULL, 0, get_notes },
	/* From here on only where both granularities were asked for. */
	{ "native_granularity_bytes", NULL, NULL, 0, get_native_granularity },
	{ "native_window_seconds", NULL, NULL, 0, get_native_window },
	{ "native_wss_bytes", NULL, "NATIVE", 8, get_native_wss },
	{ "native_wss_low_bytes", NULL, NULL, 0, get_native_low },
	{ "native_wss_high_bytes", NULL, NULL, 0, get_native_high },
	{ "huge_page_bloat", NULL, "BLOAT", 6, get_bloat },
};

#define N_COLUMNS (sizeof(columns) / sizeof(columns[0]))
#define N_BOTH_COLUMNS 6

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

const struct wss_report_layout wss_sample_layout = {
	.schema = "virt-wss/samples/1",
	.array_key = "samples",
	.columns = columns,
	.n_columns = N_COLUMNS - N_BOTH_COLUMNS,
	.extra = add_lists,
	.list_key = "notes",
};

const struct wss_report_layout wss_sample_both_layout = {
	.schema = "virt-wss/samples/1",
	.array_key = "samples",
	.columns = columns,
	.n_columns = N_COLUMNS,
	.extra = add_lists,
	.list_key = "notes",
};
