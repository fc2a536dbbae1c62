/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * sample --store: the periodic round. One guest after the other, each step that talks to
 * libvirt or to the guest in a thread with a deadline, so that one that hangs costs its own
 * sample only. What hangs is left behind with everything that it may still use.
 */
#include "cmd/sample.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/guard.h"
#include "base/log.h"
#include "base/stop.h"
#include "host/inventory.h"
#include "out/metadata.h"
#include "out/sample-report.h"
#include "service/advice-text.h"
#include "wss/profile.h"

/* Of the profile that is published. */
#define PROFILE_SPAN_S (7 * WSS_HISTORY_DAY)

struct job {
	const struct wss_cli *cli;
	const struct sample_options *options;
	struct wss_guests *guests; /* the host and the connection */
	struct wss_history *history;
	struct sample_run run;
	size_t total;
	size_t measured; /* guests, */
	struct wss_sample last; /* a sample of the last of them, */
	struct wss_policy last_policy; /* and its policy */
	bool left_behind; /* some thread still uses the host and the connection */
};

/* One guest's turn. Its own memory, as a thread that is late may outlive the turn. */
struct turn {
	struct wss_guests *guests;
	struct wss_round_options round;
	bool persistent;
	char *name, *uuid; /* uuid: NULL where the name was typed */
	struct wss_round_guest entry;
	struct wss_sample *samples;
	size_t n_samples;
	struct wss_profile profile; /* to publish */
	struct wss_error error;
};

static void turn_free(void *opaque)
{
	struct turn *turn = opaque;

	wss_guest_free(turn->entry.guest);
	free(turn->samples);
	free(turn->name);
	free(turn->uuid);
	free(turn);
}

static struct turn *turn_new(const struct job *job, const struct wss_domain_ref *ref)
{
	struct turn *turn = calloc(1, sizeof(*turn));

	if (!turn)
		return NULL;
	turn->guests = job->guests;
	turn->round = job->options->round;
	turn->persistent = job->options->persistent;
	turn->name = strdup(ref->name);
	turn->uuid = ref->uuid ? strdup(ref->uuid) : NULL;
	turn->samples = calloc(turn->round.count + 1, sizeof(*turn->samples));
	turn->entry.name = turn->name;
	turn->entry.uuid = turn->uuid;
	wss_budget_init(&turn->entry.budget, turn->round.deadline_ns);
	if (turn->name && !turn->uuid == !ref->uuid && turn->samples)
		return turn;
	turn_free(turn);
	return NULL;
}

static void open_step(void *opaque)
{
	struct turn *turn = opaque;

	wss_guests_open_one(turn->guests, &turn->entry);
}

static void keep_sample(const struct wss_sample *sample, struct wss_round_guest *entry, bool last,
			void *opaque)
{
	struct turn *turn = opaque;

	(void)entry;
	(void)last;
	if (turn->n_samples <= turn->round.count)
		turn->samples[turn->n_samples++] = *sample;
}

static void measure_step(void *opaque)
{
	struct turn *turn = opaque;

	wss_round_run(&turn->guests->host, &turn->entry, 1, &turn->round, keep_sample, turn,
		      &turn->error);
}

/* Only what has changed, and seldom: each write makes libvirt write a file and tell its clients. */
static bool is_due(struct wss_guest *guest, const struct wss_profile *profile)
{
	wss_auto_free char *xml = NULL;
	struct wss_profile old;

	return guest->ops->metadata(guest, WSS_PROFILE_NAMESPACE, &xml, NULL) < 0 || !xml ||
	       wss_metadata_read(xml, &old, NULL) < 0 || wss_profile_due(&old, profile);
}

static void publish_step(void *opaque)
{
	struct turn *turn = opaque;
	struct wss_guest *guest = turn->entry.guest;
	wss_auto_free char *xml = NULL;

	wss_budget_enter(&turn->entry.budget, 0);
	if (is_due(guest, &turn->profile) &&
	    wss_metadata_write(&turn->profile, &xml, &turn->error) == 0)
		guest->ops->publish(guest, xml, turn->persistent, &turn->error);
	wss_budget_leave();
}

/* False when the turn is over: the guest was left behind with it. */
static bool guarded(struct job *job, struct turn *turn, void (*step)(void *))
{
	struct wss_round_guest none = { .name = NULL };
	struct wss_error error = WSS_ERROR_INIT;
	wss_auto_free char *name = strdup(turn->name);

	if (wss_guard_run_within(step, turn, turn_free, WSS_GUARD_STOP_NS, &error) == 0)
		return true;
	if (error.code == WSS_ERR_TIMEOUT)
		job->left_behind = true;
	else
		turn_free(turn);
	if (!wss_stop_requested())
		wss_sample_count_bad(&job->run, &none, name ? name : "a guest", &error);
	return false;
}

