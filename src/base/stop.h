/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Stop flag: SIGINT, SIGTERM and SIGHUP ask the process to finish, and everything that waits
 * checks it. The handler itself does nothing else, so that the ordinary way out restores the
 * host and the guests.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * Installs the handlers, and ignores SIGXFSZ and SIGPIPE, which would end the process in the
 * middle of a window (SIGPIPE also if libvirt or QEMU closes its socket). Call once, before
 * threads start.
 */
void wss_stop_install(void);

/*
 * From now on SIGHUP asks for the configuration to be read again, as services do, instead of stopping the
 * process, even if it was ignored before.
 */
void wss_stop_spare_hangup(void);

/* Whether a SIGHUP has come since the last call. */
bool wss_stop_take_reload(void);

/*
 * Call this after writing output failed with EPIPE. Requests a stop, as SIGPIPE would have
 * done, unless SIGPIPE was ignored when the process started, as in systemd services. Returns
 * whether it has requested one.
 */
bool wss_stop_on_closed_pipe(void);

/* Whether a signal has asked the process to stop. */
bool wss_stop_requested(void);

/* Returns the signal that requested the stop, or 0; the exit status is then 128 plus the signal. */
int wss_stop_signal(void);

/* Becomes readable when a stop is requested; for poll(). -1 before wss_stop_install(). */
int wss_stop_fd(void);

/* Waits up to timeout_ns. Returns true as soon as a stop is requested. */
bool wss_stop_wait_ns(uint64_t timeout_ns);
