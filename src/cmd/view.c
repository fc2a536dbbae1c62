/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Options of every command that prints a table: which columns to show, and the order of rows. */
#include <stdio.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "show/plot.h"

void wss_cli_view_option(struct wss_cli *cli, int c, const char *value)
{
	switch (c) {
	case WSS_OPT_COLUMNS:
		cli->view.columns = value;
		break;
	case WSS_OPT_SORT:
		cli->view.sort = value;
		break;
	default:
		cli->view.wide = true;
		break;
	}
}

int wss_cli_view(struct wss_cli *cli, const struct wss_report_layout *layout, struct wss_error *err)
{
	cli->view.width = isatty(STDOUT_FILENO) ? wss_terminal_width() : 0;
	if (cli->view.columns && wss_view_check_columns(layout, cli->view.columns, err) < 0)
		return wss_error_prefix(err, "--columns");
	if (cli->view.sort && wss_view_check_sort(layout, cli->view.sort, err) < 0)
		return wss_error_prefix(err, "--sort");
	return 0;
}

int wss_cli_refuse_view(const struct wss_cli *cli, const char *what, struct wss_error *err)
{
	const struct wss_view *view = &cli->view;

	if (!view->columns && !view->sort && !view->wide && cli->format == WSS_FORMAT_TABLE)
		return 0;
	return wss_error_set(
		err, WSS_ERR_USAGE,
		"%s prints no table: --output, --columns, --sort and --wide do not apply", what);
}

int wss_cli_print_columns(const struct wss_report_layout *const *layouts)
{
	struct wss_error err = WSS_ERROR_INIT;
	int width = isatty(STDOUT_FILENO) ? wss_terminal_width() : 0;

	return wss_columns_print(stdout, layouts, width, &err) < 0 ? wss_cli_error(&err)
								   : WSS_EXIT_OK;
}
