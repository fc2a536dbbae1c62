/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The past of guests as JSON: docs/http-api.md describes it. */
#pragma once

#include <stdio.h>

#include "serve/http-named.h"
#include "serve/past.h"
#include "watch/watch.h"

/* Writes the history of one guest; the stream's errors are the caller's to check. */
void wss_past_page_write(FILE *stream, const struct wss_past *past, time_t now);

/* Writes the short trends of all guests of the watch, likewise. */
void wss_trends_page_write(FILE *stream, const struct wss_watch *watch,
			   const struct wss_pasts *pasts, time_t now);

/*
 * Makes the named pages of all guests of the watch; *ret_fd is the caller's. WSS_ERR_FAILED, WSS_ERR_NO_MEMORY.
 */
int wss_past_named(const struct wss_watch *watch, struct wss_pasts *pasts, int *ret_fd,
		   struct wss_error *err);
