/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "kvm/kvm.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/number.h"
#include "base/privilege.h"
#include "base/root.h"
#include "kvm.skel.h"
#include "kvm/btf.h"

#define BPF_CAPS (WSS_CAP(CAP_BPF) | WSS_CAP(CAP_PERFMON))
#define PAGES_PER_GIB (1ULL << 18)
/* More than the kernel's own buffer for one VM: 8 pages (Linux 6.1, kernel/bpf/bpf_iter.c, bpf_seq_read()). */
#define LISTING_BYTES (64 << 10)
/* For all VMs of the host: some thousands. */
#define HOST_LISTING_BYTES (16 << 20)
/* Attempts to read slots or tables between two changes. */
#define ATTEMPTS 3

struct wss_kvm_vm {
	struct bpf_link *list, *count, *walk; /* all bound to the VM's process */
	uint64_t vm, inode;		      /* of its record */
};

/* The programs, of which a process has one set: a walk's results are in maps that belong to them. */
static struct {
	pthread_mutex_t lock;
	struct kvm_bpf *skeleton; /* NULL: not loaded yet, or why.code says why not */
	struct wss_kvm_leaf_record *leaves;
	struct wss_error why;
} loaded = {.lock = PTHREAD_MUTEX_INITIALIZER};

static const char *vm_version(void)
{
	static char text[48];

	snprintf(text, sizeof(text), "bpf (libbpf %u.%u)", libbpf_major_version(),
		 libbpf_minor_version());
	return text;
}

/* Prints libbpf's own messages for debugging only; the caller reports errors in one line. */
static int print_debug(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	char text[1024];

	if (level == LIBBPF_DEBUG)
		return 0;
	vsnprintf(text, sizeof(text), fmt, ap);
	text[strcspn(text, "\n")] = '\0';
	wss_debug("%s", text);
	return 0;
}

static void unload(void)
{
	if (loaded.leaves)
		munmap(loaded.leaves, WSS_KVM_LEAVES * sizeof(*loaded.leaves));
	loaded.leaves = NULL;
	kvm_bpf__destroy(loaded.skeleton);
	loaded.skeleton = NULL;
}

static int read_pid_namespace(__u32 *ret_number, struct wss_error *err)
{
	wss_cleanup(wss_root_close) struct wss_root root = {.dirfd = -1};
	struct stat st;

	if (wss_root_open("/", &root, err) < 0)
		return -1;
	if (fstatat(root.dirfd, "proc/self/ns/pid", &st, 0) < 0)
		return wss_error_errno(err, WSS_ERR_UNSUPPORTED, errno,
				       "cannot read /proc/self/ns/pid");
	*ret_number = (__u32)st.st_ino;
	return 0;
}

static int load(struct wss_error *err)
{
	LIBBPF_OPTS(bpf_object_open_opts, options);
	struct wss_error types_error = WSS_ERROR_INIT;
	wss_auto_close int types = wss_kvm_btf_join(&types_error);
	struct kvm_bpf *skeleton;
	char path[32];
	void *leaves;
	int r;

	libbpf_set_print(print_debug);
	if (types_error.code)
		wss_debug("%s", types_error.text);
	if (types >= 0) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", types);
		options.btf_custom_path = path;
	}
	skeleton = loaded.skeleton = kvm_bpf__open_opts(&options);
	if (!skeleton)
		return wss_error_errno(err, WSS_ERR_UNSUPPORTED, errno,
				       "libbpf cannot open the programs that read KVM's tables");
	r = kvm_bpf__load(skeleton);
	if (r < 0)
		return wss_privilege_errno(
			err, WSS_ERR_UNSUPPORTED, -r, BPF_CAPS,
			"the kernel refuses the programs that read KVM's tables");
	leaves = mmap(NULL, WSS_KVM_LEAVES * sizeof(*loaded.leaves), PROT_READ, MAP_SHARED,
		      bpf_map__fd(skeleton->maps.leaves), 0);
	if (!skeleton->bss || leaves == MAP_FAILED)
		return wss_error_set(err, WSS_ERR_UNSUPPORTED,
				     "cannot map what the programs that read KVM's tables find");
	loaded.leaves = leaves;
	return read_pid_namespace(&skeleton->bss->pid_namespace, err);
}

