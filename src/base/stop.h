/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The stop flag: SIGINT, SIGTERM and SIGHUP ask the process to finish, and
 * everything that waits looks here. Nothing is done in the handler itself, so
 * that what must be restored is restored on the ordinary path out.
 */
#ifndef WSS_BASE_STOP_H
#define WSS_BASE_STOP_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Installs the handlers, and ignores SIGXFSZ and SIGPIPE: that would end the process in the midst of a
 * window, also where a socket of libvirt or QEMU was closed. Call once, before threads start.
 */
void wss_stop_install(void);

/*
 * A write of output has failed with EPIPE: asks to stop, as if SIGPIPE had come, where
 * SIGPIPE was not ignored from the start, as in services of systemd. Whether it does.
 */
bool wss_stop_on_closed_pipe(void);

/* True once a signal asked to stop. */
bool wss_stop_requested(void);

/* The signal that asked, 0 if none: the exit code is then 128 + it. */
int wss_stop_signal(void);

/* Becomes readable when a stop is requested; for poll(). -1 before wss_stop_install(). */
int wss_stop_fd(void);

/* Waits up to timeout_ns. Returns true as soon as a stop is requested. */
bool wss_stop_wait_ns(uint64_t timeout_ns);

#endif
