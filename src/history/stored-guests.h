/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The guests in a history, for what does not ask libvirt. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "history/history.h"

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
 * was made again, the one that was measured last: *ret_chosen. NULL with WSS_ERR_GONE, or WSS_ERR_AMBIGUOUS if the word
 * fits two otherwise.
 */
const struct wss_stored_guest *wss_stored_guests_find(const struct wss_stored_guests *guests,
						      const char *word, bool by_uuid,
						      bool *ret_chosen, struct wss_error *err);
