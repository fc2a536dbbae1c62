/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/stop.h"
#include "base/units.h"
#include "cmd/file-options.h"
#include "fleet/plan-report.h"
#include "help-text.h"
#include "show/plot.h"
#include "show/width.h"

/* For all answers of an API together. */
#define TIMEOUT_NS (60 * WSS_NS_PER_S)
#define TIMEOUT_MAX_NS (3600 * WSS_NS_PER_S)

/* Less than 1 leaves the host memory of its own. */
#define OVERCOMMIT_MIN 0.1
#define OVERCOMMIT_MAX 100.0

enum {
	OPT_GOAL = 1,
	OPT_LIMIT,
	OPT_RISK,
	OPT_OVERCOMMIT,
	OPT_MAX_MOVES,
	OPT_HOST_MEMORY,
	OPT_CONSTRAINTS,
	OPT_PLOT,
	OPT_PROMETHEUS,
	OPT_TOKEN_FILE,
	OPT_USER_FILE,
	OPT_HEADER_FILE,
	OPT_CA_FILE,
	OPT_TIMEOUT,
	OPT_MATCH,
	OPT_ALLOW_PARTIAL,
};

static const struct option long_options[] = {
	WSS_COMMON_LONG,
	WSS_TABLE_LONG,
	{"goal", required_argument, NULL, OPT_GOAL},
	{"safe-limit", required_argument, NULL, OPT_LIMIT},
	{"risk", required_argument, NULL, OPT_RISK},
	{"overcommit", required_argument, NULL, OPT_OVERCOMMIT},
	{"max-moves", required_argument, NULL, OPT_MAX_MOVES},
	{"host-memory", required_argument, NULL, OPT_HOST_MEMORY},
	{"constraints", required_argument, NULL, OPT_CONSTRAINTS},
	{"plot", required_argument, NULL, OPT_PLOT},
	{"prometheus", required_argument, NULL, OPT_PROMETHEUS},
	{"token-file", required_argument, NULL, OPT_TOKEN_FILE},
	{"user-file", required_argument, NULL, OPT_USER_FILE},
	{"header-file", required_argument, NULL, OPT_HEADER_FILE},
	{"ca-file", required_argument, NULL, OPT_CA_FILE},
	{"timeout", required_argument, NULL, OPT_TIMEOUT},
	{"match", required_argument, NULL, OPT_MATCH},
	{"allow-partial", no_argument, NULL, OPT_ALLOW_PARTIAL},
	{NULL, 0, NULL, 0},
};

static int goal_parse(const char *text, enum wss_pack_goal *ret_goal, struct wss_error *err)
{
	if (!strcmp(text, "empty"))
		*ret_goal = WSS_PACK_EMPTY;
	else if (!strcmp(text, "safe"))
		*ret_goal = WSS_PACK_SAFE;
	else
		return wss_error_set(err, WSS_ERR_USAGE, "--goal: '%s' is not empty or safe", text);
	return 0;
}

static int ratio_parse(const char *text, double *ret_ratio, struct wss_error *err)
{
	size_t digits = strspn(text, "0123456789.");
	double ratio = strtod(text, NULL);

	if (text[0] < '0' || text[0] > '9' || text[digits] || digits > 12 ||
	    strchr(text, '.') != strrchr(text, '.') || ratio < OVERCOMMIT_MIN ||
	    ratio > OVERCOMMIT_MAX)
		return wss_error_set(err, WSS_ERR_USAGE,
				     "--overcommit: '%s' is not a ratio from %g to %g, such as 1.5",
				     text, OVERCOMMIT_MIN, OVERCOMMIT_MAX);
	*ret_ratio = ratio;
	return 0;
}

