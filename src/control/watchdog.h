/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A process of its own that gives guests their memory back when the controller cannot: it runs
 * a command for the guests in its charge when the controller dies without a word, and when it
 * has shown no sign of life for 10 s.
 */
#ifndef WSS_CONTROL_WATCHDOG_H
#define WSS_CONTROL_WATCHDOG_H

#include "base/error.h"

/*
 * Starts it. restore_command: see struct wss_balloon_options; it is run from this program's
 * own file, whatever its first word is. To be called before the process has any thread.
 * *ret_fd is for the calls below. WSS_ERR_FAILED.
 */
int wss_watchdog_start(const char *const *restore_command, int *ret_fd, struct wss_error *err);

/*
 * Puts the guest with this UUID in its charge, until the watchdog ends; NULL only asks whether
 * the watchdog is still there. Any thread may call it. -1 with WSS_ERR_FAILED where the
 * watchdog is gone, or does not listen.
 */
int wss_watchdog_charge(int fd, const char *uuid, struct wss_error *err);

/* Says that the controller is alive; to be called about each second. Never waits. */
void wss_watchdog_beat(int fd);

/* Lets the watchdog go, and closes fd. */
void wss_watchdog_dismiss(int fd);

#endif
