/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Returns the memory that an earlier controller, which was killed, did not give back. */
#ifndef WSS_CONTROL_RESTORE_H
#define WSS_CONTROL_RESTORE_H

#include "control/events.h"
#include "control/scope.h"

/*
 * Gives each guest of the scope that the journal lists its memory back, several at a time,
 * each within 60 s. A guest that the scope names and the journal does not list is reported as
 * progress. *ret_guests: how many were to get memory back. What goes wrong with one guest is
 * the events' trouble; -1 only for what stops all: WSS_ERR_CONNECT, WSS_ERR_NO_MEMORY, and the
 * errors of wss_history_open_readonly().
 */
int wss_restore_run(const struct wss_control_scope *scope,
		    const struct wss_control_events *events, size_t *ret_guests,
		    struct wss_error *err);

#endif
