/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/testing.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "show/metrics.h"

static const struct wss_metric gauge = {"virt_wss_working_set_bytes", WSS_METRIC_GAUGE, "bytes",
					"Working set"};
static const struct wss_metric counter = {"virt_wss_windows", WSS_METRIC_COUNTER, NULL, "Windows"};
static const struct wss_metric info = {"virt_wss_domain", WSS_METRIC_INFO, NULL, "A guest"};

static void write_page(struct wss_metrics *metrics)
{
	const struct wss_label labels[] = {{"domain", "web1"}, {"window", "4s"}};

	wss_metrics_family(metrics, &info);
	wss_metrics_value(metrics, labels, 1, 42);
	wss_metrics_family(metrics, &gauge);
	wss_metrics_value(metrics, labels, 2, 1048576);
	wss_metrics_value(metrics, labels, 0, 0.25);
	/* Without a value: not there. */
	wss_metrics_family(metrics, &counter);
	wss_metrics_family(metrics, &counter);
	wss_metrics_value(metrics, labels, 0, 9007199254740991.0);
	wss_metrics_end(metrics);
}

static char *page_of(enum wss_metrics_form form)
{
	char *text = NULL;
	size_t size;
	FILE *stream = open_memstream(&text, &size);
	struct wss_metrics metrics = wss_metrics_begin(stream, form);

	write_page(&metrics);
	fclose(stream);
	return text;
}

TEST(test_prometheus)
{
	char *text = page_of(WSS_METRICS_PROMETHEUS);

	assert_string_equal(text,
			    "# HELP virt_wss_domain_info A guest\n"
			    "# TYPE virt_wss_domain_info gauge\n"
			    "virt_wss_domain_info{domain=\"web1\"} 1\n"
			    "# HELP virt_wss_working_set_bytes Working set\n"
			    "# TYPE virt_wss_working_set_bytes gauge\n"
			    "virt_wss_working_set_bytes{domain=\"web1\",window=\"4s\"} 1048576\n"
			    "virt_wss_working_set_bytes 0.25\n"
			    "# HELP virt_wss_windows_total Windows\n"
			    "# TYPE virt_wss_windows_total counter\n"
			    "virt_wss_windows_total 9007199254740991\n");
	free(text);
}

TEST(test_openmetrics)
{
	char *text = page_of(WSS_METRICS_OPENMETRICS);

	assert_string_equal(text,
			    "# HELP virt_wss_domain A guest\n"
			    "# TYPE virt_wss_domain info\n"
			    "virt_wss_domain_info{domain=\"web1\"} 1\n"
			    "# HELP virt_wss_working_set_bytes Working set\n"
			    "# TYPE virt_wss_working_set_bytes gauge\n"
			    "# UNIT virt_wss_working_set_bytes bytes\n"
			    "virt_wss_working_set_bytes{domain=\"web1\",window=\"4s\"} 1048576\n"
			    "virt_wss_working_set_bytes 0.25\n"
			    "# HELP virt_wss_windows Windows\n"
			    "# TYPE virt_wss_windows counter\n"
			    "virt_wss_windows_total 9007199254740991\n"
			    "# EOF\n");
	free(text);
}

static void assert_label(const char *value, const char *expected)
{
	const struct wss_label label = {"domain", value};
	char *text = NULL, line[256];
	size_t size;
	FILE *stream = open_memstream(&text, &size);
	struct wss_metrics metrics = wss_metrics_begin(stream, WSS_METRICS_PROMETHEUS);

	wss_metrics_family(&metrics, &gauge);
	wss_metrics_value(&metrics, &label, 1, 0);
	fclose(stream);
	snprintf(line, sizeof(line), "{domain=\"%s\"} 0\n", expected);
	assert_non_null(strstr(text, line));
	free(text);
}

TEST(test_labels_are_escaped)
{
	assert_label("a\"b\\c\nd", "a\\\"b\\\\c\\nd");
	assert_label("\xc3\xa4\xe2\x82\xac", "\xc3\xa4\xe2\x82\xac");
	assert_label("a\x1b[2Jb\xff", "a?[2Jb?");
	assert_label("a\xe2\x80\xae"
		     "b",
		     "a???b");
	assert_label("", "");
}

TEST(test_numbers)
{
	char *text = NULL;
	size_t size;
	FILE *stream = open_memstream(&text, &size);
	struct wss_metrics metrics = wss_metrics_begin(stream, WSS_METRICS_PROMETHEUS);

	wss_metrics_family(&metrics, &gauge);
	wss_metrics_value(&metrics, NULL, 0, NAN);
	wss_metrics_value(&metrics, NULL, 0, INFINITY);
	wss_metrics_value(&metrics, NULL, 0, -INFINITY);
	wss_metrics_value(&metrics, NULL, 0, -1.5);
	wss_metrics_value(&metrics, NULL, 0, 0.1);
	fclose(stream);
	assert_non_null(strstr(text, "_bytes NaN\nvirt_wss_working_set_bytes +Inf\n"
				     "virt_wss_working_set_bytes -Inf\n"
				     "virt_wss_working_set_bytes -1.5\n"
				     "virt_wss_working_set_bytes 0.1\n"));
	free(text);
}

int main(void)
{
	return tests_run();
}
