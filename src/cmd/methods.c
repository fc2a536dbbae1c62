/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cmd/cmd.h"
#include "cmd/config-report.h"
#include "cmd/methods.h"
#include "help-text.h"
#include "track/tracker.h"

struct method_row {
	const char *domain;
	const struct wss_tracker_ops *ops;
	bool usable;
	bool chosen; /* method that "auto" would choose */
	const char *reason;
	const char *recorder;	     /* NULL: the method has no recorder */
	struct wss_error no_recorder; /* why the recorder is not "bpf" */
	char options[1024];	      /* what the method's own options mean */
};

static struct wss_value method_get_domain(const void *row)
{
	return wss_value_text(((const struct method_row *)row)->domain);
}

static struct wss_value method_get_method(const void *row)
{
	return wss_value_text(((const struct method_row *)row)->ops->name);
}

static struct wss_value method_get_observes(const void *row)
{
	return wss_value_text(wss_observes_name(((const struct method_row *)row)->ops->observes));
}

static struct wss_value method_get_granularity(const void *row)
{
	return wss_value_text(((const struct method_row *)row)->ops->granularity);
}

static struct wss_value method_get_usable(const void *row)
{
	return wss_value_number(((const struct method_row *)row)->usable, WSS_KIND_BOOL);
}

static struct wss_value method_get_chosen(const void *row)
{
	return wss_value_number(((const struct method_row *)row)->chosen, WSS_KIND_BOOL);
}

static struct wss_value method_get_summary(const void *row)
{
	return wss_value_text(((const struct method_row *)row)->ops->summary);
}

static struct wss_value method_get_reason(const void *row)
{
	return wss_value_text(((const struct method_row *)row)->reason);
}

static struct wss_value method_get_recorder(const void *row)
{
	return wss_value_text(((const struct method_row *)row)->recorder);
}

static struct wss_value method_get_no_recorder(const void *row)
{
	return wss_value_text(((const struct method_row *)row)->no_recorder.text);
}

static struct wss_value method_get_options(const void *row)
{
	return wss_value_text(((const struct method_row *)row)->options);
}

/* A table has one column for both: how a method works, or why it cannot be used. */
static struct wss_value method_get_explanation(const void *row)
{
	const struct method_row *method = row;

	return wss_value_text(method->usable ? method->ops->summary : method->reason);
}

static const struct wss_column columns[] = {
	{"domain", NULL, "DOMAIN", -12, method_get_domain, "Name of the guest", false},
	{"method", NULL, "METHOD", -6, method_get_method, "Name of the method", false},
	{"usable", NULL, "USABLE", -6, method_get_usable, "Whether it can measure this guest",
	 false},
	{"auto", NULL, "AUTO", -4, method_get_chosen, "Whether auto chooses it", false},
	{"observes", NULL, "OBSERVES", -8, method_get_observes,
	 "Kind of use observed: accesses, writes or residency", false},
	{"granularity", NULL, "GRANULARITY", -12, method_get_granularity,
	 "The unit that the method counts in", false},
	{"summary", NULL, "SUMMARY", -20, method_get_summary, "How the method works", false},
	{"reason", NULL, "REASON", -20, method_get_reason, "Why it cannot measure this guest",
	 false},
	{"recorder", NULL, "RECORDER", -8, method_get_recorder,
	 "Source of the counts: bpf (page by page) or KVM's counters", false},
	{"recorder_reason", NULL, "RECORDER-REASON", -20, method_get_no_recorder,
	 "Why the source is not bpf", false},
	{"explanation", NULL, "DETAILS", -30, method_get_explanation,
	 "How a usable method works, or why it cannot be used", true},
	{"options", NULL, "OPTIONS", -20, method_get_options,
	 "The method's own options, written after its name", false},
};

static const struct wss_report_layout layout = {
	.schema = "virt-wss/methods/1",
	.array_key = "methods",
	.columns = columns,
	.n_columns = sizeof(columns) / sizeof(columns[0]),
	.shown = "domain,method,usable,auto,explanation",
	.wide = "domain,method,usable,auto,observes,recorder,explanation",
};

static const struct wss_report_layout *const layouts[] = { &layout, &wss_config_layout, NULL };

/* One method's answer about a guest or the host. */
struct method_answer {
	bool usable;
	struct wss_error why; /* why it is not usable */
	const char *recorder;
	struct wss_error no_recorder;
};

/* Makes an answer for each of wss_trackers, in their order; NULL when out of memory. */
static struct method_answer *answers_new(void)
{
	size_t n = 0;

	while (wss_trackers[n])
		n++;
	return calloc(n, sizeof(struct method_answer));
}

/* Asks all methods about a guest, or with guest NULL about the host. */
static void ask_methods(const struct wss_host *host, struct wss_guest *guest,
			struct method_answer *answers)
{
	for (size_t i = 0; wss_trackers[i]; i++) {
		struct method_answer *answer = &answers[i];

		answer->usable = wss_trackers[i]->probe(host, guest, &answer->why) == 0;
		if (answer->usable && wss_trackers[i]->recorder)
			answer->recorder = wss_trackers[i]->recorder(host, guest,
								     &answer->no_recorder);
	}
}

