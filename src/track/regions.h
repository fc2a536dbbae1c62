/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Describes a guest's memory for a recording: by kind, memory device and NUMA node. */
#ifndef WSS_TRACK_REGIONS_H
#define WSS_TRACK_REGIONS_H

#include "base/error.h"
#include "host/domxml.h"
#include "wss/recording.h"

/*
 * Fills in the recording's regions. WSS_ERR_UNSUPPORTED if the guest-physical layout of the
 * RAM is unknown.
 */
int wss_regions_of(const struct wss_domxml *config, struct wss_recording *recording,
		   struct wss_error *err);

#endif
