/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "cmd/stored-guests.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/log.h"
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
						      struct wss_error *err)
{
	const struct wss_stored_guest *found = NULL, *newer;
	bool chosen = false;
	struct wss_nearest nearest = {.typed = word};

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
		chosen |= found != NULL;
		found = newer;
	}
	if (chosen)
		wss_log(WSS_LOG_INFO,
			"%s: of several guests of this name in the history, the one measured last, UUID %s "
			"(another: --uuid UUID)",
			found->name, found->uuid);
	if (!found && !by_uuid && wss_nearest_word(&nearest))
		wss_error_set(err, WSS_ERR_GONE, "no such guest in the history: did you mean '%s'?",
			      wss_nearest_word(&nearest));
	else if (!found)
		wss_error_set(err, WSS_ERR_GONE, "no such guest in the history");
	return found;
}

int wss_stored_guests_each(const struct wss_stored_guests *guests, const struct wss_cli *cli,
			   struct wss_report *report, struct wss_tally *tally,
			   int (*show)(const struct wss_stored_guest *guest, void *opaque,
				       struct wss_error *err),
			   void *opaque, struct wss_error *err)
{
	size_t n = cli->n_domains ? (size_t)cli->n_domains : guests->n;

	for (size_t i = 0; i < n; i++) {
		struct wss_error why = WSS_ERROR_INIT;
		const char *word = cli->n_domains ? cli->domains[i] : guests->list[i].name;
		const struct wss_stored_guest *guest =
			cli->n_domains ? wss_stored_guests_find(guests, word, cli->by_uuid, &why)
				       : &guests->list[i];

		if (guest && show(guest, opaque, &why) == 0)
			continue;
		if (why.code == WSS_ERR_NO_MEMORY || why.code == WSS_ERR_INTERRUPTED) {
			*err = why;
			return -1;
		}
		wss_tally_bad(tally, guest ? guest->name : word, &why);
		wss_report_leave_out(report);
	}
	return 0;
}
