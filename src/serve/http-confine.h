/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Confines a process to accepting connections on its listening sockets and talking on them.
 */
#ifndef WSS_SERVE_HTTP_CONFINE_H
#define WSS_SERVE_HTTP_CONFINE_H

#include <sys/types.h>

#include "base/error.h"

/*
 * Call this in a process with one thread. As root it becomes the user and group, without
 * supplementary groups, and enters an empty root directory if it can. In any case it drops all
 * capabilities, from the bounding set too if it may, and limits its memory, descriptors and processes;
 * from now on it dies with its parent, and only root can trace it. WSS_ERR_FAILED: the process still
 * has rights that it should not have, and must end.
 */
int wss_http_confine(uid_t uid, gid_t gid, unsigned max_fds, struct wss_error *err);

/*
 * Makes all system calls fail with EPERM except those that serving needs. Does nothing where the
 * kernel or the architecture has no such filter.
 */
void wss_http_confine_calls(void);

#endif
