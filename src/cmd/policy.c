/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/number.h"
#include "base/units.h"
#include "cmd/cmd.h"
#include "help-text.h"
#include "history/history.h"
#include "host/inventory.h"
#include "measure/policy-element.h"
#include "measure/policy-file.h"
#include "show/width.h"
#include "sizing/advice.h"

enum verb { VERB_GET, VERB_SET, VERB_CLEAR };

/* Changes that "set" makes. A value that is given but unknown removes the setting. */
struct change {
	bool given;
	struct wss_amount to;
};

struct policy_options {
	enum verb verb;
	struct change opt_out, minimum, maximum, headroom, period;
};

static const struct wss_report_layout layout;

enum { OPT_OPT_OUT = 1, OPT_MINIMUM, OPT_MAXIMUM, OPT_HEADROOM, OPT_PERIOD };

static const struct option long_options[] = {
	WSS_COMMON_LONG,
	WSS_TABLE_LONG,
	{"opt-out", required_argument, NULL, OPT_OPT_OUT},
	{"minimum", required_argument, NULL, OPT_MINIMUM},
	{"maximum", required_argument, NULL, OPT_MAXIMUM},
	{"headroom", required_argument, NULL, OPT_HEADROOM},
	{"period", required_argument, NULL, OPT_PERIOD},
	{NULL, 0, NULL, 0},
};

static int parse_opt_out(const char *value, struct change *change, struct wss_error *err)
{
	bool yes = !strcmp(value, "yes");

	if (!yes && strcmp(value, "no"))
		return wss_error_set(err, WSS_ERR_USAGE, "--opt-out: '%s' is not yes or no", value);
	*change = (struct change){true, wss_amount_of(yes)};
	return 0;
}

static int parse_change(int c, const char *value, struct policy_options *options,
			struct wss_error *err)
{
	struct change *change = c == OPT_MINIMUM    ? &options->minimum
				: c == OPT_MAXIMUM  ? &options->maximum
				: c == OPT_HEADROOM ? &options->headroom
						    : &options->period;

	*change = (struct change){.given = true, .to = {.known = strcmp(value, "none") != 0}};
	if (!change->to.known)
		return 0;
	switch (c) {
	case OPT_MINIMUM:
		return wss_size_parse(value, "--minimum", &change->to.value, err);
	case OPT_MAXIMUM:
		return wss_size_parse(value, "--maximum", &change->to.value, err);
	case OPT_HEADROOM:
		return wss_whole_percent_parse(value, 0, WSS_POLICY_HEADROOM_MAX, "--headroom",
					       &change->to.value, err);
	default:
		return wss_duration_parse(value, WSS_POLICY_PERIOD_MAX_NS, "--period",
					  &change->to.value, err);
	}
}

static int policy_option_take(void *opaque, int c, const char *value, struct wss_error *err)
{
	struct policy_options *options = opaque;

	if (c == OPT_OPT_OUT)
		return parse_opt_out(value, &options->opt_out, err);
	return parse_change(c, value, options, err);
}

static int parse_verb(struct wss_cli *cli, struct policy_options *options, struct wss_error *err)
{
	static const char *const names[] = {"get", "set", "clear"};

	for (size_t i = 0; cli->n_domains && i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(cli->domains[0], names[i]))
			continue;
		options->verb = (enum verb)i;
		cli->domains++;
		cli->n_domains--;
		return 0;
	}
	return wss_error_set(err, WSS_ERR_USAGE, "policy: expected get, set or clear (see --help)");
}

static int policy_options_check(const struct wss_cli *cli, const struct policy_options *options,
				struct wss_error *err)
{
	bool changes = options->opt_out.given || options->minimum.given || options->maximum.given ||
		       options->headroom.given || options->period.given;

	if (changes != (options->verb == VERB_SET))
		return wss_error_set(err, WSS_ERR_USAGE,
				     changes ? "policy: only set takes values"
					     : "policy set: nothing to set (see --help)");
	if (options->verb != VERB_GET &&
	    wss_cli_refuse_view(cli, options->verb == VERB_SET ? "policy set" : "policy clear",
				err) < 0)
		return -1;
	if (cli->all && cli->n_domains)
		return wss_error_set(err, WSS_ERR_USAGE, "--all and DOMAIN exclude each other");
	if (options->verb != VERB_GET && !cli->n_domains && !cli->all)
		return wss_error_set(err, WSS_ERR_USAGE, "policy: name a DOMAIN, or --all");
	if (cli->qmp)
		return wss_error_set(
			err, WSS_ERR_USAGE,
			"--qmp: policy takes no socket: use -c kvm:/// policy get, which shows the policy of the same guest");
	return wss_cli_check_domains(cli, err);
}

