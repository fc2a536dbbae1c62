/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "serve/setting-types.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/newfile.h"
#include "base/newfile.h"
#include "base/units.h"

static void *setting_value(const struct wss_serve_setting *setting, struct wss_serve_config *config)
{
	return (char *)config + setting->offset;
}

static const void *setting_value_const(const struct wss_serve_setting *setting,
				       const struct wss_serve_config *config)
{
	return (const char *)config + setting->offset;
}

static int duration_set(const struct wss_serve_setting *setting, struct wss_serve_config *config,
			const char *value, const char *what, struct wss_error *err)
{
	return wss_duration_parse(value, setting->max, what, setting_value(setting, config), err);
}

static void duration_format(const struct wss_serve_setting *setting,
			    const struct wss_serve_config *config, char *ret_text, size_t size)
{
	const uint64_t *ns = setting_value_const(setting, config);

	wss_duration_format_typed(*ns, ret_text, size);
}

static int share_set(const struct wss_serve_setting *setting, struct wss_serve_config *config,
		     const char *value, const char *what, struct wss_error *err)
{
	return wss_percent_parse(value, 0.001, 100, what, setting_value(setting, config), err);
}

/* 0 switches off what the share limits. */
static int share_or_0_set(const struct wss_serve_setting *setting, struct wss_serve_config *config,
			  const char *value, const char *what, struct wss_error *err)
{
	return wss_percent_parse(value, 0, 100, what, setting_value(setting, config), err);
}

static void share_format(const struct wss_serve_setting *setting,
			 const struct wss_serve_config *config, char *ret_text, size_t size)
{
	const double *share = setting_value_const(setting, config);

	snprintf(ret_text, size, "%.6g%%", 100 * *share);
}

static int text_set(const struct wss_serve_setting *setting, struct wss_serve_config *config,
		    const char *value, const char *what, struct wss_error *err)
{
	const char **text = setting_value(setting, config);

	if (!*value)
		return wss_error_set(err, WSS_ERR_USAGE, "%s: the value is empty", what);
	*text = value;
	return 0;
}

static int file_set(const struct wss_serve_setting *setting, struct wss_serve_config *config,
		    const char *value, const char *what, struct wss_error *err)
{
	return text_set(setting, config, value, what, err) < 0
		       ? -1
		       : wss_newfile_check_path(value, what, err);
}

static void text_format(const struct wss_serve_setting *setting,
			const struct wss_serve_config *config, char *ret_text, size_t size)
{
	const char *const *text = setting_value_const(setting, config);

	snprintf(ret_text, size, "%s", *text ? *text : "");
}

static int flag_set(const struct wss_serve_setting *setting, struct wss_serve_config *config,
		    const char *value, const char *what, struct wss_error *err)
{
	static const char *const words[] = {"no", "yes", "false", "true", "off", "on", "0", "1"};
	bool *flag = setting_value(setting, config);

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (!strcmp(value, words[i])) {
			*flag = i % 2;
			return 0;
		}
	return wss_error_set(err, WSS_ERR_USAGE, "%s: '%s' is not yes or no", what, value);
}

static void flag_format(const struct wss_serve_setting *setting,
			const struct wss_serve_config *config, char *ret_text, size_t size)
{
	const bool *flag = setting_value_const(setting, config);

	snprintf(ret_text, size, "%s", *flag ? "yes" : "no");
}

static int method_set(const struct wss_serve_setting *setting, struct wss_serve_config *config,
		      const char *value, const char *what, struct wss_error *err)
{
	struct wss_measure_options *measure = &config->serve.watch.measure;

	if (wss_tracker_parse(value, &measure->method, &measure->window.track, err) < 0)
		return wss_error_prefix(err, "%s", what);
	return text_set(setting, config, value, what, err);
}

static int granularity_set(const struct wss_serve_setting *setting, struct wss_serve_config *config,
			   const char *value, const char *what, struct wss_error *err)
{
	struct wss_track_options *track = &config->serve.watch.measure.window.track;

	if (wss_granularity_parse(value, &track->granularity) < 0)
		return wss_error_set(err, WSS_ERR_USAGE, "%s: '%s' is not auto, native or 4k", what,
				     value);
	return text_set(setting, config, value, what, err);
}

