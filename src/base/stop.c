/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "base/stop.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

/* Lock-free, so that a signal handler may set it, and visible to all threads. */
static atomic_int stop_signal;
/* Self-pipe: unlike a flag alone it also ends a poll() that starts just after the signal. */
static int stop_pipe[2] = {-1, -1};

static bool pipe_ends_us;

static void on_signal(int number)
{
	int saved_errno = errno;
	ssize_t ignored;

	stop_signal = number;
	ignored = write(stop_pipe[1], "", 1);
	(void)ignored;
	errno = saved_errno;
}

void wss_stop_install(void)
{
	struct sigaction sa = {.sa_handler = on_signal};
	struct sigaction ignore = {.sa_handler = SIG_IGN};
	struct sigaction old;

	if (pipe2(stop_pipe, O_CLOEXEC | O_NONBLOCK) < 0)
		stop_pipe[0] = stop_pipe[1] = -1;
	/* Handle SIGINT even if it is ignored, as in a script's background jobs. */
	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	/* Under nohup SIGHUP is ignored and stays so. */
	if (sigaction(SIGHUP, NULL, &old) == 0 && old.sa_handler != SIG_IGN)
		sigaction(SIGHUP, &sa, NULL);
	pipe_ends_us = sigaction(SIGPIPE, &ignore, &old) == 0 && old.sa_handler != SIG_IGN;
	/*
	 * With SIGXFSZ ignored, exceeding the file size limit fails the write, as a full disk
	 * does.
	 */
	sigaction(SIGXFSZ, &ignore, NULL);
}

/* Lock-free, like stop_signal. */
static atomic_bool reload_wanted;

static void on_hangup(int number)
{
	(void)number;
	reload_wanted = true;
}

void wss_stop_spare_hangup(void)
{
	/* Calls go on: nothing has to end. */
	struct sigaction sa = {.sa_handler = on_hangup, .sa_flags = SA_RESTART};

	sigaction(SIGHUP, &sa, NULL);
}

bool wss_stop_take_reload(void)
{
	return atomic_exchange(&reload_wanted, false);
}

bool wss_stop_on_closed_pipe(void)
{
	if (pipe_ends_us && !stop_signal)
		on_signal(SIGPIPE);
	return pipe_ends_us;
}

bool wss_stop_requested(void)
{
	return stop_signal != 0;
}

int wss_stop_signal(void)
{
	return stop_signal;
}

int wss_stop_fd(void)
{
	return stop_pipe[0];
}

bool wss_stop_wait_ns(uint64_t timeout_ns)
{
	struct pollfd pfd = {.fd = stop_pipe[0], .events = POLLIN};
	struct timespec ts = {.tv_sec = (time_t)(timeout_ns / WSS_NS_PER_S),
			      .tv_nsec = (long)(timeout_ns % WSS_NS_PER_S)};

	ppoll(&pfd, 1, &ts, NULL);
	return wss_stop_requested();
}
