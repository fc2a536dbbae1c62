/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The stored profile in a domain's metadata: whoever may edit the domain may have written it. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "fuzz.h"
#include "measure/metadata.h"

/* A profile that was read can be written, and reads back the same. */
static void check_stable(const struct wss_profile *profile)
{
	wss_auto_free char *xml = NULL;
	struct wss_profile again;

	fuzz_require(wss_metadata_write(profile, &xml, NULL) == 0);
	fuzz_require(wss_metadata_read(xml, &again, NULL) == 0);
	fuzz_require(again.time == profile->time);
	fuzz_require(again.current_bytes == profile->current_bytes);
	fuzz_require(again.granularity_bytes == profile->granularity_bytes);
	fuzz_require(!strcmp(again.method, profile->method) && !strcmp(again.tool, profile->tool));
}

static void profile_run(const uint8_t *data, size_t size)
{
	wss_auto_free char *xml = fuzz_text(data, size);
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_profile profile;
	static const struct wss_profile now = {.time = 1795197600, .current_bytes = 1 << 20};
	int r = wss_metadata_read(xml, &profile, &err);

	fuzz_check(r, &err);
	if (r < 0)
		return;
	check_stable(&profile);
	wss_profile_due(&profile, &now);
}

const struct fuzz_target fuzz_target = {
	.name = "profile",
	.run = profile_run,
	.max_bytes = 8192,
	.mutations = 40000,
};
