/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The settings of the service, by one table: their defaults, their files (base/config-file.h), where each is the key NAME of
 * a section, and how they are printed. Whoever starts the service may set more of them by other ways: each replaces what came
 * before.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/error.h"
#include "serve/serve.h"

#define WSS_SERVE_WINDOW_MAX_NS (3600 * WSS_NS_PER_S)
#define WSS_SERVE_PERIOD_MAX_NS (24 * 3600 * WSS_NS_PER_S)

/* X(ID, SECTION, NAME, TYPE, MEMBER of struct wss_serve_config, MAXIMUM, whether it is fixed while the service runs) */
#define WSS_SERVE_SETTINGS(X)                                                                     \
	X(WINDOW, "measure", "window", duration, serve.watch.measure.window.track.window_ns,      \
	  WSS_SERVE_WINDOW_MAX_NS, false)                                                         \
	X(PERIOD, "measure", "period", duration, serve.watch.period_ns, WSS_SERVE_PERIOD_MAX_NS,  \
	  false)                                                                                  \
	X(BUDGET, "measure", "budget", share, serve.watch.budget.guest_share, 0, false)           \
	X(MAX_STALL, "measure", "max-stall", duration, serve.watch.budget.stall_ns,               \
	  WSS_MAX_STALL_MAX_NS, false)                                                            \
	X(BOOT, "measure", "boot", duration, serve.watch.boot_ns, WSS_SERVE_PERIOD_MAX_NS, false) \
	X(MAX_PRESSURE, "measure", "max-pressure", share_or_0, serve.watch.pressure_share, 0,     \
	  false)                                                                                  \
	X(METHOD, "measure", "method", method, method, 0, false)                                  \
	X(GRANULARITY, "measure", "granularity", granularity, granularity, 0, false)              \
	X(CONTINUOUS, "measure", "continuous", flag, serve.watch.continuous, 0, false)            \
	X(AGES_MEMORY, "measure", "ages-memory", size, serve.watch.ages_bytes, 0, false)          \
	X(HOLD_FILE, "measure", "hold-file", text, serve.hold_file, 0, false)                     \
	X(TEXTFILE, "metrics", "textfile", file, serve.textfile, 0, false)                        \
	X(METRICS, "metrics", "metrics", metrics, metrics, 0, false)                              \
	X(LISTEN, "http", "listen", listen, serve.http, 0, true)                                  \
	X(HTTP_USER, "http", "http-user", text, serve.http.user, 0, true)                         \
	X(HISTORY, "history", "history", file, history, 0, true)                                  \
	X(KEEP, "history", "keep", keep, serve.limits, 0, false)                                  \
	X(KEEP_SIZE, "history", "keep-size", size, serve.limits.max_bytes, 0, false)              \
	X(NO_STORE, "history", "no-store", flag, no_store, 0, true)                               \
	X(NO_PUBLISH, "libvirt", "no-publish", flag, serve.no_publish, 0, false)                  \
	X(BALLOON_STATISTICS, "libvirt", "balloon-statistics", flag,                              \
	  serve.watch.balloon_statistics, 0, false)

/* Settings whose options all commands have. */
#define WSS_SERVE_COMMON_SETTINGS(X)                                               \
	X(CONNECT, "libvirt", "connect", text, uri, 0, true)                       \
	X(ALLOW_MONITOR, "libvirt", "allow-monitor", flag, allow_monitor, 0, true) \
	X(DEBUG, "log", "debug", flag, debug, 0, false)

#define WSS_SERVE_SETTING_ID(id, ...) WSS_SERVE_##id,
enum wss_serve_setting_id {
	/* clang-format off */
	WSS_SERVE_SETTINGS(WSS_SERVE_SETTING_ID)
	WSS_SERVE_COMMON_SETTINGS(WSS_SERVE_SETTING_ID)
	/* clang-format on */
};

struct wss_serve_config {
	struct wss_serve_options serve; /* without the path of the history */
	const char *history;		/* path; NULL: the default */
	bool no_store;
	const char *uri; /* NULL: libvirt's default */
	bool allow_monitor, debug;
	const char *method, *granularity, *metrics; /* as written */
	struct wss_serve_string *strings;	    /* of files; owned */
};

#define WSS_SERVE_CONFIG_INIT   \
	{                       \
		.strings = NULL \
	}

/* Returns the name of a setting: its key in files. */
const char *wss_serve_setting_name(enum wss_serve_setting_id id);

/* Sets the defaults. */
void wss_serve_config_init(struct wss_serve_config *ret_config);

/*
 * Sets one value, which must live as long as the configuration; what names the setting in messages. WSS_ERR_USAGE,
 * WSS_ERR_NO_MEMORY.
 */
int wss_serve_config_set(struct wss_serve_config *config, enum wss_serve_setting_id id,
			 const char *value, const char *what, struct wss_error *err);

struct wss_serve_config_events {
	/* Called for each fault: WSS_ERR_USAGE for a wrong value, and the errors of wss_config_read(). */
	void (*fault)(const struct wss_error *error, void *opaque);
	void *opaque;
	const char *lists_all; /* what prints all keys, in the message that there is no such key */
};

/*
 * Reads this file, or, if it is NULL, the usual ones, on top of what the configuration has. Returns -1 if there was any
 * fault. Release the configuration with wss_serve_config_release() in either case.
 */
int wss_serve_config_read(struct wss_serve_config *config, const char *file,
			  const struct wss_serve_config_events *events);

/* Prints all settings with their values, as a configuration file; those that are not set as
 * comments. */
void wss_serve_config_print(const struct wss_serve_config *config, FILE *stream);

/* Calls changed() for each setting that differs, and that a running service cannot change. */
void wss_serve_config_compare(const struct wss_serve_config *running,
			      const struct wss_serve_config *config,
			      void (*changed)(const char *section, const char *key));

void wss_serve_config_release(struct wss_serve_config *config);
