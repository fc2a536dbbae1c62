/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Options for the path of the history and for how long samples are kept. */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "history/history.h"

enum { WSS_OPT_HISTORY = 4000, WSS_OPT_KEEP, WSS_OPT_KEEP_SIZE };

#define WSS_HISTORY_LONG                                            \
	{                                                           \
		"history", required_argument, NULL, WSS_OPT_HISTORY \
	}

#define WSS_STORE_LONG                                                     \
	WSS_HISTORY_LONG, {"keep", required_argument, NULL, WSS_OPT_KEEP}, \
	{                                                                  \
		"keep-size", required_argument, NULL, WSS_OPT_KEEP_SIZE    \
	}

struct wss_store_options {
	const char *path; /* NULL: the default */
	struct wss_history_limits limits;
	bool given; /* any of these options was given */
};

#define WSS_STORE_OPTIONS_INIT                       \
	{                                            \
		.limits = WSS_HISTORY_LIMITS_DEFAULT \
	}

/*
 * Appends to a message that there is no history how to name another one, and where root's is, if that exists and the caller is
 * another user.
 */
#define WSS_STORE_ELSEWHERE_MAX 240
void wss_store_elsewhere(char ret_text[WSS_STORE_ELSEWHERE_MAX]);

/*
 * Stores option c of getopt_long() with its value. Returns 1 if it is one of these options, 0
 * if not, -1 with err set.
 */
int wss_store_option(struct wss_store_options *options, int c, const char *value,
		     struct wss_error *err);

/*
 * Opens the history for reading; close it with wss_history_close(). If there is none yet at
 * the default path, reports that, leaves *ret_history NULL and returns 0. Returns -1 with
 * WSS_ERR_GONE if the file that --history names does not exist, WSS_ERR_NO_MEMORY, and the
 * errors of wss_history_open_readonly().
 */
int wss_store_open_reader(const struct wss_store_options *options, struct wss_history **ret_history,
			  struct wss_error *err);

/* Returns the path of the history, malloc()ed; NULL when out of memory. */
char *wss_store_path(const struct wss_store_options *options);
