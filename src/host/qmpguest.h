/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Guest that libvirt does not manage, addressed by its QMP socket. */
#pragma once

#include "base/error.h"
#include "host/guest.h"

/*
 * Connects to the socket and queries QEMU; the guest's process is the one that holds the other
 * end of the connection (host/qmppeer.h). No connection is held between two calls about the guest,
 * because QEMU serves one client per socket at a time. deadline, which may be NULL, must
 * outlive the guest; root, which stands for "/", as well. Fails as qmp_open_unix() and the queries do, and at once with
 * WSS_ERR_STOPPED if QEMU's process is stopped.
 */
int wss_qmpguest_open(const struct wss_root *root, const char *socket_path,
		      const struct wss_deadline *deadline, struct wss_guest **ret_guest,
		      struct wss_error *err);

struct qmp;

/* Reads into the guest what QEMU says on this connection of its state, its job and its balloon. Fails as the queries do. */
int wss_qmpguest_read_state(struct wss_guest *guest, struct qmp *qmp, struct wss_error *err);

/*
 * Likewise of its devices: which pin its memory, and whether the dirty log may be started. What QEMU does not answer counts as
 * a device that may do either.
 */
void wss_qmpguest_read_devices(struct wss_guest *guest, struct qmp *qmp);

/* Asks for the calculation of the dirty rate, as dirty_log_query() of struct wss_guest_ops. */
int wss_qmpguest_dirty_log(struct qmp *qmp, struct wss_dirty_log *ret_log, struct wss_error *err);
