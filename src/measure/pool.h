/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A pool of connections to libvirt, each of which one thread uses at a time.
 *
 * libvirt's client before 10.4 may write to the stack of a thread that has returned (CVE-2024-4418): where one
 * thread waits for an answer, and another one starts a call on the same connection, a source of events
 * that points to the first thread's stack stays in the connection's event loop, and the next thread that waits
 * there follows it. That happens above all when many calls wait for a libvirtd that hangs. libvirt's
 * own keepalive also wakes the thread that waits, but that thread goes on waiting in the same
 * stack frame, and answers or the end of the connection remove the source.
 *
 * A lease looks like a hypervisor (measure/target.h). It takes an idle connection, or opens one, when its
 * guest is opened, and gives it back once nothing refers to the lease. A thread that hangs in
 * libvirt keeps its connection.
 */
#pragma once

#include "measure/target.h"

struct wss_pool;

/* options are copied, their strings borrowed for as long as leases exist. NULL: out of memory. */
struct wss_pool *wss_pool_new(const struct wss_hypervisor_options *options);

/*
 * Makes a lease, for wss_hypervisor_unref(); calls nothing that may hang. The host is that of another hypervisor
 * of the same libvirt, which itself is the lease where libvirt's driver runs in this process: there is
 * nothing to wait for. WSS_ERR_FAILED (no descriptor is left), WSS_ERR_NO_MEMORY.
 */
int wss_pool_lease(struct wss_pool *pool, struct wss_hypervisor *other,
		   struct wss_hypervisor **ret_lease, struct wss_error *err);

/* Adds a reference and returns its argument; for wss_pool_unref(), which accepts NULL and closes nothing. */
struct wss_pool *wss_pool_ref(struct wss_pool *pool);
void wss_pool_unref(struct wss_pool *pool);

/* Closes the connections that nobody has used for a minute. May hang. */
void wss_pool_shrink(struct wss_pool *pool);

/*
 * Closes the idle connections, within half a second or in a thread that is left behind. Others are closed
 * when their leases end. Takes NULL.
 */
void wss_pool_free(struct wss_pool *pool);
