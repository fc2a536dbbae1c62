/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "cmd/store-options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/newfile.h"
#include "base/units.h"

int wss_store_option(struct wss_store_options *options, int c, const char *value,
		     struct wss_error *err)
{
	if (c < WSS_OPT_HISTORY || c > WSS_OPT_KEEP_SIZE)
		return 0;
	options->given = true;
	if (c == WSS_OPT_KEEP)
		return wss_history_keep_parse(value, "--keep", &options->limits, err) < 0 ? -1 : 1;
	if (c == WSS_OPT_KEEP_SIZE)
		return wss_size_limit_parse(value, "--keep-size", &options->limits.max_bytes, err) <
				       0
			       ? -1
			       : 1;
	options->path = value;
	return wss_newfile_check_path(value, "--history", err) < 0 ? -1 : 1;
}

char *wss_store_path(const struct wss_store_options *options)
{
	return options->path ? strdup(options->path) : wss_history_default_path();
}

void wss_store_elsewhere(char ret_text[WSS_STORE_ELSEWHERE_MAX])
{
	const char *root = wss_test_sysroot();
	wss_auto_free char *path = NULL;
	struct stat st;

	snprintf(ret_text, WSS_STORE_ELSEWHERE_MAX,
		 "; --history and VIRT_WSS_HISTORY name another");
	if (geteuid() == 0 ||
	    asprintf(&path, "%s%s", strcmp(root, "/") ? root : "", WSS_HISTORY_OF_ROOT) < 0)
		return;
	/* Its directory is closed to others. */
	if (lstat(path, &st) == 0 || errno == EACCES)
		snprintf(
			ret_text, WSS_STORE_ELSEWHERE_MAX,
			"; --history and VIRT_WSS_HISTORY name another, and root's is " WSS_HISTORY_OF_ROOT
			", which only root reads");
}

int wss_store_open_reader(const struct wss_store_options *options, struct wss_history **ret_history,
			  struct wss_error *err)
{
	wss_auto_free char *path = wss_xchecked(wss_store_path(options));
	char elsewhere[WSS_STORE_ELSEWHERE_MAX];

	if (wss_history_open_readonly(path, ret_history, err) == 0)
		return 0;
	if (err->code != WSS_ERR_GONE || options->path)
		return -1;
	wss_store_elsewhere(elsewhere);
	wss_log(WSS_LOG_INFO,
		"there is no history yet (%s): start virt-wss serve, or run virt-wss sample --all --store%s",
		path, elsewhere);
	wss_error_clear(err);
	return 0;
}
