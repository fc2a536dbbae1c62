/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "cmd/cmd.h"
#include "cmd/hosts.h"
#include "cmd/list-vms.h"
#include "help-text.h"
#include "host/fleet.h"
#include "host/inventory.h"
#include "measure/metadata.h"
#include "measure/profile.h"

/* By how much the clocks of two hosts may differ. */
#define CLOCKS_DIFFER_S 60

struct list_row {
	const char *host;
	const char *domain;
	const char *uuid;
	bool has_profile;
	struct wss_profile profile;
	struct wss_amount age_s; /* unknown: its time lies ahead */
	struct wss_value current, p50, p95, p99, peak;
	const char *error;
};

static const void *list_profile(const void *row)
{
	const struct list_row *list = row;

	return list->has_profile ? &list->profile : NULL;
}

static struct wss_value list_get_since(const void *row)
{
	const struct list_row *list = row;

	return list->profile.since.known ? wss_value_time((time_t)list->profile.since.value)
					 : wss_value_absent();
}

#define FIELD(member, kind) WSS_FIELD(struct list_row, member, kind)
#define PROFILE(member, kind) WSS_FIELD_OF(list_profile, struct wss_profile, member, kind)

static const struct wss_column columns[] = {
	{"domain", NULL, "DOMAIN", -12, FIELD(domain, TEXT), "Name of the guest"},
	{"uuid", NULL, "UUID", -36, FIELD(uuid, TEXT), "UUID of the guest"},
	{"time", NULL, "TIME", -20, PROFILE(time, TEXT), "When it was measured, UTC"},
	{"age_seconds", NULL, "AGE", 6, FIELD(age_s, AGE),
	 "Time since it was measured, in seconds; absent if that time lies ahead"},
	{"method", NULL, "METHOD", -6, PROFILE(method, TEXT),
	 "Name of the method that measured it"},
	{"observes", NULL, "OBSERVES", -9, PROFILE(observes, TEXT),
	 "Kind of use observed: accesses, writes or residency"},
	{"granularity_bytes", NULL, "GRAN", 5, PROFILE(granularity_bytes, BYTES),
	 "Granularity of the window, in bytes"},
	{"window_seconds", NULL, "WINDOW", 7, PROFILE(window_ns, DURATION),
	 "Length of the window, in seconds"},
	{"current_bytes", NULL, "CURRENT", 11, FIELD(current, BYTES),
	 "Working set in the newest window, in bytes; <= or >= where only that bound is known"},
	{"low_bytes", NULL, "LOW", 8, PROFILE(low_bytes, BYTES), "Its lower bound, in bytes"},
	{"high_bytes", NULL, "HIGH", 8, PROFILE(high_bytes, BYTES), "Its upper bound, in bytes"},
	{"p50_bytes", NULL, "P50", 11, FIELD(p50, BYTES), "Median working set, in bytes"},
	{"p95_bytes", NULL, "P95", 11, FIELD(p95, BYTES),
	 "95th percentile of the working set, in bytes"},
	{"peak_bytes", NULL, "PEAK", 11, FIELD(peak, BYTES), "Largest working set, in bytes"},
	{"confidence", NULL, "CONFIDENCE", -10, PROFILE(confidence, TEXT),
	 "single (one window), low, medium or high"},
	{"tool_version", NULL, "TOOL", -8, PROFILE(tool, TEXT),
	 "Version of virt-wss that measured"},
	{"error", NULL, "ERROR", -30, FIELD(error, TEXT), "Why the profile could not be read"},
	{"p99_bytes", NULL, "P99", 11, FIELD(p99, BYTES),
	 "99th percentile of the working set, in bytes"},
	{"samples", NULL, "SAMPLES", 7, PROFILE(samples, COUNT),
	 "Windows that the percentiles rest on, a count"},
	{"since", NULL, "SINCE", -20, WSS_GET(list_get_since), "When the first of them was, UTC"},
	{"host", NULL, "HOST", -20, FIELD(host, TEXT), "Connection URI of the host"},
	{"coarse_why", NULL, "COARSE-WHY", -30, PROFILE(coarse_why, TEXT),
	 "Why the figures are upper limits: what keeps the guest from being measured by 4 KiB"},
};

#define WIDE                                                                        \
	"domain,age_seconds,method,granularity_bytes,window_seconds,current_bytes," \
	"low_bytes,high_bytes,p50_bytes,p95_bytes,peak_bytes,confidence,samples,coarse_why"

#define LAYOUT(shown_keys, wide_keys)                                                          \
	{                                                                                      \
		.schema = "virt-wss/inventory/1", .array_key = "profiles", .columns = columns, \
		.n_columns = sizeof(columns) / sizeof(columns[0]), .shown = (shown_keys),      \
		.wide = (wide_keys),                                                           \
	}

static const struct wss_report_layout layout =
	LAYOUT("domain,age_seconds,current_bytes,p95_bytes,peak_bytes,confidence", WIDE);

/* The columns for several hosts; only the tables differ. */
static const struct wss_report_layout host_layout =
	LAYOUT("domain,age_seconds,current_bytes,peak_bytes,confidence,host", WIDE ",host");

