/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A file of a fleet, for plan. */
#include <string.h>

#include "base/number.h"
#include "base/text.h"
#include "fleet/cluster.h"
#include "fuzz.h"

static void check_text(const char *text, size_t size)
{
	fuzz_require(memchr(text, '\0', size) != NULL);
	while (*text) {
		int len = wss_text_character(text);

		fuzz_require(len > 0);
		text += len;
	}
}

static void check_guest(const struct wss_cluster *fleet, const struct wss_cluster_guest *guest)
{
	fuzz_require(guest->name[0] && guest->host < fleet->n_hosts);
	check_text(guest->name, sizeof(guest->name));
	check_text(guest->uuid, sizeof(guest->uuid));
	check_text(guest->status, sizeof(guest->status));
	fuzz_require(guest->assigned_bytes.value <= WSS_BYTES_MAX);
	fuzz_require(guest->recommended_bytes.value <= WSS_BYTES_MAX);
	for (int i = 0; i < WSS_CLUSTER_HOURS; i++)
		fuzz_require(guest->week_bytes[i].value <= WSS_BYTES_MAX);
}

static void cluster_run(const uint8_t *data, size_t size)
{
	wss_auto_cluster struct wss_cluster fleet = {.n_hosts = 0};
	struct wss_error err = WSS_ERROR_INIT;
	size_t guests = 0;
	int r = wss_cluster_parse(&fleet, "host1", (const char *)data, size, &err);

	fuzz_check(r, &err);
	if (r < 0)
		return;
	fuzz_require(fleet.n_hosts > 0);
	for (size_t i = 0; i < fleet.n_hosts; i++) {
		check_text(fleet.hosts[i].name, sizeof(fleet.hosts[i].name));
		guests += fleet.hosts[i].n_guests;
	}
	fuzz_require(guests == fleet.n_guests);
	for (size_t i = 0; i < fleet.n_guests; i++)
		check_guest(&fleet, &fleet.guests[i]);
	r = wss_cluster_check(&fleet, &err);
	fuzz_check(r, &err);
}

const struct fuzz_target fuzz_target = {
	.name = "cluster",
	.run = cluster_run,
	.max_bytes = 65536,
	.mutations = 20000,
};
