/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "cmd/recommend.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/number.h"
#include "base/units.h"
#include "cmd/plot.h"
#include "cmd/sizing-options.h"
#include "help-text.h"
#include "host/fleet.h"
#include "host/inventory.h"
#include "out/policy.h"

struct recommend_options {
	struct wss_sizing_options sizing;
	double probability;
	struct wss_amount what_if;
	const char *plot;
};

struct recommend {
	const struct wss_cli *cli;
	const struct recommend_options *options;
	struct wss_history *history; /* NULL where there is none yet */
	struct wss_conn *conn;
	struct wss_report *report;
	struct wss_tally tally;
	size_t total;
	time_t since;
	struct recommend_host host;
	struct wss_fit fit;
	size_t n_curves;
	struct wss_missrate_guest *curves; /* for the picture, their texts malloc'ed */
	char *host_name; /* malloc'ed, for the picture; NULL where it is not known */
};

enum {
	OPT_PERCENTILE = 1,
	OPT_WHAT_IF,
	OPT_PROBABILITY,
	OPT_PLOT,
};

static const struct option long_options[] = {
	WSS_COMMON_LONG,
	WSS_TABLE_LONG,
	WSS_SIZING_LONG,
	{ "percentile", required_argument, NULL, OPT_PERCENTILE },
	{ "what-if", required_argument, NULL, OPT_WHAT_IF },
	{ "probability", required_argument, NULL, OPT_PROBABILITY },
	{ "plot", required_argument, NULL, OPT_PLOT },
	{ NULL, 0, NULL, 0 },
};

static int take(void *opaque, int c, const char *value, struct wss_error *err)
{
	struct recommend_options *options = opaque;

	switch (c) {
	case OPT_PERCENTILE:
		return wss_percent_parse(value, 50, 99.9, "--percentile",
					 &options->sizing.rule.percentile, err);
	case OPT_WHAT_IF:
		options->what_if.known = true;
		return wss_size_parse(value, "--what-if", &options->what_if.value, err);
	case OPT_PROBABILITY:
		return wss_percent_parse(value, 50, 99.9, "--probability", &options->probability,
					 err);
	case OPT_PLOT:
		options->plot = value;
		return 0;
	default:
		return wss_sizing_option(&options->sizing, c, value, err);
	}
}

static int parse(struct wss_cli *cli, int argc, char **argv, struct recommend_options *options,
		 struct wss_error *err)
{
	if (wss_cli_parse(cli, argc, argv, options, err) < 0 ||
	    wss_cli_view(cli, &recommend_layout, err) < 0 || wss_sizing_check(cli, err) < 0)
		return -1;
	return wss_cli_finish(cli, argc, argv, err);
}

static void ask_what_if(const struct recommend *run, const struct wss_missrate *missrate,
			struct recommend_row *row)
{
	const struct wss_summary *summary = &row->series.summary;

	row->what_if_bytes = run->options->what_if;
	if (!row->what_if_bytes.known)
		return;
	row->exceeded = summary->samples ? (double)wss_histogram_above(&summary->sizes,
								       row->what_if_bytes.value) /
						   (double)summary->samples
					 : 0;
	if (!row->has_missrate)
		return;
	row->faults_per_second = wss_missrate_at(missrate, row->what_if_bytes.value, &row->bound);
	row->loss = wss_missrate_loss(row->faults_per_second, run->options->sizing.fault_ns);
}

static int keep_curve(struct recommend *run, const struct recommend_row *row,
		      const struct wss_missrate *missrate)
{
	struct wss_missrate_guest *curves;
	char *name, *method;

	if (!run->options->plot)
		return 0;
	curves = reallocarray(run->curves, run->n_curves + 1, sizeof(*curves));
	if (!curves)
		return -1;
	run->curves = curves;
	name = strdup(row->domain);
	method = strdup(row->series.method);
	if (!name || !method) {
		free(name);
		free(method);
		return -1;
	}
	curves[run->n_curves++] = (struct wss_missrate_guest){
		.domain = name,
		.method = method,
		.granularity_bytes = row->series.granularity_bytes,
		.window_ns = row->series.window_ns,
		.windows = row->series.summary.samples,
		.first = row->series.summary.first,
		.last = row->series.summary.last,
		.missrate = *missrate,
		.recommended_bytes = row->sizing.recommended_bytes,
	};
	return 0;
}

static int size_guest(struct recommend *run, struct recommend_row *row, struct wss_error *err)
{
	const struct recommend_options *options = run->options;
	struct wss_sizing_state state = { .held_bytes.known = false };
	struct wss_missrate missrate;

	row->rule = options->sizing.rule;
	wss_sizing_heed(&row->rule, &row->policy);
	if (row->active) {
		row->held_bytes = state.held_bytes = row->series.rss_bytes;
		state.balloon_bytes = row->series.balloon_bytes;
	}
	row->assigned_bytes = row->series.maximum_bytes;
	row->has_missrate = wss_sizing_ask_curve(&options->sizing, &row->series, &missrate, &state);
	row->curve_bytes = state.curve_bytes;
	row->curve_is_beyond = state.curve_is_beyond;
	wss_sizing_compute(&row->series.summary, &row->rule, &row->policy, &state, &row->sizing);
	row->status = row->sizing.confidence == WSS_CONFIDENCE_NONE ? "too early" : "ok";
	ask_what_if(run, &missrate, row);
	if (row->has_missrate && keep_curve(run, row, &missrate) < 0)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	return 0;
}

