/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Tells the service manager how the service is: the protocol of sd_notify(3), one datagram of
 * "NAME=VALUE" lines for each message. libsystemd does the same, but comes with several other
 * libraries, and is missing where there is no systemd.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct wss_notify {
	int fd;		      /* -1: nobody wants to know */
	uint64_t watchdog_ns; /* a sign of life is wanted within this; 0: none is */
	uint64_t alive_ns;    /* when the last was given, wss_clock_now_ns() */
	bool ready; /* the manager knows that the service has begun, or has read its files again */
	char status[256]; /* as it was told */
};

#define WSS_NOTIFY_INIT  \
	{                \
		.fd = -1 \
	}

/*
 * Connects to the socket that NOTIFY_SOCKET names, and takes the period of WATCHDOG_USEC.
 * Removes these variables and WATCHDOG_PID, so that no child answers in our name. Where the
 * manager cannot be reached it logs a warning, and the functions below do nothing.
 */
void wss_notify_open(struct wss_notify *notify);

/*
 * Says that the service has begun. Call this again and again: further calls do nothing, unless the manager could
 * not take the message.
 */
void wss_notify_ready(struct wss_notify *notify);

/* Says that the configuration is being read again, and then that this is over. */
void wss_notify_reloading(struct wss_notify *notify);
void wss_notify_reloaded(struct wss_notify *notify);

/* Says that the service is about to end. */
void wss_notify_stopping(struct wss_notify *notify);

/* Tells the state in one line, if it is another than before. */
void wss_notify_status(struct wss_notify *notify, const char *status);

/* Gives a sign of life, as often as the watchdog wants it. Call this only after work that was
 * done. */
void wss_notify_alive(struct wss_notify *notify);

void wss_notify_close(struct wss_notify *notify);
