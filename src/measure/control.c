/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "measure/control.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/privilege.h"
#include "base/text.h"
#include "host/procfile.h"
#include "measure/tracker.h"

static int explain_errno(int errnum, struct wss_error *err)
{
	if (errnum == ESRCH || errnum == ENOENT)
		return wss_error_set(err, WSS_ERR_GONE, "the guest's process is gone");
	return wss_privilege_errno(err, WSS_ERR_FAILED, errnum, WSS_CAPS_FILE,
				   "cannot write clear_refs of QEMU's process");
}

/* --- who holds a lock --- */

/*
 * Whether a process of root has the file open. The kernel remembers the number of the process that took a lock,
 * which may have ended after it had passed the file on, and the number may be another's by now.
 */
static bool root_has_open(const struct wss_root *host, pid_t pid, int fd)
{
	wss_auto_close int holder = -1;
	wss_auto_dir DIR *dir = NULL;
	struct stat st, other;
	struct wss_root proc;
	char path[64];

	snprintf(path, sizeof(path), "proc/%d", pid);
	holder = wss_root_openat(host, path, O_PATH | O_DIRECTORY);
	proc.dirfd = holder;
	/* By its status: the owner of these files is root for each process that may not be dumped. */
	if (holder < 0 || wss_procfile_is_owned_by(&proc, 0) != 1 || fstat(fd, &st) < 0 ||
	    wss_root_opendir(&proc, "fd", &dir) < 0)
		return false;
	for (struct dirent *entry; (entry = readdir(dir));)
		if (fstatat(dirfd(dir), entry->d_name, &other, 0) == 0 &&
		    other.st_ino == st.st_ino && other.st_dev == st.st_dev)
			return true;
	return false;
}

static int error_busy(const struct wss_root *host, pid_t holder, struct wss_error *err)
{
	char path[64], command[64] = "?";

	if (!holder)
		return wss_error_set(err, WSS_ERR_BUSY,
				     "another virt-wss is measuring this guest now");
	snprintf(path, sizeof(path), "proc/%d/comm", holder);
	wss_root_read_line(host, path, command, sizeof(command));
	wss_text_sanitize(command);
	return wss_error_set(
		err, WSS_ERR_BUSY,
		"another virt-wss is measuring this guest now: process %d (%s) has locked it",
		holder, command);
}

/* --- root's lock --- */

/* Opens the file with root's locks; -1 with errno if there can be none, -2 if it is not root's alone. */
static int lock_file_open(void)
{
	bool made = mkdir(WSS_CONTROL_DIRECTORY, 0755) == 0;
	wss_auto_close int dir = -1;
	struct stat st;
	int fd;

	dir = open(WSS_CONTROL_DIRECTORY, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0)
		return -1;
	/* Whatever the umask is, others have to reach the service's socket there. */
	if (made && fchmod(dir, 0755) < 0)
		return -1;
	if (fstat(dir, &st) < 0 || st.st_uid != 0 || (st.st_mode & 0022))
		return -2;
	fd = openat(dir, WSS_CONTROL_FILE, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd >= 0 &&
	    (fstat(fd, &st) < 0 || st.st_uid != 0 || (st.st_mode & 0077) || !S_ISREG(st.st_mode))) {
		close(fd);
		return -2;
	}
	return fd;
}

/* Returns 1 with the lock taken, 0 if there can be none, or -1. */
static int root_lock_take(const struct wss_root *host, const struct wss_process *process,
			  int *ret_fd, struct wss_error *err)
{
	wss_auto_close int fd = lock_file_open();
	int32_t holder = 0, self = getpid();
	off_t place = (off_t)process->pid * (off_t)sizeof(holder);

	if (fd == -2)
		return wss_error_set(
			err, WSS_ERR_FAILED,
			WSS_CONTROL_DIRECTORY
			"/" WSS_CONTROL_FILE
			" cannot lock the guest: file and directory must be root's, and writable by nobody else");
	if (fd < 0)
		return 0;
	if (wss_file_lock(fd, process->pid, 0, err) < 0) {
		if (err->code != WSS_ERR_BUSY)
			return wss_error_prefix(err, WSS_CONTROL_DIRECTORY "/" WSS_CONTROL_FILE);
		wss_error_clear(err);
		if (pread(fd, &holder, sizeof(holder), place) != sizeof(holder))
			holder = 0;
		return error_busy(host, holder, err);
	}
	/* For those who find it locked; on a full file system they do not learn who it is. */
	if (pwrite(fd, &self, sizeof(self), place) != sizeof(self))
		wss_log(WSS_LOG_DEBUG,
			WSS_CONTROL_DIRECTORY "/" WSS_CONTROL_FILE ": cannot note our process ID");
	*ret_fd = wss_steal_fd(&fd);
	return 1;
}

/* host stands for "/", whatever the guest's process was found through: locks are those of this host. */
static int control_take(const struct wss_root *host, struct wss_process *process,
			struct wss_error *err)
{
	wss_auto_close int fd = -1, lock = -1;
	pid_t holder;
	int has_lock = 0;

	process->intruder = 0;
	if (process->clear_refs >= 0)
		return error_busy(host, getpid(), err);
	fd = wss_root_openat(&process->proc, "clear_refs", O_WRONLY);
	if (fd < 0) {
		int errnum = -fd;

		fd = -1;
		return explain_errno(errnum, err);
	}
	if (geteuid() == 0 && (has_lock = root_lock_take(host, process, &lock, err)) < 0)
		return -1;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK)
			return wss_error_errno(err, WSS_ERR_FAILED, errno, "cannot lock the guest");
		holder = wss_root_flock_holder(host, fd);
		if (!has_lock || root_has_open(host, holder, fd))
			return error_busy(host, holder, err);
		process->intruder = holder ? holder : -1;
	}
	process->clear_refs = wss_steal_fd(&fd);
	process->lock = wss_steal_fd(&lock);
	return 0;
}

int wss_control_take(struct wss_process *process, struct wss_error *err)
{
	struct wss_root host;
	int r;

	if (wss_root_open("/", &host, err) < 0)
		return -1;
	r = control_take(&host, process, err);
	wss_root_close(&host);
	return r;
}

void wss_control_release(struct wss_process *process)
{
	wss_file_close_locked(&process->clear_refs);
	wss_file_close_locked(&process->lock);
}

int wss_control_clear(const struct wss_process *process, char value, struct wss_span *ret_span,
		      struct wss_error *err)
{
	const char text[] = {value, '\n'};
	ssize_t n;

	if (process->clear_refs < 0)
		return wss_error_set(err, WSS_ERR_FAILED, "the lock on the guest is lost");
	ret_span->start_ns = wss_clock_now_ns();
	/* clear_refs_write() returns -EINTR before it has done anything. */
	do
		n = pwrite(process->clear_refs, text, sizeof(text), 0);
	while (n < 0 && errno == EINTR);
	ret_span->end_ns = wss_clock_now_ns();
	return n < 0 ? explain_errno(errno, err) : 0;
}

int wss_control_probe(const struct wss_process *process, struct wss_error *err)
{
	if (faccessat(process->proc.dirfd, "clear_refs", W_OK, AT_EACCESS) < 0)
		return explain_errno(errno, err);
	return 0;
}
