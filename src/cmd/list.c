/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "cmd/cmd.h"
#include "cmd/hosts.h"
#include "help-text.h"
#include "host/fleet.h"
#include "host/inventory.h"
#include "out/metadata.h"
#include "wss/profile.h"

struct list_row {
	const char *host;
	const char *domain;
	const char *uuid;
	bool has_profile;
	struct wss_profile profile;
	uint64_t age_s;
	const char *error;
};

static struct wss_value list_get_host(const void *row)
{
	return wss_value_text(((const struct list_row *)row)->host);
}

static struct wss_value list_get_domain(const void *row)
{
	return wss_value_text(((const struct list_row *)row)->domain);
}

static struct wss_value list_get_uuid(const void *row)
{
	return wss_value_text(((const struct list_row *)row)->uuid);
}

static struct wss_value list_get_error(const void *row)
{
	return wss_value_text(((const struct list_row *)row)->error);
}

static struct wss_value list_get_time(const void *row)
{
	const struct list_row *list = row;

	return list->has_profile ? wss_value_time(list->profile.time) : wss_value_absent();
}

/* Getters for figures of the profile; absent if there is no profile. */
#define FIGURE(name, kind, value)                                                             \
	static struct wss_value list_get_##name(const void *row)                              \
	{                                                                                     \
		const struct list_row *list = row;                                            \
                                                                                              \
		return list->has_profile ? wss_value_number(value, kind)                      \
					 : wss_value_absent();                                \
	}

#define TEXT(name)                                                                            \
	static struct wss_value list_get_##name(const void *row)                              \
	{                                                                                     \
		const struct list_row *list = row;                                            \
                                                                                              \
		return wss_value_text(list->has_profile ? list->profile.name : NULL);         \
	}

