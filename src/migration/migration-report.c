/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "migration/migration-report.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/number.h"
#include "base/units.h"

/* A figure of a run; false if this run does not have it, because it does not converge. */
typedef bool (*run_figure)(const struct wss_migration_run *run, double *ret_value);

static bool run_passes(const struct wss_migration_run *run, double *ret_value)
{
	*ret_value = run->passes;
	return run->converges;
}

static bool run_sent(const struct wss_migration_run *run, double *ret_value)
{
	*ret_value = run->bytes;
	return run->converges;
}

static bool run_seconds(const struct wss_migration_run *run, double *ret_value)
{
	*ret_value = run->seconds;
	return run->converges;
}

static bool run_downtime(const struct wss_migration_run *run, double *ret_value)
{
	*ret_value = run->downtime_s;
	return run->converges;
}

/*
 * Returns a figure at one end of the bounds. What is unbounded, because a run may never end,
 * has no high end. If all of them go on forever, there is no low end either.
 */
static bool row_figure(const struct wss_migration_row *row, run_figure figure, enum wss_end end,
		       double *ret_value)
{
	double value, low = INFINITY, high = 0;
	bool all = true;

	if (end == WSS_END_EXPECTED)
		return figure(&row->runs[end], ret_value);
	for (size_t i = 0; i < WSS_ENDS; i++) {
		if (!figure(&row->runs[i], &value)) {
			all = false;
			continue;
		}
		low = fmin(low, value);
		high = fmax(high, value);
	}
	*ret_value = end == WSS_END_LOW ? low : high;
	return end == WSS_END_LOW ? isfinite(low) : all;
}

static struct wss_value value_of(double value, enum wss_kind kind)
{
	return wss_value_number(
		wss_u64_from_double((kind == WSS_KIND_DURATION ? value * 1e9 : value) + 0.5), kind);
}

static struct wss_value row_value(const struct wss_migration_row *row, run_figure figure,
				  enum wss_end end, enum wss_kind kind)
{
	double value;

	return row_figure(row, figure, end, &value) ? value_of(value, kind) : wss_value_absent();
}

#define FIGURE(name, figure, end, kind)                             \
	static struct wss_value migrate_get_##name(const void *row) \
	{                                                           \
		return row_value(row, figure, end, kind);           \
	}
