/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "base/file.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/stop.h"

#define LOCK_STEP_NS (2 * WSS_NS_PER_MS)
#define LOCK_STOP_NS (200 * WSS_NS_PER_MS)
/* poll() guarantees room for this many bytes in a pipe, so that writing them does not block.
 */
#define PIECE_BYTES 4096
/* As many as the kernel follows (path_resolution(7)). */
#define LINKS_MAX 40

static int open_failed(int errnum, struct wss_error *err)
{
	return wss_error_errno(err, errnum == ENOENT ? WSS_ERR_GONE : WSS_ERR_FAILED, errnum,
			       "cannot open it");
}

static bool names_directory(const char *name)
{
	return !*name || !strcmp(name, ".") || !strcmp(name, "..");
}

/*
 * Opens a directory below the directory at. *links counts the links that were followed. Returns -1 with errno, EPERM
 * for another user's link.
 */
static int directory_open(int at, const char *path, unsigned *links)
{
	wss_auto_close int fd =
		openat(at, *path == '/' ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);

	while (fd >= 0 && *(path += strspn(path, "/"))) {
		char name[NAME_MAX + 1], target[PATH_MAX];
		size_t len = strcspn(path, "/");
		struct stat st;
		ssize_t n;
		int next;

		if (len > NAME_MAX) {
			errno = ENAMETOOLONG;
			return -1;
		}
		snprintf(name, sizeof(name), "%.*s", (int)len, path);
		next = openat(fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
		if (next >= 0 && fstat(next, &st) == 0 && S_ISLNK(st.st_mode)) {
			n = readlinkat(next, "", target, sizeof(target) - 1);
			close(next);
			errno = geteuid() == 0 && st.st_uid != 0 ? EPERM : n <= 0 ? ENOENT : ELOOP;
			if (errno != ELOOP || ++*links > LINKS_MAX)
				return -1;
			target[n] = '\0';
			next = directory_open(fd, target, links);
		}
		if (next < 0)
			return -1;
		close(fd);
		fd = next;
		path += len;
	}
	return fd < 0 ? -1 : openat(fd, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
}

int wss_place_find(const char *path, struct wss_place *ret_place, struct wss_error *err)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	wss_auto_free char *directory = slash ? strndup(path, (size_t)(name - path)) : strdup(".");
	wss_auto_free char *copy = strdup(name);
	unsigned links = 0;
	int fd;

	if (!directory || !copy)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	if (names_directory(name))
		return wss_error_set(err, WSS_ERR_FAILED,
				     *path ? "it is a directory, not a regular file"
					   : "no file named");
	fd = directory_open(AT_FDCWD, directory, &links);
	if (fd < 0 && errno == EPERM)
		return wss_error_set(
			err, WSS_ERR_FAILED,
			"a symbolic link on the way belongs to another user, who could redirect it");
	if (fd < 0)
		return wss_error_errno(err, errno == ENOENT ? WSS_ERR_GONE : WSS_ERR_FAILED, errno,
				       "cannot open its directory");
	*ret_place = (struct wss_place){fd, wss_steal_ptr(copy)};
	return 0;
}

void wss_place_release(struct wss_place *place)
{
	if (place->dirfd >= 0)
		close(place->dirfd);
	free(place->name);
	*place = (struct wss_place)WSS_PLACE_INIT;
}

/*
 * Whether a group is root's or the caller's own; its members are trusted like root and the
 * caller.
 */
static bool is_own_group(gid_t gid)
{
	return gid == 0 || gid == getegid();
}

/*
 * Whether an access control list names users or groups. The group's bits of the mode are then the
 * most that any of them may do (acl(5)).
 */
static bool has_access_list(const char *path)
{
	return lgetxattr(path, "system.posix_acl_access", NULL, 0) > 0;
}

int wss_file_check_private(const char *path, const struct stat *st, const char *what,
			   struct wss_error *err)
{
	if (st->st_uid != 0 && st->st_uid != geteuid())
		return wss_error_set(
			err, WSS_ERR_FAILED,
			"%s belongs to another user (uid %lu): it must be yours or root's", what,
			(unsigned long)st->st_uid);
	if ((st->st_mode & S_IWOTH) ||
	    ((st->st_mode & S_IWGRP) && (!is_own_group(st->st_gid) || has_access_list(path))))
		return wss_error_set(
			err, WSS_ERR_FAILED,
			"other users may write to %s: only you and root must be able to", what);
	return 0;
}

/*
 * Checks a directory whose path has no links, and those above it: from the top, so that nobody can replace one that
 * has been checked.
 */
static int directory_check_private(const char *directory, struct wss_error *err)
{
	for (const char *end = directory;; end = strchrnul(end + 1, '/')) {
		bool is_last = !end[end == directory];
		wss_auto_free char *path =
			strndup(directory, end == directory ? 1 : (size_t)(end - directory));
		struct stat st;

		if (!path)
			return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
		if (lstat(path, &st) < 0 || !S_ISDIR(st.st_mode))
			return wss_error_set(err, WSS_ERR_FAILED, "cannot examine its directory");
		/* In a sticky directory a file can be replaced only by its owner, and by the owner of the directory. */
		if (!is_last && (st.st_mode & S_ISVTX))
			st.st_mode &= ~(mode_t)(S_IWGRP | S_IWOTH);
		if (wss_file_check_private(path, &st, is_last ? "its directory" : path, err) < 0)
			return -1;
		if (is_last)
			return 0;
	}
}

int wss_place_resolve_private(const char *path, char **ret_path, struct wss_error *err)
{
	wss_auto_place struct wss_place place = WSS_PLACE_INIT;
	char link[32], directory[PATH_MAX];
	ssize_t n;

	if (wss_place_find(path, &place, err) < 0)
		return -1;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", place.dirfd);
	n = readlink(link, directory, sizeof(directory) - 1);
	if (n < 0)
		return wss_error_errno(err, WSS_ERR_FAILED, errno, "cannot examine its directory");
	directory[n] = '\0';
	if (directory_check_private(directory, err) < 0)
		return -1;
	if (asprintf(ret_path, "%s/%s", n > 1 ? directory : "", place.name) < 0)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	return 0;
}

const char *wss_file_kind(mode_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFLNK:
		return "symbolic link";
	case S_IFREG:
		return "regular file";
	case S_IFDIR:
		return "directory";
	case S_IFIFO:
		return "FIFO";
	case S_IFSOCK:
		return "socket";
	default:
		return "device";
	}
}

