/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Theory of operation
 *
 * SIGSTOP to its QEMU holds a guest. The kernel does not undo that when the sender dies, but a
 * watchdog does: a process, forked before the first stop, that has a socket to us, the guest's
 * pidfd, and nothing else. It is in one of two states:
 *
 *	      receives 'h'			receives 'f'
 *	FREE --------------> HELD ------------------------------> FREE
 *	  |		      |
 *	  | our end closed    | our end closed, or WSS_HOLD_MAX_NS without a message
 *	  v		      v
 *	exits		    sends SIGCONT, exits
 *
 * Each message is answered, and the order of messages and signals is what makes it safe:
 *
 * - wss_hold_stop() sends 'h' and waits for the answer, then sends SIGSTOP, then waits until every
 *   thread has stopped. The guest is never stopped without a watchdog.
 * - wss_hold_release() sends SIGCONT, then 'f'. The guest never waits for the watchdog. An answer
 *   proves that the watchdog had not resumed the guest before. Without one the guest may have run
 *   during the hold, and the caller must report that the window is not exact.
 * - A watchdog that does not answer is killed, because its state is unknown: it must not continue
 *   the guest in the middle of a later hold. wss_hold_stop() starts another one in its place.
 *
 * The watchdog blocks all signals and has a session of its own, so that a signal from the terminal
 * that ends us does not end it. It closes all descriptors but its two: a lock of ours that survived
 * in it would keep the guest busy. If both processes are killed at once, the guest stays stopped
 * until somebody sends SIGCONT; virt-wss then refuses it as stopped by somebody else.
 */
#include "measure/hold.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/child.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/privilege.h"

#define STOP_TIMEOUT_NS WSS_NS_PER_S
/* The guest runs during this wait, so a busy host may take its time. */
#define ANSWER_TIMEOUT_NS (5 * WSS_NS_PER_S)
/* Messages to the watchdog: the guest is about to be held, and it has been resumed. */
#define MESSAGE_HELD 'h'
#define MESSAGE_FREE 'f'

struct wss_hold {
	const struct wss_process *process;
	pid_t watchdog;
	int socket;
	bool held;
};

static void continue_guest(int pidfd)
{
	syscall(__NR_pidfd_send_signal, pidfd, SIGCONT, NULL, 0);
}

/* Whether a message came, or the end of the socket; for ever, if timeout_ns is 0. */
static bool socket_wait(int socket, uint64_t timeout_ns)
{
	struct pollfd pfd = {.fd = socket, .events = POLLIN};
	uint64_t deadline_ns = wss_clock_now_ns() + timeout_ns;

	if (timeout_ns && wss_clock_poll_injected(&pfd, 1, timeout_ns))
		return pfd.revents != 0;
	while (poll(&pfd, 1, timeout_ns ? wss_clock_poll_ms(deadline_ns) : -1) < 0 &&
	       errno == EINTR)
		;
	return pfd.revents != 0;
}

/*
 * Main loop of the watchdog, which must survive everything that ends its parent: signals to
 * the terminal's process group, and SIGKILL to the parent.
 */
static void watchdog_main(int socket, int pidfd)
{
	bool held = false;
	char message;

	while (socket_wait(socket, held ? WSS_HOLD_MAX_NS : 0) &&
	       recv(socket, &message, 1, 0) == 1) {
		held = message == MESSAGE_HELD;
		/* The answer tells the parent, before it stops the guest, that the watchdog is watching. */
		if (send(socket, &message, 1, MSG_NOSIGNAL) != 1)
			break;
	}
	if (held)
		continue_guest(pidfd);
	_exit(0);
}

