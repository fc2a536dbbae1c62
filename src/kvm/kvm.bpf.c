/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reads what KVM knows of its VMs, on request and without attaching to anything: iterators over open files find each kvm-vm
 * file, whose private data is struct kvm. list_vms reads memory slots, count_vm counters, and walk_vm walks the second-level
 * page tables and reports each leaf entry.
 *
 * Two-dimensional paging: the roots are in arch.tdp_mmu_roots, a table of 512 entries each; children are found by their physical
 * address in the kernel's direct map. The roots of system management mode's address space are read, too. Tables are freed
 * after a grace period of RCU, and an iterator runs within one.
 * Shadow paging: arch.active_mmu_pages lists all tables; those that are not direct have a frame number for each entry.
 * They are not freed by RCU, so what is read may be stale: the level and address of a table are read again after
 * its contents. All reads are bpf_probe_read_kernel(), which fails on a bad address, and never traps.
 *
 * An entry is present by bit 11 (Linux 5.13, arch/x86/kvm/mmu/spte.h, SPTE_MMU_PRESENT_MASK), large by bit 7, writable by bit 1, for
 * EPT and NPT alike.
 */
#include <linux/bpf.h>
#include <stdbool.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "kvm-shared.h"

char LICENSE[] SEC("license") = "GPL";

#define ENTRY_WRITABLE 1
#define ENTRY_LARGE (1ULL << 7)
#define ENTRY_PRESENT 11
/*
 * The physical address of the table below. Higher bits are no part of it: AMD's processors use bit 47 or 51 to ask for
 * encryption, and no host has memory up there.
 */
#define ENTRY_ADDRESS 0x00007ffffffff000ULL
#define ENTRIES 512
#define ANON_INODE_FS_MAGIC 0x09041934
#define ROOTS_MAX 16
/* Bounds loops over lists of the kernel, which may change meanwhile. */
#define SLOTS_PER_BUCKET_MAX 1024
#define SHADOW_PAGES_MAX (1 << 20)

/*
 * The kernel's types, as far as they are read. libbpf finds the fields' true places in the kernel's BTF, or in the module's.
 */
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct list_head {
	struct list_head *next, *prev;
};

struct hlist_node {
	struct hlist_node *next;
};

struct hlist_head {
	struct hlist_node *first;
};

typedef struct {
	int counter;
} atomic_t;

struct qstr {
	const unsigned char *name;
};

struct inode;

struct dentry {
	struct qstr d_name;
	struct inode *d_inode;
};

struct path {
	struct dentry *dentry;
};

struct super_block {
	unsigned long s_magic;
};

struct inode {
	struct super_block *i_sb;
	unsigned long i_ino;
};

struct file {
	struct path f_path;
	struct inode *f_inode;
	void *private_data;
};

struct mm_struct;

struct ns_common {
	unsigned int inum;
};

struct pid_namespace {
	struct ns_common ns;
};

struct upid {
	int nr;
	struct pid_namespace *ns;
};

/* One number for each namespace from the first one down to the process's own. */
struct pid {
	unsigned int level;
	struct upid numbers[1];
};

struct task_struct {
	int pid, tgid;
	struct mm_struct *mm;
	struct pid *thread_pid;
};

struct kvm_memory_slot {
	struct hlist_node id_node[2];
	__u64 base_gfn;
	unsigned long npages;
	unsigned long userspace_addr;
	__u32 flags;
	short id;
};

struct kvm_memslots {
	__u64 generation;
	struct hlist_head id_hash[128];
	int node_idx;
};

union kvm_mmu_page_role {
	struct {
		unsigned level : 4;
		unsigned direct : 1;
		unsigned invalid : 1;
		unsigned guest_mode : 1;
	};
};

struct kvm_mmu_page {
	struct list_head link;
	union kvm_mmu_page_role role;
	__u64 gfn;
	__u64 *spt;
	__u64 *shadowed_translation; /* since Linux 6.0 */
};

/* Before it was renamed. */
struct kvm_mmu_page___gfns {
	__u64 *gfns;
};

struct kvm_arch {
	struct list_head active_mmu_pages;
	struct list_head tdp_mmu_roots;
};

typedef struct {
	__s64 counter;
} atomic64_t;

struct kvm_vm_stat_generic {
	__u64 remote_tlb_flush_requests;
};

struct kvm_vm_stat {
	struct kvm_vm_stat_generic generic;
	atomic64_t pages[3];
};

