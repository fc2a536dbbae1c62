/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Checks that the libvirt behind a URI runs on this host. Another host's pid would name an
 * unrelated process here, whose memory would be zapped.
 */
#pragma once

#include "base/error.h"
#include "host/host.h"
#include "host/uri.h"

/*
 * A pure function. their_uuid is the host UUID in the connection's capabilities, their_name
 * its host name; NULL if unknown.
 *
 * libvirt takes its host UUID from SMBIOS, from /etc/machine-id if configured so, or generates
 * one at each start if SMBIOS has no valid one (libvirt 9.0, src/util/viruuid.c). Therefore:
 *
 * - embed is this very process;
 * - a UUID equal to one of this host's is local;
 * - if this host has an SMBIOS UUID, a different one is another host;
 * - if it has none, a UNIX socket at libvirt's own place on a host of the same name counts as
 *   local (the guest's UUID in the command line of the process is checked in any case);
 * - a URI with a server is local only by its UUID.
 *
 * Returns 0, or -1 with WSS_ERR_UNSUPPORTED.
 */
int wss_locality_check(const struct wss_host *host, const struct wss_uri *uri,
		       const char *their_uuid, const char *their_name, struct wss_error *err);
