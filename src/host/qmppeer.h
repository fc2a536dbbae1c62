/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The QEMU process at the other end of a QMP socket.
 *
 * The socket's credentials name the process that called listen(). That is QEMU, which calls it
 * even on a socket that was passed to it. But if the listener has forked and exited, its pid
 * may have been reused by now. The process must therefore hold the socket that ours is
 * connected to, and look like the VMM of this guest: no process is stopped or cleared because
 * of its pid alone.
 */
#pragma once

#include "base/error.h"
#include "base/root.h"
#include "host/process.h"
#include "qmp/qmp.h"

/*
 * Holds the listening process and checks it with wss_qmppeer_check(). root stands for "/";
 * uuid is the guest's, or NULL if it has none. Fails as wss_qmppeer_check() and
 * wss_process_hold() do; ret_process is untouched on failure.
 */
int wss_qmppeer_hold(const struct wss_root *root, const struct qmp_peer *peer, const char *uuid,
		     struct wss_process *ret_process, struct wss_error *err);

/*
 * Checks that a held process
 *
 * - holds the other end of the socket. If the kernel does not report that socket (peer->inode
 *   is 0), any socket accepted at the path that QEMU listens on takes its place;
 * - runs as the user who listened, with all of its user IDs; or as any user if that was root,
 *   as QEMU does after -runas;
 * - has the guest's UUID on its command line. For a guest without a UUID its executable must
 *   be named like QEMU, and one of its options (-qmp, -qmp-pretty, -chardev) must say that it
 *   listens on this socket.
 *
 * WSS_ERR_FAILED if a check fails, WSS_ERR_UNSUPPORTED without permission to check,
 * WSS_ERR_GONE if the process has exited.
 */
int wss_qmppeer_check(const struct wss_process *process, const struct qmp_peer *peer,
		      const char *uuid, struct wss_error *err);
