/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "cmd/balloon.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "balloon/restore.h"
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/text.h"
#include "base/units.h"

static void balloon_on_moved(const struct wss_control_move *move, void *unused)
{
	char size[16], from[16];

	(void)unused;
	wss_size_format(move->bytes, size, sizeof(size));
	wss_size_format(move->from_bytes, from, sizeof(from));
	if (move->verb == WSS_CONTROL_SHRINKS)
		wss_log(WSS_LOG_INFO, "%s: balloon %s -> %s", move->guest, from, size);
	else if (move->verb == WSS_CONTROL_GROWS)
		wss_log(WSS_LOG_INFO, "%s: balloon %s -> %s: %s", move->guest, from, size,
			move->reason);
	else
		wss_log(WSS_LOG_INFO, "%s: restored to %s%s%s", move->guest, size,
			move->reason ? ": " : "", move->reason ? move->reason : "");
}

void balloon_restore_hint(const struct wss_cli *cli, const char *history, const char *guest,
			  char ret_hint[WSS_BALLOON_HINT_MAX])
{
	wss_auto_free char *uri = wss_text_shell_word(cli->uri ? cli->uri : "");
	wss_auto_free char *path = wss_text_shell_word(history ? history : "");
	wss_auto_free char *name = wss_text_shell_word(guest);
	int len = uri && path && name ? snprintf(ret_hint, WSS_BALLOON_HINT_MAX,
						 "virt-wss%s%s balloon --restore%s%s %s%s",
						 cli->uri ? " -c " : "", cli->uri ? uri : "",
						 history ? " --history " : "", history ? path : "",
						 *guest == '-' ? "-- " : "", name)
				      : WSS_BALLOON_HINT_MAX;

	if (len >= WSS_BALLOON_HINT_MAX)
		ret_hint[0] = '\0';
}

void balloon_say_hint(const char *guest, const char *hint)
{
	bool restores = !strncmp(hint, "virt-wss ", 9);
	bool is_command = restores || !strncmp(hint, "virsh ", 6);

	/* The journal does not tell one that was killed from one that is at work. */
	if (*hint)
		wss_log(WSS_LOG_INFO, "%s: %sto allow this, %s%s", guest,
			restores ? "unless another virt-wss controls its balloon now, which it "
				   "gives back when you end it: "
				 : "",
			is_command ? "run: " : "", hint);
}

/* Receives the events of the controller and the restore. */
struct balloon_listener {
	const struct wss_cli *cli;
	const char *history; /* as it was named; NULL: the default one */
	struct wss_tally *tally;
	bool gone; /* a guest to restore is not known to libvirt */
};

static void balloon_on_trouble(const char *guest, const struct wss_error *error, void *opaque)
{
	struct balloon_listener *listener = opaque;
	char hint[WSS_BALLOON_HINT_MAX];

	wss_tally_bad(listener->tally, guest, error);
	if (!strncmp(error->text, wss_balloon_left_open, strlen(wss_balloon_left_open))) {
		balloon_restore_hint(listener->cli, listener->history, guest, hint);
		if (*hint)
			wss_log(WSS_LOG_INFO, "%s: when the history can be written again, run: %s",
				guest, hint);
	}
	if (strstr(error->text, wss_balloon_unfinished)) {
		balloon_restore_hint(listener->cli, listener->history, guest, hint);
		balloon_say_hint(guest, hint);
	}
	listener->gone = listener->gone || error->code == WSS_ERR_GONE;
}

static void balloon_on_progress(const char *guest, const char *text, void *unused)
{
	(void)unused;
	wss_log(WSS_LOG_INFO, "%s: %s", guest, text);
}

static void balloon_on_none_running(const char *uri, void *opaque)
{
	wss_cli_say_empty(((struct balloon_listener *)opaque)->cli, uri, true);
}

static int run_controller(const struct wss_control_scope *scope, struct balloon_options *options,
			  const struct wss_control_events *events, size_t *ret_guests,
			  struct wss_error *err)
{
	/* Uses --uuid, because a guest's name may look like the UUID of another. */
	const char *const command[] = {"virt-wss",
				       "balloon",
				       "--restore",
				       "--uuid",
				       "--history",
				       scope->history,
				       scope->uri ? "-c" : NULL,
				       scope->uri,
				       NULL};

	options->control.advice = options->sizing.advice;
	options->control.restore_command = command;
	return wss_controller_run(scope, &options->control, events, ret_guests, err);
}

int balloon_carry_out(const struct wss_cli *cli, struct balloon_options *options,
		      const char *history, struct wss_tally *tally, size_t *ret_guests,
		      struct wss_error *err)
{
	wss_auto_free struct wss_domain_ref *refs =
		wss_xcalloc((size_t)cli->n_domains, sizeof(*refs));
	const struct wss_control_scope scope = {.uri = wss_cli_uri(cli->uri),
						.monitor = cli->monitor,
						.history = history,
						.guests = refs,
						.n_guests = (size_t)cli->n_domains};
	struct balloon_listener listener = {
		.cli = cli, .history = options->sizing.history.path, .tally = tally};
	const struct wss_control_events events = {balloon_on_moved, balloon_on_trouble,
						  balloon_on_progress, balloon_on_none_running,
						  &listener};

	for (int i = 0; i < cli->n_domains; i++)
		refs[i] = wss_cli_domain(cli, i);
	if (!options->restore && !options->forget)
		wss_log_show_time();
	if (options->forget)
		return wss_restore_forget(&scope, &events, ret_guests, err);
	if (!options->restore)
		return run_controller(&scope, options, &events, ret_guests, err);
	if (wss_restore_run(&scope, &events, ret_guests, err) < 0)
		return -1;
	if (listener.gone)
		wss_log(WSS_LOG_INFO,
			"if a guest will not be back, run: virt-wss balloon --forget DOMAIN");
	return 0;
}
