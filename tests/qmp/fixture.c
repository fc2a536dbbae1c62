/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

const struct qmp_limits canned_limits = {
	.reply_bytes = 4u << 20, .tree_bytes = 32u << 20, .depth = 64, .first_id = 1};

static void write_script(const char *path, const char *script)
{
	FILE *f = fopen(path, "we");

	assert_non_null(f);
	assert_true(fputs(script, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static void await_ready(int fd)
{
	struct pollfd pfd = {.fd = fd, .events = POLLIN};
	char text[256] = "";
	ssize_t n;

	assert_int_equal(poll(&pfd, 1, (int)PLENTY_MS), 1);
	n = read(fd, text, sizeof(text) - 1);
	assert_true(n > 6);
	assert_memory_equal(text, "ready ", 6);
}

void fake_start(struct fake *fake, const char *script)
{
	char path[96];
	int ready[2];

	strcpy(fake->dir, "/tmp/test-qmp-XXXXXX");
	assert_non_null(mkdtemp(fake->dir));
	snprintf(fake->socket, sizeof(fake->socket), "%s/s", fake->dir);
	snprintf(path, sizeof(path), "%s/script", fake->dir);
	write_script(path, script);
	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	fake->pid = fork();
	assert_true(fake->pid >= 0);
	if (!fake->pid) {
		dup2(ready[1], STDOUT_FILENO);
		execl(FAKE_QMP, FAKE_QMP, fake->socket, path, (char *)NULL);
		_exit(127);
	}
	close(ready[1]);
	await_ready(ready[0]);
	close(ready[0]);
}

void fake_stop(struct fake *fake)
{
	char path[96];
	int status;

	assert_int_equal(kill(fake->pid, SIGKILL), 0);
	assert_int_equal(waitpid(fake->pid, &status, 0), fake->pid);
	/* The server must still be alive: a script that it refuses would test nothing. */
	assert_true(WIFSIGNALED(status));
	unlink(fake->socket);
	snprintf(path, sizeof(path), "%s/script", fake->dir);
	unlink(path);
	assert_int_equal(rmdir(fake->dir), 0);
}

struct qmp *fake_connect(const struct fake *fake, const struct qmp_limits *limits)
{
	struct wss_error err = WSS_ERROR_INIT;
	struct qmp *qmp = NULL;

	if (qmp_open_unix(fake->socket, PLENTY_MS, limits, &qmp, &err) < 0)
		fail_msg("%s", err.text);
	assert_non_null(qmp);
	return qmp;
}

int stream_of(const void *bytes, size_t len)
{
	/* Kept open so that the client can send; the next call closes it. */
	static int server = -1;
	int fds[2], room = 1 << 20;

	if (server >= 0)
		close(server);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	server = fds[1];
	assert_int_equal(setsockopt(server, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room)), 0);
	assert_int_equal(send(server, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT), (ssize_t)len);
	assert_int_equal(shutdown(server, SHUT_WR), 0);
	return fds[0];
}

struct qmp *connect_stream(const char *text)
{
	struct wss_error err = WSS_ERROR_INIT;
	struct qmp *qmp = NULL;
	char all[4096];
	int len = snprintf(all, sizeof(all), "%s%s", GREETING, text);

	assert_in_range(len, 0, sizeof(all) - 1);
	if (qmp_open_fd(stream_of(all, (size_t)len), PLENTY_MS, &canned_limits, &qmp, &err) < 0)
		fail_msg("%s", err.text);
	return qmp;
}

char canned_command[512];

static int canned_execute(void *opaque, const char *command, uint64_t deadline_ns,
			  size_t reply_bytes, char **ret_reply, struct wss_error *err)
{
	const char *const *reply = opaque;

	snprintf(canned_command, sizeof(canned_command), "%s", command);
	(void)deadline_ns;
	(void)reply_bytes;
	(void)err;
	*ret_reply = strdup(*reply);
	return *ret_reply ? 0 : -1;
}

struct qmp *connect_canned(const char *const *reply)
{
	static const struct qmp_transport_ops ops = {.name = "canned replies",
						     .execute = canned_execute};
	struct qmp *qmp = NULL;

	assert_int_equal(qmp_open_transport(&ops, (void *)reply, NULL, &qmp, NULL), 0);
	return qmp;
}

uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}
