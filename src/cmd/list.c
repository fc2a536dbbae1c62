/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/cleanup.h"
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

static struct wss_value get_host(const void *row)
{
	return wss_value_text(((const struct list_row *)row)->host);
}

static struct wss_value get_domain(const void *row)
{
	return wss_value_text(((const struct list_row *)row)->domain);
}

static struct wss_value get_uuid(const void *row)
{
	return wss_value_text(((const struct list_row *)row)->uuid);
}

static struct wss_value get_error(const void *row)
{
	return wss_value_text(((const struct list_row *)row)->error);
}

static struct wss_value get_time(const void *row)
{
	const struct list_row *list = row;

	return list->has_profile ? wss_value_time(list->profile.time) : wss_value_absent();
}

/* Getters of the profile, absent without one. */
#define FIGURE(name, kind, value)                                              \
	static struct wss_value get_##name(const void *row)                    \
	{                                                                      \
		const struct list_row *list = row;                             \
									       \
		return list->has_profile ? wss_value_number(value, kind) : wss_value_absent(); \
	}

#define TEXT(name)                                                             \
	static struct wss_value get_##name(const void *row)                    \
	{                                                                      \
		const struct list_row *list = row;                             \
									       \
		return wss_value_text(list->has_profile ? list->profile.name : NULL); \
	}

