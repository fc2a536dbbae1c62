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
#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/number.h"
#include "base/units.h"

#define KEEP_MIN_NS (WSS_HISTORY_DAY * WSS_NS_PER_S)
#define KEEP_MAX_NS (36500ULL * 86400 * WSS_NS_PER_S)
#define SIZE_LIMIT_MIN (1ULL << 20)

int wss_keep_parse(const char *value, const char *what, struct wss_history_limits *limits,
		   struct wss_error *err)
{
	const struct wss_history_limits defaults = WSS_HISTORY_LIMITS_DEFAULT;
	uint64_t ns;

	if (wss_duration_parse(value, KEEP_MAX_NS, what, &ns, err) < 0)
		return -1;
	/* What is deleted is lost, and "90" and "3M" probably mean days and months, not seconds and minutes. */
	if (ns < KEEP_MIN_NS)
		return wss_error_set(
			err, WSS_ERR_USAGE,
			"%s: '%s' is less than a day: give days, such as 90d (a number without a unit is seconds, m is minutes)",
			what, value);
	limits->days_s = ns / WSS_NS_PER_S;
	limits->hours_s = wss_u64_min(defaults.hours_s, limits->days_s);
	limits->samples_s = wss_u64_min(defaults.samples_s, limits->days_s);
	return 0;
}

int wss_size_limit_parse(const char *value, const char *what, uint64_t *ret_bytes,
			 struct wss_error *err)
{
	if (wss_size_parse(value, what, ret_bytes, err) < 0)
		return -1;
	if (*ret_bytes < SIZE_LIMIT_MIN)
		return wss_error_set(err, WSS_ERR_USAGE, "%s: '%s' is less than 1 MiB", what,
				     value);
	return 0;
}

int wss_file_path_check(const char *path, const char *what, struct wss_error *err)
{
	struct stat st;

	if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
		return wss_error_set(err, WSS_ERR_USAGE,
				     "%s: '%s' is a directory: give the path of a file in it", what,
				     path);
	return 0;
}

int wss_store_option(struct wss_store_options *options, int c, const char *value,
		     struct wss_error *err)
{
	if (c < WSS_OPT_HISTORY || c > WSS_OPT_KEEP_SIZE)
		return 0;
	options->given = true;
	if (c == WSS_OPT_KEEP)
		return wss_keep_parse(value, "--keep", &options->limits, err) < 0 ? -1 : 1;
	if (c == WSS_OPT_KEEP_SIZE)
		return wss_size_limit_parse(value, "--keep-size", &options->limits.max_bytes, err) <
				       0
			       ? -1
			       : 1;
	options->path = value;
	return wss_file_path_check(value, "--history", err) < 0 ? -1 : 1;
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
