/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the service knows of the host, as JSON: docs/http-api.md describes it. */
#pragma once

#include <stdio.h>

#include "serve/guest-metrics.h"
#include "watch/watch.h"

/* Writes the page; the stream's errors are the caller's to check. */
void wss_host_page_write(FILE *stream, const struct wss_watch *watch,
			 const struct wss_service_facts *facts);
