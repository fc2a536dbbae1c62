/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Asks the service of this host, at its UNIX socket. */
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
