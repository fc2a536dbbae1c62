/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "base/root.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/cleanup.h"

int wss_root_open(const char *path, struct wss_root *ret_root, struct wss_error *err)
{
	int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return wss_error_errno(err, WSS_ERR_FAILED, errno, "cannot open directory %s",
				       path);
	ret_root->dirfd = fd;
	return 0;
}

void wss_root_close(struct wss_root *root)
{
	if (root->dirfd >= 0)
		close(root->dirfd);
	root->dirfd = -1;
}

int wss_root_openat(const struct wss_root *root, const char *path, int flags)
{
	int fd = openat(root->dirfd, path, flags | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* O_NONBLOCK: a FIFO in place of a file in /run must not make open() wait for a writer. */
static int open_to_read(const struct wss_root *root, const char *path)
{
	wss_auto_close int fd = wss_root_openat(root, path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	return S_ISREG(st.st_mode) || S_ISDIR(st.st_mode) ? wss_steal_fd(&fd) : -EINVAL;
}

int wss_root_read(const struct wss_root *root, const char *path, size_t max, char **ret_text,
		  size_t *ret_len)
{
	wss_auto_close int fd = open_to_read(root, path);
	wss_auto_free char *text = NULL;
	size_t len = 0, size = 0;

	if (fd < 0)
		return fd;
	/* /proc files report no size: grow the buffer until end of file. */
	for (;;) {
		ssize_t n;

		if (len + 1 >= size) {
			char *bigger = realloc(text, size = size ? size * 2 : 4096);

			if (!bigger)
				return -ENOMEM;
			text = bigger;
		}
		n = read(fd, text + len, size - len - 1);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		len += (size_t)n;
		if (len > max)
			return -EFBIG;
	}
	text[len] = '\0';
	*ret_text = wss_steal_ptr(text);
	if (ret_len)
		*ret_len = len;
	return 0;
}

int wss_root_read_line(const struct wss_root *root, const char *path, char *buf, size_t size)
{
	wss_auto_close int fd = open_to_read(root, path);
	ssize_t n;

	if (fd < 0)
		return fd;
	do
		n = read(fd, buf, size - 1);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	buf[n] = '\0';
	buf[strcspn(buf, "\n")] = '\0';
	return 0;
}

int wss_root_read_u64(const struct wss_root *root, const char *path, uint64_t *ret_value)
{
	char line[64], *end;
	unsigned long long value;
	int r = wss_root_read_line(root, path, line, sizeof(line));

	if (r < 0)
		return r;
	if (line[0] < '0' || line[0] > '9')
		return -EINVAL;
	errno = 0;
	value = strtoull(line, &end, 10);
	if (errno || end[strspn(end, " \t")])
		return -EINVAL;
	*ret_value = value;
	return 0;
}

int wss_root_fopen(const struct wss_root *root, const char *path, FILE **ret_file)
{
	wss_auto_close int fd = open_to_read(root, path);
	FILE *f;

	if (fd < 0)
		return fd;
	f = fdopen(fd, "re");
	if (!f)
		return -errno;
	wss_steal_fd(&fd);
	*ret_file = f;
	return 0;
}

int wss_root_opendir(const struct wss_root *root, const char *path, DIR **ret_dir)
{
	wss_auto_close int fd = wss_root_openat(root, path, O_RDONLY | O_DIRECTORY);
	DIR *d;

	if (fd < 0)
		return fd;
	d = fdopendir(fd);
	if (!d)
		return -errno;
	wss_steal_fd(&fd);
	*ret_dir = d;
	return 0;
}

pid_t wss_root_flock_holder(const struct wss_root *root, int fd)
{
	wss_auto_file FILE *locks = NULL;
	unsigned major, minor;
	unsigned long inode;
	char line[256];
	struct stat st;
	int pid;

	if (wss_root_fopen(root, "proc/locks", &locks) < 0 || fstat(fd, &st) < 0)
		return 0;
	while (fgets(line, sizeof(line), locks))
		if (sscanf(line, "%*d: FLOCK %*s %*s %d %x:%x:%lu", &pid, &major, &minor, &inode) ==
			    4 &&
		    inode == st.st_ino && makedev(major, minor) == st.st_dev)
			return pid > 0 ? pid : 0;
	return 0;
}
