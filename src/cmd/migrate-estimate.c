/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/number.h"
#include "base/units.h"
#include "cmd/file-options.h"
#include "cmd/window-options.h"
#include "help-text.h"
#include "migration/migration-report.h"
#include "recording/recfiles.h"
#include "recording/recorded-writes.h"
#include "recording/written.h"
#include "show/progress.h"

#define WINDOW_DEFAULT_MIN_S 4
#define WINDOW_DEFAULT_MAX_S 16
#define WINDOW_MIN_NS WSS_NS_PER_S
#define WINDOW_MAX_NS (60 * WSS_NS_PER_S)
#define DOWNTIME_MIN_NS WSS_NS_PER_MS
/* QEMU's own limit of downtime-limit. */
#define DOWNTIME_MAX_NS (2000 * WSS_NS_PER_S)
/* Below that a migration takes longer than hosts live, and 1 PiB/s is faster than any link. */
#define BANDWIDTH_MIN WSS_KIB
#define BANDWIDTH_MAX (1ULL << 50)

/*
 * Share of the memory held that is taken to be zeros, at most and as expected, on pages of 4
 * KiB and on huge ones. Guests that had just booted had 11 and 18 %, and older ones have less.
 */
#define ZEROS_MOST 0.25
#define ZEROS_EXPECTED 0.06
#define ZEROS_HUGE_MOST 0.5
#define ZEROS_HUGE_EXPECTED 0.12

enum { OPT_BANDWIDTH = 1, OPT_DOWNTIME, OPT_WINDOW, OPT_RECORDING };

static const struct option long_options[] = {
	WSS_COMMON_LONG,
	WSS_TABLE_LONG,
	{"bandwidth", required_argument, NULL, OPT_BANDWIDTH},
	{"downtime", required_argument, NULL, OPT_DOWNTIME},
	{"window", required_argument, NULL, OPT_WINDOW},
	{"method", required_argument, NULL, WSS_OPT_METHOD},
	{"recording", required_argument, NULL, OPT_RECORDING},
	WSS_SALVAGE_LONG,
	{"max-stall", required_argument, NULL, WSS_OPT_MAX_STALL},
	{NULL, 0, NULL, 0},
};

struct migrate_options {
	uint64_t bandwidth; /* bytes/s; 0: not given */
	uint64_t downtime_ns;
	const char *recording; /* NULL: measure a guest */
	struct wss_files_options files;
	struct wss_measure_options measure;
	bool window_given; /* an option that says how to measure */
};

/* Parses a size per second: "1GiB/s". */
static int bandwidth_parse(const char *text, uint64_t *ret_bandwidth, struct wss_error *err)
{
	size_t len = strlen(text);
	wss_auto_free char *size = wss_xstrdup(text);
	uint64_t bandwidth;

	if (len < 3 || strcmp(text + len - 2, "/s") != 0)
		return wss_error_set(err, WSS_ERR_USAGE,
				     "--bandwidth: '%s' is not a size per second, such as 1GiB/s",
				     text);
	size[len - 2] = '\0';
	if (wss_size_parse(size, "--bandwidth", &bandwidth, err) < 0)
		return -1;
	if (bandwidth < BANDWIDTH_MIN || bandwidth > BANDWIDTH_MAX)
		return wss_error_set(err, WSS_ERR_USAGE,
				     "--bandwidth: '%s' is not from 1KiB/s to 1024TiB/s", text);
	*ret_bandwidth = bandwidth;
	return 0;
}

/* Parses a time that must not be shorter than min_ns, which is a number of min. */
static int time_parse(const char *text, uint64_t min_ns, const char *min, uint64_t max_ns,
		      const char *what, uint64_t *ret_ns, struct wss_error *err)
{
	uint64_t ns;

	if (wss_duration_parse(text, max_ns, what, &ns, err) < 0)
		return -1;
	if (ns < min_ns)
		return wss_error_set(err, WSS_ERR_USAGE, "%s: '%s' is shorter than %s", what, text,
				     min);
	*ret_ns = ns;
	return 0;
}

