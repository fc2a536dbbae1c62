/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "history/stored-guests.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/nearest.h"

static int stored_guest_add(const char *uuid, const char *name, void *opaque)
{
	struct wss_stored_guests *guests = opaque;
	struct wss_stored_guest *list = reallocarray(guests->list, guests->n + 1, sizeof(*list));

	if (!list)
		return -1;
	guests->list = list;
	list[guests->n] = (struct wss_stored_guest){strdup(uuid), strdup(name)};
	guests->n++;
	return list[guests->n - 1].uuid && list[guests->n - 1].name ? 0 : -1;
}

int wss_stored_guests_read(struct wss_history *history, struct wss_stored_guests *guests,
			   struct wss_error *err)
{
	guests->history = history;
	return wss_history_guests(history, stored_guest_add, guests, err);
}

void wss_stored_guests_free(struct wss_stored_guests *guests)
{
	for (size_t i = 0; i < guests->n; i++) {
		free(guests->list[i].uuid);
		free(guests->list[i].name);
	}
	free(guests->list);
	*guests = (struct wss_stored_guests){0};
}

/* Returns the one that was measured last; NULL: they are not two of one name, or nothing says which it is. */
static const struct wss_stored_guest *stored_guest_newer(const struct wss_stored_guests *guests,
							 const struct wss_stored_guest *a,
							 const struct wss_stored_guest *b)
{
	struct wss_amount last_a, last_b;

	if (!guests->history || strcmp(a->name, b->name) != 0 ||
	    wss_history_last(guests->history, a->uuid, &last_a, NULL) < 0 ||
	    wss_history_last(guests->history, b->uuid, &last_b, NULL) < 0 ||
	    (!last_a.known && !last_b.known))
		return NULL;
	return !last_b.known || (last_a.known && last_a.value > last_b.value) ? a : b;
}

const struct wss_stored_guest *wss_stored_guests_find(const struct wss_stored_guests *guests,
						      const char *word, bool by_uuid,
						      bool *ret_chosen, struct wss_error *err)
{
	const struct wss_stored_guest *found = NULL, *newer;
	struct wss_nearest nearest = {.typed = word};

	*ret_chosen = false;
	for (size_t i = 0; i < guests->n; i++) {
		const struct wss_stored_guest *guest = &guests->list[i];

		wss_nearest_offer(&nearest, guest->name);
		if (strcasecmp(guest->uuid, word) != 0 &&
		    (by_uuid || strcmp(guest->name, word) != 0))
			continue;
		newer = found ? stored_guest_newer(guests, found, guest) : guest;
		if (!newer) {
			wss_error_set(
				err, WSS_ERR_AMBIGUOUS,
				"fits two guests in the history, '%.80s' (UUID %.36s) and '%.80s' (UUID %.36s)",
				found->name, found->uuid, guest->name, guest->uuid);
			return NULL;
		}
		*ret_chosen |= found != NULL;
		found = newer;
	}
	if (!found && !by_uuid && wss_nearest_word(&nearest))
		wss_error_set(err, WSS_ERR_GONE, "no such guest in the history: did you mean '%s'?",
			      wss_nearest_word(&nearest));
	else if (!found)
		wss_error_set(err, WSS_ERR_GONE, "no such guest in the history");
	return found;
}
