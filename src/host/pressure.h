/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Memory pressure of the host, as the kernel reports it (Documentation/accounting/psi.rst). */
#ifndef WSS_HOST_PRESSURE_H
#define WSS_HOST_PRESSURE_H

#include "base/error.h"
#include "base/root.h"

/*
 * Reads the share of the last 10 s, in percent, in which some task waited for memory ("some avg10" of
 * /proc/pressure/memory). WSS_ERR_UNSUPPORTED: the kernel was built or started without PSI;
 * WSS_ERR_FAILED: the file is not as expected.
 */
int wss_pressure_read(const struct wss_root *root, double *ret_percent, struct wss_error *err);

#endif
