/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Runs in the kernel at each second-level fault of any guest, and keeps those of one QEMU
 * process: a bit for each page touched, a bit for each page written, and the times of first
 * touches. Bits are set in place and times are counted in buckets, so no queue can overflow
 * and no event is lost. The tracepoint fires in the vCPU's own thread, before KVM handles the
 * fault.
 */
#include <linux/bpf.h>
#include <stdbool.h>

#include <bpf/bpf_helpers.h>

#include "recorder-shared.h"

#define GPA_PAGE_BITS 12
#define GPA_WORD_BITS (GPA_PAGE_BITS + 6)
/*
 * Bit of a write fault: PFERR_WRITE_MASK of AMD's error code, EPT_VIOLATION_ACC_WRITE of
 * Intel's exit qualification (Linux 6.1, arch/x86/include/asm/kvm_host.h and asm/vmx.h).
 */
#define FAULT_WRITE 2

/*
 * bpf_ktime_get_boot_ns() requires a licence that is compatible with the GPL, as the LGPL is.
 */
char LICENSE[] SEC("license") = "GPL";

/* Set before the program is loaded. */
const volatile __u32 tgid;
const volatile __u32 n_ranges;
const volatile __u64 range_start[WSS_RECORDER_RANGES];
const volatile __u64 range_end[WSS_RECORDER_RANGES];

/*
 * CLOCK_BOOTTIME of the invalidation; 0 until it is over: touches until then go to bucket 0.
 */
__u64 origin_ns;
__u64 ram_faults;
__u64 outside_faults;
__u64 written_pages;
__u64 first_touches[WSS_TOUCH_BUCKETS];

struct bitmap {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	/* Set before loading, to the size of the guest's address space. */
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
};

struct bitmap touched SEC(".maps");
struct bitmap written SEC(".maps");

static __always_inline bool in_ram(__u64 gpa)
{
	for (__u32 i = 0; i < WSS_RECORDER_RANGES; i++) {
		if (i == n_ranges)
			return false;
		if (gpa >= range_start[i] && gpa < range_end[i])
			return true;
	}
	return false;
}

/* Sets the bit of a page; returns true if it was not set. */
static __always_inline bool mark_page(void *map, __u64 gpa)
{
	__u32 word = gpa >> GPA_WORD_BITS;
	__u64 bit = 1ULL << ((gpa >> GPA_PAGE_BITS) & 63);
	__u64 *bits = bpf_map_lookup_elem(map, &word);

	if (!bits || *bits & bit)
		return false;
	return !(__sync_fetch_and_or(bits, bit) & bit);
}

static __always_inline void count_first_touch(void)
{
	__u64 now = bpf_ktime_get_boot_ns();
	__u64 origin = origin_ns;
	__u32 bucket = origin && now > origin ? wss_touch_bucket(now - origin) : 0;

	if (bucket < WSS_TOUCH_BUCKETS)
		__sync_fetch_and_add(&first_touches[bucket], 1);
}

static __always_inline int record_access(__u64 gpa, __u64 error)
{
	if (bpf_get_current_pid_tgid() >> 32 != tgid)
		return 0;
	if (!in_ram(gpa)) {
		__sync_fetch_and_add(&outside_faults, 1);
		return 0;
	}
	__sync_fetch_and_add(&ram_faults, 1);
	if (mark_page(&touched, gpa))
		count_first_touch();
	if (error & FAULT_WRITE && mark_page(&written, gpa))
		__sync_fetch_and_add(&written_pages, 1);
	return 0;
}

/*
 * One program for each layout of the tracepoint's arguments (fault-event.h); only one is
 * loaded.
 */

SEC("raw_tp/kvm_page_fault")
int record_fault(struct bpf_raw_tracepoint_args *ctx)
{
	return record_access(ctx->args[1], ctx->args[2]);
}

SEC("raw_tp/kvm_page_fault")
int record_fault_old(struct bpf_raw_tracepoint_args *ctx)
{
	return record_access(ctx->args[0], ctx->args[1]);
}