/* Whom a round over all guests passes over without a word. */
static bool is_missed_by_none(const struct job *job, const struct turn *turn)
{
	const struct wss_round_guest *entry = &turn->entry;

	if (job->cli->n_domains)
		return false;
	return entry->guest ? entry->guest->state == WSS_GUEST_SHUTOFF
			    : entry->error.code == WSS_ERR_GONE || entry->policy.opt_out;
}

static bool is_due_now(struct job *job, const struct turn *turn)
{
	struct wss_error error = WSS_ERROR_INIT;
	struct wss_amount last;

	if (job->cli->n_domains || !turn->entry.policy.period_ns.known)
		return true;
	if (wss_history_last(job->history, turn->entry.guest->config.uuid, &last, &error) < 0) {
		wss_warn("%s: %s", turn->name, error.text);
		return true;
	}
	return wss_policy_due(&turn->entry.policy, last, wss_clock_wall_seconds());
}

/* Takes what was measured into the report and the history. The last that is good, or NULL. */
static const struct wss_sample *take_samples(struct job *job, struct turn *turn)
{
	const struct wss_sample *good = NULL;

	for (size_t i = 0; i < turn->n_samples; i++) {
		const struct wss_sample *sample = &turn->samples[i];
		struct wss_error error = WSS_ERROR_INIT;

		if (!wss_sample_measured(sample)) {
			wss_report_bad_row(job->run.report, sample);
			wss_sample_count_bad(&job->run, &turn->entry, sample->domain,
					     &sample->error);
			continue;
		}
		good = sample;
		wss_report_row(job->run.report, sample);
		if (job->run.format == WSS_FORMAT_TABLE && i + 1 == turn->n_samples)
			wss_sample_print_notes(sample);
		if (wss_history_add(job->history, sample, &error) < 0)
			wss_sample_count_bad(&job->run, &turn->entry, sample->domain, &error);
	}
	return good;
}

/* Without a history that can be read the profile says what the one window says. */
static void fill_profile(struct job *job, const struct wss_sample *sample,
			 const struct wss_policy *policy, struct wss_profile *ret_profile)
{
	static const struct wss_sizing_rule rule = { .percentile = 0.99 };
	const struct wss_sizing_state unknown = { .held_bytes = { 0 } };
	struct wss_history_series series;
	struct wss_sizing sizing;

	wss_profile_from_sample(sample, PACKAGE_VERSION, ret_profile);
	if (wss_history_series(job->history, sample->uuid, sample->wall - PROFILE_SPAN_S,
			       WSS_HISTORY_CURVE, &series, NULL) != 1)
		return;
	wss_sizing_compute(&series.summary, &rule, policy, &unknown, &sizing);
	/* Figures of another kind of window do not belong beside this one's. */
	if (!strcmp(series.method, sample->method) &&
	    series.granularity_bytes == sample->granularity_bytes.value &&
	    series.window_ns == sample->requested_window_ns)
		wss_profile_add_sizing(ret_profile, &series.summary, &sizing);
	wss_summary_free(&series.summary);
}

static void count_no_memory(struct job *job, const char *name)
{
	struct wss_round_guest none = { .name = NULL };
	struct wss_error error = WSS_ERROR_INIT;

	wss_error_set(&error, WSS_ERR_NO_MEMORY, "out of memory");
	wss_sample_count_bad(&job->run, &none, name, &error);
}

/* NULL once the turn is over for that guest, as it was left behind or is not wanted. */
static struct turn *open_turn(struct job *job, const struct wss_domain_ref *ref)
{
	struct turn *turn = turn_new(job, ref);

	if (!turn)
		count_no_memory(job, ref->name);
	if (!turn || !guarded(job, turn, open_step))
		return NULL;
	if (is_missed_by_none(job, turn))
		job->total--;
	/* Who is not due is as well as if it had been measured. */
	else if (!turn->entry.guest || is_due_now(job, turn))
		return turn;
	turn_free(turn);
	return NULL;
}

static void take_turn(struct job *job, const struct wss_domain_ref *ref)
{
	struct turn *turn = open_turn(job, ref);
	const struct wss_sample *sample;

	if (!turn || !guarded(job, turn, measure_step))
		return;
	/* The round itself failed: no sample says so. */
	if (turn->error.code == WSS_ERR_NO_MEMORY)
		count_no_memory(job, turn->name);
	sample = take_samples(job, turn);
	if (sample) {
		job->measured++;
		job->last = *sample;
		job->last_policy = turn->entry.policy;
	}
	if (sample && job->options->publish && !wss_stop_requested()) {
		fill_profile(job, sample, &turn->entry.policy, &turn->profile);
		wss_error_clear(&turn->error);
		if (!guarded(job, turn, publish_step))
			return;
		if (turn->error.code)
			wss_sample_count_bad(&job->run, &turn->entry, turn->name, &turn->error);
	}
	turn_free(turn);
}

