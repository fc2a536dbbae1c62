/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "host/locality.h"

#include <string.h>
#include <strings.h>

static bool same_uuid(const char *ours, const char *theirs)
{
	return ours[0] && theirs && !strcasecmp(ours, theirs);
}

/* One of the names may lack the domain part. */
static bool same_name(const char *ours, const char *theirs)
{
	size_t len = strcspn(ours, ".");

	return theirs && len && strcspn(theirs, ".") == len && !strncasecmp(ours, theirs, len);
}

int wss_locality_check(const struct wss_host *host, const struct wss_uri *uri,
		       const char *their_uuid, const char *their_name, struct wss_error *err)
{
	if (uri->kind == WSS_URI_OTHER)
		return wss_error_set(err, WSS_ERR_UNSUPPORTED,
				     "the connection's driver runs no QEMU guests here");
	if (uri->kind == WSS_URI_EMBED)
		return 0;
	if (same_uuid(host->uuid, their_uuid) || same_uuid(host->machine_id, their_uuid))
		return 0;
	if (!host->uuid[0] && !uri->has_server && !uri->own_socket &&
	    same_name(host->name, their_name))
		return 0;
	if (host->uuid[0] && their_uuid)
		return wss_error_set(
			err, WSS_ERR_UNSUPPORTED,
			"the guests of this connection run on another host (UUID %s): run virt-wss there",
			their_uuid);
	return wss_error_set(
		err, WSS_ERR_UNSUPPORTED,
		"cannot tell whether the guests of this connection run on this host: %s",
		host->uuid[0]
			? "libvirt reports no UUID of its host"
			: "this host has no UUID that virt-wss can read (/sys/class/dmi/id/product_uuid)");
}