static int migrate_take(void *opaque, int c, const char *value, struct wss_error *err)
{
	struct migrate_options *options = opaque;
	struct wss_track_options *track = &options->measure.window.track;

	options->window_given |= c == OPT_WINDOW || c == WSS_OPT_METHOD || c == WSS_OPT_MAX_STALL;
	switch (c) {
	case OPT_BANDWIDTH:
		return bandwidth_parse(value, &options->bandwidth, err);
	case OPT_DOWNTIME:
		return time_parse(value, DOWNTIME_MIN_NS, "1ms", DOWNTIME_MAX_NS, "--downtime",
				  &options->downtime_ns, err);
	case OPT_WINDOW:
		return time_parse(value, WINDOW_MIN_NS, "1s", WINDOW_MAX_NS, "--window",
				  &track->window_ns, err);
	case OPT_RECORDING:
		options->recording = value;
		return 0;
	case WSS_OPT_SALVAGE:
		return wss_files_option(&options->files, c, value, err);
	case WSS_OPT_METHOD:
		return wss_method_parse(value, &options->measure.method, track, err);
	default:
		return wss_max_stall_parse(value, &track->max_stall_ns, err);
	}
}

/* A recording takes the place of a guest. */
static int subject_check(const struct wss_cli *cli, const struct migrate_options *options,
			 struct wss_error *err)
{
	if (options->recording && (cli->n_domains || cli->qmp || cli->all || cli->uri))
		return wss_error_set(err, WSS_ERR_USAGE,
				     "--recording already names the guest: omit DOMAIN, "
				     "--qmp, --all and --connect");
	if (options->recording && options->window_given)
		return wss_error_set(
			err, WSS_ERR_USAGE,
			"--recording has been measured already: omit --window, --method and --max-stall");
	if (!options->recording && options->files.salvage)
		return wss_error_set(err, WSS_ERR_USAGE, "--salvage needs --recording");
	if (!options->recording && (cli->all || (!cli->qmp && cli->n_domains != 1)))
		return wss_error_set(err, WSS_ERR_USAGE, "migrate-estimate takes one DOMAIN");
	return 0;
}

static int migrate_parse(struct wss_cli *cli, int argc, char **argv,
			 struct migrate_options *options, struct wss_error *err)
{
	if (wss_cli_parse(cli, argc, argv, options, err) < 0 ||
	    wss_cli_view(cli, &wss_migration_layout, err) < 0 ||
	    wss_cli_finish(cli, argc, argv, err) < 0 || subject_check(cli, options, err) < 0)
		return -1;
	if (!options->bandwidth)
		return wss_error_set(
			err, WSS_ERR_USAGE,
			"missing --bandwidth: state what the link allows, such as 1GiB/s");
	return 0;
}

/* A worker's task and its result; owned by the target. */
struct migrate_work {
	struct wss_measure_options measure;
	struct wss_written_result result;
};

/* Run in workers. */
static void migrate_measure(struct wss_target *target)
{
	struct migrate_work *work = target->data;

	wss_written_window(target, &work->measure, &work->result, &target->error);
}

static void migrate_sample(struct wss_target *target)
{
	struct migrate_work *work = target->data;

	wss_written_sample(target, &work->measure, &work->result, &target->error);
}

/*
 * Estimates how much of the memory is not zero, without reading any. What the host holds no
 * page for is zero. A page that it holds may be so, too, above all a part of a huge page,
 * which the host fills with zeros as a whole.
 */
