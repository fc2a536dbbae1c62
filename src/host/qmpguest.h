/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Guest that libvirt does not manage, addressed by its QMP socket. */
#ifndef WSS_HOST_QMPGUEST_H
#define WSS_HOST_QMPGUEST_H

#include "base/error.h"
#include "host/guest.h"

/*
 * Connects to the socket and queries QEMU; the guest's process is the one that holds the other
 * end of the connection (host/qmppeer.h). The connection is held until wss_guest_free(),
 * because QEMU serves one client per socket at a time. deadline, which may be NULL, must
 * outlive the guest. Fails as qmp_open_unix() and the queries do.
 */
int wss_qmpguest_open(const char *socket_path, const struct wss_deadline *deadline,
		      struct wss_guest **ret_guest, struct wss_error *err);

#endif
