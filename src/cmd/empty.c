/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>

#include "base/log.h"
#include "cmd/cmd.h"

static bool is_session(const char *uri)
{
	static const char session[] = "qemu:///session";

	return strncmp(uri, session, sizeof(session) - 1) == 0;
}

void wss_cli_say_empty(const struct wss_cli *cli, const char *uri, bool running)
{
	if (cli->format != WSS_FORMAT_TABLE)
		return;
	if (!uri)
		uri = "libvirt's default URI";
	/* libvirt's default URI for an unprivileged user. */
	wss_log(WSS_LOG_INFO,
		running ? "no domain is running at %s%s" : "no domain is defined at %s%s", uri,
		!cli->uri && is_session(uri) ? ", libvirt's default here; -c qemu:///system "
					       "has the system's domains"
					     : "");
}
