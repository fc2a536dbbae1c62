/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Scope-bound cleanup: a variable marked wss_auto_* is released when it goes out of scope, on
 * every path. wss_steal_*() passes ownership on.
 */
#pragma once

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define wss_cleanup(fn) __attribute__((cleanup(fn)))

static inline void wss_cleanup_free(void *p)
{
	free(*(void **)p);
}

static inline void wss_cleanup_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

static inline void wss_cleanup_file(FILE **f)
{
	if (*f)
		fclose(*f);
}

static inline void wss_cleanup_dir(DIR **d)
{
	if (*d)
		closedir(*d);
}

#define wss_auto_free wss_cleanup(wss_cleanup_free)
#define wss_auto_close wss_cleanup(wss_cleanup_close)
#define wss_auto_file wss_cleanup(wss_cleanup_file)
#define wss_auto_dir wss_cleanup(wss_cleanup_dir)

/* Returns the pointer and leaves NULL behind, so that the cleanup does nothing. */
#define wss_steal_ptr(p)                   \
	({                                 \
		__typeof__(p) *pp_ = &(p); \
		__typeof__(p) v_ = *pp_;   \
		*pp_ = NULL;               \
		v_;                        \
	})

/* Returns the descriptor and leaves -1 behind. */
static inline int wss_steal_fd(int *fd)
{
	int v = *fd;

	*fd = -1;
	return v;
}