static int plan_take(void *opaque, int c, const char *value, struct wss_error *err)
{
	struct wss_plan_options *options = opaque;

	switch (c) {
	case OPT_GOAL:
		return goal_parse(value, &options->goal, err);
	case OPT_LIMIT:
		return wss_percent_parse(value, 1, 100, "--safe-limit", &options->limit, err);
	case OPT_RISK:
		return wss_percent_parse(value, 0, 50, "--risk", &options->risk, err);
	case OPT_OVERCOMMIT:
		return ratio_parse(value, &options->overcommit, err);
	case OPT_MAX_MOVES:
		return wss_number_parse(value, 0, UINT32_MAX, "--max-moves", &options->max_moves,
					err);
	case OPT_HOST_MEMORY:
		options->host_memory_bytes.known = true;
		return wss_size_parse(value, "--host-memory", &options->host_memory_bytes.value,
				      err);
	case OPT_CONSTRAINTS:
		options->constraints = value;
		return 0;
	case OPT_PLOT:
		options->plot = value;
		return 0;
	case OPT_PROMETHEUS:
		options->prometheus.url = value;
		return 0;
	case OPT_TOKEN_FILE:
		options->prometheus.token_file = value;
		return 0;
	case OPT_USER_FILE:
		options->prometheus.user_file = value;
		return 0;
	case OPT_HEADER_FILE:
		options->prometheus.header_file = value;
		return 0;
	case OPT_ALLOW_PARTIAL:
		options->prometheus.allow_partial = true;
		return 0;
	case OPT_CA_FILE:
		options->prometheus.ca_file = value;
		return 0;
	case OPT_MATCH:
		if (strlen(value) > WSS_PROMETHEUS_MATCH_MAX || strpbrk(value, "{}") ||
		    !strchr(value, '='))
			return wss_error_set(
				err, WSS_ERR_USAGE,
				"--match: '%.100s' is not like cluster=\"a\",job=\"virt-wss\"",
				value);
		options->prometheus.match = value;
		return 0;
	case OPT_TIMEOUT:
		return wss_duration_parse(value, TIMEOUT_MAX_NS, "--timeout",
					  &options->prometheus.timeout_ns, err);
	default:
		return 0;
	}
}

/* Refuses options about an API without one, and two ways of saying who asks. */
static int api_option_check(const struct wss_prometheus_options *options, struct wss_error *err)
{
	const char *option = options->token_file      ? "--token-file"
			     : options->user_file     ? "--user-file"
			     : options->header_file   ? "--header-file"
			     : options->ca_file	      ? "--ca-file"
			     : options->timeout_ns    ? "--timeout"
			     : options->match	      ? "--match"
			     : options->allow_partial ? "--allow-partial"
						      : NULL;

	if (options->token_file && options->user_file)
		return wss_error_set(err, WSS_ERR_USAGE,
				     "--token-file and --user-file exclude each other");
	return option && !options->url
		       ? wss_error_set(err, WSS_ERR_USAGE, "%s needs --prometheus", option)
		       : 0;
}

static int plan_parse(struct wss_cli *cli, int argc, char **argv, struct wss_plan_options *options,
		      struct wss_error *err)
{
	if (wss_cli_parse(cli, argc, argv, options, err) < 0 ||
	    wss_cli_view(cli, &wss_plan_layout, err) < 0)
		return -1;
	if (api_option_check(&options->prometheus, err) < 0)
		return -1;
	if (!options->prometheus.timeout_ns)
		options->prometheus.timeout_ns = TIMEOUT_NS;
	return wss_files_finish(cli, argc, argv, options->prometheus.url ? 0 : 1, 0, err);
}

static int api_read(const struct wss_prometheus_options *options, struct wss_cluster *fleet,
		    struct wss_error *err)
{
	struct wss_prometheus_notes notes = {.n = 0};
	struct wss_error partial;
	int r = wss_prometheus_read(fleet, options, &notes, err);

	if (r < 0 && err->code == WSS_ERR_CONNECT && notes.is_partial && !options->allow_partial) {
		partial = *err;
		return wss_error_set(err, partial.code,
				     "%s; --allow-partial plans without what is missing",
				     partial.text);
	}
	if (r < 0)
		return err->code == WSS_ERR_USAGE ? wss_error_prefix(err, "--prometheus") : -1;
	for (size_t i = 0; i < notes.n; i++)
		wss_warn("%s: %s", options->url, notes.warnings[i]);
	if (notes.has_more)
		wss_warn("%s: further warnings are not shown", options->url);
	return 0;
}

