/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A VM whose memory slots and page tables come from the test. It takes the place of the kernel's in every
 * program that includes this file.
 */
#pragma once

#include <linux/kvm.h>

#include "hosttest.h"

#include "kvm/kvm.h"

#define FAKE_SLOTS 4
#define FAKE_LEAVES 512
#define FAKE_VMS 4

static struct fake_kvm {
	bool probe_fails, open_fails, slots_fail, walk_fails;
	bool guest_mode; /* of what is mapped from now on */
	unsigned open, walks;
	pid_t pid; /* of the last that was opened */
	uint64_t vm;
	enum wss_kvm_accessed accessed_bit;	 /* of the last walk */
	const struct wss_kvm_counters *counters; /* NULL: they cannot be read */
	void (*on_walk)(void);			 /* right before a walk; NULL: nothing happens */
	size_t n_slots, n_leaves;
	struct wss_kvm_slot_record slots[FAKE_SLOTS];
	struct wss_kvm_leaf_record leaves[FAKE_LEAVES];
	size_t n_entries;
	struct wss_kvm_entry entries[FAKE_VMS]; /* the VMs of the host */
} fake_kvm;

static const char *fake_kvm_version(void)
{
	return "fake";
}

static int fake_kvm_probe(struct wss_error *err)
{
	return fake_kvm.probe_fails ? wss_error_set(err, WSS_ERR_UNSUPPORTED, "no programs here")
				    : 0;
}

static int fake_kvm_list(struct wss_kvm_entry **ret_entries, size_t *ret_n, struct wss_error *err)
{
	(void)err;
	*ret_entries = malloc(sizeof(fake_kvm.entries));
	assert_non_null(*ret_entries);
	memcpy(*ret_entries, fake_kvm.entries, sizeof(fake_kvm.entries));
	*ret_n = fake_kvm.n_entries;
	return 0;
}

static int fake_kvm_open(pid_t pid, uint64_t vm, struct wss_kvm_vm **ret_vm, struct wss_error *err)
{
	if (fake_kvm_probe(err) < 0)
		return -1;
	if (fake_kvm.open_fails)
		return wss_error_set(err, WSS_ERR_UNSUPPORTED, "no VM here");
	fake_kvm.open++;
	fake_kvm.pid = pid;
	fake_kvm.vm = vm;
	*ret_vm = (struct wss_kvm_vm *)&fake_kvm;
	return 0;
}

static int fake_kvm_slots(const struct wss_kvm_vm *vm, struct wss_kvm_slots *ret_slots,
			  struct wss_error *err)
{
	const struct fake_kvm *fake = (const struct fake_kvm *)vm;

	if (fake->slots_fail)
		return wss_error_set(err, WSS_ERR_FAILED, "no slots here");
	*ret_slots = (struct wss_kvm_slots){.n_slots = fake->n_slots,
					    .slots = malloc(sizeof(fake->slots))};
	assert_non_null(ret_slots->slots);
	memcpy(ret_slots->slots, fake->slots, sizeof(fake->slots));
	return 0;
}

static int fake_kvm_count(const struct wss_kvm_vm *vm, struct wss_kvm_counters *ret_counters,
			  struct wss_error *err)
{
	const struct fake_kvm *fake = (const struct fake_kvm *)vm;

	if (!fake->counters)
		return wss_error_set(err, WSS_ERR_FAILED, "no counters here");
	*ret_counters = *fake->counters;
	return 0;
}

static int fake_kvm_walk(const struct wss_kvm_vm *vm, const struct wss_kvm_slots *slots,
			 enum wss_kvm_accessed accessed, wss_kvm_leaf_fn visit, void *opaque,
			 struct wss_error *err)
{
	struct fake_kvm *fake = &fake_kvm;

	assert_ptr_equal(vm, fake);
	assert_int_equal(slots->n_slots, fake->n_slots);
	fake->walks++;
	if (fake->on_walk)
		fake->on_walk();
	fake->accessed_bit = accessed;
	for (size_t i = 0; i < fake->n_leaves; i++)
		visit(&fake->leaves[i], opaque);
	return fake->walk_fails ? wss_error_set(err, WSS_ERR_FAILED, "the tables changed") : 0;
}

static void fake_kvm_close(struct wss_kvm_vm *vm)
{
	if (vm)
		fake_kvm.open--;
}

const struct wss_kvm_ops wss_kvm = {
	.version = fake_kvm_version,
	.probe = fake_kvm_probe,
	.list = fake_kvm_list,
	.open = fake_kvm_open,
	.slots = fake_kvm_slots,
	.count = fake_kvm_count,
	.walk = fake_kvm_walk,
	.close = fake_kvm_close,
};

/* Maps pages of 4 KiB, all of them or every second one writable, or none. */
enum fake_kvm_kind { FAKE_READ, FAKE_WRITTEN, FAKE_HALF_WRITTEN };

static inline void fake_kvm_map(uint64_t first, uint64_t n, enum fake_kvm_kind kind, bool accessed)
{
	struct wss_kvm_leaf_record *leaf = NULL;

	for (uint64_t page = first; page < first + n; page++) {
		uint64_t bit = 1ULL << (page & 63);

		if (!leaf || !(page & 63)) {
			assert_true(fake_kvm.n_leaves < FAKE_LEAVES);
			leaf = &fake_kvm.leaves[fake_kvm.n_leaves++];
			*leaf = (struct wss_kvm_leaf_record){.first_page = page & ~63ULL,
							     .n_pages = 64,
							     .guest_mode = fake_kvm.guest_mode};
		}
		leaf->mapped |= bit;
		if (kind == FAKE_WRITTEN || (kind == FAKE_HALF_WRITTEN && page & 1))
			leaf->writable |= bit;
		if (accessed)
			leaf->accessed |= bit;
	}
}

/* Maps blocks of 2 MiB. */
static inline void fake_kvm_map_large(uint64_t first, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		fake_kvm.leaves[fake_kvm.n_leaves++] =
			(struct wss_kvm_leaf_record){.first_page = first + i * 512,
						     .n_pages = 512,
						     .mapped = 1,
						     .writable = 1,
						     .accessed = 1};
}

static inline void fake_kvm_unmap_all(void)
{
	fake_kvm.n_leaves = 0;
}
