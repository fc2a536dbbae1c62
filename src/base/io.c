/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "base/io.h"

#include <errno.h>
#include <unistd.h>

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
		ssize_t n = pwrite(fd, (const char *)data + done, size - done, offset + (off_t)done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -ENOSPC;
		done += (size_t)n;
	}
	return 0;
}

bool wss_io_zeros(int fd, off_t offset)
{
	char data[16384];
	ssize_t n;

	while ((n = wss_io_pread(fd, data, sizeof(data), offset)) > 0) {
		for (ssize_t i = 0; i < n; i++)
			if (data[i])
				return false;
		offset += n;
	}
	return n == 0;
}
