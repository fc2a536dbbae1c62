/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Holds a guest still for exact windows: SIGSTOP to its QEMU, and later SIGCONT, both through
 * the pidfd. A stopped process stays stopped when the process that stopped it dies, so a
 * forked watchdog sends SIGCONT if it sees our socket close, or if a hold lasts too long. No
 * libvirt or QMP call may be made while a guest is held: QEMU could not answer.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "host/process.h"

struct wss_hold;

/* The watchdog resumes a guest after this time, whatever happens. */
#define WSS_HOLD_MAX_NS 5000000000ULL

/* Starts the watchdog; the guest continues to run. process must outlive the hold. */
int wss_hold_open(const struct wss_process *process, struct wss_hold **ret_hold,
		  struct wss_error *err);

/*
 * Stops the guest and waits until every thread has stopped. A guest that somebody else has
 * stopped is left alone: WSS_ERR_FAILED. On any failure the guest continues to run.
 */
int wss_hold_stop(struct wss_hold *hold, struct wss_error *err);

/*
 * Resumes the guest; does nothing if we do not hold it. Returns false if the watchdog has, or
 * may have, resumed it earlier, so that the hold was interrupted.
 */
bool wss_hold_release(struct wss_hold *hold);

/* Resumes the guest and ends the watchdog. Accepts NULL. */
void wss_hold_close(struct wss_hold *hold);
