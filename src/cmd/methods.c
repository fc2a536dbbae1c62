/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/log.h"
#include "base/number.h"
#include "base/text.h"
#include "cmd/cmd.h"
#include "help-text.h"
#include "measure/tracker.h"
#include "sizing/config-report.h"

struct methods_options {
	bool config;  /* the guests' configurations instead */
	bool explain; /* lines of text instead of a table */
};

struct method_row {
	const char *domain;
	const struct wss_tracker_ops *ops;
	bool usable;
	bool chosen; /* method that "auto" would choose */
	const char *reason;
	const char *recorder;	      /* NULL: the method has no recorder */
	struct wss_error no_recorder; /* why the recorder is not "bpf" */
	char options[1024];	      /* what the method's own options mean */
};

static const void *ops_of(const void *row)
{
	return ((const struct method_row *)row)->ops;
}

static struct wss_value method_get_observes(const void *row)
{
	return wss_value_text(wss_observes_name(((const struct method_row *)row)->ops->observes));
}

/* A table has one column for both: how a method works, or why it cannot be used. */
static struct wss_value method_get_explanation(const void *row)
{
	const struct method_row *method = row;

	return wss_value_text(method->usable ? method->ops->summary : method->reason);
}

#define FIELD(member, kind) WSS_FIELD(struct method_row, member, kind)
#define OPS(member, kind) WSS_FIELD_OF(ops_of, struct wss_tracker_ops, member, kind)

static const struct wss_column columns[] = {
	{"domain", NULL, "DOMAIN", -12, FIELD(domain, TEXT), "Name of the guest"},
	{"method", NULL, "METHOD", -6, OPS(name, TEXT), "Name of the method"},
	{"usable", NULL, "USABLE", -6, FIELD(usable, BOOL), "Whether it can measure this guest"},
	{"auto", NULL, "AUTO", -4, FIELD(chosen, BOOL), "Whether auto chooses it"},
	{"observes", NULL, "OBSERVES", -8, WSS_GET(method_get_observes),
	 "Kind of use observed: accesses, writes or residency"},
	{"granularity", NULL, "GRANULARITY", -12, OPS(granularity, TEXT),
	 "The unit that the method counts in"},
	{"summary", NULL, "SUMMARY", -20, OPS(summary, TEXT), "How the method works"},
	{"costs", NULL, "COSTS", -20, OPS(costs, TEXT), "What a window costs the guest"},
	{"limits", NULL, "LIMITS", -20, OPS(limits, TEXT), "Where its figure may be wrong"},
	{"reason", NULL, "REASON", -20, FIELD(reason, TEXT), "Why it cannot measure this guest"},
	{"recorder", NULL, "RECORDER", -8, FIELD(recorder, TEXT),
	 "Source of the counts: bpf (page by page) or KVM's counters"},
	{"recorder_reason", NULL, "RECORDER-REASON", -20, FIELD(no_recorder.text, TEXT),
	 "Why the source is not bpf"},
	{"explanation", NULL, "DETAILS", -30, WSS_GET(method_get_explanation),
	 "How a usable method works, or why it cannot be used"},
	{"options", NULL, "OPTIONS", -20, FIELD(options, TEXT),
	 "The method's own options, written after its name"},
};

static const struct wss_report_layout layout = {
	.schema = "virt-wss/methods/1",
	.array_key = "methods",
	.columns = columns,
	.n_columns = sizeof(columns) / sizeof(columns[0]),
	.table_only = "explanation",
	.shown = "domain,method,usable,auto,explanation",
	.wide = "domain,method,usable,auto,observes,recorder,explanation",
};

static const struct wss_report_layout *const layouts[] = {&layout, &wss_config_layout, NULL};

/* One method's answer about a guest or the host. */
struct method_answer {
	bool usable;
	struct wss_error why; /* why it is not usable */
	const char *recorder;
	struct wss_error no_recorder;
};

/* Makes an answer for each of wss_trackers, in their order. */
static struct method_answer *answers_new(void)
{
	size_t n = 0;

	while (wss_trackers[n])
		n++;
	return wss_xcalloc(n, sizeof(struct method_answer));
}

/* Asks all methods about a guest, or with guest NULL about the host. */
static void ask_methods(const struct wss_host *host, struct wss_guest *guest,
			struct method_answer *answers)
{
	for (size_t i = 0; wss_trackers[i]; i++) {
		struct method_answer *answer = &answers[i];

		answer->usable = wss_trackers[i]->probe(host, guest, &answer->why) == 0;
		if (answer->usable && wss_trackers[i]->recorder)
			answer->recorder =
				wss_trackers[i]->recorder(host, guest, &answer->no_recorder);
	}
}

/* Runs in a worker; examines the guest as a window would. */
static void target_ask(struct wss_target *target)
{
	const struct wss_host *host = wss_hypervisor_host(target->hypervisor);
	struct method_answer *answers = answers_new();

	target->data = answers;
	target->release_data = free;
	if (wss_guest_check_ready(target->guest, &target->error) == 0 &&
	    wss_guest_attach(target->guest, host, &target->error) == 0)
		ask_methods(host, target->guest, answers);
}

