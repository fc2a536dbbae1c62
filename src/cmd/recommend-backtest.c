/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "cmd/recommend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/number.h"
#include "cmd/stored-guests.h"
#include "host/inventory.h"
#include "measure/policy-element.h"
#include "show/plot.h"
#include "sizing/backtest-chart.h"
#include "sizing/backtest-report.h"
#include "sizing/replay.h"

struct backtest_run {
	const struct wss_cli *cli;
	const struct recommend_backtest_options *options;
	const char *plot;
	struct wss_history *history;
	struct wss_stored_guests guests;
	struct wss_report *report;
	struct wss_tally tally;
	struct wss_backtest all;
	const struct wss_advice_options *advice;
	struct wss_targets targets; /* of --connect, with their policies */
	bool printed;		    /* a row */
	/* For the picture. */
	size_t n_moments, moments_room;
	struct wss_backtest_moment *moments;
	const char *drawn; /* the guest's name */
};

static void moment_keep(const struct wss_backtest_moment *moment, void *opaque)
{
	struct backtest_run *run = opaque;

	if (run->n_moments == run->moments_room) {
		run->moments_room = run->moments_room ? 2 * run->moments_room : 256;
		run->moments =
			wss_xreallocarray(run->moments, run->moments_room, sizeof(*run->moments));
	}
	run->moments[run->n_moments++] = *moment;
}

/* --- policies --- */

/* Reads the policies of all domains, if --connect was given. */
static int policies_read(struct backtest_run *run, struct wss_error *err)
{
	struct wss_cli all = *run->cli;

	if (!all.uri)
		return 0;
	all.n_domains = 0;
	if (wss_cli_find_targets(&all, WSS_TARGET_DEADLINE_NS, &run->targets, err) < 0)
		return -1;
	return wss_targets_read_element(&run->targets, WSS_POLICY_NAMESPACE, false, err);
}

/* Finds the guest's policy. A guest that libvirt does not know has none. */
static int policy_find(const struct backtest_run *run, const char *uuid,
		       struct wss_policy *ret_policy, struct wss_error *err)
{
	*ret_policy = (struct wss_policy){.opt_out = false};
	for (size_t i = 0; i < run->targets.n; i++) {
		const struct wss_target *target = run->targets.list[i];
		const struct wss_target_entry *found = target->data;

		if (!found || strcmp(found->entry.uuid, uuid))
			continue;
		if (target->error.code)
			return wss_error_set(err, target->error.code, "%s", target->error.text);
		return found->entry.xml ? wss_policy_read(found->entry.xml, ret_policy, err) : 0;
	}
	return 0;
}

/* --- a guest --- */

static struct wss_backtest_options backtest_options(const struct backtest_run *run,
						    struct wss_replay *replay)
{
	return (struct wss_backtest_options){
		.train_s = run->options->train_ns / WSS_NS_PER_S,
		.test_s = run->options->test_ns / WSS_NS_PER_S,
		.hold_s = run->advice->hold_ns / WSS_NS_PER_S,
		.size_at = wss_replay_size,
		.begin = wss_replay_begin,
		.opaque = replay,
	};
}

/* Adds the guest of the replay. run: keep its moments; may be NULL. */
static int backtest_judge(struct wss_backtest *backtest, const struct wss_backtest_options *options,
			  struct backtest_run *run)
{
	size_t n;
	const struct wss_backtest_hour *hours = wss_replay_hours(options->opaque, &n);
	time_t until = wss_replay_end(options->opaque);

	return wss_backtest_add(backtest, hours, n, until, options, run ? moment_keep : NULL, run);
}

static void backtest_print(struct backtest_run *run, struct wss_backtest *backtest,
			   const struct wss_stored_guest *guest)
{
	for (int i = 0; i < WSS_BACKTEST_PLAYERS; i++) {
		struct wss_backtest_row row = {
			.domain = guest ? guest->name : NULL,
			.uuid = guest ? guest->uuid : NULL,
			.player = (enum wss_backtest_player)i,
			.backtest = backtest,
		};

		wss_report_row(run->report, &row);
	}
	run->printed = true;
}

static int backtest_replayed(struct backtest_run *run, const struct wss_stored_guest *guest,
			     struct wss_replay *replay)
{
	struct wss_backtest_options options = backtest_options(run, replay);
	struct wss_backtest one = {0};