static int policy_parse(struct wss_cli *cli, int argc, char **argv, struct policy_options *options,
			struct wss_error *err)
{
	if (wss_cli_parse(cli, argc, argv, options, err) < 0 || wss_cli_view(cli, &layout, err) < 0)
		return -1;
	cli->domains = argv + optind;
	cli->n_domains = argc - optind;
	return parse_verb(cli, options, err) < 0 ? -1 : policy_options_check(cli, options, err);
}

struct policy_row {
	const char *domain;
	const char *uuid;
	const char *error;
	struct wss_policy policy;
};

static struct wss_value policy_get_opt_out(const void *row)
{
	const struct policy_row *r = row;

	return r->error ? wss_value_absent() : wss_value_number(r->policy.opt_out, WSS_KIND_BOOL);
}

#define FIELD(member, kind) WSS_FIELD(struct policy_row, member, kind)

static const struct wss_column columns[] = {
	{"domain", NULL, "DOMAIN", -12, FIELD(domain, TEXT), "Name of the guest"},
	{"uuid", NULL, "UUID", -36, FIELD(uuid, TEXT), "UUID of the guest"},
	{"opt_out", NULL, "OPT-OUT", -7, WSS_GET(policy_get_opt_out),
	 "Whether the guest is never to be measured or changed"},
	{"minimum_bytes", NULL, "MINIMUM", 8, FIELD(policy.minimum_bytes, BYTES),
	 "Smallest size to recommend or to leave to the guest, in bytes"},
	{"maximum_bytes", NULL, "MAXIMUM", 8, FIELD(policy.maximum_bytes, BYTES),
	 "Largest size to recommend, in bytes"},
	{"headroom_percent", NULL, "HEADROOM", 8, FIELD(policy.headroom_percent, PERCENT),
	 "Headroom on top of the working set, in percent"},
	{"period_seconds", NULL, "PERIOD", 8, FIELD(policy.period_ns, DURATION),
	 "Shortest time between two measurements by periodic rounds, in seconds"},
	{"error", NULL, "ERROR", -30, FIELD(error, TEXT), "Why the policy could not be read"},
};

#define KEYS "domain,opt_out,minimum_bytes,maximum_bytes,headroom_percent,period_seconds"

static const struct wss_report_layout layout = {
	.schema = "virt-wss/policies/1",
	.array_key = "policies",
	.columns = columns,
	.n_columns = sizeof(columns) / sizeof(columns[0]),
	.shown = KEYS,
	.wide = KEYS,
};

static const struct wss_report_layout *const layouts[] = {&layout, NULL};

struct policy_run {
	const struct wss_cli *cli;
	const struct policy_options *options;
	struct wss_report *report;
	struct wss_history *history; /* to warn of limits; NULL: there is none */
	struct wss_tally tally;
	size_t total;
};

/* Data of a target's worker. It has its own copies, because it may outlive the command. */
struct policy_work {
	struct policy_options options;
	struct wss_conn_entry entry;
	struct wss_policy policy;
	/* Of a guest that has got a new minimum, whether or not it runs. */
	struct wss_amount assigned_bytes;
	bool done; /* the policy has been read or changed */
};

static void policy_work_free(void *opaque)
{
	struct policy_work *work = opaque;

	free(work->entry.xml);
	free(work);
}

static void policy_apply(const struct policy_options *options, struct wss_policy *policy)
{
	if (options->opt_out.given)
		policy->opt_out = options->opt_out.to.value;
	if (options->minimum.given)
		policy->minimum_bytes = options->minimum.to;
	if (options->maximum.given)
		policy->maximum_bytes = options->maximum.to;
	if (options->headroom.given)
		policy->headroom_percent = options->headroom.to;
	if (options->period.given)
		policy->period_ns = options->period.to;
}

/* Stores the new policy, or removes one without any setting. */
static int policy_store(struct wss_target *target, struct policy_work *work, struct wss_error *err)
{
	wss_auto_free char *xml = NULL;

	policy_apply(&work->options, &work->policy);
	if (wss_policy_check(&work->policy, err) < 0)
		return -1;
	if (!wss_policy_is_empty(&work->policy) && wss_policy_write(&work->policy, &xml, err) < 0)
		return -1;
	if (wss_deadline_check(&target->deadline, err) < 0)
		return -1;
	return wss_conn_set_metadata(wss_hypervisor_conn(target->hypervisor), work->entry.uuid,
				     WSS_POLICY_NAMESPACE, WSS_POLICY_PREFIX, xml, err);
}

