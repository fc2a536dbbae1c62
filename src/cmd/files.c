/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "cmd/files.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/units.h"

int wss_files_finish(struct wss_cli *cli, int argc, char **argv, int least, int most,
		     struct wss_error *err)
{
	if (wss_cli_finish(cli, argc, argv, err) < 0)
		return -1;
	if (cli->help)
		return 0;
	if (cli->all)
		return wss_error_set(err, WSS_ERR_USAGE, "--all is not for recordings");
	if (cli->n_domains < least)
		return wss_error_set(err, WSS_ERR_USAGE, "a recording (FILE) is missing");
	if (most && cli->n_domains > most)
		return wss_error_set(err, WSS_ERR_USAGE, "unexpected argument '%s'",
				     cli->domains[most]);
	return 0;
}

int wss_files_open(const char *path, bool salvage, struct wss_recfile **ret_file,
		   struct wss_error *err)
{
	const struct wss_recfile_state *state;

	if (wss_recfile_open(path, salvage, ret_file, err) < 0)
		return -1;
	state = wss_recfile_state(*ret_file);
	if (state->damaged_at)
		wss_warn("%s: damaged at byte %llu: what follows is left out", path,
			 (unsigned long long)state->damaged_at);
	else if (state->cut_bytes)
		wss_warn("%s: cut off: %llu bytes behind the last whole interval are left out", path,
			 (unsigned long long)state->cut_bytes);
	return 0;
}

int wss_files_plot(const char *path, void (*draw)(FILE *f, const void *opaque), const void *opaque,
		   struct wss_error *err)
{
	wss_auto_free char *temporary = NULL;
	bool failed;
	FILE *f;

	if (asprintf(&temporary, "%s.new", path) < 0) {
		temporary = NULL;
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	}
	f = fopen(temporary, "we");
	if (!f)
		return wss_error_errno(err, WSS_ERR_FAILED, errno, "--plot: cannot write %s", path);
	draw(f, opaque);
	failed = ferror(f) != 0;
	failed = fclose(f) != 0 || failed;
	if (!failed && rename(temporary, path) == 0)
		return 0;
	wss_error_errno(err, WSS_ERR_FAILED, errno, "--plot: cannot write %s", path);
	unlink(temporary);
	return -1;
}

int wss_terminal_width(void)
{
	struct winsize size;

	return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col : 80;
}
