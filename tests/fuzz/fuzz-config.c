/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A configuration file of serve, with libeconf behind it: settings that are accepted are
 * printed as a file, which is accepted and printed as the same.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cmd/serve-options.h"
#include "fuzz.h"

static void on_fault(const struct wss_error *error, void *opaque)
{
	unsigned *faults = opaque;

	fuzz_require(error->code != WSS_OK && error->text[0] && !strchr(error->text, '\n'));
	++*faults;
}

/* Returns the settings as text, for free(), NULL if they are refused. */
static char *settings_of(const void *data, size_t size)
{
	struct wss_serve_config config = WSS_SERVE_CONFIG_INIT;
	wss_auto_close int fd = fuzz_memfd(data, size);
	struct serve_typed typed = {.words = NULL};
	unsigned faults = 0;
	char path[32], *text = NULL;
	size_t len;
	FILE *stream;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	typed.config = path;
	if (serve_config_load(&typed, &config, on_fault, &faults) == 0) {
		fuzz_require(!faults);
		stream = open_memstream(&text, &len);
		fuzz_require(stream);
		wss_serve_config_print(&config, stream);
		fuzz_require(fclose(stream) == 0);
	} else {
		fuzz_require(faults);
	}
	wss_serve_config_release(&config);
	return text;
}

static void config_run(const uint8_t *data, size_t size)
{
	wss_auto_free char *first = settings_of(data, size), *second = NULL;

	if (!first)
		return;
	second = settings_of(first, strlen(first));
	fuzz_require(second && !strcmp(first, second));
}

const struct fuzz_target fuzz_target = {
	.name = "config",
	.run = config_run,
	.max_bytes = 4096,
	.mutations = 20000,
};
