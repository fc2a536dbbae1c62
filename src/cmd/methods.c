/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/cmd.h"
#include "help-text.h"
#include "track/tracker.h"

struct method_row {
	const char *domain;
	const struct wss_tracker_ops *ops;
	bool usable;
	bool chosen; /* what auto would take */
	const char *reason;
	const char *recorder;	     /* NULL: none of that method */
	struct wss_error no_recorder; /* why it is not bpf */
};

static struct wss_value get_domain(const void *row)
{
	return wss_value_text(((const struct method_row *)row)->domain);
}

static struct wss_value get_method(const void *row)
{
	return wss_value_text(((const struct method_row *)row)->ops->name);
}

static struct wss_value get_observes(const void *row)
{
	return wss_value_text(wss_observes_name(((const struct method_row *)row)->ops->observes));
}

static struct wss_value get_granularity(const void *row)
{
	return wss_value_text(((const struct method_row *)row)->ops->granularity);
}

static struct wss_value get_usable(const void *row)
{
	return wss_value_number(((const struct method_row *)row)->usable, WSS_KIND_BOOL);
}

static struct wss_value get_chosen(const void *row)
{
	return wss_value_number(((const struct method_row *)row)->chosen, WSS_KIND_BOOL);
}

static struct wss_value get_summary(const void *row)
{
	return wss_value_text(((const struct method_row *)row)->ops->summary);
}

static struct wss_value get_reason(const void *row)
{
	return wss_value_text(((const struct method_row *)row)->reason);
}

static struct wss_value get_recorder(const void *row)
{
	return wss_value_text(((const struct method_row *)row)->recorder);
}

static struct wss_value get_no_recorder(const void *row)
{
	return wss_value_text(((const struct method_row *)row)->no_recorder.text);
}

/* For people one column says either how it works or why it does not. */
static struct wss_value get_explanation(const void *row)
{
	const struct method_row *method = row;

	return wss_value_text(method->usable ? method->ops->summary : method->reason);
}

static const struct wss_column columns[] = {
	{ "domain", NULL, "DOMAIN", -12, get_domain, "Name of the guest", false },
	{ "method", NULL, "METHOD", -6, get_method, "Name of the method", false },
	{ "usable", NULL, "USABLE", -6, get_usable, "Whether it can measure this guest", false },
	{ "auto", NULL, "AUTO", -4, get_chosen, "Whether it is the one that auto takes", false },
	{ "observes", NULL, "OBSERVES", -8, get_observes,
	  "What the method sees: accesses, writes or residency", false },
	{ "granularity", NULL, "GRANULARITY", -12, get_granularity,
	  "The unit that the method counts in", false },
	{ "summary", NULL, "SUMMARY", -20, get_summary, "How the method works", false },
	{ "reason", NULL, "REASON", -20, get_reason, "Why it cannot measure this guest", false },
	{ "recorder", NULL, "RECORDER", -8, get_recorder,
	  "What would count: bpf (page by page) or KVM's counters", false },
	{ "recorder_reason", NULL, "RECORDER-REASON", -20, get_no_recorder,
	  "Why that is not bpf", false },
	{ "explanation", NULL, "HOW, OR WHY NOT", -30, get_explanation,
	  "How a usable method works, or why it cannot be used", true },
};

static const struct wss_report_layout layout = {
	.schema = "virt-wss/methods/1",
	.array_key = "methods",
	.columns = columns,
	.n_columns = sizeof(columns) / sizeof(columns[0]),
	.shown = "domain,method,usable,auto,explanation",
	.wide = "domain,method,usable,auto,observes,recorder,explanation",
};

static const struct wss_report_layout *const layouts[] = { &layout, NULL };

/*
 * One row a method; guest NULL: for the host. failed: why there can be none, for a guest that
 * is not there or not running.
 */
static void report_methods(struct wss_report *report, const struct wss_host *host,
			   const char *domain, struct wss_guest *guest,
			   const struct wss_error *failed)
{
	bool chosen = false;

	for (size_t i = 0; wss_trackers[i]; i++) {
		struct wss_error why = WSS_ERROR_INIT;
		struct method_row row = { .domain = domain, .ops = wss_trackers[i] };

		if (failed)
			why = *failed;
		else
			row.usable = wss_trackers[i]->probe(host, guest, &why) == 0;
		row.chosen = guest && row.usable && !chosen;
		chosen = chosen || row.chosen;
		row.reason = why.text;
		if (row.usable && wss_trackers[i]->recorder)
			row.recorder = wss_trackers[i]->recorder(host, guest, &row.no_recorder);
		wss_report_row(report, &row);
	}
}

/* In a worker: looks at the guest as a window would; why it could not is its error. */
static void target_attach(struct wss_target *target)
{
	const struct wss_host *host = wss_hypervisor_host(target->hypervisor);

	if (wss_guest_check_ready(target->guest, &target->error) == 0)
		wss_guest_attach(target->guest, host, &target->error);
}

static int report_all(const struct wss_cli *cli, struct wss_targets *targets)
{
	const struct wss_host *host = wss_hypervisor_host(targets->hypervisor);
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_tally tally = { 0 };
	struct wss_report *report;

	if (wss_report_open(stdout, cli->format, &cli->view, &layout, &report, &err) < 0)
		return wss_cli_error(&err);
	wss_report_set_first_width(report, wss_targets_name_width(targets));
	if (!targets->n)
		report_methods(report, host, "(this host)", NULL, NULL);
	for (size_t i = 0; i < targets->n; i++) {
		struct wss_target *target = targets->list[i];
		const char *name = wss_target_name(target);

		if (target->guest) {
			report_methods(report, host, name, target->guest,
				       target->error.code ? &target->error : NULL);
			if (target->error.code == WSS_ERR_TIMEOUT)
				wss_tally_bad(&tally, name, &target->error);
			continue;
		}
		wss_report_bad_row(report, &(struct method_row){ .domain = name,
								 .ops = wss_trackers[0],
								 .reason = target->error.text });
		wss_tally_bad(&tally, name, &target->error);
	}
	if (wss_report_close(report, &err) < 0)
		return wss_cli_error(&err);
	return wss_tally_exit_code(&tally, targets->n);
}

static int methods_run(struct wss_cli *cli, int argc, char **argv)
{
	struct wss_targets targets = { .n = 0 };
	struct wss_error err = WSS_ERROR_INIT;
	int code;

	if (wss_cli_parse(cli, argc, argv, NULL, &err) < 0 ||
	    wss_cli_view(cli, &layout, &err) < 0 ||
	    wss_cli_finish(cli, argc, argv, &err) < 0)
		return wss_cli_error(&err);
	if (wss_cli_open_targets(cli, WSS_TARGET_DEADLINE_NS, &targets, &err) < 0)
		return wss_cli_error(&err);
	code = wss_targets_run(&targets, target_attach, false, &err) < 0 ? wss_cli_error(&err)
									: report_all(cli, &targets);
	wss_targets_free(&targets);
	return code;
}

static const struct option long_options[] = {
	WSS_COMMON_LONG,
	WSS_TABLE_LONG,
	{ NULL, 0, NULL, 0 },
};

static const struct wss_syntax syntax = { WSS_COMMON_SHORT, long_options, NULL };

const struct wss_command wss_cmd_methods = {
	.name = "methods",
	.summary = "list the methods that can measure a guest",
	.help = wss_help_methods,
	.syntax = &syntax,
	.layouts = layouts,
	.takes = WSS_WORDS_DOMAINS,
	.run = methods_run,
};