/* What a person who measures can do next. */
static void say_next_step(const struct job *job)
{
	const struct wss_advice_options options = WSS_ADVICE_OPTIONS_INIT;
	const struct wss_advice_guest guest = { .uuid = job->last.uuid,
						.active = true,
						.policy = &job->last_policy };
	struct wss_error error = WSS_ERROR_INIT;
	char text[WSS_ADVICE_TEXT_MAX];
	struct wss_advice advice;

	if (!job->measured || job->run.format != WSS_FORMAT_TABLE || !isatty(STDERR_FILENO))
		return;
	if (job->measured > 1) {
		wss_log(WSS_LOG_INFO, "%zu guests are in the history: recommend sizes them",
			job->measured);
		return;
	}
	if (wss_advice_read(job->history, &guest,
			    wss_advice_since(&options, wss_clock_wall_seconds()), &options, &advice,
			    &error) < 0)
		return;
	if (wss_advice_step_text(&advice, text))
		wss_log(WSS_LOG_INFO, "%s: %s", job->last.domain, text);
	wss_advice_free(&advice);
}

static int run_turns(struct job *job, const struct wss_domains *domains, struct wss_error *err)
{
	size_t width = 0;

	for (size_t i = 0; i < domains->n; i++)
		width = wss_name_width(width, domains->refs[i].name);
	job->total += domains->n;
	wss_report_set_first_width(job->run.report, width);
	for (size_t i = 0; i < domains->n && !wss_stop_requested(); i++)
		take_turn(job, &domains->refs[i]);
	if (wss_stop_requested())
		return wss_error_set(err, WSS_ERR_INTERRUPTED, "interrupted");
	return wss_history_prune(job->history, &job->options->history.limits,
				 wss_clock_wall_seconds(), err);
}

static int run_job(struct job *job, struct wss_error *err)
{
	struct wss_guests *guests = job->guests;

	if (wss_host_open(wss_test_sysroot(), &guests->host, err) < 0 ||
	    wss_conn_open(job->cli->uri, &guests->conn, err) < 0)
		return -1;
	if (job->cli->monitor)
		wss_conn_allow_monitor(guests->conn);
	if (wss_domains_find(job->cli, guests->conn, &guests->domains, err) < 0)
		return -1;
	return run_turns(job, &guests->domains, err);
}

static int report_job(struct job *job)
{
	struct wss_error err = WSS_ERROR_INIT, out_err = WSS_ERROR_INIT;
	int r;

	if (wss_report_open(stdout, job->cli->format, &job->cli->view,
			    wss_sample_layout(false, job->options->round.count > 1),
			    &job->run.report, &err) < 0)
		return wss_cli_error(&err);
	r = run_job(job, &err);
	if (r < 0 && err.code == WSS_ERR_CONNECT) {
		wss_report_free(job->run.report);
		return wss_cli_error(&err);
	}
	if (wss_report_close(job->run.report, &out_err) < 0)
		return wss_cli_error(&out_err);
	say_next_step(job);
	return r < 0 ? wss_cli_error(&err) : wss_tally_exit_code(&job->run.tally, job->total);
}

int wss_sample_job(const struct wss_cli *cli, const struct sample_options *options)
{
	struct job job = { .cli = cli,
			   .options = options,
			   .run = { .options = options, .format = cli->format } };
	wss_auto_free char *path = wss_store_path(&options->history);
	struct wss_error err = WSS_ERROR_INIT;
	wss_auto_close int lock = -1;
	int code;

	/* Of its own memory: a thread that is left behind may use it to the end of the process. */
	job.guests = calloc(1, sizeof(*job.guests));
	if (!path || !job.guests) {
		wss_error_set(&err, WSS_ERR_NO_MEMORY, "out of memory");
		return wss_cli_error(&err);
	}
	job.guests->host.root.dirfd = -1;
	if (wss_history_open(path, &job.history, &err) < 0 ||
	    (!cli->n_domains && wss_history_lock_round(job.history, &lock, &err) < 0))
		code = wss_cli_error(&err);
	else
		code = report_job(&job);
	wss_history_close(job.history);
	if (!job.left_behind) {
		wss_guests_close(job.guests);
		free(job.guests);
	}
	return code;
}
