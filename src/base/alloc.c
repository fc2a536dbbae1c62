/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "base/alloc.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"

/* Without exit handlers: what has been printed so far is not all, and other threads may run. */
void *wss_xchecked(void *allocated)
{
	if (allocated)
		return allocated;
	wss_log(WSS_LOG_ERROR, "out of memory");
	_exit(EXIT_FAILURE);
}

void *wss_xcalloc(size_t n, size_t size)
{
	return wss_xchecked(calloc(n ? n : 1, size));
}

void *wss_xreallocarray(void *list, size_t n, size_t size)
{
	return wss_xchecked(reallocarray(list, n, size));
}

char *wss_xstrdup(const char *text)
{
	return text ? wss_xchecked(strdup(text)) : NULL;
}
