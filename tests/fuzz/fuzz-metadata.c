/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Feeds the reader of the stored profile with anything: whoever may edit a domain may
 * have written it. As fuzz-domxml.c, with -DWSS_LIBFUZZER it searches for inputs itself,
 * without it mutates a profile in a fixed pseudo-random sequence:
 *
 *   fuzz-metadata [MUTATIONS]
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "out/metadata.h"
#include "mutate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What was read can be written, and is then read as the same. */
static void check_stable(const struct wss_profile *profile)
{
	wss_auto_free char *xml = NULL;
	struct wss_profile again;

	if (wss_metadata_write(profile, &xml, NULL) < 0 ||
	    wss_metadata_read(xml, &again, NULL) < 0 || again.time != profile->time ||
	    again.current_bytes != profile->current_bytes ||
	    again.granularity_bytes != profile->granularity_bytes ||
	    strcmp(again.method, profile->method) != 0 || strcmp(again.tool, profile->tool) != 0)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	wss_auto_free char *xml = malloc(size + 1);
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_profile profile;
	int r;

	if (!xml)
		return 0;
	memcpy(xml, data, size);
	xml[size] = '\0';
	r = wss_metadata_read(xml, &profile, &err);
	if ((r == 0) != (err.code == WSS_OK) || (r < 0 && !err.text[0]))
		abort();
	if (r == 0)
		check_stable(&profile);
	return 0;
}

#ifndef WSS_LIBFUZZER

#define INPUT_MAX 4096

static const char *const pieces[] = {
	"<!DOCTYPE a [<!ENTITY b 'c'>]>", "&b;", "<current>", "</profile>", "-1",
	"18446744073709551616", "1e9", "9999-12-31T23:59:60Z", "\xff", "<![CDATA[",
	"&#10;", "\xc2\x9b", "xmlns='urn:x'",
};
#define N_PIECES (sizeof(pieces) / sizeof(pieces[0]))

int main(int argc, char **argv)
{
	const struct wss_profile profile = {
		.version = WSS_PROFILE_VERSION,
		.time = 1795197600,
		.method = "mmu",
		.observes = "accesses",
		.window_ns = 4020000000,
		.granularity_bytes = 4096,
		.current_bytes = 68943872,
		.low_bytes = 68943872,
		.high_bytes = 68943872,
		.peak_bytes = { true, 77594624 },
		.confidence = "single",
		.tool = "0.1.0",
	};
	unsigned long mutations = argc > 1 ? strtoul(argv[1], NULL, 10) : 100000;
	wss_auto_free char *xml = NULL;
	static uint8_t data[INPUT_MAX];

	if (wss_metadata_write(&profile, &xml, NULL) < 0)
		return 1;
	check_stable(&profile);
	for (unsigned long i = 0; i < mutations; i++) {
		size_t size = strlen(xml), n = 1 + random_below(4);

		memcpy(data, xml, size);
		while (n--)
			size = mutate(data, size, sizeof(data), pieces, N_PIECES);
		LLVMFuzzerTestOneInput(data, size);
	}
	printf("1..1\nok 1 - a profile and %lu mutations of it\n", mutations);
	return 0;
}

#endif
