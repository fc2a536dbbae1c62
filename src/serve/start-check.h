/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What would keep the service from starting, found without starting it. */
#pragma once

#include "base/error.h"
#include "serve/serve.h"

struct wss_start_check_events {
	/* The start would fail with this error. */
	void (*fault)(const struct wss_error *error, void *opaque);
	/* It would under other circumstances, which the text names. */
	void (*warning)(const char *text, void *opaque);
};

/*
 * Checks all that wss_serve_run() checks before it measures: the files that it writes, where it listens, and as whom. Makes
 * nothing, and lets what a running service has be its own. A missing directory that the units of virt-wss make is a
 * warning.
 */
void wss_start_check(const struct wss_serve_options *options,
		     const struct wss_start_check_events *events, void *opaque);
