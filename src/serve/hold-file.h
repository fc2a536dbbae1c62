/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Looks for the hold file, once a second, on a thread of its own: no loop waits for a disk or a server that hangs. */
#pragma once

#include <stdbool.h>

struct wss_hold_file;

/* NULL when out of memory. */
struct wss_hold_file *wss_hold_file_new(void);

/* A look that hangs is left to itself. Takes NULL. */
void wss_hold_file_free(struct wss_hold_file *file);

/* Lets the next call look at once. */
void wss_hold_file_hurry(struct wss_hold_file *file);

/*
 * Looks for the file at that path if that is due, and waits for 20 ms at most, the first time for 2 s. Returns whether
 * there is news: *ret_exists. While a look hangs the last answer holds, which the log says once.
 */
bool wss_hold_file_look(struct wss_hold_file *file, const char *path, bool *ret_exists);
