/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The types of settings: how a value is read and printed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "serve/settings.h"

/* Room for a value as it is printed: of a line of a file, or of all addresses. */
#define WSS_SERVE_VALUE_MAX 2048

struct wss_serve_setting;

struct wss_serve_type {
	/*
	 * Reads a value, which must live as long as the configuration. what: the name of the setting in
	 * messages. WSS_ERR_USAGE for a wrong value; WSS_ERR_NO_MEMORY.
	 */
	int (*set)(const struct wss_serve_setting *setting, struct wss_serve_config *config,
		   const char *value, const char *what, struct wss_error *err);
	/* Stores the value as text; "" if it is not set. size is WSS_SERVE_VALUE_MAX. */
	void (*format)(const struct wss_serve_setting *setting,
		       const struct wss_serve_config *config, char *ret_text, size_t size);
};

struct wss_serve_setting {
	const char *section, *name;
	const struct wss_serve_type *type;
	size_t offset; /* of its value in struct wss_serve_config */
	uint64_t max;  /* of a duration, ns */
	bool is_fixed; /* while the service runs */
};

/* The value is a uint64_t, in ns. */
extern const struct wss_serve_type wss_serve_type_duration;

/* The value is a double, 1 = 100 %. 0 of the latter switches off what the share limits. */
extern const struct wss_serve_type wss_serve_type_share, wss_serve_type_share_or_0;

/* The value is a const char *, or a bool. */
extern const struct wss_serve_type wss_serve_type_text, wss_serve_type_file, wss_serve_type_flag;

/*
 * The value is the text as written, a const char *; what it means is stored in the options of the watch, or
 * of the service.
 */
extern const struct wss_serve_type wss_serve_type_method, wss_serve_type_granularity,
	wss_serve_type_metrics;

/* The value is a struct wss_http_options, to which each value adds its addresses. */
extern const struct wss_serve_type wss_serve_type_listen;

/* The value is a struct wss_history_limits, of which it reads the ages. */
extern const struct wss_serve_type wss_serve_type_keep;

/* The value is a uint64_t, in bytes, 1 MiB at least. */
extern const struct wss_serve_type wss_serve_type_size;
