/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "cmd/serve-config.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
#include "base/text.h"
#include "cmd/serve-setting.h"
#include "cmd/window-options.h"
#include "base/config-file.h"

#define WINDOW_MAX_NS (3600 * WSS_NS_PER_S)
#define PERIOD_MAX_NS (24 * 3600 * WSS_NS_PER_S)
#define BLANKS " \t"
/* Room for the name of a setting in messages: "FILE:LINE: [SECTION] KEY". */
#define WHAT_MAX 384

struct wss_serve_string {
	struct wss_serve_string *next;
	char text[];
};

/* --- the table --- */

#define FIXED true
#define NOT_FIXED false

/* X(ID, SECTION, NAME, TYPE, MEMBER of struct wss_serve_config, MAXIMUM, FIXED or not) */
#define SERVE_SETTINGS(X)                                                                         \
	X(WINDOW, "measure", "window", duration, serve.watch.measure.window.track.window_ns,      \
	  WINDOW_MAX_NS, NOT_FIXED)                                                               \
	X(PERIOD, "measure", "period", duration, serve.watch.period_ns, PERIOD_MAX_NS, NOT_FIXED) \
	X(BUDGET, "measure", "budget", share, serve.watch.budget.guest_share, 0, NOT_FIXED)       \
	X(MAX_STALL, "measure", "max-stall", duration, serve.watch.budget.stall_ns,               \
	  WSS_MAX_STALL_MAX_NS, NOT_FIXED)                                                        \
	X(BOOT, "measure", "boot", duration, serve.watch.boot_ns, PERIOD_MAX_NS, NOT_FIXED)       \
	X(MAX_PRESSURE, "measure", "max-pressure", share_or_0, serve.watch.pressure_share, 0,     \
	  NOT_FIXED)                                                                              \
	X(METHOD, "measure", "method", method, method, 0, NOT_FIXED)                              \
	X(GRANULARITY, "measure", "granularity", granularity, granularity, 0, NOT_FIXED)          \
	X(CONTINUOUS, "measure", "continuous", flag, serve.watch.continuous, 0, NOT_FIXED)        \
	X(AGES_MEMORY, "measure", "ages-memory", size, serve.watch.ages_bytes, 0, NOT_FIXED)      \
	X(HOLD_FILE, "measure", "hold-file", text, serve.hold_file, 0, NOT_FIXED)                 \
	X(TEXTFILE, "metrics", "textfile", file, serve.textfile, 0, NOT_FIXED)                    \
	X(METRICS, "metrics", "metrics", metrics, metrics, 0, NOT_FIXED)                          \
	X(LISTEN, "http", "listen", listen, serve.http, 0, FIXED)                                 \
	X(HTTP_USER, "http", "http-user", text, serve.http.user, 0, FIXED)                        \
	X(HISTORY, "history", "history", file, history, 0, FIXED)                                 \
	X(KEEP, "history", "keep", keep, serve.limits, 0, NOT_FIXED)                              \
	X(KEEP_SIZE, "history", "keep-size", size, serve.limits.max_bytes, 0, NOT_FIXED)          \
	X(NO_STORE, "history", "no-store", flag, no_store, 0, FIXED)                              \
	X(NO_PUBLISH, "libvirt", "no-publish", flag, serve.no_publish, 0, NOT_FIXED)              \
	X(BALLOON_STATISTICS, "libvirt", "balloon-statistics", flag,                              \
	  serve.watch.balloon_statistics, 0, NOT_FIXED)

/* Settings whose options all commands have. */
#define COMMON_SETTINGS(X)                                                          \
	X(CONNECT, "libvirt", "connect", text, uri, 0, FIXED)                       \
	X(ALLOW_MONITOR, "libvirt", "allow-monitor", flag, allow_monitor, 0, FIXED) \
	X(DEBUG, "log", "debug", flag, debug, 0, NOT_FIXED)

#define SETTING_ENTRY(id, section_, name_, kind, member, max_, fixed) \
	{.section = section_,                                         \
	 .name = name_,                                               \
	 .type = &wss_serve_type_##kind,                              \
	 .offset = offsetof(struct wss_serve_config, member),         \
	 .max = max_,                                                 \
	 .is_fixed = fixed},
static const struct wss_serve_setting settings[] = {SERVE_SETTINGS(SETTING_ENTRY)
							    COMMON_SETTINGS(SETTING_ENTRY)};

#define N_SETTINGS (sizeof(settings) / sizeof(settings[0]))

/* As values of getopt_long(): an index, plus 1. */
#define SETTING_OPTION(id, ...) OPT_##id,
enum { OPT_NONE, SERVE_SETTINGS(SETTING_OPTION) OPT_CONFIG = 900, OPT_CHECK_CONFIG };

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
#define SETTING_LONG(id, section, name, type, ...) {name, ARGUMENT_##type, NULL, OPT_##id},

