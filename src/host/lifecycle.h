/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Lifecycle events of the domains of a connection: whether a guest was stopped since somebody
 * last looked. libvirt is asked to send them once a connection, so that no guest needs a call
 * of libvirt, which may hang, when it is freed.
 */
#ifndef WSS_HOST_LIFECYCLE_H
#define WSS_HOST_LIFECYCLE_H

#include <libvirt/libvirt.h>
#include <stdatomic.h>
#include <stdbool.h>

struct wss_lifecycle;

/* What was seen of one domain. Written by the thread of the event loop. */
struct wss_watch {
	struct wss_watch *next;
	struct wss_lifecycle *lifecycle;
	unsigned char uuid[VIR_UUID_BUFLEN];
	atomic_bool disturbed; /* it was paused or stopped, or has crashed */
	atomic_bool kept;      /* it was stopped here, to continue elsewhere or later */
};

/* For wss_lifecycle_free(). NULL: out of memory. */
struct wss_lifecycle *wss_lifecycle_new(void);

/* Tells libvirt to send no more events, which may hang. Call before virConnectClose(). */
void wss_lifecycle_stop(struct wss_lifecycle *lifecycle, virConnectPtr vir);

/* Once it was stopped and all watches have ended. Takes NULL. */
void wss_lifecycle_free(struct wss_lifecycle *lifecycle);

/*
 * Watches a domain of the connection vir. Asks libvirt for events where no watch has done so
 * before, which may hang. *ret_watch, for wss_watch_end(), is NULL where the driver or the
 * connection sends no events: a guest is usable without. 0, or -1: out of memory.
 */
int wss_watch_begin(struct wss_lifecycle *lifecycle, virConnectPtr vir, virDomainPtr dom,
		    struct wss_watch **ret_watch);

/* Calls nothing of libvirt. Takes NULL. */
void wss_watch_end(struct wss_watch *watch);

#endif