static pid_t fork_watchdog(int socket, int pidfd)
{
	const int keep[] = {socket, pidfd};
	sigset_t all, old;
	pid_t pid;

	/* Blocked across fork(): the child must not run our handlers. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	pid = fork();
	if (pid == 0) {
		setsid();
		prctl(PR_SET_NAME, "virt-wss-hold");
		wss_child_close_all_but(keep, 2);
		watchdog_main(socket, pidfd);
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return pid;
}

static int start_watchdog(struct wss_hold *hold, struct wss_error *err)
{
	wss_auto_close int ours = -1;
	wss_auto_close int theirs = -1;
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0)
		return wss_error_errno(err, WSS_ERR_FAILED, errno, "cannot make a socket pair");
	ours = fds[0];
	theirs = fds[1];
	hold->watchdog = fork_watchdog(theirs, hold->process->pidfd);
	if (hold->watchdog < 0)
		return wss_error_errno(err, WSS_ERR_FAILED, errno, "cannot start the watchdog");
	hold->socket = wss_steal_fd(&ours);
	return 0;
}

/* Closes our end of the socket, which makes the watchdog exit. */
static void end_watchdog(struct wss_hold *hold)
{
	if (hold->socket >= 0)
		close(wss_steal_fd(&hold->socket));
	if (hold->watchdog > 0)
		while (waitpid(hold->watchdog, NULL, 0) < 0 && errno == EINTR)
			;
	hold->watchdog = -1;
}

int wss_hold_open(const struct wss_process *process, struct wss_hold **ret_hold,
		  struct wss_error *err)
{
	wss_auto_free struct wss_hold *hold = calloc(1, sizeof(*hold));

	if (!hold)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	*hold = (struct wss_hold){.process = process, .watchdog = -1, .socket = -1};
	if (start_watchdog(hold, err) < 0)
		return -1;
	*ret_hold = wss_steal_ptr(hold);
	return 0;
}

/* Sends the watchdog a message and waits for its answer. */
static int watchdog_tell(struct wss_hold *hold, char message)
{
	char answer;

	if (send(hold->socket, &message, 1, MSG_NOSIGNAL) == 1 &&
	    socket_wait(hold->socket, ANSWER_TIMEOUT_NS) &&
	    recv(hold->socket, &answer, 1, MSG_DONTWAIT) == 1 && answer == message)
		return 0;
	/* Its state is unknown: it must not resume the guest in the middle of a later hold. */
	if (hold->watchdog > 0)
		kill(hold->watchdog, SIGKILL);
	return -1;
}

static int wait_stopped(const struct wss_process *process, struct wss_error *err)
{
	uint64_t deadline = wss_clock_now_ns() + STOP_TIMEOUT_NS;
	struct timespec pause = {.tv_nsec = 100000};

	for (;;) {
		char state;
		int r = wss_process_state(process, &state);

		if (r < 0)
			return wss_error_errno(err, WSS_ERR_GONE, -r,
					       "the guest's process is gone");
		if (state == 'T')
			return 0;
		if (wss_clock_now_ns() > deadline)
			return wss_error_set(err, WSS_ERR_TIMEOUT,
					     "the guest did not stop within 1 s");
		/* Not cut short by a stop request, because the loop is short. */
		nanosleep(&pause, NULL);
	}
}

/* Makes sure that a watchdog is watching; replaces one that ended an earlier hold or was killed. */
static int watch_over(struct wss_hold *hold, struct wss_error *err)
{
	if (watchdog_tell(hold, MESSAGE_HELD) == 0)
		return 0;
	end_watchdog(hold);
	if (start_watchdog(hold, err) < 0)
		return -1;
	if (watchdog_tell(hold, MESSAGE_HELD) == 0)
		return 0;
	return wss_error_set(err, WSS_ERR_FAILED,
			     "the watchdog does not answer: the guest is not stopped without it");
}

int wss_hold_stop(struct wss_hold *hold, struct wss_error *err)
{
	char state;
	int r = wss_process_state(hold->process, &state);

	if (r < 0)
		return wss_error_errno(err, WSS_ERR_GONE, -r, "the guest's process is gone");
	if (state == 'T' || state == 't')
		return wss_error_set(err, WSS_ERR_FAILED,
				     "the guest's process has been stopped by somebody else");
	if (watch_over(hold, err) < 0)
		return -1;
	hold->held = true;
	r = wss_process_signal(hold->process, SIGSTOP);
	if (r < 0)
		wss_privilege_errno(err, WSS_ERR_FAILED, -r, WSS_CAP(CAP_KILL),
				    "cannot stop the guest's process");
	else if (wait_stopped(hold->process, err) == 0)
		return 0;
	wss_hold_release(hold);
	return -1;
}

bool wss_hold_release(struct wss_hold *hold)
{
	if (!hold->held)
		return true;
	continue_guest(hold->process->pidfd);
	hold->held = false;
	/* An answer proves that the watchdog has not resumed the guest in the meantime. */
	return watchdog_tell(hold, MESSAGE_FREE) == 0;
}

void wss_hold_close(struct wss_hold *hold)
{
	if (!hold)
		return;
	wss_hold_release(hold);
	end_watchdog(hold);
	free(hold);
}
