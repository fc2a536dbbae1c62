/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "serve/http.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/child.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/number.h"
#include "base/units.h"
#include "serve/http-child.h"
#include "serve/rights.h"

/* A process that has not taken its pages for this long hangs. */
#define TAKE_NS (30 * WSS_NS_PER_S)
/* A process that lived this long is restarted at once, others after growing pauses. */
#define LIVED_NS (10 * WSS_NS_PER_S)
#define PAUSE_MIN_NS (500 * WSS_NS_PER_MS)
#define PAUSE_MAX_NS (30 * WSS_NS_PER_S)
/* Above the numbers of all descriptors that the process gets. */
#define HIGH_FD 64
/* The exit status of a process that could not be started, as shells have it. */
#define NOT_STARTED 127

struct wss_http {
	struct wss_http_listener listeners[WSS_HTTP_LISTENERS_MAX];
	size_t n_listeners;
	uid_t uid;
	gid_t gid;
	int pidfd;   /* -1: it does not run */
	int channel; /* -1: likewise */
	int pages;   /* the newest; -1: none yet, as for the named pages */
	int named;
	bool taking;	   /* pages are on their way */
	bool serves;	   /* it has taken pages since it was started */
	char why_not[128]; /* it could not be started, or ended; "": neither since it last served */
	uint64_t sent_ns, started_ns;
	uint64_t start_ns;  /* when it may be started */
	uint64_t reopen_ns; /* when listeners that are missing are tried again */
	uint64_t pause_ns;
	uint64_t starts;
};

/* --- how it begins --- */

static int find_user(const char *name, uid_t *ret_uid, gid_t *ret_gid, struct wss_error *err)
{
	const struct passwd *user;

	*ret_uid = geteuid();
	*ret_gid = getegid();
	if (*ret_uid != 0)
		return 0;
	if (!name)
		name = WSS_HTTP_USER;
	user = getpwnam(name);
	if (!user)
		return wss_error_set(err, WSS_ERR_USAGE, "there is no user '%s' to serve HTTP",
				     name);
	if (user->pw_uid == 0 || user->pw_gid == 0)
		return wss_error_set(err, WSS_ERR_USAGE,
				     "user '%s' cannot serve HTTP: it has root's rights", name);
	*ret_uid = user->pw_uid;
	*ret_gid = user->pw_gid;
	return 0;
}

int wss_http_check_user(const char *name, struct wss_error *err)
{
	uid_t uid;
	gid_t gid;

	return find_user(name, &uid, &gid, err);
}

static int open_listeners(const struct wss_http_options *options, struct wss_http *http,
			  struct wss_error *err)
{
	if (wss_http_listen_activated(http->listeners, WSS_HTTP_LISTENERS_MAX, &http->n_listeners,
				      err) < 0)
		return -1;
	for (size_t i = 0; i < options->n_addresses; i++) {
		if (http->n_listeners == WSS_HTTP_LISTENERS_MAX)
			return wss_error_set(err, WSS_ERR_USAGE,
					     "HTTP is served at %d addresses at most",
					     WSS_HTTP_LISTENERS_MAX);
		if (wss_http_listen(&options->addresses[i], &http->listeners[http->n_listeners],
				    err) < 0)
			return -1;
		http->n_listeners++;
	}
	return 0;
}

int wss_http_new(const struct wss_http_options *options, struct wss_http **ret_http,
		 struct wss_error *err)
{
	struct wss_http *http = calloc(1, sizeof(*http));

	if (!http)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	http->pidfd = http->channel = http->pages = http->named = -1;
	if (open_listeners(options, http, err) < 0 ||
	    (http->n_listeners && find_user(options->user, &http->uid, &http->gid, err) < 0)) {
		wss_http_free(http);
		return -1;
	}
	if (!http->n_listeners) {
		wss_http_free(http);
		http = NULL;
	}
	for (size_t i = 0; http && i < http->n_listeners; i++)
		wss_log(WSS_LOG_INFO, "HTTP at %s", http->listeners[i].name);
	*ret_http = http;
	return 0;
}

/* --- listeners --- */

static size_t listeners_count(const struct wss_http *http)
{
	size_t n = 0;

	for (size_t i = 0; i < http->n_listeners; i++)
		n += http->listeners[i].fd >= 0;
	return n;
}

/*
 * Listens again where nobody listens any more, and if all is set, wherever the socket is our own: a process that has
 * been taken over can have changed it, or passed it on. Returns at how many addresses that do it had ended.
 */
