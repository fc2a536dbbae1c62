/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The right to measure a guest, which only one controller has at a time. The lock is a
 * flock(2) on the same descriptor of the process's clear_refs file that arms the windows. So
 * it ends with its holder, leaves no file behind, and can be taken only by those who may
 * measure the process at all. The descriptor belongs to the held process (host/process.h), and
 * windows are armed only through it.
 */
#ifndef WSS_TRACK_CONTROL_H
#define WSS_TRACK_CONTROL_H

#include "base/error.h"
#include "host/process.h"

/*
 * Opens and locks clear_refs of a held process. wss_control_release() and
 * wss_process_release() give the lock up. WSS_ERR_BUSY: this guest is already being measured,
 * by another process or by another window of this one. WSS_ERR_UNSUPPORTED: no permission.
 * WSS_ERR_GONE: the process has exited.
 */
int wss_control_take(struct wss_process *process, struct wss_error *err);

/* Unlocks. Does nothing if the lock is not held. */
void wss_control_release(struct wss_process *process);

/*
 * Writes a value for clear_refs ("1", "4") to a process whose lock is held, and returns when
 * the write began and ended. WSS_ERR_GONE if the process has exited. A zombie, however,
 * accepts the write without effect (it has no mm), so check wss_process_alive() before
 * trusting what follows. WSS_ERR_FAILED without the lock: nothing is written.
 */
struct wss_span;
int wss_control_clear(const struct wss_process *process, char value, struct wss_span *ret_span,
		      struct wss_error *err);

/*
 * Whether this user may arm windows on the process. Returns 0, or -1 with WSS_ERR_UNSUPPORTED.
 * No side effect.
 */
int wss_control_probe(const struct wss_process *process, struct wss_error *err);

#endif
