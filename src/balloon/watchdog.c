/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Theory of operation
 *
 * The watchdog is a child of the controller, in a session of its own, that ignores all signals
 * and reads a pipe. The controller writes the UUID of each guest before its first step, a beat
 * each second, and a final byte when every guest has its memory.
 *
 * - The final byte: the watchdog ends.
 * - End of file: the controller is dead. The watchdog runs the command for all that it guards, then for
 *   one after the other, with growing pauses, for a day. It drops a guest that has its memory,
 *   because another controller may look after it by then.
 * - 10 s of silence: the controller was stopped, or hangs. The watchdog runs the command once for
 *   each silence, and keeps guarding them, because the controller may go on.
 *
 * The watchdog uses neither libvirt nor the history: the command does, in a process that may
 * hang or die. It has no descriptor of the controller's but the pipe and the standard streams, so that
 * no lock of a dead controller lives on in it.
 */
#include "balloon/watchdog.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/child.h"
#include "base/fault.h"
#include "base/log.h"
#include "host/domxml.h"

/*
 * Pauses between two runs: libvirtd may be down for a while, perhaps the very reason for the
 * run.
 */
#define BETWEEN_MIN_S 2
#define BETWEEN_MAX_S 60
#define TRIES (24 * 60)
/* Longest time between two beats of a controller that runs. */
#define SILENCE_MS 10000
#define SHORT_SILENCE_MS 200
/* Time between two attempts to add a guest. */
#define MEMORY_WAIT_NS 10000000L
/*
 * Size of one write to the pipe: a UUID, or one of these bytes, which never occur in a UUID.
 */
#define RECORD_BYTES (WSS_UUID_TEXT_MAX - 1)
#define BEAT '!'
#define ALL_IS_WELL '.'

struct guarded {
	char **argv;  /* words of the command, then the guests */
	size_t words; /* number of words before the guests */
	size_t n;
	char record[RECORD_BYTES]; /* the part of a UUID that has been read */
	size_t len;
};

/*
 * SIGCHLD keeps its default: where it is ignored, which a program inherits from whoever starts it,
 * the exit status of a child is lost.
 */
static void set_signals(void (*handler)(int))
{
	for (int sig = 1; sig < 32; sig++)
		signal(sig, sig == SIGCHLD ? SIG_DFL : handler);
}

/* Runs the command for n guests; returns true if they have their memory back. */
static bool restore_run(const struct guarded *guarded, char **guests, size_t n)
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0) {
		char **argv = guarded->argv;

		set_signals(SIG_DFL);
		memmove(argv + guarded->words, guests, n * sizeof(*guests));
		argv[guarded->words + n] = NULL;
		execv("/proc/self/exe", argv);
		_exit(127);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

/*
 * Runs the command for one guest after the other and drops those that have their memory back:
 * by the next run another controller may have shrunk them, which is not ours to undo.
 */
static void restore_run_each(struct guarded *guarded)
{
	size_t left = guarded->words;

	for (size_t i = guarded->words; i < guarded->n; i++)
		if (!restore_run(guarded, &guarded->argv[i], 1))
			guarded->argv[left++] = guarded->argv[i];
	guarded->n = left;
	guarded->argv[left] = NULL;
}

static void guarded_restore(struct guarded *guarded)
{
	struct timespec between = {.tv_sec = BETWEEN_MIN_S};

	if (restore_run(guarded, guarded->argv + guarded->words, guarded->n - guarded->words))
		return;
	for (int i = 0; i < TRIES; i++) {
		restore_run_each(guarded);
		if (guarded->n == guarded->words)
			return;
		nanosleep(&between, NULL);
		if (between.tv_sec < BETWEEN_MAX_S)
			between.tv_sec *= 2;
	}
}

static void wait_for_memory(void)
{
	const struct timespec pause = {.tv_nsec = MEMORY_WAIT_NS};

	nanosleep(&pause, NULL);
}

/*
 * Adds a guest. If the allocation fails the watchdog keeps trying, without reading on in the
 * pipe, because a guest not on the list would never get its memory back.
 */
static void guarded_add(struct guarded *guarded)
{
	char **more, *uuid;

	guarded->len = 0;
	while (!(more = reallocarray(guarded->argv, guarded->n + 2, sizeof(*more))))
		wait_for_memory();
	while (!(uuid = strndup(guarded->record, RECORD_BYTES)))
		wait_for_memory();
	guarded->argv = more;
	more[guarded->n++] = uuid;
	more[guarded->n] = NULL;
}

/* Reads messages; returns true at the final byte. */
static bool guarded_hear(struct guarded *guarded, const char *said, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (said[i] == ALL_IS_WELL)
			return true;
		if (said[i] == BEAT)
			continue;
		guarded->record[guarded->len++] = said[i];
		if (guarded->len == RECORD_BYTES)
			guarded_add(guarded);
	}
	return false;
}