struct kvm {
	struct mm_struct *mm;
	struct kvm_memslots *memslots[1];
	atomic_t online_vcpus;
	struct kvm_vm_stat stat;
	struct kvm_arch arch;
	struct dentry *debugfs_dentry;
};

struct kvm_mmu_root_info {
	__u64 hpa;
};

struct kvm_mmu {
	struct kvm_mmu_root_info root;
};

/* Before Linux 5.18. */
struct kvm_mmu___old {
	__u64 root_hpa;
};

struct kvm_vcpu_arch {
	struct kvm_mmu *mmu;
};

struct kvm_vcpu_stat {
	__u64 pf_fixed, nested_run, guest_mode;
};

struct kvm_vcpu {
	struct kvm *kvm;
	struct kvm_vcpu_arch arch;
	struct kvm_vcpu_stat stat;
};

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
};

struct bpf_iter__task_file {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
	__u32 fd;
	struct file *file;
};

#pragma clang attribute pop

struct table {
	__u64 entries[ENTRIES];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 2);
	__type(key, __u32);
	__type(value, struct table);
} tables SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, WSS_KVM_LEAVES);
	__type(key, __u32);
	__type(value, struct wss_kvm_leaf_record);
} leaves SEC(".maps");

/*
 * What one call of walk_vm is to do: to look at a GiB of the VM's addresses; or at shadow pages, which are not in the order of
 * addresses, after the one at last_shadow_page (0: from the first on). accessed_bit: bit of an entry that says so.
 */
__u64 vm, inode; /* as in its record */
__u64 gib;
__u64 last_shadow_page; /* then, the last one that it has read, if there are more after it; else 0 */
__u32 shadow_pages;
__u32 accessed_bit;

/* The pid namespace of the process that reads. */
__u32 pid_namespace;

/* Where the kernel maps all physical memory: the same for all VMs, found by count_vm. 0: not yet. */
__u64 direct_map;

/* The results of that call. */
__u32 n_leaves;
__u32 found; /* it has found the VM */
__u32 incomplete; /* something could not be read, or there was too much of it, or the last shadow page is gone */

#define NAME_VM 0x6d762d6d766bULL	/* "kvm-vm" */
#define NAME_VCPU 0x757063762d6d766bULL /* "kvm-vcpu", before a colon and the number */

/* Returns what belongs to a file of that name, which only KVM can have given it; NULL if it is another one. */
static __always_inline void *file_private(struct bpf_iter__task_file *ctx, __u64 wanted)
{
	__u64 name[2] = {};
	struct file *file = ctx->file;
	struct task_struct *task = ctx->task;

	if (!file || !task || task->pid != task->tgid)
		return NULL;
	bpf_probe_read_kernel_str(name, sizeof(*name) + 1,
				  BPF_CORE_READ(file, f_path.dentry, d_name.name));
	if (*name != wanted || BPF_CORE_READ(file, f_inode, i_sb, s_magic) != ANON_INODE_FS_MAGIC)
		return NULL;
	return file->private_data;
}

/* An error in place of the directory reads as 0. */
static __u64 vm_inode(struct kvm *kvm)
{
	return BPF_CORE_READ(kvm, debugfs_dentry, d_inode, i_ino);
}

/* Whether it is the VM that is asked for, and not another one that has got its address since. */
static bool is_wanted(struct kvm *kvm)
{
	return (__u64)kvm == vm && vm_inode(kvm) == inode;
}

struct slot_cursor {
	struct kvm_memslots *slots;
	struct seq_file *seq; /* NULL: only count */
	struct hlist_node *node;
	__u32 index; /* which of each slot's two nodes is in use */
	__u32 n;
};

static long slot_visit(__u32 i, struct slot_cursor *cursor)
{
	struct hlist_node *node = cursor->node;
	struct kvm_memory_slot *slot;
	struct wss_kvm_slot_record record = {};

	(void)i;
	if (!node)
		return 1;
	slot = (void *)node - bpf_core_field_offset(struct kvm_memory_slot, id_node) -
	       cursor->index * bpf_core_type_size(struct hlist_node);
	record.first_page = BPF_CORE_READ(slot, base_gfn);
	record.n_pages = BPF_CORE_READ(slot, npages);
	record.host_address = BPF_CORE_READ(slot, userspace_addr);
	record.flags = BPF_CORE_READ(slot, flags);
	record.id = (__u32)(unsigned short)BPF_CORE_READ(slot, id);
	if (cursor->seq)
		bpf_seq_write(cursor->seq, &record, sizeof(record));
	cursor->n++;
	cursor->node = BPF_CORE_READ(node, next);
	return 0;
}

