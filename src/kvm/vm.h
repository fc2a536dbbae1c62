/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A VM as the kernel knows it: its memory slots, and which pages its second-level page tables map.
 * The kernel's own structures are read, by BPF iterators that are attached to nothing: they run when
 * asked, and nothing stays. Functions may be called from several threads at a time.
 *
 * Built in if configure found its prerequisites (--with-bpf); otherwise every function here fails with
 * WSS_ERR_UNSUPPORTED and the reason.
 */
#ifndef WSS_KVM_VM_H
#define WSS_KVM_VM_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "kvm/kvm-shared.h"

struct wss_kvm_vm;

struct wss_kvm_slots {
	size_t n_slots;
	struct wss_kvm_slot_record *slots; /* those of the first address space, in no order; owned */
	uint64_t generation;
};

/* Where the processor marks an entry as accessed. */
enum wss_kvm_accessed {
	WSS_KVM_ACCESSED_X86 = 5, /* NPT, and shadow pages on any processor */
	WSS_KVM_ACCESSED_EPT = 8,
};

typedef void (*wss_kvm_leaf_fn)(const struct wss_kvm_leaf_record *leaf, void *opaque);

struct wss_kvm_ops {
	/* Returns a text for --version: "bpf (libbpf 1.1)", or "not built in: REASON". */
	const char *(*version)(void);

	/*
	 * Checks whether open() may succeed, without loading anything. WSS_ERR_UNSUPPORTED: not built in, no
	 * privilege, the kernel does not describe its types (BTF), or has refused the programs before.
	 */
	int (*probe)(struct wss_error *err);

	/*
	 * Finds the VM of a process, by its pid in our own pid namespace. The first call in this process loads the
	 * programs, which takes a few hundred ms. Fails as probe() does, and with WSS_ERR_UNSUPPORTED if the kernel
	 * refuses them, or the process has no VM or several.
	 */
	int (*open)(pid_t pid, struct wss_kvm_vm **ret_vm, struct wss_error *err);

	/*
	 * Reads the slots, for the caller to free. WSS_ERR_GONE when the VM is gone, WSS_ERR_FAILED if they
	 * change all the time, WSS_ERR_NO_MEMORY.
	 */
	int (*slots)(const struct wss_kvm_vm *vm, struct wss_kvm_slots *ret_slots, struct wss_error *err);

	/* Reads the counters: about 0.1 ms. WSS_ERR_GONE. */
	int (*count)(const struct wss_kvm_vm *vm, struct wss_kvm_counters *ret_counters, struct wss_error *err);

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

#endif