static int vm_probe(struct wss_error *err)
{
	wss_cleanup(wss_root_close) struct wss_root root = {.dirfd = -1};
	wss_auto_close int types = -1;
	bool known;

	pthread_mutex_lock(&loaded.lock);
	known = loaded.skeleton || loaded.why.code;
	pthread_mutex_unlock(&loaded.lock);
	if (known)
		return loaded.why.code ? wss_error_set(err, loaded.why.code, "%s", loaded.why.text)
				       : 0;
	if (!wss_privilege_has(BPF_CAPS))
		return wss_privilege_errno(err, WSS_ERR_UNSUPPORTED, EPERM, BPF_CAPS,
					   "cannot load BPF programs");
	if (wss_root_open("/", &root, err) < 0)
		return -1;
	types = wss_root_openat(&root, "sys/kernel/btf/vmlinux", O_RDONLY);
	return types < 0
		       ? wss_error_errno(
				 err, WSS_ERR_UNSUPPORTED, -types,
				 "the kernel does not describe its types (/sys/kernel/btf/vmlinux)")
		       : 0;
}

static int vm_load(struct wss_error *err)
{
	bool usable;

	pthread_mutex_lock(&loaded.lock);
	if (!loaded.skeleton && !loaded.why.code) {
		if (load(&loaded.why) < 0)
			unload();
		else
			atexit(unload);
	}
	usable = loaded.skeleton;
	pthread_mutex_unlock(&loaded.lock);
	return usable ? 0 : wss_error_set(err, loaded.why.code, "%s", loaded.why.text);
}

/* Runs an iterator until its end. Returns how many bytes it has written to listing; -1 with err set. */
static ssize_t iterate(const struct bpf_link *link, char *listing, size_t size,
		       struct wss_error *err)
{
	wss_auto_close int fd = bpf_iter_create(bpf_link__fd(link));
	size_t bytes = 0;
	ssize_t n = -1;

	while (fd >= 0 && bytes < size) {
		n = read(fd, listing + bytes, size - bytes);
		if (n > 0)
			bytes += (size_t)n;
		else if (n == 0 || errno != EINTR)
			break;
	}
	if (n == 0)
		return (ssize_t)bytes;
	return wss_error_errno(err, WSS_ERR_FAILED, n < 0 ? errno : E2BIG,
			       "cannot read the VM from the kernel");
}

/* Binds an iterator to a process; 0: to all. */
static struct bpf_link *attach(const struct bpf_program *program, pid_t pid, struct wss_error *err)
{
	union bpf_iter_link_info info = {.task = {.tid = (__u32)pid}};
	LIBBPF_OPTS(bpf_iter_attach_opts, options, .link_info = &info,
		    .link_info_len = sizeof(info));
	struct bpf_link *link = bpf_program__attach_iter(program, pid ? &options : NULL);

	if (!link)
		wss_error_errno(err, WSS_ERR_UNSUPPORTED, errno,
				"the kernel refuses to list open files");
	return link;
}

/* Returns the record at *at of a listing, and moves *at past its slots; NULL with err set: WSS_ERR_FAILED, it changed. */
static const struct wss_kvm_vm_record *next_record(const char *listing, size_t bytes, size_t *at,
						   struct wss_error *err)
{
	const struct wss_kvm_vm_record *vm = (const void *)(listing + *at), *after;

	*at += sizeof(*vm) + vm->n_slots * sizeof(struct wss_kvm_slot_record);
	after = (const void *)(listing + *at);
	*at += sizeof(*after);
	if (*at > bytes || after->generation != vm->generation || after->n_slots != vm->n_slots) {
		wss_error_set(err, WSS_ERR_FAILED,
			      "the VM's memory changed while it was read from the kernel");
		return NULL;
	}
	return vm;
}

/*
 * Returns a VM in a listing of a process, 0 being the only one, with any inode if that is 0; NULL with err set. A VM may have several
 * descriptors.
 */