static long bucket_visit(__u32 i, struct slot_cursor *cursor)
{
	struct kvm_memslots *slots = cursor->slots;

	cursor->node = BPF_CORE_READ(slots, id_hash[i & 127].first);
	bpf_loop(SLOTS_PER_BUCKET_MAX, slot_visit, cursor, 0);
	return 0;
}

struct pid_cursor {
	struct pid *pid;
	__u32 found; /* the number in the reader's namespace; 0: it has none there */
};

static long level_visit(__u32 i, struct pid_cursor *cursor)
{
	struct upid *upid = (void *)cursor->pid + bpf_core_field_offset(struct pid, numbers) +
			    i * bpf_core_type_size(struct upid);

	if (BPF_CORE_READ(upid, ns, ns.inum) != pid_namespace)
		return 0;
	cursor->found = (__u32)BPF_CORE_READ(upid, nr);
	return 1;
}

static __u32 pid_of(struct task_struct *task)
{
	struct pid *pid = BPF_CORE_READ(task, thread_pid);
	struct pid_cursor cursor = {.pid = pid};

	if (!pid)
		return 0;
	/* Linux allows 32 levels (include/linux/pid_namespace.h, MAX_PID_NS_LEVEL). */
	bpf_loop((BPF_CORE_READ(pid, level) & 31) + 1, level_visit, &cursor, 0);
	return cursor.found;
}

/* Others may have the VM open, such as a child of the process, but cannot run it (virt/kvm/kvm_main.c, kvm_vm_ioctl()). */
SEC("iter/task_file")
int list_vms(struct bpf_iter__task_file *ctx)
{
	struct kvm *kvm = file_private(ctx, NAME_VM);
	struct task_struct *task = ctx->task;
	struct kvm_memslots *slots;
	struct slot_cursor cursor = {};
	struct wss_kvm_vm_record record = {};

	if (!kvm || !task || BPF_CORE_READ(kvm, mm) != BPF_CORE_READ(task, mm))
		return 0;
	slots = BPF_CORE_READ(kvm, memslots[0]);
	cursor.slots = slots;
	cursor.index = (__u32)BPF_CORE_READ(slots, node_idx) & 1;
	bpf_loop(128, bucket_visit, &cursor, 0);
	record.vm = (__u64)kvm;
	record.inode = vm_inode(kvm);
	record.generation = BPF_CORE_READ(slots, generation);
	record.n_slots = cursor.n;
	record.pid = pid_of(task);
	record.fd = ctx->fd;
	record.n_vcpus = (__u32)BPF_CORE_READ(kvm, online_vcpus.counter);
	bpf_seq_write(ctx->meta->seq, &record, sizeof(record));
	cursor.seq = ctx->meta->seq;
	cursor.n = 0;
	bpf_loop(128, bucket_visit, &cursor, 0);
	/* KVM changes a set of slots only after it has put another in its place (virt/kvm/kvm_main.c). */
	record.generation = BPF_CORE_READ(kvm, memslots[0], generation);
	record.n_slots = cursor.n;
	bpf_seq_write(ctx->meta->seq, &record, sizeof(record));
	return 0;
}

static struct table *table_read(__u32 index, __u64 address)
{
	struct table *table = bpf_map_lookup_elem(&tables, &index);

	if (!table)
		return NULL;
	if (bpf_probe_read_kernel(table, sizeof(*table), (void *)address)) {
		incomplete = 1;
		return NULL;
	}
	return table;
}

/* Adds to the record before it what belongs to the same 64 pages. */
static void leaf_add(struct wss_kvm_leaf_record *found_leaf)
{
	struct wss_kvm_leaf_record *leaf;
	__u32 last = n_leaves - 1, i = n_leaves;

	leaf = bpf_map_lookup_elem(&leaves, &last);
	if (leaf && leaf->first_page == found_leaf->first_page &&
	    leaf->n_pages == found_leaf->n_pages && leaf->guest_mode == found_leaf->guest_mode) {
		leaf->mapped |= found_leaf->mapped;
		leaf->writable |= found_leaf->writable;
		leaf->accessed |= found_leaf->accessed;
		return;
	}
	leaf = bpf_map_lookup_elem(&leaves, &i);
	if (!leaf) {
		incomplete = 1;
		return;
	}
	*leaf = *found_leaf;
	n_leaves = i + 1;
}

