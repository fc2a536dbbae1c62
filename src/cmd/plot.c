/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "cmd/plot.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

/* The stream is closed, and errno is that of what failed first. */
static int draw_into(FILE *f, void (*draw)(FILE *f, const void *opaque), const void *opaque)
{
	errno = 0;
	draw(f, opaque);
	if (ferror(f)) {
		int why = errno ? errno : EIO;

		fclose(f);
		errno = why;
		return -1;
	}
	return fclose(f) == 0 ? 0 : -1;
}

/* A picture for a terminal, a pipe or a device goes into it: it is not replaced by a file. */
static bool is_special(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode);
}

static int write_special(const char *path, void (*draw)(FILE *f, const void *opaque),
			 const void *opaque, struct wss_error *err)
{
	FILE *f = fopen(path, "we");

	if (f && draw_into(f, draw, opaque) == 0)
		return 0;
	return wss_error_errno(err, WSS_ERR_FAILED, errno, "--plot: cannot write %s", path);
}

int wss_plot_write(const char *path, void (*draw)(FILE *f, const void *opaque), const void *opaque,
		   struct wss_error *err)
{
	wss_auto_free char *target = realpath(path, NULL);
	wss_auto_free char *temporary = NULL;
	FILE *f;

	if (is_special(path))
		return write_special(path, draw, opaque, err);
	/* Of a symbolic link the file that it leads to is replaced. */
	if (asprintf(&temporary, "%s.new", target ? target : path) < 0) {
		temporary = NULL;
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	}
	unlink(temporary);
	f = fopen(temporary, "wex");
	if (!f)
		return wss_error_errno(err, WSS_ERR_FAILED, errno, "--plot: cannot write %s", path);
	if (draw_into(f, draw, opaque) == 0 && rename(temporary, target ? target : path) == 0)
		return 0;
	wss_error_errno(err, WSS_ERR_FAILED, errno, "--plot: cannot write %s", path);
	unlink(temporary);
	return -1;
}

int wss_terminal_width(void)
{
	struct winsize size;

	return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col : 80;
}
