/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "cmd/file-options.h"

#include "base/log.h"
#include "base/units.h"

#define LIMIT_MAX 1000000

int wss_files_option(struct wss_files_options *options, int c, const char *value,
		     struct wss_error *err)
{
	switch (c) {
	case WSS_OPT_PLOT:
		options->plot = value;
		return 1;
	case WSS_OPT_LIMIT:
		options->limit_given = true;
		return wss_number_parse(value, 1, LIMIT_MAX, "--limit", &options->limit, err) < 0
			       ? -1
			       : 1;
	case WSS_OPT_SALVAGE:
		options->salvage = true;
		return 1;
	default:
		return 0;
	}
}

/* Refuses the common options that select guests. */
static int files_refuse_guests(const struct wss_cli *cli, struct wss_error *err)
{
	const char *option = cli->uri	    ? "--connect"
			     : cli->qmp	    ? "--qmp"
			     : cli->monitor ? "--allow-monitor"
			     : cli->by_uuid ? "--uuid"
			     : cli->all	    ? "--all"
					    : NULL;

	if (!option)
		return 0;
	return wss_error_set(err, WSS_ERR_USAGE,
			     "%s: %s uses the FILE alone, and asks neither libvirt nor QEMU",
			     option, cli->command->name);
}

int wss_files_finish(struct wss_cli *cli, int argc, char **argv, int least, int most,
		     struct wss_error *err)
{
	if (files_refuse_guests(cli, err) < 0 || wss_cli_finish(cli, argc, argv, err) < 0)
		return -1;
	if (cli->n_domains < least)
		return wss_error_set(err, WSS_ERR_USAGE, "missing FILE");
	if (most && cli->n_domains > most)
		return wss_error_set(err, WSS_ERR_USAGE, "unexpected argument '%s'",
				     cli->domains[most]);
	return 0;
}

void wss_files_note_degraded(const struct wss_recfile *file)
{
	const struct wss_recfile_state *state = wss_recfile_state(file);

	if (state->degraded)
		wss_log(WSS_LOG_INFO,
			"%s: note: %llu of %llu windows are degraded: touched pages may be missing in them (virt-wss report --wide says why)",
			wss_recfile_name(file), (unsigned long long)state->degraded,
			(unsigned long long)state->windows);
}
