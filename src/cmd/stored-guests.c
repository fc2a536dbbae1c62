/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "cmd/stored-guests.h"

#include "base/log.h"

const struct wss_stored_guest *wss_cli_stored_guest(const struct wss_stored_guests *guests,
						    const char *word, bool by_uuid,
						    struct wss_error *err)
{
	bool chosen;
	const struct wss_stored_guest *found =
		wss_stored_guests_find(guests, word, by_uuid, &chosen, err);

	if (found && chosen)
		wss_log(WSS_LOG_INFO,
			"%s: of several guests of this name in the history, the one measured last, UUID %s "
			"(another: --uuid UUID)",
			found->name, found->uuid);
	return found;
}

int wss_cli_stored_guests_each(const struct wss_stored_guests *guests, const struct wss_cli *cli,
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
			cli->n_domains ? wss_cli_stored_guest(guests, word, cli->by_uuid, &why)
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
