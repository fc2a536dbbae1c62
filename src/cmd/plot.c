/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "cmd/plot.h"

#include <errno.h>
#include <sys/ioctl.h>
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

int wss_plot_write(const char *path, void (*draw)(FILE *f, const void *opaque), const void *opaque,
		   struct wss_error *err)
{
	wss_auto_free char *temporary = NULL;
	FILE *f;

	if (asprintf(&temporary, "%s.new", path) < 0) {
		temporary = NULL;
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	}
	unlink(temporary);
	f = fopen(temporary, "wex");
	if (!f)
		return wss_error_errno(err, WSS_ERR_FAILED, errno, "--plot: cannot write %s", path);
	if (draw_into(f, draw, opaque) == 0 && rename(temporary, path) == 0)
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
