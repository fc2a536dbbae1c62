/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Slows down calls of a program that loads this by LD_PRELOAD, as only tests do: a disk, a file of /proc or a server
 * that is slow, but does not fail.
 *
 * WSS_SLOW=CALLS:SECONDS delays each of these calls, separated by commas, on the directory WSS_SLOW_DIR, and on files
 * in it whose name matches the pattern WSS_SLOW_NAME, while the file WSS_SLOW_WHEN exists, to which each delayed call
 * adds a line. CALLS are open, read, write, sync, rename, stat and connect, to a UNIX socket: each stands for all of its
 * kind.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static bool is_wanted(const char *call)
{
	const char *calls = getenv("WSS_SLOW"), *at = calls ? strstr(calls, call) : NULL;

	return at && (at == calls || at[-1] == ',') &&
	       (at[strlen(call)] == ',' || at[strlen(call)] == ':');
}

static void delay(const char *call, const char *path)
{
	const char *directory = getenv("WSS_SLOW_DIR"), *name = getenv("WSS_SLOW_NAME"),
		   *when = getenv("WSS_SLOW_WHEN");
	size_t len = directory ? strlen(directory) : 0;
	struct timespec time = {0};
	double seconds;
	char line[PATH_MAX + 32];
	int fd;

	if (!len || !name || !when || strncmp(path, directory, len) != 0 ||
	    (path[len] && (path[len] != '/' || fnmatch(name, path + len + 1, 0) != 0)) ||
	    (fd = REAL(open)(when, O_WRONLY | O_APPEND | O_CLOEXEC)) < 0)
		return;
	snprintf(line, sizeof(line), "%s %s\n", call, path);
	if (REAL(write)(fd, line, strlen(line)) < 0)
		abort();
	close(fd);
	seconds = strtod(strchr(getenv("WSS_SLOW"), ':') + 1, NULL);
	time.tv_sec = (time_t)seconds;
	time.tv_nsec = (long)((seconds - (double)time.tv_sec) * 1e9);
	nanosleep(&time, NULL);
}

static void slow_fd(const char *call, int fd)
{
	char link[64], path[PATH_MAX];
	ssize_t n;

	if (!is_wanted(call))
		return;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof(path) - 1);
	if (n <= 0)
		return;
	path[n] = '\0';
	delay(call, path);
}

static void slow_path(const char *call, int dirfd, const char *name)
{
	char link[64], directory[PATH_MAX], path[2 * PATH_MAX];
	ssize_t n;

	if (!is_wanted(call))
		return;
	if (name[0] == '/') {
		delay(call, name);
		return;
	}
	snprintf(link, sizeof(link), dirfd == AT_FDCWD ? "/proc/self/cwd" : "/proc/self/fd/%d",
		 dirfd);
	n = readlink(link, directory, sizeof(directory) - 1);
	if (n <= 0)
		return;
	directory[n] = '\0';
	snprintf(path, sizeof(path), "%s/%s", directory[1] ? directory : "", name);
	delay(call, path);
}

EXPORT int fsync(int fd)
{
	slow_fd("sync", fd);
	return REAL(fsync)(fd);
}

EXPORT int fdatasync(int fd)
{
	slow_fd("sync", fd);
	return REAL(fdatasync)(fd);
}

EXPORT ssize_t write(int fd, const void *data, size_t size)
{
	slow_fd("write", fd);
	return REAL(write)(fd, data, size);
}

EXPORT ssize_t pwrite(int fd, const void *data, size_t size, off_t offset)
{
	slow_fd("write", fd);
	return REAL(pwrite)(fd, data, size, offset);
}

EXPORT ssize_t pwrite64(int fd, const void *data, size_t size, off64_t offset)
{
	slow_fd("write", fd);
	return REAL(pwrite64)(fd, data, size, offset);
}

EXPORT ssize_t read(int fd, void *data, size_t size)
{
	slow_fd("read", fd);
	return REAL(read)(fd, data, size);
}

EXPORT ssize_t pread(int fd, void *data, size_t size, off_t offset)
{
	slow_fd("read", fd);
	return REAL(pread)(fd, data, size, offset);
}

EXPORT ssize_t pread64(int fd, void *data, size_t size, off64_t offset)
{
	slow_fd("read", fd);
	return REAL(pread64)(fd, data, size, offset);
}

EXPORT int renameat(int from_fd, const char *from, int to_fd, const char *to)
{
	slow_path("rename", to_fd, to);
	return REAL(renameat)(from_fd, from, to_fd, to);
}

EXPORT int linkat(int from_fd, const char *from, int to_fd, const char *to, int flags)
{
	slow_path("rename", to_fd, to);
	return REAL(linkat)(from_fd, from, to_fd, to, flags);
}

EXPORT int stat(const char *path, struct stat *st)
{
	slow_path("stat", AT_FDCWD, path);
	return REAL(stat)(path, st);
}

EXPORT int lstat(const char *path, struct stat *st)
{
	slow_path("stat", AT_FDCWD, path);
	return REAL(lstat)(path, st);
}

EXPORT int connect(int fd, const struct sockaddr *address, socklen_t size)
{
	const struct sockaddr_un *server = (const struct sockaddr_un *)address;

	if (address->sa_family == AF_UNIX && server->sun_path[0])
		slow_path("connect", AT_FDCWD, server->sun_path);
	return REAL(connect)(fd, address, size);
}

#define MODE_OF(flags)                                 \
	({                                             \
		mode_t mode_ = 0;                      \
		if ((flags) & (O_CREAT | O_TMPFILE)) { \
			va_list ap;                    \
			va_start(ap, flags);           \
			mode_ = va_arg(ap, mode_t);    \
			va_end(ap);                    \
		}                                      \
		mode_;                                 \
	})

EXPORT int open(const char *path, int flags, ...)
{
	mode_t mode = MODE_OF(flags);

	slow_path("open", AT_FDCWD, path);
	return REAL(open)(path, flags, mode);
}

EXPORT int open64(const char *path, int flags, ...)
{
	mode_t mode = MODE_OF(flags);

	slow_path("open", AT_FDCWD, path);
	return REAL(open64)(path, flags, mode);
}

EXPORT int openat(int dirfd, const char *path, int flags, ...)
{
	mode_t mode = MODE_OF(flags);

	slow_path("open", dirfd, path);
	return REAL(openat)(dirfd, path, flags, mode);
}

EXPORT int openat64(int dirfd, const char *path, int flags, ...)
{
	mode_t mode = MODE_OF(flags);

	slow_path("open", dirfd, path);
	return REAL(openat64)(dirfd, path, flags, mode);
}
