/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The thread writes with write(2) only, and erasing the line takes no lock: the process forks while
 * a line shows, and a lock that another thread holds would stay locked in the child.
 */
#include "show/progress.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/cond.h"
#include "base/log.h"
#include "base/thread.h"
#include "show/width.h"

#define DELAY_NS (2 * WSS_NS_PER_S)
#define STEP_NS (200 * WSS_NS_PER_MS)
#define LINE_MAX_BYTES 256
#define DETAIL_MAX 128

struct wss_progress {
	const char *what;
	uint64_t begun_ns, length_ns;
	struct wss_thread *thread;
	pthread_mutex_t lock;
	pthread_cond_t cond;
	bool ended;
	char detail[DETAIL_MAX];
};

static atomic_bool line_shown;

static void write_all(const char *text, size_t len)
{
	ssize_t ignored = write(STDERR_FILENO, text, len);

	(void)ignored;
}

static void erase_line(void)
{
	static const char erase[] = "\r\033[K";

	if (atomic_exchange(&line_shown, false))
		write_all(erase, sizeof(erase) - 1);
}

void wss_progress_format(const char *what, const char *detail, uint64_t passed_ns,
			 uint64_t length_ns, char *ret_text, size_t size)
{
	unsigned long long passed = passed_ns / WSS_NS_PER_S, all = length_ns / WSS_NS_PER_S;
	char time[64];

	if (!length_ns)
		snprintf(time, sizeof(time), "%llu s", passed);
	else if (passed_ns < length_ns)
		snprintf(time, sizeof(time), "%llu of %llu s, %llu s left", passed, all,
			 (unsigned long long)((length_ns - passed_ns + WSS_NS_PER_S - 1) /
					      WSS_NS_PER_S));
	else
		snprintf(time, sizeof(time), "%llu s, %llu s were expected", passed, all);
	snprintf(ret_text, size, "%s: %s%s%s", what, time, *detail ? "; " : "", detail);
}

/* Draws the line; the caller holds the lock. */
static void progress_draw(const struct wss_progress *progress)
{
	char text[LINE_MAX_BYTES], line[LINE_MAX_BYTES + 8];
	uint64_t passed_ns = wss_clock_now_ns() - progress->begun_ns;
	struct winsize size;
	int len, width = 80;

	if (passed_ns < DELAY_NS)
		return;
	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1)
		width = size.ws_col;
	wss_progress_format(progress->what, progress->detail, passed_ns, progress->length_ns, text,
			    sizeof(text));
	wss_text_cut(text, sizeof(text), width - 1);
	len = snprintf(line, sizeof(line), "\r%s\033[K", text);
	write_all(line, (size_t)len);
	atomic_store(&line_shown, true);
}

static void progress_run(void *opaque)
{
	struct wss_progress *progress = opaque;
	struct timespec until;

	pthread_mutex_lock(&progress->lock);
	while (!progress->ended) {
		progress_draw(progress);
		clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_nsec += STEP_NS;
		until.tv_sec += until.tv_nsec / (long)WSS_NS_PER_S;
		until.tv_nsec %= (long)WSS_NS_PER_S;
		pthread_cond_timedwait(&progress->cond, &progress->lock, &until);
	}
	pthread_mutex_unlock(&progress->lock);
}

struct wss_progress *wss_progress_begin(const char *what, uint64_t length_ns)
{
	struct wss_progress *progress = isatty(STDERR_FILENO) ? calloc(1, sizeof(*progress)) : NULL;

	if (!progress)
		return NULL;
	progress->what = what;
	progress->begun_ns = wss_clock_now_ns();
	progress->length_ns = length_ns;
	pthread_mutex_init(&progress->lock, NULL);
	wss_cond_init(&progress->cond);
	wss_log_set_prologue(erase_line);
	if (wss_thread_start(progress_run, progress, &progress->thread, NULL) == 0)
		return progress;
	wss_log_set_prologue(NULL);
	free(progress);
	return NULL;
}

void wss_progress_say(struct wss_progress *progress, const char *detail)
{
	if (!progress)
		return;
	pthread_mutex_lock(&progress->lock);
	snprintf(progress->detail, sizeof(progress->detail), "%s", detail);
	pthread_mutex_unlock(&progress->lock);
}

void wss_progress_hold(struct wss_progress *progress)
{
	if (!progress)
		return;
	pthread_mutex_lock(&progress->lock);
	erase_line();
}

void wss_progress_release(struct wss_progress *progress)
{
	if (progress)
		pthread_mutex_unlock(&progress->lock);
}

void wss_progress_end(struct wss_progress *progress)
{
	if (!progress)
		return;
	pthread_mutex_lock(&progress->lock);
	progress->ended = true;
	pthread_cond_signal(&progress->cond);
	pthread_mutex_unlock(&progress->lock);
	wss_thread_join(progress->thread);
	erase_line();
	wss_log_set_prologue(NULL);
	pthread_cond_destroy(&progress->cond);
	pthread_mutex_destroy(&progress->lock);
	free(progress);
}
