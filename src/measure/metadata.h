/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Writes the profile as an XML element for libvirt's domain metadata, and reads it. The schema is
 * dist/profile.rng.
 */
#pragma once

#include "base/error.h"
#include "measure/profile.h"

/*
 * Writes the element without a namespace prefix, as virDomainSetMetadata() expects it. The caller
 * frees the string.
 */
int wss_metadata_write(const struct wss_profile *profile, char **ret_xml, struct wss_error *err);

/*
 * Reads an element, which need not come from wss_metadata_write(). WSS_ERR_FAILED with the
 * reason: not XML, a different element, an unknown version, or a required value that is
 * missing or out of range.
 */
int wss_metadata_read(const char *xml, struct wss_profile *ret_profile, struct wss_error *err);
