/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The dirty-rate calculation: the one way to have KVM's dirty log on without a
 * migration. QEMU has one calculation a guest at a time, it cannot be cancelled,
 * and it switches the log off by itself at its end (QEMU 7.2, migration/dirtyrate.c).
 */
#ifndef QMP_DIRTYRATE_H
#define QMP_DIRTYRATE_H

#include <stdbool.h>

#include "qmp.h"

/*
 * calc-dirty-rate with mode dirty-bitmap (QEMU 6.2) for seconds (1-60). On a guest
 * under TCG QEMU before 9.1 crashes: the caller makes sure that it is a KVM guest.
 */
int qmp_start_dirty_bitmap(struct qmp *qmp, unsigned int seconds, unsigned int timeout_ms,
			   struct wss_error *err);

struct qmp_dirty_rate {
	bool measuring; /* a calculation, anybody's, is under way */
	bool bitmap;	/* it, or the last one, uses the dirty bitmap */
};
int qmp_query_dirty_rate(struct qmp *qmp, unsigned int timeout_ms,
			 struct qmp_dirty_rate *ret_rate, struct wss_error *err);

#endif
