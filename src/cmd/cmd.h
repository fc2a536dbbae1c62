/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What all subcommands share: the options that each of them takes, the guests
 * that they name, the exit codes.
 */
#ifndef WSS_CMD_CMD_H
#define WSS_CMD_CMD_H

#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/clock.h"
#include "base/error.h"
#include "host/conn.h"
#include "out/report.h"
#include "service/target.h"

enum wss_exit {
	WSS_EXIT_OK = 0,
	WSS_EXIT_FAILED = 1,
	WSS_EXIT_USAGE = 2,
	WSS_EXIT_PARTIAL = 3, /* some of several domains failed */
	WSS_EXIT_CONNECT = 4,
	WSS_EXIT_UNSUPPORTED = 5,
};

#define WSS_URIS_MAX 64

struct wss_cli {
	const struct wss_command *command; /* the one that runs */
	const char *uri; /* the one given, of several the last; NULL: libvirt's default */
	size_t n_uris;	 /* more than one only with several_uris */
	const char *uris[WSS_URIS_MAX];
	bool several_uris; /* set before wss_cli_parse() by a command that takes more than one */
	/* Set before wss_cli_find_targets() by a command that measures nothing. */
	bool reader;	   /* a connection that may only read will do */
	bool inactive_too; /* all domains are those that do not run, too */
	const char *qmp; /* a QMP socket instead of libvirt */
	bool monitor;	 /* allow QMP through libvirt's monitor */
	bool by_uuid;	 /* domains are UUIDs, not IDs or names */
	bool all;
	enum wss_format format;
	struct wss_view view;
	char **domains; /* as typed; n_domains of them */
	int n_domains;
};

/* The options of one command. */
struct wss_syntax {
	const char *short_options; /* WSS_COMMON_SHORT, and what the command adds */
	const struct option *long_options; /* with WSS_COMMON_LONG among them */
	/*
	 * Takes one that is not common, with its value (NULL where it has none), into the
	 * command's own options. Negative with err: WSS_ERR_USAGE. NULL: there are none.
	 */
	int (*take)(void *options, int c, const char *value, struct wss_error *err);
};

/* What the words behind a command's options are, for completion. */
enum wss_words {
	WSS_WORDS_NONE,
	WSS_WORDS_DOMAINS,
	WSS_WORDS_FILES,
	WSS_WORDS_COMMANDS,
	WSS_WORDS_LISTED, /* those of .words, then domains */
};

/*
 * A command: all that the dispatcher, --help and completion know of it. The dispatcher has
 * printed the help, or the list of columns, where the words ask for it, before run() is called.
 */
struct wss_command {
	const char *name;
	const char *summary; /* a line of "virt-wss --help": at most 54 columns, no full stop */
	const char *help;    /* docs/synopsis/NAME.txt, as wss_help_NAME in help-text.h */
	const struct wss_syntax *syntax;
	/* The tables for --columns help, a list that ends in NULL; NULL: it prints no table. */
	const struct wss_report_layout *const *layouts;
	enum wss_words takes;
	const char *words; /* the words themselves, with blanks between them, or NULL */
	/* Gets the command's own words only, argv[0] being its name; returns an exit code. */
	int (*run)(struct wss_cli *cli, int argc, char **argv);
};

/* All commands, in the order of --help: wss_cmd_NAME in src/cmd/NAME.c for each. */
#define WSS_COMMANDS(X) \
	X(sample)       \
	X(profile)      \
	X(record)       \
	X(mark)         \
	X(report)       \
	X(diff)         \
	X(heatmap)      \
	X(methods)      \
	X(list)         \
	X(history)      \
	X(recommend)    \
	X(balloon)      \
	X(policy)       \
	X(help)         \
	X(completion)

#define WSS_COMMAND_DECLARE(name) extern const struct wss_command wss_cmd_##name;
WSS_COMMANDS(WSS_COMMAND_DECLARE)

/* Values of getopt_long() for the options that every command has. */
enum {
	WSS_OPT_ALL = 1000,
	WSS_OPT_OUTPUT,
	WSS_OPT_QMP,
	WSS_OPT_DEBUG,
	WSS_OPT_UUID,
	WSS_OPT_MONITOR,
	/* Of those that print a table. */
	WSS_OPT_COLUMNS,
	WSS_OPT_SORT,
	WSS_OPT_WIDE,
};

