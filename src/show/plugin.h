/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The output of a monitoring plugin for Nagios, Icinga and others: states, thresholds and performance
 * data as in the Monitoring Plugins' guidelines
 * (https://www.monitoring-plugins.org/doc/guidelines.html).
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "base/bound.h"
#include "base/error.h"

/* The exit status of a plugin. */
enum wss_plugin_state {
	WSS_PLUGIN_OK,
	WSS_PLUGIN_WARNING,
	WSS_PLUGIN_CRITICAL,
	WSS_PLUGIN_UNKNOWN,
};

/* "OK", "WARNING", "CRITICAL", "UNKNOWN". */
const char *wss_plugin_state_name(enum wss_plugin_state state);

/* Parses such a name in either case; what names the option in the error. WSS_ERR_USAGE. */
int wss_plugin_state_parse(const char *text, const char *what, enum wss_plugin_state *ret_state,
			   struct wss_error *err);

/* Returns the worse of two: CRITICAL, WARNING, UNKNOWN, OK. */
enum wss_plugin_state wss_plugin_worse(enum wss_plugin_state a, enum wss_plugin_state b);

/* Room for the text of a range with its final NUL. */
#define WSS_THRESHOLD_TEXT_MAX 40

/* Alerts outside of low to high, or with inside, within it. */
struct wss_threshold {
	double low, high; /* may be infinite */
	bool inside;
	char text[WSS_THRESHOLD_TEXT_MAX]; /* as typed; "": there is none, and it never alerts */
};

/*
 * Parses "[@][START:][END]": START defaults to 0, "~" is minus infinity; without END it is
 * infinite. what names the option in the error. WSS_ERR_USAGE.
 */
int wss_threshold_parse(const char *text, const char *what, struct wss_threshold *ret_threshold,
			struct wss_error *err);

/* Returns CRITICAL, WARNING or OK. */
enum wss_plugin_state wss_plugin_judge(const struct wss_threshold *warning,
				       const struct wss_threshold *critical, double value);

/* Room for any number with its final NUL. */
#define WSS_PLUGIN_NUMBER_MAX 400

/*
 * Formats a value with at least that number of decimals, and as many more as it takes for what is shown to be on the
 * same side of each threshold as the value: "90%" must not exceed 90. What is a bound is rounded to remain one.
 */
void wss_plugin_number(double value, enum wss_bound bound, int decimals,
		       const struct wss_threshold *warning, const struct wss_threshold *critical,
		       char ret_text[WSS_PLUGIN_NUMBER_MAX]);

/*
 * Prints text for the line of the plugin: hidden characters, and the bar that starts performance
 * data, become '?'.
 */
void wss_plugin_text(FILE *stream, const char *text);

/* Does the same for a guest's name, which wss_name_shorten() shortens. */
void wss_plugin_name(FILE *stream, const char *name);

struct wss_plugin_figure {
	const char *name; /* of what it belongs to, such as a guest; NULL: the host */
	const char *id;	  /* tells those names apart that have to be changed for a label */
	const char *what; /* "wss" */
	const char *unit; /* "B", "s", "%", "" */
	bool known;
	double value;
	const struct wss_threshold *warning, *critical; /* NULL: none */
	double max; /* the minimum is 0; 0: there is no maximum */
};

/* Prints a blank and 'label'=value[unit];warn;crit;min;max. */
void wss_plugin_figure(FILE *stream, const struct wss_plugin_figure *figure);
