/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "cmd/cmd.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/root.h"
#include "base/stop.h"
#include "host/inventories.h"
#include "show/width.h"

const struct option wss_common_options[] = {
	WSS_COMMON_LONG,
	{NULL, 0, NULL, 0},
};

const char *wss_cli_short_options(const struct wss_command *command)
{
	return command->short_options ? command->short_options : WSS_COMMON_SHORT;
}

static int take_uri(struct wss_cli *cli, const char *uri, struct wss_error *err)
{
	if (cli->n_uris == WSS_URIS_MAX)
		return wss_error_set(err, WSS_ERR_USAGE, "--connect given more than %d times",
				     WSS_URIS_MAX);
	cli->uris[cli->n_uris++] = uri;
	cli->uri = uri;
	return 0;
}

/* Refuses an empty text for an option that takes any text: the other types refuse it themselves. */
static int check_text(const struct wss_command *command, int c, struct wss_error *err)
{
	const struct option *option = command->long_options;
	const char *values, *wanted = NULL;

	while (option->name && option->val != c)
		option++;
	if (!option->name || !option->has_arg || *optarg)
		return 0;
	values = wss_option_values(command, option->name);
	if (!strcmp(option->name, "connect"))
		wanted = "a libvirt URI, such as qemu:///system";
	else if (!strcmp(option->name, "qmp") || !strcmp(option->name, "socket"))
		wanted = "the path of a UNIX socket";
	else if (values && !strcmp(values, WSS_VALUES_FILES))
		wanted = "the path of a file";
	return wanted ? wss_error_set(err, WSS_ERR_USAGE, "--%s: the value is empty: give %s",
				      option->name, wanted)
		      : 0;
}

int wss_cli_option(struct wss_cli *cli, int c, char **argv, struct wss_error *err)
{
	if (check_text(cli->command, c, err) < 0)
		return -1;
	switch (c) {
	case 'c':
	case WSS_OPT_CONNECT:
		return take_uri(cli, optarg, err);
	case 'h': /* Handled by the dispatcher. */
		return 0;
	case WSS_OPT_ALL:
		cli->all = true;
		return 0;
	case WSS_OPT_OUTPUT:
		return wss_format_parse(optarg, &cli->format, err) < 0
			       ? wss_error_prefix(err, "--output")
			       : 0;
	case WSS_OPT_QMP:
		cli->qmp = optarg;
		cli->n_qmps++;
		return 0;
	case WSS_OPT_UUID:
		cli->by_uuid = true;
		return 0;
	case WSS_OPT_MONITOR:
		cli->monitor = true;
		return 0;
	case WSS_OPT_DEBUG:
		cli->debug = true;
		wss_log_set_level(WSS_LOG_DEBUG);
		return 0;
	case WSS_OPT_COLUMNS:
	case WSS_OPT_SORT:
	case WSS_OPT_WIDE:
		wss_cli_view_option(cli, c, optarg);
		return 0;
	case ':':
		return wss_error_set(err, WSS_ERR_USAGE, "option '%s' needs a value",
				     argv[optind - 1]);
	default:
		return wss_cli_unknown_option(cli->command, argv[optind - 1], err);
	}
}

static bool is_common(const struct wss_command *command, int c)
{
	if (command->own_short && c < 128 && strchr(command->own_short, c))
		return false;
	return c == 'c' || c == 'h' || c == ':' || c == '?' ||
	       (c >= WSS_OPT_ALL && c <= WSS_OPT_WIDE);
}

int wss_cli_parse(struct wss_cli *cli, int argc, char **argv, void *options, struct wss_error *err)
{
	const struct wss_command *command = cli->command;
	int c, r;

	optind = 0;
	while ((c = getopt_long(argc, argv, wss_cli_short_options(command), command->long_options,
				NULL)) != -1) {
		if (is_common(cli->command, c))
			r = wss_cli_option(cli, c, argv, err);
		else
			r = check_text(cli->command, c, err) < 0
				    ? -1
				    : command->take(options, c, optarg, err);
		if (r < 0)
			return -1;
	}
	/* Otherwise all but the last would silently be ignored. */
	if (cli->n_uris > 1 && !cli->several_uris)
		return wss_error_set(err, WSS_ERR_USAGE,
				     "--connect given more than once: only list takes several");
	if (cli->n_qmps > 1)
		return wss_error_set(
			err, WSS_ERR_USAGE,
			"--qmp given more than once: it takes the socket of one guest");
	return 0;
}

