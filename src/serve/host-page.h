/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the service knows of the host, as JSON: docs/http-api.md describes it. */
#ifndef WSS_SERVE_HOST_PAGE_H
#define WSS_SERVE_HOST_PAGE_H

#include <stdio.h>

#include "serve/guest-metrics.h"
#include "service/watch.h"

/* Writes the page; the stream's errors are the caller's to check. */
void wss_host_page_write(FILE *stream, const struct wss_watch *watch,
			 const struct wss_service_facts *facts);

#endif
