/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "cmd/balloon.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* libvirtd may be gone for a moment, and may be why we are needed. */
#define TRIES 60
#define BETWEEN_S 5

static void restore(char *const *argv)
{
	const struct timespec between = { .tv_sec = BETWEEN_S };

	for (int i = 0; i < TRIES; i++) {
		int status = -1;
		pid_t pid = fork();

		if (pid == 0) {
			execv("/proc/self/exe", argv);
			_exit(127);
		}
		if (pid > 0 && waitpid(pid, &status, 0) == pid && status == 0)
			return;
		nanosleep(&between, NULL);
	}
}

/* Of a session of its own, so that nothing that ends the terminal's group ends it, too. */
static void watch(int fd, char *const *argv)
{
	char message = 0;
	ssize_t n;

	setsid();
	for (int sig = 1; sig < 32; sig++)
		if (sig != SIGCHLD)
			signal(sig, SIG_IGN);
	do
		n = read(fd, &message, 1);
	while (n < 0 && errno == EINTR);
	if (n == 1)
		_exit(0);
	for (int sig = 1; sig < 32; sig++)
		signal(sig, SIG_DFL);
	restore(argv);
	_exit(0);
}

int wss_balloon_watchdog(const struct wss_cli *cli, const struct balloon_options *options,
			 int *ret_fd, struct wss_error *err)
{
	char *argv[10] = { (char *)"virt-wss", (char *)"balloon", (char *)"--restore" };
	char *path = wss_store_path(&options->history);
	size_t n = 3;
	pid_t pid;
	int fds[2];

	if (!path)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	argv[n++] = (char *)"--history";
	argv[n++] = path;
	if (cli->uri) {
		argv[n++] = (char *)"-c";
		argv[n++] = (char *)cli->uri;
	}
	if (pipe2(fds, O_CLOEXEC) < 0) {
		free(path);
		return wss_error_errno(err, WSS_ERR_FAILED, errno, "cannot make a pipe");
	}
	pid = fork();
	if (pid == 0) {
		close(fds[1]);
		watch(fds[0], argv);
	}
	close(fds[0]);
	free(path);
	if (pid < 0) {
		close(fds[1]);
		return wss_error_errno(err, WSS_ERR_FAILED, errno, "cannot start the watchdog");
	}
	*ret_fd = fds[1];
	return 0;
}

void wss_balloon_all_is_well(int fd)
{
	ssize_t n;

	do
		n = write(fd, "d", 1);
	while (n < 0 && errno == EINTR);
	close(fd);
}
