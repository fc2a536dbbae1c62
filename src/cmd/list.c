/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cmd/cmd.h"
#include "help-text.h"
#include "host/inventory.h"
#include "out/metadata.h"
#include "wss/profile.h"

struct list_row {
	const char *domain;
	const char *uuid;
	bool has_profile;
	struct wss_profile profile;
	uint64_t age_s;
	const char *error;
};

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
AMOUNT(peak)

static const struct wss_column columns[] = {
	{ "domain", NULL, "DOMAIN", -12, get_domain },
	{ "uuid", NULL, NULL, 0, get_uuid },
	{ "time", NULL, NULL, 0, get_time },
	{ "age_seconds", NULL, "AGE", 6, get_age },
	{ "method", NULL, "METHOD", -6, get_method },
	{ "observes", NULL, NULL, 0, get_observes },
	{ "granularity_bytes", NULL, "GRAN", 5, get_granularity },
	{ "window_seconds", NULL, "WINDOW", 7, get_window },
	{ "current_bytes", NULL, "CURRENT", 8, get_current },
	{ "low_bytes", NULL, "LOW", 8, get_low },
	{ "high_bytes", NULL, "HIGH", 8, get_high },
	{ "p50_bytes", NULL, "P50", 8, get_p50 },
	{ "p95_bytes", NULL, "P95", 8, get_p95 },
	{ "peak_bytes", NULL, "PEAK", 8, get_peak },
	{ "confidence", NULL, "CONFIDENCE", -10, get_confidence },
	{ "tool_version", NULL, NULL, 0, get_tool },
	{ "error", NULL, NULL, 0, get_error },
};

static const struct wss_report_layout layout = {
	.schema = "virt-wss/inventory/1",
	.array_key = "profiles",
	.columns = columns,
	.n_columns = sizeof(columns) / sizeof(columns[0]),
};

/* A domain that was never measured is a row without figures, no failure. */
static int read_profile(const struct wss_conn_entry *entry, struct list_row *row,
			struct wss_error *err)
{
	time_t now = wss_clock_wall_seconds();

	if (!entry->xml)
		return 0;
	if (wss_metadata_read(entry->xml, &row->profile, err) < 0)
		return -1;
	row->has_profile = true;
	row->age_s = now > row->profile.time ? (uint64_t)(now - row->profile.time) : 0;
	return 0;
}

/* One row, under the domain's own name; 0, or -1 after a row that says what went wrong. */
static int list_domain(struct wss_conn *conn, const char *domain, struct wss_report *report,
		       struct wss_error *err)
{
	struct list_row row = { .domain = domain };
	struct wss_conn_entry entry = { .xml = NULL };
	int r = wss_conn_metadata(conn, domain, WSS_PROFILE_NAMESPACE, &entry, err);

	if (r == 0) {
		row.domain = entry.name;
		row.uuid = entry.uuid;
		r = read_profile(&entry, &row, err);
	}
	if (r == 0) {
		wss_report_row(report, &row);
	} else {
		row.error = err->text;
		wss_report_bad_row(report, &row);
	}
	free(entry.xml);
	return r;
}

static int list_domains(const struct wss_cli *cli, struct wss_conn *conn, char **names, size_t n)
{
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_tally tally = { 0 };
	struct wss_report *report;
	size_t width = 0;

	if (wss_report_open(stdout, cli->format, &layout, &report, &err) < 0)
		return wss_cli_error(&err);
	for (size_t i = 0; i < n; i++)
		width = strlen(names[i]) > width ? strlen(names[i]) : width;
	wss_report_set_first_width(report, width > 40 ? 40 : width);
	for (size_t i = 0; i < n; i++) {
		struct wss_error why = WSS_ERROR_INIT;

		if (list_domain(conn, names[i], report, &why) < 0)
			wss_tally_bad(&tally, names[i], &why);
	}
	if (wss_report_close(report, &err) < 0)
		return wss_cli_error(&err);
	return wss_tally_exit_code(&tally, n);
}

static int list_all(const struct wss_cli *cli)
{
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_conn *conn = NULL;
	char **names = NULL;
	size_t n = 0;
	int code;

	if (wss_conn_open(cli->uri, &conn, &err) < 0 ||
	    (!cli->n_domains && wss_conn_list(conn, true, &names, &err) < 0)) {
		wss_conn_close(conn);
		return wss_cli_error(&err);
	}
	while (names && names[n])
		n++;
	code = cli->n_domains ? list_domains(cli, conn, cli->domains, (size_t)cli->n_domains)
			      : list_domains(cli, conn, names, n);
	wss_conn_free_names(names);
	wss_conn_close(conn);
	return code;
}

static int list_run(struct wss_cli *cli, int argc, char **argv)
{
	static const struct option long_options[] = { WSS_COMMON_LONG, { NULL, 0, NULL, 0 } };
	struct wss_error err = WSS_ERROR_INIT;
	int c;

	optind = 0;
	while ((c = getopt_long(argc, argv, WSS_COMMON_SHORT, long_options, NULL)) != -1)
		if (wss_cli_option(cli, c, argv, &err) < 0)
			return wss_cli_error(&err);
	if (cli->qmp)
		wss_error_set(&err, WSS_ERR_USAGE, "--qmp: a guest without libvirt has no inventory");
	if (err.code || wss_cli_finish(cli, argc, argv, &err) < 0)
		return wss_cli_error(&err);
	if (cli->help) {
		fputs(wss_help_list, stdout);
		return WSS_EXIT_OK;
	}
	return list_all(cli);
}

const struct wss_command wss_cmd_list = { "list", list_run };