#define FIGURES(name, figure, kind)                   \
	FIGURE(name, figure, WSS_END_EXPECTED, kind)  \
	FIGURE(name##_low, figure, WSS_END_LOW, kind) \
	FIGURE(name##_high, figure, WSS_END_HIGH, kind)

FIGURES(passes, run_passes, WSS_KIND_COUNT)
FIGURES(sent, run_sent, WSS_KIND_BYTES)
FIGURES(seconds, run_seconds, WSS_KIND_DURATION)
FIGURES(downtime, run_downtime, WSS_KIND_DURATION)

static const void *wss_migration_guest(const void *row)
{
	return ((const struct wss_migration_row *)row)->guest;
}

static const void *expected_of(const void *row)
{
	return &((const struct wss_migration_row *)row)->runs[WSS_END_EXPECTED];
}

static const char *const ends_names[] = {
	[WSS_MIGRATION_ENDS] = "yes",	     [WSS_MIGRATION_LIKELY] = "likely",
	[WSS_MIGRATION_UNKNOWN] = "unknown", [WSS_MIGRATION_UNLIKELY] = "unlikely",
	[WSS_MIGRATION_NEVER] = "no",
};

static const char *const mode_names[WSS_MIGRATION_MODES] = {
	[WSS_MIGRATION_PRECOPY] = "pre-copy",
	[WSS_MIGRATION_AUTO_CONVERGE] = "auto-converge",
	[WSS_MIGRATION_POSTCOPY] = "post-copy",
};

static struct wss_value migrate_get_mode(const void *row)
{
	return wss_value_text(mode_names[((const struct wss_migration_row *)row)->mode]);
}

static struct wss_value migrate_get_converges(const void *row)
{
	return wss_value_text(ends_names[((const struct wss_migration_row *)row)->ends]);
}

#define FIELD(member, kind) WSS_FIELD(struct wss_migration_row, member, kind)
#define GUEST(member, kind) \
	WSS_FIELD_OF(wss_migration_guest, struct wss_migration_guest, member, kind)
#define EXPECTED(member, kind) WSS_FIELD_OF(expected_of, struct wss_migration_run, member, kind)

static const struct wss_column columns[] = {
	{"domain", NULL, "DOMAIN", -8, GUEST(domain, TEXT), "Name of the guest"},
	{"uuid", NULL, "UUID", -36, GUEST(uuid, TEXT), "UUID of the guest"},
	{"mode", NULL, "MODE", -13, WSS_GET(migrate_get_mode),
	 "pre-copy, auto-converge or post-copy"},
	{"converges", NULL, "ENDS", -6, WSS_GET(migrate_get_converges),
	 "Whether the migration ends by itself: yes, likely, unknown, unlikely or no"},
	{"passes_range", NULL, "PASSES", 6, FIELD(passes, TEXT),
	 "Passes over the memory, low and high bound"},
	{"sent_range", NULL, "SENT", 13, FIELD(sent, TEXT), "Memory sent, low and high bound"},
	{"time_range", NULL, "TIME", 10, FIELD(time, TEXT),
	 "Length of the migration, low and high bound"},
	{"downtime_range", NULL, "DOWNTIME", 11, FIELD(downtime, TEXT),
	 "Time for which the guest is stopped, low and high bound"},
	{"passes", NULL, "PASSES", 6, WSS_GET(migrate_get_passes),
	 "Passes over the memory, the last one with the guest stopped, a count"},
	{"passes_low", NULL, "PASSES-LOW", 10, WSS_GET(migrate_get_passes_low),
	 "Lower bound, a count"},
	{"passes_high", NULL, "PASSES-HIGH", 11, WSS_GET(migrate_get_passes_high),
	 "Upper bound, a count"},
	{"sent_bytes", NULL, "SENT", 8, WSS_GET(migrate_get_sent),
	 "Memory sent in all passes, with headers, in bytes"},
	{"sent_low_bytes", NULL, "SENT-LOW", 8, WSS_GET(migrate_get_sent_low),
	 "Lower bound, in bytes"},
	{"sent_high_bytes", NULL, "SENT-HIGH", 9, WSS_GET(migrate_get_sent_high),
	 "Upper bound, in bytes"},
	{"seconds", NULL, "TIME", 7, WSS_GET(migrate_get_seconds),
	 "Length of the migration, in seconds"},
	{"seconds_low", NULL, "TIME-LOW", 8, WSS_GET(migrate_get_seconds_low),
	 "Lower bound, in seconds"},
	{"seconds_high", NULL, "TIME-HIGH", 9, WSS_GET(migrate_get_seconds_high),
	 "Upper bound, in seconds"},
	{"downtime_seconds", NULL, "DOWNTIME", 8, WSS_GET(migrate_get_downtime),
	 "Time for which the guest is stopped, in seconds"},
	{"downtime_low_seconds", NULL, "DOWNTIME-LOW", 12, WSS_GET(migrate_get_downtime_low),
	 "Lower bound, in seconds"},
	{"downtime_high_seconds", NULL, "DOWNTIME-HIGH", 13, WSS_GET(migrate_get_downtime_high),
	 "Upper bound, in seconds"},
	{"throttle_percent", NULL, "THROTTLE", 8, EXPECTED(throttle_percent, PERCENT),
	 "Largest share of their time that the virtual CPUs lose, in percent"},
	{"pass_bytes", NULL, "LAST-PASS", 9, EXPECTED(pass_bytes, BYTES),
	 "Memory sent in the last pass with the guest running, in each further one if it does "
	 "not converge, or on the other host, in bytes"},
	{"pass_seconds", NULL, "PASS-TIME", 9, EXPECTED(pass_seconds, DURATION),
	 "Length of that pass, in seconds"},
	{"bandwidth_bytes_per_second", NULL, "BANDWIDTH", 9, GUEST(migration.bandwidth, BYTES),
	 "Bandwidth that was given, in bytes per second"},
	{"downtime_limit_seconds", NULL, "LIMIT", 6, GUEST(migration.downtime_s, DURATION),
	 "Downtime limit that was given, in seconds"},
	{"memory_bytes", NULL, "MEMORY", 8, GUEST(migration.ram_bytes, BYTES),
	 "All memory of the guest, in bytes"},
	{"content_bytes", NULL, "CONTENT", 8,
	 GUEST(migration.content_bytes[WSS_END_EXPECTED], BYTES),
	 "Memory that is assumed not to be zero, in bytes"},
	{"content_low_bytes", NULL, "CONTENT-LOW", 11,
	 GUEST(migration.content_bytes[WSS_END_LOW], BYTES), "Lower bound, in bytes"},
	{"content_high_bytes", NULL, "CONTENT-HIGH", 12,
	 GUEST(migration.content_bytes[WSS_END_HIGH], BYTES), "Upper bound, in bytes"},
	{"method", NULL, "METHOD", -6, GUEST(method, TEXT),
	 "Name of the method that bounds what is written by what is touched"},
	{"measured_seconds", NULL, "MEASURED", 8, FIELD(measured_s, DURATION),
	 "Time over which the written set was measured, in seconds"},
	{"written_bytes", NULL, "WRITTEN", 8, FIELD(written[WSS_END_EXPECTED], BYTES),
	 "Memory written within that time, in bytes"},
	{"written_low_bytes", NULL, "WRITTEN-LOW", 11, FIELD(written[WSS_END_LOW], BYTES),
	 "Lower bound, in bytes"},
	{"written_high_bytes", NULL, "WRITTEN-HIGH", 12, FIELD(written[WSS_END_HIGH], BYTES),
	 "Upper bound, in bytes"},
};

const struct wss_report_layout wss_migration_layout = {
	.schema = "virt-wss/migration/1",
	.array_key = "migrations",
	.columns = columns,
	.n_columns = sizeof(columns) / sizeof(columns[0]),
	.table_only = "passes_range,sent_range,time_range,downtime_range",
	.shown = "mode,converges,passes_range,sent_range,time_range,downtime_range",
	.wide = "mode,converges,passes,sent_bytes,sent_low_bytes,sent_high_bytes,"
		"seconds,seconds_low,"
		"seconds_high,downtime_seconds,throttle_percent,pass_bytes,pass_seconds,"
		"content_bytes,measured_seconds,written_bytes",
};

static void figure_format(double value, enum wss_kind kind, char *ret_text, size_t size)
{
	if (kind == WSS_KIND_BYTES)
		wss_size_format(wss_u64_from_double(value + 0.5), ret_text, size);
	else if (kind == WSS_KIND_DURATION)
		wss_duration_format(wss_u64_from_double(value * 1e9 + 0.5), ret_text, size);
	else
		snprintf(ret_text, size, "%.0f", value);
}

/* Writes both bounds: "1.1-1.4 GiB", "900 MiB-1.1 GiB", ">= 1.1 GiB" if there is no high one.
 */
static void range_format(const struct wss_migration_row *row, run_figure figure, enum wss_kind kind,
			 char ret_text[WSS_MIGRATION_TEXT_MAX])
{
	char from[WSS_MIGRATION_TEXT_MAX / 2 - 1], to[WSS_MIGRATION_TEXT_MAX / 2 - 1];
	const char *unit;
	double low, high;

	ret_text[0] = '\0';
	if (!row_figure(row, figure, WSS_END_LOW, &low))
		return;
	figure_format(low, kind, from, sizeof(from));
	if (!row_figure(row, figure, WSS_END_HIGH, &high)) {
		snprintf(ret_text, WSS_MIGRATION_TEXT_MAX, ">= %s", from);
		return;
	}
	figure_format(high, kind, to, sizeof(to));
	unit = strchr(to, ' ');
	if (!strcmp(from, to))
		snprintf(ret_text, WSS_MIGRATION_TEXT_MAX, "%s", to);
	else if (unit && strchr(from, ' ') && !strcmp(strchr(from, ' '), unit))
		snprintf(ret_text, WSS_MIGRATION_TEXT_MAX, "%.*s-%s", (int)strcspn(from, " "), from,
			 to);
	else
		snprintf(ret_text, WSS_MIGRATION_TEXT_MAX, "%s-%s", from, to);
}

void wss_migration_row_init(struct wss_migration_row *row, const struct wss_migration_guest *guest,
			    enum wss_migration_mode mode)
{
	*row = (struct wss_migration_row){.guest = guest, .mode = mode};
	for (int end = 0; end < WSS_ENDS; end++)
		row->runs[end] =
			mode == WSS_MIGRATION_POSTCOPY
				? wss_migration_postcopy(&guest->migration, (enum wss_end)end)
				: wss_migration_precopy(&guest->migration,
							mode == WSS_MIGRATION_AUTO_CONVERGE,
							(enum wss_end)end);
	row->measured_s = wss_writes_seconds(&guest->migration.writes);
	for (int end = 0; end < WSS_ENDS; end++)
		row->written[end] =
			wss_writes_at(&guest->migration.writes, row->measured_s, (enum wss_end)end);
	row->ends = wss_migration_judge(&guest->migration, mode == WSS_MIGRATION_AUTO_CONVERGE,
					row->runs);
	range_format(row, run_passes, WSS_KIND_COUNT, row->passes);
	range_format(row, run_sent, WSS_KIND_BYTES, row->sent);
	range_format(row, run_seconds, WSS_KIND_DURATION, row->time);
	range_format(row, run_downtime, WSS_KIND_DURATION, row->downtime);
}

/* Notes how much a run that does not converge sends in each further pass. */
static void note_endless(const struct wss_migration_row *row)
{
	const struct wss_migration_run *run = &row->runs[WSS_END_EXPECTED];
	char bytes[16], time[16];

	if (run->converges)
		return;
	figure_format(run->pass_bytes, WSS_KIND_BYTES, bytes, sizeof(bytes));
	figure_format(run->pass_seconds, WSS_KIND_DURATION, time, sizeof(time));
	wss_log(WSS_LOG_INFO,
		"%s: note: %s is expected never to end: each further pass sends %s in %s",
		row->guest->domain, mode_names[row->mode], bytes, time);
}

/* Notes why it is not known whether a migration ends. */
static void note_unknown(const struct wss_migration_row *row)
{
	unsigned long long n = row->guest->migration.n_windows;

	if (row->ends == WSS_MIGRATION_UNKNOWN)
		wss_log(WSS_LOG_INFO,
			"%s: note: whether %s ends is unknown: %llu window%s of writes do not show how fast the guest "
			"writes at its worst; a recording of %d windows or more over its busy hours does",
			row->guest->domain, mode_names[row->mode], n, wss_plural(n),
			WSS_MIGRATION_WINDOWS_MIN);
}

void wss_migration_notes(const struct wss_migration_guest *guest,
			 const struct wss_migration_row *rows)
{
	const struct wss_migration *migration = &guest->migration;
	const struct wss_migration_run *slowed =
		&rows[WSS_MIGRATION_AUTO_CONVERGE].runs[WSS_END_EXPECTED];
	const struct wss_migration_run *later =
		&rows[WSS_MIGRATION_POSTCOPY].runs[WSS_END_EXPECTED];
	double measured_s = wss_writes_seconds(&migration->writes);
	double first_s = later->seconds - later->downtime_s - later->pass_seconds;
	char content[16], ram[16], time[16], known[16];

	note_endless(&rows[WSS_MIGRATION_PRECOPY]);
	note_endless(&rows[WSS_MIGRATION_AUTO_CONVERGE]);
	note_unknown(&rows[WSS_MIGRATION_PRECOPY]);
	note_unknown(&rows[WSS_MIGRATION_AUTO_CONVERGE]);
	if (slowed->throttle_percent)
		wss_log(WSS_LOG_INFO,
			"%s: note: auto-converge takes up to %u%% of its time from each "
			"virtual CPU",
			guest->domain, slowed->throttle_percent);
	figure_format(later->pass_seconds, WSS_KIND_DURATION, time, sizeof(time));
	wss_log(WSS_LOG_INFO,
		"%s: note: after a change to post-copy the guest waits for its pages for %s, "
		"and is lost if either host or the link fails",
		guest->domain, time);
	figure_format(migration->content_bytes[WSS_END_EXPECTED], WSS_KIND_BYTES, content,
		      sizeof(content));
	figure_format(migration->ram_bytes, WSS_KIND_BYTES, ram, sizeof(ram));
	wss_log(WSS_LOG_INFO,
		"%s: note: %s of %s are assumed to have content; pages of zeros cost almost "
		"nothing",
		guest->domain, content, ram);
	if (first_s <= measured_s)
		return;
	figure_format(first_s, WSS_KIND_DURATION, time, sizeof(time));
	figure_format(measured_s, WSS_KIND_DURATION, known, sizeof(known));
	wss_log(WSS_LOG_INFO,
		"%s: note: the first pass takes %s, but the written set is known for %s only: "
		"a longer %s narrows the bounds",
		guest->domain, time, known, guest->is_recorded ? "recording" : "window");
}
