/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "show/plot.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/newfile.h"

/* A picture reveals as much as its recording, which only the owner may read. */
#define PICTURE_MODE 0600

/*
 * Draws into memory first, so that running out of memory leaves no incomplete file and writes
 * nothing to a pipe.
 */
static int draw_picture(void (*draw)(FILE *f, const void *opaque), const void *opaque,
			char **ret_text, size_t *ret_size, struct wss_error *err)
{
	wss_auto_file FILE *f = open_memstream(ret_text, ret_size);
	bool bad;

	if (!f)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	draw(f, opaque);
	bad = ferror(f);
	if (fclose(wss_steal_ptr(f)) != 0 || bad)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	return 0;
}

/*
 * A mistyped name must not overwrite the recording or the history that the picture is drawn
 * from.
 */
static int plot_check_replaceable(const char *path, struct wss_error *err)
{
	if (wss_newfile_check(path, err) < 0)
		return -1;
	if (wss_newfile_is_measured(path))
		return wss_error_set(err, WSS_ERR_FAILED,
				     "it is a recording or a database: not overwritten");
	return 0;
}

static int write_file(const char *path, const char *text, size_t size, struct wss_error *err)
{
	wss_auto_newfile struct wss_newfile file = WSS_NEWFILE_INIT;
	int r;

	if (plot_check_replaceable(path, err) < 0 ||
	    wss_newfile_make(path, PICTURE_MODE, &file, err) < 0)
		return -1;
	r = wss_io_pwrite(file.fd, text, size, 0);
	if (r < 0)
		return wss_error_errno(err, WSS_ERR_FAILED, -r, "cannot write to it");
	return wss_newfile_name(&file, true, err);
}

static int write_picture(const char *path, const char *text, size_t size, struct wss_error *err)
{
	wss_auto_close int fd = -1;
	int r = wss_file_open_special(path, true, &fd, err);

	if (r < 0)
		return -1;
	return r ? wss_file_write(fd, text, size, err) : write_file(path, text, size, err);
}

/*
 * Prefixes an error with the file's name, unless it is an interruption, which has nothing to
 * do with the file.
 */
static int plot_failed(const char *what, const char *path, struct wss_error *err)
{
	if (err->code == WSS_ERR_INTERRUPTED)
		return -1;
	/* WSS_ERR_GONE would mean that a guest has gone. */
	err->code = WSS_ERR_FAILED;
	return wss_error_prefix(err, "%s: cannot write %s", what, path);
}

int wss_plot_check(const char *what, const char *path, bool alone, struct wss_error *err)
{
	wss_auto_close int fd = -1;
	int r;

	if (!path)
		return 0;
	if (!strcmp(path, "-") && !alone)
		return wss_error_set(err, WSS_ERR_USAGE,
				     "%s: '-' would mix the file with the table: name a file",
				     what);
	r = wss_file_open_special(path, true, &fd, err);
	if (r < 0 || (r == 0 && plot_check_replaceable(path, err) < 0))
		return plot_failed(what, path, err);
	return 0;
}

int wss_plot_write(const char *what, const char *path, void (*draw)(FILE *f, const void *opaque),
		   const void *opaque, struct wss_error *err)
{
	wss_auto_free char *text = NULL;
	size_t size = 0;

	if (draw_picture(draw, opaque, &text, &size, err) < 0)
		return -1;
	return write_picture(path, text, size, err) < 0 ? plot_failed(what, path, err) : 0;
}

int wss_terminal_width(void)
{
	struct winsize size;

	return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col : 80;
}