static size_t listeners_reopen(struct wss_http *http, bool all)
{
	size_t reopened = 0;

	http->reopen_ns = wss_clock_now_ns() + PAUSE_MAX_NS;
	for (size_t i = 0; i < http->n_listeners; i++) {
		struct wss_http_listener *listener = &http->listeners[i];
		struct wss_error error = WSS_ERROR_INIT;
		bool worked = wss_http_listener_works(listener);

		if (worked && (!all || wss_http_listener_is_passed(listener)))
			continue;
		if (wss_http_listen_again(listener, &error) < 0) {
			if (error.code)
				wss_log(WSS_LOG_ERROR, "%s", error.text);
		} else if (!worked) {
			wss_warn("%s no longer listened: it does again", listener->name);
			reopened++;
		}
	}
	return reopened;
}

/* --- the process --- */

/*
 * Between fork() and execve() of a process with threads: system calls only. Descriptors: the
 * channel, then the listening sockets. Standard input and output are left closed, and become
 * /dev/null.
 */
static _Noreturn void child_exec(const struct wss_http *http, int channel, char **words)
{
	char *no_environment[] = {NULL};
	int fds[1 + WSS_HTTP_LISTENERS_MAX], keep[2 + WSS_HTTP_LISTENERS_MAX], n = 0;
	sigset_t none;

	fds[n++] = fcntl(channel, F_DUPFD_CLOEXEC, HIGH_FD);
	for (size_t i = 0; i < http->n_listeners; i++)
		if (http->listeners[i].fd >= 0)
			fds[n++] = fcntl(http->listeners[i].fd, F_DUPFD_CLOEXEC, HIGH_FD);
	for (int i = 0; i < n; i++)
		if ((keep[i] = dup2(fds[i], WSS_HTTP_CHANNEL + i)) < 0)
			_exit(NOT_STARTED);
	keep[n] = STDERR_FILENO;
	wss_child_close_all_but(keep, (size_t)n + 1);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	execve("/proc/self/exe", words, no_environment);
	_exit(NOT_STARTED);
}

/* Returns a pidfd of the process, which stays its own whatever becomes of SIGCHLD; -1 with errno. */
static int child_fork(const struct wss_http *http, int channel)
{
	char uid[WSS_NUMBER_TEXT_MAX], gid[WSS_NUMBER_TEXT_MAX], n[WSS_NUMBER_TEXT_MAX];
	char name[] = WSS_HTTP_CHILD;
	char *words[] = {name, wss_number_format(http->uid, uid), wss_number_format(http->gid, gid),
			 wss_number_format(listeners_count(http), n), NULL};
	pid_t pid = fork();

	if (pid == 0)
		child_exec(http, channel, words);
	/* Without it the process ends with its channel. */
	return pid < 0 ? -1 : (int)syscall(SYS_pidfd_open, pid, 0);
}

static void child_send_pages(struct wss_http *http)
{
	const int fds[2] = {http->pages, http->named};
	size_t size = (http->named < 0 ? 1 : 2) * sizeof(int);
	char byte = 'p', control[CMSG_SPACE(sizeof(fds))] = "";
	struct iovec iov = {&byte, 1};
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = CMSG_SPACE(size),
	};
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);

	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN(size);
	memcpy(CMSG_DATA(cmsg), fds, size);
	http->taking = sendmsg(http->channel, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) == 1;
	http->sent_ns = wss_clock_now_ns();
}

/* Keeps errno as the reason. */
static void child_start_failed(struct wss_http *http)
{
	snprintf(http->why_not, sizeof(http->why_not), "its process cannot be started: %s",
		 strerror(errno));
	wss_log(WSS_LOG_ERROR, "cannot start the HTTP process: %s", strerror(errno));
}

static void child_start(struct wss_http *http)
{
	int fds[2], pidfd;

	http->started_ns = wss_clock_now_ns();
	http->start_ns = http->started_ns + PAUSE_MAX_NS;
	listeners_reopen(http, http->starts > 0);
	if (!listeners_count(http)) {
		snprintf(http->why_not, sizeof(http->why_not), "it can listen nowhere");
		return;
	}
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0) {
		child_start_failed(http);
		return;
	}
	pidfd = child_fork(http, fds[1]);
	if (pidfd < 0)
		child_start_failed(http);
	close(fds[1]);
	if (pidfd < 0) {
		close(fds[0]);
		return;
	}
	http->pidfd = pidfd;
	http->channel = fds[0];
	http->starts++;
	if (http->pages >= 0)
		child_send_pages(http);
}

/* --- how it goes on --- */

