/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "show/metrics.h"

#include <math.h>
#include <string.h>

#include "base/text.h"
#include "base/units.h"

/* Whole numbers up to here are exact in a double. */
#define EXACT_BELOW 9007199254740992.0

const char *wss_metrics_content_type(enum wss_metrics_form form)
{
	return form == WSS_METRICS_OPENMETRICS
		       ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
		       : "text/plain; version=0.0.4; charset=utf-8";
}

struct wss_metrics wss_metrics_begin(FILE *stream, enum wss_metrics_form form)
{
	return (struct wss_metrics){.stream = stream, .form = form};
}

void wss_metrics_family(struct wss_metrics *metrics, const struct wss_metric *metric)
{
	metrics->family = metric;
	metrics->described = false;
}

/* What a form adds to the name of a value. */
static const char *value_suffix(const struct wss_metric *metric)
{
	if (metric->type == WSS_METRIC_COUNTER)
		return "_total";
	return metric->type == WSS_METRIC_INFO ? "_info" : "";
}

/* Prometheus' own form describes the name of the values, and knows no infos. */
static void describe_family(struct wss_metrics *metrics)
{
	static const char *const types[] = {
		[WSS_METRIC_GAUGE] = "gauge",
		[WSS_METRIC_COUNTER] = "counter",
		[WSS_METRIC_INFO] = "info",
	};
	const struct wss_metric *metric = metrics->family;
	bool open = metrics->form == WSS_METRICS_OPENMETRICS;
	const char *suffix = open ? "" : value_suffix(metric);
	const char *type = !open && metric->type == WSS_METRIC_INFO ? "gauge" : types[metric->type];

	metrics->described = true;
	fprintf(metrics->stream, "# HELP %s%s %s\n# TYPE %s%s %s\n", metric->name, suffix,
		metric->help, metric->name, suffix, type);
	if (open && metric->unit)
		fprintf(metrics->stream, "# UNIT %s %s\n", metric->name, metric->unit);
}

/* Three characters are escaped; what is hidden or is no UTF-8 becomes a question mark. */
static void put_label_value(FILE *stream, const char *text)
{
	for (;;) {
		size_t plain = wss_text_plain(text);
		int len;

		fwrite_unlocked(text, 1, plain, stream);
		text += plain;
		if (!*text)
			return;
		len = wss_text_shown(text);
		if (*text == '\\' || *text == '"')
			fprintf(stream, "\\%c", *text);
		else if (*text == '\n')
			fputs("\\n", stream);
		else if (len)
			fwrite(text, (size_t)len, 1, stream);
		else
			fputc('?', stream);
		text += len ? len : 1;
	}
}

static void put_value(FILE *stream, double value)
{
	char text[WSS_NUMBER_TEXT_MAX];

	if (isnan(value)) {
		fputs(" NaN\n", stream);
	} else if (isinf(value)) {
		fputs(value > 0 ? " +Inf\n" : " -Inf\n", stream);
	} else if (value >= 0 && value < EXACT_BELOW && value == (double)(uint64_t)value) {
		putc_unlocked(' ', stream);
		fputs_unlocked(wss_number_format((uint64_t)value, text), stream);
		putc_unlocked('\n', stream);
	} else if (value == floor(value) && fabs(value) < EXACT_BELOW) {
		fprintf(stream, " %.0f\n", value);
	} else {
		fprintf(stream, " %.12g\n", value);
	}
}

void wss_metrics_value(struct wss_metrics *metrics, const struct wss_label *labels, size_t n,
		       double value)
{
	FILE *stream = metrics->stream;

	if (!metrics->described)
		describe_family(metrics);
	fputs_unlocked(metrics->family->name, stream);
	fputs_unlocked(value_suffix(metrics->family), stream);
	for (size_t i = 0; i < n; i++) {
		putc_unlocked(i ? ',' : '{', stream);
		fputs_unlocked(labels[i].name, stream);
		fputs_unlocked("=\"", stream);
		put_label_value(stream, labels[i].value);
		putc_unlocked('"', stream);
	}
	fputs_unlocked(n ? "}" : "", stream);
	put_value(stream, metrics->family->type == WSS_METRIC_INFO ? 1 : value);
}

void wss_metrics_end(struct wss_metrics *metrics)
{
	if (metrics->form == WSS_METRICS_OPENMETRICS)
		fputs("# EOF\n", metrics->stream);
}
