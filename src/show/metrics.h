/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Metrics as text, in the two forms that Prometheus and what is like it read: its own (version 0.0.4)
 * and OpenMetrics (1.0.0).
 *
 * A metric is a family of values that share a name, a type and a help text, and differ in their labels.
 * All values of a family must follow each other. Names are ours; label values are from outside and are
 * escaped, and what no reader could take for text is replaced (base/text.h).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum wss_metrics_form { WSS_METRICS_PROMETHEUS, WSS_METRICS_OPENMETRICS };

/* Of what Content-Type says. Static. */
const char *wss_metrics_content_type(enum wss_metrics_form form);

enum wss_metric_type { WSS_METRIC_GAUGE, WSS_METRIC_COUNTER, WSS_METRIC_INFO };

/*
 * A family. name has its unit, and neither "_total" nor "_info", which the forms add where they want it;
 * help is a sentence without a full stop.
 */
struct wss_metric {
	const char *name;
	enum wss_metric_type type;
	const char *unit; /* the last part of name, such as "bytes"; NULL: it has none */
	const char *help;
};

struct wss_label {
	const char *name;
	const char *value;
};

struct wss_metrics {
	FILE *stream;
	enum wss_metrics_form form;
	const struct wss_metric *family; /* whose values are written */
	bool described;			 /* its first value has been written */
};

/* Begins a page. stream must outlive it; its errors are the caller's to look at. */
struct wss_metrics wss_metrics_begin(FILE *stream, enum wss_metrics_form form);

/* Begins a family; one without values is not written at all. metric must outlive it. */
void wss_metrics_family(struct wss_metrics *metrics, const struct wss_metric *metric);

/* Writes a value of the family. NaN and infinities are written as such; an info's value is 1. */
void wss_metrics_value(struct wss_metrics *metrics, const struct wss_label *labels, size_t n,
		       double value);

/* Ends the page. */
void wss_metrics_end(struct wss_metrics *metrics);
