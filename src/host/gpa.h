/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Layout of a guest's RAM in its physical address space. */
#ifndef WSS_HOST_GPA_H
#define WSS_HOST_GPA_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "host/domxml.h"
#include "host/ram.h"

#define WSS_GPA_RANGES_MAX 16

/* Sorted by address, disjoint, not empty; ends are exclusive and multiples of 4 KiB. */
struct wss_gpa_layout {
	size_t n_ranges;
	struct wss_range ranges[WSS_GPA_RANGES_MAX];
};

/*
 * Derives the layout from the machine type, the size of the RAM and the addresses of memory
 * devices, for the x86 PC machines "pc" (i440fx, of QEMU 2.0 and newer) and "q35" only:
 *
 *   RAM up to a limit starts at 0; the rest starts at 4 GiB. pc: up to 3.5 GiB is not split,
 *   more is split at 3 GiB (hw/i386/pc_piix.c, pc_init1()). q35: less than 2.75 GiB is not
 *   split, more is split at 2 GiB (hw/i386/pc_q35.c, pc_q35_init()); QEMU 7.2 and 10.0. The
 *   VGA window, 0xa0000 to 0xbffff, hides the RAM behind it.
 *
 * WSS_ERR_UNSUPPORTED, with the reason, if the layout is unknown: another machine type,
 * passed-through QEMU options, a memory device without an address, or so much memory that QEMU
 * moves it past 1 TiB for AMD CPUs (hw/i386/pc.c, AMD_HT_START).
 */
int wss_gpa_layout(const struct wss_domxml *config, struct wss_gpa_layout *ret_layout,
		   struct wss_error *err);

/* Returns the end of the RAM's address space. */
uint64_t wss_gpa_end(const struct wss_gpa_layout *layout);

#endif
