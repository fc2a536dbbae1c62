/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * virt-wss: global options, the table of commands, dispatch.
 */
#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <libxml/parser.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/stop.h"
#include "base/thread.h"
#include "cmd/cmd.h"
#include "help-text.h"
#include "host/conn.h"
#include "store/history.h"
#include "track/recorder.h"
#include "track/tracker.h"

static const struct wss_command *const commands[] = {
	&wss_cmd_sample,
	&wss_cmd_profile,
	&wss_cmd_record,
	&wss_cmd_mark,
	&wss_cmd_report,
	&wss_cmd_diff,
	&wss_cmd_heatmap,
	&wss_cmd_methods,
	&wss_cmd_list,
	&wss_cmd_policy,
	&wss_cmd_recommend,
	&wss_cmd_balloon,
};

static const struct wss_command *find_command(const char *name)
{
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (!strcmp(commands[i]->name, name))
			return commands[i];
	return NULL;
}

static int print_version(void)
{
	char methods[128];

	printf("virt-wss %s\n"
	       "methods: %s\n"
	       "recorders: counters; %s\n"
	       "libvirt %s, json-c %s, libxml2 %s, SQLite %s\n",
	       PACKAGE_VERSION, wss_tracker_names(" ", " ", methods, sizeof(methods)),
	       wss_recorder_version(), wss_conn_libvirt_version(),
	       json_c_version(), LIBXML_DOTTED_VERSION, wss_history_sqlite_version());
	return WSS_EXIT_OK;
}

/* Everything before the command's name. Returns its index, 0 where all is done, -1 on error. */
static int parse_global(int argc, char **argv, struct wss_cli *cli, struct wss_error *err)
{
	enum { OPT_VERSION = 1 };
	static const struct option long_options[] = {
		WSS_COMMON_LONG,
		{ "version", no_argument, NULL, OPT_VERSION },
		{ NULL, 0, NULL, 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "+" WSS_COMMON_SHORT, long_options, NULL)) != -1) {
		if (c == OPT_VERSION) {
			print_version();
			return 0;
		}
		if (wss_cli_option(cli, c, argv, err) < 0)
			return -1;
	}
	if (cli->help) {
		fputs(wss_help_global, stdout);
		return 0;
	}
	if (optind == argc)
		return wss_error_set(err, WSS_ERR_USAGE,
				     "no command (virt-wss --help lists them)");
	return optind;
}

/* What was printed may only fail when it is flushed: a full disk must not exit 0. */
static int close_stdout(int code)
{
	errno = 0;
	if (fflush(stdout) == 0 && !ferror(stdout))
		return code;
	if (code)
		return code;
	wss_log(WSS_LOG_ERROR, "cannot write the output: %s", strerror(errno ? errno : EIO));
	return WSS_EXIT_FAILED;
}

/* How long what has been left behind may take to end: the exit status is known, somebody waits. */
#define END_NS (500 * WSS_NS_PER_MS)

/*
 * Returning from main() beside other threads has the libraries free what those still use. Ours are
 * joined; where one hangs, or libvirt's embedded driver has left some of its own, nothing is freed.
 */
static int end(int code)
{
	bool alone;

	wss_conn_end_events();
	alone = wss_threads_end(END_NS);
	if (!alone || wss_conn_embedded()) {
		fflush(NULL);
		_exit(code);
	}
	return code;
}

/*
 * A standard stream that is closed would be the number of the next file that is opened, and
 * our output would go there. Opened the wrong way round, so that using it still fails.
 */
static void occupy_standard_streams(void)
{
	for (int fd = 0; fd < 3; fd++)
		if (fcntl(fd, F_GETFD) < 0)
			open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);
}

int main(int argc, char **argv)
{
	struct wss_error err = WSS_ERROR_INIT;
	const struct wss_command *command;
	struct wss_cli cli = { 0 };
	int first;

	occupy_standard_streams();
	wss_stop_install();
	first = parse_global(argc, argv, &cli, &err);
	if (first < 0)
		return wss_cli_error(&err);
	if (first == 0)
		return close_stdout(WSS_EXIT_OK);
	if (wss_fault_text())
		wss_warn("VIRT_WSS_FAULT is set (%s): results are for tests only",
			 wss_fault_text());
	if (strcmp(wss_test_sysroot(), "/") != 0)
		wss_warn("VIRT_WSS_SYSROOT is set (%s): results are for tests only",
			 wss_test_sysroot());
	command = find_command(argv[first]);
	if (!command) {
		wss_error_set(&err, WSS_ERR_USAGE, "unknown command '%s' (virt-wss --help lists them)",
			      argv[first]);
		return wss_cli_error(&err);
	}
	return end(close_stdout(command->run(&cli, argc - first, argv + first)));
}