int wss_file_check_regular(const struct stat *st, struct wss_error *err)
{
	if (S_ISREG(st->st_mode))
		return 0;
	return wss_error_set(err, WSS_ERR_FAILED, "it is a %s, not a regular file",
			     wss_file_kind(st->st_mode));
}

/* In /tmp, another user may have created the file to read our output. */
static int check_owner(const struct wss_place *place, const struct stat *st, struct wss_error *err)
{
	struct stat directory;

	if (st->st_uid == geteuid())
		return 0;
	if (fstat(place->dirfd, &directory) < 0)
		return wss_error_errno(err, WSS_ERR_FAILED, errno, "cannot examine its directory");
	if (!(directory.st_mode & S_ISVTX) || !(directory.st_mode & S_IWOTH))
		return 0;
	return wss_error_set(err, WSS_ERR_FAILED,
			     "it belongs to another user (uid %lu), in a directory that "
			     "everyone may write to",
			     (unsigned long)st->st_uid);
}

/* Opens the file at place as an O_PATH descriptor. Returns 1, 0 if there is none, or -1. */
static int place_open_path(const struct wss_place *place, int *ret_fd, struct stat *ret_st,
			   struct wss_error *err)
{
	wss_auto_close int fd = openat(place->dirfd, place->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0 && errno == ENOENT)
		return 0;
	if (fd < 0)
		return open_failed(errno, err);
	if (fstat(fd, ret_st) < 0)
		return wss_error_errno(err, WSS_ERR_FAILED, errno, "cannot examine it");
	if (wss_file_check_regular(ret_st, err) < 0 || check_owner(place, ret_st, err) < 0)
		return -1;
	*ret_fd = wss_steal_fd(&fd);
	return 1;
}

