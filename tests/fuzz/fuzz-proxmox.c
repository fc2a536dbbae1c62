/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A configuration of Proxmox VE: whoever may edit the guest may have written its values. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "fuzz.h"
#include "host/proxmox.h"

/* Nothing that reaches a terminal may move its cursor. */
static void check_shown(const char *text, size_t size)
{
	fuzz_require(memchr(text, '\0', size));
	for (int n; *text; text += n) {
		n = wss_text_shown(text);
		fuzz_require(n > 0);
	}
}

static void proxmox_run(const uint8_t *data, size_t size)
{
	wss_auto_free char *text = fuzz_text(data, size);
	struct wss_proxmox_config config, again;
	char *section;

	wss_proxmox_config_parse(text, &config);
	check_shown(config.name, sizeof(config.name));
	check_shown(config.tags, sizeof(config.tags));
	fuzz_require(!config.uuid[0] || strlen(config.uuid) == WSS_UUID_TEXT_MAX - 1);
	fuzz_require(config.has_balloon || !config.balloon_minimum_bytes.known);
	fuzz_require(config.balloon_minimum_bytes.known || !config.balloon_shares.known);
	fuzz_require(config.memory_bytes.value <= 1ULL << 52 &&
		     config.balloon_minimum_bytes.value <= 1ULL << 52);
	/* What follows a section counts for nothing. */
	section = strstr(text, "\n[");
	if (!section)
		return;
	section[2] = '\0';
	wss_proxmox_config_parse(text, &again);
	fuzz_require(!strcmp(config.name, again.name) && !strcmp(config.uuid, again.uuid) &&
		     config.memory_bytes.value == again.memory_bytes.value);
}

const struct fuzz_target fuzz_target = {
	.name = "proxmox",
	.run = proxmox_run,
	.max_bytes = 4096,
	.mutations = 40000,
};
