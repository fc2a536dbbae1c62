/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "cmd/serve-options.h"

#include <stdio.h>

#include "base/units.h"

/* Room for the name of an option in messages. */
#define WHAT_MAX 64

/* As values of getopt_long(): a setting, plus 1. */
#define OPTION(id) ((int)WSS_SERVE_##id + 1)
enum { OPT_CONFIG = 900, OPT_CHECK_CONFIG };

#define ARGUMENT_duration required_argument
#define ARGUMENT_share required_argument
#define ARGUMENT_share_or_0 required_argument
#define ARGUMENT_text required_argument
#define ARGUMENT_file required_argument
#define ARGUMENT_flag no_argument
#define ARGUMENT_method required_argument
#define ARGUMENT_granularity required_argument
#define ARGUMENT_metrics required_argument
#define ARGUMENT_listen required_argument
#define ARGUMENT_keep required_argument
#define ARGUMENT_size required_argument
#define SETTING_LONG(id, section, name, type, ...) {name, ARGUMENT_##type, NULL, OPTION(id)},

const struct option serve_long_options[] = {
	WSS_COMMON_LONG,
	/* clang-format off */
	WSS_SERVE_SETTINGS(SETTING_LONG)
	/* clang-format on */
	{"config", required_argument, NULL, OPT_CONFIG},
	{"check-config", no_argument, NULL, OPT_CHECK_CONFIG},
	{NULL, 0, NULL, 0},
};

static int typed_set(enum wss_serve_setting_id setting, struct wss_serve_config *config,
		     const char *value, struct wss_error *err)
{
	char what[WHAT_MAX];

	snprintf(what, sizeof(what), "--%s", wss_serve_setting_name(setting));
	return wss_serve_config_set(config, setting, value, what, err);
}

int serve_typed_option(void *opaque, int c, const char *value, struct wss_error *err)
{
	struct wss_serve_config scratch = WSS_SERVE_CONFIG_INIT;
	struct serve_typed *typed = opaque;
	enum wss_serve_setting_id setting = (enum wss_serve_setting_id)(c - 1);

	if (c == OPT_CONFIG) {
		typed->config = value;
		return 0;
	}
	if (c == OPT_CHECK_CONFIG) {
		typed->check = true;
		return 0;
	}
	typed->words[typed->n].setting = setting;
	/* A flag has no value. */
	typed->words[typed->n].value = value ? value : "yes";
	return typed_set(setting, &scratch, typed->words[typed->n++].value, err);
}

static bool typed_has(const struct serve_typed *typed, enum wss_serve_setting_id setting)
{
	for (size_t i = 0; i < typed->n; i++)
		if (typed->words[i].setting == setting)
			return true;
	return false;
}

static int config_apply_typed(struct wss_serve_config *config, const struct serve_typed *typed,
			      struct wss_error *err)
{
	if (typed_has(typed, WSS_SERVE_NO_STORE) &&
	    (typed_has(typed, WSS_SERVE_HISTORY) || typed_has(typed, WSS_SERVE_KEEP) ||
	     typed_has(typed, WSS_SERVE_KEEP_SIZE)))
		return wss_error_set(err, WSS_ERR_USAGE,
				     "--no-store excludes --history, --keep and --keep-size");
	if (typed_has(typed, WSS_SERVE_LISTEN))
		config->serve.http.n_addresses = 0;
	if (typed_has(typed, WSS_SERVE_HISTORY))
		config->no_store = false;
	for (size_t i = 0; i < typed->n; i++)
		if (typed_set(typed->words[i].setting, config, typed->words[i].value, err) < 0)
			return -1;
	if (typed->uri)
		config->uri = typed->uri;
	config->allow_monitor |= typed->allow_monitor;
	config->debug |= typed->debug;
	return 0;
}

static int config_check(const struct wss_serve_config *config, struct wss_error *err)
{
	const struct wss_watch_options *watch = &config->serve.watch;
	uint64_t window_ns = watch->measure.window.track.window_ns;
	char period[32], window[32];

	if (window_ns > watch->period_ns) {
		wss_duration_format_typed(watch->period_ns, period, sizeof(period));
		wss_duration_format_typed(window_ns, window, sizeof(window));
		return wss_error_set(
			err, WSS_ERR_USAGE,
			"a period of %s ([measure] period, --period) is shorter than a window of %s ([measure] window, --window)",
			period, window);
	}
	if (watch->continuous && watch->measure.window.track.granularity == WSS_GRANULARITY_4K)
		return wss_error_set(
			err, WSS_ERR_USAGE,
			"--continuous excludes --granularity 4k: QEMU's dirty log lasts 60 s at most");
	return 0;
}

int serve_config_load(const struct serve_typed *typed, struct wss_serve_config *ret_config,
		      void (*fault)(const struct wss_error *error, void *opaque), void *opaque)
{
	const struct wss_serve_config_events events = {fault, opaque, "serve --check-config"};
	struct wss_error error = WSS_ERROR_INIT;
	int r;

	wss_serve_config_init(ret_config);
	r = wss_serve_config_read(ret_config, typed->config, &events);
	if (config_apply_typed(ret_config, typed, &error) < 0 ||
	    (r == 0 && config_check(ret_config, &error) < 0)) {
		fault(&error, opaque);
		return -1;
	}
	return r;
}
