/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Test switches: the environment variable VIRT_WSS_FAULT names things to leave
 * out or let fail, separated by commas, so that tests can show that a check
 * fails when what it checks is gone. The program warns when it is set.
 *
 *   skip-zap         nothing is unmapped when a window of mmu is armed
 *   selftest-fails   the copy-on-write self-test finds a lost write
 *   selftest-cannot  the self-test cannot be run
 *   slow-zap         the predicted stall of a zap is ten seconds
 *   log-first        the dirty log is started without a zap before it
 *   short-log        the dirty log is asked for one second, however long the window is
 *   short-hold       the watchdog lets a held guest go after 0.2 s
 *   short-silence    the watchdog of balloon --apply gives back after 0.2 s without a beat
 *   short-list       domains that there is no memory for are left out of a list
 *   lost-writes      a write to a recording that fails is taken for done
 */
#ifndef WSS_BASE_FAULT_H
#define WSS_BASE_FAULT_H

#include <stdbool.h>

/* Is this switch on? Never in a program that runs with more rights than its caller. */
bool wss_fault(const char *name);

/* The variable's text for the warning, NULL when it is not set. */
const char *wss_fault_text(void);

/*
 * The directory that stands for "/" where /proc, /sys and /run are read: VIRT_WSS_SYSROOT in
 * tests, else "/".
 */
const char *wss_test_sysroot(void);

#endif
