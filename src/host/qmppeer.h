/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The QEMU process at the other end of a QMP socket.
 *
 * The socket's credentials name the process that called listen(): QEMU, which does so on a socket
 * that it was handed, too. But where the listener has forked and exited the pid may be any
 * process's by the time that we ask. So the process must hold the very socket that ours is
 * connected to, and look like the VMM of this guest: what is stopped and whose memory is cleared
 * is never found by a number alone.
 */
#ifndef WSS_HOST_QMPPEER_H
#define WSS_HOST_QMPPEER_H

#include "base/error.h"
#include "base/root.h"
#include "host/process.h"
#include "qmp.h"

/*
 * Holds the process that listens, and checks it as wss_qmppeer_check() does. root stands for "/",
 * uuid is the guest's, or NULL where it has none. Errors of both, and of wss_process_hold();
 * ret_process is untouched on failure.
 */
int wss_qmppeer_hold(const struct wss_root *root, const struct qmp_peer *peer, const char *uuid,
		     struct wss_process *ret_process, struct wss_error *err);

/*
 * Checks that a held process
 * - holds the other end of the socket. Where the kernel does not tell which socket that is
 *   (peer->inode is 0), an accepted socket of the path that QEMU listens at takes its place;
 * - runs as the user who listened, with all of its user IDs; or as any user where that was root,
 *   as QEMU does after -runas;
 * - has the guest's UUID on its command line. For a guest without a UUID its executable must be
 *   named like QEMU, and one of its options (-qmp, -qmp-pretty, -chardev) say that it listens on
 *   this socket.
 * WSS_ERR_FAILED where it does not, WSS_ERR_UNSUPPORTED where we may not look, WSS_ERR_GONE where
 * it has exited.
 */
int wss_qmppeer_check(const struct wss_process *process, const struct qmp_peer *peer,
		      const char *uuid, struct wss_error *err);

#endif
