/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The mappings of a QEMU process that hold guest RAM, and the host kernel's figures for them,
 * separate from QEMU's own heap, stacks and code.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "host/process.h"

/* Run of adjacent mappings with the same backing; end is exclusive. */
struct wss_range {
	uint64_t start;
	uint64_t end;
};

struct wss_ram {
	size_t n_ranges;
	struct wss_range *ranges; /* sorted by address, disjoint; owned */
	uint64_t total_bytes;
	bool all_shared; /* all of it is MAP_SHARED (memfd, a file, /dev/zero) */
	bool any_shared; /* some of it is */
};

#define WSS_RAM_INIT                     \
	{                                \
		0, NULL, 0, false, false \
	}

/*
 * Finds guest RAM in process's maps: one run for each of the n sizes, none of which is 0.
 *
 * QEMU maps a block of RAM (qemu_ram_mmap() in util/mmap-alloc.c, ram_block_add() in
 * softmmu/physmem.c of 7.2) readable and writable, not executable, with an inaccessible guard
 * page right behind it, and with MADV_DONTFORK ("dc" in VmFlags of smaps). Thread stacks,
 * malloc arenas and the translation buffer lack the last. A foreign mapping may lie right
 * before a block, and maps may then show them as neighbours; mbind, mlock and madvise may
 * split a block into several mappings, with contiguous offsets if there is a file. VGA memory,
 * firmware and flash are blocks like RAM and differ in size only.
 *
 * At first only maps is read, which is cheap. If that is not conclusive, and for blocks of up
 * to 64 MiB, which may be as large as a stack or an arena, smaps is read for the flag: one
 * walk of the process's page tables. A run with a name that memory backends use (memfd,
 * hugetlbfs, libvirt's directory, shared anonymous memory) is preferred over others of its
 * size. Nothing is guessed: if a size has too few candidates, or too many that cannot be told
 * apart, it is WSS_ERR_FAILED, which names the size and the counts. (A size that is no
 * multiple of the backing's page size is matched rounded up, as QEMU maps it.) Other errors
 * are those of wss_process_error(). ret_ram is untouched on failure.
 */
int wss_ram_find(const struct wss_process *process, const uint64_t *block_bytes, size_t n,
		 struct wss_ram *ret_ram, struct wss_error *err);

/*
 * Finds guest RAM by the n ranges of addresses that it lies in, in any order; they may overlap. Each of the process's
 * mappings that a range reaches into counts as a whole. WSS_ERR_FAILED if nothing is mapped there; else as wss_ram_find().
 */
int wss_ram_find_at(const struct wss_process *process, const struct wss_range *ranges, size_t n,
		    struct wss_ram *ret_ram, struct wss_error *err);

/* Releases ram and resets it to WSS_RAM_INIT, which it also accepts. */
void wss_ram_free(struct wss_ram *ram);

/* Sums from smaps over the mappings of one kind, in bytes. */
struct wss_smaps_sum {
	uint64_t rss;	     /* includes hugetlb, which smaps' own Rss leaves out */
	uint64_t pss;	     /* includes hugetlb, as private: its sharers are unknown */
	uint64_t referenced; /* 0 for hugetlb, for which the kernel does not report it */
	uint64_t swap;
	/* Mapped by huge entries: AnonHugePages, ShmemPmdMapped, FilePmdMapped, hugetlb. */
	uint64_t huge;
	uint64_t hugetlb;      /* hugetlb's part of huge (and of rss) */
	uint64_t hugetlb_page; /* largest KernelPageSize among hugetlb mappings, else 0 */
	bool any_hugetlb;      /* at least one of the mappings is hugetlb */
	bool all_hugetlb;      /* all of the mappings are hugetlb; false without any mapping */
	bool soft_dirty;       /* "sd" in VmFlags of all mappings; false without any */
};

struct wss_smaps {
	struct wss_smaps_sum guest; /* inside ram */
	struct wss_smaps_sum qemu;  /* everything else */
};

/*
 * Reads smaps through the held process. ram may be NULL: then all is qemu's. A mapping that
 * straddles a range's end counts on the side where it starts. WSS_ERR_GONE if the process has
 * exited (even halfway, where the file just ends early), WSS_ERR_FAILED if ram is no longer
 * mapped as it was found (memory was unplugged: find it again), WSS_ERR_UNSUPPORTED without
 * permission.
 */
int wss_smaps_read(const struct wss_process *process, const struct wss_ram *ram,
		   struct wss_smaps *ret_smaps, struct wss_error *err);

/* Totals of a whole process. */
struct wss_process_memory {
	uint64_t rss_bytes; /* with hugetlb, which VmRSS leaves out */
	uint64_t hugetlb_bytes;
	uint64_t swap_bytes; /* private memory only: what is shared counts for no process */
};

/*
 * Reads cheap figures of the whole process, without a page-table walk, from /proc/PID/status
 * (VmRSS, HugetlbPages, VmSwap). Fails as wss_smaps_read() does.
 */
int wss_process_memory_read(const struct wss_process *process,
			    struct wss_process_memory *ret_memory, struct wss_error *err);

/* Reads the first two of them; ret_hugetlb_bytes may be NULL. */
int wss_resident_read(const struct wss_process *process, uint64_t *ret_rss_bytes,
		      uint64_t *ret_hugetlb_bytes, struct wss_error *err);

/* Memory of the whole process that stays on the host when the guest gives it up. */
struct wss_kept_memory {
	uint64_t locked_bytes; /* mappings that are locked, resident or not (VmLck) */
	uint64_t hugetlb_bytes;
};

/* Reads it from /proc/PID/status. Returns 0 or negative errno. */
int wss_kept_memory_read(const struct wss_process *process, struct wss_kept_memory *ret_kept);