static void add_amount(struct wss_amount *sum, struct wss_amount amount)
{
	if (amount.known)
		*sum = wss_amount_of(wss_u64_add(sum->value, amount.value));
}

static void on_hour(time_t start, uint64_t max_bytes, void *opaque)
{
	wss_fit_hour(opaque, start, max_bytes);
}

/* A guest that is not known counts with all that it was given, as nothing else is safe. */
static int add_to_host(struct recommend *run, const struct recommend_row *row,
		       struct wss_error *err)
{
	bool known = row->sizing.confidence != WSS_CONFIDENCE_NONE;
	struct wss_amount assigned = row->assigned_bytes;

	if (!assigned.known)
		assigned = wss_conn_assigned(run->conn, row->uuid);
	run->host.guests++;
	run->host.unsized += !known;
	run->host.unknown += !strcmp(row->status, "unknown");
	run->host.too_early += !strcmp(row->status, "too early");
	add_amount(&run->host.assigned_bytes, assigned);
	add_amount(&run->host.wss_bytes, row->sizing.base_bytes);
	if (row->has_series)
		add_amount(&run->host.overhead_bytes, row->series.qemu_bytes);
	if (known && wss_history_hours(run->history, row->uuid, run->since, on_hour, &run->fit, err) <
			     0)
		return -1;
	wss_fit_guest(&run->fit, known ? row->sizing.peak_bytes.value : assigned.value);
	return 0;
}

static int fill_row(struct recommend *run, struct recommend_row *row, const char *policy_xml,
		    struct wss_error *err)
{
	unsigned flags = WSS_HISTORY_CURVE;
	int r = 0;

	row->status = "unknown";
	if (policy_xml && wss_policy_read(policy_xml, &row->policy, err) < 0)
		return -1;
	if (run->history && row->uuid && *row->uuid)
		r = wss_history_series(run->history, row->uuid, run->since, flags, &row->series, err);
	row->has_series = r == 1;
	if (row->has_series && size_guest(run, row, err) < 0)
		r = -1;
	if (row->policy.opt_out)
		row->status = "opted out";
	return r < 0 ? -1 : 0;
}

/* One domain: its row, and its part in the host's total where it runs. */
static void handle(struct recommend *run, struct recommend_row *row, const char *policy_xml,
		   bool counts, struct wss_error *why)
{
	struct wss_error other = WSS_ERROR_INIT;

	run->total++;
	if (!why->code)
		fill_row(run, row, policy_xml, why);
	if (why->code)
		row->status = "failed";
	/* Also one of which something cannot be read: it is there, and needs who knows what. */
	if (counts && add_to_host(run, row, &other) < 0 && !why->code)
		*why = other;
	if (why->code) {
		row->error = why->text;
		row->status = "failed";
		wss_report_bad_row(run->report, row);
		wss_tally_bad(&run->tally, row->domain, why);
	} else {
		wss_report_row(run->report, row);
	}
	wss_summary_free(&row->series.summary);
}

static void on_host(const struct wss_fleet_host *host, void *opaque)
{
	struct recommend *run = opaque;
	size_t width = 0;

	for (size_t i = 0; i < host->n; i++)
		width = wss_name_width(width, host->domains[i].name);
	wss_report_set_first_width(run->report, width);
	for (size_t i = 0; i < host->n; i++) {
		const struct wss_fleet_domain *domain = &host->domains[i];
		struct recommend_row row = { .domain = domain->name,
					     .uuid = domain->uuid,
					     .active = domain->active };
		struct wss_error why = WSS_ERROR_INIT;

		if (domain->error)
			wss_error_set(&why, WSS_ERR_FAILED, "%s", domain->error);
		handle(run, &row, domain->xml, domain->active, &why);
	}
}

static void handle_named(struct recommend *run, struct wss_domain_ref ref)
{
	struct wss_conn_entry entry = { .xml = NULL };
	struct recommend_row row = { .domain = ref.name };
	struct wss_error why = WSS_ERROR_INIT;

	if (wss_conn_metadata(run->conn, &ref, WSS_POLICY_NAMESPACE, &entry, &why) == 0) {
		row.domain = entry.name;
		row.uuid = entry.uuid;
		row.active = entry.active;
	}
	handle(run, &row, entry.xml, false, &why);
	free(entry.xml);
}

