/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "recording/recfiles.h"

#include <string.h>

#include "base/log.h"
#include "base/number.h"

int wss_recfiles_alike(const struct wss_recfile *a, const struct wss_recfile *b,
		       struct wss_error *err)
{
	const struct wss_recording *of_a = wss_recfile_recording(a),
				   *of_b = wss_recfile_recording(b);
	const char *name_a = wss_recfile_name(a), *name_b = wss_recfile_name(b);

	if (!wss_recording_same_map(of_a, of_b))
		return wss_error_set(err, WSS_ERR_FAILED,
				     "%s and %s: the memory layouts of the guests differ", name_a,
				     name_b);
	if (strcmp(of_a->uuid, of_b->uuid) != 0)
		wss_warn("%s and %s: recordings of different guests, %s and %s", name_a, name_b,
			 of_a->domain, of_b->domain);
	if (of_a->granularity_bytes != of_b->granularity_bytes)
		wss_warn("%s and %s: recordings of different granularity", name_a, name_b);
	return 0;
}

/* Warns if a recording is cut off or damaged. WSS_ERR_FAILED if it has no window. */
static int recfile_check(const struct wss_recfile *file, struct wss_error *err)
{
	const struct wss_recfile_state *state = wss_recfile_state(file);
	const char *path = wss_recfile_name(file);

	if (!state->windows && state->damaged_at)
		return wss_error_set(
			err, WSS_ERR_FAILED,
			"%s: contains no window before the damage at byte %llu: nothing can be salvaged",
			path, (unsigned long long)state->damaged_at);
	if (!state->windows)
		return wss_error_set(err, WSS_ERR_FAILED, "%s: contains no window", path);
	if (state->damaged_at)
		wss_warn("%s: damaged or invalid at byte %llu: ignoring everything from there on",
			 path, (unsigned long long)state->damaged_at);
	else if (state->cut_bytes && state->ended)
		wss_warn("%s: ignoring %llu byte%s after the end of the recording", path,
			 (unsigned long long)state->cut_bytes, wss_plural(state->cut_bytes));
	else if (state->cut_bytes)
		wss_warn("%s: cut off: ignoring %llu byte%s after the last complete interval", path,
			 (unsigned long long)state->cut_bytes, wss_plural(state->cut_bytes));
	return 0;
}

int wss_recfiles_open(const char *path, bool salvage, struct wss_recfile **ret_file,
		      struct wss_error *err)
{
	if (wss_recfile_open(path, salvage, ret_file, err) < 0)
		return -1;
	return recfile_check(*ret_file, err);
}

bool wss_recfiles_shorten(struct wss_recfile *const *files, size_t n, struct wss_error *err)
{
	for (size_t i = 0; i < n; i++) {
		int r = wss_recfile_shorten(files[i], err);

		if (r)
			return r > 0 && recfile_check(files[i], err) == 0;
	}
	return false;
}
