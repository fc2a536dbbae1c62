/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Opens recordings that a user names, and warns of what is missing in them. */
#pragma once

#include <stdbool.h>

#include "recording/reader.h"

/*
 * Checks that two recordings have the same memory layout and so can be compared. Warns if
 * their guests or granularities differ. WSS_ERR_FAILED.
 */
int wss_recfiles_alike(const struct wss_recfile *a, const struct wss_recfile *b,
		       struct wss_error *err);

/*
 * Opens a recording, which must have at least one window, and warns if it is cut off or damaged. *ret_file is to be closed also
 * where it has no window (WSS_ERR_FAILED).
 */
int wss_recfiles_open(const char *path, bool salvage, struct wss_recfile **ret_file,
		      struct wss_error *err);

/*
 * After reading some recordings has failed with err: leaves out content of theirs that makes no
 * sense if they are to be salvaged, with a warning like that of wss_recfiles_open(). Returns whether
 * they can be read again, from the beginning; if so, err is cleared.
 */
bool wss_recfiles_shorten(struct wss_recfile *const *files, size_t n, struct wss_error *err);
