/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Describes a guest's memory for a recording: by kind, memory device and NUMA node. */
#pragma once

#include "base/error.h"
#include "host/guest.h"
#include "pages/recording.h"

/*
 * Fills in the recording's regions. Kinds are by address, but for the memory devices that the configuration has; nodes are
 * those of the configuration. Fails as wss_gpa_of_guest() does.
 */
int wss_regions_of(struct wss_guest *guest, struct wss_recording *recording, struct wss_error *err);