static int fleet_read(const struct wss_cli *cli, const struct wss_plan_options *options,
		      struct wss_cluster *fleet, struct wss_error *err)
{
	if (options->prometheus.url && api_read(&options->prometheus, fleet, err) < 0)
		return -1;
	for (int i = 0; i < cli->n_domains; i++) {
		if (wss_stop_requested())
			return wss_error_set(err, WSS_ERR_INTERRUPTED, "interrupted");
		if (wss_cluster_read(fleet, cli->domains[i], err) < 0)
			return -1;
	}
	return wss_cluster_check(fleet, err);
}

/* Some of the names that a message is about. */
struct names {
	size_t n, named, used;
	char text[200];
};

static void names_add(struct names *names, const char *name)
{
	char short_name[WSS_NAME_SHORT_MAX];

	names->n++;
	if (names->used >= sizeof(names->text) / 2)
		return;
	wss_name_shorten(name, short_name);
	names->used +=
		(size_t)snprintf(names->text + names->used, sizeof(names->text) - names->used,
				 "%s%s", names->used ? ", " : "", short_name);
	names->named++;
}

/* Warns with "1 ONE: NAME" or "N MANY: NAMES"; without names not at all. */
static void names_warn(const struct names *names, const char *one, const char *many)
{
	if (names->n)
		wss_warn("%zu %s: %s%s", names->n, names->n == 1 ? one : many, names->text,
			 names->named < names->n ? " ..." : "");
}

/* Names some of the guests whose moves wait for each other. */
static void plan_warn_left_out(const struct wss_plan *plan)
{
	const struct wss_pack_plan *solved = &plan->solved;
	bool limited = plan->options->max_moves != UINT64_MAX;
	struct names names = {.n = 0};

	for (size_t i = 0; i < solved->n_left_out; i++)
		names_add(&names, plan->fleet.guests[solved->left_out[i]].name);
	if (names.n)
		wss_warn("left out %zu %s, because no host has room to move one aside%s: %s%s",
			 names.n,
			 names.n == 1 ? "move that waits for others"
				      : "moves that wait for each other",
			 limited ? ", or --max-moves allows no more" : "", names.text,
			 names.named < names.n ? " ..." : "");
}

/* Warns of the hosts that stay over their limits, with a line for each reason. */
static void plan_warn_over(const struct wss_plan *plan)
{
	struct names large = {.n = 0};

	static const struct {
		const char *one, *many;
	} reasons[WSS_PACK_STAYS] = {
		[WSS_PACK_STAY_PINNED] = {"the guests that would have to leave it may not move",
					  "the guests that would have to leave them may not move"},
		[WSS_PACK_STAY_NO_HOST] = {"no other host may take guests",
					   "no other host may take guests"},
		[WSS_PACK_STAY_LEFT_OUT] = {"moves off it are left out",
					    "moves off them are left out"},
		[WSS_PACK_STAY_MAX_MOVES] = {"--max-moves allows no more moves",
					     "--max-moves allows no more moves"},
		[WSS_PACK_STAY_NO_ROOM] = {"the guests that could leave it fit on no other host",
					   "the guests that could leave them fit on no other host"},
	};

	for (int i = 0; i < WSS_PACK_STAYS; i++) {
		size_t n = plan->solved.bad_why[i];

		if (n == 1)
			wss_warn(
				plan->n_aparts
					? "1 host stays over its limit, or with guests that must be apart: %s"
					: "1 host stays over its limit: %s",
				plan->fleet.n_hosts == 1 && i == WSS_PACK_STAY_NO_HOST
					? "there is no other host"
					: reasons[i].one);
		else if (n)
			wss_warn(
				plan->n_aparts
					? "%zu hosts stay over their limits, or with guests that must be apart: %s"
					: "%zu hosts stay over their limits: %s",
				n, reasons[i].many);
	}
	for (size_t i = 0; i < plan->fleet.n_hosts; i++)
		if (plan->hosts[i].after.size_bytes > plan->hosts[i].size_limit_bytes)
			names_add(&large, plan->hosts[i].name);
	names_warn(&large, "host has guests that may take more memory than --overcommit allows",
		   "hosts have guests that may take more memory than --overcommit allows");
}

