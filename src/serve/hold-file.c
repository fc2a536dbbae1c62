/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "serve/hold-file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/background.h"
#include "base/clock.h"
#include "serve/trouble.h"

#define LOOK_NS WSS_NS_PER_S
/* How long the caller waits for a look: usually, and for the first one; and when it is late. */
#define WAIT_NS (20 * WSS_NS_PER_MS)
#define FIRST_NS (2 * WSS_NS_PER_S)
#define LATE_NS (10 * WSS_NS_PER_S)

/* A look for the file, which the background owns while that is under way: its disk, or its server, may hang. */
struct look {
	struct wss_background *background;
	char *path; /* malloc()ed: the options may change meanwhile */
	bool exists;
	bool taken; /* what came of it */
	bool known; /* there was an answer, ever */
	struct wss_trouble trouble;
};

struct wss_hold_file {
	struct look *look;
	uint64_t next_ns; /* when the next one is due, wss_clock_now_ns() */
};

/*
 * A link that leads nowhere is a file, too, and one that cannot be looked for may be there: who made it wants all
 * windows to stop.
 */
static void look_run(void *opaque)
{
	struct look *look = opaque;
	struct stat st;

	look->exists = lstat(look->path, &st) == 0 || (errno != ENOENT && errno != ENOTDIR);
}

static struct look *look_new(void)
{
	struct look *look = calloc(1, sizeof(*look));

	if (look && (look->background = wss_background_new())) {
		look->taken = true;
		look->trouble.what = "the hold file";
		return look;
	}
	free(look);
	return NULL;
}

static void look_free(struct look *look)
{
	/* Else it uses the struct until the process ends. */
	if (!look || !wss_background_end(look->background, 0))
		return;
	free(look->path);
	free(look);
}

static void look_start(struct look *look, const char *path)
{
	struct wss_error error = WSS_ERROR_INIT;

	free(look->path);
	look->path = strdup(path);
	if (!look->path)
		wss_error_set(&error, WSS_ERR_NO_MEMORY, "out of memory");
	else if (wss_background_start(look->background, look_run, look, &error) == 0)
		look->taken = false;
	if (error.code) {
		wss_trouble_note(&look->trouble, &error);
		return;
	}
	/* It takes microseconds unless something hangs. The first one may hold the first windows. */
	wss_background_wait(look->background, look->known ? WAIT_NS : FIRST_NS);
}

/* Whether a look has ended since this was last asked. */
static bool look_take(struct look *look)
{
	struct wss_error error = WSS_ERROR_INIT;

	if (wss_background_is_idle(look->background)) {
		if (look->taken)
			return false;
		look->taken = look->known = true;
		wss_trouble_note(&look->trouble, NULL);
		return true;
	}
	if (wss_background_busy_ns(look->background) >= LATE_NS) {
		wss_error_set(
			&error, WSS_ERR_TIMEOUT,
			"hold file %s: cannot be looked for: its disk has not answered for %d s: the last answer holds",
			look->path, (int)(LATE_NS / WSS_NS_PER_S));
		wss_trouble_note(&look->trouble, &error);
	}
	return false;
}

struct wss_hold_file *wss_hold_file_new(void)
{
	struct wss_hold_file *file = calloc(1, sizeof(*file));

	if (file && (file->look = look_new()))
		return file;
	free(file);
	return NULL;
}

void wss_hold_file_free(struct wss_hold_file *file)
{
	if (file)
		look_free(file->look);
	free(file);
}

void wss_hold_file_hurry(struct wss_hold_file *file)
{
	file->next_ns = 0;
}

bool wss_hold_file_look(struct wss_hold_file *file, const char *path, bool *ret_exists)
{
	struct look *look = file->look, *fresh;

	/* One that hangs keeps no other file from being looked for. */
	if (look->path && strcmp(look->path, path) != 0 &&
	    !wss_background_is_idle(look->background) && (fresh = look_new())) {
		look_free(look);
		file->look = look = fresh;
	}
	if (wss_background_is_idle(look->background) && wss_clock_is_due(&file->next_ns, LOOK_NS))
		look_start(look, path);
	if (!look_take(look) || strcmp(look->path, path) != 0)
		return false;
	*ret_exists = look->exists;
	return true;
}