	if (backtest_judge(&run->all, &options, run->plot ? run : NULL) < 0)
		return -1;
	if (run->cli->n_domains <= 1)
		return 0;
	if (backtest_judge(&one, &options, NULL) < 0)
		return -1;
	backtest_print(run, &one, guest);
	return 0;
}

static int backtest_guest(const struct wss_stored_guest *guest, void *opaque, struct wss_error *err)
{
	struct backtest_run *run = opaque;
	struct wss_replay *replay = NULL;
	struct wss_policy policy;
	int r = policy_find(run, guest->uuid, &policy, err);

	if (r == 0)
		r = wss_replay_read(run->history, guest->uuid, run->advice, &policy, &replay, err);
	if (r < 0)
		return -1;
	run->drawn = guest->name;
	if (r > 0)
		r = backtest_replayed(run, guest, replay);
	wss_replay_free(replay);
	return r < 0 ? wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory") : 0;
}

static void backtest_say_early(const struct backtest_run *run)
{
	const struct wss_backtest *backtest = &run->all;

	if (!backtest->hours)
		wss_log(WSS_LOG_INFO,
			"no hour could be judged: that takes at least %d measured hours of a guest before it%s",
			WSS_LEARNER_HOURS_MIN,
			run->options->train_ns < WSS_ADVICE_SPAN_MAX_NS ? ", within --train" : "");
	else if (backtest->early_hours)
		wss_log(WSS_LOG_INFO,
			"not judged: %llu hour%s, before which too little was measured",
			(unsigned long long)backtest->early_hours,
			wss_plural(backtest->early_hours));
}

static void backtest_draw(FILE *f, const void *opaque)
{
	const struct backtest_run *run = opaque;

	wss_backtest_plot(f, run->drawn, run->moments, run->n_moments);
}

static int backtest_all(struct backtest_run *run, const struct wss_store_options *store,
			struct wss_error *err)
{
	if (policies_read(run, err) < 0 || wss_store_open_reader(store, &run->history, err) < 0 ||
	    (run->history && wss_stored_guests_read(run->history, &run->guests, err) < 0) ||
	    wss_cli_stored_guests_each(&run->guests, run->cli, run->report, &run->tally,
				       backtest_guest, run, err) < 0)
		return -1;
	if (run->all.hours)
		backtest_print(run, &run->all,
			       run->cli->n_domains == 1 && run->drawn
				       ? wss_cli_stored_guest(&run->guests, run->cli->domains[0],
							      run->cli->by_uuid, err)
				       : NULL);
	if (run->history && !run->tally.bad)
		backtest_say_early(run);
	if (!run->plot)
		return 0;
	if (run->n_moments)
		return wss_plot_write("--plot", run->plot, backtest_draw, run, err);
	wss_warn("--plot: there is no judged hour to draw");
	return 0;
}

int recommend_backtest_run(struct wss_cli *cli, const struct recommend_options *options)
{
	struct backtest_run run = {
		.cli = cli,
		.options = &options->backtest,
		.advice = &options->sizing.advice,
		.plot = options->plot,
	};
	struct wss_error err = WSS_ERROR_INIT, out_err = WSS_ERROR_INIT;
	size_t n;
	int r;

	if (wss_plot_check("--plot", options->plot, false, &err) < 0 ||
	    wss_report_open(stdout, cli->format, &cli->view, &wss_backtest_layout, &run.report,
			    &err) < 0)
		return wss_cli_error(&err);
	wss_report_set_batch(run.report);
	wss_report_hold(run.report);
	r = backtest_all(&run, &options->sizing.history, &err);
	if (r < 0 && !run.printed)
		wss_report_free(run.report);
	else if (wss_report_close(run.report, &out_err) < 0 && r == 0) {
		err = out_err;
		r = -1;
	}
	n = cli->n_domains ? (size_t)cli->n_domains : run.guests.n;
	wss_targets_free(&run.targets);
	free(run.moments);
	wss_stored_guests_free(&run.guests);
	wss_history_close(run.history);
	return r < 0 ? wss_cli_error(&err) : wss_tally_exit_code(&run.tally, n);
}
