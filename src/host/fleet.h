/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the metadata of all domains of many hosts holds. Each host is asked in a thread of its
 * own, within a deadline of its own: one that does not answer holds up nobody.
 */
#ifndef WSS_HOST_FLEET_H
#define WSS_HOST_FLEET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "host/conn.h"
#include "host/domxml.h"

/* Hosts that are asked at the same time. */
#define WSS_FLEET_PARALLEL 32
/* Longer elements are an error of the domain: no host fills our memory. */
#define WSS_FLEET_XML_MAX (64 * 1024)

struct wss_fleet_domain {
	char *name;
	char uuid[WSS_UUID_TEXT_MAX]; /* "" if unknown */
	bool active;		      /* it has an id: it runs, or is paused */
	char *xml;		      /* NULL where there is no such element */
	char *error;		      /* why it could not be read; NULL where it could */
};

/* One host's answer. */
struct wss_fleet_host {
	const char *uri; /* as given; NULL: libvirt's default */
	char *asked;		/* the URI by libvirt's own name; NULL where it did not answer */
	struct wss_error error; /* set where the host as a whole did not answer */
	size_t n;
	struct wss_fleet_domain *domains; /* by name, running or not */
};

typedef void (*wss_fleet_emit)(const struct wss_fleet_host *host, void *opaque);

/*
 * Asks all n hosts for the element under a namespace, and emits their answers in the order of
 * uris, each as soon as it and those before it are there. A host that takes longer than
 * timeout_ns is emitted with WSS_ERR_CONNECT, and its thread left behind.
 * WSS_ERR_INTERRUPTED, WSS_ERR_NO_MEMORY.
 */
int wss_fleet_read(const char *const *uris, size_t n, const char *namespace_uri,
		   uint64_t timeout_ns, wss_fleet_emit emit, void *opaque, struct wss_error *err);

#endif