int wss_cli_finish(struct wss_cli *cli, int argc, char **argv, struct wss_error *err)
{
	cli->domains = argv + optind;
	cli->n_domains = argc - optind;
	if (cli->qmp && cli->uri)
		return wss_error_set(err, WSS_ERR_USAGE, "--qmp and --connect exclude each other");
	if (cli->qmp && (cli->n_domains || cli->all))
		return wss_error_set(err, WSS_ERR_USAGE,
				     "--qmp already names the guest: omit DOMAIN and --all");
	if (cli->all && cli->n_domains)
		return wss_error_set(err, WSS_ERR_USAGE, "--all and DOMAIN exclude each other");
	return wss_cli_check_domains(cli, err);
}

static bool is_uuid(const char *word)
{
	size_t i;

	for (i = 0; word[i]; i++)
		if (i == 8 || i == 13 || i == 18 || i == 23 ? word[i] != '-'
							    : !isxdigit((unsigned char)word[i]))
			return false;
	return i == WSS_UUID_TEXT_MAX - 1;
}

int wss_cli_check_domains(const struct wss_cli *cli, struct wss_error *err)
{
	for (int i = 0; i < cli->n_domains; i++)
		if (!*cli->domains[i])
			return wss_error_set(err, WSS_ERR_USAGE,
					     cli->command->takes == WSS_WORDS_FILES
						     ? "FILE is empty: give the path of a file"
						     : "empty domain name");
	for (int i = 0; cli->by_uuid && i < cli->n_domains; i++)
		if (!is_uuid(cli->domains[i]))
			return wss_error_set(err, WSS_ERR_USAGE, "--uuid: '%s' is not a UUID",
					     cli->domains[i]);
	return 0;
}

struct wss_domain_ref wss_cli_domain(const struct wss_cli *cli, int i)
{
	return (struct wss_domain_ref){.name = cli->domains[i],
				       .uuid = cli->by_uuid ? cli->domains[i] : NULL};
}

/* Returns the exit code for an error. */
static int exit_code_of(const struct wss_error *err)
{
	switch (err->code) {
	case WSS_OK:
		return WSS_EXIT_OK;
	case WSS_ERR_USAGE:
		return WSS_EXIT_USAGE;
	case WSS_ERR_CONNECT:
		return WSS_EXIT_CONNECT;
	case WSS_ERR_UNSUPPORTED:
		return WSS_EXIT_UNSUPPORTED;
	case WSS_ERR_INTERRUPTED:
		return 128 + wss_stop_signal();
	default:
		return WSS_EXIT_FAILED;
	}
}

/* Whether the reader has closed our output pipe, in which case no message is wanted. */
static bool is_closed_pipe(const struct wss_error *err)
{
	return err->code == WSS_ERR_INTERRUPTED && wss_stop_signal() == SIGPIPE;
}

/* Returns advice that avoids this error; "" if there is none. */
static const char *error_remedy(const struct wss_error *err)
{
	return err->code == WSS_ERR_AMBIGUOUS ? ": choose one with --uuid UUID"
	       : err->code == WSS_ERR_DAMAGED
		       ? ": move it away, and the next sample that is stored begins a new one"
		       : "";
}

void wss_tally_count(struct wss_tally *tally, const struct wss_error *error)
{
	if (!tally->bad++)
		tally->error = *error;
	else if (exit_code_of(&tally->error) != exit_code_of(error))
		tally->error.code = WSS_ERR_FAILED;
}

void wss_tally_bad(struct wss_tally *tally, const char *domain, const struct wss_error *error)
{
	char name[WSS_NAME_SHORT_MAX];

	wss_tally_count(tally, error);
	if (error->shared) {
		if (!strcmp(tally->shared, error->text))
			return;
		snprintf(tally->shared, sizeof(tally->shared), "%s", error->text);
		domain = NULL;
	}
	wss_name_shorten(domain ? domain : "", name);
	if (!is_closed_pipe(error))
		wss_log(WSS_LOG_ERROR, "%s%s%s%s", name, domain ? ": " : "", error->text,
			error_remedy(error));
}

int wss_tally_exit_code(const struct wss_tally *tally, size_t total)
{
	if (tally->bad && tally->bad < total)
		return WSS_EXIT_PARTIAL;
	return exit_code_of(&tally->error);
}

int wss_cli_error(const struct wss_error *err)
{
	if (!is_closed_pipe(err))
		wss_log(WSS_LOG_ERROR, "%s%s", err->text, error_remedy(err));
	return exit_code_of(err);
}

