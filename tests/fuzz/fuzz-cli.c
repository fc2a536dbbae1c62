/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The command line: a line of the input is a word. The whole program runs, up to the first
 * host, connection, history or recording that it would open.
 */
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/log.h"
#include "control/controller.h"
#include "cmd/cmd.h"
#include "fuzz.h"
#include "host/qmpguest.h"
#include "rec/reader.h"
#include "rec/writer.h"
#include "store/history.h"

#define WORDS_MAX 128

int virt_wss_main(int argc, char **argv);

/* Replaces the functions that open something, by ld's --wrap. */
int __wrap_wss_host_open(const char *sysroot, struct wss_host *ret_host,
			 struct wss_error *err);
int __wrap_wss_conn_open(const char *uri, struct wss_conn **ret_conn, struct wss_error *err);
int __wrap_wss_conn_open_reader(const char *uri, struct wss_conn **ret_conn,
				struct wss_error *err);
int __wrap_wss_qmpguest_open(const char *socket_path, const struct wss_deadline *deadline,
			     struct wss_guest **ret_guest, struct wss_error *err);
int __wrap_wss_recfile_open(const char *path, bool salvage, struct wss_recfile **ret_file,
			    struct wss_error *err);
int __wrap_wss_rec_mark(const char *path, const char *text, const char *boot_id,
			uint64_t now_ns, uint64_t *ret_time_ns, struct wss_error *err);
int __wrap_wss_history_open(const char *path, struct wss_history **ret_history,
			    struct wss_error *err);
int __wrap_wss_history_open_readonly(const char *path, struct wss_history **ret_history,
				     struct wss_error *err);
int __wrap_wss_controller_run(const struct wss_control_scope *scope,
			      const struct wss_balloon_options *options,
			      const struct wss_control_events *events, size_t *ret_guests,
			      struct wss_error *err);
FILE *__wrap_fopen(const char *path, const char *mode);
FILE *__real_fopen(const char *path, const char *mode);
void __wrap_wss_log(enum wss_log_level level, const char *fmt, ...);

static unsigned errors; /* number of messages in one run */
static bool running;

static int closed(struct wss_error *err)
{
	return wss_error_set(err, WSS_ERR_CONNECT, "nothing is opened here");
}

int __wrap_wss_host_open(const char *sysroot, struct wss_host *ret_host, struct wss_error *err)
{
	(void)sysroot;
	(void)ret_host;
	return closed(err);
}

int __wrap_wss_conn_open(const char *uri, struct wss_conn **ret_conn, struct wss_error *err)
{
	(void)uri;
	(void)ret_conn;
	return closed(err);
}

int __wrap_wss_conn_open_reader(const char *uri, struct wss_conn **ret_conn,
				struct wss_error *err)
{
	(void)uri;
	(void)ret_conn;
	return closed(err);
}

int __wrap_wss_qmpguest_open(const char *socket_path, const struct wss_deadline *deadline,
			     struct wss_guest **ret_guest, struct wss_error *err)
{
	(void)socket_path;
	(void)deadline;
	(void)ret_guest;
	return closed(err);
}

int __wrap_wss_recfile_open(const char *path, bool salvage, struct wss_recfile **ret_file,
			    struct wss_error *err)
{
	(void)path;
	(void)salvage;
	(void)ret_file;
	return closed(err);
}

int __wrap_wss_rec_mark(const char *path, const char *text, const char *boot_id,
			uint64_t now_ns, uint64_t *ret_time_ns, struct wss_error *err)
{
	(void)path;
	(void)text;
	(void)boot_id;
	(void)now_ns;
	(void)ret_time_ns;
	return closed(err);
}

int __wrap_wss_history_open(const char *path, struct wss_history **ret_history,
			    struct wss_error *err)
{
	(void)path;
	(void)ret_history;
	return closed(err);
}

int __wrap_wss_history_open_readonly(const char *path, struct wss_history **ret_history,
				     struct wss_error *err)
{
	(void)path;
	(void)ret_history;
	return closed(err);
}

/* It starts its watchdog first. */
int __wrap_wss_controller_run(const struct wss_control_scope *scope,
			      const struct wss_balloon_options *options,
			      const struct wss_control_events *events, size_t *ret_guests,
			      struct wss_error *err)
{
	(void)scope;
	(void)options;
	(void)events;
	(void)ret_guests;
	return closed(err);
}

/* The list of --hosts; no other file exists. */
FILE *__wrap_fopen(const char *path, const char *mode)
{
	static char hosts[] = "# hosts\nqemu:///system\n\n qemu+ssh://b/system \n";

	if (!running)
		return __real_fopen(path, mode);
	return strcmp(path, "hosts") ? NULL : fmemopen(hosts, strlen(hosts), mode);
}

void __wrap_wss_log(enum wss_log_level level, const char *fmt, ...)
{
	char line[1024];
	va_list args;

	va_start(args, fmt);
	vsnprintf(line, sizeof(line), fmt, args);
	va_end(args);
	errors += level == WSS_LOG_ERROR;
}

static void cli_run(const uint8_t *data, size_t size)
{
	wss_auto_free char *text = fuzz_text(data, size);
	char *argv[WORDS_MAX + 2] = {(char[]){"virt-wss"}}, *rest = text, *word;
	int argc = 1, code;

	/* Set once: the program's own standard output is not checked. */
	static bool silent;

	if (!silent)
		fuzz_silence_stdout();
	silent = true;
	while (argc <= WORDS_MAX && (word = strsep(&rest, "\n")))
		argv[argc++] = word;
	errors = 0;
	optind = 0;
	running = true;
	code = virt_wss_main(argc, argv);
	running = false;
	fuzz_require(code == WSS_EXIT_OK || code == WSS_EXIT_FAILED ||
		     code == WSS_EXIT_USAGE || code == WSS_EXIT_CONNECT);
	/* Nothing fails without a message. */
	fuzz_require(code == WSS_EXIT_OK || errors);
}

const struct fuzz_target fuzz_target = {
	.name = "cli",
	.run = cli_run,
	.max_bytes = 1024,
	.mutations = 40000,
};
