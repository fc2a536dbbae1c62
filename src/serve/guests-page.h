/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the service knows of all guests, as JSON: docs/http-api.md describes it. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "serve/guest-metrics.h"
#include "show/json.h"
#include "watch/watch.h"

/* Whether a measured guest's last window is older than two of its periods. */
bool wss_guest_is_stale(const struct wss_watched *guest);

/*
 * Writes the members about the service that the pages of the host and the guests have in common: "held", "libvirt_up"
 * once it is known, and until the guests have been listed "state" and "since_seconds", so that no list of guests
 * is taken for an empty host.
 */
void wss_page_put_service(struct wss_json *json, const struct wss_watch *watch,
			  const struct wss_service_facts *facts);

/* Writes the page; the stream's errors are the caller's to check. */
void wss_guests_page_write(FILE *stream, const struct wss_watch *watch,
			   const struct wss_service_facts *facts);
