/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/units.h"
#include "cmd/cmd.h"
#include "cmd/file-options.h"
#include "help-text.h"
#include "host/host.h"
#include "recording/writer.h"

static int mark_parse(struct wss_cli *cli, int argc, char **argv, struct wss_error *err)
{
	if (wss_cli_parse(cli, argc, argv, NULL, err) < 0)
		return -1;
	if (argc > optind + 1 && !*argv[optind + 1])
		return wss_error_set(err, WSS_ERR_USAGE,
				     "TEXT is empty: give the text of the mark");
	if (wss_files_finish(cli, argc, argv, 1, 2, err) < 0)
		return -1;
	if (cli->n_domains < 2)
		return wss_error_set(err, WSS_ERR_USAGE, "missing argument TEXT");
	return wss_cli_refuse_view(cli, "mark", err);
}

static int mark_run(struct wss_cli *cli, int argc, char **argv)
{
	char boot_id[WSS_HOST_BOOT_ID_MAX], time[16];
	struct wss_error err = WSS_ERROR_INIT;
	uint64_t time_ns;

	if (mark_parse(cli, argc, argv, &err) < 0)
		return wss_cli_error(&err);
	wss_host_boot_id(wss_test_sysroot(), boot_id);
	if (wss_rec_mark(cli->domains[0], cli->domains[1], boot_id, wss_clock_now_ns(), &time_ns,
			 &err) < 0)
		return wss_cli_error(&err);
	wss_duration_format(time_ns, time, sizeof(time));
	wss_log(WSS_LOG_INFO, "marked at %s", time);
	return WSS_EXIT_OK;
}

const struct wss_command wss_cmd_mark = {
	.name = "mark",
	.summary = "add a mark to a recording in progress",
	.help = wss_help_mark,
	.long_options = wss_common_options,
	.takes = WSS_WORDS_FILES,
	.run = mark_run,
};
