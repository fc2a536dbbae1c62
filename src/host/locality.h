/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Is the libvirt behind a URI the one of this very host? A pid from anywhere
 * else names another process here, and it would be that one's memory that is zapped.
 */
#ifndef WSS_HOST_LOCALITY_H
#define WSS_HOST_LOCALITY_H

#include "base/error.h"
#include "host/host.h"
#include "host/uri.h"

/*
 * Pure. their_uuid and their_name are the host UUID of the connection's capabilities and
 * its host name, NULL where unknown.
 *
 * libvirt takes its host UUID from SMBIOS, from /etc/machine-id when told so, or makes
 * one up at each start where SMBIOS has none that is valid (libvirt 9.0,
 * src/util/viruuid.c). Hence: embed is our own process; equal to a UUID of ours is local;
 * where this host has an SMBIOS UUID, another one is another host; where it has none, a
 * UNIX socket at libvirt's own place on a host of our name is taken for local (the
 * UUID of the guest in the process's command line is checked in any case); a
 * URI with a server is local only by its UUID.
 * Returns 0, or -1 with WSS_ERR_UNSUPPORTED.
 */
int wss_locality_check(const struct wss_host *host, const struct wss_uri *uri,
		       const char *their_uuid, const char *their_name, struct wss_error *err);

#endif
