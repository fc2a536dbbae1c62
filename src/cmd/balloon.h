/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Shared by balloon.c, balloon-act.c, balloon-dry-run.c, and squeeze.c, which moves balloons as well. */
#pragma once

#include <stdbool.h>

#include "balloon/controller.h"
#include "balloon/look.h"
#include "balloon/plan-report.h"
#include "cmd/cmd.h"
#include "cmd/sizing-options.h"

struct balloon_options {
	struct wss_sizing_options sizing;
	struct wss_balloon_options control;
	bool apply, restore, forget;
};

/* A target's data, filled in by balloon_target_look(). */
struct balloon_sight {
	struct wss_reports reports;
	struct wss_look look;
};

/* Step of wss_targets_run(): takes a look at the guest, which asks libvirt. */
void balloon_target_look(struct wss_target *target);

/*
 * Explains how an operator can lift a refusal of the guest (balloon/balloon.h; NULL: none), with this history (NULL: the
 * default one); "" if that is unknown.
 */
void balloon_hint(const struct wss_cli *cli, const char *history, const struct wss_guest *guest,
		  const char *refusal, char ret_hint[WSS_BALLOON_HINT_MAX]);

/* Logs that hint. */
void balloon_say_hint(const char *guest, const char *hint);

/* Returns the command that gives the guest back what a killed controller took; "" if it would be too long. */
void balloon_restore_hint(const struct wss_cli *cli, const char *history, const char *guest,
			  char ret_hint[WSS_BALLOON_HINT_MAX]);

/*
 * Runs the controller, or what options->restore or ->forget ask for, for the guests of the command line, with
 * this history. Reports events on stderr and counts failures in the tally; *ret_guests and errors are
 * those of wss_controller_run(), wss_restore_run() or wss_restore_forget().
 */
int balloon_carry_out(const struct wss_cli *cli, struct balloon_options *options,
		      const char *history, struct wss_tally *tally, size_t *ret_guests,
		      struct wss_error *err);

/* Prints what the controller would do. Returns the exit code. */
int balloon_dry_run(const struct wss_cli *cli, const struct balloon_options *options);
