/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Memory pressure of the host or of a cgroup, as the kernel reports it (Documentation/accounting/psi.rst). */
#pragma once

#include "base/error.h"
#include "base/root.h"

/* Time in which some task waited for memory, or all did that were not idle. */
enum wss_psi { WSS_PSI_SOME, WSS_PSI_FULL };

/*
 * Reads the share of the last 10 s, in percent, that kind names. cgroup: directory of a cgroup (version 2) below root,
 * as wss_vmm_cgroup_find() gives it; NULL: the whole host. WSS_ERR_UNSUPPORTED: the kernel was built or started without
 * PSI, or the cgroup has no file for it; WSS_ERR_FAILED: the file is not as expected.
 */
int wss_pressure_read(const struct wss_root *root, const char *cgroup, enum wss_psi kind,
		      double *ret_percent, struct wss_error *err);
