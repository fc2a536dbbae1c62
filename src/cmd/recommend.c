/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "cmd/recommend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "fleet/host-room-report.h"
#include "help-text.h"
#include "host/inventories.h"
#include "host/inventory.h"
#include "measure/policy-element.h"
#include "show/plot.h"
#include "sizing/host-sum-report.h"

struct recommend {
	const struct wss_cli *cli;
	const struct recommend_options *options;
	struct wss_history *history; /* NULL if there is none yet */
	struct wss_targets targets;
	struct wss_hypervisor_facts facts; /* of the host */
	struct wss_report *report;
	struct wss_tally tally;
	size_t total;
	time_t since;
	struct wss_host_sum host;
	struct wss_host_room room; /* with --host */
	struct recommend_notes notes;
};

static int row_fill(struct recommend *run, struct recommend_row *row, const char *policy_xml,
		    struct wss_error *err)
{
	const struct wss_advice_guest guest = {.uuid = row->uuid,
					       .active = row->active,
					       .reports_free = row->reports_free,
					       .policy = &row->policy};

	if ((policy_xml && wss_policy_read(policy_xml, &row->policy, err) < 0) ||
	    wss_advice_read(run->history, &guest, run->since, &run->options->sizing.advice,
			    &row->advice, err) < 0)
		return -1;
	return 0;
}

/* Finds what the configuration of a running guest costs. */
static void row_examine(struct recommend_row *row, const struct wss_target_entry *found)
{
	struct wss_config_facts facts;

	if (!found->config)
		return;
	facts = wss_config_facts_of(found->config, found->stats);
	facts.reclaimable_bytes = row->advice.sizing.reclaimable_bytes;
	if (row->advice.held_bytes.known)
		facts.held_bytes = row->advice.held_bytes;
	row->has_findings = true;
	row->n_findings = wss_config_advise(found->config, &facts, row->findings);
	if (wss_config_blocks_text(found->config, row->blocked))
		wss_advice_block(&row->advice);
}

/* Adds a running guest to the sums over the host. */
static void host_add(struct recommend *run, const struct recommend_row *row, struct wss_error *why)
{
	const struct wss_host_room_facts facts = {row->domain,
						  row->uuid,
						  &row->advice,
						  &row->size,
						  why->code ? why->text : NULL,
						  row->blocked[0] ? row->blocked : NULL};
	struct wss_error other = WSS_ERROR_INIT;
	int r = run->options->host ? wss_host_room_add(&run->room, run->history, &facts, &other)
				   : wss_host_sum_add(&run->host, run->history, &row->advice,
						      &row->size, &other);

	if (r < 0 && !why->code)
		*why = other;
}

/* Prints a domain's row, unless --host does so at the end, and if it runs adds it to the host. */
static void recommend_domain(struct recommend *run, struct recommend_row *row,
			     const struct wss_target_entry *found, bool counts,
			     struct wss_error *why)
{
	run->total++;
	if (!why->code)
		row_fill(run, row, found->entry.xml, why);
	row_examine(row, found);
	if (found->stats_error.code)
		wss_warn("%s: no balloon statistics: %s", row->domain, found->stats_error.text);
	if (why->code)
		row->advice.status = WSS_ADVICE_FAILED;
	if (counts)
		host_add(run, row, why);
	if (why->code) {
		row->error = why->text;
		row->advice.status = WSS_ADVICE_FAILED;
		if (!run->options->host)
			wss_report_bad_row(run->report, row);
		wss_tally_bad(&run->tally, row->domain, why);
	} else if (!run->options->host) {
		wss_report_row(run->report, row);
		recommend_notes_add(&run->notes, row);
	}
	wss_advice_free(&row->advice);
}

static void recommend_target(struct recommend *run, struct wss_target *target)
{
	const struct wss_target_entry none = {.entry = {.xml = NULL}};
	const struct wss_target_entry *found = target->data ? target->data : &none;
	struct recommend_row row = {.domain = target->name, .uuid = target->uuid};

	if (found->entry.uuid[0]) {
		row.domain = found->entry.name;
		row.uuid = found->entry.uuid;
		row.active = found->entry.active;
		row.size = found->size;
		row.reports_free = found->config && found->config->balloon_reporting;
	}
	recommend_domain(run, &row, found, run->targets.all && row.active, &target->error);
}

/* Returns who may have a guest report its statistics, a clause; NULL: libvirt. */
static const char *statistics_by(const struct wss_hypervisor *hypervisor)
{
	const struct wss_inventory_ops *inventory =
		wss_inventory_find(wss_hypervisor_uri(hypervisor));

	if (wss_hypervisor_conn(hypervisor))
		return NULL;
	return inventory && inventory->statistics_by ? inventory->statistics_by
						     : "only libvirt can ask for them";
}

/* The scheme of an inventory's URI. */
static void inventory_name(const struct wss_hypervisor *hypervisor, char ret_name[16])
{
	const char *uri = wss_hypervisor_uri(hypervisor);

	if (wss_hypervisor_conn(hypervisor))
		uri = "libvirt";
	snprintf(ret_name, 16, "%.*s", (int)strcspn(uri, ":"), uri);
}

