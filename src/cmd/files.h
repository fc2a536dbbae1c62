/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the commands share that work on recordings: they take files where others take domains.
 */
#ifndef WSS_CMD_FILES_H
#define WSS_CMD_FILES_H

#include "cmd/cmd.h"
#include "rec/reader.h"

enum { WSS_OPT_PLOT = 3000, WSS_OPT_SALVAGE, WSS_OPT_LIMIT };

#define WSS_FILES_LIMIT_MAX 1000000

/*
 * Takes the words behind the options as least to most files (0: no limit). WSS_ERR_USAGE, also
 * for global options that say where guests are.
 */
int wss_files_finish(struct wss_cli *cli, int argc, char **argv, int least, int most,
		     struct wss_error *err);

/* Opens a recording, and warns where it was cut off or is damaged. */
int wss_files_open(const char *path, bool salvage, struct wss_recfile **ret_file,
		   struct wss_error *err);

#endif
