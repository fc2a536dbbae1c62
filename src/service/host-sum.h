/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The host's sum: what its running guests need together, and what that leaves of its memory.
 */
#ifndef WSS_SERVICE_HOST_SUM_H
#define WSS_SERVICE_HOST_SUM_H

#include "service/advice.h"

#define WSS_HOST_SUM_PROBABILITY 0.99

struct wss_host_sum {
	uint64_t guests;
	uint64_t unsized; /* that count with all they were given, whatever their status */
	uint64_t unknown, too_early; /* by their status */
	struct wss_amount wss_bytes, assigned_bytes, overhead_bytes;
	time_t since;
	struct wss_fit fit;
	/* By wss_host_sum_finish(): */
	double probability; /* of needed_bytes, 0.5 to 0.999 */
	uint64_t hours;
	bool from_peak;			/* too few hours: needed_bytes is the largest */
	struct wss_amount needed_bytes; /* by the guests together */
	struct wss_amount host_bytes;
	struct wss_amount fits_bytes; /* that remain beside the guests and QEMU */
};

/* For windows from one time to another; for wss_host_sum_free(). WSS_ERR_NO_MEMORY. */
int wss_host_sum_init(struct wss_host_sum *sum, time_t since, time_t now,
		      struct wss_error *err);

/*
 * Adds a guest that runs, also one that no advice could be read of: a zeroed one. assigned:
 * the memory that the guest may have, where the advice does not know. A guest that is not
 * sized counts with all of it, as nothing less is safe. -1: as wss_history_hours(); the guest
 * counts all the same.
 */
int wss_host_sum_add(struct wss_host_sum *sum, struct wss_history *history, const char *uuid,
		     const struct wss_advice *advice, struct wss_amount assigned,
		     struct wss_error *err);

/* After the last guest. host: memory of the host. WSS_ERR_NO_MEMORY. */
int wss_host_sum_finish(struct wss_host_sum *sum, double probability, struct wss_amount host,
			struct wss_error *err);

/* Takes a zeroed one, too. */
void wss_host_sum_free(struct wss_host_sum *sum);

#endif
