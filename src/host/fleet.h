/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reads one metadata element of all domains on many hosts. Each host, and each of its domains, is
 * asked in a thread of its own, within the host's deadline, so that one that does not answer
 * delays no other.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "host/conn.h"
#include "host/domxml.h"

/* Number of hosts to ask at the same time. */
#define WSS_FLEET_PARALLEL 32
/* A longer element is reported as its domain's error, so that no host can fill our memory. */
#define WSS_FLEET_XML_MAX (64 * 1024)

struct wss_fleet_domain {
	char *name;
	char uuid[WSS_UUID_TEXT_MAX]; /* "" if unknown */
	char *xml;		      /* NULL if there is no such element */
	char *error;		      /* why the element could not be read, else NULL */
};

/* One host's answer. */
struct wss_fleet_host {
	const char *uri; /* as given; NULL: libvirt's default */
	/* The URI as the connection itself reports it; NULL if the host did not answer. */
	char *asked;
	struct wss_error error; /* set if the host as a whole did not answer */
	size_t n;
	struct wss_fleet_domain *domains; /* sorted by name, running or not */
};

typedef void (*wss_fleet_emit)(const struct wss_fleet_host *host, void *opaque);

/*
 * Asks all n hosts for the element of a namespace (a constant), and passes their answers to emit
 * in the order of uris, each as soon as it and all before it are there. A host that has not listed
 * its domains within timeout_ns gets WSS_ERR_CONNECT; a domain whose element was not read by then
 * gets an error of its own. Their threads are left behind. WSS_ERR_INTERRUPTED,
 * WSS_ERR_NO_MEMORY.
 */
int wss_fleet_read(const char *const *uris, size_t n, const char *namespace_uri,
		   uint64_t timeout_ns, wss_fleet_emit emit, void *opaque, struct wss_error *err);
