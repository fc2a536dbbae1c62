/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "cmd/balloon.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "balloon/plan-report.h"
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/number.h"
#include "base/units.h"

struct balloon_run {
	const struct wss_cli *cli;
	const struct balloon_options *options;
	struct wss_history *history; /* NULL if there is none yet */
	struct wss_report *report;
	struct wss_tally tally;
	/* For the suggestion of a next step: */
	size_t n_shrinking, n_unmeasured; /* guests */
	uint64_t gain_bytes;		  /* sum over all guests that would shrink */
	struct wss_balloon_row shrinking; /* the last of them */
};

void balloon_target_look(struct wss_target *target)
{
	struct balloon_sight *sight = wss_xcalloc(1, sizeof(*sight));
	struct wss_error ignored = WSS_ERROR_INIT;

	target->data = sight;
	target->release_data = free;
	/* QEMU shows what the configuration does not; on another host, or without permission, that is unknown. */
	if (target->guest->state == WSS_GUEST_RUNNING)
		wss_guest_attach(target->guest, wss_hypervisor_host(target->hypervisor), &ignored);
	wss_look_take(target->guest, &target->policy, &sight->reports, &sight->look,
		      &target->error);
}

static void statistics_hint(const struct wss_cli *cli, const struct wss_guest *guest,
			    char ret_hint[WSS_BALLOON_HINT_MAX])
{
	wss_auto_free char *uri = wss_text_shell_word(cli->uri ? cli->uri : "");
	int len = uri ? snprintf(ret_hint, WSS_BALLOON_HINT_MAX,
				 "virsh%s%s dommemstat %s --period 5 --live",
				 cli->uri ? " -c " : "", cli->uri ? uri : "", guest->config.uuid)
		      : WSS_BALLOON_HINT_MAX;

	if (len >= WSS_BALLOON_HINT_MAX)
		ret_hint[0] = '\0';
}

void balloon_hint(const struct wss_cli *cli, const char *history, const struct wss_guest *guest,
		  const char *refusal, char ret_hint[WSS_BALLOON_HINT_MAX])
{
	ret_hint[0] = '\0';
	/* Without libvirt there is nothing to give memory back by. */
	if (refusal == wss_balloon_unfinished && guest->ops->set_balloon)
		balloon_restore_hint(cli, history, guest->config.name, ret_hint);
	else if (refusal == wss_balloon_no_driver)
		snprintf(ret_hint, WSS_BALLOON_HINT_MAX, "load the balloon driver in the guest");
	else if (refusal == wss_balloon_no_statistics)
		statistics_hint(cli, guest, ret_hint);
}

static int balloon_row_fill(struct balloon_run *run, const struct wss_target *target,
			    struct wss_balloon_row *row, struct wss_error *err)
{
	const struct balloon_sight *sight = target->data;
	struct wss_error refusal = WSS_ERROR_INIT;
	struct wss_look look = sight->look;
	struct wss_need need;
	struct wss_balloon_plan plan;

	if (wss_look_journal(run->history, target->guest->config.uuid, &look, err) < 0 ||
	    wss_need_read(&run->options->sizing.advice, run->history, target->guest->config.uuid,
			  &target->policy, &need, err) < 0)
		return -1;
	wss_look_join(&need, &look);
	wss_balloon_plan_make(&look, &plan);
	wss_balloon_row_plan(row, &look, &plan);
	if (plan.action != WSS_BALLOON_PLAN_REFUSED)
		return 0;
	wss_error_set(&refusal, WSS_ERR_UNSUPPORTED, "refused: %s", plan.reason);
	/* A refusal is an error only for a guest that was named: among all guests some are always refused. */
	if (run->cli->n_domains)
		wss_tally_count(&run->tally, &refusal);
	balloon_hint(run->cli, run->options->sizing.history.path, target->guest,
		     wss_balloon_refusal(&look.facts), row->hint);
	run->n_unmeasured += look.facts.statistics &&
			     (look.facts.confidence == WSS_CONFIDENCE_NONE || !look.facts.current);
	return 0;
}

static void shrink_add(struct balloon_run *run, const struct wss_balloon_row *row)
{
	if (!row->to_bytes.known)
		return;
	run->n_shrinking++;
	run->gain_bytes = wss_u64_add(run->gain_bytes, row->gain_bytes.value);
	run->shrinking = *row;
}

static void balloon_target(struct balloon_run *run, const struct wss_target *target, bool table)
{
	struct wss_error error = target->error;
	struct wss_balloon_row row = {
		.domain = wss_target_name(target),
		.uuid = target->guest ? target->guest->config.uuid : NULL,
	};

	if (!error.code && balloon_row_fill(run, target, &row, &error) == 0) {
		wss_report_row(run->report, &row);
		shrink_add(run, &row);
		if (table)
			balloon_say_hint(row.domain, row.hint);
		return;
	}
	row.error = error.text;
	wss_report_bad_row(run->report, &row);
	wss_tally_bad(&run->tally, row.domain, &error);
}

/* Suggests the next step. */
static void say_next_step(const struct balloon_run *run)
{
	const struct wss_balloon_row *row = &run->shrinking;
	char from[16], to[16], gain[16];

	if (!run->n_shrinking) {
		if (run->n_unmeasured && run->history)
			wss_log(WSS_LOG_INFO,
				"%zu %s too few or too old windows: run sample --store",
				run->n_unmeasured,
				run->n_unmeasured > 1 ? "guests have" : "guest has");
		return;
	}
	wss_size_format(row->from_bytes.value, from, sizeof(from));
	wss_size_format(row->to_bytes.value, to, sizeof(to));
	wss_size_format(run->gain_bytes, gain, sizeof(gain));
	if (run->n_shrinking > 1)
		wss_log(WSS_LOG_INFO, "--apply would shrink %zu guests and free %s on the host",
			run->n_shrinking, gain);
	else
		wss_log(WSS_LOG_INFO,
			"%s: --apply would shrink it from %s to %s and free %s on the host",
			row->domain, from, to, gain);
}

static int dry_run(const struct wss_cli *cli, struct balloon_run *run, struct wss_targets *targets)
{
	bool table = cli->format == WSS_FORMAT_TABLE;
	struct wss_error err = WSS_ERROR_INIT;

	if (wss_sizing_open(&run->options->sizing, &run->history, &err) < 0 ||
	    wss_cli_open_targets(cli, WSS_TARGET_DEADLINE_NS, targets, &err) < 0 ||
	    wss_targets_run(targets, balloon_target_look, false, &err) < 0 ||
	    wss_report_open(stdout, cli->format, &cli->view, &wss_balloon_layout, &run->report,
			    &err) < 0)
		return wss_cli_error(&err);
	wss_report_set_first_width(run->report, wss_targets_name_width(targets));
	for (size_t i = 0; i < targets->n; i++)
		balloon_target(run, targets->list[i], table);
	if (wss_report_close(run->report, &err) < 0)
		return wss_cli_error(&err);
	if (table && isatty(STDERR_FILENO))
		say_next_step(run);
	return wss_tally_exit_code(&run->tally, targets->n);
}

int balloon_dry_run(const struct wss_cli *cli, const struct balloon_options *options)
{
	struct balloon_run run = {.cli = cli, .options = options};
	struct wss_targets targets = {.n = 0};
	int code = dry_run(cli, &run, &targets);

	wss_targets_free(&targets);
	wss_history_close(run.history);
	return code;
}
