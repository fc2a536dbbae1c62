/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Shared by the commands that work on recordings and so take files instead of domains. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cmd/cmd.h"
#include "recording/reader.h"

enum { WSS_OPT_PLOT = 3000, WSS_OPT_SALVAGE, WSS_OPT_LIMIT };

#define WSS_PLOT_LONG                                         \
	{                                                     \
		"plot", required_argument, NULL, WSS_OPT_PLOT \
	}
#define WSS_SALVAGE_LONG                                      \
	{                                                     \
		"salvage", no_argument, NULL, WSS_OPT_SALVAGE \
	}
#define WSS_LIMIT_LONG                                          \
	{                                                       \
		"limit", required_argument, NULL, WSS_OPT_LIMIT \
	}

struct wss_files_options {
	const char *plot; /* NULL: no picture */
	uint64_t limit;	  /* largest number of rows */
	bool limit_given; /* the user gave a limit */
	bool salvage;
};

#define WSS_FILES_OPTIONS_INIT \
	{                      \
		.limit = 20    \
	}

/*
 * Stores option c of getopt_long() with its value. Returns 1, 0 if it is none of these, or
 * -1.
 */
int wss_files_option(struct wss_files_options *options, int c, const char *value,
		     struct wss_error *err);

/*
 * Takes the arguments after the options as at least `least` and at most `most` files (0: no
 * limit). WSS_ERR_USAGE, also for global options that select guests or a connection.
 */
int wss_files_finish(struct wss_cli *cli, int argc, char **argv, int least, int most,
		     struct wss_error *err);

/* Notes how many windows of a recording are degraded, if any. */
void wss_files_note_degraded(const struct wss_recfile *file);
