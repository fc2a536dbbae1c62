/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Returns the memory that a killed controller did not give back, or forgets that it was taken. */
#pragma once

#include "balloon/events.h"
#include "balloon/scope.h"

/*
 * Takes the guests of the scope, which names them, out of the journal: they do not get their memory back.
 * Calls no libvirt. Reports and returns as wss_restore_run() does.
 */
int wss_restore_forget(const struct wss_control_scope *scope,
		       const struct wss_control_events *events, size_t *ret_guests,
		       struct wss_error *err);

/*
 * Gives memory back to each guest of the scope that the journal lists, several at a time, each
 * within 60 s, and then closes their steps. The journal's disk is waited for 30 s at most, to read and again to write:
 * trouble for each guest whose steps stay open. A guest that the scope names and the journal does not list is reported as
 * progress. A guest that libvirt does not know stays in the journal, as trouble. *ret_guests is the
 * number of guests that were to get memory back. Without a history that is trouble for each guest
 * that the scope names, or WSS_ERR_GONE if it names none; no history is created. Problems with one guest are reported as
 * trouble; returns -1 only if nothing can work: WSS_ERR_CONNECT, WSS_ERR_NO_MEMORY, WSS_ERR_TIMEOUT, and the errors of
 * wss_history_open_readonly().
 */
int wss_restore_run(const struct wss_control_scope *scope, const struct wss_control_events *events,
		    size_t *ret_guests, struct wss_error *err);
