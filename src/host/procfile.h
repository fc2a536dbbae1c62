/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Parses the files of a process in /proc: its stat line and its arguments. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/root.h"
#include "host/domxml.h"

#define WSS_CMDLINE_MAX (4U * 1024 * 1024)

/* Fields of /proc/PID/stat: state (3), parent (4), CPU time (14 and 15, added), start time (22). */
struct wss_procfile_stat {
	char state;
	pid_t parent;
	uint64_t cpu_ticks; /* of sysconf(_SC_CLK_TCK) */
	uint64_t start_ticks;
};

/* Reads the stat file at path below root. Returns 0 or negative errno (-EINVAL: malformed). */
int wss_procfile_read_stat(const struct wss_root *root, const char *path,
			   struct wss_procfile_stat *ret);

/* The same from a stat file that is open, wherever it was read before. */
int wss_procfile_read_open_stat(int fd, struct wss_procfile_stat *ret);

/*
 * Reads only the state (field 3) of the stat file at path below root, without memory to allocate and without the
 * rest of the line to parse. Returns 0 or negative errno (-EINVAL: malformed); *ret_state is untouched on failure.
 */
int wss_procfile_read_state(const struct wss_root *root, const char *path, char *ret_state);

/*
 * Whether /proc below root may hide other users' processes from this one: it is mounted with hidepid, whose value is
 * then in ret_value, and PID 1 cannot be read.
 */
bool wss_procfile_hides(const struct wss_root *root, char ret_value[16]);

/* Whether this is the state of an exited process: a zombie, or dead. */
bool wss_procfile_exited(char state);

/*
 * Whether all four user IDs (real, effective, saved, file system) of the process whose
 * directory is dir equal owner. 1 yes, 0 no, or negative errno.
 */
int wss_procfile_is_owned_by(const struct wss_root *dir, uid_t owner);

/* Reads its real user ID. Returns 0 or negative errno. */
int wss_procfile_user(const struct wss_root *dir, uid_t *ret_user);

/*
 * Reads the base name of its executable, by the link exe, which a process cannot choose freely. If the file was
 * replaced or removed, " (deleted)" follows. Returns 0 or negative errno.
 */
int wss_procfile_program(const struct wss_root *dir, char *ret_name, size_t size);

/*
 * Whether the process whose directory is dir looks like QEMU, by what a command line cannot say: the base name of its
 * executable contains "qemu" or "kvm", or it has a VM of KVM's open. 1 yes, 0 no, or negative errno.
 */
int wss_procfile_looks_like_qemu(const struct wss_root *dir);

/*
 * Reads the guest's UUID from the command line of QEMU or cloud-hypervisor, len bytes as /proc shows them: the last of
 * -uuid, with one dash or two, -smbios type=1,uuid=... and --platform uuid=..., as QEMU obeys the last. Returns false,
 * ret_uuid then being "", if there is none, or one that is no UUID.
 */
bool wss_procfile_uuid(const char *cmdline, size_t len, char ret_uuid[WSS_UUID_TEXT_MAX]);

/*
 * Returns the value of an option, "-OPTION VALUE" or "-OPTION=VALUE" with any number of dashes, on a command line, len
 * bytes as /proc shows them: the last, as programs obey that. NULL: there is none. Borrowed from cmdline.
 */
const char *wss_procfile_option(const char *cmdline, size_t len, const char *option);

/*
 * Returns what follows start in the path of one of a process's cgroups, of any hierarchy, which begins so. NULL: no path
 * does. cgroups is the text of /proc/PID/cgroup, of which the result is borrowed: it may end at a newline.
 */
const char *wss_procfile_cgroup(const char *cgroups, const char *start);
