/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Shared by profile.c, which measures, and profile-report.c, which prints. */
#pragma once

#include "cmd/cmd.h"
#include "measure/curve.h"
#include "measure/round.h"
#include "show/progress.h"

struct profile_options {
	struct wss_round_options round;
	uint64_t deadline_ns;
	uint64_t from_ns;
	const char *plot;
};

/* Sum over the windows of one guest. */
struct guest_profile {
	struct wss_grid grid;
	struct wss_sample last; /* last window that was measured */
	unsigned windows;
	unsigned degraded; /* number of degraded windows */
	unsigned vcpus;	   /* vCPUs of the guest, at least 1 */
};

struct profile_run {
	const struct wss_cli *cli;
	const struct profile_options *options;
	struct guest_profile *profiles; /* n elements, one for each guest */
	size_t n;
	size_t missed_by_none; /* guests that were left out and do not count as failed */
	size_t name_width;
	char host[65];
	struct wss_tally tally;
	struct wss_progress *line; /* shown on the terminal; NULL if there is none */
};

extern const struct wss_report_layout wss_profile_layout;

/*
 * Prints the curves. A single curve in a table is drawn, unless columns or an order were
 * requested. Returns 0, or -1 if the output cannot be written.
 */
int wss_profile_print(struct profile_run *run, struct wss_error *err);

/* Writes the picture to the file in run->options->plot, unless no window was measured. */
int wss_profile_plot(struct profile_run *run, struct wss_error *err);
