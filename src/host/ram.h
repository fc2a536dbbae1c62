/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Which mappings of a QEMU process are guest RAM, and what the host's kernel
 * says of their pages. QEMU's own heap, stacks and code are kept apart.
 */
#ifndef WSS_HOST_RAM_H
#define WSS_HOST_RAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "host/process.h"

/* A run of adjacent mappings with one backing; end is exclusive. */
struct wss_range {
	uint64_t start;
	uint64_t end;
};

struct wss_ram {
	size_t n_ranges;
	struct wss_range *ranges; /* by address, disjoint; owned */
	uint64_t total_bytes;
	bool all_shared; /* every mapping of it is MAP_SHARED (memfd, a file, /dev/zero) */
};

#define WSS_RAM_INIT { 0, NULL, 0, false }

/*
 * Finds guest RAM in process's maps: one run for each of the n sizes, none of them 0.
 *
 * What QEMU maps for a block of RAM (qemu_ram_mmap() in util/mmap-alloc.c,
 * ram_block_add() in softmmu/physmem.c of 7.2): readable and writable, not
 * executable, with one inaccessible guard page right behind it, and MADV_DONTFORK
 * ("dc" in VmFlags of smaps). Thread stacks, malloc arenas and the translation
 * buffer lack the last. Nothing keeps a foreign mapping from lying right before
 * a block, so that maps may show them as neighbours; mbind, mlock and madvise may
 * split a block into several mappings, with contiguous offsets where there is a
 * file. VGA memory, firmware and flash are blocks like RAM and differ in size only.
 *
 * First maps alone is looked at, which is cheap. Where that does not settle it, and
 * for blocks of up to 64 MiB, which a stack or an arena can equal, smaps is read for
 * the flag: a walk of the process's page tables, once. A run that is named as memory
 * backends are (memfd, hugetlbfs, libvirt's directory, shared anonymous memory) is
 * preferred over others of its size. Where a size has too few candidates, or more
 * than it needs with nothing to tell them apart, nothing is guessed: WSS_ERR_FAILED
 * that names the size and the counts. (A size that is no multiple of the backing's
 * page size is matched rounded up, as QEMU maps it.) Else the errors of wss_process_error().
 * ret_ram is untouched on failure.
 */
int wss_ram_find(const struct wss_process *process, const uint64_t *block_bytes, size_t n,
		 struct wss_ram *ret_ram, struct wss_error *err);

/* Takes WSS_RAM_INIT, and leaves it. */
void wss_ram_free(struct wss_ram *ram);

/* What smaps says, summed over the mappings of one kind; all in bytes. */
struct wss_smaps_sum {
	uint64_t rss;	     /* hugetlb included, which smaps' own Rss leaves out */
	uint64_t pss;	     /* hugetlb included, as private: its sharers are not known */
	uint64_t referenced; /* 0 for hugetlb, which the kernel does not report there */
	uint64_t swap;
	uint64_t huge; /* mapped by huge entries: AnonHugePages, ShmemPmdMapped, FilePmdMapped, hugetlb */
	uint64_t hugetlb;      /* the part of huge (and of rss) that is hugetlb */
	uint64_t hugetlb_page; /* largest KernelPageSize seen among hugetlb mappings, else 0 */
	bool any_hugetlb;      /* at least one mapping summed is hugetlb */
	bool all_hugetlb;      /* every mapping summed is hugetlb; false without any mapping */
	bool soft_dirty;       /* "sd" in VmFlags of every mapping summed; false without any */
};

struct wss_smaps {
	struct wss_smaps_sum guest; /* inside ram */
	struct wss_smaps_sum qemu;  /* everything else */
};

/*
 * Reads smaps through the held process. ram may be NULL: then all is qemu's.
 * Mappings that straddle a range's end are counted on the side where they start.
 * Fails with WSS_ERR_GONE when the process has exited (also in the middle, where
 * the file just ends early), WSS_ERR_FAILED when ram is no longer mapped as it was
 * found (memory was unplugged: find it again), WSS_ERR_UNSUPPORTED without permission.
 */
int wss_smaps_read(const struct wss_process *process, const struct wss_ram *ram,
		   struct wss_smaps *ret_smaps, struct wss_error *err);

/*
 * Cheap figures without a page-table walk, from /proc/PID/status (VmRSS, HugetlbPages).
 * ret_rss_bytes includes hugetlb, which VmRSS leaves out; ret_hugetlb_bytes may be NULL.
 * Of the whole process: guest RAM and QEMU's own. Errors as wss_smaps_read().
 */
int wss_resident_read(const struct wss_process *process, uint64_t *ret_rss_bytes,
		      uint64_t *ret_hugetlb_bytes, struct wss_error *err);

#endif