/* Whether an earlier guest is this one on another host. */
static bool plan_has_met(const struct wss_plan *plan, size_t guest)
{
	for (size_t i = 0; i < guest; i++)
		if (!strcmp(plan->fleet.guests[i].uuid, plan->fleet.guests[guest].uuid))
			return true;
	return false;
}

/* Names the hosts and guests that stay as they are, and why. */
static void plan_warn_stays(const struct wss_plan *plan)
{
	struct names unknown = {.n = 0}, off = {.n = 0}, elsewhere = {.n = 0}, ambiguous = {.n = 0};
	struct names hosts = {.n = 0}, sizeless = {.n = 0}, foreign = {.n = 0}, unsized = {.n = 0},
		     paused = {.n = 0}, large = {.n = 0}, incomplete = {.n = 0}, stale = {.n = 0},
		     partial = {.n = 0};

	for (size_t i = 0; i < plan->fleet.n_guests; i++) {
		const struct wss_cluster_guest *guest = &plan->fleet.guests[i];

		if (plan->guests[i].unknown)
			names_add(plan->guests[i].too_large ? &large : &unknown, guest->name);
		if (plan->guests[i].unsized)
			names_add(!strcmp(guest->state, "paused") ? &paused : &unsized,
				  guest->name);
		if (plan->guests[i].off)
			names_add(&off, guest->name);
		else if (plan->fleet.hosts[guest->host].is_ambiguous)
			continue;
		else if (guest->is_elsewhere && plan_has_met(plan, i))
			continue;
		else if (guest->is_elsewhere)
			names_add(&elsewhere, guest->name);
		else if (guest->is_ambiguous)
			names_add(&ambiguous, guest->name);
	}
	for (size_t i = 0; i < plan->fleet.n_hosts; i++) {
		if (plan->fleet.hosts[i].is_ambiguous)
			names_add(&hosts, plan->hosts[i].name);
		else if (plan->fleet.hosts[i].is_incomplete)
			names_add(&incomplete, plan->hosts[i].name);
		else if (plan->fleet.hosts[i].is_partial)
			names_add(&partial, plan->hosts[i].name);
		else if (plan->fleet.hosts[i].is_stale)
			names_add(&stale, plan->hosts[i].name);
		else if (!plan->hosts[i].memory_bytes)
			names_add(&sizeless, plan->hosts[i].name);
		else if (wss_plan_host_is_foreign(plan, i))
			names_add(&foreign, plan->hosts[i].name);
	}
	names_warn(&unknown, "guest was never measured, stays, and its host gets no other guest",
		   "guests were never measured, stay, and their hosts get no other guest");
	names_warn(
		&large,
		"guest has or needs more than the 8 TiB that a plan can handle, stays, and its host gets no other guest",
		"guests have or need more than the 8 TiB that a plan can handle, stay, and their hosts get no other guest");
	names_warn(&unsized,
		   "guest has no recommended size, and counts with the memory that it has",
		   "guests have no recommended size, and count with the memory that they have");
	names_warn(&paused, "guest is paused, and counts with the memory that it has",
		   "guests are paused, and count with the memory that they have");
	names_warn(&off, "guest is shut off, needs nothing and stays",
		   "guests are shut off, need nothing and stay");
	names_warn(&elsewhere, "guest is on two hosts, as in a migration, and stays",
		   "guests are on two hosts, as in a migration, and stay");
	names_warn(
		&ambiguous,
		"guest stays, because its series contradict each other (--match selects some)",
		"guests stay, because their series contradict each other (--match selects some)");
	names_warn(
		&hosts, "host is left alone, because several have its name (--match selects one)",
		"hosts are left alone, because several have the name of each (--match selects one)");
	names_warn(&incomplete, "host is left alone, because a guest on it was left out",
		   "hosts are left alone, because guests on them were left out");
	names_warn(
		&partial,
		"host is left alone, because guests of it are missing in the partial answers",
		"hosts are left alone, because guests of them are missing in the partial answers");
	names_warn(
		&stale,
		"host keeps its guests and gets none, because its metrics are too old (is virt-wss serve running there?)",
		"hosts keep their guests and get none, because their metrics are too old (is virt-wss serve running there?)");
	names_warn(&sizeless, "host of unknown memory is left alone (see --host-memory)",
		   "hosts of unknown memory are left alone (see --host-memory)");
	names_warn(
		&foreign,
		"host without libvirt is left alone, because no guest can move between it and the others",
		"hosts without libvirt are left alone, because no guest can move between them and the others");
}

