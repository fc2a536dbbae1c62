/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The dirty-rate calculation is the only way to turn on KVM's dirty log without a migration.
 * QEMU runs one calculation per guest at a time, cannot cancel it, and turns the log off when
 * it ends (QEMU 7.2, migration/dirtyrate.c).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "qmp.h"

/*
 * Starts calc-dirty-rate in mode dirty-bitmap (QEMU 6.2) for 1 to 60 seconds. QEMU before 9.1
 * crashes if the guest runs under TCG: the caller must make sure that it runs on KVM.
 */
int qmp_start_dirty_bitmap(struct qmp *qmp, unsigned int seconds, unsigned int timeout_ms,
			   struct wss_error *err);

/*
 * Starts calc-dirty-rate in mode page-sampling (QEMU 5.2) for 1 to 60 seconds: QEMU hashes
 * per_gib pages of each GiB (128 to 16384), and counts those whose content has changed at the
 * end. Works under every accelerator, and costs the guest no fault.
 */
int qmp_start_page_sampling(struct qmp *qmp, unsigned int seconds, unsigned int per_gib,
			    unsigned int timeout_ms, struct wss_error *err);

struct qmp_dirty_rate {
	bool measuring;	    /* a calculation is running, whoever started it */
	bool bitmap;	    /* that calculation, or the last one, uses the dirty bitmap */
	bool measured;	    /* the last one has ended, and mib_per_s is its result */
	uint64_t mib_per_s; /* rounded down */
	/* When the last one began, by CLOCK_MONOTONIC, and its length; 0: QEMU does not say so. */
	uint64_t start_s, length_s;
};
int qmp_query_dirty_rate(struct qmp *qmp, unsigned int timeout_ms, struct qmp_dirty_rate *ret_rate,
			 struct wss_error *err);
