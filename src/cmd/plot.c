/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "cmd/plot.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>
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

/*
 * A new file beside target, under a name that nobody else has: hidden, and short however long
 * target's is. By open(2), so that its mode is a new file's. NULL with errno.
 */
static FILE *open_beside(const char *target, char **ret_name)
{
	const char *slash = strrchr(target, '/');
	int directory = slash ? (int)(slash + 1 - target) : 0;

	for (int attempt = 0; attempt < 100; attempt++) {
		unsigned long long number;
		int fd;

		if (getrandom(&number, sizeof(number), 0) != (ssize_t)sizeof(number))
			return NULL;
		if (asprintf(ret_name, "%.*s.virt-wss-%016llx.new", directory, target, number) < 0) {
			*ret_name = NULL;
			errno = ENOMEM;
			return NULL;
		}
		fd = open(*ret_name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
		if (fd >= 0) {
			FILE *f = fdopen(fd, "w");

			if (!f)
				close(fd);
			return f;
		}
		free(wss_steal_ptr(*ret_name));
		if (errno != EEXIST)
			break;
	}
	return NULL;
}

int wss_plot_write(const char *path, void (*draw)(FILE *f, const void *opaque), const void *opaque,
		   struct wss_error *err)
{
	/* Of a symbolic link the file that it leads to is replaced. */
	wss_auto_free char *real = realpath(path, NULL);
	const char *target = real ? real : path;
	wss_auto_free char *temporary = NULL;
	FILE *f;

	if (is_special(path))
		return write_special(path, draw, opaque, err);
	f = open_beside(target, &temporary);
	if (f && draw_into(f, draw, opaque) == 0 && rename(temporary, target) == 0)
		return 0;
	wss_error_errno(err, WSS_ERR_FAILED, errno, "--plot: cannot write %s", path);
	if (temporary)
		unlink(temporary);
	return -1;
}

int wss_terminal_width(void)
{
	struct winsize size;

	return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col : 80;
}
