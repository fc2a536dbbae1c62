/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "host/process.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <string.h>
#include <strings.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/privilege.h"
#include "host/procfile.h"

int wss_process_error(const struct wss_process *process, int negative_errno, const char *what,
		      struct wss_error *err)
{
	int number = -negative_errno;

	if (number == ESRCH || (process->pidfd >= 0 && !wss_process_alive(process)))
		return wss_error_set(err, WSS_ERR_GONE, "process %d has exited", process->pid);
	if (number == ENOMEM)
		return wss_error_set(err, WSS_ERR_NO_MEMORY,
				     "out of memory while reading %s of process %d", what,
				     process->pid);
	return wss_privilege_errno(err, number == ENOENT ? WSS_ERR_UNSUPPORTED : WSS_ERR_FAILED,
				   number, WSS_CAPS_PROCESS, "cannot read %s of process %d", what,
				   process->pid);
}

/* Opens a pidfd and the stat file for the process whose directory is already held. */
static int open_pidfd(struct wss_process *process, struct wss_error *err)
{
	struct statfs fs;

	/* If this is not procfs, the number means nothing to this host's kernel. */
	if (fstatfs(process->proc.dirfd, &fs) < 0 || fs.f_type != PROC_SUPER_MAGIC)
		return 0;
	process->pidfd = (int)syscall(SYS_pidfd_open, process->pid, 0);
	if (process->pidfd >= 0) {
		/* If that fails it is opened again each time, which shows why. */
		process->stat = wss_root_openat(&process->proc, "stat", O_RDONLY | O_CLOEXEC);
		return 0;
	}
	if (errno == ESRCH)
		return wss_error_set(err, WSS_ERR_GONE, "no such process: %d", process->pid);
	return wss_error_errno(
		err, errno == ENOSYS || errno == EPERM ? WSS_ERR_UNSUPPORTED : WSS_ERR_FAILED,
		errno, "cannot open a pidfd for process %d", process->pid);
}

int wss_process_check_uuid(const struct wss_process *process, const char *uuid,
			   struct wss_error *err)
{
	wss_auto_free char *cmdline = NULL;
	char comm[64] = "?";
	char found[WSS_UUID_TEXT_MAX];
	size_t len;
	int r = wss_root_read(&process->proc, "cmdline", WSS_CMDLINE_MAX, &cmdline, &len);

	if (r < 0)
		return wss_process_error(process, r, "cmdline", err);
	if (wss_procfile_uuid(cmdline, len, found) && !strcasecmp(found, uuid))
		return 0;
	if (found[0])
		return wss_error_set(err, WSS_ERR_FAILED,
				     "process %d belongs to the guest %s, not to %s", process->pid,
				     found, uuid);
	wss_root_read_line(&process->proc, "comm", comm, sizeof(comm));
	return wss_error_set(err, WSS_ERR_FAILED, "process %d (%s) is not the QEMU of guest %s",
			     process->pid, comm, uuid);
}

int wss_process_check_owner(const struct wss_process *process, uid_t owner, struct wss_error *err)
{
	int r = owner == WSS_UID_ANY ? 1 : wss_procfile_is_owned_by(&process->proc, owner);

	if (r < 0)
		return wss_process_error(process, r, "status", err);
	if (!r)
		return wss_error_set(err, WSS_ERR_FAILED,
				     "process %d does not run as user %u, as the guest's QEMU does",
				     process->pid, owner);
	return 0;
}

/* Fills start_ticks; a zombie counts as gone. */
static int process_check_alive(struct wss_process *process, struct wss_error *err)
{
	struct wss_procfile_stat line;
	int r = process->stat >= 0 ? wss_procfile_read_open_stat(process->stat, &line)
				   : wss_procfile_read_stat(&process->proc, "stat", &line);

	if (r < 0)
		return wss_process_error(process, r, "stat", err);
	if (wss_procfile_exited(line.state) ||
	    (process->start_ticks && process->start_ticks != line.start_ticks))
		return wss_error_set(err, WSS_ERR_GONE, "process %d has exited", process->pid);
	process->start_ticks = line.start_ticks;
	return 0;
}

static void cleanup_release(struct wss_process *process)
{
	wss_process_release(process);
}

int wss_process_hold(const struct wss_root *root, pid_t pid, const char *uuid,
		     struct wss_process *ret_process, struct wss_error *err)
{
	wss_cleanup(cleanup_release) struct wss_process process = WSS_PROCESS_INIT;
	char path[32];
	int fd;

	if (pid <= 0)
		return wss_error_set(err, WSS_ERR_FAILED, "%d is not a process ID", pid);
	process.pid = pid;
	snprintf(path, sizeof(path), "proc/%d", pid);
	fd = wss_root_openat(root, path, O_PATH | O_DIRECTORY);
	if (fd == -ENOENT || fd == -ESRCH)
		return wss_error_set(err, WSS_ERR_GONE, "no such process: %d", pid);
	if (fd < 0)
		return wss_privilege_errno(err, WSS_ERR_UNSUPPORTED, -fd, WSS_CAPS_PROCESS,
					   "cannot open /%s", path);
	process.proc.dirfd = fd;
	if (open_pidfd(&process, err) < 0)
		return -1;
	/* A zombie has no command line: it would be reported as another program, not as gone. */
	if (uuid && (process_check_alive(&process, err) < 0 ||
		     wss_process_check_uuid(&process, uuid, err) < 0))
		return -1;
	/*
	 * The last check reads through the directory that was opened first. If it succeeds,
	 * the pid belonged to this process all the time, including when the pidfd was opened.
	 */
	if (process_check_alive(&process, err) < 0)
		return -1;
	*ret_process = process;
	process = (struct wss_process)WSS_PROCESS_INIT;
	return 0;
}

