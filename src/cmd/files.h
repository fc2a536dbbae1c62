/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the commands share that work on recordings: they take files where others take domains.
 */
#ifndef WSS_CMD_FILES_H
#define WSS_CMD_FILES_H

#include <stdbool.h>
#include <stdint.h>

#include "cmd/cmd.h"
#include "rec/reader.h"

enum { WSS_OPT_PLOT = 3000, WSS_OPT_SALVAGE, WSS_OPT_LIMIT };

#define WSS_PLOT_LONG { "plot", required_argument, NULL, WSS_OPT_PLOT }
#define WSS_SALVAGE_LONG { "salvage", no_argument, NULL, WSS_OPT_SALVAGE }
#define WSS_LIMIT_LONG { "limit", required_argument, NULL, WSS_OPT_LIMIT }

struct wss_files_options {
	const char *plot; /* NULL: no picture */
	uint64_t limit;	  /* rows at most */
	bool limit_given; /* by the user */
	bool salvage;
};

#define WSS_FILES_OPTIONS_INIT { .limit = 20 }

/* Takes option c, which is one of these. WSS_ERR_USAGE. */
int wss_files_option(struct wss_files_options *options, int c, const char *value,
		     struct wss_error *err);

/*
 * Takes the words behind the options as least to most files (0: no limit). WSS_ERR_USAGE, also
 * for global options that say where guests are.
 */
int wss_files_finish(struct wss_cli *cli, int argc, char **argv, int least, int most,
		     struct wss_error *err);

/*
 * Can these be compared: is the guests' memory laid out alike? Warns where they are of different
 * guests or granularity. WSS_ERR_FAILED.
 */
int wss_files_alike(const struct wss_recfile *a, const struct wss_recfile *b, struct wss_error *err);

/* Opens a recording, which must have a window, and warns where it was cut off or is damaged. */
int wss_files_open(const char *path, bool salvage, struct wss_recfile **ret_file,
		   struct wss_error *err);

#endif
