/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "base/child.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"

#define OPEN_FILES_MAX 65536

static void close_from_to(unsigned first, unsigned last)
{
	struct rlimit limit = {.rlim_cur = OPEN_FILES_MAX};

	if (syscall(__NR_close_range, first, last, 0u) == 0)
		return;
	/* Linux before 5.9. */
	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur > OPEN_FILES_MAX)
		limit.rlim_cur = OPEN_FILES_MAX;
	for (unsigned fd = first; fd <= last && fd < limit.rlim_cur; fd++)
		close((int)fd);
}

void wss_child_close_all_but(const int *keep, size_t n)
{
	unsigned first = 0;

	for (;;) {
		unsigned next = UINT_MAX;

		for (size_t i = 0; i < n; i++)
			if (keep[i] >= 0 && (unsigned)keep[i] >= first && (unsigned)keep[i] < next)
				next = (unsigned)keep[i];
		if (next > first)
			close_from_to(first, next == UINT_MAX ? next : next - 1);
		if (next == UINT_MAX)
			return;
		first = next + 1;
	}
}

static void child_main(void (*fn)(void *), void *result, size_t size, int out)
{
	/* Sanitizers and valgrind report there. */
	const int keep[] = {STDERR_FILENO, out};

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	wss_child_close_all_but(keep, 2);
	fn(result);
	_exit(write(out, result, size) == (ssize_t)size ? 0 : 1);
}

int wss_child_open_clear_refs(void)
{
	return open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
}

int wss_child_run(void (*fn)(void *result), void *result, size_t size, uint64_t timeout_ns,
		  struct wss_error *err)
{
	uint64_t deadline = wss_clock_now_ns() + timeout_ns;
	wss_auto_close int in = -1;
	wss_auto_close int out = -1;
	struct pollfd pfd;
	int fds[2], ready;
	ssize_t n = -1;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return wss_error_errno(err, WSS_ERR_FAILED, errno, "cannot create a pipe");
	in = fds[0];
	out = fds[1];
	pid = fork();
	if (pid < 0)
		return wss_error_errno(err, WSS_ERR_FAILED, errno, "cannot fork");
	if (pid == 0)
		child_main(fn, result, size, out);
	close(wss_steal_fd(&out));
	pfd = (struct pollfd){.fd = in, .events = POLLIN};
	do
		ready = poll(&pfd, 1, wss_clock_poll_ms(deadline));
	while (ready < 0 && errno == EINTR && wss_clock_now_ns() < deadline);
	if (ready > 0)
		n = read(in, result, size);
	else
		kill(pid, SIGKILL);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	if (ready <= 0)
		return wss_error_set(err, WSS_ERR_TIMEOUT,
				     "a child process did not finish in time");
	if (n != (ssize_t)size)
		return wss_error_set(err, WSS_ERR_FAILED, "a child process died without a result");
	return 0;
}
