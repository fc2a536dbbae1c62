/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* virt-wss serve: measures all guests continuously. */
#include "serve/serve.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/newfile.h"
#include "base/stop.h"
#include "cmd/cmd.h"
#include "cmd/serve-options.h"
#include "cmd/store-options.h"
#include "help-text.h"
#include "measure/kvm-cost.h"
#include "serve/start-check.h"

struct serve_command {
	struct serve_typed typed;
	/* That the service began with: the settings that cannot change are its. */
	struct wss_serve_config first;
	/* Read since, the newest in [newest]: the service may use strings of the one before.
	 */
	struct wss_serve_config later[2];
	unsigned newest;
	const char *history; /* NULL: nothing is stored */
};

static int serve_check(const struct wss_cli *cli, struct wss_error *err)
{
	if (cli->qmp || cli->n_domains)
		return wss_error_set(err, WSS_ERR_USAGE,
				     "serve measures all guests that libvirt runs: %s",
				     cli->qmp ? "--qmp excludes it" : "it takes no DOMAIN");
	return 0;
}

/* Keeps the exit code of the first. */
static void serve_log_fault(const struct wss_error *error, void *opaque)
{
	int *exit_code = opaque, code = wss_cli_error(error);

	if (!*exit_code)
		*exit_code = code;
}

/* What the settings mean for the service. */
static void serve_apply_config(const struct serve_command *command, struct wss_serve_config *config)
{
	struct wss_watch_options *watch = &config->serve.watch;

	watch->hypervisor.uri = wss_cli_uri(config->uri);
	watch->hypervisor.allow_monitor = config->allow_monitor;
	watch->measure.window.growth = true;
	watch->fault_ns = wss_kvm_cost()->fault_ns;
	config->serve.history = command->history;
	wss_log_set_level(config->debug ? WSS_LOG_DEBUG : WSS_LOG_INFO);
}

/* --- while it runs --- */

/* Of a configuration that is refused: one message names the first fault and counts the others.
 */
struct reload_faults {
	struct wss_error first;
	unsigned n;
};

static void reload_note_fault(const struct wss_error *error, void *opaque)
{
	struct reload_faults *faults = opaque;

	if (!faults->n++)
		faults->first = *error;
}

static void reload_warn_fixed(const char *section, const char *key)
{
	wss_warn("[%s] %s has changed, which takes effect only when the service starts again",
		 section, key);
}

static int reload_load(struct serve_command *command, struct wss_serve_config *config,
		       struct wss_error *err)
{
	struct reload_faults faults = {.n = 0};

	wss_serve_config_release(config);
	if (serve_config_load(&command->typed, config, reload_note_fault, &faults) < 0) {
		*err = faults.first;
		if (faults.n > 1)
			wss_error_set(err, err->code, "%s (and %u more: see serve --check-config)",
				      faults.first.text, faults.n - 1);
		return -1;
	}
	if (config->serve.textfile && wss_newfile_check(config->serve.textfile, err) < 0)
		return wss_error_prefix(err, "%s", config->serve.textfile);
	return 0;
}

/* As struct wss_serve_options' reload; opaque is the command. */
static const struct wss_serve_options *serve_reload(void *opaque, struct wss_error *err)
{
	struct serve_command *command = opaque;
	struct wss_serve_config *config = &command->later[!command->newest];

	if (reload_load(command, config, err) < 0)
		return NULL;
	wss_serve_config_compare(&command->first, config, reload_warn_fixed);
	serve_apply_config(command, config);
	command->newest = !command->newest;
	return &config->serve;
}

/* --- how it begins --- */

/* Says where the history is. *ret_path is for free(). */
static int serve_find_history(struct serve_command *command, char **ret_path, struct wss_error *err)
{
	const struct wss_store_options store = {.path = command->first.history};

	if (command->first.no_store)
		return 0;
	command->history = *ret_path = wss_store_path(&store);
	return *ret_path ? 0 : wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
}

static int serve_begin(struct serve_command *command, struct wss_error *err)
{
	wss_auto_free char *path = NULL;

	if (serve_find_history(command, &path, err) < 0)
		return -1;
	serve_apply_config(command, &command->first);
	command->first.serve.reload = serve_reload;
	command->first.serve.reload_opaque = command;
	return wss_serve_run(&command->first.serve, err);
}

static void check_warn(const char *text, void *opaque)
{
	(void)opaque;
	wss_warn("%s", text);
}

/* Reports what the start would find out, too. Returns the exit code. */
static int serve_check_config(struct serve_command *command)
{
	static const struct wss_start_check_events events = {serve_log_fault, check_warn};
	struct wss_error error = WSS_ERROR_INIT;
	wss_auto_free char *path = NULL;
	int faults = 0;

	if (serve_find_history(command, &path, &error) < 0)
		return wss_cli_error(&error);
	command->first.serve.history = path;
	wss_start_check(&command->first.serve, &events, &faults);
	if (faults)
		return WSS_EXIT_USAGE;
	wss_serve_config_print(&command->first, stdout);
	return WSS_EXIT_OK;
}

static int serve_start(struct serve_command *command)
{
	struct wss_error error = WSS_ERROR_INIT;
	int exit_code = 0;

	if (serve_config_load(&command->typed, &command->first, serve_log_fault, &exit_code) < 0)
		return command->typed.check ? WSS_EXIT_USAGE : exit_code;
	if (command->typed.check)
		return serve_check_config(command);
	if (serve_begin(command, &error) < 0)
		return wss_cli_error(&error);
	return 128 + wss_stop_signal();
}

static int serve_run(struct wss_cli *cli, int argc, char **argv)
{
	struct serve_command command = {.first = WSS_SERVE_CONFIG_INIT};
	struct wss_error err = WSS_ERROR_INIT;
	int r;

	command.typed.words = calloc((size_t)argc, sizeof(*command.typed.words));
	if (!command.typed.words)
		wss_error_set(&err, WSS_ERR_NO_MEMORY, "out of memory");
	if (err.code || wss_cli_parse(cli, argc, argv, &command.typed, &err) < 0 ||
	    wss_cli_finish(cli, argc, argv, &err) < 0 || serve_check(cli, &err) < 0) {
		free(command.typed.words);
		return wss_cli_error(&err);
	}
	command.typed.uri = cli->uri;
	command.typed.allow_monitor = cli->monitor;
	command.typed.debug = cli->debug;
	r = serve_start(&command);
	wss_serve_config_release(&command.first);
	for (size_t i = 0; i < 2; i++)
		wss_serve_config_release(&command.later[i]);
	free(command.typed.words);
	return r;
}

static const struct wss_option_values values[] = {
	{"config", WSS_VALUES_FILES},	 {"granularity", "auto native 4k"},
	{"hold-file", WSS_VALUES_FILES}, {"metrics", "minimal standard full"},
	{"textfile", WSS_VALUES_FILES},	 {NULL, NULL},
};

const struct wss_command wss_cmd_serve = {
	.name = "serve",
	.summary = "measure all guests continuously, within a budget",
	.help = wss_help_serve,
	.long_options = serve_long_options,
	.take = serve_typed_option,
	.takes = WSS_WORDS_NONE,
	.values = values,
	.run = serve_run,
};
