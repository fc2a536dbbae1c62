/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "serve/settings.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/config-file.h"
#include "base/nearest.h"
#include "base/text.h"
#include "serve/setting-types.h"

#define BLANKS " \t"
/* Room for the name of a setting in messages: "FILE:LINE: [SECTION] KEY". */
#define WHAT_MAX 384

struct wss_serve_string {
	struct wss_serve_string *next;
	char text[];
};

/* --- the table --- */

#define SETTING_ENTRY(id, section_, name_, kind, member, max_, fixed) \
	{.section = section_,                                         \
	 .name = name_,                                               \
	 .type = &wss_serve_type_##kind,                              \
	 .offset = offsetof(struct wss_serve_config, member),         \
	 .max = max_,                                                 \
	 .is_fixed = fixed},
static const struct wss_serve_setting settings[] = {
	WSS_SERVE_SETTINGS(SETTING_ENTRY) WSS_SERVE_COMMON_SETTINGS(SETTING_ENTRY)};

#define N_SETTINGS (sizeof(settings) / sizeof(settings[0]))

void wss_serve_config_init(struct wss_serve_config *config)
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

const char *wss_serve_setting_name(enum wss_serve_setting_id id)
{
	return settings[id].name;
}

int wss_serve_config_set(struct wss_serve_config *config, enum wss_serve_setting_id id,
			 const char *value, const char *what, struct wss_error *err)
{
	return settings[id].type->set(&settings[id], config, value, what, err);
}

/* --- files --- */

struct loading {
	struct wss_serve_config *config;
	const struct wss_serve_config_events *events;
	bool is_faulty;
};

static void loading_fault(const struct wss_error *error, void *opaque)
{
	struct loading *loading = opaque;

	loading->events->fault(error, loading->events->opaque);
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
			const char *lists_all, struct wss_error *err)
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
	return wss_error_set(err, WSS_ERR_USAGE, "%s: unknown key (%s lists all)", what, lists_all);
}

static int entry_set(const struct loading *loading, const struct wss_config_entry *entry,
		     const char *what, struct wss_error *err)
{
	struct wss_serve_config *config = loading->config;
	const struct wss_serve_setting *setting = setting_find(entry->section, entry->key);
	const char *value;

	if (!setting)
		return entry_refuse(entry, what, loading->events->lists_all, err);
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
	if (entry_set(loading, entry, what, &error) < 0)
		loading_fault(&error, loading);
}

int wss_serve_config_read(struct wss_serve_config *config, const char *file,
			  const struct wss_serve_config_events *events)
{
	static const struct wss_config_events of_files = {on_entry, loading_fault};
	struct loading loading = {.config = config, .events = events};

	wss_config_read(file, &of_files, &loading);
	return loading.is_faulty ? -1 : 0;
}

/* --- how they are printed --- */

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
