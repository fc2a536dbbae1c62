/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The options of serve: "--NAME" for each setting NAME of the service (serve/settings.h), which replaces what its files have.
 */
#pragma once

#include <getopt.h>
#include <stdbool.h>

#include "cmd/cmd.h"
#include "serve/settings.h"

extern const struct option serve_long_options[];

/* What was typed on the command line; strings are argv's. */
struct serve_typed {
	struct {
		enum wss_serve_setting_id setting;
		const char *value;
	} * words; /* at least one for each element of argv */
	size_t n;
	const char *config; /* file to read instead of the usual ones; NULL: none */
	bool check;	    /* only check the configuration */
	/* Common to all commands. */
	const char *uri; /* NULL: not typed */
	bool allow_monitor, debug;
};

/* Takes an option of getopt_long(); opaque is a struct serve_typed. For struct wss_command. */
int serve_typed_option(void *opaque, int c, const char *value, struct wss_error *err);

/*
 * Reads the files and applies what was typed. Calls fault() for each fault of them, and
 * returns -1 if there is any: WSS_ERR_USAGE for a wrong value, and the errors of
 * wss_config_read(). Release the configuration with wss_serve_config_release() in either case.
 */
int serve_config_load(const struct serve_typed *typed, struct wss_serve_config *ret_config,
		      void (*fault)(const struct wss_error *error, void *opaque), void *opaque);
