/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The room client/: requests to others over HTTP, and their answers in structs.
 *
 *   service.h      the service of this host, at its UNIX socket: this file
 *   guests.h       its answer, struct wss_guests, for the commands check and top
 *   http-get.h     documents of a server, for fleet/prometheus.c
 *   json-fields.h  reads JSON into structs, by tables of the members that are wanted
 *
 * In: a path or a URL. Nobody who answers is trusted: the service may be anybody's process. So each
 * request has a deadline, and each answer limits for its bytes, depth and memory (qmp/jsonline.h).
 *
 * Begin with guests.c. A further member of the answer is one in guests.h, and a line in a table of
 * guests.c.
 */
#pragma once

#include <stdint.h>

#include "base/cancel.h"
#include "client/guests.h"

/* Where commands look for the service, and where it is told to listen. */
#define WSS_SERVICE_SOCKET "/run/virt-wss/http.sock"

/*
 * Asks the service that listens at path for its guests, until deadline_ns, a time of
 * wss_clock_now_ns(). Errors name the path. Release *ret_guests with wss_guests_release().
 * WSS_ERR_GONE: no service listens there. WSS_ERR_CONNECT: it cannot be reached, for another
 * reason. WSS_ERR_TIMEOUT, WSS_ERR_INTERRUPTED, WSS_ERR_NO_MEMORY, WSS_ERR_USAGE: the path is
 * empty or too long. WSS_ERR_FAILED: the reply is broken, larger than WSS_GUESTS_REPLY_MAX, or
 * none of this interface.
 */
int wss_service_guests(const char *path, uint64_t deadline_ns, const struct wss_cancel *cancel,
		       struct wss_guests *ret_guests, struct wss_error *err);
