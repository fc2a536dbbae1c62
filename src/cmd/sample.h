/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the two ways of "sample" share: all guests at the same time, and the round that
 * stores.
 */
#ifndef WSS_CMD_SAMPLE_H
#define WSS_CMD_SAMPLE_H

#include "cmd/cmd.h"
#include "cmd/store-options.h"

struct sample_options {
	struct wss_round_options round;
	struct wss_store_options history;
	bool granularity_given;
	bool store;
	bool publish;
	bool persistent; /* publish in the configuration, too */
};

struct sample_run {
	const struct sample_options *options;
	const struct wss_guests *guests;
	/* With --granularity both: */
	struct wss_sample *natives; /* one a guest, of the window before */
	bool last_turn;
	size_t ended; /* guests of this turn that another one would not measure either */
	enum wss_format format;
	struct wss_report *report;
	struct wss_tally tally;
};

/* Says beside a table what it has no room for. */
void wss_sample_print_notes(const struct wss_sample *sample);

/* A guest counts once: a series with a window missing is not whole, whatever follows. */
void wss_sample_count_bad(struct sample_run *run, struct wss_round_guest *entry,
			  const char *domain, const struct wss_error *error);

/* sample --store: one guest after the other, each within its deadline. The exit code. */
int wss_sample_job(const struct wss_cli *cli, const struct sample_options *options);

#endif