/* Runs in a worker; examines the guest as a window would. */
static void target_ask(struct wss_target *target)
{
	const struct wss_host *host = wss_hypervisor_host(target->hypervisor);
	struct method_answer *answers = answers_new();

	target->data = answers;
	target->release_data = free;
	if (!answers)
		wss_error_set(&target->error, WSS_ERR_NO_MEMORY, "out of memory");
	else if (wss_guest_check_ready(target->guest, &target->error) == 0 &&
		 wss_guest_attach(target->guest, host, &target->error) == 0)
		ask_methods(host, target->guest, answers);
}

/* Describes the method's own options, as a user would write them after its name. */
static void describe_options(struct method_row *row)
{
	const struct wss_method_option *option = row->ops->options;
	size_t len = 0;

	for (; option && option->name && len < sizeof(row->options); option++)
		len += (size_t)snprintf(row->options + len, sizeof(row->options) - len,
					"%s%s=: %s", len ? "; " : "", option->name, option->help);
}

/*
 * Prints a row for each method. failed: why the methods could not be asked, because the guest
 * does not run.
 */
static void report_methods(struct wss_report *report, const char *domain, bool is_guest,
			   const struct method_answer *answers, const struct wss_error *failed)
{
	bool chosen = false;

	for (size_t i = 0; wss_trackers[i]; i++) {
		struct method_row row = { .domain = domain, .ops = wss_trackers[i] };

		if (failed) {
			row.reason = failed->text;
		} else {
			row.usable = answers[i].usable;
			row.reason = answers[i].why.text;
			row.recorder = answers[i].recorder;
			row.no_recorder = answers[i].no_recorder;
		}
		describe_options(&row);
		row.chosen = is_guest && row.usable && !chosen;
		chosen = chosen || row.chosen;
		wss_report_row(report, &row);
	}
}

static int report_all(const struct wss_cli *cli, struct wss_targets *targets)
{
	wss_auto_free struct method_answer *host_answers = answers_new();
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_tally tally = { 0 };
	struct wss_report *report;

	if (!host_answers)
		wss_error_set(&err, WSS_ERR_NO_MEMORY, "out of memory");
	if (!host_answers ||
	    wss_report_open(stdout, cli->format, &cli->view, &layout, &report, &err) < 0)
		return wss_cli_error(&err);
	wss_report_set_first_width(report, wss_targets_name_width(targets));
	wss_report_hold(report);
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
		wss_report_bad_row(report, &(struct method_row){ .domain = name,
								 .ops = wss_trackers[0],
								 .reason = target->error.text });
		wss_tally_bad(&tally, name, &target->error);
	}
	if (wss_report_close(report, &err) < 0)
		return wss_cli_error(&err);
	return wss_tally_exit_code(&tally, targets->n);
}

enum { OPT_CONFIG = 1 };

static const struct option long_options[] = {
	WSS_COMMON_LONG,
	WSS_TABLE_LONG,
	{"config", no_argument, NULL, OPT_CONFIG},
	{NULL, 0, NULL, 0},
};

static int methods_take(void *opaque, int c, const char *value, struct wss_error *err)
{
	bool *config = opaque;

	(void)value;
	(void)err;
	*config |= c == OPT_CONFIG;
	return 0;
}

static int methods_parse(struct wss_cli *cli, int argc, char **argv, bool *ret_config,
			 struct wss_error *err)
{
	if (wss_cli_parse(cli, argc, argv, ret_config, err) < 0 ||
	    wss_cli_view(cli, *ret_config ? &wss_config_layout : &layout, err) < 0 ||
	    wss_cli_finish(cli, argc, argv, err) < 0)
		return -1;
	if (*ret_config && cli->qmp)
		return wss_error_set(err, WSS_ERR_USAGE,
				     "--config: a guest that --qmp names has no domain XML");
	return 0;
}

static int methods_run(struct wss_cli *cli, int argc, char **argv)
{
	struct wss_targets targets = { .n = 0 };
	struct wss_error err = WSS_ERROR_INIT;
	bool config = false;
	int code;

	if (methods_parse(cli, argc, argv, &config, &err) < 0)
		return wss_cli_error(&err);
	if (wss_cli_open_targets(cli, WSS_TARGET_DEADLINE_NS, &targets, &err) < 0)
		return wss_cli_error(&err);
	if (config)
		code = wss_methods_config(cli, &targets);
	else
		code = wss_targets_run(&targets, target_ask, false, &err) < 0 ? wss_cli_error(&err)
									      : report_all(cli, &targets);
	wss_targets_free(&targets);
	return code;
}

static const struct wss_syntax syntax = { WSS_COMMON_SHORT, long_options, methods_take };

const struct wss_command wss_cmd_methods = {
	.name = "methods",
	.summary = "list the methods that can measure a guest",
	.help = wss_help_methods,
	.syntax = &syntax,
	.layouts = layouts,
	.takes = WSS_WORDS_DOMAINS,
	.run = methods_run,
};
