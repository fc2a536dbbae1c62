/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The configuration of serve: its options on the command line, and the same settings in files
 * (base/config-file.h), by one table. An option "--NAME" is the key NAME of a section.
 * Defaults come first, then the files, then the command line, and each replaces what came
 * before.
 */
#pragma once

#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>

#include "cmd/cmd.h"
#include "serve/serve.h"

extern const struct option wss_serve_long_options[];

struct wss_serve_setting;

/* What was typed on the command line; strings are argv's. */
struct wss_serve_typed {
	struct {
		const struct wss_serve_setting *setting;
		const char *value;
	} * words; /* at least one for each element of argv */
	size_t n;
	const char *config; /* file to read instead of the usual ones; NULL: none */
	bool check;	    /* only check the configuration */
	/* Common to all commands. */
	const char *uri; /* NULL: not typed */
	bool allow_monitor, debug;
};

/* Takes an option of getopt_long(); opaque is a struct wss_serve_typed. For struct wss_command.
 */
int wss_serve_typed_option(void *opaque, int c, const char *value, struct wss_error *err);

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

/*
 * Reads the files and applies what was typed. Calls fault() for each fault of them, and
 * returns -1 if there is any: WSS_ERR_USAGE for a wrong value, and the errors of
 * wss_config_read(). Release the configuration with wss_serve_config_release() in either case.
 */
int wss_serve_config_load(const struct wss_serve_typed *typed, struct wss_serve_config *ret_config,
			  void (*fault)(const struct wss_error *error, void *opaque), void *opaque);

/* Prints all settings with their values, as a configuration file; those that are not set as
 * comments. */
void wss_serve_config_print(const struct wss_serve_config *config, FILE *stream);

/* Calls changed() for each setting that differs, and that a running service cannot change. */
void wss_serve_config_compare(const struct wss_serve_config *running,
			      const struct wss_serve_config *config,
			      void (*changed)(const char *section, const char *key));

void wss_serve_config_release(struct wss_serve_config *config);
