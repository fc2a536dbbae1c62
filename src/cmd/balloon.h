/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The options of balloon.c, shared with balloon-dry-run.c. */
#ifndef WSS_CMD_BALLOON_H
#define WSS_CMD_BALLOON_H

#include <stdbool.h>

#include "cmd/cmd.h"
#include "cmd/sizing-options.h"
#include "control/controller.h"

struct balloon_options {
	struct wss_sizing_options sizing;
	struct wss_balloon_options control;
	bool apply, restore;
};

extern const struct wss_report_layout balloon_layout;

/* Prints what the controller would do. Returns the exit code. */
int balloon_dry_run(const struct wss_cli *cli, const struct balloon_options *options);

#endif