/* Says what the table cannot. */
static void plan_warn(const struct wss_plan *plan)
{
	bool over = plan->solved.n_left_out;

	for (int i = 0; i < WSS_PACK_STAYS; i++)
		over |= plan->solved.bad_why[i] != 0;
	if (!plan->solved.n_steps && !plan->n_shrinks && !over)
		wss_log(WSS_LOG_INFO, "nothing to do: every guest can stay as it is");
	if (plan->fleet.n_left_out)
		wss_warn(
			"left out %zu series of the API: %s%s (--match selects series by their labels)",
			plan->fleet.n_left_out, plan->fleet.left_out,
			plan->fleet.n_left_out > 1 ? " ..." : "");
	plan_warn_stays(plan);
	plan_warn_over(plan);
	plan_warn_left_out(plan);
}

static int plan_print(struct wss_cli *cli, const struct wss_plan *plan, struct wss_error *err)
{
	struct wss_report *report;

	if (wss_report_open(stdout, cli->format, &cli->view, &wss_plan_layout, &report, err) < 0)
		return -1;
	wss_plan_report(plan, report);
	return wss_report_close(report, err);
}

static void plan_draw(FILE *f, const void *plan)
{
	wss_plan_draw(f, plan);
}

static int plan_run(struct wss_cli *cli, int argc, char **argv)
{
	struct wss_plan_options options = {.limit = 0.9,
					   .overcommit = 1,
					   .max_moves = UINT64_MAX,
					   .host_memory_setting = "--host-memory"};
	struct wss_plan plan = {.options = &options};
	struct wss_error err = WSS_ERROR_INIT;
	int r;

	if (plan_parse(cli, argc, argv, &options, &err) < 0 ||
	    wss_plot_check("--plot", options.plot, false, &err) < 0)
		return wss_cli_error(&err);
	r = fleet_read(cli, &options, &plan.fleet, &err);
	if (r == 0)
		r = wss_plan_prepare(&plan, &err);
	if (r == 0)
		r = wss_plan_solve(&plan, &err);
	if (r == 0)
		r = plan_print(cli, &plan, &err);
	if (r == 0 && options.plot)
		r = wss_plot_write("--plot", options.plot, plan_draw, &plan, &err);
	if (r == 0)
		plan_warn(&plan);
	wss_plan_release(&plan);
	return r < 0 ? wss_cli_error(&err) : WSS_EXIT_OK;
}

static const struct wss_option_values values[] = {
	{"goal", "empty safe"},
	{"constraints", WSS_VALUES_FILES},
	{"token-file", WSS_VALUES_FILES},
	{"user-file", WSS_VALUES_FILES},
	{"header-file", WSS_VALUES_FILES},
	{"ca-file", WSS_VALUES_FILES},
	{NULL, NULL},
};

const struct wss_command wss_cmd_plan = {
	.name = "plan",
	.summary = "plan which guests of a fleet to move or shrink",
	.help = wss_help_plan,
	.long_options = long_options,
	.take = plan_take,
	.layouts = wss_plan_layouts,
	.takes = WSS_WORDS_FILES,
	.values = values,
	.run = plan_run,
};