/* Describes the method's own options, as a user would write them after its name. */
static void describe_options(struct method_row *row)
{
	const struct wss_method_option *option = row->ops->options;
	size_t len = 0;

	for (; option && option->name && len < sizeof(row->options); option++)
		len += (size_t)snprintf(row->options + len, sizeof(row->options) - len, "%s%s=: %s",
					len ? "; " : "", option->name, option->help);
}

/* Prints a row as lines of text, which tell more than fits a table. */
static void explain(const struct method_row *row)
{
	char name[WSS_NAME_MAX];

	snprintf(name, sizeof(name), "%s", row->domain);
	wss_text_sanitize(name);
	printf("%s: %s %s\n    %s\n", name, row->ops->name,
	       row->chosen   ? "can measure it, and is chosen by default"
	       : row->usable ? "can measure it"
			     : "cannot measure it",
	       row->ops->summary);
	if (!row->usable)
		printf("    why not: %s\n", row->reason);
	printf("    counts:  %s, %s\n    costs:   %s\n    limits:  %s\n",
	       wss_observes_name(row->ops->observes), row->ops->granularity, row->ops->costs,
	       row->ops->limits);
	if (row->recorder)
		printf("    reads:   %s%s%s\n", row->recorder, row->no_recorder.code ? ", as " : "",
		       row->no_recorder.code ? row->no_recorder.text : "");
	if (row->options[0])
		printf("    options: %s\n", row->options);
}

/*
 * Prints a row for each method, to report, or as text if that is NULL. failed: why the methods could not be asked, because the guest
 * does not run.
 */
static void report_methods(struct wss_report *report, const char *domain, bool is_guest,
			   const struct method_answer *answers, const struct wss_error *failed)
{
	bool chosen = false;

	for (size_t i = 0; wss_trackers[i]; i++) {
		struct method_row row = {.domain = domain, .ops = wss_trackers[i]};

		if (failed) {
			row.reason = failed->text;
		} else {
			row.usable = answers[i].usable;
			row.reason = answers[i].why.text;
			row.recorder = answers[i].recorder;
			row.no_recorder = answers[i].no_recorder;
		}
		describe_options(&row);
		row.chosen = is_guest && row.usable && !chosen && !row.ops->by_name_only;
		chosen = chosen || row.chosen;
		if (report)
			wss_report_row(report, &row);
		else
			explain(&row);
	}
}

static int report_all(const struct wss_cli *cli, const struct methods_options *options,
		      struct wss_targets *targets)
{
	wss_auto_free struct method_answer *host_answers = answers_new();
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_tally tally = {0};
	struct wss_report *report = NULL;

	if (!(options->explain && cli->format == WSS_FORMAT_TABLE)) {
		if (wss_report_open(stdout, cli->format, &cli->view, &layout, &report, &err) < 0)
			return wss_cli_error(&err);
		wss_report_set_first_width(report, wss_targets_name_width(targets));
		wss_report_hold(report);
	}
	if (!targets->n) {
		ask_methods(wss_hypervisor_host(targets->hypervisor), NULL, host_answers);
		report_methods(report, "(this host)", false, host_answers, NULL);
	}
	for (size_t i = 0; i < targets->n; i++) {
		struct wss_target *target = targets->list[i];
		const char *name = wss_target_name(target);

		if (target->guest) {
			report_methods(report, name, true, target->data,
				       target->error.code ? &target->error : NULL);
			if (target->error.code == WSS_ERR_TIMEOUT)
				wss_tally_bad(&tally, name, &target->error);
			continue;
		}
		if (report)
			wss_report_bad_row(report,
					   &(struct method_row){.domain = name,
								.ops = wss_trackers[0],
								.reason = target->error.text});
		wss_tally_bad(&tally, name, &target->error);
	}
	if (wss_report_close(report, &err) < 0 || wss_io_flush_output(&err) < 0)
		return wss_cli_error(&err);
	return wss_tally_exit_code(&tally, targets->n);
}

/* --- configurations --- */

/* A guest's findings. */
struct config_target {
	size_t n;
	struct wss_config_finding findings[WSS_CONFIG_SETTINGS];
};

/* Runs in a worker, because the statistics come from libvirt. Without them some gains are unknown. */
static void target_examine(struct wss_target *target)
{
	struct wss_guest *guest = target->guest;
	struct config_target *config = wss_xcalloc(1, sizeof(*config));
	struct wss_balloon_stats stats = {.actual_bytes = {.known = false}};
	struct wss_error ignored = WSS_ERROR_INIT;
	struct wss_config_facts facts;

	target->data = config;
	target->release_data = free;
	if (guest->state == WSS_GUEST_RUNNING) {
		/* QEMU shows what the configuration does not. */
		wss_guest_attach(guest, wss_hypervisor_host(target->hypervisor), &ignored);
		wss_error_clear(&ignored);
		if (guest->ops->balloon_stats)
			guest->ops->balloon_stats(guest, &stats, &ignored);
	}
	facts = wss_config_facts_of(&guest->config, &stats);
	facts.no_history = true;
	facts.is_off = guest->state == WSS_GUEST_SHUTOFF;
	config->n = wss_config_advise(&guest->config, &facts, config->findings);
}