/* Whether libvirt's system daemon has ever run since this host was started. */
static bool has_libvirt(const struct wss_root *root)
{
	wss_auto_close int fd = wss_root_openat(root, "run/libvirt", O_PATH);

	return fd != -ENOENT;
}

const char *wss_cli_uri(const char *given)
{
	wss_cleanup(wss_root_close) struct wss_root root = {.dirfd = -1};
	const char *uri = getenv("LIBVIRT_DEFAULT_URI");

	if (given)
		return given;
	if (uri && *uri)
		return wss_inventory_find(uri) ? uri : NULL;
	if (geteuid() != 0 || wss_root_open(wss_test_sysroot(), &root, NULL) < 0 ||
	    has_libvirt(&root))
		return NULL;
	uri = wss_inventory_default(&root)->uri;
	wss_debug("there is no libvirt on this host: taking %s", uri);
	return uri;
}

static bool is_number(const char *word)
{
	return *word && !word[strspn(word, "0123456789")];
}

void wss_cli_take_ids(struct wss_cli *cli)
{
	wss_cleanup(wss_root_close) struct wss_root root = {.dirfd = -1};
	wss_auto_free struct wss_inventory_guest *guests = NULL;
	const struct wss_inventory_ops *inventory;
	size_t n = 0, n_numbers = 0;

	for (int i = 0; i < cli->n_domains && !cli->by_uuid; i++)
		n_numbers += is_number(cli->domains[i]);
	inventory = n_numbers ? wss_inventory_find(wss_cli_uri(cli->uri)) : NULL;
	if (!inventory || !inventory->ids_last ||
	    wss_root_open(wss_test_sysroot(), &root, NULL) < 0 ||
	    wss_inventory_list(inventory, &root, &guests, &n, NULL) < 0)
		return;
	/* A name may itself be another guest's VMID. */
	for (int i = 0; i < cli->n_domains; i++)
		for (size_t k = 0; k < n; k++)
			if (!strcmp(cli->domains[i], guests[k].id)) {
				cli->domains[i] = wss_xstrdup(guests[k].name);
				break;
			}
}

int wss_cli_find_targets(const struct wss_cli *cli, uint64_t deadline_ns,
			 struct wss_targets *ret_targets, struct wss_error *err)
{
	const struct wss_hypervisor_options options = {
		.uri = cli->qmp ? NULL : wss_cli_uri(cli->uri),
		.qmp = cli->qmp,
		.allow_monitor = cli->monitor,
		.reader = cli->reader,
	};
	const struct wss_domain_ref socket = {.name = cli->qmp};
	wss_auto_free struct wss_domain_ref *refs =
		wss_xcalloc((size_t)cli->n_domains, sizeof(*refs));
	struct wss_targets_query query = {.refs = refs,
					  .n = (size_t)cli->n_domains,
					  .inactive_too = cli->inactive_too,
					  .deadline_ns = deadline_ns};
	struct wss_hypervisor *hypervisor;
	int r;

	for (int i = 0; i < cli->n_domains; i++)
		refs[i] = wss_cli_domain(cli, i);
	if (wss_hypervisor_open(&options, &hypervisor, err) < 0)
		return -1;
	if (cli->qmp)
		query = (struct wss_targets_query){
			.refs = &socket, .n = 1, .deadline_ns = deadline_ns};
	r = wss_targets_find(hypervisor, &query, ret_targets, err);
	if (r == 0 && !ret_targets->n)
		wss_cli_say_empty(cli, wss_hypervisor_uri(hypervisor), !cli->inactive_too);
	wss_hypervisor_unref(hypervisor);
	return r;
}

int wss_cli_open_targets(const struct wss_cli *cli, uint64_t deadline_ns,
			 struct wss_targets *ret_targets, struct wss_error *err)
{
	if (wss_cli_find_targets(cli, deadline_ns, ret_targets, err) < 0)
		return -1;
	if (wss_targets_open(ret_targets, err) == 0)
		return 0;
	wss_targets_free(ret_targets);
	return -1;
}

size_t wss_targets_name_width(const struct wss_targets *targets)
{
	size_t width = 0;

	for (size_t i = 0; i < targets->n; i++)
		width = wss_name_width(width, wss_target_name(targets->list[i]));
	return width;
}

size_t wss_name_width(size_t width, const char *name)
{
	size_t columns = (size_t)wss_text_width(name);

	return columns > width ? columns : width;
}
