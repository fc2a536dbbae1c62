/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The guests in a history that a command line names. */
#pragma once

#include "cmd/cmd.h"
#include "history/stored-guests.h"
#include "show/report.h"

/* As wss_stored_guests_find(); a message says which of several guests of that name it is. */
const struct wss_stored_guest *wss_cli_stored_guest(const struct wss_stored_guests *guests,
						    const char *word, bool by_uuid,
						    struct wss_error *err);

/*
 * Calls show() for each guest that was named, or for all. A word that fits none, and what cannot be read of one guest,
 * is counted in tally, and keeps no other guest from being shown. WSS_ERR_NO_MEMORY, WSS_ERR_INTERRUPTED.
 */
int wss_cli_stored_guests_each(const struct wss_stored_guests *guests, const struct wss_cli *cli,
			       struct wss_report *report, struct wss_tally *tally,
			       int (*show)(const struct wss_stored_guest *guest, void *opaque,
					   struct wss_error *err),
			       void *opaque, struct wss_error *err);
