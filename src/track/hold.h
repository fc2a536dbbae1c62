/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Holds a guest still for exact windows: SIGSTOP to its QEMU and SIGCONT after,
 * both through the pidfd. A stopped process does not go on when the one that
 * stopped it dies, so a forked watchdog that sees our pipe close, or a hold
 * that lasts too long, sends SIGCONT. No libvirt or QMP call may be made
 * while a guest is held: QEMU could not answer.
 */
#ifndef WSS_TRACK_HOLD_H
#define WSS_TRACK_HOLD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "host/process.h"

struct wss_hold;

/* The watchdog lets a guest go after this time whatever happens. */
#define WSS_HOLD_MAX_NS 5000000000ULL

/* Starts the watchdog; the guest goes on. process outlives the hold. */
int wss_hold_open(const struct wss_process *process, struct wss_hold **ret_hold,
		  struct wss_error *err);

/*
 * Stops the guest and waits until every thread has stopped. A guest that somebody
 * else has stopped already is left alone: WSS_ERR_FAILED. On any failure the guest goes on.
 */
int wss_hold_stop(struct wss_hold *hold, struct wss_error *err);

/*
 * Lets the guest go on; does nothing when it is not held by us. False where the watchdog had let
 * it go before, or might have: it was not held all the time.
 */
bool wss_hold_release(struct wss_hold *hold);

/* Lets the guest go on and ends the watchdog. Takes NULL. */
void wss_hold_close(struct wss_hold *hold);

#endif