int wss_place_look(const struct wss_place *place, struct stat *ret_st, struct wss_error *err)
{
	wss_auto_close int fd = -1;

	return place_open_path(place, &fd, ret_st, err);
}

int wss_file_reopen(int fd, int flags, int *ret_fd, struct wss_error *err)
{
	char link[32];
	int opened;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	opened = open(link, flags | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (opened < 0)
		return wss_error_errno(err, WSS_ERR_FAILED, errno, "cannot open it");
	*ret_fd = opened;
	return 0;
}

int wss_place_open(const struct wss_place *place, int *ret_fd, struct wss_error *err)
{
	wss_auto_close int fd = -1;
	struct stat st;
	int r = place_open_path(place, &fd, &st, err);

	if (r <= 0)
		return r;
	return wss_file_reopen(fd, O_RDWR, ret_fd, err) < 0 ? -1 : 1;
}

int wss_place_has(const struct wss_place *place, int fd, struct wss_error *err)
{
	struct stat opened, found;
	int r = wss_place_look(place, &found, err);

	if (r <= 0)
		return r;
	if (fstat(fd, &opened) < 0)
		return wss_error_errno(err, WSS_ERR_FAILED, errno, "cannot examine it");
	return opened.st_dev == found.st_dev && opened.st_ino == found.st_ino;
}

int wss_file_open(const char *path, int *ret_fd, struct wss_error *err)
{
	wss_auto_close int fd = open(path, O_PATH | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return open_failed(errno, err);
	if (fstat(fd, &st) < 0)
		return wss_error_errno(err, WSS_ERR_FAILED, errno, "cannot examine it");
	if (wss_file_check_regular(&st, err) < 0)
		return -1;
	return wss_file_reopen(fd, O_RDONLY, ret_fd, err);
}

/* Returns the descriptor number that path names, or -1 for any other path. */
static int descriptor_named(const char *path, bool write)
{
	const char *digits = path + strlen("/dev/fd/");
	unsigned long number;
	char *end;

	if (!strcmp(path, "-"))
		return write ? STDOUT_FILENO : STDIN_FILENO;
	if (!strcmp(path, "/dev/stdin"))
		return STDIN_FILENO;
	if (!strcmp(path, "/dev/stdout"))
		return STDOUT_FILENO;
	if (!strcmp(path, "/dev/stderr"))
		return STDERR_FILENO;
	if (strncmp(path, "/dev/fd/", strlen("/dev/fd/")) || !isdigit((unsigned char)*digits))
		return -1;
	errno = 0;
	number = strtoul(digits, &end, 10);
	return *end || errno || number > INT_MAX ? -1 : (int)number;
}

int wss_file_open_special(const char *path, bool write, int *ret_fd, struct wss_error *err)
{
	int fd = descriptor_named(path, write), copy;
	struct stat st;

	if (fd >= 0) {
		int flags = fcntl(fd, F_GETFD);

		/*
		 * Descriptors that the program opened itself have this flag; inherited ones do
		 * not.
		 */
		copy = flags < 0 || (flags & FD_CLOEXEC) ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 3);
		if (copy < 0)
			return wss_error_set(err, WSS_ERR_FAILED, "no such descriptor is open");
		*ret_fd = copy;
		return 1;
	}
	if (strncmp(path, "/dev/", strlen("/dev/")) || lstat(path, &st) < 0 || !S_ISCHR(st.st_mode))
		return 0;
	fd = open(path,
		  (write ? O_WRONLY : O_RDONLY) | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return wss_error_errno(err, WSS_ERR_FAILED, errno, "cannot open it");
	*ret_fd = fd;
	return 1;
}

/* Waits until the descriptor is ready or a stop is requested. */
static int file_wait_ready(int fd, short events, struct wss_error *err)
{
	struct pollfd fds[2] = {{.fd = fd, .events = events},
				{.fd = wss_stop_fd(), .events = POLLIN}};

	while (!wss_stop_requested()) {
		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			return wss_error_errno(err, WSS_ERR_FAILED, errno, "cannot wait for it");
		if (fds[0].revents && !wss_stop_requested())
			return 0;
		fds[0].revents = 0;
	}
	return wss_error_set(err, WSS_ERR_INTERRUPTED, "interrupted");
}

int wss_file_write(int fd, const char *data, size_t size, struct wss_error *err)
{
	while (size) {
		size_t piece = size < PIECE_BYTES ? size : PIECE_BYTES;
		ssize_t n;

		if (file_wait_ready(fd, POLLOUT, err) < 0)
			return -1;
		n = write(fd, data, piece);
		if (n < 0 && errno != EINTR && errno != EAGAIN)
			return wss_io_output_error(errno, "cannot write to it", err);
		if (n > 0) {
			data += n;
			size -= (size_t)n;
		}
	}
	return 0;
}

/* Reads at most size bytes; *ret_len is the number read. */
static int read_up_to(int fd, char *data, size_t size, size_t *ret_len, struct wss_error *err)
{
	size_t len = 0;

	while (len < size) {
		ssize_t n;

		if (file_wait_ready(fd, POLLIN, err) < 0)
			return -1;
		n = read(fd, data + len, size - len);
		if (n == 0)
			break;
		if (n < 0 && errno != EINTR && errno != EAGAIN)
			return wss_error_errno(err, WSS_ERR_FAILED, errno, "cannot read it");
		if (n > 0)
			len += (size_t)n;
	}
	*ret_len = len;
	return 0;
}

int wss_file_read(const char *path, size_t max, char **ret_text, size_t *ret_len,
		  struct wss_error *err)
{
	wss_auto_close int fd = -1;
	wss_auto_free char *text = NULL;
	int r = wss_file_open_special(path, false, &fd, err);

	if (r < 0 || (r == 0 && wss_file_open(path, &fd, err) < 0))
		return -1;
	text = malloc(max + 2);
	if (!text)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	if (read_up_to(fd, text, max + 1, ret_len, err) < 0)
		return -1;
	if (*ret_len > max)
		return wss_error_set(err, WSS_ERR_FAILED, "it is longer than %zu bytes", max);
	text[*ret_len] = '\0';
	*ret_text = wss_steal_ptr(text);
	return 0;
}

static struct flock lock_byte(int64_t offset, short type)
{
	return (struct flock){
		.l_type = type, .l_whence = SEEK_SET, .l_start = (off_t)offset, .l_len = 1};
}

int wss_file_lock(int fd, int64_t offset, uint64_t timeout_ns, struct wss_error *err)
{
	uint64_t deadline_ns = wss_clock_now_ns() + timeout_ns;
	bool stopping = false;

	for (;;) {
		struct flock area = lock_byte(offset, F_WRLCK);
		uint64_t now_ns;

		if (fcntl(fd, F_OFD_SETLK, &area) == 0)
			return 0;
		if (errno != EAGAIN && errno != EACCES && errno != EINTR)
			return wss_error_errno(err, WSS_ERR_FAILED, errno, "cannot lock it");
		now_ns = wss_clock_now_ns();
		if (!stopping && wss_stop_requested()) {
			stopping = true;
			if (deadline_ns > now_ns + LOCK_STOP_NS)
				deadline_ns = now_ns + LOCK_STOP_NS;
		}
		if (now_ns >= deadline_ns)
			return stopping && timeout_ns
				       ? wss_error_set(err, WSS_ERR_INTERRUPTED, "interrupted")
				       : wss_error_set(err, WSS_ERR_BUSY,
						       "another process has it locked");
		/*
		 * Does not use the stop flag's poll(), which returns at once after a stop
		 * request.
		 */
		if (stopping)
			poll(NULL, 0, 1);
		else
			wss_clock_sleep_until_ns(now_ns + LOCK_STEP_NS);
	}
}

void wss_file_unlock(int fd, int64_t offset)
{
	struct flock area = lock_byte(offset, F_UNLCK);

	fcntl(fd, F_OFD_SETLK, &area);
}

void wss_file_close_locked(int *fd)
{
	struct flock whole = {.l_type = F_UNLCK, .l_whence = SEEK_SET};

	if (*fd < 0)
		return;
	fcntl(*fd, F_OFD_SETLK, &whole);
	flock(*fd, LOCK_UN);
	close(wss_steal_fd(fd));
}
