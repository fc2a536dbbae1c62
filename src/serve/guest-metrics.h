/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the service knows, as metrics: "virt_wss_", in base units (docs/metrics.md). */
#pragma once

#include <stdio.h>

#include "serve/archive.h"
#include "show/metrics.h"
#include "watch/advisor.h"
#include "watch/watch.h"

/* How many series a guest has at most, by level. A level has all series of the levels below it. */
#define WSS_METRICS_MINIMAL_MAX 12
#define WSS_METRICS_STANDARD_MAX 31
#define WSS_METRICS_FULL_MAX 34

enum wss_metrics_level {
	WSS_METRICS_MINIMAL = -1, /* its working set, its size, what it could do without */
	WSS_METRICS_STANDARD = 0,
	WSS_METRICS_FULL = 1,
};

/* Parses "minimal", "standard" or "full"; WSS_ERR_USAGE. */
int wss_metrics_level_parse(const char *text, enum wss_metrics_level *ret_level,
			    struct wss_error *err);

/* What the service knows besides the guests. */
struct wss_service_facts {
	enum wss_metrics_level level;
	const struct wss_watch_options *options;
	const struct wss_advisor *advisor; /* NULL: nothing is advised */
	uint64_t since_ns;		   /* when the service started, wss_clock_now_ns() */
	bool connected;			   /* to libvirt */
	struct wss_archive_counts samples; /* for the history since the start */
	bool http;			   /* HTTP is to be served */
	bool http_up;			   /* it is */
	uint64_t http_starts;		   /* of the process that speaks it */
};

/*
 * Writes a page of all metrics. A figure that is not known has no value; one of a guest that is
 * not measured now has the value of its last window, beside the age of that.
 */
void wss_metrics_write(FILE *stream, enum wss_metrics_form form, const struct wss_watch *watch,
		       const struct wss_service_facts *facts);
