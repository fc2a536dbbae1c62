/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The right to measure a guest: one controller at a time. The lock is a flock(2) on the
 * very descriptor of the process's clear_refs file through which windows are
 * armed, so it dies with its holder, leaves no file behind, and can be taken only
 * by those who may measure the process at all. The descriptor stays with the process
 * (host/process.h): whoever holds the process while a window is open may arm through it,
 * and nobody opens a second one.
 */
#ifndef WSS_TRACK_CONTROL_H
#define WSS_TRACK_CONTROL_H

#include "base/error.h"
#include "host/process.h"

/*
 * Opens and locks clear_refs of a held process. wss_control_release() gives it up, as does
 * wss_process_release(). WSS_ERR_BUSY: this guest is being measured already, by another process
 * or by another window of this one. WSS_ERR_UNSUPPORTED: no permission. WSS_ERR_GONE: the process
 * has exited.
 */
int wss_control_take(struct wss_process *process, struct wss_error *err);

/* Unlocks. Does nothing where the lock is not held. */
void wss_control_release(struct wss_process *process);

/*
 * Writes one of clear_refs's values ("1", "4") to a process whose lock is held, and reports when
 * the write began and ended. WSS_ERR_GONE when the process has exited; a zombie, though, takes the
 * write and does nothing (no mm), so look at wss_process_alive() before believing what follows.
 * Without the lock: WSS_ERR_FAILED, and nothing is written.
 */
struct wss_span;
int wss_control_clear(const struct wss_process *process, char value, struct wss_span *ret_span,
		      struct wss_error *err);

/* May this user arm windows on the process? 0, or -1 with WSS_ERR_UNSUPPORTED. No side effect. */
int wss_control_probe(const struct wss_process *process, struct wss_error *err);

#endif