static void content_estimate(const struct wss_sample *sample, struct wss_migration *migration)
{
	double ram = migration->ram_bytes, held, huge;
	double least = wss_writes_at(&migration->writes, wss_writes_seconds(&migration->writes),
				     WSS_END_LOW);

	for (size_t end = 0; end < WSS_ENDS; end++)
		migration->content_bytes[end] = end == WSS_END_LOW ? least : ram;
	if (!sample->memory.rss_bytes.known)
		return;
	held = fmin(ram, (double)sample->memory.rss_bytes.value +
				 (double)sample->memory.swap_bytes.value);
	huge = fmin(held, (double)sample->memory.huge_bytes.value);
	migration->content_bytes[WSS_END_LOW] = fmax(
		fmin(least, held), (held - huge) * (1 - ZEROS_MOST) + huge * (1 - ZEROS_HUGE_MOST));
	migration->content_bytes[WSS_END_EXPECTED] =
		(held - huge) * (1 - ZEROS_EXPECTED) + huge * (1 - ZEROS_HUGE_EXPECTED);
	migration->content_bytes[WSS_END_HIGH] = held;
}

/* name and uuid: of the guest, by which they may not be known any more. */
static void guest_fill(struct wss_migration_guest *guest, const char *name, const char *uuid,
		       const struct wss_written_result *result,
		       const struct migrate_options *options)
{
	bool measured = wss_sample_measured(&result->sample);

	*guest = (struct wss_migration_guest){
		.domain = name,
		.uuid = uuid,
		.method = measured ? result->sample.method : NULL,
		.migration = {.bandwidth = (double)options->bandwidth,
			      .downtime_s = (double)options->downtime_ns / 1e9,
			      .ram_bytes = result->ram_bytes,
			      .busy = {1, result->busy.busiest, result->busy.mean}},
	};
	guest->migration.n_windows = result->n_sampled;
	guest->migration.fastest =
		wss_writes_fastest(result->sampled, result->n_sampled, WSS_END_EXPECTED);
	wss_written_curve(result, &guest->migration.writes);
	content_estimate(&result->sample, &guest->migration);
}

/* Names what is missing in the bounds. */
static void say_missing(const struct wss_migration_guest *guest,
			const struct wss_written_result *result)
{
	const struct wss_sample *sample = &result->sample;

	if (result->sampling_error.code && result->n_sampled)
		wss_warn("%s: writes were sampled in fewer windows than wanted: %s", guest->domain,
			 result->sampling_error.text);
	else if (result->sampling_error.code)
		wss_warn("%s: writes were not sampled, so that only their upper bound is known: %s",
			 guest->domain, result->sampling_error.text);
	if (!wss_sample_measured(sample))
		wss_warn("%s: what is touched was not measured, so that short times are not "
			 "bounded: %s",
			 guest->domain, sample->error.text);
	for (size_t i = 0; i < sample->n_notes; i++)
		wss_log(WSS_LOG_DEBUG, "%s: note: %s", guest->domain, sample->notes[i]);
}

static int migrate_print(const struct wss_cli *cli, const struct wss_migration_guest *guest,
			 struct wss_error *err)
{
	struct wss_migration_row rows[WSS_MIGRATION_MODES];
	struct wss_report *report;

	if (wss_report_open(stdout, cli->format, &cli->view, &wss_migration_layout, &report, err) <
	    0)
		return -1;
	wss_report_hold(report);
	for (int mode = 0; mode < WSS_MIGRATION_MODES; mode++) {
		wss_migration_row_init(&rows[mode], guest, (enum wss_migration_mode)mode);
		wss_report_row(report, &rows[mode]);
	}
	if (wss_report_close(report, err) < 0)
		return -1;
	wss_migration_notes(guest, rows);
	return 0;
}

/* Names what was left out; a recording of nothing else says nothing. */
static int recording_say_degraded(const struct wss_recording *recording,
				  const struct wss_recorded_result *result, struct wss_error *err)
{
	unsigned long long n = result->n_degraded;

	if (n && !result->n_windows)
		return wss_error_set(
			err, WSS_ERR_FAILED,
			"%s: all windows are degraded: touched pages may be missing in them, so that there is no estimate",
			recording->domain);
	if (n)
		wss_log(WSS_LOG_INFO,
			"%s: note: leaves out %llu degraded window%s of %llu (virt-wss report --wide says why)",
			recording->domain, n, wss_plural(n), n + result->n_windows);
	return 0;
}

