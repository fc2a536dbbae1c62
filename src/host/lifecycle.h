/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Lifecycle events of a connection's domains: whether a guest was stopped since the last
 * check, and which guests have rebooted. One subscription per connection serves all guests, so
 * that freeing a guest takes no libvirt call, which may hang.
 */
#pragma once

#include <libvirt/libvirt.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "host/guest.h"

struct wss_lifecycle;

/* Events seen for one domain. Written by the event loop's thread. */
struct wss_watch {
	struct wss_watch *next;
	struct wss_lifecycle *lifecycle;
	unsigned char uuid[VIR_UUID_BUFLEN];
	atomic_bool kept;  /* it was stopped here and may continue elsewhere or later */
	atomic_bool ended; /* it was stopped for good */
	/* Since wss_watch_forget(), under the lock of lifecycle. */
	struct wss_disturbance disturbance;
	uint64_t paused_since_ns; /* 0: it runs */
};

/* Free the result with wss_lifecycle_free(). NULL: out of memory. */
struct wss_lifecycle *wss_lifecycle_new(void);

/* Unsubscribes from libvirt's events, which may hang. Call before virConnectClose(). */
void wss_lifecycle_stop(struct wss_lifecycle *lifecycle, virConnectPtr vir);

/*
 * From now on notes which domains of the connection vir reboot without a new QEMU. Subscribes to libvirt's
 * events once, which may hang. A driver without such events notes none.
 */
void wss_lifecycle_follow_reboots(struct wss_lifecycle *lifecycle, virConnectPtr vir);

/*
 * Takes a domain that has rebooted, once however often that was, since it was last taken. False: there is
 * none. Calls no libvirt.
 */
bool wss_lifecycle_next_reboot(struct wss_lifecycle *lifecycle,
			       char ret_uuid[VIR_UUID_STRING_BUFLEN]);

/* Call after it was stopped and all watches have ended. Accepts NULL. */
void wss_lifecycle_free(struct wss_lifecycle *lifecycle);

/*
 * Watches a domain of the connection vir. The first watch subscribes to libvirt's events,
 * which may hang. End *ret_watch with wss_watch_end(); it is NULL if the driver or the
 * connection sends no events, without which a guest is still usable. Returns 0, or -1 when out
 * of memory.
 */
int wss_watch_begin(struct wss_lifecycle *lifecycle, virConnectPtr vir, virDomainPtr dom,
		    struct wss_watch **ret_watch);

/* What the events have reported since the last wss_watch_forget(). Neither calls libvirt. */
struct wss_disturbance wss_watch_disturbance(const struct wss_watch *watch);
void wss_watch_forget(struct wss_watch *watch);

/* Ends a watch without calling libvirt. Accepts NULL. */
void wss_watch_end(struct wss_watch *watch);
