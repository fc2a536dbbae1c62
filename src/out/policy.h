/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The policy as an XML element for libvirt's domain metadata, and back. Its schema is
 * dist/policy.rng.
 */
#ifndef WSS_OUT_POLICY_H
#define WSS_OUT_POLICY_H

#include "base/error.h"
#include "wss/policy.h"

/* The element without a namespace prefix: a malloc'ed string for the caller. */
int wss_policy_write(const struct wss_policy *policy, char **ret_xml, struct wss_error *err);

/*
 * Reads an element, by hand or by the program. WSS_ERR_FAILED with what is wrong: a policy
 * that cannot be understood is never taken for none.
 */
int wss_policy_read(const char *xml, struct wss_policy *ret_policy, struct wss_error *err);

#endif