/* Reads the metadata from libvirt, then the history. Workers ask libvirt, which may hang. */
static int recommend_targets(struct recommend *run, struct wss_error *err)
{
	struct wss_targets *targets = &run->targets;
	bool all = !run->cli->n_domains;

	if (wss_cli_find_targets(run->cli, WSS_TARGET_DEADLINE_NS, targets, err) < 0 ||
	    (all && wss_hypervisor_ask(targets->hypervisor, WSS_TARGET_DEADLINE_NS, &run->facts,
				       err) < 0) ||
	    wss_targets_read_element(targets, WSS_POLICY_NAMESPACE,
				     WSS_ENTRY_CONFIG | WSS_ENTRY_SIZES, err) < 0)
		return -1;
	if (run->options->host &&
	    wss_host_room_init(&run->room, run->facts.memory_bytes, run->options->reserve_bytes,
			       1 - run->options->probability, err) < 0)
		return -1;
	if (all && wss_host_sum_init(&run->host, run->since, wss_clock_wall_seconds(), err) < 0)
		return -1;
	run->notes.statistics_by = statistics_by(targets->hypervisor);
	/* The table of --host begins with a rank. */
	for (size_t i = 0; i < targets->n && !run->options->host; i++) {
		const struct wss_target_entry *found = targets->list[i]->data;

		wss_report_set_first_width(run->report,
					   wss_name_width(0, found && found->entry.uuid[0]
								     ? found->entry.name
								     : targets->list[i]->name));
	}
	for (size_t i = 0; i < targets->n; i++)
		recommend_target(run, targets->list[i]);
	if (!all)
		return 0;
	if (run->options->host) {
		wss_host_room_finish(&run->room);
		wss_host_room_report(&run->room, run->report);
		return 0;
	}
	if (wss_host_sum_finish(&run->host, run->options->probability, run->facts.memory_bytes,
				err) < 0)
		return -1;
	inventory_name(targets->hypervisor, run->host.inventory);
	wss_report_total(run->report, "host", &wss_host_sum_layout, &run->host);
	return 0;
}

static int recommend_guests(struct recommend *run, struct wss_error *err)
{
	int r = -1;

	if (wss_sizing_open(&run->options->sizing, &run->history, err) == 0)
		r = recommend_targets(run, err);
	return r;
}

static void clean_up(struct recommend *run)
{
	free(run->facts.name);
	wss_host_sum_free(&run->host);
	wss_host_room_free(&run->room);
	wss_history_close(run->history);
	wss_targets_free(&run->targets);
}

/* Prints the recommendations. Returns the exit code. */
static int recommend_print(struct wss_cli *cli, const struct recommend_options *options)
{
	const struct wss_advice_options *advice = &options->sizing.advice;
	struct recommend run = {.cli = cli, .options = options, .notes.named = cli->n_domains > 0};
	struct wss_error err = WSS_ERROR_INIT, out_err = WSS_ERROR_INIT;
	int r;

	run.since = wss_advice_since(advice, wss_clock_wall_seconds());
	if (wss_report_open(stdout, cli->format, &cli->view,
			    advice->what_if_bytes.known ? &recommend_what_if_layout
							: recommend_layout_of(options),
			    &run.report, &err) < 0)
		return wss_cli_error(&err);
	r = recommend_guests(&run, &err);
	if (r < 0 && !run.total) {
		wss_report_free(run.report);
		clean_up(&run);
		return wss_cli_error(&err);
	}
	if (wss_report_close(run.report, &out_err) < 0)
		r = -1;
	if (cli->format == WSS_FORMAT_TABLE && !out_err.code)
		recommend_notes_print(&run.notes, isatty(STDERR_FILENO));
	clean_up(&run);
	if (out_err.code)
		return wss_cli_error(&out_err);
	return r < 0 ? wss_cli_error(&err) : wss_tally_exit_code(&run.tally, run.total);
}

static int recommend_run(struct wss_cli *cli, int argc, char **argv)
{
	struct recommend_options options = RECOMMEND_OPTIONS_INIT;
	struct wss_error err = WSS_ERROR_INIT;
	int code;

	if (recommend_parse(cli, argc, argv, &options, &err) < 0)
		code = wss_cli_error(&err);
	else if (options.backtest.backtest)
		code = recommend_backtest_run(cli, &options);
	else
		code = recommend_print(cli, &options);
	recommend_options_free(&options);
	return code;
}

static const struct wss_option_values values[] = {
	{"flavours", WSS_VALUES_FILES},
	{NULL, NULL},
};

const struct wss_command wss_cmd_recommend = {
	.name = "recommend",
	.summary = "recommend memory sizes from the history",
	.help = wss_help_recommend,
	.long_options = recommend_long_options,
	.take = recommend_take,
	.values = values,
	.layouts = recommend_layouts,
	.takes = WSS_WORDS_DOMAINS,
	.run = recommend_run,
};
