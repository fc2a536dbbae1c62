/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The records and counters that the BPF programs of kvm.bpf.c pass to the program that loads them. */
#pragma once

#include <linux/types.h>

/*
 * Written for each VM by the iterator list_vms, followed by n_slots of the other, and once more: if the two differ in
 * generation or n_slots, the slots have changed meanwhile.
 */
struct wss_kvm_vm_record {
	__u64 vm; /* address of its struct kvm, which identifies it among all of that time */
	/* That of its directory in debugfs, which no later VM at that address has; 0 on a kernel without debugfs. */
	__u64 inode;
	__u64 generation; /* changes when slots change */
	__u64 n_slots;	  /* of the first address space */
	/* The process whose memory the slots are, by its pid in the reader's pid namespace, and its descriptor of the VM. */
	__u32 pid, fd;
	__u32 n_vcpus;
	__u32 padding;
};

/* KVM's own slots, which no guest can use as RAM, have this id and greater ones (arch/x86/include/asm/kvm_host.h, Linux 5.15). */
#define WSS_KVM_OWN_SLOTS 32764

struct wss_kvm_slot_record {
	__u64 first_page; /* guest frame number, 4 KiB each */
	__u64 n_pages;
	__u64 host_address; /* in the VMM's address space */
	__u32 flags;	    /* KVM_MEM_LOG_DIRTY_PAGES, KVM_MEM_READONLY ... (linux/kvm.h) */
	__u32 id;
};

/* Counters of a VM, which count_vm has read. Those of its vCPUs are sums over n_vcpus that were found of all_vcpus. */
struct wss_kvm_counters {
	__u64 pages[3];	   /* gauges: entries of 4 KiB, 2 MiB and 1 GiB that are mapped */
	__u64 tlb_flushes; /* requests to flush its TLBs */
	__u32 has_tlb_flushes;
	__u32 all_vcpus, n_vcpus;
	__u64 pf_fixed, nested_run, guest_mode;
};

/*
 * Leaf entries that walk_vm has found. Of entries of 4 KiB, n_pages is 64, and bit i of each mask says of page first_page + i
 * whether it is mapped, mapped writable, and marked as accessed. Of larger entries n_pages is the number of their pages, and
 * each mask is 0 or 1.
 */
struct wss_kvm_leaf_record {
	__u64 first_page;
	__u64 mapped;
	__u64 writable;
	__u64 accessed;
	__u32 n_pages;
	__u32 guest_mode; /* found in the shadow of a nested guest's tables */
};

/* Records that one call of walk_vm may write. A GiB of a guest has at most 4096, a shadow page 512. */
#define WSS_KVM_LEAVES 16384
