/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A process of its own that gives guests their memory back if the controller cannot. It runs a
 * command for the guests that it guards when the controller dies without dismissing it, or
 * shows no sign of life for 10 s.
 */
#pragma once

#include "base/error.h"

/*
 * Starts the watchdog. restore_command is described at struct wss_balloon_options; the
 * executable is always this program's own file, whatever the first word. Call this before the
 * process has any other thread. *ret_fd is the argument for the functions below.
 * WSS_ERR_FAILED.
 */
int wss_watchdog_start(const char *const *restore_command, int *ret_fd, struct wss_error *err);

/*
 * Has the watchdog guard the guest with this UUID until it ends; NULL only
 * checks that the watchdog is still there. Any thread may call this. -1 with WSS_ERR_FAILED if
 * the watchdog is gone, or does not read its pipe.
 */
int wss_watchdog_guard(int fd, const char *uuid, struct wss_error *err);

/* Tells the watchdog that the controller is alive; call it about every second. Never waits. */
void wss_watchdog_beat(int fd);

/* Dismisses the watchdog, and closes fd. */
void wss_watchdog_dismiss(int fd);
