/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "host/process-find.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/privilege.h"
#include "host/domxml.h"
#include "host/procfile.h"

#define MATCHES_MAX 16

struct match {
	pid_t pid;
	pid_t parent;
};

struct search {
	const char *uuid;
	uid_t owner;
	pid_t recorded; /* in libvirt's files, in whatever pid namespace; 0: none */
	size_t n;
	struct match matches[MATCHES_MAX];
	bool denied;  /* some process could not be read */
	bool others;  /* another user's process claims the guest's UUID */
	pid_t unlike; /* a process that claims it, and does not look like QEMU; 0: none */
};

static void cleanup_root(struct wss_root *root)
{
	wss_root_close(root);
}

/* Whether number is one of the process's pids in its namespaces. */
static bool has_namespace_pid(const struct wss_root *root, pid_t pid, pid_t number)
{
	wss_auto_free char *text = NULL;
	char path[32], *next, *line;

	snprintf(path, sizeof(path), "proc/%d/status", pid);
	if (wss_root_read(root, path, 64 * 1024, &text, NULL) < 0)
		return false;
	line = strstr(text, "\nNSpid:");
	if (!line)
		return false;
	for (line += strlen("\nNSpid:"); *line && *line != '\n'; line = next) {
		long value = strtol(line, &next, 10);

		if (next == line)
			return false;
		if (value == number)
			return true;
	}
	return false;
}

/* Whether a process with the guest's UUID is its QEMU: it looks like one, or libvirt's files name it. */
static int process_is_qemu(struct search *search, const struct wss_root *root, pid_t pid,
			   const struct wss_root *dir)
{
	int r = wss_procfile_looks_like_qemu(dir);

	if (r == 0 && search->recorded && has_namespace_pid(root, pid, search->recorded))
		r = 1;
	if (r == 0)
		search->unlike = pid;
	return r;
}

/* Whether the process with directory dir is the wanted one. Returns 1, 0, or a negative errno. */
static int process_is_wanted(struct search *search, const struct wss_root *root, pid_t pid,
			     const struct wss_root *dir)
{
	wss_auto_free char *cmdline = NULL;
	char found[WSS_UUID_TEXT_MAX];
	size_t len;
	int r = wss_root_read(dir, "cmdline", WSS_CMDLINE_MAX, &cmdline, &len);

	if (r < 0)
		return r;
	if (!wss_procfile_uuid(cmdline, len, found) || strcasecmp(found, search->uuid))
		return 0;
	r = process_is_qemu(search, root, pid, dir);
	if (r == 0 || (r < 0 && r != -EACCES && r != -EPERM))
		return r;
	r = search->owner == WSS_UID_ANY ? 1 : wss_procfile_is_owned_by(dir, search->owner);
	search->others |= r == 0;
	return r;
}

static void search_process(struct search *search, const struct wss_root *root, const char *pid)
{
	wss_cleanup(cleanup_root) struct wss_root dir = {.dirfd = -1};
	struct wss_procfile_stat line;
	char path[64];
	int r;

	snprintf(path, sizeof(path), "proc/%.20s", pid);
	r = dir.dirfd = wss_root_openat(root, path, O_PATH | O_DIRECTORY);
	if (r >= 0)
		r = process_is_wanted(search, root, atoi(pid), &dir);
	if (r == -EACCES || r == -EPERM)
		search->denied = true;
	if (r <= 0 || wss_procfile_read_stat(&dir, "stat", &line) < 0 ||
	    wss_procfile_exited(line.state))
		return;
	if (search->n < MATCHES_MAX)
		search->matches[search->n++] = (struct match){atoi(pid), line.parent};
}

static void read_program(const struct wss_root *root, pid_t pid, char ret_path[PATH_MAX])
{
	char link[32];
	ssize_t len;

	snprintf(link, sizeof(link), "proc/%d/exe", pid);
	len = readlinkat(root->dirfd, link, ret_path, PATH_MAX - 1);
	ret_path[len < 0 ? 0 : len] = '\0';
}

static bool is_still_wanted(struct search *search, const struct wss_root *root, pid_t pid)
{
	wss_cleanup(cleanup_root) struct wss_root dir = {.dirfd = -1};
	char path[32];

	snprintf(path, sizeof(path), "proc/%d", pid);
	dir.dirfd = wss_root_openat(root, path, O_PATH | O_DIRECTORY);
	return dir.dirfd >= 0 && process_is_wanted(search, root, pid, &dir) > 0;
}

/*
 * Whether a child is about to run something else: between fork and exec it still shows the
 * command line of its parent. One that keeps that and runs another program may be QEMU itself,
 * below a wrapper that passes its own options on. Programs that cannot be read count as the same.
 */
