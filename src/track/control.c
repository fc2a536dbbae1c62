/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "track/control.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "track/tracker.h"

static int explain_errno(int errnum, struct wss_error *err)
{
	if (errnum == EACCES || errnum == EPERM)
		return wss_error_set(err, WSS_ERR_UNSUPPORTED,
				     "no permission to measure QEMU's process: run as root, or as the guest's own user");
	if (errnum == ESRCH || errnum == ENOENT)
		return wss_error_set(err, WSS_ERR_GONE, "the guest's process is gone");
	return wss_error_errno(err, WSS_ERR_FAILED, errnum, "cannot use the process's clear_refs");
}

static int error_busy(struct wss_error *err)
{
	return wss_error_set(err, WSS_ERR_BUSY, "another virt-wss is measuring this guest now");
}

int wss_control_take(struct wss_process *process, struct wss_error *err)
{
	wss_auto_close int fd = -1;

	if (process->clear_refs >= 0)
		return error_busy(err);
	fd = wss_root_openat(&process->proc, "clear_refs", O_WRONLY);
	if (fd < 0) {
		int errnum = -fd;

		fd = -1;
		return explain_errno(errnum, err);
	}
	if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		if (errno == EWOULDBLOCK)
			return error_busy(err);
		return wss_error_errno(err, WSS_ERR_FAILED, errno, "cannot lock the guest");
	}
	process->clear_refs = wss_steal_fd(&fd);
	return 0;
}

void wss_control_release(struct wss_process *process)
{
	if (process->clear_refs >= 0)
		close(wss_steal_fd(&process->clear_refs));
}

int wss_control_clear(const struct wss_process *process, char value, struct wss_span *ret_span,
		      struct wss_error *err)
{
	const char text[] = { value, '\n' };
	ssize_t n;

	if (process->clear_refs < 0)
		return wss_error_set(err, WSS_ERR_FAILED, "the guest's lock is not held");
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
