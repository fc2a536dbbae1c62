/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The page: HTML with everything in it that it needs, made of the files in page/ and of uPlot. From a
 * service it asks for its figures; in a file it has them in it.
 */
#pragma once

#include <stdio.h>

/* Returns the page without data, for a service, and its size in bytes; it is static. */
const char *wss_page(size_t *ret_size);

/* Returns the Content-Security-Policy that goes with the page as a header. */
const char *wss_page_policy(void);

/* Writes the page as a file with its data, JSON; the stream's errors are the caller's to check. */
void wss_page_write(FILE *stream, const char *json, size_t size);
