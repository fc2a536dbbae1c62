/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The service's reply about its guests, with its head. */
#include <string.h>

#include "base/text.h"
#include "client/guests.h"
#include "fuzz.h"

/* Text is UTF-8, whatever the reply made of it by escapes. */
static void check_text(const char *text, size_t size)
{
	fuzz_require(memchr(text, '\0', size) != NULL);
	while (*text) {
		int len = wss_text_character(text);

		fuzz_require(len > 0);
		text += len;
	}
}

static void check_guest(const struct wss_guest_view *guest)
{
	fuzz_require(guest->name[0] && guest->state[0]);
	check_text(guest->name, sizeof(guest->name));
	check_text(guest->uuid, sizeof(guest->uuid));
	check_text(guest->state, sizeof(guest->state));
	check_text(guest->why, sizeof(guest->why));
	check_text(guest->sample.method, sizeof(guest->sample.method));
	fuzz_require(guest->sample.wss_bytes.value <= INT64_MAX);
	fuzz_require(guest->period_ns.value <= 9000000000 * (uint64_t)1000000000);
}

static void guests_run(const uint8_t *data, size_t size)
{
	struct wss_guests guests = {.n = 0};
	struct wss_error err = WSS_ERROR_INIT;
	int r = wss_guests_read((const char *)data, size, &guests, &err);

	fuzz_check(r, &err);
	fuzz_require(r == 0 || !guests.list);
	if (r < 0)
		return;
	check_text(guests.held, sizeof(guests.held));
	for (size_t i = 0; i < guests.n; i++)
		check_guest(&guests.list[i]);
	wss_guests_release(&guests);
}

const struct fuzz_target fuzz_target = {
	.name = "guests",
	.run = guests_run,
	.max_bytes = 65536,
	.mutations = 60000,
};