void wss_process_release(struct wss_process *process)
{
	if (process->pidfd >= 0)
		close(process->pidfd);
	process->pidfd = -1;
	if (process->stat >= 0)
		close(process->stat);
	process->stat = -1;
	wss_file_close_locked(&process->clear_refs);
	wss_file_close_locked(&process->lock);
	wss_root_close(&process->proc);
	process->pid = 0;
	process->start_ticks = 0;
}

bool wss_process_alive(const struct wss_process *process)
{
	struct pollfd pfd = {.fd = process->pidfd, .events = POLLIN};
	char state;
	int r;

	if (process->pidfd < 0)
		return process->proc.dirfd >= 0 &&
		       wss_procfile_read_state(&process->proc, "stat", &state) == 0 &&
		       !wss_procfile_exited(state);
	do
		r = poll(&pfd, 1, 0);
	while (r < 0 && errno == EINTR);
	return r == 0;
}

/* Ranks states: "stopped" applies only if no thread is in another state. */
static int state_rank(char state)
{
	static const char order[] = "TtISDR"; /* in ascending rank */
	const char *at = strchr(order, state);

	return wss_procfile_exited(state) ? -1 : at ? (int)(at - order) : 2;
}

int wss_process_state(const struct wss_process *process, char *ret_state)
{
	wss_auto_dir DIR *dir = NULL;
	char path[64], state, best = 0;
	int r = wss_root_opendir(&process->proc, "task", &dir);

	/* A captured machine may lack the threads' directories. */
	if (r == -ENOENT && process->pidfd < 0 &&
	    wss_procfile_read_state(&process->proc, "stat", &state) == 0)
		best = state;
	else if (r < 0)
		return r == -ENOENT ? -ESRCH : r;
	for (struct dirent *entry; dir && (entry = readdir(dir));) {
		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		snprintf(path, sizeof(path), "task/%.20s/stat", entry->d_name);
		/* Ignore a thread that has ended meanwhile. */
		if (wss_procfile_read_state(&process->proc, path, &state) == 0 &&
		    !wss_procfile_exited(state) && (!best || state_rank(state) > state_rank(best)))
			best = state;
	}
	if (!best || wss_procfile_exited(best))
		return -ESRCH;
	*ret_state = best;
	return 0;
}

int wss_process_signal(const struct wss_process *process, int signal_number)
{
	if (process->pidfd < 0)
		return -ESRCH;
	return syscall(SYS_pidfd_send_signal, process->pidfd, signal_number, NULL, 0) < 0 ? -errno
											  : 0;
}

/*
 * Counts the files that the process has open whose names begin so. Those of the first n_groups names count each; if there
 * are none, all others together as one. -1: there are none, and some cannot be read.
 */
static int files_count(const struct wss_process *process, const char *const *names, size_t n_groups,
		       size_t n)
{
	wss_auto_dir DIR *fds = NULL;
	struct dirent *entry;
	int count = 0, others = 0, unknown = 0;

	if (wss_root_opendir(&process->proc, "fd", &fds) < 0)
		return -1;
	for (errno = 0; (entry = readdir(fds)); errno = 0) {
		char target[64] = "";

		if (readlinkat(dirfd(fds), entry->d_name, target, sizeof(target) - 1) < 0 &&
		    errno != ENOENT && entry->d_name[0] != '.')
			unknown = -1;
		for (size_t i = 0; i < n; i++) {
			if (strncmp(target, names[i], strlen(names[i])) != 0)
				continue;
			if (i < n_groups)
				count++;
			else
				others = 1;
			break;
		}
	}
	if (count || others)
		return count ? count : others;
	return errno ? -1 : unknown;
}

int wss_process_count_passthrough(const struct wss_process *process)
{
	/* A group has a number; the container of all groups is a file beside them. */
	static const char *const devices[] = {
		"/dev/vfio/devices/", "/dev/vhost-vdpa", "/dev/vfio/0",	    "/dev/vfio/1",
		"/dev/vfio/2",	      "/dev/vfio/3",	 "/dev/vfio/4",	    "/dev/vfio/5",
		"/dev/vfio/6",	      "/dev/vfio/7",	 "/dev/vfio/8",	    "/dev/vfio/9",
		"/dev/vfio/noiommu-", "/dev/vfio/",	 "anon_inode:[vfio"};
	size_t n = sizeof(devices) / sizeof(devices[0]);

	return files_count(process, devices, n - 2, n);
}

int wss_process_has_encryption(const struct wss_process *process)
{
	static const char *const files[] = {"/dev/sev", "anon_inode:[kvm-gmem]"};

	return files_count(process, files, 0, sizeof(files) / sizeof(files[0]));
}
