/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The right to measure a guest, which only one controller has at a time. It has two locks, which end with their
 * holder:
 *
 * - A flock(2) on the same descriptor of the process's clear_refs file that arms the windows. Every user who may
 *   measure the process can take it, and so can any other process of QEMU's user.
 * - For root, a byte of a file that only root can open. Root then ignores a lock of others on clear_refs, so that
 *   no process of QEMU's user can keep it from measuring. It respects one of root's, which sees another /run.
 *
 * The descriptors belong to the held process (host/process.h), and windows are armed only through it.
 */
#pragma once

#include "base/error.h"
#include "host/process.h"

/* Root's locks: byte N is that of process N, and 4 bytes at 4 * N are its holder's number. */
#define WSS_CONTROL_DIRECTORY "/run/virt-wss"
#define WSS_CONTROL_FILE "guests.lock"

/*
 * Opens and locks clear_refs of a held process. wss_control_release() and
 * wss_process_release() give the lock up. WSS_ERR_BUSY: this guest is already being measured,
 * by another process, which is named, or by another window of this one. WSS_ERR_UNSUPPORTED: no permission.
 * WSS_ERR_FAILED: another user has prepared the lock file. WSS_ERR_GONE: the process has exited.
 * process->intruder is set to a process of another user whose lock was ignored, else to 0.
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