const struct option wss_serve_long_options[] = {
	WSS_COMMON_LONG,
	/* clang-format off */
	SERVE_SETTINGS(SETTING_LONG)
	/* clang-format on */
	{"config", required_argument, NULL, OPT_CONFIG},
	{"check-config", no_argument, NULL, OPT_CHECK_CONFIG},
	{NULL, 0, NULL, 0},
};

/* --- the command line --- */

static int setting_set_typed(const struct wss_serve_setting *setting,
			     struct wss_serve_config *config, const char *value,
			     struct wss_error *err)
{
	char what[WHAT_MAX];

	snprintf(what, sizeof(what), "--%s", setting->name);
	return setting->type->set(setting, config, value, what, err);
}

int wss_serve_typed_option(void *opaque, int c, const char *value, struct wss_error *err)
{
	struct wss_serve_config scratch = WSS_SERVE_CONFIG_INIT;
	struct wss_serve_typed *typed = opaque;
	const struct wss_serve_setting *setting;

	if (c == OPT_CONFIG) {
		typed->config = value;
		return 0;
	}
	if (c == OPT_CHECK_CONFIG) {
		typed->check = true;
		return 0;
	}
	setting = &settings[c - 1];
	typed->words[typed->n].setting = setting;
	typed->words[typed->n++].value = setting->type->is_flag ? "yes" : value;
	return setting_set_typed(setting, &scratch, typed->words[typed->n - 1].value, err);
}

static bool typed_has(const struct wss_serve_typed *typed, int option)
{
	for (size_t i = 0; i < typed->n; i++)
		if (typed->words[i].setting == &settings[option - 1])
			return true;
	return false;
}

/* --- files --- */

struct loading {
	struct wss_serve_config *config;
	void (*fault)(const struct wss_error *error, void *opaque);
	void *opaque;
	bool is_faulty;
};

static void loading_fault(const struct wss_error *error, void *opaque)
{
	struct loading *loading = opaque;

	loading->fault(error, loading->opaque);
	loading->is_faulty = true;
}

/* Copies a value of a file; NULL: out of memory. */
static const char *config_keep_string(struct wss_serve_config *config, const char *text)
{
	struct wss_serve_string *string = malloc(sizeof(*string) + strlen(text) + 1);

	if (!string)
		return NULL;
	memcpy(string->text, text, strlen(text) + 1);
	string->next = config->strings;
	config->strings = string;
	return string->text;
}

static const struct wss_serve_setting *setting_find(const char *section, const char *key)
{
	for (size_t i = 0; i < N_SETTINGS; i++)
		if (!strcmp(settings[i].name, key) &&
		    (!section || !strcmp(settings[i].section, section)))
			return &settings[i];
	return NULL;
}

/* The key that was probably meant: of another section, or misspelt. NULL: unknown. */
static const struct wss_serve_setting *setting_nearest(const char *key)
{
	struct wss_nearest nearest = {.typed = key};

	for (size_t i = 0; i < N_SETTINGS; i++)
		wss_nearest_offer(&nearest, settings[i].name);
	return wss_nearest_word(&nearest) ? setting_find(NULL, wss_nearest_word(&nearest)) : NULL;
}

static int entry_refuse(const struct wss_config_entry *entry, const char *what,
			struct wss_error *err)
{
	const struct wss_serve_setting *setting = setting_find(NULL, entry->key);

	if (setting)
		return wss_error_set(err, WSS_ERR_USAGE, "%s: this key belongs in section [%s]",
				     what, setting->section);
	setting = setting_nearest(entry->key);
	if (setting)
		return wss_error_set(err, WSS_ERR_USAGE,
				     "%s: unknown key: did you mean '%s' in section [%s]?", what,
				     setting->name, setting->section);
	return wss_error_set(err, WSS_ERR_USAGE, "%s: unknown key (serve --check-config lists all)",
			     what);
}

static int entry_set(struct wss_serve_config *config, const struct wss_config_entry *entry,
		     const char *what, struct wss_error *err)
{
	const struct wss_serve_setting *setting = setting_find(entry->section, entry->key);
	const char *value;

	if (!setting)
		return entry_refuse(entry, what, err);
	value = config_keep_string(config, entry->value);
	if (!value)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	/* A later file replaces all addresses of an earlier one. */
	if (setting->type == &wss_serve_type_listen)
		config->serve.http.n_addresses = 0;
	return setting->type->set(setting, config, value, what, err);
}

static void on_entry(const struct wss_config_entry *entry, void *opaque)
{
	struct loading *loading = opaque;
	struct wss_error error = WSS_ERROR_INIT;
	char what[WHAT_MAX];

	if (entry->section[0])
		snprintf(what, sizeof(what), "%s:%" PRIu64 ": [%s] %s", entry->file, entry->line,
			 entry->section, entry->key);
	else
		snprintf(what, sizeof(what), "%s:%" PRIu64 ": %s: key before any [SECTION]",
			 entry->file, entry->line, entry->key);
	if (entry_set(loading->config, entry, what, &error) < 0)
		loading_fault(&error, loading);
}

