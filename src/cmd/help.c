/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "cmd/dispatch.h"
#include "help-text.h"

static int help_run(struct wss_cli *cli, int argc, char **argv)
{
	struct wss_error err = WSS_ERROR_INIT;
	const struct wss_command *command = &wss_program;

	if (wss_cli_parse(cli, argc, argv, NULL, &err) < 0)
		return wss_cli_error(&err);
	if (argc - optind > 1) {
		wss_error_set(&err, WSS_ERR_USAGE, "unexpected argument '%s'", argv[optind + 1]);
		return wss_cli_error(&err);
	}
	if (optind < argc)
		command = wss_command_find(argv[optind], &err);
	if (!command)
		return wss_cli_error(&err);
	wss_help_print(command);
	return WSS_EXIT_OK;
}

const struct wss_command wss_cmd_help = {
	.name = "help",
	.summary = "show the help of a command",
	.help = wss_help_help,
	.long_options = wss_common_options,
	.takes = WSS_WORDS_COMMANDS,
	.run = help_run,
};