/* Of a guest without metadata. */
static int policy_get_file(struct wss_target *target, struct policy_work *work,
			   struct wss_error *err)
{
	const struct wss_domain_ref ref = {target->name, target->uuid};
	struct wss_guest *guest = NULL;
	int r;

	if (work->options.verb != VERB_GET)
		return wss_error_set(
			err, WSS_ERR_UNSUPPORTED,
			"a guest without libvirt has its policy in a file: edit " WSS_SYSCONFDIR
			"/virt-wss/policy.d/*.conf");
	if (wss_hypervisor_guest(target->hypervisor, &ref, &target->deadline, &guest, err) < 0)
		return -1;
	snprintf(work->entry.uuid, sizeof(work->entry.uuid), "%s", guest->config.uuid);
	snprintf(work->entry.name, sizeof(work->entry.name), "%s", guest->config.name);
	r = wss_policy_file_read(guest, &work->policy, err);
	wss_guest_free(guest);
	return r;
}

/* Runs in a worker. "clear" also removes a policy that cannot be read. */
static void policy_step(struct wss_target *target)
{
	const struct wss_domain_ref ref = {target->name, target->uuid};
	struct wss_conn *conn = wss_hypervisor_conn(target->hypervisor);
	struct policy_work *work = target->data;
	struct wss_error *err = &target->error;
	enum verb verb = work->options.verb;

	if (!conn) {
		work->done = policy_get_file(target, work, err) == 0;
		return;
	}
	if (wss_conn_metadata(conn, &ref, WSS_POLICY_NAMESPACE, &work->entry, err) < 0)
		return;
	if (verb != VERB_CLEAR && work->entry.xml &&
	    wss_policy_read(work->entry.xml, &work->policy, err) < 0)
		return;
	work->done = verb == VERB_GET || policy_store(target, work, err) == 0;
	if (work->done && work->options.minimum.given)
		work->assigned_bytes = wss_conn_size(conn, work->entry.uuid).maximum_bytes;
}

static void warn_limit(const struct policy_work *work, const char *limit, struct wss_amount bytes,
		       const char *beyond, struct wss_amount figure)
{
	char size[16], other[16], name[WSS_NAME_SHORT_MAX];

	wss_name_shorten(work->entry.name, name);
	wss_size_format(bytes.value, size, sizeof(size));
	wss_size_format(figure.value, other, sizeof(other));
	wss_warn("%s: the %s of %s is %s %s", name, limit, size, beyond, other);
}

/* Returns the largest working set in the history; unknown if there is none. */
static struct wss_amount peak_of(struct wss_history *history, const struct policy_work *work)
{
	const struct wss_advice_options options = WSS_ADVICE_OPTIONS_INIT;
	const struct wss_advice_guest guest = {.uuid = work->entry.uuid, .policy = &work->policy};
	time_t since = wss_advice_since(&options, wss_clock_wall_seconds());
	struct wss_error ignored = WSS_ERROR_INIT;
	struct wss_amount peak;
	struct wss_advice advice;

	if (!history || wss_advice_read(history, &guest, since, &options, &advice, &ignored) < 0)
		return (struct wss_amount){.known = false};
	/* Also of a history that is too short for a size. */
	peak = (struct wss_amount){advice.has_series && advice.series.summary.samples,
				   advice.series.summary.max_bytes};
	wss_advice_free(&advice);
	return peak;
}

/* Warns of a new limit that the guest's memory or its need contradicts. */
static void policy_warn(struct policy_run *run, const struct policy_work *work)
{
	struct wss_amount minimum = work->options.minimum.to, maximum = work->options.maximum.to;
	struct wss_amount peak = {.known = false};

	if (minimum.known && work->assigned_bytes.value &&
	    minimum.value > work->assigned_bytes.value)
		warn_limit(work, "minimum", minimum, "above its assigned memory of",
			   work->assigned_bytes);
	if (maximum.known)
		peak = peak_of(run->history, work);
	if (peak.known && maximum.value < peak.value)
		warn_limit(work, "maximum", maximum, "below its peak working set of", peak);
}

static void policy_report(struct policy_run *run, struct wss_target *target)
{
	const struct policy_work *work = target->data; /* NULL: the worker was left behind */
	struct policy_row row = {.domain = target->name, .uuid = target->uuid ? target->uuid : ""};
	bool bad = target->error.code != WSS_OK;

	run->total++;
	if (work && work->entry.uuid[0]) {
		row.domain = work->entry.name;
		row.uuid = work->entry.uuid;
		row.policy = work->policy;
	}
	if (bad) {
		row.error = target->error.text;
		wss_tally_bad(&run->tally, row.domain, &target->error);
	} else if (work && run->options->verb == VERB_SET) {
		policy_warn(run, work);
	}
	if (run->report)
		(bad ? wss_report_bad_row : wss_report_row)(run->report, &row);
}

