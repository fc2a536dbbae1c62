/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "base/newfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/cleanup.h"

#define ATTEMPTS 100

static int check_writable(const struct wss_place *place, struct wss_error *err)
{
	struct stat st;

	if (wss_place_look(place, &st, err) < 0)
		return -1;
	if (faccessat(place->dirfd, ".", W_OK | X_OK, AT_EACCESS) < 0)
		return wss_error_errno(err, WSS_ERR_FAILED, errno,
				       "cannot write to its directory");
	return 0;
}

int wss_newfile_check(const char *path, struct wss_error *err)
{
	wss_auto_place struct wss_place place = WSS_PLACE_INIT;

	return wss_place_find(path, &place, err) < 0 ? -1 : check_writable(&place, err);
}

/* The name is hidden and short, however long the final one is. */
static int make_temporary(struct wss_newfile *file, mode_t mode, struct wss_error *err)
{
	for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
		unsigned long long number;

		if (getrandom(&number, sizeof(number), 0) != (ssize_t)sizeof(number))
			break;
		snprintf(file->temporary, sizeof(file->temporary), ".virt-wss-%016llx.new",
			 number);
		file->fd = openat(file->place.dirfd, file->temporary,
				  O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
		if (file->fd >= 0)
			return 0;
		if (errno != EEXIST)
			break;
	}
	file->temporary[0] = '\0';
	return wss_error_errno(err, WSS_ERR_FAILED, errno, "cannot create it");
}

int wss_newfile_make(const char *path, mode_t mode, struct wss_newfile *ret_file,
		     struct wss_error *err)
{
	wss_auto_newfile struct wss_newfile file = WSS_NEWFILE_INIT;

	if (wss_place_find(path, &file.place, err) < 0 ||
	    check_writable(&file.place, err) < 0 || make_temporary(&file, mode, err) < 0)
		return -1;
	*ret_file = file;
	file = (struct wss_newfile)WSS_NEWFILE_INIT;
	return 0;
}

/*
 * Gives the file a name that must not exist yet; by a link where the file system does not
 * support such a rename.
 */
static int name_without_replacing(struct wss_newfile *file)
{
	const struct wss_place *place = &file->place;

	if (renameat2(place->dirfd, file->temporary, place->dirfd, place->name,
		      RENAME_NOREPLACE) == 0)
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -1;
	if (linkat(place->dirfd, file->temporary, place->dirfd, place->name, 0) < 0)
		return -1;
	unlinkat(place->dirfd, file->temporary, 0);
	return 0;
}

/*
 * A directory without read permission cannot be opened for syncing; its content is written all
 * the same.
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

	if (fsync(file->fd) < 0)
		return wss_error_errno(err, WSS_ERR_FAILED, errno, "cannot write to it");
	/* rename() would also replace a FIFO or a symbolic link. */
	if (replace && wss_place_look(place, &st, err) < 0)
		return -1;
	if (replace ? renameat(place->dirfd, file->temporary, place->dirfd, place->name) < 0
		    : name_without_replacing(file) < 0) {
		if (errno == EEXIST)
			return wss_error_set(err, WSS_ERR_BUSY,
					     "another process has just created it");
		return wss_error_errno(err, WSS_ERR_FAILED, errno, "cannot create it");
	}
	file->temporary[0] = '\0';
	if (sync_directory(place) < 0)
		return wss_error_errno(err, WSS_ERR_FAILED, errno,
				       "cannot write to its directory");
	return 0;
}

void wss_newfile_release(struct wss_newfile *file)
{
	if (file->fd >= 0)
		close(file->fd);
	if (file->temporary[0])
		unlinkat(file->place.dirfd, file->temporary, 0);
	wss_place_release(&file->place);
	file->temporary[0] = '\0';
	file->fd = -1;
}
