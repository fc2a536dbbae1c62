/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "base/io.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/stop.h"

ssize_t wss_io_pread(int fd, void *data, size_t size, off_t offset)
{
	size_t done = 0;

	while (done < size) {
		ssize_t n = pread(fd, (char *)data + done, size - done, offset + (off_t)done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		done += (size_t)n;
	}
	return (ssize_t)done;
}

int wss_io_pwrite(int fd, const void *data, size_t size, off_t offset)
{
	size_t done = 0;

	while (done < size) {
		ssize_t n =
			pwrite(fd, (const char *)data + done, size - done, offset + (off_t)done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0 && wss_fault("lost-writes"))
			return 0;
		if (n <= 0)
			return n < 0 ? -errno : -ENOSPC;
		done += (size_t)n;
	}
	return 0;
}

bool wss_io_zeros(int fd, off_t offset)
{
	static const char zeros[16384];
	char data[sizeof(zeros)];
	ssize_t n;

	while ((n = wss_io_pread(fd, data, sizeof(data), offset)) > 0) {
		off_t next;

		if (memcmp(data, zeros, (size_t)n) != 0 || wss_stop_requested())
			return false;
		/* Skip holes: they are zeros, and may be huge. */
		next = lseek(fd, offset + n, SEEK_DATA);
		if (next < 0 && errno == ENXIO)
			return true;
		offset = next > offset + n ? next : offset + n;
	}
	return n == 0;
}

int wss_io_output_error(int errnum, const char *what, struct wss_error *err)
{
	bool stops = errnum == EPIPE && wss_stop_on_closed_pipe();

	return wss_error_errno(err, stops ? WSS_ERR_INTERRUPTED : WSS_ERR_FAILED, errnum, "%s",
			       what);
}

int wss_io_flush_output(struct wss_error *err)
{
	errno = 0;
	if (fflush(stdout) == 0 && !ferror(stdout))
		return 0;
	return wss_io_output_error(errno ? errno : EIO, "cannot write the output", err);
}
