/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The guests in a history, for commands that do not ask libvirt. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "cmd/cmd.h"
#include "history/history.h"
#include "show/report.h"

struct wss_stored_guest {
	char *uuid, *name;
};

/* All zero is empty. */
struct wss_stored_guests {
	/* Says which of two guests of one name was measured last, while it is open; NULL: such a name is ambiguous. */
	struct wss_history *history;
	size_t n;
	struct wss_stored_guest *list;
};

/* Reads all guests, for wss_stored_guests_free(), also on error: as wss_history_guests(). */
int wss_stored_guests_read(struct wss_history *history, struct wss_stored_guests *guests,
			   struct wss_error *err);

void wss_stored_guests_free(struct wss_stored_guests *guests);

/*
 * Finds the guest that a word names: by its UUID or, unless by_uuid, its name. Of guests with the same name, as one that
 * was made anew, the one that was measured last, with a message. NULL with WSS_ERR_GONE, or WSS_ERR_AMBIGUOUS if the word
 * fits two otherwise.
 */
const struct wss_stored_guest *wss_stored_guests_find(const struct wss_stored_guests *guests,
						      const char *word, bool by_uuid,
						      struct wss_error *err);

/*
 * Calls show() for each guest that was named, or for all. A word that fits none, and what cannot be read of one guest,
 * is counted in tally, and keeps no other guest from being shown. WSS_ERR_NO_MEMORY, WSS_ERR_INTERRUPTED.
 */
int wss_stored_guests_each(const struct wss_stored_guests *guests, const struct wss_cli *cli,
			   struct wss_report *report, struct wss_tally *tally,
			   int (*show)(const struct wss_stored_guest *guest, void *opaque,
				       struct wss_error *err),
			   void *opaque, struct wss_error *err);