static __always_inline void large_leaf_add(__u64 first_page, __u32 n_pages, __u32 guest_mode,
					   __u64 entry)
{
	struct wss_kvm_leaf_record leaf = {
		.first_page = first_page & ~(__u64)(n_pages - 1),
		.mapped = 1,
		.writable = entry >> ENTRY_WRITABLE & 1,
		.accessed = entry >> (accessed_bit & 63) & 1,
		.n_pages = n_pages,
		.guest_mode = guest_mode,
	};

	leaf_add(&leaf);
}

/* A table at some level, and the first guest page that it maps. */
struct place {
	__u64 first_page;
	__u32 level;
	__u32 frame_shift; /* of the frame numbers in the second table */
	bool direct; /* its entries map adjacent pages; else the second table has a frame number for each */
	__u32 guest_mode;
};

/* Looks at 64 entries of the table of 4 KiB pages that was read. Without branches, as the verifier follows each. */
static long word_visit(__u32 word, struct place *place)
{
	__u32 index = 0;
	struct table *table = bpf_map_lookup_elem(&tables, &index);
	struct wss_kvm_leaf_record leaf = {.first_page = place->first_page + (word & 7) * 64,
					   .n_pages = 64,
					   .guest_mode = place->guest_mode};

	if (!table)
		return 1;
	word &= 7;
#pragma clang loop unroll(disable)
	for (__u32 i = 0; i < 64; i++) {
		__u64 entry = table->entries[word * 64 + i];
		__u64 present = entry >> ENTRY_PRESENT & 1;

		leaf.mapped |= present << i;
		leaf.writable |= (present & entry >> ENTRY_WRITABLE) << i;
		leaf.accessed |= (present & entry >> (accessed_bit & 63)) << i;
	}
	if (leaf.mapped)
		leaf_add(&leaf);
	return 0;
}

static long directory_visit(__u32 i, struct place *place)
{
	__u32 index = 1;
	struct table *table = bpf_map_lookup_elem(&tables, &index);
	struct place below = {.guest_mode = place->guest_mode};
	__u64 entry;

	if (!table)
		return 1;
	entry = table->entries[i & (ENTRIES - 1)];
	below.first_page = place->first_page + (__u64)(i & (ENTRIES - 1)) * ENTRIES;
	if (!(entry >> ENTRY_PRESENT & 1))
		return 0;
	if (entry & ENTRY_LARGE) {
		large_leaf_add(below.first_page, ENTRIES, place->guest_mode, entry);
		return 0;
	}
	if (table_read(0, direct_map + (entry & ENTRY_ADDRESS)))
		bpf_loop(8, word_visit, &below, 0);
	return 0;
}

/* Descends from a root to the table of the GiB asked for, whose entries are of 2 MiB. */
static void root_walk(struct kvm_mmu_page *root)
{
	__u64 page = gib << 18, address = (__u64)BPF_CORE_READ(root, spt), entry;
	int level = (int)BPF_CORE_READ_BITFIELD_PROBED(root, role.level);
	struct place place = {.first_page = page};

	place.guest_mode = BPF_CORE_READ_BITFIELD_PROBED(root, role.guest_mode);
	/* Addresses that need a level more than this root has do not exist for it. */
	if (level < 4 || level > 5 || page >> (9 * level))
		return;
	for (int i = 0; i < 3 && level > 2; i++, level--) {
		__u64 *at = (__u64 *)address + (page >> (9 * (level - 1)) & (ENTRIES - 1));

		if (bpf_probe_read_kernel(&entry, sizeof(entry), at)) {
			incomplete = 1;
			return;
		}
		if (!(entry >> ENTRY_PRESENT & 1))
			return;
		if (entry & ENTRY_LARGE) {
			large_leaf_add(page, ENTRIES * ENTRIES, place.guest_mode, entry);
			return;
		}
		address = direct_map + (entry & ENTRY_ADDRESS);
	}
	if (table_read(1, address))
		bpf_loop(ENTRIES, directory_visit, &place, 0);
}

