/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The capabilities of the process that measures. Those that measuring needs are effective:
 *
 *   CAP_SYS_PTRACE        /proc/PID/smaps, pagemap and clear_refs of a QEMU that runs as another user
 *   CAP_DAC_OVERRIDE      these files' modes, and a textfile in a directory of another user
 *   CAP_BPF, CAP_PERFMON  the BPF programs that read KVM's tables
 *
 * If HTTP is served, these are permitted, too, but not effective: the process that speaks HTTP
 * needs them for a moment to give up everything (http-confine.h), whenever it is started, and
 * CAP_KILL ends it.
 *
 *   CAP_SETUID, CAP_SETGID, CAP_SETPCAP, CAP_SYS_CHROOT, CAP_KILL
 *
 * All others are gone, from the bounding set too, and no program that is run can bring them
 * back.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"

/*
 * Limits the process to these capabilities; call it as long as it has one thread. Does nothing
 * to users other than root, who have none, nor with uri (NULL: libvirt's default) where
 * libvirt is part of this process or may start a daemon from it. WSS_ERR_FAILED: it has more
 * than that.
 */
int wss_rights_limit(const char *uri, bool http, struct wss_error *err);

/* Sends a signal to a process, also another user's, for which CAP_KILL is effective meanwhile. */
void wss_rights_kill(int pidfd, int signal);
