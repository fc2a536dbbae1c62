/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "cmd/recommend-backtest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/number.h"
#include "cmd/plot.h"
#include "cmd/recommend-options.h"
#include "cmd/stored-guests.h"
#include "host/inventory.h"
#include "out/backtest-chart.h"
#include "out/policy.h"
#include "service/replay.h"
#include "wss/sweep.h"

struct backtest_run {
	const struct wss_cli *cli;
	const struct recommend_backtest_options *options;
	const char *plot;
	struct wss_history *history;
	struct wss_stored_guests guests;
	struct wss_report *report;
	struct wss_tally tally;
	struct wss_backtest all;
	struct recommend_backtest_loss loss; /* of all */
	struct recommend_sweep_row *sweep; /* WSS_SWEEP_RULES of them, or NULL */
	const struct wss_advice_options *advice;
	struct wss_targets targets; /* of --connect, with their policies */
	bool no_memory;
	bool printed; /* a row */
	/* For the picture. */
	size_t n_moments, moments_room;
	struct wss_backtest_moment *moments;
	const char *drawn; /* the guest's name */
};

static void moment_keep(struct backtest_run *run, const struct wss_backtest_moment *moment)
{
	if (run->n_moments == run->moments_room) {
		size_t room = run->moments_room ? 2 * run->moments_room : 256;
		struct wss_backtest_moment *moments =
			reallocarray(run->moments, room, sizeof(*moments));

		if (!moments) {
			run->no_memory = true;
			return;
		}
		run->moments = moments;
		run->moments_room = room;
	}
	run->moments[run->n_moments++] = *moment;
}

/* What the hours of a guest are added to. */
struct moments {
	struct backtest_run *run;
	struct wss_replay *replay;
	struct recommend_backtest_loss *loss;
	bool draw;
};

static void backtest_on_moment(const struct wss_backtest_moment *moment, void *opaque)
{
	struct moments *moments = opaque;
	struct recommend_backtest_loss *loss = moments->loss;
	double share, seen, predicted;
	bool bound;

	if (moments->draw)
		moment_keep(moments->run, moment);
	if (wss_replay_loss(moments->replay, moment->start, moment->sizes[WSS_BACKTEST_ADVICE],
			    &share, &bound)) {
		loss->hours++;
		loss->share_sum += share;
		loss->bound = loss->bound || bound;
	}
	if (wss_replay_faults(moments->replay, moment->start, &seen, &predicted)) {
		loss->fault_hours++;
		loss->seen_sum += seen;
		loss->predicted_sum += predicted;
	}
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
static int policy_find(const struct backtest_run *run, const char *uuid, struct wss_policy *ret_policy,
		       struct wss_error *err)
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
		.size_at = wss_replay_size,
		.opaque = replay,
	};
}

/* Adds the guest of the replay. moments may be NULL. */
static int backtest_judge(struct wss_backtest *backtest, const struct wss_backtest_options *options,
			  struct moments *moments)
{
	size_t n;
	const struct wss_backtest_hour *hours = wss_replay_hours(options->opaque, &n);
	time_t until = wss_replay_end(options->opaque);

	return wss_backtest_add(backtest, hours, n, until, options,
				moments ? backtest_on_moment : NULL, moments);
}

static void backtest_print(struct backtest_run *run, struct wss_backtest *backtest,
			   const struct recommend_backtest_loss *loss,
			   const struct wss_stored_guest *guest)
{
	double violations = wss_backtest_violations(&backtest->scores[WSS_BACKTEST_ADVICE]);

	for (int i = 0; i < WSS_BACKTEST_PLAYERS; i++) {
		struct recommend_backtest_row row = {
			.domain = guest ? guest->name : NULL,
			.uuid = guest ? guest->uuid : NULL,
			.player = (enum wss_backtest_player)i,
			.backtest = backtest,
			.loss = i == WSS_BACKTEST_ADVICE ? loss : NULL,
		};

		row.has_equal = i != WSS_BACKTEST_ADVICE &&
				wss_backtest_slack_at(&backtest->scores[i], violations,
						      &row.equal_slack, &row.equal_margin);
		wss_report_row(run->report, &row);
	}
	run->printed = true;
}