static bool is_mere_child(struct search *search, const struct wss_root *root,
			  const struct match *child)
{
	char program[PATH_MAX], of_parent[PATH_MAX];

	read_program(root, child->pid, program);
	read_program(root, child->parent, of_parent);
	return !program[0] || !of_parent[0] || !strcmp(program, of_parent) ||
	       !is_still_wanted(search, root, child->pid);
}

static void drop_children(struct search *search, const struct wss_root *root)
{
	const struct search all = *search;
	size_t kept = 0;

	for (size_t i = 0; i < all.n; i++) {
		bool is_child = false;

		for (size_t j = 0; j < all.n; j++)
			is_child |= all.matches[j].pid == all.matches[i].parent;
		if (!is_child || !is_mere_child(search, root, &all.matches[i]))
			search->matches[kept++] = all.matches[i];
	}
	search->n = kept;
}

static int refuse_several(const struct search *search, struct wss_error *err)
{
	char pids[MATCHES_MAX * 12 + 1] = "";
	size_t len = 0;

	for (size_t i = 0; i < search->n; i++)
		len += (size_t)snprintf(pids + len, sizeof(pids) - len, " %d",
					search->matches[i].pid);
	return wss_error_set(err, WSS_ERR_FAILED,
			     "several processes claim to be the guest %s: pids%s%s", search->uuid,
			     pids, search->n == MATCHES_MAX ? " ..." : "");
}

static int refuse_none(const struct search *search, const struct wss_root *root,
		       struct wss_error *err)
{
	char hidepid[16];

	if (search->others)
		return wss_error_set(err, WSS_ERR_FAILED,
				     "no QEMU with -uuid %s runs as user %u, as this guest's does",
				     search->uuid, search->owner);
	if (wss_procfile_hides(root, hidepid))
		return wss_error_set(
			err, WSS_ERR_UNSUPPORTED,
			"no QEMU with -uuid %s among the processes that virt-wss sees: /proc is mounted with "
			"hidepid=%s, which hides those of other users: run virt-wss as root, or give it "
			"CAP_SYS_PTRACE",
			search->uuid, hidepid);
	if (search->denied)
		return wss_privilege_errno(
			err, WSS_ERR_UNSUPPORTED, EACCES, WSS_CAPS_PROCESS,
			"no QEMU with -uuid %s among the processes that virt-wss may read",
			search->uuid);
	if (search->unlike)
		return wss_error_set(
			err, WSS_ERR_GONE,
			"no QEMU on this host has -uuid %s: process %d has it, but is not named like QEMU, has no VM "
			"of KVM's, and is not in libvirt's files",
			search->uuid, search->unlike);
	return wss_error_set(err, WSS_ERR_GONE, "no QEMU on this host has -uuid %s", search->uuid);
}

/* Like wss_process_find(); recorded_pid (0: none) counts as QEMU, and decides among several. */
static int find_process(const struct wss_root *root, const char *uuid, uid_t owner,
			pid_t recorded_pid, pid_t *ret_pid, struct wss_error *err)
{
	struct search search = {.uuid = uuid, .owner = owner, .recorded = recorded_pid};
	wss_auto_dir DIR *dir = NULL;
	pid_t pid = 0;
	size_t listed = 0;
	int r = wss_root_opendir(root, "proc", &dir);

	if (r < 0)
		return wss_error_errno(err, WSS_ERR_UNSUPPORTED, -r, "cannot read /proc");
	for (struct dirent *entry; (entry = readdir(dir));)
		if (strspn(entry->d_name, "0123456789") == strlen(entry->d_name) &&
		    atoi(entry->d_name) != getpid())
			search_process(&search, root, entry->d_name);
	drop_children(&search, root);
	for (size_t i = 0; i < search.n && recorded_pid && search.n > 1; i++) {
		if (has_namespace_pid(root, search.matches[i].pid, recorded_pid)) {
			pid = search.matches[i].pid;
			listed++;
		}
	}
	if (search.n == 1 || listed == 1) {
		*ret_pid = search.n == 1 ? search.matches[0].pid : pid;
		return 0;
	}
	return search.n ? refuse_several(&search, err) : refuse_none(&search, root, err);
}

int wss_process_find(const struct wss_root *root, const char *uuid, uid_t owner, pid_t *ret_pid,
		     struct wss_error *err)
{
	return find_process(root, uuid, owner, 0, ret_pid, err);
}

/*
 * Whether libvirt may have written that file. The directory may be writable for others, whose
 * files do not count.
 */
static bool file_is_trusted(const struct wss_root *dir, const struct stat *file)
{
	struct stat st;

	return file->st_uid == 0 || file->st_uid == geteuid() ||
	       (fstat(dir->dirfd, &st) == 0 && st.st_uid == file->st_uid);
}