/* As wide as what was typed: a name, or the UUID or number that stands for one. */
static void recommend_named(struct recommend *run)
{
	const struct wss_cli *cli = run->cli;
	size_t width = 0;

	for (int i = 0; i < cli->n_domains; i++)
		width = wss_name_width(width, cli->domains[i]);
	wss_report_set_first_width(run->report, width);
	for (int i = 0; i < cli->n_domains; i++)
		handle_named(run, wss_cli_domain(cli, i));
}

/* What the host has left once all have what they need together, and QEMU what it needs itself. */
static int total_host(struct recommend *run, struct wss_error *err)
{
	struct wss_amount memory = wss_conn_host_memory(run->conn);
	struct recommend_host *host = &run->host;
	struct wss_fit_result result;
	uint64_t needed;

	host->probability = run->options->probability;
	host->host_bytes = memory;
	if (wss_fit_result(&run->fit, host->probability, &result) < 0)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	host->hours = result.hours;
	host->from_peak = result.from_peak;
	host->needed_bytes = result.bytes;
	if (!result.bytes.known || !memory.known)
		return 0;
	needed = wss_u64_add(result.bytes.value, host->overhead_bytes.value);
	host->fits_bytes = wss_amount_of(memory.value > needed ? memory.value - needed : 0);
	return 0;
}

static int recommend_all(struct recommend *run, struct wss_error *err)
{
	int r;

	if (wss_fit_init(&run->fit, run->since, wss_clock_wall_seconds()) < 0)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	r = wss_fleet_read_one(run->conn, WSS_POLICY_NAMESPACE, on_host, run, err);
	if (r == 0)
		r = total_host(run, err);
	if (r == 0)
		wss_report_total(run->report, "host", &recommend_host_layout, &run->host);
	wss_fit_free(&run->fit);
	return r;
}

static void draw(FILE *f, const void *opaque)
{
	const struct recommend *run = opaque;
	const struct wss_missrate_question question = {
		.fault_ns = run->options->sizing.fault_ns,
		.target = run->options->sizing.target_loss,
		.what_if_bytes = run->options->what_if,
	};

	wss_missrate_plot(f, run->host_name, run->curves, run->n_curves, &question);
}

static int recommend(struct recommend *run, struct wss_error *err)
{
	int r = 0;

	if (wss_sizing_open(&run->options->sizing, &run->history, err) < 0 || wss_conn_open_reader(run->cli->uri, &run->conn, err) < 0)
		return -1;
	if (run->cli->n_domains)
		recommend_named(run);
	else
		r = recommend_all(run, err);
	if (r == 0 && run->options->plot && run->n_curves) {
		run->host_name = wss_conn_hostname(run->conn);
		r = wss_plot_write(run->options->plot, draw, run, err);
	} else if (r == 0 && run->options->plot) {
		wss_warn("--plot: no guest has a growth curve of 4 KiB pages in the history");
	}
	return r;
}

static void clean_up(struct recommend *run)
{
	for (size_t i = 0; i < run->n_curves; i++) {
		free((char *)run->curves[i].domain);
		free((char *)run->curves[i].method);
	}
	free(run->curves);
	free(run->host_name);
	wss_history_close(run->history);
	wss_conn_close(run->conn);
}

static int recommend_run(struct wss_cli *cli, int argc, char **argv)
{
	struct recommend_options options = {
		.sizing = WSS_SIZING_OPTIONS_INIT,
		.probability = 0.99,
	};
	struct recommend run = { .cli = cli, .options = &options };
	struct wss_error err = WSS_ERROR_INIT, out_err = WSS_ERROR_INIT;
	int r;

	if (parse(cli, argc, argv, &options, &err) < 0)
		return wss_cli_error(&err);
	run.since = wss_clock_wall_seconds() - (time_t)(options.sizing.span_ns / WSS_NS_PER_S);
	if (wss_plot_check(options.plot, false, &err) < 0 ||
	    wss_report_open(stdout, cli->format, &cli->view,
			    options.what_if.known ? &recommend_what_if_layout : &recommend_layout,
			    &run.report, &err) < 0)
		return wss_cli_error(&err);
	r = recommend(&run, &err);
	if (r < 0 && !run.total) {
		wss_report_free(run.report);
		clean_up(&run);
		return wss_cli_error(&err);
	}
	if (wss_report_close(run.report, &out_err) < 0)
		r = -1;
	clean_up(&run);
	if (out_err.code)
		return wss_cli_error(&out_err);
	return r < 0 ? wss_cli_error(&err) : wss_tally_exit_code(&run.tally, run.total);
}

static const struct wss_syntax syntax = { WSS_COMMON_SHORT, long_options, take };

const struct wss_command wss_cmd_recommend = {
	.name = "recommend",
	.summary = "recommend memory sizes from the history",
	.help = wss_help_recommend,
	.syntax = &syntax,
	.layouts = recommend_layouts,
	.takes = WSS_WORDS_DOMAINS,
	.run = recommend_run,
};
