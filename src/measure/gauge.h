/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Derives the touched set from KVM's gauge of mapped second-level entries.
 *
 * After everything has been unmapped, each entry that is mapped again is a first touch, so the
 * gauge is the touched set at mapping granularity. But it counts what is *still* mapped: an
 * entry that the host removes within the window (reclaim, KSM, NUMA balancing, balloon) is
 * missing. Hence
 *
 * low  = the largest gauge seen in the window
 * high = low if KVM requested no TLB flush in the window: every unmapping by the host needs a
 *        flush, so nothing was lost. Otherwise low plus the largest number of entries that
 *        the faults in excess of the gauge's growth can have mapped, limited by the guest's RAM
 *
 * pf_fixed counts every fault that installed or upgraded an entry (Linux 6.1,
 * arch/x86/kvm/mmu/tdp_mmu.c, tdp_mmu_map_handle_target_level), so there are never more
 * touched entries than that. A page that is first read and then written may count twice
 * (soft-dirty tracking maps it read-only first), so an excess alone proves no loss. One entry
 * of 2 MiB stands for at least one touched page of 4 KiB, which gives the low bound of large
 * entries. The low bound never exceeds the number of faults, because entries that KVM splits
 * multiply without a fault.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Mapped entries by size at one moment, and the cumulative faults if known. */
struct wss_gauge_reading {
	uint64_t entries_4k;
	uint64_t entries_2m;
	uint64_t entries_1g;
	bool has_faults;
	uint64_t faults;
	bool has_flushes;
	uint64_t flushes; /* requests to flush the TLBs, cumulative */
};

struct wss_gauge {
	struct wss_gauge_reading base; /* just after unmapping */
	uint64_t max_bytes;
	uint64_t max_entries;
	uint64_t last_bytes;
	uint64_t granularity_bytes;
	uint64_t fallen_bytes; /* sum of all decreases between two readings */
	bool has_faults;       /* both the newest reading and base have them */
	uint64_t faults;       /* since base */
	bool flushed;	       /* since base; true as well if flushes are not counted */
};

struct wss_gauge_result {
	uint64_t wss_bytes;
	uint64_t low_bytes;
	uint64_t high_bytes;
	uint64_t granularity_bytes; /* largest entry size: 4 KiB, 2 MiB or 1 GiB */
	uint64_t excess_faults;	    /* faults that may stand for lost entries; 0 if unknown */
	uint64_t fallen_bytes;
};

/* Returns the bytes under the entries of a reading; saturates at UINT64_MAX. */
uint64_t wss_gauge_bytes(const struct wss_gauge_reading *reading);

/* Starts with the reading taken right after everything was unmapped. */
void wss_gauge_begin(struct wss_gauge *gauge, const struct wss_gauge_reading *reading);

/* Adds a later reading. */
void wss_gauge_add(struct wss_gauge *gauge, const struct wss_gauge_reading *reading);

/* Returns the touched set so far; ram_bytes caps both bounds (0: unknown, no cap). */
void wss_gauge_result(const struct wss_gauge *gauge, uint64_t ram_bytes,
		      struct wss_gauge_result *ret_result);
