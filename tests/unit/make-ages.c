/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Makes the file of ages of an invented guest of 64 MiB: make-ages DIRECTORY UUID NAME MINUTES [coarse]
 *
 * It was watched for so many minutes, in windows of one minute that follow each other. It touched 4 MiB in
 * each, 8 MiB in the first only, and the rest never. The time since boot is invented, too, because a host that
 * was started a moment ago has no such past: this one was started a minute before the first window.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cold/ages.h"

#define PAGES 16384
#define MIB_PAGES 256
#define MINUTE_NS (60 * WSS_NS_PER_S)

static void add_window(struct wss_coldness *coldness, uint64_t start_ns, bool first)
{
	struct wss_pageset *touched = wss_pageset_new(PAGES);
	struct wss_cold_window window = {.start_ns = start_ns, .end_ns = start_ns + MINUTE_NS};

	if (!touched || wss_pageset_add(touched, 0, 4 * MIB_PAGES) < 0 ||
	    (first && wss_pageset_add(touched, 16 * MIB_PAGES, 8 * MIB_PAGES) < 0))
		exit(1);
	window.touched = wss_pages_of_set(touched);
	wss_coldness_add(coldness, &window);
	wss_pageset_free(touched);
}

static uint64_t invented_now_ns(void *minutes)
{
	return (1 + *(uint64_t *)minutes) * MINUTE_NS;
}

int main(int argc, char **argv)
{
	static const struct wss_run ram = {0, PAGES};
	struct wss_ages_key key = {.boot_id = "a boot", .pid = 1, .start_ticks = 1};
	struct wss_error error = WSS_ERROR_INIT;
	uint64_t n;
	struct wss_clock_source clock = {.now_ns = invented_now_ns, .opaque = &n};
	struct wss_coldness *coldness;
	uint8_t *data;
	size_t size;
	char *path;

	if (argc != 5 && argc != 6)
		return 2;
	snprintf(key.uuid, sizeof(key.uuid), "%s", argv[2]);
	snprintf(key.name, sizeof(key.name), "%s", argv[3]);
	n = strtoull(argv[4], NULL, 10);
	coldness = wss_coldness_new(&ram, 1, 65536, NULL);
	path = wss_ages_path(argv[1], argv[2]);
	if (!coldness || !path)
		return 1;
	wss_clock_inject(&clock);
	for (uint64_t i = 0; i < n; i++)
		add_window(coldness, (1 + i) * MINUTE_NS, i == 0);
	if (argc == 6)
		wss_coldness_coarsen(coldness);
	if (wss_ages_encode(&key, coldness, WSS_AGES_BYTES_MAX, &data, &size, &error) < 0 ||
	    wss_ages_write(path, data, size, &error) < 0) {
		fprintf(stderr, "make-ages: %s\n", error.text);
		return 1;
	}
	wss_coldness_free(coldness);
	free(data);
	free(path);
	return 0;
}