static int recording_fill(struct wss_migration_guest *guest, const struct wss_recording *recording,
			  const struct wss_recorded_writes *writes,
			  const struct migrate_options *options, struct wss_error *err)
{
	struct wss_recorded_result result;
	double most;

	wss_recorded_writes_result(writes, &result);
	if (recording_say_degraded(recording, &result, err) < 0)
		return -1;
	most = fmax(result.ram_bytes - result.ballooned_bytes, result.touched_bytes);
	*guest = (struct wss_migration_guest){
		.domain = recording->domain,
		.uuid = recording->uuid,
		.method = recording->method,
		.is_recorded = true,
		.migration = {.bandwidth = (double)options->bandwidth,
			      .downtime_s = (double)options->downtime_ns / 1e9,
			      .ram_bytes = result.ram_bytes,
			      .content_bytes = {result.touched_bytes, most, most},
			      .writes = result.writes,
			      .fastest = wss_writes_fastest(result.writes.points, result.writes.n,
							    WSS_END_HIGH),
			      .n_windows = result.n_windows,
			      .busy = {1, 1, 0}},
	};
	return 0;
}

static int recording_read(const struct wss_cli *cli, const struct migrate_options *options,
			  struct wss_recfile *file, struct wss_error *err)
{
	static const struct wss_recfile_visitor visitor = {
		.change = wss_recorded_writes_change,
		.end = wss_recorded_writes_end,
	};
	const struct wss_recording *recording = wss_recfile_recording(file);
	struct wss_recorded_writes *writes;
	struct wss_migration_guest guest;
	int r;

	if (wss_recorded_writes_new(recording, wss_recfile_budget(file), &writes, err) < 0)
		return -1;
	r = wss_recfile_replay(file, &visitor, writes, err);
	if (r == 0)
		r = recording_fill(&guest, recording, writes, options, err);
	if (r == 0)
		r = migrate_print(cli, &guest, err);
	wss_recorded_writes_free(writes);
	return r;
}

static int migrate_recording(const struct wss_cli *cli, const struct migrate_options *options,
			     struct wss_error *err)
{
	struct wss_recfile *file;
	int r;

	if (wss_recfiles_open(options->recording, options->files.salvage, &file, err) < 0)
		return -1;
	do
		r = recording_read(cli, options, file, err);
	while (r < 0 && wss_recfiles_shorten(&file, 1, err));
	wss_recfile_close(file);
	return r;
}

/* Returns the length of a window that covers the first pass, unless that takes too long. */
static uint64_t window_choose(const struct wss_guest *guest, const struct migrate_options *options)
{
	uint64_t seconds = guest->config.maximum_bytes / options->bandwidth + 1;

	seconds = wss_u64_min(wss_u64_max(seconds, WINDOW_DEFAULT_MIN_S), WINDOW_DEFAULT_MAX_S);
	return seconds * WSS_NS_PER_S;
}

static void work_new(struct wss_target *target, const struct migrate_options *options)
{
	struct migrate_work *work = wss_xcalloc(1, sizeof(*work));

	work->measure = options->measure;
	if (target->guest && !work->measure.window.track.window_ns)
		work->measure.window.track.window_ns = window_choose(target->guest, options);
	work->measure.interval_ns = work->measure.window.track.window_ns;
	target->data = work;
	target->release_data = free;
}

/* Says why the guest was not measured. A worker that was left behind has taken the first target with it. */
static int target_failed(const struct wss_targets *targets, struct wss_error *err)
{
	const struct wss_target *target = targets->list[0];

	if (!target->error.code && target->guest)
		return 0;
	return wss_error_set(err, target->error.code, "%s: %s", wss_target_name(target),
			     target->error.text);
}