static int metrics_set(const struct wss_serve_setting *setting, struct wss_serve_config *config,
		       const char *value, const char *what, struct wss_error *err)
{
	if (wss_metrics_level_parse(value, &config->serve.metrics, err) < 0)
		return wss_error_prefix(err, "%s", what);
	return text_set(setting, config, value, what, err);
}

/* Adds all addresses of the value; blanks separate them. */
static int listen_set(const struct wss_serve_setting *setting, struct wss_serve_config *config,
		      const char *value, const char *what, struct wss_error *err)
{
	struct wss_http_options *http = setting_value(setting, config);
	wss_auto_free char *copy = strdup(value);
	char *rest = copy, *word;

	if (!copy)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	while ((word = strsep(&rest, " \t"))) {
		/* A value without any address is an error; several blanks in a row are not. */
		if (!*word && (rest || *value))
			continue;
		if (http->n_addresses == WSS_HTTP_LISTENERS_MAX)
			return wss_error_set(err, WSS_ERR_USAGE,
					     "%s: at most %d addresses are possible", what,
					     WSS_HTTP_LISTENERS_MAX);
		if (wss_http_address_parse(word, what, &http->addresses[http->n_addresses], err) <
		    0)
			return -1;
		http->n_addresses++;
	}
	return 0;
}

static void listen_format(const struct wss_serve_setting *setting,
			  const struct wss_serve_config *config, char *ret_text, size_t size)
{
	const struct wss_http_options *http = setting_value_const(setting, config);
	char name[WSS_HTTP_ADDRESS_TEXT_MAX];
	size_t len = 0;

	*ret_text = '\0';
	for (size_t i = 0; i < http->n_addresses && len < size; i++) {
		wss_http_address_format(&http->addresses[i], name);
		len += (size_t)snprintf(ret_text + len, size - len, "%s%s", i ? " " : "", name);
	}
}

static int keep_set(const struct wss_serve_setting *setting, struct wss_serve_config *config,
		    const char *value, const char *what, struct wss_error *err)
{
	return wss_history_keep_parse(value, what, setting_value(setting, config), err);
}

static void keep_format(const struct wss_serve_setting *setting,
			const struct wss_serve_config *config, char *ret_text, size_t size)
{
	const struct wss_history_limits *limits = setting_value_const(setting, config);

	wss_duration_format_typed(limits->days_s * WSS_NS_PER_S, ret_text, size);
}

static int size_set(const struct wss_serve_setting *setting, struct wss_serve_config *config,
		    const char *value, const char *what, struct wss_error *err)
{
	return wss_size_limit_parse(value, what, setting_value(setting, config), err);
}

static void size_format(const struct wss_serve_setting *setting,
			const struct wss_serve_config *config, char *ret_text, size_t size)
{
	const uint64_t *bytes = setting_value_const(setting, config);

	if (*bytes % WSS_MIB)
		snprintf(ret_text, size, "%" PRIu64 "B", *bytes);
	else
		snprintf(ret_text, size, "%" PRIu64 "MiB", (uint64_t)(*bytes / WSS_MIB));
}

const struct wss_serve_type wss_serve_type_duration = {duration_set, duration_format};
const struct wss_serve_type wss_serve_type_share = {share_set, share_format};
const struct wss_serve_type wss_serve_type_share_or_0 = {share_or_0_set, share_format};
const struct wss_serve_type wss_serve_type_text = {text_set, text_format};
const struct wss_serve_type wss_serve_type_file = {file_set, text_format};
const struct wss_serve_type wss_serve_type_flag = {flag_set, flag_format};
const struct wss_serve_type wss_serve_type_method = {method_set, text_format};
const struct wss_serve_type wss_serve_type_granularity = {granularity_set, text_format};
const struct wss_serve_type wss_serve_type_metrics = {metrics_set, text_format};
const struct wss_serve_type wss_serve_type_listen = {listen_set, listen_format};
const struct wss_serve_type wss_serve_type_keep = {keep_set, keep_format};
const struct wss_serve_type wss_serve_type_size = {size_set, size_format};
