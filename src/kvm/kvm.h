/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The room kvm/: VMs as the kernel knows them. In: nothing, or the pid of a VM's process. Out: all VMs
 * of the host; of one its memory slots, its counters, and which pages its second-level page tables map
 * (the records of kvm-shared.h), which is what measure/recorder.c asks for.
 *
 * The kernel's own structures are read, by BPF iterators that are attached to nothing: they run
 * when asked, and nothing stays.
 *
 *   kvm.bpf.c     the programs
 *   kvm-shared.h  what they pass to the process that loads them
 *   vm-bpf.c      loads them at the first open(), and runs them for each question; btf.c has the
 *                 kernel's types for libbpf
 *   vm-none.c     takes its place where configure did not find what it needs (--with-bpf): then
 *                 every function fails with WSS_ERR_UNSUPPORTED and the reason
 *
 * Begin with kvm.bpf.c. A new figure is a member of a record in kvm-shared.h, filled by kvm.bpf.c. A new question is an
 * operation of struct wss_kvm_ops, in vm-bpf.c and vm-none.c. Functions may be called from several
 * threads at a time.
 */
#pragma once

#include <linux/kvm.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/types.h>

#include "base/error.h"
#include "kvm/kvm-shared.h"

struct wss_kvm_vm;

struct wss_kvm_slots {
	size_t n_slots;
	/* Those of the first address space, in no order; owned. */
	struct wss_kvm_slot_record *slots;
	uint64_t generation;
};

/* A VM of this host. */
struct wss_kvm_entry {
	uint64_t vm; /* tells it from all others that exist at the same time */
	pid_t pid; /* of the process whose memory it uses, in our pid namespace; 0: it has none there */
	int fd; /* that process's descriptor of the VM, which tells its VMs apart for as long as they exist */
	unsigned n_vcpus;
	uint64_t memory_bytes; /* of its slots that it can write to */
};

/* Where the processor marks an entry as accessed. */
enum wss_kvm_accessed {
	WSS_KVM_ACCESSED_X86 = 5, /* NPT, and shadow pages on any processor */
	WSS_KVM_ACCESSED_EPT = 8,
};

typedef void (*wss_kvm_leaf_fn)(const struct wss_kvm_leaf_record *leaf, void *opaque);

/* Whether the guest may have RAM there. Video memory is among it. */
static inline bool wss_kvm_slot_is_memory(const struct wss_kvm_slot_record *slot)
{
	return !(slot->flags & KVM_MEM_READONLY) && slot->id < WSS_KVM_OWN_SLOTS;
}

static inline void wss_kvm_slots_free(struct wss_kvm_slots *slots)
{
	free(slots->slots);
}

/* Whether the writes to most of the memory are logged, as for a migration. QEMU always logs those to video memory. */
static inline bool wss_kvm_slots_are_logged(const struct wss_kvm_slots *slots)
{
	uint64_t pages = 0, logged_pages = 0;

	for (size_t i = 0; i < slots->n_slots; i++) {
		if (wss_kvm_slot_is_memory(&slots->slots[i]))
			pages += slots->slots[i].n_pages;
		if (slots->slots[i].flags & KVM_MEM_LOG_DIRTY_PAGES)
			logged_pages += slots->slots[i].n_pages;
	}
	return logged_pages > pages / 2;
}

/* Whether a slot is RAM, as far as the slots show: also RAM that the guest shares with others, and a display's while all is logged. */
static inline bool wss_kvm_slot_is_ram(const struct wss_kvm_slots *slots,
				       const struct wss_kvm_slot_record *slot)
{
	return wss_kvm_slot_is_memory(slot) &&
	       (!(slot->flags & KVM_MEM_LOG_DIRTY_PAGES) || wss_kvm_slots_are_logged(slots));
}

struct wss_kvm_ops {
	/* Returns a text for --version: "bpf (libbpf 1.1)", or "not built in: REASON". */
	const char *(*version)(void);

	/*
	 * Checks whether open() may succeed, without loading anything. WSS_ERR_UNSUPPORTED: not built in, no
	 * privilege, the kernel does not describe its types (BTF), or has refused the programs before.
	 */
	int (*probe)(struct wss_error *err);

	/*
	 * Lists all VMs of the host, in no order; a VM with several descriptors is one. For the caller to free.
	 * Takes 0.25 us for each open file of the host. Fails as open() does, without those about the process.
	 */
	int (*list)(struct wss_kvm_entry **ret_entries, size_t *ret_n, struct wss_error *err);

	/*
	 * Finds a VM of a process, by its pid in our own pid namespace; vm is one that list() has found, or 0 for the
	 * process's only one. The first call of open() or list() loads the programs, which takes a few hundred ms.
	 * Fails as probe() does, and with WSS_ERR_UNSUPPORTED if the kernel refuses them, the process does not have
	 * that VM, or vm is 0 and it has none or several.
	 */
	int (*open)(pid_t pid, uint64_t vm, struct wss_kvm_vm **ret_vm, struct wss_error *err);

	/*
	 * Reads the slots, for the caller to free. WSS_ERR_GONE when the VM is gone, WSS_ERR_FAILED if they
	 * change all the time, WSS_ERR_NO_MEMORY.
	 */
	int (*slots)(const struct wss_kvm_vm *vm, struct wss_kvm_slots *ret_slots,
		     struct wss_error *err);

	/* Reads the counters: about 0.1 ms. WSS_ERR_GONE. */
	int (*count)(const struct wss_kvm_vm *vm, struct wss_kvm_counters *ret_counters,
		     struct wss_error *err);

	/*
	 * Calls visit for what the tables map of these slots, a GiB at a time; a page may be reported several
	 * times. Takes about 60 ns for each mapped page of the guest, and disturbs nothing. WSS_ERR_GONE;
	 * WSS_ERR_FAILED if a part could not be read, when visit has had the rest.
	 */
	int (*walk)(const struct wss_kvm_vm *vm, const struct wss_kvm_slots *slots,
		    enum wss_kvm_accessed accessed, wss_kvm_leaf_fn visit, void *opaque,
		    struct wss_error *err);

	/* Accepts NULL. */
	void (*close)(struct wss_kvm_vm *vm);
};

/* Those that are built in; like wss_trackers, tests may replace them. */
extern const struct wss_kvm_ops wss_kvm;
