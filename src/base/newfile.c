/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A new file has no name while it is being written, so that it vanishes with the process,
 * however that ends. linkat() names it. To replace a file, which linkat() cannot do, it gets a
 * temporary name that is renamed at once.
 *
 * If the file system has no unnamed files, the file has its temporary name from the start. A
 * process that is killed leaves that name behind, and the next one that writes to the
 * directory removes it: every file is locked for as long as it is open, so one that nobody has
 * locked belongs to nobody. Another process may look at a file between its creation and its
 * locking; whoever creates it checks afterwards that it is still there.
 */
#include "base/newfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fault.h"
#include "base/io.h"

#define ATTEMPTS 100
#define PREFIX ".virt-wss-"
#define SUFFIX ".new"
#define DIGITS 16
/* No other lock is taken on this byte: recordings lock the two before it. */
#define LOCK_OFFSET (((int64_t)1 << 62) + 2)
/* The rest of a larger directory is not searched for leftover files. */
#define ENTRIES_MAX 10000

static int check_writable(const struct wss_place *place, struct wss_error *err)
{
	struct stat st;

	if (wss_place_look(place, &st, err) < 0)
		return -1;
	if (faccessat(place->dirfd, ".", W_OK | X_OK, AT_EACCESS) < 0)
		return wss_error_errno(err, WSS_ERR_FAILED, errno, "cannot write to its directory");
	return 0;
}

int wss_newfile_check(const char *path, struct wss_error *err)
{
	wss_auto_place struct wss_place place = WSS_PLACE_INIT;

	return wss_place_find(path, &place, err) < 0 ? -1 : check_writable(&place, err);
}

static bool is_temporary_name(const char *name)
{
	const char *digits = name + strlen(PREFIX);

	return !strncmp(name, PREFIX, strlen(PREFIX)) &&
	       strspn(digits, "0123456789abcdef") == DIGITS && !strcmp(digits + DIGITS, SUFFIX);
}

/* Whether no other process has locked a byte of the file. If so, none can until it is closed. */
static bool leftover_lock(int fd)
{
	struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

	return fcntl(fd, F_OFD_SETLK, &whole) == 0;
}

/* Removes the file of that name if it is certainly a leftover of a killed process of ours. */
static void leftover_remove(const struct wss_place *directory, char *name)
{
	const struct wss_place place = {directory->dirfd, name};
	wss_auto_close int fd = -1;
	struct stat st;

	if (wss_place_look(&place, &st, NULL) <= 0 || st.st_uid != geteuid() ||
	    wss_place_open(&place, &fd, NULL) <= 0 || fstat(fd, &st) < 0)
		return;
	if (st.st_uid == geteuid() && st.st_nlink == 1 && leftover_lock(fd) &&
	    wss_place_has(&place, fd, NULL) > 0)
		unlinkat(place.dirfd, name, 0);
}

/* Removes leftovers. Does nothing if the directory cannot be read. */
static void leftovers_remove(const struct wss_place *directory)
{
	wss_auto_close int fd = openat(directory->dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	wss_auto_dir DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	if (!dir)
		return;
	wss_steal_fd(&fd);
	for (unsigned n = 0; n < ENTRIES_MAX && (entry = readdir(dir)); n++)
		if (is_temporary_name(entry->d_name))
			leftover_remove(directory, entry->d_name);
}

/* Sets a hidden name, which is short however long the final one is. Fails with errno. */
static int temporary_invent(struct wss_newfile *file)
{
	unsigned long long number;

	if (getrandom(&number, sizeof(number), 0) != (ssize_t)sizeof(number))
		return -1;
	snprintf(file->temporary, sizeof(file->temporary), PREFIX "%0*llx" SUFFIX, DIGITS, number);
	return 0;
}

static int create_failed(struct wss_newfile *file, struct wss_error *err)
{
	file->temporary[0] = '\0';
	return wss_error_errno(err, WSS_ERR_FAILED, errno, "cannot create it");
}

/*
 * Whether the file has its lock, and no other process removed it before that. A file system
 * without locks is good enough, because no leftovers are removed there.
 */
static bool newfile_lock(const struct wss_newfile *file)
{
	struct wss_error why = WSS_ERROR_INIT;
	struct stat st;

	if (wss_file_lock(file->fd, LOCK_OFFSET, 0, &why) < 0 && why.code == WSS_ERR_BUSY)
		return false;
	return !file->temporary[0] || (fstat(file->fd, &st) == 0 && st.st_nlink > 0);
}

static int make_named(struct wss_newfile *file, mode_t mode, struct wss_error *err)
{
	for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
		if (temporary_invent(file) < 0)
			break;
		file->fd = openat(file->place.dirfd, file->temporary,
				  O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
		if (file->fd >= 0 && newfile_lock(file))
			return 0;
		if (file->fd < 0 && errno != EEXIST)
			break;
		if (file->fd >= 0)
			close(file->fd);
		file->fd = -1;
		errno = EEXIST;
	}
	return create_failed(file, err);
}

/* Returns 1, 0 if the file system has no unnamed files, or -1. */
static int make_unnamed(struct wss_newfile *file, mode_t mode, struct wss_error *err)
{
	if (wss_fault("no-tmpfile"))
		return 0;
	file->fd = openat(file->place.dirfd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, mode);
	if (file->fd >= 0) {
		newfile_lock(file);
		return 1;
	}
	/* Kernels before 3.11 take this as opening a directory. */
	return errno == EOPNOTSUPP || errno == EISDIR || errno == ENOENT ? 0
									 : create_failed(file, err);
}

static int newfile_make(const char *path, mode_t mode, bool named, struct wss_newfile *ret_file,
			struct wss_error *err)
{
	wss_auto_newfile struct wss_newfile file = WSS_NEWFILE_INIT;
	int r;

	if (wss_place_find(path, &file.place, err) < 0 || check_writable(&file.place, err) < 0)
		return -1;
	leftovers_remove(&file.place);
	r = named ? 0 : make_unnamed(&file, mode, err);
	if (r < 0 || (r == 0 && make_named(&file, mode, err) < 0))
		return -1;
	*ret_file = file;
	file = (struct wss_newfile)WSS_NEWFILE_INIT;
	return 0;
}

int wss_newfile_make(const char *path, mode_t mode, struct wss_newfile *ret_file,
		     struct wss_error *err)
{
	return newfile_make(path, mode, false, ret_file, err);
}

int wss_newfile_make_named(const char *path, mode_t mode, struct wss_newfile *ret_file,
			   struct wss_error *err)
{
	return newfile_make(path, mode, true, ret_file, err);
}

/* Gives an unnamed file a name that must not exist yet. Fails with errno. */
static int unnamed_link(const struct wss_newfile *file, const char *name)
{
	char self[32];

	snprintf(self, sizeof(self), "/proc/self/fd/%d", file->fd);
	return linkat(AT_FDCWD, self, file->place.dirfd, name, AT_SYMLINK_FOLLOW);
}

static int unnamed_link_temporary(struct wss_newfile *file)
{
	for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
		if (temporary_invent(file) < 0)
			break;
		if (unnamed_link(file, file->temporary) == 0)
			return 0;
		if (errno != EEXIST)
			break;
	}
	file->temporary[0] = '\0';
	return -1;
}

