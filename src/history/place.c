/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Checks where the history lies, and who else could interfere with it.
 *
 * SQLite opens the file and its companions by name, at any time: it waits forever on a FIFO,
 * and replays a journal or log that somebody else has put next to the file. To prevent that,
 * the directory, those above it and the files must belong to the caller or root, and no other user
 * may be able to write to them. Existing files then need to be checked only once.
 */
#include "history/db.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/io.h"
#include "base/newfile.h"

static int check_file(const char *path, struct wss_error *err)
{
	struct stat st;

	if (lstat(path, &st) < 0)
		return errno == ENOENT
			       ? 0
			       : wss_error_errno(err, WSS_ERR_FAILED, errno, "cannot examine it");
	return wss_file_check_regular(&st, err) < 0 ? -1
						    : wss_file_check_private(path, &st, "it", err);
}

/*
 * Checks that a rollback journal does not end with the name of another file ("Database File
 * Format" 3.1; pager.c of SQLite 3.40, readSuperJournal). After a rollback SQLite deletes the
 * file of that name, wherever it is, unless it lists this journal. Such a name belongs to a
 * transaction over several databases, of which a history is never part.
 */
static int check_journal(const char *path, struct wss_error *err)
{
	static const uint8_t magic[] = {0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7};
	wss_auto_close int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	uint8_t end[sizeof(magic)];
	struct stat st;

	if (fd < 0)
		return errno == ENOENT
			       ? 0
			       : wss_error_errno(err, WSS_ERR_FAILED, errno, "cannot read it");
	if (fstat(fd, &st) < 0 || st.st_size < (off_t)sizeof(end))
		return 0;
	if (wss_io_pread(fd, end, sizeof(end), st.st_size - (off_t)sizeof(end)) < 0)
		return wss_error_set(err, WSS_ERR_FAILED, "cannot read it");
	if (memcmp(end, magic, sizeof(magic)) != 0)
		return 0;
	return wss_error_set(err, WSS_ERR_FAILED,
			     "it names a file that SQLite would delete: move it away");
}

/* Checks the database and the files that SQLite opens with it. */
static int check_files(const char *path, struct wss_error *err)
{
	static const char *const suffixes[] = {"", "-journal", "-wal", "-shm"};

	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
		wss_auto_free char *name = NULL;

		if (asprintf(&name, "%s%s", path, suffixes[i]) < 0) {
			name = NULL;
			return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
		}
		if (check_file(name, err) < 0 ||
		    (!strcmp(suffixes[i], "-journal") && check_journal(name, err) < 0))
			return wss_error_prefix(err, "history %s", name);
	}
	return 0;
}

/*
 * Creates missing directories above path, once those that exist have been found to be private; without make checks that
 * the first of them could be created. Errors of those that exist show up when path is examined.
 */
static int directories_complete(const char *path, bool make, struct wss_error *err)
{
	wss_auto_free char *copy = strdup(path);

	for (char *at = copy && *copy ? copy + 1 : NULL; at && (at = strchr(at, '/')); at++) {
		wss_auto_free char *checked = NULL;
		wss_auto_close int fd = -1;

		*at = '\0';
		fd = open(copy, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (fd < 0) {
			if (errno != ENOENT)
				return 0;
			if (wss_place_resolve_private(copy, &checked, err) < 0)
				return -1;
			if (!make)
				return wss_newfile_check(checked, err);
			/* Another process may be creating them at the same moment. */
			if (mkdir(checked, 0750) < 0 && errno != EEXIST)
				return wss_error_errno(err, WSS_ERR_FAILED, errno,
						       "cannot make directory %s", checked);
		}
		*at = '/';
	}
	return 0;
}

int wss_db_check_directories(const char *path, struct wss_error *err)
{
	if (directories_complete(path, false, err) < 0)
		return wss_error_prefix(err, "history %s", path);
	return 0;
}

int wss_db_find(const char *path, bool make, char **ret_path, struct wss_error *err)
{
	wss_auto_free char *found = NULL;

	if ((make && directories_complete(path, true, err) < 0) ||
	    wss_place_resolve_private(path, &found, err) < 0) {
		/* A directory that cannot be made is more than one that is not there yet. */
		if (make && err && err->code == WSS_ERR_GONE)
			err->code = WSS_ERR_FAILED;
		return wss_error_prefix(err, "history %s", path);
	}
	if (check_files(found, err) < 0)
		return -1;
	*ret_path = wss_steal_ptr(found);
	return 0;
}
