/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* main() of virt-wss: beginning and end of the process. */
#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <libxml/parser.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/log.h"
#include "base/stop.h"
#include "base/thread.h"
#include "client/http-get.h"
#include "cmd/dispatch.h"
#include "history/history.h"
#include "host/conn.h"
#include "kvm/kvm.h"
#include "measure/tracker.h"
#include "serve/http-child.h"
#include "top/top.h"

static void print_version(void)
{
	printf("virt-wss %s\nmethods:", PACKAGE_VERSION);
	for (size_t i = 0; wss_trackers[i]; i++)
		printf(" %s", wss_trackers[i]->name);
	printf("\nrecorders: counters; %s\n"
	       "libvirt %s, json-c %s, libxml2 %s, SQLite %s, libmicrohttpd %s, %s, %s\n",
	       wss_kvm.version(), wss_conn_libvirt_version(), json_c_version(),
	       LIBXML_DOTTED_VERSION, wss_history_sqlite_version(), wss_http_child_version(),
	       wss_http_get_version(), wss_top_version());
}

/*
 * Returns the errno of a failed write to standard output, however long ago it was; errnum is
 * that of the last attempt, or 0.
 */
static int stdout_errno(int errnum)
{
	struct pollfd pfd = {.fd = STDOUT_FILENO, .events = POLLOUT};

	if (!errnum && poll(&pfd, 1, 0) > 0 && (pfd.revents & POLLERR))
		errnum = EPIPE;
	return errnum ? errnum : EIO;
}

/*
 * Closes standard output. Buffered output may fail only when it is flushed, and a full disk
 * must not exit 0.
 */
static int close_stdout(int code)
{
	struct wss_error err = WSS_ERROR_INIT;

	errno = 0;
	if (fflush(stdout) == 0 && !ferror(stdout))
		return code;
	if (code)
		return code;
	wss_io_output_error(stdout_errno(errno), "cannot write the output", &err);
	return wss_cli_error(&err);
}

/*
 * Time to wait for threads that were left behind: short, because a caller waits for the exit
 * status.
 */
#define END_NS (500 * WSS_NS_PER_MS)
/* The same after a stop request. */
#define END_STOPPED_NS (50 * WSS_NS_PER_MS)

/*
 * Ends the process. Returning from main() makes libraries free memory that their threads may
 * still use, so our threads are joined first; if one hangs, or libvirt's embedded driver has
 * left threads of its own, the process ends without freeing anything.
 */
static int process_end(int code)
{
	bool alone;

	/* Die of SIGPIPE like any filter; everything has been restored by now. */
	if (wss_stop_signal() == SIGPIPE) {
		signal(SIGPIPE, SIG_DFL);
		raise(SIGPIPE);
	}

	wss_conn_end_events();
	alone = wss_threads_end(wss_stop_requested() ? END_STOPPED_NS : END_NS);
	if (!alone || wss_conn_embedded()) {
		fflush(NULL);
		_exit(code);
	}
	return code;
}

/*
 * Opens closed standard streams, because otherwise the next file to be opened would get one of
 * their numbers and receive our output. They are opened in the wrong mode, so that using them
 * still fails.
 */
static void occupy_standard_streams(void)
{
	for (int fd = 0; fd < 3; fd++)
		if (fcntl(fd, F_GETFD) < 0)
			open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);
}

int main(int argc, char **argv)
{
	sigset_t none;

	occupy_standard_streams();
	/* The mask is inherited, too: where it has SIGTERM, nothing would make a controller give memory back and end. */
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	/* Where it is ignored, which is inherited, children cannot be waited for, and their pids are taken by others. */
	signal(SIGCHLD, SIG_DFL);
	if (wss_http_child_is(argc, argv))
		return wss_http_child_main(argc, argv);
	wss_stop_install();
	wss_log_open();
	return process_end(close_stdout(wss_dispatch(argc, argv, print_version)));
}
