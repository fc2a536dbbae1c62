/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Columns of the tables of refset-report.c. */
#pragma once

#include "pages/refset-report.h"

/* Parts from REGIONS on are lists; earlier ones are single rows. */
enum wss_refset_part {
	WSS_REFSET_RECORDING,
	WSS_REFSET_VIEWPORT,
	WSS_REFSET_REGIONS,
	WSS_REFSET_NODES,
	WSS_REFSET_PHASES,
	WSS_REFSET_MARKS,
	WSS_REFSET_INTERVALS,
	WSS_REFSET_PARTS,
};

/* Row i of a part. */
struct wss_refset_row {
	const struct wss_refset_report *report;
	size_t i;
	int node; /* node number, in the list of nodes */
};

extern const struct wss_report_layout wss_refset_layouts[WSS_REFSET_PARTS];

/*
 * Returns the number of the next NUMA node after last that is known to have memory; -1 if
 * there is none.
 */
int wss_refset_next_node(const struct wss_recording *recording, int last);
