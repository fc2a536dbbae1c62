/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "host/kvmstat.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/privilege.h"

#define KVM_DIR "sys/kernel/debug/kvm"

enum counter {
	PAGES_4K,
	PAGES_2M,
	PAGES_1G,
	PF_FIXED,
	NESTED_RUN,
	GUEST_MODE,
	TLB_FLUSHES,
	N_COUNTERS
};

static const struct {
	const char *name;
	size_t offset;
	bool required;
} files[N_COUNTERS] = {
	[PAGES_4K] = {"pages_4k", offsetof(struct wss_kvm_counts, pages_4k), true},
	[PAGES_2M] = {"pages_2m", offsetof(struct wss_kvm_counts, pages_2m), true},
	[PAGES_1G] = {"pages_1g", offsetof(struct wss_kvm_counts, pages_1g), true},
	[PF_FIXED] = {"pf_fixed", offsetof(struct wss_kvm_counts, pf_fixed), false},
	[NESTED_RUN] = {"nested_run", offsetof(struct wss_kvm_counts, nested_run), false},
	[GUEST_MODE] = {"guest_mode", offsetof(struct wss_kvm_counts, guest_mode), false},
	[TLB_FLUSHES] = {"remote_tlb_flush_requests", offsetof(struct wss_kvm_counts, tlb_flushes),
			 false},
};

struct wss_kvm_debugfs {
	struct wss_root dir;
	bool lacks[N_COUNTERS]; /* this optional counter is missing or unreadable */
};

uint64_t wss_kvm_counts_entries(const struct wss_kvm_counts *counts)
{
	return counts->pages_4k + counts->pages_2m + counts->pages_1g;
}

/* Opens debugfs' directory of all VMs; the error says what is missing. */
static int open_list(const struct wss_root *root, DIR **ret_dir, struct wss_error *err)
{
	int r = wss_root_opendir(root, KVM_DIR, ret_dir);

	if (r == -ENOENT)
		return wss_error_set(err, WSS_ERR_UNSUPPORTED,
				     "there is no /" KVM_DIR
				     ": debugfs is not mounted or KVM is not loaded");
	if (r < 0)
		return wss_privilege_errno(err, WSS_ERR_UNSUPPORTED, -r, WSS_CAPS_FILE,
					   "cannot read /" KVM_DIR);
	return 0;
}

/* Finds the only entry "<pid>-<fd>" of dir. */
static int find_entry(DIR *dir, pid_t pid, char *ret_name, size_t size, struct wss_error *err)
{
	char prefix[16];
	size_t len = (size_t)snprintf(prefix, sizeof(prefix), "%d-", pid), found = 0;

	for (struct dirent *entry; (entry = readdir(dir));) {
		const char *fd = entry->d_name + len;

		if (strncmp(entry->d_name, prefix, len) || !fd[0] ||
		    strspn(fd, "0123456789") != strlen(fd) || strlen(entry->d_name) >= size)
			continue;
		strcpy(ret_name, entry->d_name);
		found++;
	}
	if (!found)
		return wss_error_set(err, WSS_ERR_UNSUPPORTED,
				     "process %d has no KVM guest listed in /" KVM_DIR, pid);
	if (found > 1)
		return wss_error_set(err, WSS_ERR_UNSUPPORTED,
				     "/" KVM_DIR
				     " lists %zu virtual machines of process %d: only one can be "
				     "measured",
				     found, pid);
	return 0;
}

/* Notes which optional counters can be read; an unreadable required one is an error. */
static int probe_counters(struct wss_kvm_debugfs *debugfs, struct wss_error *err)
{
	for (int i = 0; i < N_COUNTERS; i++) {
		uint64_t ignored;
		int r = wss_root_read_u64(&debugfs->dir, files[i].name, &ignored);

		debugfs->lacks[i] =
			!files[i].required && (r == -ENOENT || r == -EPERM || r == -EACCES);
		if (files[i].required && r == -ENOENT)
			return wss_error_set(err, WSS_ERR_UNSUPPORTED,
					     "KVM has no counter %s (Linux before 5.15?)",
					     files[i].name);
	}
	return 0;
}

int wss_kvm_debugfs_open(const struct wss_root *root, pid_t pid,
			 struct wss_kvm_debugfs **ret_debugfs, struct wss_error *err)
{
	struct wss_kvm_counts counts;
	struct wss_kvm_debugfs *debugfs;
	wss_auto_dir DIR *dir = NULL;
	char name[64];
	int fd;

	if (open_list(root, &dir, err) < 0 || find_entry(dir, pid, name, sizeof(name), err) < 0)
		return -1;
	fd = openat(dirfd(dir), name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return wss_privilege_errno(err, WSS_ERR_UNSUPPORTED, errno, WSS_CAPS_FILE,
					   "cannot open /" KVM_DIR "/%s", name);
	debugfs = calloc(1, sizeof(*debugfs));
	if (!debugfs) {
		close(fd);
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	}
	debugfs->dir.dirfd = fd;
	if (probe_counters(debugfs, err) < 0 || wss_kvm_debugfs_read(debugfs, &counts, err) < 0) {
		wss_kvm_debugfs_close(debugfs);
		return -1;
	}
	*ret_debugfs = debugfs;
	return 0;
}

/* Explains why a counter that existed could not be read. */
static int refuse_counter(const char *name, int r, struct wss_error *err)
{
	if (r == -ENOENT || r == -ENODEV || r == -EIO)
		return wss_error_set(err, WSS_ERR_GONE, "the virtual machine has gone");
	return wss_privilege_errno(err, WSS_ERR_FAILED, -r, WSS_CAPS_FILE,
				   "cannot read KVM's counter %s", name);
}

int wss_kvm_debugfs_read(struct wss_kvm_debugfs *debugfs, struct wss_kvm_counts *ret_counts,
			 struct wss_error *err)
{
	struct wss_kvm_counts counts = {0};

	for (int i = 0; i < N_COUNTERS; i++) {
		uint64_t *value = (uint64_t *)((char *)&counts + files[i].offset);
		int r = debugfs->lacks[i] ? 0
					  : wss_root_read_u64(&debugfs->dir, files[i].name, value);

		if (r < 0)
			return refuse_counter(files[i].name, r, err);
	}
	counts.has_pf_fixed = !debugfs->lacks[PF_FIXED];
	counts.has_tlb_flushes = !debugfs->lacks[TLB_FLUSHES];
	counts.has_guest_mode = !debugfs->lacks[GUEST_MODE];
	counts.has_nested = !debugfs->lacks[NESTED_RUN] && !debugfs->lacks[GUEST_MODE];
	*ret_counts = counts;
	return 0;
}

void wss_kvm_debugfs_close(struct wss_kvm_debugfs *debugfs)
{
	if (!debugfs)
		return;
	wss_root_close(&debugfs->dir);
	free(debugfs);
}
