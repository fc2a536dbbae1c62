/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "host/vmm-cgroup.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "host/cgroup.h"

#define MOUNT "sys/fs/cgroup"
/* Directories that libvirt names after the guest: machine-qemu\x2d1\x2dweb1.scope, qemu-1-web1.libvirt-qemu. */
#define NAME_START_SYSTEMD "machine-qemu\\x2d"
#define NAME_START "qemu-"

static bool name_ends(const char *name, size_t len, const char *end)
{
	return len >= strlen(end) && !strncmp(name + len - strlen(end), end, strlen(end));
}

/* Not a partition of guests, which its operator may have called qemu-test. */
static bool name_is_guest(const char *name)
{
	size_t len = strcspn(name, "/");

	return (!strncmp(name, NAME_START_SYSTEMD, strlen(NAME_START_SYSTEMD)) ||
		!strncmp(name, NAME_START, strlen(NAME_START))) &&
	       !name_ends(name, len, ".slice") && !name_ends(name, len, ".partition");
}

/*
 * Cuts a path of a cgroup after the directory that belongs to one guest. Below it are cgroups of threads, which
 * have no counters of memory. Returns false if there is no such directory.
 */
static bool path_cut(char *path)
{
	for (char *part = path; part; part = strchr(part, '/')) {
		part += *part == '/';
		if (!name_is_guest(part))
			continue;
		part[strcspn(part, "/")] = '\0';
		return true;
	}
	return false;
}

/* Reads the path of the cgroup of version 2, with a '/' first. */
static bool path_read(const struct wss_root *proc, char ret_path[PATH_MAX])
{
	wss_auto_free char *text = NULL;
	char *line, *end;
	size_t len;

	if (wss_root_read(proc, "cgroup", WSS_CGROUP_MAX_BYTES, &text, &len) < 0)
		return false;
	/* The line of version 2 has no controllers; with both versions there are others. */
	line = !strncmp(text, "0::/", 4) ? text : strstr(text, "\n0::/");
	if (!line)
		return false;
	line = strchr(line, '/');
	end = strchrnul(line, '\n');
	*end = '\0';
	/* A path that leaves the mount is that of another namespace. */
	if (strstr(line, ".."))
		return false;
	return snprintf(ret_path, PATH_MAX, "%s", line) < PATH_MAX;
}

bool wss_vmm_cgroup_find(const struct wss_root *proc, char ret_path[PATH_MAX], bool *ret_own)
{
	char path[PATH_MAX];

	if (!path_read(proc, path))
		return false;
	*ret_own = path_cut(path);
	return snprintf(ret_path, PATH_MAX, MOUNT "%s", path[1] ? path : "") < PATH_MAX;
}

/* Reads the number after a word that begins a line, or after "total=" of a line that begins with it. */
static struct wss_amount number_after(const char *text, const char *word)
{
	size_t len = strlen(word);
	uint64_t value;

	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (!strncmp(line, word, len) && sscanf(line + len, "%" SCNu64, &value) == 1)
			return wss_amount_of(value);
	}
	return (struct wss_amount){0};
}

static struct wss_amount sum_of(struct wss_amount a, struct wss_amount b)
{
	return (struct wss_amount){a.known && b.known, a.value + b.value};
}

struct wss_vmm_cgroup wss_vmm_cgroup_read(const struct wss_root *root, const struct wss_root *proc)
{
	struct wss_vmm_cgroup counts = {.swap_bytes = {.known = false}};
	wss_auto_free char *stat = NULL, *swap = NULL;
	char directory[PATH_MAX];
	bool own;

	if (!wss_vmm_cgroup_find(proc, directory, &own) || !own)
		return counts;
	stat = wss_cgroup_read(root, directory, "memory.stat");
	swap = wss_cgroup_read(root, directory, "memory.swap.current");
	counts.huge_bytes =
		sum_of(sum_of(number_after(stat, "anon_thp "), number_after(stat, "shmem_thp ")),
		       number_after(stat, "file_thp "));
	counts.swap_bytes = number_after(swap, "");
	return counts;
}

/* Whether a process is the only one in a cgroup. One in a cgroup below it, as libvirt has for threads, counts, too. */
static bool path_has_only(const struct wss_root *root, const char *path, pid_t pid)
{
	wss_auto_free char *text = NULL;
	char directory[PATH_MAX], *end;

	if (snprintf(directory, sizeof(directory), MOUNT "%s", path) >= (int)sizeof(directory))
		return false;
	text = wss_cgroup_read(root, directory, "cgroup.procs");
	return text && strtoul(text, &end, 10) == (unsigned long)pid && end != text &&
	       !strcmp(end, "\n");
}

struct wss_amount wss_vmm_cgroup_charged(const struct wss_root *root, const char *path)
{
	char file[PATH_MAX];
	uint64_t bytes;

	if (snprintf(file, sizeof(file), MOUNT "%s/memory.current", path) >= (int)sizeof(file) ||
	    wss_root_read_u64(root, file, &bytes) < 0)
		return (struct wss_amount){0};
	return wss_amount_of(bytes);
}

bool wss_vmm_cgroup_of_memory(const struct wss_root *root, const struct wss_root *proc, pid_t pid,
			      char ret_path[PATH_MAX], bool *ret_own)
{
	char named[PATH_MAX];

	if (!path_read(proc, ret_path))
		return false;
	/* The root of all has no such file: what is charged there is not counted. */
	while (ret_path[1] && !wss_vmm_cgroup_charged(root, ret_path).known) {
		char *last = strrchr(ret_path, '/');

		last[last == ret_path] = '\0';
	}
	if (!ret_path[1])
		return false;
	snprintf(named, sizeof(named), "%s", ret_path);
	*ret_own = path_cut(named) || path_has_only(root, ret_path, pid);
	return true;
}
