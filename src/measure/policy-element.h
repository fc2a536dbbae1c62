/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Writes the policy as an XML element for libvirt's domain metadata, and reads it. The schema is
 * dist/policy.rng.
 */
#pragma once

#include "base/error.h"
#include "measure/policy.h"

/* Writes the element without a namespace prefix. The caller frees the string. */
int wss_policy_write(const struct wss_policy *policy, char **ret_xml, struct wss_error *err);

/*
 * Reads an element written by hand or by virt-wss. A malformed policy never counts as no
 * policy: WSS_ERR_FAILED with the reason.
 */
int wss_policy_read(const char *xml, struct wss_policy *ret_policy, struct wss_error *err);
