/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Page sampling: QEMU hashes pages drawn at random and counts those whose content has changed
 * after some seconds (QEMU 7.2, migration/dirtyrate.c). This is the written set of a window,
 * measured without arming anything, for every accelerator and page size. It misses pages that
 * were written with the content that they had, and RAM blocks below 128 MiB.
 */
#pragma once

#include <stdint.h>

#include "base/error.h"
#include "host/guest.h"
#include "measure/window-sample.h"

/* QEMU's limit of a window, in s. */
#define WSS_SAMPLING_MAX_S 60

struct wss_sampling {
	unsigned seconds;
	uint64_t mib_per_s; /* memory that changed in the window divided by its length, rounded
			       down */
	unsigned per_gib;   /* number of pages sampled in a GiB */
	/* "frozen by its cgroup for about 50 % of the window": it wrote more in its time; else "". */
	char stood_still[WSS_STOOD_STILL_LEN];
};

/*
 * Samples the pages of an attached guest whose lock the caller holds (measure/control.h), and
 * returns after seconds (1 to WSS_SAMPLING_MAX_S), once a calculation that runs already has ended. The guest's deadline
 * pauses meanwhile. Looks at the guest as a window does, on host. WSS_ERR_BUSY: that calculation does not end. WSS_ERR_UNSUPPORTED, WSS_ERR_TIMEOUT,
 * WSS_ERR_INTERRUPTED, and the errors of the guest's operations.
 */
int wss_sampling_take(const struct wss_host *host, struct wss_guest *guest,
		      struct wss_deadline *deadline, unsigned seconds,
		      struct wss_sampling *ret_sampling, struct wss_error *err);
