/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "host/vmm-cgroup.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define MOUNT "sys/fs/cgroup"
#define FILE_MAX_BYTES ((size_t)64 << 10)
/* Directories that libvirt names after the guest: machine-qemu\x2d1\x2dweb1.scope, qemu-1-web1.libvirt-qemu. */
#define NAME_START_SYSTEMD "machine-qemu"
#define NAME_START "qemu-"

/*
 * Cuts a path of a cgroup after the directory that belongs to one guest. Below it are cgroups of threads, which
 * have no counters of memory. Returns false if there is no such directory.
 */
static bool path_cut(char *path)
{
	for (char *part = path; part; part = strchr(part, '/')) {
		size_t len;

		part += *part == '/';
		len = strcspn(part, "/");
		if (strncmp(part, NAME_START_SYSTEMD, strlen(NAME_START_SYSTEMD)) != 0 &&
		    strncmp(part, NAME_START, strlen(NAME_START)) != 0)
			continue;
		part[len] = '\0';
		return true;
	}
	return false;
}

/* Finds the guest's directory below root; false: there is none. */
static bool directory_find(const struct wss_root *proc, char ret_path[PATH_MAX])
{
	wss_auto_free char *text = NULL;
	char *line, *end;
	size_t len;

	if (wss_root_read(proc, "cgroup", FILE_MAX_BYTES, &text, &len) < 0)
		return false;
	/* The line of version 2 has no controllers; with both versions there are others. */
	line = !strncmp(text, "0::/", 4) ? text : strstr(text, "\n0::/");
	if (!line)
		return false;
	line = strchr(line, '/');
	end = strchrnul(line, '\n');
	*end = '\0';
	/* A path that leaves the mount is that of another namespace. */
	return !strstr(line, "..") && path_cut(line) &&
	       snprintf(ret_path, PATH_MAX, MOUNT "%s", line) < PATH_MAX;
}

/* Reads a file of the directory; NULL if it cannot be read. malloc()ed. */
static char *file_read(const struct wss_root *root, const char *directory, const char *name)
{
	char path[PATH_MAX];
	char *text = NULL;
	size_t len;

	if (snprintf(path, sizeof(path), "%s/%s", directory, name) >= (int)sizeof(path) ||
	    wss_root_read(root, path, FILE_MAX_BYTES, &text, &len) < 0)
		return NULL;
	return text;
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

/* "some avg10=0.00 avg60=0.00 avg300=0.00 total=123" in us, then the same for "full". */
static struct wss_amount stall_of(const char *text)
{
	const char *total = text && !strncmp(text, "some ", 5) ? strstr(text, " total=") : NULL;
	uint64_t value;

	return total && sscanf(total, " total=%" SCNu64, &value) == 1 ? wss_amount_of(value)
								       : (struct wss_amount){0};
}

static struct wss_amount sum_of(struct wss_amount a, struct wss_amount b)
{
	return (struct wss_amount){a.known && b.known, a.value + b.value};
}

struct wss_vmm_cgroup wss_vmm_cgroup_read(const struct wss_root *root, const struct wss_root *proc)
{
	struct wss_vmm_cgroup counts = {.oom_kills = {.known = false}};
	wss_auto_free char *events = NULL, *pressure = NULL, *stat = NULL, *swap = NULL;
	char directory[PATH_MAX];

	if (!directory_find(proc, directory))
		return counts;
	events = file_read(root, directory, "memory.events");
	pressure = file_read(root, directory, "memory.pressure");
	stat = file_read(root, directory, "memory.stat");
	swap = file_read(root, directory, "memory.swap.current");
	counts.oom_kills = number_after(events, "oom_kill ");
	counts.stall_us = stall_of(pressure);
	counts.refaults = sum_of(number_after(stat, "workingset_refault_anon "),
				  number_after(stat, "workingset_refault_file "));
	counts.huge_bytes = sum_of(sum_of(number_after(stat, "anon_thp "), number_after(stat, "shmem_thp ")),
				   number_after(stat, "file_thp "));
	counts.swap_bytes = number_after(swap, "");
	return counts;
}
