/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Test switches: the environment variable VIRT_WSS_FAULT lists, separated by commas, behaviour
 * to disable or to let fail, so that tests can prove that they detect its absence. The program
 * warns when it is set.
 *
 *   skip-zap         nothing is unmapped when a window of mmu is armed
 *   skip-aging       nothing is aged when a window of lrugen is armed
 *   selftest-fails   the copy-on-write self-test finds a lost write
 *   selftest-cannot  the self-test cannot be run
 *   slow-zap         the predicted stall of a zap is ten seconds
 *   slow-log         the predicted stall of the start of a dirty log is ten seconds
 *   dear-window      each window has cost the guest ten times what was predicted
 *   log-first        the dirty log is started without a zap before it
 *   short-log        the dirty log is requested for one second, whatever the window
 *   short-silence    the watchdog of balloon --apply gives back 0.2 s after a heartbeat
 *   short-idle       an idle connection to libvirt is closed after a second
 *   short-list       a list silently omits domains that there is no memory for
 *   lost-writes      a failed write to a recording counts as done
 *   no-tmpfile       the file system has no unnamed files
 *   stuck-service    the service hangs after it has begun, until it is stopped
 */
#pragma once

#include <stdbool.h>

/* Whether this switch is on. Always false in a program that has more privileges than its caller. */
bool wss_fault(const char *name);

/* Returns the variable's text for the warning, or NULL if it is not set. */
const char *wss_fault_text(void);

/*
 * Returns the directory that replaces "/" for reads of /proc, /sys and /run and for the
 * configuration files: VIRT_WSS_SYSROOT in tests, else "/".
 */
const char *wss_test_sysroot(void);
