/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "serve/textfile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/background.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/newfile.h"

/* A reader of metrics is another user than the service, whose umask is 077. */
#define MODE 0644
#define LATE_NS (30 * WSS_NS_PER_S)
#define END_NS (5 * WSS_NS_PER_S)

struct wss_textfile {
	struct wss_background *background;
	bool writing;
	/* The background's while it writes. */
	char *path, *text;
	size_t size;
	FILE *stream;
	struct wss_error error;
};

struct wss_textfile *wss_textfile_new(void)
{
	struct wss_textfile *textfile = calloc(1, sizeof(*textfile));

	if (!textfile)
		return NULL;
	textfile->background = wss_background_new();
	if (textfile->background)
		return textfile;
	free(textfile);
	return NULL;
}

bool wss_textfile_is_idle(struct wss_textfile *textfile)
{
	return !textfile->writing;
}

static void textfile_forget(struct wss_textfile *textfile)
{
	free(textfile->text);
	free(textfile->path);
	textfile->text = textfile->path = NULL;
	textfile->size = 0;
}

FILE *wss_textfile_begin(struct wss_textfile *textfile)
{
	textfile_forget(textfile);
	return textfile->stream = open_memstream(&textfile->text, &textfile->size);
}

/* The file is rewritten again and again, so it is not synced: a crash of the host may take it. */
static int write_file(const struct wss_textfile *textfile, struct wss_error *err)
{
	wss_auto_newfile struct wss_newfile file = WSS_NEWFILE_INIT;
	int r;

	if (wss_newfile_make(textfile->path, MODE, &file, err) < 0)
		return -1;
	file.unsynced = true;
	if (fchmod(file.fd, MODE) < 0)
		return wss_error_errno(err, WSS_ERR_FAILED, errno, "cannot set its mode");
	r = wss_io_pwrite(file.fd, textfile->text, textfile->size, 0);
	if (r < 0)
		return wss_error_errno(err, WSS_ERR_FAILED, -r, "cannot write it");
	return wss_newfile_name(&file, true, err);
}

static void textfile_run(void *opaque)
{
	struct wss_textfile *textfile = opaque;

	if (write_file(textfile, &textfile->error) < 0)
		wss_error_prefix(&textfile->error, "%s", textfile->path);
}

int wss_textfile_write(struct wss_textfile *textfile, const char *path, struct wss_error *err)
{
	bool good = !ferror(textfile->stream);

	good = fclose(textfile->stream) == 0 && good;
	textfile->path = strdup(path);
	if (!good || !textfile->path)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	wss_error_clear(&textfile->error);
	textfile->writing =
		wss_background_start(textfile->background, textfile_run, textfile, err) == 0;
	return textfile->writing ? 0 : -1;
}

int wss_textfile_result(struct wss_textfile *textfile, struct wss_error *err)
{
	if (!textfile->writing)
		return 0;
	if (!wss_background_is_idle(textfile->background)) {
		if (wss_background_busy_ns(textfile->background) <= LATE_NS)
			return 0;
		return wss_error_set(err, WSS_ERR_TIMEOUT, "%s: its disk has not answered for 30 s",
				     textfile->path);
	}
	textfile->writing = false;
	if (!textfile->error.code)
		return 1;
	*err = textfile->error;
	return -1;
}

void wss_textfile_free(struct wss_textfile *textfile)
{
	if (!textfile || !wss_background_end(textfile->background, END_NS))
		return;
	textfile_forget(textfile);
	free(textfile);
}
