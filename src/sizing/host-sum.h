/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The host's sum: how much memory its running guests need together, and how much is left. */
#pragma once

#include "host/conn.h"
#include "sizing/advice.h"

#define WSS_HOST_SUM_PROBABILITY 0.99

struct wss_host_sum {
	uint64_t guests;
	/* Guests that count with all their assigned memory, whatever their status. */
	uint64_t unsized;
	uint64_t paused; /* guests that count with what they have, as they are paused */
	/* Guests of which not even that is known: they count with nothing. */
	uint64_t unknown_memory;
	uint64_t unknown, too_early; /* guests by their status */
	struct wss_amount wss_bytes, assigned_bytes, overhead_bytes;
	time_t since;
	struct wss_fit fit;
	/* Set by wss_host_sum_finish(): */
	double probability; /* probability for needed_bytes, 0.5 to 0.999 */
	char inventory[16]; /* set by the caller, for reports: whose guests they are */
	uint64_t hours;
	bool from_peak;			/* too few hours: needed_bytes is the largest value */
	struct wss_amount needed_bytes; /* need of all guests together */
	struct wss_amount host_bytes;
	struct wss_amount fits_bytes; /* memory left over by the guests and QEMU */
};

/*
 * Initializes a sum over the windows between two times. Free it with wss_host_sum_free().
 * WSS_ERR_NO_MEMORY.
 */
int wss_host_sum_init(struct wss_host_sum *sum, time_t since, time_t now, struct wss_error *err);

/*
 * Adds a running or paused guest; advice is all zero if none could be read. assigned_bytes is the guest's
 * maximum memory, used if the advice does not include it. A guest without a size counts with all of its memory,
 * because nothing less is safe, and one that is paused with what it has. Returns -1 with the errors of
 * wss_history_hours(); the guest counts nevertheless.
 */
int wss_host_sum_add(struct wss_host_sum *sum, struct wss_history *history,
		     const struct wss_advice *advice, const struct wss_conn_size *size,
		     struct wss_error *err);

/* Computes the result after the last guest. host is the memory of the host. WSS_ERR_NO_MEMORY. */
int wss_host_sum_finish(struct wss_host_sum *sum, double probability, struct wss_amount host,
			struct wss_error *err);

/* Frees a sum; accepts one that is all zero. */
void wss_host_sum_free(struct wss_host_sum *sum);
