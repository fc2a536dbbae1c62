/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * QEMU processes that cannot answer, because somebody has stopped them: by a signal (SIGSTOP), by a debugger, or by
 * freezing their cgroup. libvirt does not know: whatever asks such a QEMU waits until it goes on, and keeps one of
 * libvirtd's few threads (max_workers) meanwhile. What is about to ask looks here first.
 */
#pragma once

#include "base/deadline.h"
#include "base/error.h"
#include "base/root.h"
#include "host/process.h"

/* How long a process is looked at that seems to be stopped: windows with --pause, and tracers, stop one for moments. */
#define WSS_STOPPED_NS 1000000000ULL

/*
 * Whether a process can answer. Returns 0, also if that is not known, or -1 with WSS_ERR_STOPPED if its main thread,
 * which answers, has been stopped for WSS_STOPPED_NS, or until the deadline, which may be NULL, has passed.
 */
int wss_stopped_check(const struct wss_root *root, const struct wss_process *process,
		      const struct wss_deadline *deadline, struct wss_error *err);