static void target_report(struct wss_report *report, const struct wss_target *target)
{
	const struct config_target *config = target->data;
	struct wss_config_row row = {.domain = wss_target_name(target),
				     .uuid = target->guest->config.uuid};

	for (size_t i = 0; i < config->n; i++) {
		row.finding = &config->findings[i];
		wss_report_row(report, &row);
	}
	if (!config->n)
		wss_report_row(report, &row);
}

static void report_bad(struct wss_report *report, const struct wss_target *target,
		       struct wss_tally *tally)
{
	const struct wss_config_row row = {.domain = wss_target_name(target),
					   .uuid = target->uuid,
					   .error = target->error.text};

	wss_report_bad_row(report, &row);
	wss_tally_bad(tally, row.domain, &target->error);
}

/* Prints what the guests' configurations cost. Returns the exit code. */
static int methods_config(const struct wss_cli *cli, struct wss_targets *targets)
{
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_tally tally = {.bad = 0};
	struct wss_report *report;
	size_t n_unseen = 0;

	if (wss_targets_run(targets, target_examine, false, &err) < 0 ||
	    wss_report_open(stdout, cli->format, &cli->view, &wss_config_layout, &report, &err) < 0)
		return wss_cli_error(&err);
	wss_report_set_first_width(report, wss_targets_name_width(targets));
	wss_report_hold(report);
	for (size_t i = 0; i < targets->n; i++) {
		if (targets->list[i]->error.code)
			report_bad(report, targets->list[i], &tally);
		else
			target_report(report, targets->list[i]);
	}
	if (wss_report_close(report, &err) < 0)
		return wss_cli_error(&err);
	for (size_t i = 0; i < targets->n && cli->format == WSS_FORMAT_TABLE; i++) {
		const struct config_target *config = targets->list[i]->data;

		if (targets->list[i]->error.code)
			continue;
		wss_config_notes(wss_target_name(targets->list[i]), config->findings, config->n);
		n_unseen += targets->list[i]->guest->config.balloon_unseen;
	}
	if (n_unseen)
		wss_log(WSS_LOG_INFO,
			"%zu guest%s: not known whether there is a balloon, as only libvirt has its domain XML",
			n_unseen, wss_plural(n_unseen));
	return wss_tally_exit_code(&tally, targets->n);
}

/* --- the command --- */

enum { OPT_CONFIG = 1, OPT_EXPLAIN };

static const struct option long_options[] = {
	WSS_COMMON_LONG,
	WSS_TABLE_LONG,
	{"config", no_argument, NULL, OPT_CONFIG},
	{"explain", no_argument, NULL, OPT_EXPLAIN},
	{NULL, 0, NULL, 0},
};

static int methods_take(void *opaque, int c, const char *value, struct wss_error *err)
{
	struct methods_options *options = opaque;

	(void)value;
	(void)err;
	options->config |= c == OPT_CONFIG;
	options->explain |= c == OPT_EXPLAIN;
	return 0;
}

static int methods_parse(struct wss_cli *cli, int argc, char **argv,
			 struct methods_options *options, struct wss_error *err)
{
	if (wss_cli_parse(cli, argc, argv, options, err) < 0 ||
	    wss_cli_view(cli, options->config ? &wss_config_layout : &layout, err) < 0 ||
	    wss_cli_finish(cli, argc, argv, err) < 0)
		return -1;
	if (options->config && options->explain)
		return wss_error_set(err, WSS_ERR_USAGE,
				     "--explain is about methods, not about --config");
	if (options->config && cli->qmp)
		return wss_error_set(err, WSS_ERR_USAGE,
				     "--config: a guest that --qmp names has no domain XML");
	return 0;
}

static int methods_run(struct wss_cli *cli, int argc, char **argv)
{
	struct wss_targets targets = {.n = 0};
	struct wss_error err = WSS_ERROR_INIT;
	struct methods_options options = {.config = false};
	int code;

	if (methods_parse(cli, argc, argv, &options, &err) < 0)
		return wss_cli_error(&err);
	if (wss_cli_open_targets(cli, WSS_TARGET_DEADLINE_NS, &targets, &err) < 0)
		return wss_cli_error(&err);
	if (options.config)
		code = methods_config(cli, &targets);
	else
		code = wss_targets_run(&targets, target_ask, false, &err) < 0
			       ? wss_cli_error(&err)
			       : report_all(cli, &options, &targets);
	wss_targets_free(&targets);
	return code;
}

const struct wss_command wss_cmd_methods = {
	.name = "methods",
	.summary = "list the methods that can measure a guest",
	.help = wss_help_methods,
	.long_options = long_options,
	.take = methods_take,
	.layouts = layouts,
	.takes = WSS_WORDS_DOMAINS,
	.run = methods_run,
};