/*
 * Gives the file a name that must not exist yet, by a link if the file system or libc does not support
 * such a rename. Fails with errno.
 */
static int name_without_replacing(struct wss_newfile *file)
{
	const struct wss_place *place = &file->place;

	if (!file->temporary[0])
		return unnamed_link(file, place->name);
#ifdef HAVE_RENAMEAT2
	if (renameat2(place->dirfd, file->temporary, place->dirfd, place->name, RENAME_NOREPLACE) ==
	    0)
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -1;
#endif
	if (linkat(place->dirfd, file->temporary, place->dirfd, place->name, 0) < 0)
		return -1;
	unlinkat(place->dirfd, file->temporary, 0);
	return 0;
}

/* Gives the file its final name, replacing any other file. Fails with errno. */
static int name_replacing(struct wss_newfile *file)
{
	const struct wss_place *place = &file->place;

	if (!file->temporary[0] && unnamed_link(file, place->name) == 0)
		return 0;
	if (!file->temporary[0] && (errno != EEXIST || unnamed_link_temporary(file) < 0))
		return -1;
	return renameat(place->dirfd, file->temporary, place->dirfd, place->name);
}

/*
 * A directory without read permission cannot be opened for syncing; its content is written
 * anyway.
 */
static int sync_directory(const struct wss_place *place)
{
	wss_auto_close int fd = openat(place->dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return errno == EACCES ? 0 : -1;
	return fsync(fd) == 0 || errno == EINVAL ? 0 : -1;
}

int wss_newfile_name(struct wss_newfile *file, bool replace, struct wss_error *err)
{
	const struct wss_place *place = &file->place;
	struct stat st;

	if (!file->unsynced && fsync(file->fd) < 0)
		return wss_error_errno(err, WSS_ERR_FAILED, errno, "cannot write to it");
	/* rename() would also replace a FIFO or a symbolic link. */
	if (replace && wss_place_look(place, &st, err) < 0)
		return -1;
	if ((replace ? name_replacing(file) : name_without_replacing(file)) < 0) {
		if (errno == EEXIST)
			return wss_error_set(err, WSS_ERR_BUSY,
					     "another process has just created it");
		return wss_error_errno(err, WSS_ERR_FAILED, errno, "cannot create it");
	}
	file->temporary[0] = '\0';
	if (!file->unsynced && sync_directory(place) < 0)
		return wss_error_errno(err, WSS_ERR_FAILED, errno, "cannot write to its directory");
	return 0;
}

bool wss_newfile_is_measured(const char *path)
{
	static const char database[] = "SQLite format 3";
	struct wss_error unreadable = WSS_ERROR_INIT;
	wss_auto_close int fd = -1;
	char magic[sizeof(database)] = "";

	if (wss_file_open(path, &fd, &unreadable) < 0 ||
	    wss_io_pread(fd, magic, sizeof(magic), 0) < 0)
		return false;
	return !memcmp(magic, WSS_REC_MAGIC, strlen(WSS_REC_MAGIC)) ||
	       !memcmp(magic, database, sizeof(database));
}

void wss_newfile_release(struct wss_newfile *file)
{
	/* Still locked, so that no other process mistakes it for a leftover. */
	if (file->temporary[0])
		unlinkat(file->place.dirfd, file->temporary, 0);
	wss_file_close_locked(&file->fd);
	wss_place_release(&file->place);
	file->temporary[0] = '\0';
}

int wss_newfile_check_path(const char *path, const char *what, struct wss_error *err)
{
	struct stat st;

	if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
		return wss_error_set(err, WSS_ERR_USAGE,
				     "%s: '%s' is a directory: give the path of a file in it", what,
				     path);
	return 0;
}