static const struct wss_kvm_vm_record *find_vm(const char *listing, size_t bytes, uint64_t vm,
					       uint64_t inode, struct wss_error *err)
{
	const struct wss_kvm_vm_record *found = NULL, *record;
	size_t at = 0;

	while (at < bytes) {
		record = next_record(listing, bytes, &at, err);
		if (!record)
			return NULL;
		if ((vm && record->vm != vm) || (inode && record->inode != inode))
			continue;
		if (found && found->vm != record->vm) {
			wss_error_set(err, WSS_ERR_UNSUPPORTED, "the process has several VMs");
			return NULL;
		}
		found = record;
	}
	if (!found)
		wss_error_set(err, WSS_ERR_GONE,
			      vm ? "the VM is gone" : "the process has no VM of KVM");
	return found;
}

/* Lists a process's VMs, and finds one as find_vm() does. */
static const struct wss_kvm_vm_record *list_vm(const struct bpf_link *list, uint64_t vm,
					       uint64_t inode, char *listing, struct wss_error *err)
{
	const struct wss_kvm_vm_record *record = NULL;

	for (int i = 0; i < ATTEMPTS && !record; i++) {
		struct wss_error why = WSS_ERROR_INIT;
		ssize_t bytes = iterate(list, listing, LISTING_BYTES, &why);

		record = bytes < 0 ? NULL : find_vm(listing, (size_t)bytes, vm, inode, &why);
		if (!record && (why.code != WSS_ERR_FAILED || i + 1 == ATTEMPTS))
			wss_error_set(err, why.code, "%s", why.text);
		if (!record && why.code != WSS_ERR_FAILED)
			break;
	}
	return record;
}

/* Adds a record to the VMs unless it is another descriptor of one of them. Their slots follow it. */
static void entries_add(struct wss_kvm_entry *entries, size_t *n,
			const struct wss_kvm_vm_record *record)
{
	const struct wss_kvm_slot_record *slots = (const void *)(record + 1);
	struct wss_kvm_entry *entry = &entries[*n];

	for (size_t i = 0; i < *n; i++)
		if (entries[i].vm == record->vm)
			return;
	*entry = (struct wss_kvm_entry){.vm = record->vm,
					.pid = (pid_t)record->pid,
					.fd = (int)record->fd,
					.n_vcpus = record->n_vcpus};
	for (size_t i = 0; i < record->n_slots; i++)
		if (wss_kvm_slot_is_memory(&slots[i]))
			entry->memory_bytes += slots[i].n_pages << 12;
	++*n;
}

/* Returns the VMs of a listing of all processes. Fails if slots changed meanwhile. */
static int entries_of(const char *listing, size_t bytes, struct wss_kvm_entry **ret_entries,
		      size_t *ret_n, struct wss_error *err)
{
	struct wss_kvm_entry *entries =
		calloc(bytes / (2 * sizeof(struct wss_kvm_vm_record)) + 1, sizeof(*entries));
	const struct wss_kvm_vm_record *record = NULL;
	size_t at = 0, n = 0;

	if (!entries)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	while (at < bytes && (record = next_record(listing, bytes, &at, err)))
		entries_add(entries, &n, record);
	if (bytes && !record) {
		free(entries);
		return -1;
	}
	*ret_entries = entries;
	*ret_n = n;
	return 0;
}

static int vm_list(struct wss_kvm_entry **ret_entries, size_t *ret_n, struct wss_error *err)
{
	wss_auto_free char *listing = malloc(HOST_LISTING_BYTES);
	struct wss_error why = WSS_ERROR_INIT;
	struct bpf_link *list;
	int r = -1;

	if (!listing)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	if (vm_load(err) < 0)
		return -1;
	list = attach(loaded.skeleton->progs.list_vms, 0, err);
	if (!list)
		return -1;
	for (int i = 0; i < ATTEMPTS && r < 0; i++) {
		ssize_t bytes = iterate(list, listing, HOST_LISTING_BYTES, &why);

		if (bytes >= 0)
			r = entries_of(listing, (size_t)bytes, ret_entries, ret_n, &why);
	}
	bpf_link__destroy(list);
	return r < 0 ? wss_error_set(err, why.code, "%s", why.text) : 0;
}

