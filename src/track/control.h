/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The right to measure a guest: one controller at a time. The lock is a flock(2) on the
 * very descriptor of the process's clear_refs file through which windows are
 * armed, so it dies with its holder, leaves no file behind, and can be taken only
 * by those who may measure the process at all.
 */
#ifndef WSS_TRACK_CONTROL_H
#define WSS_TRACK_CONTROL_H

#include "base/error.h"
#include "host/process.h"

/*
 * Opens and locks; the descriptor is the caller's to close, which unlocks.
 * WSS_ERR_BUSY: another process measures this guest. WSS_ERR_UNSUPPORTED: no permission.
 * WSS_ERR_GONE: the process has exited.
 */
int wss_control_open(const struct wss_process *process, int *ret_clear_refs,
		     struct wss_error *err);

/*
 * Writes one of clear_refs's values ("1", "4") and reports when the write began and ended.
 * WSS_ERR_GONE when the process has exited; a zombie, though, takes the write and does
 * nothing (no mm), so look at wss_process_alive() before believing what follows.
 */
struct wss_span;
int wss_control_clear(int clear_refs, char value, struct wss_span *ret_span,
		      struct wss_error *err);

/* May this user arm windows on the process? 0, or -1 with WSS_ERR_UNSUPPORTED. No side effect. */
int wss_control_probe(const struct wss_process *process, struct wss_error *err);

#endif
