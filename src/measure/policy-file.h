/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Policies of guests that have no metadata: files /etc/virt-wss/policy.d/NAME.conf (base/config-file.h), with a section
 * for each guest, by its name, its UUID or its number with
 * its manager (the VMID of Proxmox VE), and the options of "policy set" as keys:
 *
 *   [web1]
 *   minimum = 512MiB
 *   period = 1h
 */
#pragma once

#include "base/error.h"
#include "host/guest.h"
#include "measure/policy.h"

/*
 * Reads the policy of a guest from all files; the later of two settings counts. A file with a fault, or one that others can
 * change, never counts as no policy: WSS_ERR_FAILED with the reason.
 */
int wss_policy_file_read(const struct wss_guest *guest, struct wss_policy *ret_policy,
			 struct wss_error *err);

typedef void (*wss_policy_unused)(const char *text, void *opaque);

/*
 * Reports each file in the directory that is not read, because of its name, and with sections each section that has been no
 * guest's in any wss_policy_file_read() of this process: a name that was mistyped protects nobody. guests are the names and
 * UUIDs of all guests, NULL at the end, or NULL.
 * Where no guest's policy has been looked for in files, as with libvirt, reports the sections of those guests: they are not read.
 */
void wss_policy_file_unused(bool sections, const char *const *guests, wss_policy_unused on_unused,
			    void *opaque);