/* Tries the rules of the sweep on a guest. */
static int sweep_guest(struct backtest_run *run, struct wss_backtest_options *options)
{
	int r = 0;

	wss_replay_force_learned(options->opaque, true);
	options->alone = true;
	for (size_t i = 0; r >= 0 && i < WSS_SWEEP_RULES; i++) {
		options->only = &run->sweep[i].rule;
		r = backtest_judge(&run->sweep[i].backtest, options, NULL);
	}
	return r;
}

static int backtest_replayed(struct backtest_run *run, const struct wss_stored_guest *guest,
			     bool named, struct wss_replay *replay)
{
	struct wss_backtest_options options = backtest_options(run, replay);
	struct moments moments = {run, replay, &run->loss, run->plot};
	struct recommend_backtest_loss loss = {.hours = 0};
	struct wss_backtest one = {0};
	int r;

	if (run->sweep)
		return sweep_guest(run, &options);
	r = backtest_judge(&run->all, &options, &moments);
	if (r >= 0 && named && run->cli->n_domains > 1) {
		moments.loss = &loss;
		moments.draw = false;
		r = backtest_judge(&one, &options, &moments);
		if (r >= 0)
			backtest_print(run, &one, &loss, guest);
	}
	wss_backtest_free(&one);
	return r;
}

static int backtest_guest(struct backtest_run *run, const struct wss_stored_guest *guest,
			  bool named, struct wss_error *err)
{
	struct wss_replay *replay = NULL;
	struct wss_policy policy;
	int r = policy_find(run, guest->uuid, &policy, err);

	if (r == 0)
		r = wss_replay_read(run->history, guest->uuid, run->advice, &policy, &replay, err);
	if (r < 0)
		return -1;
	run->drawn = guest->name;
	if (r > 0)
		r = backtest_replayed(run, guest, named, replay);
	wss_replay_free(replay);
	return r < 0 || run->no_memory ? wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory")
				       : 0;
}

static int backtest_guests(struct backtest_run *run, struct wss_error *err)
{
	const struct wss_cli *cli = run->cli;

	for (int i = 0; i < cli->n_domains; i++) {
		struct wss_error why = WSS_ERROR_INIT;
		const struct wss_stored_guest *guest = wss_stored_guests_find(
			&run->guests, cli->domains[i], cli->by_uuid, &why);

		if (!guest) {
			wss_tally_bad(&run->tally, cli->domains[i], &why);
			wss_report_leave_out(run->report);
		} else if (backtest_guest(run, guest, true, err) < 0) {
			return -1;
		}
	}
	for (size_t i = 0; i < run->guests.n && !cli->n_domains; i++)
		if (backtest_guest(run, &run->guests.list[i], false, err) < 0)
			return -1;
	return 0;
}

static int sweep_prepare(struct backtest_run *run, struct wss_error *err)
{
	run->sweep = calloc(WSS_SWEEP_RULES, sizeof(*run->sweep));
	if (!run->sweep)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	for (size_t i = 0; i < WSS_SWEEP_RULES; i++)
		run->sweep[i].rule = wss_sweep_rule(i);
	return 0;
}

static const struct wss_backtest_score *sweep_score(const struct recommend_sweep_row *row)
{
	return &row->backtest.scores[WSS_BACKTEST_ADVICE];
}

static int sweep_compare(const void *a, const void *b)
{
	double x = wss_backtest_slack(sweep_score(a)), y = wss_backtest_slack(sweep_score(b));

	return (x > y) - (x < y);
}

