/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "cmd/cmd.h"

#include <ctype.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/stop.h"
#include "host/inventory.h"
#include "host/qmpguest.h"
#include "out/policy.h"
#include "out/width.h"

static int take_uri(struct wss_cli *cli, const char *uri, struct wss_error *err)
{
	if (cli->n_uris == WSS_URIS_MAX)
		return wss_error_set(err, WSS_ERR_USAGE, "more than %d times --connect",
				     WSS_URIS_MAX);
	cli->uris[cli->n_uris++] = uri;
	cli->uri = uri;
	return 0;
}

int wss_cli_option(struct wss_cli *cli, int c, char **argv, struct wss_error *err)
{
	switch (c) {
	case 'c':
		return take_uri(cli, optarg, err);
	case 'h': /* the dispatcher's */
		return 0;
	case WSS_OPT_ALL:
		cli->all = true;
		return 0;
	case WSS_OPT_OUTPUT:
		return wss_format_parse(optarg, &cli->format, err) < 0
			       ? wss_error_prefix(err, "--output") : 0;
	case WSS_OPT_QMP:
		cli->qmp = optarg;
		return 0;
	case WSS_OPT_UUID:
		cli->by_uuid = true;
		return 0;
	case WSS_OPT_MONITOR:
		cli->monitor = true;
		return 0;
	case WSS_OPT_DEBUG:
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

static bool is_common(int c)
{
	return c == 'c' || c == 'h' || c == ':' || c == '?' ||
	       (c >= WSS_OPT_ALL && c <= WSS_OPT_WIDE);
}

int wss_cli_parse(struct wss_cli *cli, int argc, char **argv, void *options,
		  struct wss_error *err)
{
	const struct wss_syntax *syntax = cli->command->syntax;
	int c, r;

	optind = 0;
	while ((c = getopt_long(argc, argv, syntax->short_options, syntax->long_options, NULL)) != -1) {
		r = is_common(c) ? wss_cli_option(cli, c, argv, err)
				 : syntax->take(options, c, optarg, err);
		if (r < 0)
			return -1;
	}
	/* Else only the last would be heeded, without a word about the others. */
	if (cli->n_uris > 1 && !cli->several_uris)
		return wss_error_set(err, WSS_ERR_USAGE,
				     "more than one --connect: only list takes several");
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
				     "--qmp names the guest: no DOMAIN and no --all with it");
	if (cli->all && cli->n_domains)
		return wss_error_set(err, WSS_ERR_USAGE, "--all and DOMAIN exclude each other");
	return wss_cli_check_uuids(cli, err);
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

int wss_cli_check_uuids(const struct wss_cli *cli, struct wss_error *err)
{
	for (int i = 0; cli->by_uuid && i < cli->n_domains; i++)
		if (!is_uuid(cli->domains[i]))
			return wss_error_set(err, WSS_ERR_USAGE, "--uuid: '%s' is not a UUID",
					     cli->domains[i]);
	return 0;
}

struct wss_domain_ref wss_cli_domain(const struct wss_cli *cli, int i)
{
	return (struct wss_domain_ref){ .name = cli->domains[i],
					.uuid = cli->by_uuid ? cli->domains[i] : NULL };
}

int wss_domains_find(const struct wss_cli *cli, struct wss_conn *conn,
		     struct wss_domains *ret_domains, struct wss_error *err)
{
	struct wss_domains all = { .n = (size_t)cli->n_domains };

	if (!cli->n_domains) {
		if (wss_conn_list(conn, false, &all.listed, &all.n_listed, err) < 0)
			return -1;
		all.n = all.n_listed;
		if (!all.n)
			wss_cli_say_empty(cli, wss_conn_uri(conn), true);
	}
	all.refs = calloc(all.n ? all.n : 1, sizeof(*all.refs));
	if (!all.refs) {
		wss_domains_free(&all);
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	}
	for (size_t i = 0; i < all.n; i++)
		all.refs[i] = cli->n_domains
				      ? wss_cli_domain(cli, (int)i)
				      : (struct wss_domain_ref){ all.listed[i].name,
								 all.listed[i].uuid };
	*ret_domains = all;
	return 0;
}

void wss_domains_free(struct wss_domains *domains)
{
	wss_conn_free_list(domains->listed, domains->n_listed);
	free(domains->refs);
	*domains = (struct wss_domains){ .n = 0 };
}

int wss_exit_code(const struct wss_error *err)
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

/* Whoever closes the pipe that we write to has seen enough, and wants no message of it. */
static bool is_closed_pipe(const struct wss_error *err)
{
	return err->code == WSS_ERR_INTERRUPTED && wss_stop_signal() == SIGPIPE;
}

void wss_tally_bad(struct wss_tally *tally, const char *domain, const struct wss_error *error)
{
	if (!tally->bad++)
		tally->error = *error;
	else if (wss_exit_code(&tally->error) != wss_exit_code(error))
		tally->error.code = WSS_ERR_FAILED;
	if (!is_closed_pipe(error))
		wss_log(WSS_LOG_ERROR, "%s%s%s", domain ? domain : "", domain ? ": " : "",
			error->text);
}

int wss_tally_exit_code(const struct wss_tally *tally, size_t total)
{
	if (tally->bad && tally->bad < total)
		return WSS_EXIT_PARTIAL;
	return wss_exit_code(&tally->error);
}

int wss_cli_error(const struct wss_error *err)
{
	if (!is_closed_pipe(err))
		wss_log(WSS_LOG_ERROR, "%s", err->text);
	return wss_exit_code(err);
}

/* What the operator has decided goes before everything; what cannot be read is no consent. */
static void heed_policy(struct wss_round_guest *entry)
{
	wss_auto_free char *xml = NULL;
	struct wss_guest *guest = entry->guest;

	if (guest->ops->metadata(guest, WSS_POLICY_NAMESPACE, &xml, &entry->error) < 0 ||
	    (xml && wss_policy_read(xml, &entry->policy, &entry->error) < 0) ||
	    (entry->policy.opt_out &&
	     wss_error_set(&entry->error, WSS_ERR_UNSUPPORTED,
			   "left alone, as its policy says (opt out)") < 0)) {
		wss_guest_free(guest);
		entry->guest = NULL;
	}
}

void wss_guests_open_one(struct wss_guests *guests, struct wss_round_guest *entry)
{
	const struct wss_domain_ref ref = { entry->name, entry->uuid };

	wss_budget_enter(&entry->budget, 0);
	if (wss_conn_guest(guests->conn, &ref, &entry->guest, &entry->error) == 0)
		heed_policy(entry);
	wss_budget_leave();
}

static int add_guest(struct wss_guests *guests, const struct wss_domain_ref *ref)
{
	struct wss_round_guest *entry = &guests->list[guests->n++];

	entry->name = ref->name;
	entry->uuid = ref->uuid;
	wss_budget_init(&entry->budget, guests->deadline_ns);
	wss_guests_open_one(guests, entry);
	return entry->guest ? 0 : -1;
}

/* The same guest twice would wait for its own lock. */
static void drop_repeated(struct wss_guests *guests)
{
	size_t kept = 0;

	for (size_t i = 0; i < guests->n; i++) {
		bool repeated = false;

		for (size_t j = 0; j < kept && guests->list[i].guest; j++)
			if (guests->list[j].guest &&
			    !strcmp(guests->list[j].guest->config.uuid,
				    guests->list[i].guest->config.uuid))
				repeated = true;
		if (repeated)
			wss_guest_free(guests->list[i].guest);
		else
			guests->list[kept++] = guests->list[i];
	}
	guests->n = kept;
}

static int open_domains(struct wss_guests *guests, struct wss_error *err)
{
	size_t n = guests->domains.n;

	guests->list = calloc(n ? n : 1, sizeof(*guests->list));
	if (!guests->list)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	for (size_t i = 0; i < n; i++) {
		if (wss_stop_requested())
			return wss_error_set(err, WSS_ERR_INTERRUPTED, "interrupted");
		/* Without a connection the others cannot be opened either. */
		if (add_guest(guests, &guests->domains.refs[i]) < 0 &&
		    guests->list[guests->n - 1].error.code == WSS_ERR_CONNECT) {
			*err = guests->list[guests->n - 1].error;
			return -1;
		}
	}
	drop_repeated(guests);
	return 0;
}

/* A domain that ended between the list and the look, or that opted out, is not missed. */
static void drop_unwanted(struct wss_guests *guests)
{
	size_t kept = 0;

	for (size_t i = 0; i < guests->n; i++) {
		const struct wss_round_guest *entry = &guests->list[i];

		if (entry->guest ? entry->guest->state == WSS_GUEST_SHUTOFF
				 : entry->error.code == WSS_ERR_GONE || entry->policy.opt_out)
			wss_guest_free(entry->guest);
		else
			guests->list[kept++] = *entry;
	}
	guests->n = kept;
}

static int open_qmp(const char *socket_path, struct wss_guests *guests, struct wss_error *err)
{
	struct wss_round_guest *entry = guests->list = calloc(1, sizeof(*guests->list));
	int r;

	if (!entry)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	entry->name = socket_path;
	wss_budget_init(&entry->budget, guests->deadline_ns);
	wss_budget_enter(&entry->budget, 0);
	r = wss_qmpguest_open(socket_path, &entry->guest, err);
	wss_budget_leave();
	if (r < 0)
		return wss_error_prefix(err, "%s", socket_path);
	guests->n = 1;
	return 0;
}

int wss_guests_open(const struct wss_cli *cli, struct wss_guests *guests, struct wss_error *err)
{
	if (wss_host_open(wss_test_sysroot(), &guests->host, err) < 0)
		return -1;
	if (cli->qmp)
		return open_qmp(cli->qmp, guests, err);
	if (wss_conn_open(cli->uri, &guests->conn, err) < 0)
		return -1;
	if (cli->monitor)
		wss_conn_allow_monitor(guests->conn);
	if (wss_domains_find(cli, guests->conn, &guests->domains, err) < 0 ||
	    open_domains(guests, err) < 0)
		return -1;
	if (!cli->n_domains)
		drop_unwanted(guests);
	return 0;
}

void wss_guests_close(struct wss_guests *guests)
{
	for (size_t i = 0; i < guests->n; i++)
		wss_guest_free(guests->list[i].guest);
	free(guests->list);
	wss_domains_free(&guests->domains);
	wss_conn_close(guests->conn);
	wss_host_close(&guests->host);
}

size_t wss_name_width(size_t width, const char *name)
{
	size_t columns = (size_t)wss_text_width(name);

	return columns > width ? columns : width;
}

size_t wss_guests_name_width(const struct wss_guests *guests)
{
	size_t width = 0;

	for (size_t i = 0; i < guests->n; i++) {
		const struct wss_round_guest *entry = &guests->list[i];

		width = wss_name_width(width, entry->guest ? entry->guest->config.name
							   : entry->name);
	}
	return width;
}
