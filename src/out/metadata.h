/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The profile as an XML element for libvirt's domain metadata, and back. Its
 * schema is dist/profile.rng.
 */
#ifndef WSS_OUT_METADATA_H
#define WSS_OUT_METADATA_H

#include "base/error.h"
#include "wss/profile.h"

/*
 * The element without a namespace prefix, as virDomainSetMetadata() wants it. A
 * malloc'ed string for the caller.
 */
int wss_metadata_write(const struct wss_profile *profile, char **ret_xml, struct wss_error *err);

/*
 * Reads an element that wss_metadata_write(), or anybody else, has written. WSS_ERR_FAILED
 * with what is wrong: not XML, another element, a version that is not known, a
 * required value missing or out of range.
 */
int wss_metadata_read(const char *xml, struct wss_profile *ret_profile, struct wss_error *err);

#endif