#define AMOUNT(name)                                                                          \
	static struct wss_value list_get_##name(const void *row)                              \
	{                                                                                     \
		const struct list_row *list = row;                                            \
                                                                                              \
		if (!list->has_profile)                                                       \
			return wss_value_absent();                                            \
		return wss_value_bounded(                                                     \
			wss_value_amount(list->profile.name##_bytes, WSS_KIND_BYTES),         \
			wss_bound_of_granularity(list->profile.granularity_bytes));                   \
	}

TEXT(method)
TEXT(observes)
TEXT(confidence)
TEXT(tool)
TEXT(coarse_why)
FIGURE(granularity, WSS_KIND_BYTES, list->profile.granularity_bytes)
FIGURE(window, WSS_KIND_DURATION, list->profile.window_ns)
FIGURE(low, WSS_KIND_BYTES, list->profile.low_bytes)
FIGURE(high, WSS_KIND_BYTES, list->profile.high_bytes)
FIGURE(age, WSS_KIND_AGE, list->age_s)

static struct wss_value list_get_current(const void *row)
{
	const struct wss_profile *profile = &((const struct list_row *)row)->profile;

	if (!((const struct list_row *)row)->has_profile)
		return wss_value_absent();
	return wss_value_bounded(wss_value_number(profile->current_bytes, WSS_KIND_BYTES),
				 wss_bound_of(profile->current_bytes,
					      wss_amount_of(profile->low_bytes),
					      wss_amount_of(profile->high_bytes)));
}

AMOUNT(p50)
AMOUNT(p95)
AMOUNT(p99)
AMOUNT(peak)

static struct wss_value list_get_samples(const void *row)
{
	const struct list_row *list = row;

	return list->has_profile ? wss_value_amount(list->profile.samples, WSS_KIND_COUNT)
				 : wss_value_absent();
}

static struct wss_value list_get_since(const void *row)
{
	const struct list_row *list = row;

	return list->has_profile && list->profile.since.known
		       ? wss_value_time((time_t)list->profile.since.value)
		       : wss_value_absent();
}

static const struct wss_column columns[] = {
	{"domain", NULL, "DOMAIN", -12, list_get_domain, "Name of the guest", false},
	{"uuid", NULL, "UUID", -36, list_get_uuid, "UUID of the guest", false},
	{"time", NULL, "TIME", -20, list_get_time, "When it was measured, UTC", false},
	{"age_seconds", NULL, "AGE", 6, list_get_age, "How long ago that was, in seconds",
	 false},
	{"method", NULL, "METHOD", -6, list_get_method, "Name of the method that measured it",
	 false},
	{"observes", NULL, "OBSERVES", -9, list_get_observes,
	 "Kind of use observed: accesses, writes or residency", false},
	{"granularity_bytes", NULL, "GRAN", 5, list_get_granularity,
	 "Granularity of the window, in bytes", false},
	{"window_seconds", NULL, "WINDOW", 7, list_get_window,
	 "Length of the window, in seconds", false},
	{"current_bytes", NULL, "CURRENT", 11, list_get_current,
	 "Working set in the newest window, in bytes; <= or >= where only that bound is known",
	 false},
	{"low_bytes", NULL, "LOW", 8, list_get_low, "Its lower bound, in bytes", false},
	{"high_bytes", NULL, "HIGH", 8, list_get_high, "Its upper bound, in bytes", false},
	{"p50_bytes", NULL, "P50", 11, list_get_p50, "Median working set, in bytes", false},
	{"p95_bytes", NULL, "P95", 11, list_get_p95,
	 "95th percentile of the working set, in bytes", false},
	{"peak_bytes", NULL, "PEAK", 11, list_get_peak, "Largest working set, in bytes",
	 false},
	{"confidence", NULL, "CONFIDENCE", -10, list_get_confidence,
	 "single (one window), low, medium or high", false},
	{"tool_version", NULL, "TOOL", -8, list_get_tool, "Version of virt-wss that measured",
	 false},
	{"error", NULL, "ERROR", -30, list_get_error, "Why the profile could not be read",
	 false},
	{"p99_bytes", NULL, "P99", 11, list_get_p99,
	 "99th percentile of the working set, in bytes", false},
	{"samples", NULL, "SAMPLES", 7, list_get_samples,
	 "Windows that the percentiles rest on, a count", false},
	{"since", NULL, "SINCE", -20, list_get_since, "When the first of them was, UTC",
	 false},
	{"host", NULL, "HOST", -20, list_get_host, "Connection URI of the host", false},
	{"coarse_why", NULL, "COARSE-WHY", -30, list_get_coarse_why,
	 "Why the figures are upper limits: what keeps the guest from being measured by 4 KiB", false},
};

#define WIDE                                                                          \
	"domain,age_seconds,method,granularity_bytes,window_seconds,current_bytes,"     \
	"low_bytes,high_bytes,p50_bytes,p95_bytes,peak_bytes,confidence,samples,coarse_why"

#define LAYOUT(shown_keys, wide_keys)                                                 \
	{                                                                             \
		.schema = "virt-wss/inventory/1", .array_key = "profiles",            \
		.columns = columns, .n_columns = sizeof(columns) / sizeof(columns[0]), \
		.shown = (shown_keys), .wide = (wide_keys),                           \
	}

static const struct wss_report_layout layout =
	LAYOUT("domain,age_seconds,current_bytes,p95_bytes,peak_bytes,confidence", WIDE);

/* The columns for several hosts; only the tables differ. */
static const struct wss_report_layout host_layout =
	LAYOUT("domain,age_seconds,current_bytes,peak_bytes,confidence,host", WIDE ",host");

static const struct wss_report_layout *const layouts[] = { &layout, NULL };

struct list_run {
	const struct wss_cli *cli;
	struct wss_report *report;
	struct wss_tally tally;
	size_t total;
	size_t domains, profiles; /* listed; and those of them that have one */
};

/*
 * Reads a domain's profile. A domain that was never measured gets a row without figures and
 * does not count as a failure.
 */
static int read_profile(const char *xml, struct list_row *row, struct wss_error *err)
{
	time_t now = wss_clock_wall_seconds();

	if (!xml)
		return 0;
	if (wss_metadata_read(xml, &row->profile, err) < 0)
		return -1;
	row->has_profile = true;
	row->age_s = now > row->profile.time ? (uint64_t)(now - row->profile.time) : 0;
	return 0;
}

/* Prints a domain's row; a bad one if the domain already has an error. */
static void list_domain(struct list_run *run, struct list_row *row, const char *xml,
			struct wss_error *why)
{
	run->total++;
	run->domains++;
	if (!why->code && read_profile(xml, row, why) == 0) {
		run->profiles += row->has_profile;
		wss_report_row(run->report, row);
		return;
	}
	row->error = why->text;
	wss_report_bad_row(run->report, row);
	wss_tally_bad(&run->tally, row->domain, why);
}

static void list_on_host(const struct wss_fleet_host *host, void *opaque)
{
	struct list_run *run = opaque;

	if (host->error.code) {
		struct list_row row = { .host = host->uri, .error = host->error.text };

		run->total++;
		wss_report_bad_row(run->report, &row);
		wss_tally_bad(&run->tally, host->uri, &host->error);
		return;
	}
	/* A host without domains did answer, so not everything failed. */
	run->total += !host->n;
	if (!host->n)
		wss_cli_say_empty(run->cli, host->asked, false);
	for (size_t i = 0; i < host->n; i++) {
		const struct wss_fleet_domain *domain = &host->domains[i];
		struct list_row row = { .host = host->uri,
					.domain = domain->name,
					.uuid = domain->uuid };
		struct wss_error why = WSS_ERROR_INIT;

		if (domain->error)
			wss_error_set(&why, WSS_ERR_FAILED, "%s", domain->error);
		list_domain(run, &row, domain->xml, &why);
	}
}

static int list_hosts(const struct wss_hosts *hosts, struct list_run *run, struct wss_error *err)
{
	wss_report_hold(run->report);
	return wss_fleet_read(hosts->list.uris, hosts->list.n, WSS_PROFILE_NAMESPACE,
			      hosts->timeout_ns, list_on_host, run, err);
}

/* The row of a named domain, under the name that libvirt has for it. */
static void list_target(struct list_run *run, struct wss_target *target)
{
	const struct wss_target_entry *found = target->data;
	struct list_row row = { .host = run->cli->uri, .domain = target->name };

	if (found && found->entry.uuid[0]) {
		row.domain = found->entry.name;
		row.uuid = found->entry.uuid;
	}
	list_domain(run, &row, found ? found->entry.xml : NULL, &target->error);
}

static int list_named(const struct wss_cli *cli, uint64_t timeout_ns, struct list_run *run,
		      struct wss_error *err)
{
	struct wss_targets targets = { .n = 0 };
	int r;

	if (wss_cli_find_targets(cli, timeout_ns, &targets, err) < 0)
		return -1;
	r = wss_targets_read_element(&targets, WSS_PROFILE_NAMESPACE, 0, err);
	for (size_t i = 0; r == 0 && i < targets.n; i++)
		list_target(run, targets.list[i]);
	wss_targets_free(&targets);
	return r;
}

/* Explains a table without figures. */
static void say_unpublished(const struct list_run *run, bool failed)
{
	if (failed || run->cli->format != WSS_FORMAT_TABLE || !run->domains || run->profiles)
		return;
	wss_log(WSS_LOG_INFO, "no profile has been published yet: start virt-wss serve, which publishes that of each "
			      "running guest some minutes later, or run virt-wss sample --publish");
}

static int list_profiles(const struct wss_cli *cli, const struct wss_hosts *hosts)
{
	struct wss_error err = WSS_ERROR_INIT, out_err = WSS_ERROR_INIT;
	struct list_run run = { .cli = cli };
	int r;

	if (wss_report_open(stdout, cli->format, &cli->view,
			    hosts->list.n > 1 ? &host_layout : &layout, &run.report, &err) < 0)
		return wss_cli_error(&err);
	r = cli->n_domains ? list_named(cli, hosts->timeout_ns, &run, &err) : list_hosts(hosts, &run, &err);
	/* If no host answered, there is nothing to print, not even a heading. */
	if (r < 0 && !run.total) {
		wss_report_free(run.report);
		return wss_cli_error(&err);
	}
	if (wss_report_close(run.report, &out_err) < 0)
		return wss_cli_error(&out_err);
	if (r < 0)
		return wss_cli_error(&err);
	r = wss_tally_exit_code(&run.tally, run.total);
	say_unpublished(&run, r != WSS_EXIT_OK);
	return r;
}

static int list_option_take(void *hosts, int c, const char *value, struct wss_error *err)
{
	return wss_hosts_option(hosts, c, value, err);
}

static int list_parse(struct wss_cli *cli, int argc, char **argv, struct wss_hosts *hosts,
		      struct wss_error *err)
{
	cli->several_uris = true;
	cli->reader = true;
	if (wss_cli_parse(cli, argc, argv, hosts, err) < 0 ||
	    wss_cli_view(cli, &layout, err) < 0)
		return -1;
	if (cli->qmp)
		return wss_error_set(err, WSS_ERR_USAGE,
				     "--qmp: a guest without libvirt has no inventory");
	if (wss_cli_finish(cli, argc, argv, err) < 0)
		return -1;
	return wss_hosts_finish(hosts, cli, err);
}

static int list_run(struct wss_cli *cli, int argc, char **argv)
{
	wss_auto_hosts struct wss_hosts hosts = WSS_HOSTS_INIT;
	struct wss_error err = WSS_ERROR_INIT;

	if (list_parse(cli, argc, argv, &hosts, &err) < 0)
		return wss_cli_error(&err);
	return list_profiles(cli, &hosts);
}

static const struct option long_options[] = {
	WSS_COMMON_LONG,
	WSS_TABLE_LONG,
	WSS_HOSTS_LONG,
	{ NULL, 0, NULL, 0 },
};

static const struct wss_syntax syntax = {WSS_COMMON_SHORT, long_options, list_option_take};

const struct wss_command wss_cmd_list = {
	.name = "list",
	.summary = "show the published profile of each domain",
	.help = wss_help_list,
	.syntax = &syntax,
	.layouts = layouts,
	.takes = WSS_WORDS_DOMAINS,
	.run = list_run,
};