#define AMOUNT(name)                                                           \
	static struct wss_value get_##name(const void *row)                    \
	{                                                                      \
		const struct list_row *list = row;                             \
									       \
		return list->has_profile ? wss_value_amount(list->profile.name##_bytes, WSS_KIND_BYTES) \
					 : wss_value_absent();                 \
	}

TEXT(method)
TEXT(observes)
TEXT(confidence)
TEXT(tool)
FIGURE(granularity, WSS_KIND_BYTES, list->profile.granularity_bytes)
FIGURE(window, WSS_KIND_DURATION, list->profile.window_ns)
FIGURE(current, WSS_KIND_BYTES, list->profile.current_bytes)
FIGURE(low, WSS_KIND_BYTES, list->profile.low_bytes)
FIGURE(high, WSS_KIND_BYTES, list->profile.high_bytes)
FIGURE(age, WSS_KIND_AGE, list->age_s)
AMOUNT(p50)
AMOUNT(p95)
AMOUNT(p99)
AMOUNT(peak)

static struct wss_value get_samples(const void *row)
{
	const struct list_row *list = row;

	return list->has_profile ? wss_value_amount(list->profile.samples, WSS_KIND_COUNT)
				 : wss_value_absent();
}

static struct wss_value get_since(const void *row)
{
	const struct list_row *list = row;

	return list->has_profile && list->profile.since.known
		       ? wss_value_time((time_t)list->profile.since.value)
		       : wss_value_absent();
}

/* The same columns for one host and for several: only the table leaves the host out for one. */
#define COLUMNS(host_header)                                                   \
	{ "domain", NULL, "DOMAIN", -12, get_domain },                         \
	{ "uuid", NULL, NULL, 0, get_uuid },                                   \
	{ "time", NULL, NULL, 0, get_time },                                   \
	{ "age_seconds", NULL, "AGE", 6, get_age },                            \
	{ "method", NULL, "METHOD", -6, get_method },                          \
	{ "observes", NULL, NULL, 0, get_observes },                           \
	{ "granularity_bytes", NULL, "GRAN", 5, get_granularity },             \
	{ "window_seconds", NULL, "WINDOW", 7, get_window },                   \
	{ "current_bytes", NULL, "CURRENT", 8, get_current },                  \
	{ "low_bytes", NULL, "LOW", 8, get_low },                              \
	{ "high_bytes", NULL, "HIGH", 8, get_high },                           \
	{ "p50_bytes", NULL, "P50", 8, get_p50 },                              \
	{ "p95_bytes", NULL, "P95", 8, get_p95 },                              \
	{ "peak_bytes", NULL, "PEAK", 8, get_peak },                           \
	{ "confidence", NULL, "CONFIDENCE", -10, get_confidence },             \
	{ "tool_version", NULL, NULL, 0, get_tool },                           \
	{ "error", NULL, NULL, 0, get_error },                                 \
	{ "p99_bytes", NULL, NULL, 0, get_p99 },                               \
	{ "samples", NULL, "SAMPLES", 7, get_samples },                        \
	{ "since", NULL, NULL, 0, get_since },                                 \
	{ "host", NULL, host_header, -12, get_host }

static const struct wss_column columns[] = { COLUMNS(NULL) };
static const struct wss_column host_columns[] = { COLUMNS("HOST") };

static const struct wss_report_layout layout = {
	.schema = "virt-wss/inventory/1",
	.array_key = "profiles",
	.columns = columns,
	.n_columns = sizeof(columns) / sizeof(columns[0]),
};

static const struct wss_report_layout host_layout = {
	.schema = "virt-wss/inventory/1",
	.array_key = "profiles",
	.columns = host_columns,
	.n_columns = sizeof(host_columns) / sizeof(host_columns[0]),
};

struct list_run {
	struct wss_report *report;
	struct wss_tally tally;
	size_t total;
};

/* A domain that was never measured is a row without figures, no failure. */
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

/* Prints the row of a domain, bad where why is set already. */
static void list_domain(struct list_run *run, struct list_row *row, const char *xml,
			struct wss_error *why)
{
	run->total++;
	if (!why->code && read_profile(xml, row, why) == 0) {
		wss_report_row(run->report, row);
		return;
	}
	row->error = why->text;
	wss_report_bad_row(run->report, row);
	wss_tally_bad(&run->tally, row->domain, why);
}

static void on_host(const struct wss_fleet_host *host, void *opaque)
{
	struct list_run *run = opaque;
	const char *uri = host->uri ? host->uri : "libvirt";

	if (host->error.code) {
		struct list_row row = { .host = host->uri, .error = host->error.text };

		run->total++;
		wss_report_bad_row(run->report, &row);
		wss_tally_bad(&run->tally, uri, &host->error);
		return;
	}
	/* A host that has no domains has answered: it is not that all have failed. */
	run->total += !host->n;
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
	wss_report_set_first_width(run->report, 16);
	return wss_fleet_read(hosts->uris, hosts->n, WSS_PROFILE_NAMESPACE, hosts->timeout_ns,
			      on_host, run, err);
}

static int list_named(const struct wss_cli *cli, struct list_run *run, struct wss_error *err)
{
	struct wss_conn *conn = NULL;

	if (wss_conn_open_reader(cli->uri, &conn, err) < 0)
		return -1;
	for (int i = 0; i < cli->n_domains; i++) {
		const struct wss_domain_ref ref = wss_cli_domain(cli, i);
		struct list_row row = { .host = cli->uri, .domain = ref.name };
		struct wss_conn_entry entry = { .xml = NULL };
		struct wss_error why = WSS_ERROR_INIT;

		if (wss_conn_metadata(conn, &ref, WSS_PROFILE_NAMESPACE, &entry, &why) == 0) {
			row.domain = entry.name;
			row.uuid = entry.uuid;
		}
		list_domain(run, &row, entry.xml, &why);
		free(entry.xml);
	}
	wss_conn_close(conn);
	return 0;
}

static int list(const struct wss_cli *cli, const struct wss_hosts *hosts)
{
	struct wss_error err = WSS_ERROR_INIT, out_err = WSS_ERROR_INIT;
	struct list_run run = { .total = 0 };
	int r;

	if (wss_report_open(stdout, cli->format, hosts->n > 1 ? &host_layout : &layout,
			    &run.report, &err) < 0)
		return wss_cli_error(&err);
	r = cli->n_domains ? list_named(cli, &run, &err) : list_hosts(hosts, &run, &err);
	/* Without a connection there is nothing to report, not even a heading. */
	if (r < 0 && err.code == WSS_ERR_CONNECT) {
		wss_report_free(run.report);
		return wss_cli_error(&err);
	}
	if (wss_report_close(run.report, &out_err) < 0)
		return wss_cli_error(&out_err);
	return r < 0 ? wss_cli_error(&err) : wss_tally_exit_code(&run.tally, run.total);
}

static int take(void *hosts, int c, const char *value, struct wss_error *err)
{
	return wss_hosts_option(hosts, c, value, err);
}

static int parse(struct wss_cli *cli, int argc, char **argv, struct wss_hosts *hosts,
		 struct wss_error *err)
{
	static const struct option long_options[] = { WSS_COMMON_LONG,
						      WSS_HOSTS_LONG,
						      { NULL, 0, NULL, 0 } };
	static const struct wss_syntax syntax = { WSS_COMMON_SHORT, long_options, take };

	cli->several_uris = true;
	if (wss_cli_parse(cli, argc, argv, &syntax, hosts, err) < 0)
		return -1;
	if (cli->qmp)
		return wss_error_set(err, WSS_ERR_USAGE,
				     "--qmp: a guest without libvirt has no inventory");
	if (wss_cli_finish(cli, argc, argv, err) < 0)
		return -1;
	return cli->help ? 0 : wss_hosts_finish(hosts, cli, err);
}

static int list_run(struct wss_cli *cli, int argc, char **argv)
{
	wss_auto_hosts struct wss_hosts hosts = WSS_HOSTS_INIT;
	struct wss_error err = WSS_ERROR_INIT;

	if (parse(cli, argc, argv, &hosts, &err) < 0)
		return wss_cli_error(&err);
	if (cli->help) {
		fputs(wss_help_list, stdout);
		return WSS_EXIT_OK;
	}
	return list(cli, &hosts);
}

const struct wss_command wss_cmd_list = { "list", list_run };