/*
 * Gives memory back in place of a controller that is stopped or hangs. Keeps the guests on the
 * list, because the controller may go on and complete a step. Returns true if nothing is left
 * to do.
 */
static bool stand_in(const struct guarded *guarded)
{
	if (guarded->n == guarded->words)
		return true;
	wss_warn("no sign of life from the controller: the watchdog gives the memory back");
	return restore_run(guarded, guarded->argv + guarded->words, guarded->n - guarded->words);
}

/* Returns true after the final byte, false if the controller ended without it. */
static bool wait_for_the_end(int fd, struct guarded *guarded)
{
	int patience_ms = wss_fault("short-silence") ? SHORT_SILENCE_MS : SILENCE_MS;
	bool given = false;

	for (;;) {
		struct pollfd pfd = {.fd = fd, .events = POLLIN};
		char said[PIPE_BUF];
		int r = poll(&pfd, 1, patience_ms);
		ssize_t n;

		if (r == 0 && !given)
			given = stand_in(guarded);
		if (r <= 0)
			continue;
		n = read(fd, said, sizeof(said));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		given = false;
		if (guarded_hear(guarded, said, (size_t)n))
			return true;
	}
}

/*
 * Main function of the watchdog, in a session of its own, so that a signal to the terminal's
 * group does not end it.
 */
static _Noreturn void guarded_watch(int fd, struct guarded *guarded)
{
	/* The command reports on the standard streams. */
	const int keep[] = {0, 1, 2, fd};

	wss_child_close_all_but(keep, sizeof(keep) / sizeof(keep[0]));
	setsid();
	set_signals(SIG_IGN);
	if (wait_for_the_end(fd, guarded))
		_exit(0);
	set_signals(SIG_DFL);
	if (guarded->n > guarded->words)
		guarded_restore(guarded);
	_exit(0);
}

/* Copies the command; after the fork the watchdog has its own copy of this memory. */
static int guarded_begin(const char *const *command, struct guarded *ret_guarded)
{
	size_t words = 0;

	while (command[words])
		words++;
	ret_guarded->argv = calloc(words + 1, sizeof(char *));
	if (!ret_guarded->argv)
		return -1;
	for (; ret_guarded->n < words; ret_guarded->n++) {
		ret_guarded->argv[ret_guarded->n] = strdup(command[ret_guarded->n]);
		if (!ret_guarded->argv[ret_guarded->n])
			return -1;
	}
	ret_guarded->words = words;
	return 0;
}

static void guarded_free(struct guarded *guarded)
{
	for (size_t i = 0; i < guarded->n; i++)
		free(guarded->argv[i]);
	free(guarded->argv);
}

int wss_watchdog_start(const char *const *restore_command, int *ret_fd, struct wss_error *err)
{
	struct guarded guarded = {0};
	int fds[2];
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return wss_error_errno(err, WSS_ERR_FAILED, errno, "cannot create a pipe");
	/* A watchdog that does not read must not block us. */
	fcntl(fds[1], F_SETFL, O_NONBLOCK);
	if (guarded_begin(restore_command, &guarded) < 0)
		pid = -1;
	else
		pid = fork();
	if (pid == 0)
		guarded_watch(fds[0], &guarded);
	close(fds[0]);
	guarded_free(&guarded);
	if (pid < 0) {
		close(fds[1]);
		return wss_error_errno(err, WSS_ERR_FAILED, errno, "cannot start the watchdog");
	}
	*ret_fd = fds[1];
	return 0;
}

/* Shorter than PIPE_BUF, so each message is one write, even with several threads. */
static ssize_t watchdog_write(int fd, const char *text, size_t len)
{
	ssize_t n;

	do
		n = write(fd, text, len);
	while (n < 0 && errno == EINTR);
	return n;
}

int wss_watchdog_guard(int fd, const char *uuid, struct wss_error *err)
{
	struct pollfd pfd = {.fd = fd};

	if ((poll(&pfd, 1, 0) > 0 && (pfd.revents & POLLERR)) ||
	    (uuid && watchdog_write(fd, uuid, RECORD_BYTES) != RECORD_BYTES))
		return wss_error_set(err, WSS_ERR_FAILED, "the watchdog has died");
	return 0;
}

void wss_watchdog_beat(int fd)
{
	const char word = BEAT;

	watchdog_write(fd, &word, 1);
}

void wss_watchdog_dismiss(int fd)
{
	const char word = ALL_IS_WELL;

	watchdog_write(fd, &word, 1);
	close(fd);
}