static void prepare_targets(const struct policy_options *options, struct wss_targets *targets)
{
	for (size_t i = 0; i < targets->n; i++) {
		struct policy_work *work = wss_xcalloc(1, sizeof(*work));

		work->options = *options;
		targets->list[i]->data = work;
		targets->list[i]->release_data = policy_work_free;
	}
}

/*
 * Reports progress after an interruption; a worker that was left behind may still change
 * another policy.
 */
static int say_changed(const struct wss_targets *targets, struct wss_error *err)
{
	size_t changed = 0;

	for (size_t i = 0; i < targets->n; i++) {
		const struct policy_work *work = targets->list[i]->data;

		changed += work && work->done;
	}
	return wss_error_set(err, WSS_ERR_INTERRUPTED,
			     "interrupted: changed the policies of %zu of %zu domain%s", changed,
			     targets->n, wss_plural(targets->n));
}

static void warn_unused(const char *text, void *opaque)
{
	(void)opaque;
	wss_warn("%s", text);
}

/* Names what policy files have for no guest, or for guests of libvirt. */
static void policy_report_unused(const struct wss_targets *targets, bool all)
{
	wss_auto_free const char **guests = wss_xcalloc(2 * targets->n + 1, sizeof(*guests));
	size_t n = 0;

	for (size_t i = 0; i < targets->n; i++) {
		const struct policy_work *work = targets->list[i]->data;

		if (!work || !work->entry.uuid[0])
			continue;
		guests[n++] = work->entry.name;
		guests[n++] = work->entry.uuid;
	}
	wss_policy_file_unused(all, guests, warn_unused, NULL);
}

static int run_verb(struct policy_run *run, struct wss_error *err)
{
	struct wss_targets targets = {.n = 0};
	int r = wss_cli_find_targets(run->cli, WSS_TARGET_DEADLINE_NS, &targets, err);

	if (r == 0) {
		prepare_targets(run->options, &targets);
		r = wss_targets_run(&targets, policy_step, true, err);
	}
	for (size_t i = 0; r == 0 && i < targets.n; i++)
		policy_report(run, targets.list[i]);
	/* A guest that was not asked for, or that failed, may be the one that a section is for. */
	if (r == 0 && run->options->verb == VERB_GET)
		policy_report_unused(&targets, targets.all && !run->tally.bad);
	if (r < 0 && err->code == WSS_ERR_INTERRUPTED && targets.n &&
	    run->options->verb != VERB_GET)
		say_changed(&targets, err);
	wss_targets_free(&targets);
	return r;
}

/* A policy does not need the history, so that NULL is as good as an error. */
static struct wss_history *history_open(void)
{
	wss_auto_free char *path = wss_history_default_path();
	struct wss_error ignored = WSS_ERROR_INIT;
	struct wss_history *history = NULL;

	if (path)
		wss_history_open_readonly(path, &history, &ignored);
	return history;
}

static int policy_run(struct wss_cli *cli, int argc, char **argv)
{
	struct policy_options options = {.verb = VERB_GET};
	struct wss_error err = WSS_ERROR_INIT, out_err = WSS_ERROR_INIT;
	struct policy_run run = {.cli = cli, .options = &options};
	int r;

	if (policy_parse(cli, argc, argv, &options, &err) < 0)
		return wss_cli_error(&err);
	if (options.verb == VERB_GET &&
	    wss_report_open(stdout, cli->format, &cli->view, &layout, &run.report, &err) < 0)
		return wss_cli_error(&err);
	if (run.report)
		wss_report_hold(run.report);
	if (options.maximum.to.known)
		run.history = history_open();
	cli->inactive_too = true;
	cli->reader = options.verb == VERB_GET;
	r = run_verb(&run, &err);
	wss_history_close(run.history);
	if (r < 0) {
		wss_report_free(run.report);
		return wss_cli_error(&err);
	}
	if (wss_report_close(run.report, &out_err) < 0)
		return wss_cli_error(&out_err);
	return wss_tally_exit_code(&run.tally, run.total);
}

static const struct wss_option_values values[] = {
	{"opt-out", "yes no none"},
	{NULL, NULL},
};

const struct wss_command wss_cmd_policy = {
	.name = "policy",
	.summary = "show or set the policy of a domain",
	.help = wss_help_policy,
	.long_options = long_options,
	.take = policy_option_take,
	.layouts = layouts,
	.takes = WSS_WORDS_LISTED,
	.words = "get set clear",
	.values = values,
	.run = policy_run,
};