static const struct wss_report_layout *const layouts[] = {&layout, &list_vms_layout,
							  &list_guests_layout, NULL};

struct list_run {
	const struct wss_cli *cli;
	struct wss_report *report;
	struct wss_tally tally;
	size_t total;
	size_t domains, profiles; /* listed; and those of them that have one */
};

static struct wss_value list_size(const struct wss_profile *profile, struct wss_amount bytes)
{
	return wss_value_bounded(wss_value_amount(bytes, WSS_KIND_BYTES),
				 wss_bound_of_granularity(profile->granularity_bytes));
}

/* The figures of the row that may be bounds. */
static void fill_row(struct list_row *row)
{
	const struct wss_profile *profile = &row->profile;

	row->current = wss_value_bounded(wss_value_number(profile->current_bytes, WSS_KIND_BYTES),
					 wss_bound_of(profile->current_bytes,
						      wss_amount_of(profile->low_bytes),
						      wss_amount_of(profile->high_bytes)));
	row->p50 = list_size(profile, profile->p50_bytes);
	row->p95 = list_size(profile, profile->p95_bytes);
	row->p99 = list_size(profile, profile->p99_bytes);
	row->peak = list_size(profile, profile->peak_bytes);
}

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
	fill_row(row);
	/* Beyond that, the clock was ahead then, and whether the figures are of today or not is unknown. */
	if (row->profile.time <= now + CLOCKS_DIFFER_S)
		row->age_s = wss_amount_of(
			now > row->profile.time ? (uint64_t)(now - row->profile.time) : 0);
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
		struct list_row row = {.host = host->uri, .error = host->error.text};

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
		struct list_row row = {
			.host = host->uri, .domain = domain->name, .uuid = domain->uuid};
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
	struct list_row row = {.host = run->cli->uri, .domain = target->name};

	if (found && found->entry.uuid[0]) {
		row.domain = found->entry.name;
		row.uuid = found->entry.uuid;
	}
	list_domain(run, &row, found ? found->entry.xml : NULL, &target->error);
}

static int list_named(const struct wss_cli *cli, uint64_t timeout_ns, struct list_run *run,
		      struct wss_error *err)
{
	struct wss_targets targets = {.n = 0};
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
	wss_log(WSS_LOG_INFO,
		"no profile has been published yet: start virt-wss serve, which publishes that of each "
		"running guest some minutes later, or run virt-wss sample --publish");
}

static int list_profiles(const struct wss_cli *cli, const struct wss_hosts *hosts)
{
	struct wss_error err = WSS_ERROR_INIT, out_err = WSS_ERROR_INIT;
	struct list_run run = {.cli = cli};
	int r;

	if (wss_report_open(stdout, cli->format, &cli->view,
			    hosts->list.n > 1 ? &host_layout : &layout, &run.report, &err) < 0)
		return wss_cli_error(&err);
	r = cli->n_domains ? list_named(cli, hosts->timeout_ns, &run, &err)
			   : list_hosts(hosts, &run, &err);
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

/* Returns the inventory of this host whose guests are to be listed; NULL: libvirt's domains are. */
static const struct wss_inventory_ops *wanted_inventory(const struct wss_cli *cli,
							const struct wss_hosts *hosts)
{
	return hosts->file || cli->n_uris > 1 ? NULL : wss_inventory_find(wss_cli_uri(cli->uri));
}

static int list_parse(struct wss_cli *cli, int argc, char **argv, struct wss_hosts *hosts,
		      struct wss_error *err)
{
	const struct wss_inventory_ops *inventory;

	cli->several_uris = true;
	cli->reader = true;
	if (wss_cli_parse(cli, argc, argv, hosts, err) < 0)
		return -1;
	inventory = wanted_inventory(cli, hosts);
	if (wss_cli_view(cli, inventory ? list_vms_layout_of(inventory) : &layout, err) < 0)
		return -1;
	if (cli->qmp)
		return wss_error_set(
			err, WSS_ERR_USAGE,
			"--qmp: list takes no socket: use -c kvm:///, which lists the same guest");
	if (wss_cli_finish(cli, argc, argv, err) < 0)
		return -1;
	return wss_hosts_finish(hosts, cli, err);
}

static int list_run(struct wss_cli *cli, int argc, char **argv)
{
	wss_auto_hosts struct wss_hosts hosts = WSS_HOSTS_INIT;
	const struct wss_inventory_ops *inventory;
	struct wss_error err = WSS_ERROR_INIT;

	if (list_parse(cli, argc, argv, &hosts, &err) < 0)
		return wss_cli_error(&err);
	inventory = wanted_inventory(cli, &hosts);
	return inventory ? list_vms(cli, inventory) : list_profiles(cli, &hosts);
}

static const struct option long_options[] = {
	WSS_COMMON_LONG,
	WSS_TABLE_LONG,
	WSS_HOSTS_LONG,
	{NULL, 0, NULL, 0},
};

const struct wss_command wss_cmd_list = {
	.name = "list",
	.summary = "show the published profile of each domain",
	.help = wss_help_list,
	.long_options = long_options,
	.take = list_option_take,
	.layouts = layouts,
	.takes = WSS_WORDS_DOMAINS,
	.run = list_run,
};
