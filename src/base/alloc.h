/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Memory for commands that only read: running out of it ends the program with a message, as there is
 * nothing that anybody could do about it. Not for code that holds a guest, writes a file or runs in
 * the service: there every failure is an error.
 */
#pragma once

#include <stddef.h>

/* Returns n zeroed elements, also for n 0, for free(). */
void *wss_xcalloc(size_t n, size_t size);

/* As reallocarray(); n is at least 1. */
void *wss_xreallocarray(void *list, size_t n, size_t size);

/* Returns what another function has allocated; NULL: it could not. */
void *wss_xchecked(void *allocated);

/* NULL for NULL. */
char *wss_xstrdup(const char *text);
