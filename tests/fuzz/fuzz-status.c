/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Other XML of libvirt: the status file, for the pid of a guest, and the capabilities, for the
 * UUID of the host.
 */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "fuzz.h"
#include "host/domxml.h"

static void status_run(const uint8_t *data, size_t size)
{
	wss_auto_free char *xml = fuzz_text(data, size);
	struct wss_error err = WSS_ERROR_INIT;
	char uuid[WSS_UUID_TEXT_MAX] = "";
	int pid = 0, r;

	r = wss_domxml_parse_status(xml, &pid, uuid, &err);
	fuzz_check(r, &err);
	fuzz_require(r < 0 ? !pid && !uuid[0] : pid > 0 && strlen(uuid) == WSS_UUID_TEXT_MAX - 1);
	wss_error_clear(&err);
	uuid[0] = '\0';
	r = wss_domxml_parse_host_uuid(xml, uuid, &err);
	fuzz_check(r, &err);
	fuzz_require(r < 0 ? !uuid[0] : strlen(uuid) == WSS_UUID_TEXT_MAX - 1);
}

const struct fuzz_target fuzz_target = {
	.name = "status",
	.run = status_run,
	.max_bytes = 65536,
	.mutations = 10000,
};
