/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Counters of the cgroup that QEMU has for itself, as libvirt makes it for each guest. A cgroup that QEMU may
 * share with other programs says nothing about the guest.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/amount.h"
#include "base/root.h"

struct wss_vmm_cgroup {
	struct wss_amount huge_bytes; /* in transparent huge pages */
	struct wss_amount swap_bytes; /* of its memory, shared memory too */
};

/*
 * Finds the cgroup (version 2) of the process whose /proc directory is proc: its directory, below the root of the
 * host. *ret_own: QEMU has it for itself; its cgroups of threads, which have no memory, are left out. False: the host
 * has no version 2 where systemd mounts it, or proc is in another namespace.
 */
bool wss_vmm_cgroup_find(const struct wss_root *proc, char ret_path[PATH_MAX], bool *ret_own);

/*
 * Finds the cgroup (version 2) that the memory of a process is charged to: the next one up that has the memory controller.
 * proc is its /proc directory, pid its number in our own pid namespace. *ret_path is its path as /proc/PID/cgroup has it,
 * with a '/' first. *ret_own: no other guest's process is in it, as it is one that libvirt has made for a guest, or has no
 * other process at all. False: there is none, the memory controller is that of version 1, or proc is in another namespace.
 */
bool wss_vmm_cgroup_of_memory(const struct wss_root *root, const struct wss_root *proc, pid_t pid,
			      char ret_path[PATH_MAX], bool *ret_own);

/* Returns the memory that is charged to that cgroup and those below it; unknown if it cannot be read. */
struct wss_amount wss_vmm_cgroup_charged(const struct wss_root *root, const char *path);

/*
 * Reads the counters of the cgroup (version 2) of the process whose /proc directory is proc, below root; what
 * cannot be read is unknown, and so is all where QEMU has no cgroup for itself.
 */
struct wss_vmm_cgroup wss_vmm_cgroup_read(const struct wss_root *root, const struct wss_root *proc);