static void roots_walk(struct kvm *kvm)
{
	struct list_head *head, *node;

	if (!bpf_core_field_exists(kvm->arch.tdp_mmu_roots))
		return;
	head = (void *)kvm + bpf_core_field_offset(struct kvm, arch.tdp_mmu_roots);
	node = BPF_CORE_READ(head, next);
	/* There are none with shadow paging. Without kvm's parameter tdp_mmu the list was not even made. */
	if (!node || node == head)
		return;
	if (!direct_map) {
		incomplete = 1;
		return;
	}
	for (int i = 0; i < ROOTS_MAX && node && node != head; i++) {
		struct kvm_mmu_page *root =
			(void *)node - bpf_core_field_offset(struct kvm_mmu_page, link);

		if (!BPF_CORE_READ_BITFIELD_PROBED(root, role.invalid))
			root_walk(root);
		node = BPF_CORE_READ(node, next);
	}
}

/* An entry of a shadow page that is not direct: the second table that was read has the frame numbers, above bit 12. */
static long shadow_entry_visit(__u32 i, struct place *place)
{
	__u32 index = 0, frames = 1;
	struct table *table = bpf_map_lookup_elem(&tables, &index),
		     *frame = bpf_map_lookup_elem(&tables, &frames);
	struct wss_kvm_leaf_record leaf;
	__u64 entry, page;

	if (!table || !frame)
		return 1;
	entry = table->entries[i & (ENTRIES - 1)];
	if (!(entry >> ENTRY_PRESENT & 1) || (place->level > 1 && !(entry & ENTRY_LARGE)))
		return 0;
	page = place->direct ? place->first_page +
				       ((__u64)(i & (ENTRIES - 1)) << (9 * (place->level - 1)))
			     : frame->entries[i & (ENTRIES - 1)] >> place->frame_shift;
	if (place->level > 1) {
		large_leaf_add(page, place->level == 2 ? ENTRIES : ENTRIES * ENTRIES,
			       place->guest_mode, entry);
		return 0;
	}
	leaf = (struct wss_kvm_leaf_record){
		.first_page = page & ~63ULL,
		.mapped = 1ULL << (page & 63),
		.writable = (entry >> ENTRY_WRITABLE & 1) << (page & 63),
		.accessed = (entry >> (accessed_bit & 63) & 1) << (page & 63),
		.n_pages = 64,
		.guest_mode = place->guest_mode,
	};
	leaf_add(&leaf);
	return 0;
}

struct shadow_cursor {
	struct list_head *node, *head;
	bool skipping; /* until the last shadow page of the call before */
};

static void shadow_page_walk(struct kvm_mmu_page *page)
{
	__u64 address = (__u64)BPF_CORE_READ(page, spt), frames = 0;
	struct place place = {.level = BPF_CORE_READ_BITFIELD_PROBED(page, role.level)};
	struct kvm_mmu_page___gfns *old = (void *)page;

	if (place.level < 1 || place.level > 3 || BPF_CORE_READ_BITFIELD_PROBED(page, role.invalid))
		return;
	place.guest_mode = BPF_CORE_READ_BITFIELD_PROBED(page, role.guest_mode);
	place.first_page = BPF_CORE_READ(page, gfn);
	place.direct = BPF_CORE_READ_BITFIELD_PROBED(page, role.direct);
	if (!place.direct) {
		if (bpf_core_field_exists(page->shadowed_translation)) {
			frames = (__u64)BPF_CORE_READ(page, shadowed_translation);
			place.frame_shift = 12;
		} else if (bpf_core_field_exists(old->gfns)) {
			frames = (__u64)BPF_CORE_READ(old, gfns);
		}
		if (!frames || !table_read(1, frames))
			return;
	}
	if (!table_read(0, address))
		return;
	/* Was the page freed and reused meanwhile? */
	if ((__u64)BPF_CORE_READ(page, spt) != address ||
	    (__u32)BPF_CORE_READ_BITFIELD_PROBED(page, role.level) != place.level) {
		incomplete = 1;
		return;
	}
	if (place.direct && place.level == 1)
		bpf_loop(8, word_visit, &place, 0);
	else
		bpf_loop(ENTRIES, shadow_entry_visit, &place, 0);
}