/*
 * Reads a regular file below dir, not through a link, into a string; NULL if it is anything
 * else.
 */
static char *read_regular(const struct wss_root *dir, const char *name, size_t max)
{
	/* O_NONBLOCK: opening a FIFO must not wait for its writer. */
	wss_auto_close int fd = wss_root_openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
	wss_auto_free char *text = NULL;
	struct stat st;
	size_t len = 0;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || !file_is_trusted(dir, &st) ||
	    st.st_size < 0 || (uint64_t)st.st_size > max)
		return NULL;
	text = malloc((size_t)st.st_size + 1);
	while (text && len < (size_t)st.st_size) {
		ssize_t n = read(fd, text + len, (size_t)st.st_size - len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		len += (size_t)n;
	}
	if (text)
		text[len] = '\0';
	return wss_steal_ptr(text);
}

static pid_t parse_pid(const char *text)
{
	char *end;
	long pid;

	if (!isdigit((unsigned char)text[0]))
		return 0;
	errno = 0;
	pid = strtol(text, &end, 10);
	return !errno && pid <= INT_MAX && !end[strspn(end, " \t\r\n")] ? (pid_t)pid : 0;
}

/* Reads the guest's pid from libvirt's files in dir, or returns 0. */
static pid_t recorded_pid(const struct wss_root *dir, const char *name, const char *uuid)
{
	wss_auto_free char *pid_text = NULL, *status = NULL;
	char file[NAME_MAX + 1], found_uuid[WSS_UUID_TEXT_MAX];
	pid_t pid;
	int status_pid;

	if (snprintf(file, sizeof(file), "%s.pid", name) >= (int)sizeof(file))
		return 0;
	pid_text = read_regular(dir, file, 64);
	pid = pid_text ? parse_pid(pid_text) : 0;
	if (pid)
		return pid;
	snprintf(file, sizeof(file), "%s.xml", name);
	status = read_regular(dir, file, WSS_DOMXML_MAX);
	if (!status || wss_domxml_parse_status(status, &status_pid, found_uuid, NULL) < 0 ||
	    strcasecmp(found_uuid, uuid))
		return 0;
	return status_pid;
}

static bool is_domain_name(const char *name)
{
	return name[0] && !strchr(name, '/') && strcmp(name, ".") && strcmp(name, "..");
}

/* Holds a process of the guest, which must run as owner. */
static int hold_process(const struct wss_root *root, pid_t pid, const char *uuid, uid_t owner,
			struct wss_process *ret_process, struct wss_error *err)
{
	struct wss_process process;

	if (wss_process_hold(root, pid, uuid, &process, err) < 0)
		return -1;
	if (wss_process_check_owner(&process, owner, err) < 0) {
		wss_process_release(&process);
		return -1;
	}
	*ret_process = process;
	return 0;
}

/* The pid in libvirt's files; 0: there is none. */
static pid_t find_recorded(const struct wss_root *root, const char *run_dir, const char *name,
			   const char *uuid)
{
	wss_cleanup(cleanup_root) struct wss_root dir = {.dirfd = -1};

	run_dir += strspn(run_dir, "/");
	if (is_domain_name(name))
		dir.dirfd = wss_root_openat(root, run_dir[0] ? run_dir : ".", O_PATH | O_DIRECTORY);
	return dir.dirfd >= 0 ? recorded_pid(&dir, name, uuid) : 0;
}

int wss_process_attach_recorded(const struct wss_root *root, const char *run_dir, const char *name,
				const char *uuid, struct wss_process *ret_process,
				struct wss_error *err)
{
	pid_t pid = find_recorded(root, run_dir, name, uuid);

	if (!pid)
		return wss_error_set(err, WSS_ERR_GONE, "libvirt's files name no process of %s",
				     uuid);
	return wss_process_hold(root, pid, uuid, ret_process, err);
}

int wss_process_attach(const struct wss_root *root, const char *run_dir, const char *name,
		       const char *uuid, uid_t owner, struct wss_process *ret_process,
		       struct wss_error *err)
{
	pid_t recorded = find_recorded(root, run_dir, name, uuid), pid;
	struct wss_error tried = WSS_ERROR_INIT;

	if (recorded) {
		if (hold_process(root, recorded, uuid, owner, ret_process, &tried) == 0)
			return 0;
		if (tried.code != WSS_ERR_GONE && tried.code != WSS_ERR_FAILED)
			return wss_error_set(err, tried.code, "%s", tried.text);
	}
	if (find_process(root, uuid, owner, recorded, &pid, err) < 0)
		return -1;
	return hold_process(root, pid, uuid, owner, ret_process, err);
}
