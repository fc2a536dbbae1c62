/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The verdict of check. */
#pragma once

#include "client/guests.h"
#include "show/plugin.h"

struct wss_check_options {
	struct wss_threshold warning, critical;		/* working set in percent of the balloon */
	struct wss_threshold age_warning, age_critical; /* of the sample, in seconds */
	enum wss_plugin_state held, refused, empty;
	bool brief; /* no performance data of single guests */
};

/*
 * Judges the guests and prints the line with its performance data. all: they are all guests of the
 * host, else those that were named. source follows the text: where the figures come from.
 * Returns the exit status.
 */
enum wss_plugin_state wss_check_print(const struct wss_check_options *options,
				      const struct wss_guests *guests, bool all,
				      const char *source);

/* Prints that nothing is known, because of err. Returns the exit status. */
enum wss_plugin_state wss_check_print_unknown(const struct wss_error *err);
