/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "cmd/store-options.h"

#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/number.h"
#include "base/units.h"

#define KEEP_MAX_NS (36500ULL * 86400 * WSS_NS_PER_S)
#define KEEP_SIZE_MIN (1ULL << 20)

int wss_keep_parse(const char *value, const char *what, struct wss_history_limits *limits,
		   struct wss_error *err)
{
	const struct wss_history_limits defaults = WSS_HISTORY_LIMITS_DEFAULT;
	uint64_t ns;

	if (wss_duration_parse(value, KEEP_MAX_NS, what, &ns, err) < 0)
		return -1;
	limits->days_s = ns / WSS_NS_PER_S;
	limits->hours_s = wss_u64_min(defaults.hours_s, limits->days_s);
	limits->samples_s = wss_u64_min(defaults.samples_s, limits->days_s);
	return 0;
}

int wss_keep_size_parse(const char *value, const char *what, struct wss_history_limits *limits,
			struct wss_error *err)
{
	if (wss_size_parse(value, what, &limits->max_bytes, err) < 0)
		return -1;
	if (limits->max_bytes < KEEP_SIZE_MIN)
		return wss_error_set(err, WSS_ERR_USAGE, "%s: '%s' is less than 1 MiB", what, value);
	return 0;
}

int wss_file_path_check(const char *path, const char *what, struct wss_error *err)
{
	struct stat st;

	if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
		return wss_error_set(err, WSS_ERR_USAGE, "%s: '%s' is a directory: give the path of a file in it", what, path);
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
		return wss_keep_size_parse(value, "--keep-size", &options->limits, err) < 0 ? -1 : 1;
	options->path = value;
	return wss_file_path_check(value, "--history", err) < 0 ? -1 : 1;
}

char *wss_store_path(const struct wss_store_options *options)
{
	return options->path ? strdup(options->path) : wss_history_default_path();
}

int wss_store_open_reader(const struct wss_store_options *options,
			  struct wss_history **ret_history, struct wss_error *err)
{
	wss_auto_free char *path = wss_store_path(options);

	if (!path)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	if (wss_history_open_readonly(path, ret_history, err) == 0)
		return 0;
	if (err->code != WSS_ERR_GONE || options->path)
		return -1;
	wss_log(WSS_LOG_INFO, "there is no history yet (%s): run sample --store", path);
	wss_error_clear(err);
	return 0;
}