/*
 * Notes that pages were taken. A process that says anything else, or has closed its channel, does not serve, whatever
 * else it does: it has been taken over, or is ending.
 */
static void child_hear(struct wss_http *http)
{
	char byte;
	ssize_t n;

	while ((n = recv(http->channel, &byte, 1, MSG_DONTWAIT)) == 1 && http->taking) {
		http->taking = false;
		http->serves = true;
		http->why_not[0] = '\0';
	}
	if (n == 1)
		wss_warn("the HTTP process answered without having got pages: starting it again");
	if (n >= 0)
		wss_rights_kill(http->pidfd, SIGKILL);
	if (http->taking && wss_clock_now_ns() - http->sent_ns > TAKE_NS) {
		wss_warn("the HTTP process has not taken its pages for 30 s: starting it again");
		wss_rights_kill(http->pidfd, SIGKILL);
		http->taking = false;
	}
}

/* Waits for the end of the process, and releases it. *ret_how has no si_code if nobody knows how it ended. */
static void child_reap(struct wss_http *http, siginfo_t *ret_how)
{
	struct pollfd pfd = {.fd = http->pidfd, .events = POLLIN};

	while (poll(&pfd, 1, -1) < 0 && errno == EINTR)
		;
	*ret_how = (siginfo_t){.si_code = 0};
	waitid(P_PIDFD, (id_t)http->pidfd, ret_how, WEXITED);
	close(http->pidfd);
	close(http->channel);
	http->pidfd = http->channel = -1;
}

static void child_died(struct wss_http *http)
{
	uint64_t now_ns = wss_clock_now_ns();
	char text[112] = "";
	siginfo_t how;

	if (now_ns - http->started_ns >= LIVED_NS)
		http->pause_ns = 0;
	else
		http->pause_ns =
			wss_u64_min(wss_u64_max(2 * http->pause_ns, PAUSE_MIN_NS), PAUSE_MAX_NS);
	http->start_ns = now_ns + http->pause_ns;
	http->taking = http->serves = false;
	child_reap(http, &how);
	if (how.si_code == CLD_EXITED && how.si_status == NOT_STARTED)
		snprintf(text, sizeof(text),
			 " at once (is the limit of open files, LimitNOFILE, too low?)");
	else if (how.si_code)
		snprintf(text, sizeof(text), " (%s %d)",
			 how.si_code == CLD_EXITED ? "exit status" : "signal", how.si_status);
	snprintf(http->why_not, sizeof(http->why_not), "its process ended%s", text);
	wss_warn("the HTTP process ended%s: starting it again", text);
}

void wss_http_step(struct wss_http *http)
{
	if (http->pidfd >= 0) {
		struct pollfd pfd = {.fd = http->pidfd, .events = POLLIN};

		child_hear(http);
		/* The next process gets those that listen again. */
		if (listeners_count(http) < http->n_listeners &&
		    wss_clock_now_ns() >= http->reopen_ns && listeners_reopen(http, false))
			wss_rights_kill(http->pidfd, SIGKILL);
		if (poll(&pfd, 1, 0) > 0)
			child_died(http);
	}
	if (http->pidfd < 0 && wss_clock_now_ns() >= http->start_ns)
		child_start(http);
}

bool wss_http_ready(const struct wss_http *http)
{
	return !http->taking;
}

void wss_http_publish(struct wss_http *http, int fd)
{
	if (http->pages >= 0)
		close(http->pages);
	http->pages = fd;
	if (http->pidfd >= 0)
		child_send_pages(http);
}

void wss_http_set_named(struct wss_http *http, int fd)
{
	if (http->named >= 0)
		close(http->named);
	http->named = fd;
}

uint64_t wss_http_starts(const struct wss_http *http)
{
	return http->starts;
}

bool wss_http_runs(const struct wss_http *http)
{
	return http->pidfd >= 0 && http->serves;
}

const char *wss_http_why_not(const struct wss_http *http)
{
	return !wss_http_runs(http) && http->why_not[0] ? http->why_not : NULL;
}

void wss_http_free(struct wss_http *http)
{
	siginfo_t how;

	if (!http)
		return;
	if (http->pidfd >= 0) {
		wss_rights_kill(http->pidfd, SIGKILL);
		child_reap(http, &how);
	}
	if (http->pages >= 0)
		close(http->pages);
	if (http->named >= 0)
		close(http->named);
	for (size_t i = 0; i < http->n_listeners; i++)
		wss_http_listener_close(&http->listeners[i]);
	free(http);
}
