/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Messages for mistyped options and commands, with the probable intended one. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/nearest.h"
#include "cmd/cmd.h"

/* Returns the number of long options with this prefix; *ret_last is the last of them. */
static size_t count_options(const struct wss_command *command, const char *name,
			    const struct option **ret_last)
{
	size_t n = 0;

	for (const struct option *o = command->long_options; o->name; o++)
		if (!strncmp(o->name, name, strlen(name))) {
			*ret_last = o;
			n++;
		}
	return n;
}

static const char *nearest_option(const struct wss_command *command, const char *name)
{
	struct wss_nearest nearest = {.typed = name};

	for (const struct option *o = command->long_options; o->name; o++)
		wss_nearest_offer(&nearest, o->name);
	return wss_nearest_word(&nearest);
}

static int unknown_long(const struct wss_command *command, const char *name, bool has_value,
			struct wss_error *err)
{
	const struct option *last = NULL;
	size_t n = count_options(command, name, &last);
	const char *nearest;

	if (n == 1 && has_value)
		return wss_error_set(err, WSS_ERR_USAGE, "option '--%s' takes no value",
				     last->name);
	if (n > 1)
		return wss_error_set(err, WSS_ERR_USAGE, "option '--%s' is ambiguous (see --help)",
				     name);
	nearest = nearest_option(command, name);
	if (nearest)
		return wss_error_set(err, WSS_ERR_USAGE,
				     "unknown option '--%s': did you mean '--%s'?", name, nearest);
	return wss_error_set(err, WSS_ERR_USAGE, "unknown option '--%s' (see --help)", name);
}

int wss_cli_unknown_option(const struct wss_command *command, const char *word,
			   struct wss_error *err)
{
	size_t len = strcspn(word, "=");
	char name[64];

	/* A short option, possibly within a group that getopt_long() has not finished. */
	if (isgraph(optopt) && !strchr(wss_cli_short_options(command), optopt))
		return wss_error_set(err, WSS_ERR_USAGE, "unknown option '-%c' (see --help)",
				     optopt);
	snprintf(name, sizeof(name), "%.*s", len > 2 ? (int)len - 2 : 0, word + 2);
	return unknown_long(command, name, word[len] != '\0', err);
}

int wss_cli_unknown_command(const struct wss_command *const *commands, const char *word,
			    struct wss_error *err)
{
	struct wss_nearest nearest = {.typed = word};

	for (; *commands; commands++)
		wss_nearest_offer(&nearest, (*commands)->name);
	if (wss_nearest_word(&nearest))
		return wss_error_set(err, WSS_ERR_USAGE, "unknown command '%s': did you mean '%s'?",
				     word, wss_nearest_word(&nearest));
	return wss_error_set(err, WSS_ERR_USAGE, "unknown command '%s' (see virt-wss --help)",
			     word);
}