static long shadow_page_visit(__u32 i, struct shadow_cursor *cursor)
{
	struct list_head *node = cursor->node;

	(void)i;
	if (!node || node == cursor->head) {
		incomplete |= cursor->skipping;
		last_shadow_page = 0;
		return 1;
	}
	if (cursor->skipping) {
		cursor->skipping = (__u64)node != last_shadow_page;
	} else {
		if (n_leaves + ENTRIES > WSS_KVM_LEAVES)
			return 1;
		shadow_page_walk((void *)node - bpf_core_field_offset(struct kvm_mmu_page, link));
		last_shadow_page = (__u64)node;
	}
	cursor->node = BPF_CORE_READ(node, next);
	return 0;
}

SEC("iter/task_file")
int walk_vm(struct bpf_iter__task_file *ctx)
{
	struct kvm *kvm = file_private(ctx, NAME_VM);
	struct shadow_cursor cursor = {};
	struct list_head *head;

	if (!kvm || !is_wanted(kvm) || found)
		return 0;
	found = 1;
	if (!shadow_pages) {
		roots_walk(kvm);
		return 0;
	}
	head = (void *)kvm + bpf_core_field_offset(struct kvm, arch.active_mmu_pages);
	cursor.head = head;
	cursor.node = BPF_CORE_READ(head, next);
	cursor.skipping = last_shadow_page;
	bpf_loop(SHADOW_PAGES_MAX, shadow_page_visit, &cursor, 0);
	return 0;
}

struct wss_kvm_counters counters;

static void count(struct kvm *kvm)
{
	found = 1;
	counters.all_vcpus = (__u32)BPF_CORE_READ(kvm, online_vcpus.counter);
	counters.pages[0] = (__u64)BPF_CORE_READ(kvm, stat.pages[0].counter);
	counters.pages[1] = (__u64)BPF_CORE_READ(kvm, stat.pages[1].counter);
	counters.pages[2] = (__u64)BPF_CORE_READ(kvm, stat.pages[2].counter);
	if (bpf_core_field_exists(kvm->stat.generic.remote_tlb_flush_requests)) {
		counters.has_tlb_flushes = 1;
		counters.tlb_flushes = BPF_CORE_READ(kvm, stat.generic.remote_tlb_flush_requests);
	}
}

static void count_vcpu(struct kvm_vcpu *vcpu)
{
	counters.n_vcpus++;
	counters.pf_fixed += BPF_CORE_READ(vcpu, stat.pf_fixed);
	counters.nested_run += BPF_CORE_READ(vcpu, stat.nested_run);
	counters.guest_mode += BPF_CORE_READ(vcpu, stat.guest_mode);
}

/*
 * A root's table is known by its address in the direct map, and a vCPU that uses it has its physical address. The
 * direct map begins at a multiple of a GiB (arch/x86/mm/kaslr.c): what does not is the distance of two roots.
 */
static void find_direct_map(struct kvm_vcpu *vcpu)
{
	struct kvm *kvm = BPF_CORE_READ(vcpu, kvm);
	struct kvm_mmu *mmu = BPF_CORE_READ(vcpu, arch.mmu);
	struct kvm_mmu___old *old = (void *)mmu;
	struct list_head *head, *node;
	__u64 physical = 0;

	if (!bpf_core_field_exists(kvm->arch.tdp_mmu_roots))
		return;
	if (bpf_core_field_exists(mmu->root))
		physical = BPF_CORE_READ(mmu, root.hpa);
	else if (bpf_core_field_exists(old->root_hpa))
		physical = BPF_CORE_READ(old, root_hpa);
	head = (void *)kvm + bpf_core_field_offset(struct kvm, arch.tdp_mmu_roots);
	node = BPF_CORE_READ(head, next);
	for (int i = 0; i < ROOTS_MAX && node && node != head; i++) {
		struct kvm_mmu_page *root =
			(void *)node - bpf_core_field_offset(struct kvm_mmu_page, link);
		__u64 base = (__u64)BPF_CORE_READ(root, spt) - physical;

		if (!(physical & (4096 - 1)) && !(base & ((1ULL << 30) - 1)))
			direct_map = base;
		node = BPF_CORE_READ(node, next);
	}
}

SEC("iter/task_file")
int count_vm(struct bpf_iter__task_file *ctx)
{
	struct kvm *kvm = file_private(ctx, NAME_VM);
	struct kvm_vcpu *vcpu = file_private(ctx, NAME_VCPU);

	if (kvm && is_wanted(kvm))
		count(kvm);
	if (!vcpu || !is_wanted(BPF_CORE_READ(vcpu, kvm)))
		return 0;
	count_vcpu(vcpu);
	if (!direct_map)
		find_direct_map(vcpu);
	return 0;
}
