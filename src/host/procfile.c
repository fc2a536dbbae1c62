/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "host/procfile.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

#define STAT_MAX 4096

const char *wss_procfile_argument(const char *cmdline, size_t len, const char *flag)
{
	const char *end = cmdline + len, *value = NULL;

	for (const char *arg = cmdline; arg < end; arg += strlen(arg) + 1) {
		const char *next = arg + strlen(arg) + 1;

		if ((!strcmp(arg, flag) || (arg[0] == '-' && !strcmp(arg + 1, flag))) &&
		    next < end)
			value = next;
	}
	return value;
}

int wss_procfile_read_stat(const struct wss_root *root, const char *path, struct wss_procfile_stat *ret)
{
	wss_auto_free char *text = NULL;
	int r = wss_root_read(root, path, STAT_MAX, &text, NULL);
	struct wss_procfile_stat line;
	char *rest;

	if (r < 0)
		return r;
	/* The name in parentheses may hold anything, also ')' and newlines. */
	rest = strrchr(text, ')');
	if (!rest || sscanf(rest + 1,
			    " %c %d %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
			    "%*s %*s %" SCNu64,
			    &line.state, &line.parent, &line.start_ticks) != 3)
		return -EINVAL;
	*ret = line;
	return 0;
}

bool wss_procfile_exited(char state)
{
	return state == 'Z' || state == 'X' || state == 'x';
}