#define WSS_COMMON_SHORT ":c:h"
#define WSS_COMMON_LONG                                          \
	{ "connect", required_argument, NULL, 'c' },             \
	{ "help", no_argument, NULL, 'h' },                      \
	{ "all", no_argument, NULL, WSS_OPT_ALL },               \
	{ "output", required_argument, NULL, WSS_OPT_OUTPUT },   \
	{ "qmp", required_argument, NULL, WSS_OPT_QMP },         \
	{ "allow-monitor", no_argument, NULL, WSS_OPT_MONITOR }, \
	{ "uuid", no_argument, NULL, WSS_OPT_UUID },             \
	{ "debug", no_argument, NULL, WSS_OPT_DEBUG }

/* What a command that prints a table takes as well; such a one calls wss_cli_view(). */
#define WSS_TABLE_LONG                                           \
	{ "columns", required_argument, NULL, WSS_OPT_COLUMNS }, \
	{ "sort", required_argument, NULL, WSS_OPT_SORT },       \
	{ "wide", no_argument, NULL, WSS_OPT_WIDE }

/*
 * Goes through all options of cli->command, its own into options; the words behind them are from
 * argv[optind] on. WSS_ERR_USAGE.
 */
int wss_cli_parse(struct wss_cli *cli, int argc, char **argv, void *options,
		  struct wss_error *err);

/*
 * Handles what getopt_long() gave (c) when it is a common option of cli->command or an error; own
 * options are the caller's, before. WSS_ERR_USAGE.
 */
int wss_cli_option(struct wss_cli *cli, int c, char **argv, struct wss_error *err);

/*
 * Says that getopt_long() did not take the option in word, and which one of the command may have
 * been meant. Always -1, with WSS_ERR_USAGE.
 */
int wss_cli_unknown_option(const struct wss_command *command, const char *word,
			   struct wss_error *err);

/* The same of a command that is none of commands, a list that ends in NULL. */
int wss_cli_unknown_command(const struct wss_command *const *commands, const char *word,
			    struct wss_error *err);

/* Takes one of WSS_TABLE_LONG. */
void wss_cli_view_option(struct wss_cli *cli, int c, const char *value);

/*
 * After the options: checks that what cli->view names are columns of the layout, and finds the
 * width of the terminal. WSS_ERR_USAGE.
 */
int wss_cli_view(struct wss_cli *cli, const struct wss_report_layout *layout,
		 struct wss_error *err);

/* Prints the columns of the layouts, a list that ends in NULL; the exit code. */
int wss_cli_print_columns(const struct wss_report_layout *const *layouts);

/* WSS_ERR_USAGE where an option of the table was given: what prints none. */
int wss_cli_refuse_view(const struct wss_cli *cli, const char *what, struct wss_error *err);

/* Takes the words behind the options as domains and checks what excludes each other. */
int wss_cli_finish(struct wss_cli *cli, int argc, char **argv, struct wss_error *err);

/* With --uuid every domain must look like a UUID. WSS_ERR_USAGE. */
int wss_cli_check_uuids(const struct wss_cli *cli, struct wss_error *err);

/* Addresses the domain that was typed as cli->domains[i]. */
struct wss_domain_ref wss_cli_domain(const struct wss_cli *cli, int i);

/*
 * Says, beside an empty table, which URI was asked for all domains (NULL: libvirt's default) and that
 * none is there, or that none is running.
 */
void wss_cli_say_empty(const struct wss_cli *cli, const char *uri, bool running);

/* Prints an error on stderr as the command's last word; gives its exit code. */
int wss_cli_error(const struct wss_error *err);

/* What went wrong in a command over several domains. */
struct wss_tally {
	size_t bad;
	struct wss_error error; /* of the first; code is WSS_ERR_FAILED when others differ */
};

/* Counts a domain that went wrong and prints why; domain NULL: the error says itself what. */
void wss_tally_bad(struct wss_tally *tally, const char *domain, const struct wss_error *error);

/* The exit code over total domains. */
int wss_tally_exit_code(const struct wss_tally *tally, size_t total);

/*
 * Finds the guests that the command line means: those that were typed, or all that run (with
 * cli->inactive_too all that there are); opens none of them. deadline_ns is how long each may take besides its windows. For wss_targets_free().
 */
int wss_cli_find_targets(const struct wss_cli *cli, uint64_t deadline_ns,
			 struct wss_targets *ret_targets, struct wss_error *err);

/* As wss_cli_find_targets() and wss_targets_open(). */
int wss_cli_open_targets(const struct wss_cli *cli, uint64_t deadline_ns,
			 struct wss_targets *ret_targets, struct wss_error *err);

/* For the width of a table's first column: that of all names. */
size_t wss_targets_name_width(const struct wss_targets *targets);

/* For the width of a table's first column: that of the wider of width and the name. */
size_t wss_name_width(size_t width, const char *name);

#endif