static void vm_close(struct wss_kvm_vm *vm)
{
	if (!vm)
		return;
	bpf_link__destroy(vm->list);
	bpf_link__destroy(vm->count);
	bpf_link__destroy(vm->walk);
	free(vm);
}

static int vm_open(pid_t pid, uint64_t id, struct wss_kvm_vm **ret_vm, struct wss_error *err)
{
	wss_auto_free char *listing = malloc(LISTING_BYTES);
	struct wss_kvm_vm *vm = calloc(1, sizeof(*vm));
	const struct wss_kvm_vm_record *record;

	if (!listing || !vm) {
		free(vm);
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	}
	if (vm_load(err) < 0)
		goto failed;
	vm->list = attach(loaded.skeleton->progs.list_vms, pid, err);
	vm->count = vm->list ? attach(loaded.skeleton->progs.count_vm, pid, err) : NULL;
	vm->walk = vm->count ? attach(loaded.skeleton->progs.walk_vm, pid, err) : NULL;
	if (!vm->walk)
		goto failed;
	record = list_vm(vm->list, id, 0, listing, err);
	if (!record) {
		if (err && err->code == WSS_ERR_GONE)
			err->code = WSS_ERR_UNSUPPORTED;
		goto failed;
	}
	vm->vm = record->vm;
	vm->inode = record->inode;
	*ret_vm = vm;
	return 0;
failed:
	vm_close(vm);
	return -1;
}

static int vm_slots(const struct wss_kvm_vm *vm, struct wss_kvm_slots *ret_slots,
		    struct wss_error *err)
{
	wss_auto_free char *listing = malloc(LISTING_BYTES);
	const struct wss_kvm_vm_record *record;
	struct wss_kvm_slot_record *copy;

	if (!listing)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	record = list_vm(vm->list, vm->vm, vm->inode, listing, err);
	if (!record)
		return -1;
	copy = calloc(record->n_slots ? record->n_slots : 1, sizeof(*copy));
	if (!copy)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	memcpy(copy, record + 1, record->n_slots * sizeof(*copy));
	*ret_slots = (struct wss_kvm_slots){record->n_slots, copy, record->generation};
	return 0;
}

/* Runs count_vm or walk_vm. Results and arguments are in memory that the programs share with us. */
static int run(const struct wss_kvm_vm *vm, const struct bpf_link *program, struct wss_error *err)
{
	struct kvm_bpf__bss *shared = loaded.skeleton->bss;
	char nothing[1];

	shared->vm = vm->vm;
	shared->inode = vm->inode;
	shared->n_leaves = shared->found = shared->incomplete = 0;
	if (iterate(program, nothing, sizeof(nothing), err) < 0)
		return -1;
	if (!shared->found)
		return wss_error_set(err, WSS_ERR_GONE, "the VM is gone");
	return 0;
}

static int vm_count(const struct wss_kvm_vm *vm, struct wss_kvm_counters *ret_counters,
		    struct wss_error *err)
{
	struct kvm_bpf__bss *shared = loaded.skeleton->bss;
	int r;

	pthread_mutex_lock(&loaded.lock);
	shared->counters = (struct wss_kvm_counters){.n_vcpus = 0};
	r = run(vm, vm->count, err);
	if (r == 0)
		*ret_counters = shared->counters;
	pthread_mutex_unlock(&loaded.lock);
	return r;
}

/* Runs walk_vm for the part that is set. Returns 1 if something could not be read, as the tables changed meanwhile. */
static int run_walk(const struct wss_kvm_vm *vm, enum wss_kvm_accessed accessed,
		    wss_kvm_leaf_fn visit, void *opaque, struct wss_error *err)
{
	struct kvm_bpf__bss *shared = loaded.skeleton->bss;

	shared->accessed_bit = accessed;
	if (run(vm, vm->walk, err) < 0)
		return -1;
	for (uint32_t i = 0; i < loaded.skeleton->bss->n_leaves && i < WSS_KVM_LEAVES; i++)
		visit(&loaded.leaves[i], opaque);
	return (int)shared->incomplete;
}