/* Samples the guest's writes. What its window found is kept where its QEMU does not answer. */
static int migrate_add_samples(struct wss_targets *targets, struct wss_written_result *result,
			       struct wss_error *err)
{
	const struct wss_target *target;

	if (wss_targets_run(targets, migrate_sample, false, err) < 0)
		return -1;
	target = targets->list[0];
	if (target->data)
		*result = ((const struct migrate_work *)target->data)->result;
	if (target->error.code)
		result->sampling_error = target->error;
	if (target->error.code == WSS_ERR_INTERRUPTED ||
	    (!result->n_sampled && !wss_sample_measured(&result->sample)))
		return wss_error_set(
			err, target->error.code ? target->error.code : result->sample.error.code,
			"%s: %s", wss_target_name(target),
			target->error.code ? target->error.text : result->sample.error.text);
	return 0;
}

static int migrate_target(const struct wss_cli *cli, const struct migrate_options *options,
			  struct wss_targets *targets, struct wss_error *err)
{
	wss_auto_free struct wss_written_result *result = wss_xcalloc(1, sizeof(*result));
	char name[WSS_NAME_MAX], uuid[WSS_UUID_TEXT_MAX];
	struct wss_migration_guest guest;
	struct wss_progress *line;
	int r;

	work_new(targets->list[0], options);
	line = wss_progress_begin(
		"measuring",
		wss_written_length_ns(&((struct migrate_work *)targets->list[0]->data)->measure));
	r = wss_targets_run(targets, migrate_measure, false, err);
	if (r == 0)
		r = target_failed(targets, err);
	if (r == 0) {
		const struct wss_target *target = targets->list[0];

		snprintf(name, sizeof(name), "%s", wss_target_name(target));
		snprintf(uuid, sizeof(uuid), "%s", target->guest->config.uuid);
		*result = ((const struct migrate_work *)target->data)->result;
		r = migrate_add_samples(targets, result, err);
	}
	wss_progress_end(line);
	if (r < 0)
		return -1;
	guest_fill(&guest, name, uuid, result, options);
	say_missing(&guest, result);
	return migrate_print(cli, &guest, err);
}

static int migrate_run(struct wss_cli *cli, int argc, char **argv)
{
	struct migrate_options options = {
		.downtime_ns = (uint64_t)(WSS_MIGRATION_DOWNTIME_S * (double)WSS_NS_PER_S),
		.files = WSS_FILES_OPTIONS_INIT,
	};
	struct wss_targets targets = {.n = 0};
	struct wss_error err = WSS_ERROR_INIT;
	int r;

	wss_measure_options_init(&options.measure, 0);
	options.measure.window.curve = true;
	if (migrate_parse(cli, argc, argv, &options, &err) < 0)
		return wss_cli_error(&err);
	if (options.recording)
		return migrate_recording(cli, &options, &err) < 0 ? wss_cli_error(&err)
								  : WSS_EXIT_OK;
	if (wss_cli_open_targets(cli, WSS_TARGET_DEADLINE_NS, &targets, &err) < 0)
		return wss_cli_error(&err);
	r = migrate_target(cli, &options, &targets, &err);
	wss_targets_free(&targets);
	return r < 0 ? wss_cli_error(&err) : WSS_EXIT_OK;
}

static const struct wss_option_values values[] = {
	{"recording", WSS_VALUES_FILES},
	{NULL, NULL},
};

static const struct wss_report_layout *const layouts[] = {&wss_migration_layout, NULL};

const struct wss_command wss_cmd_migrate_estimate = {
	.name = "migrate-estimate",
	.summary = "estimate how a live migration of a guest would go",
	.help = wss_help_migrate_estimate,
	.long_options = long_options,
	.take = migrate_take,
	.layouts = layouts,
	.takes = WSS_WORDS_DOMAINS,
	.values = values,
	.run = migrate_run,
};
