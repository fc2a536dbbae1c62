/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * mkhistories FILE GUESTS SEED: writes a history with a window an hour, for 28 days, of
 * invented guests of all kinds in turn, named after their kind and number.
 */
#include <stdio.h>
#include <stdlib.h>

#include "histories.h"
#include "history/history.h"

static int guest_add(struct wss_history *history, long guest, uint64_t seed, struct wss_error *err)
{
	static struct wss_backtest_hour hours[HISTORIES_HOURS];
	enum histories_kind kind = (enum histories_kind)(guest % HISTORIES_KINDS);
	size_t n = histories_make(seed + (uint64_t)guest, kind, hours);
	char uuid[37], name[64];

	snprintf(name, sizeof(name), "%s%ld", histories_kind_name(kind), guest);
	snprintf(uuid, sizeof(uuid), "00000000-0000-0000-0000-%012u", (unsigned)guest % 1000000);
	return histories_store(history, uuid, name, hours, n, 4096, err);
}

int main(int argc, char **argv)
{
	struct wss_history *history = NULL;
	struct wss_error err = WSS_ERROR_INIT;

	if (argc != 4 || wss_history_open(argv[1], &history, &err) < 0) {
		fprintf(stderr, "mkhistories: %s\n",
			argc == 4 ? err.text : "usage: mkhistories FILE GUESTS SEED");
		return 1;
	}
	for (long i = 0; i < atol(argv[2]); i++)
		if (guest_add(history, i, strtoull(argv[3], NULL, 10), &err) < 0) {
			fprintf(stderr, "mkhistories: %s\n", err.text);
			return 1;
		}
	wss_history_close(history);
	return 0;
}