/*
 * Reads a GiB. Returns 1 if something could not be read each time that it was tried.
 * The lock is held for a part at a time, so that other guests need not wait for a large one.
 */
static int walk_gib(const struct wss_kvm_vm *vm, uint64_t gib, enum wss_kvm_accessed accessed,
		    wss_kvm_leaf_fn visit, void *opaque, struct wss_error *err)
{
	int r = 1;

	pthread_mutex_lock(&loaded.lock);
	loaded.skeleton->bss->shadow_pages = 0;
	loaded.skeleton->bss->gib = gib;
	for (int i = 0; i < ATTEMPTS && r > 0; i++)
		r = run_walk(vm, accessed, visit, opaque, err);
	pthread_mutex_unlock(&loaded.lock);
	return r;
}

/* Reads the shadow pages after *last, and sets it to the last one that was read; 0: there are no more. Returns as walk_gib(). */
static int walk_shadow_pages(const struct wss_kvm_vm *vm, uint64_t *last,
			     enum wss_kvm_accessed accessed, wss_kvm_leaf_fn visit, void *opaque,
			     struct wss_error *err)
{
	int r;

	pthread_mutex_lock(&loaded.lock);
	loaded.skeleton->bss->shadow_pages = 1;
	loaded.skeleton->bss->last_shadow_page = *last;
	r = run_walk(vm, accessed, visit, opaque, err);
	if (r >= 0)
		*last = loaded.skeleton->bss->last_shadow_page;
	pthread_mutex_unlock(&loaded.lock);
	return r;
}

/* Their list may change meanwhile, so that it is read again from the start. */
static int walk_all_shadow_pages(const struct wss_kvm_vm *vm, enum wss_kvm_accessed accessed,
				 wss_kvm_leaf_fn visit, void *opaque, struct wss_error *err)
{
	int r = 1;

	for (int i = 0; i < ATTEMPTS && r > 0; i++) {
		uint64_t last = 0;

		do
			r = walk_shadow_pages(vm, &last, accessed, visit, opaque, err);
		while (r == 0 && last);
	}
	return r;
}

/* Returns the first GiB from this one on that has memory of a slot; UINT64_MAX: there is none. */
static uint64_t next_gib(const struct wss_kvm_slots *slots, uint64_t gib)
{
	uint64_t next = UINT64_MAX;

	for (size_t i = 0; i < slots->n_slots; i++) {
		uint64_t first = slots->slots[i].first_page / PAGES_PER_GIB;
		uint64_t last =
			(slots->slots[i].first_page + slots->slots[i].n_pages - 1) / PAGES_PER_GIB;

		if (slots->slots[i].n_pages && last >= gib)
			next = wss_u64_min(next, wss_u64_max(first, gib));
	}
	return next;
}

static int vm_walk(const struct wss_kvm_vm *vm, const struct wss_kvm_slots *slots,
		   enum wss_kvm_accessed accessed, wss_kvm_leaf_fn visit, void *opaque,
		   struct wss_error *err)
{
	struct wss_kvm_counters unused;
	int r = 0, all;

	/* It also finds the direct map, as soon as a vCPU has run. */
	if (!__atomic_load_n(&loaded.skeleton->bss->direct_map, __ATOMIC_RELAXED))
		r = vm_count(vm, &unused, err);
	if (r == 0)
		r = walk_all_shadow_pages(vm, accessed, visit, opaque, err);
	all = r;
	for (uint64_t gib = next_gib(slots, 0); gib != UINT64_MAX && r >= 0;
	     gib = next_gib(slots, gib + 1)) {
		r = walk_gib(vm, gib, accessed, visit, opaque, err);
		all |= r;
	}
	if (all > 0)
		wss_error_set(err, WSS_ERR_FAILED, "KVM's tables could not be read as a whole");
	return all ? -1 : 0;
}

const struct wss_kvm_ops wss_kvm = {
	.version = vm_version,
	.probe = vm_probe,
	.list = vm_list,
	.open = vm_open,
	.slots = vm_slots,
	.count = vm_count,
	.walk = vm_walk,
	.close = vm_close,
};
