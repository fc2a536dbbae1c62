/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Confines a process to accepting connections on its listening sockets and talking on them. A step that fails is
 * an error (WSS_ERR_FAILED): the process may have rights that it should not have, and must end.
 */
#pragma once

#include <sys/types.h>

#include "base/error.h"

/*
 * Call this in a process with one thread. As root it becomes the user and group, without
 * supplementary groups, and enters an empty root directory. In any case it drops all
 * capabilities, from the bounding set too if it may, and limits its memory, descriptors and processes;
 * from now on it dies with its parent, and only root can trace it.
 */
int wss_http_confine(uid_t uid, gid_t gid, unsigned max_fds, struct wss_error *err);

/*
 * Makes all system calls fail with EPERM except those that serving needs. Descriptors up to last_listener are
 * shared with the service, which passes them to the next process: no call changes anything about the open file that
 * they refer to.
 */
int wss_http_confine_calls(int last_listener, struct wss_error *err);