/* Prints the rules than which no other has both less slack and fewer violations. */
static void sweep_print(struct backtest_run *run)
{
	double fewest = 2;
	bool found = false;

	qsort(run->sweep, WSS_SWEEP_RULES, sizeof(*run->sweep), sweep_compare);
	for (size_t i = 0; i < WSS_SWEEP_RULES; i++) {
		struct recommend_sweep_row *row = &run->sweep[i];
		double violations = wss_backtest_violations(sweep_score(row));

		if (!row->backtest.hours || violations >= fewest)
			continue;
		fewest = violations;
		row->cheapest = !found && violations <= run->options->violations;
		found = found || row->cheapest;
		wss_report_row(run->report, row);
		run->printed = true;
	}
	if (!found && fewest < 2)
		wss_log(WSS_LOG_INFO, "no setting has at most %g%% of hours in violation",
			run->options->violations * 100);
}

static void backtest_say_early(const struct backtest_run *run)
{
	const struct wss_backtest *backtest = run->sweep ? &run->sweep[0].backtest : &run->all;

	if (!backtest->hours)
		wss_log(WSS_LOG_INFO,
			"no hour could be judged: that takes at least %d measured hours of a guest before it%s",
			WSS_LEARNER_HOURS_MIN,
			run->options->train_ns < WSS_ADVICE_SPAN_MAX_NS ? ", within --train" : "");
	else if (backtest->early_hours)
		wss_log(WSS_LOG_INFO,
			"not judged: %llu hour%s, before which too little was measured",
			(unsigned long long)backtest->early_hours, wss_plural(backtest->early_hours));
}

/* Says why predictions, or what they are held against, are absent. */
static void backtest_say_loss(const struct backtest_run *run)
{
	if (!run->all.hours)
		return;
	if (!run->loss.hours)
		wss_log(WSS_LOG_INFO, "the loss is not predicted: no windows have a growth curve of "
				      "4 KiB pages");
	else if (!run->loss.fault_hours)
		wss_log(WSS_LOG_INFO, "the predicted faults are not compared with those seen: the "
				      "samples have no major faults of the guests, which their "
				      "balloons report if libvirt asks for statistics");
}

static void backtest_draw(FILE *f, const void *opaque)
{
	const struct backtest_run *run = opaque;

	wss_backtest_plot(f, run->drawn, run->moments, run->n_moments);
}

static int backtest_all(struct backtest_run *run, const struct wss_store_options *store,
			struct wss_error *err)
{
	if ((run->options->sweep && sweep_prepare(run, err) < 0) || policies_read(run, err) < 0 ||
	    wss_store_open_reader(store, &run->history, err) < 0 ||
	    (run->history && wss_stored_guests_read(run->history, &run->guests, err) < 0) ||
	    backtest_guests(run, err) < 0)
		return -1;
	if (run->sweep)
		sweep_print(run);
	else if (run->all.hours)
		backtest_print(run, &run->all, &run->loss,
			       run->cli->n_domains == 1 && run->drawn
				       ? wss_stored_guests_find(&run->guests,
								run->cli->domains[0],
								run->cli->by_uuid, err)
				       : NULL);
	if (run->history && !run->tally.bad)
		backtest_say_early(run);
	if (run->history && !run->tally.bad && !run->sweep)
		backtest_say_loss(run);
	if (!run->plot)
		return 0;
	if (run->n_moments)
		return wss_plot_write(run->plot, backtest_draw, run, err);
	wss_warn("--plot: there is no judged hour to draw");
	return 0;
}

static void backtest_free(struct backtest_run *run)
{
	for (size_t i = 0; run->sweep && i < WSS_SWEEP_RULES; i++)
		wss_backtest_free(&run->sweep[i].backtest);
	free(run->sweep);
	wss_backtest_free(&run->all);
	wss_targets_free(&run->targets);
	free(run->moments);
	wss_stored_guests_free(&run->guests);
	wss_history_close(run->history);
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
	const struct wss_report_layout *layout =
		options->backtest.sweep ? &recommend_sweep_layout : &recommend_backtest_layout;
	int r;

	if (wss_plot_check(options->plot, false, &err) < 0 ||
	    wss_report_open(stdout, cli->format, &cli->view, layout, &run.report, &err) < 0)
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
	backtest_free(&run);
	return r < 0 ? wss_cli_error(&err)
		     : wss_tally_exit_code(&run.tally,
					   cli->n_domains ? (size_t)cli->n_domains : 1);
}
