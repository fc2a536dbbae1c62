/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "cmd/methods.h"

#include <stdlib.h>

#include "cmd/config-report.h"

/* A guest's findings. */
struct config_target {
	size_t n;
	struct wss_config_finding findings[WSS_CONFIG_SETTINGS];
};

/* Runs in a worker, because the statistics come from libvirt. Without them some gains are unknown. */
static void target_examine(struct wss_target *target)
{
	struct wss_guest *guest = target->guest;
	struct config_target *config = calloc(1, sizeof(*config));
	struct wss_balloon_stats stats = {.actual_bytes = {.known = false}};
	struct wss_error ignored = WSS_ERROR_INIT;
	struct wss_config_facts facts;

	target->data = config;
	target->release_data = free;
	if (!config) {
		wss_error_set(&target->error, WSS_ERR_NO_MEMORY, "out of memory");
		return;
	}
	if (guest->state == WSS_GUEST_RUNNING) {
		/* QEMU shows what the configuration does not. */
		wss_guest_attach(guest, wss_hypervisor_host(target->hypervisor), &ignored);
		wss_error_clear(&ignored);
		if (guest->ops->balloon_stats)
			guest->ops->balloon_stats(guest, &stats, &ignored);
	}
	facts = wss_config_facts_of(&guest->config, &stats);
	facts.no_history = true;
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

int wss_methods_config(const struct wss_cli *cli, struct wss_targets *targets)
{
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_tally tally = {.bad = 0};
	struct wss_report *report;

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

		if (!targets->list[i]->error.code)
			wss_config_notes(wss_target_name(targets->list[i]), config->findings, config->n);
	}
	return wss_tally_exit_code(&tally, targets->n);
}