/* --- the whole --- */

static void config_init(struct wss_serve_config *config)
{
	*config = (struct wss_serve_config){
		.serve.limits = WSS_HISTORY_LIMITS_DEFAULT,
		.serve.http.user = WSS_HTTP_USER,
		.serve.hold_file = "/run/virt-wss/hold",
		.method = "auto",
		.metrics = "standard",
	};
	wss_watch_options_init(&config->serve.watch);
	config->granularity = "auto";
	config->serve.watch.measure.window.track.granularity = WSS_GRANULARITY_AUTO;
}

static int config_apply_typed(struct wss_serve_config *config, const struct wss_serve_typed *typed,
			      struct wss_error *err)
{
	if (typed_has(typed, OPT_NO_STORE) &&
	    (typed_has(typed, OPT_HISTORY) || typed_has(typed, OPT_KEEP) ||
	     typed_has(typed, OPT_KEEP_SIZE)))
		return wss_error_set(err, WSS_ERR_USAGE,
				     "--no-store excludes --history, --keep and --keep-size");
	if (typed_has(typed, OPT_LISTEN))
		config->serve.http.n_addresses = 0;
	if (typed_has(typed, OPT_HISTORY))
		config->no_store = false;
	for (size_t i = 0; i < typed->n; i++)
		if (setting_set_typed(typed->words[i].setting, config, typed->words[i].value, err) <
		    0)
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

int wss_serve_config_load(const struct wss_serve_typed *typed, struct wss_serve_config *ret_config,
			  void (*fault)(const struct wss_error *error, void *opaque), void *opaque)
{
	static const struct wss_config_events events = {on_entry, loading_fault};
	struct loading loading = {.config = ret_config, .fault = fault, .opaque = opaque};
	struct wss_error error = WSS_ERROR_INIT;

	config_init(ret_config);
	wss_config_read(typed->config, &events, &loading);
	if (config_apply_typed(ret_config, typed, &error) < 0 ||
	    (!loading.is_faulty && config_check(ret_config, &error) < 0))
		loading_fault(&error, &loading);
	return loading.is_faulty ? -1 : 0;
}

/* Whether a file can have that value of a key: libeconf ends it at a "#", quoted or not. */
static bool value_fits_file(const char *name, const char *value)
{
	for (const char *at = value; *at; at++)
		if (*at == '#' || ((unsigned char)*at < ' ' && *at != '\t') || *at == 0x7f)
			return false;
	/* With " = " and quotation marks. */
	return value[strspn(value, BLANKS "\"")] &&
	       strlen(name) + strlen(value) + 5 <= WSS_CONFIG_LINE_MAX;
}

/* Whether a reader of the file would take something from the value's ends. */
static bool value_needs_quotes(const char *value)
{
	char last = value[strlen(value) - 1];

	return strchr(BLANKS, value[0]) || strchr(BLANKS, last) || (value[0] == '"' && last == '"');
}

/* Prints a setting so that it reads back as the same. */
static void setting_print(const struct wss_serve_setting *setting, char *value, FILE *stream)
{
	const char *quote;

	if (!*value) {
		fprintf(stream, "# %s is not set\n", setting->name);
	} else if (!value_fits_file(setting->name, value)) {
		wss_text_sanitize(value);
		fprintf(stream, "# %s is set to what no file can have: %s\n", setting->name, value);
	} else {
		quote = value_needs_quotes(value) ? "\"" : "";
		fprintf(stream, "%s = %s%s%s\n", setting->name, quote, value, quote);
	}
}

void wss_serve_config_print(const struct wss_serve_config *config, FILE *stream)
{
	const char *section = "";
	char value[WSS_SERVE_VALUE_MAX];

	for (size_t i = 0; i < N_SETTINGS; i++) {
		if (strcmp(section, settings[i].section) != 0) {
			section = settings[i].section;
			fprintf(stream, "%s[%s]\n", i ? "\n" : "", section);
		}
		settings[i].type->format(&settings[i], config, value, sizeof(value));
		setting_print(&settings[i], value, stream);
	}
}

void wss_serve_config_compare(const struct wss_serve_config *running,
			      const struct wss_serve_config *config,
			      void (*changed)(const char *section, const char *key))
{
	char before[WSS_SERVE_VALUE_MAX], after[WSS_SERVE_VALUE_MAX];

	for (size_t i = 0; i < N_SETTINGS; i++) {
		if (!settings[i].is_fixed)
			continue;
		settings[i].type->format(&settings[i], running, before, sizeof(before));
		settings[i].type->format(&settings[i], config, after, sizeof(after));
		if (strcmp(before, after) != 0)
			changed(settings[i].section, settings[i].name);
	}
}

void wss_serve_config_release(struct wss_serve_config *config)
{
	while (config->strings) {
		struct wss_serve_string *string = config->strings;

		config->strings = string->next;
		free(string);
	}
}
