/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The room cmd/: the commands. NAME.c parses the options of the command NAME, calls other rooms,
 * and prints; a large command has more files, NAME-*.c.
 *
 *   cmd.h        what commands share, this file: common options, the guests named on the command
 *                line, exit codes
 *   *-options.h  options that several commands share
 *   dispatch.h   finds the command; completion.c and help.c know all of them by WSS_COMMANDS
 *   help-text.h  their help, generated from docs/synopsis/
 *   serve-options.h  the options of serve: the settings of serve/settings.h
 *
 * In: the command line. Out: results on standard output, a line for each error on standard error,
 * and an exit code (enum wss_exit).
 *
 * A command runs in the main thread, and calls neither libvirt nor QEMU there: workers do
 * (measure/target.h, measure/round.h).
 *
 * Begin with mark.c, the shortest command, then methods.c. A new command is one file, an entry in
 * WSS_COMMANDS and a text in docs/synopsis/: HACKING.md has the steps.
 */
#pragma once

#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/clock.h"
#include "base/error.h"
#include "host/conn.h"
#include "measure/target.h"
#include "show/report.h"

enum wss_exit {
	WSS_EXIT_OK = 0,
	WSS_EXIT_FAILED = 1,
	WSS_EXIT_USAGE = 2,
	WSS_EXIT_PARTIAL = 3, /* some, but not all, domains failed */
	WSS_EXIT_CONNECT = 4,
	WSS_EXIT_UNSUPPORTED = 5,
};

#define WSS_URIS_MAX 64

/* Why what needs a history takes no guest by its QMP socket, and how the same guest has one. */
#define WSS_CLI_QMP_NO_HISTORY \
	"--qmp: a guest that is known by its socket alone has no history: use -c kvm:///, which stores the same guest"

struct wss_cli {
	const struct wss_command *command; /* the command being run */
	const char *uri;		   /* the last one given; NULL: libvirt's default */
	size_t n_uris;			   /* more than one only if several_uris is set */
	const char *uris[WSS_URIS_MAX];
	bool several_uris; /* accepts several -c; set by the command before wss_cli_parse() */
	/* Set before wss_cli_find_targets() by commands that measure nothing. */
	bool reader;	   /* a read-only connection suffices */
	bool inactive_too; /* "all domains" includes inactive ones */
	const char *qmp;   /* a QMP socket instead of libvirt; the last one given */
	size_t n_qmps;
	bool monitor; /* allow QMP through libvirt's monitor */
	bool debug;   /* debug messages are logged */
	bool by_uuid; /* domains are given as UUIDs, not as IDs or names */
	bool all;
	enum wss_format format;
	struct wss_view view;
	char **domains; /* n_domains words as typed */
	int n_domains;
};

/* The values that an option can have, for completion. */
struct wss_option_values {
	const char *option; /* without the hyphens */
	const char *values; /* words separated by blanks, or one of the following */
};

#define WSS_VALUES_FILES "@files"
#define WSS_VALUES_METHODS "@methods"
#define WSS_VALUES_COLUMNS "@columns"

/* Returns the values of an option of a command or of all; NULL: others than words and files. */
const char *wss_option_values(const struct wss_command *command, const char *option);

/* Kind of words that may follow a command's options, for completion. */
enum wss_words {
	WSS_WORDS_NONE,
	WSS_WORDS_DOMAINS,
	WSS_WORDS_FILES,
	WSS_WORDS_COMMANDS,
	WSS_WORDS_LISTED, /* first one of .words, then domains */
};

/*
 * A command, with everything that the dispatcher, --help and completion need. If the arguments
 * ask for help or the list of columns, the dispatcher prints that instead of calling run().
 */
struct wss_command {
	const char *name;
	/* its line in "virt-wss --help": at most 54 columns, no full stop */
	const char *summary;
	const char *help;	   /* docs/synopsis/NAME.txt, as wss_help_NAME in help-text.h */
	const char *short_options; /* WSS_COMMON_SHORT and its own; NULL: none of its own */
	const struct option *long_options; /* including WSS_COMMON_LONG */
	/*
	 * Stores one of its own options with its value (NULL if that takes none). Returns 0, or -1 with
	 * WSS_ERR_USAGE. NULL: it has no options of its own.
	 */
	int (*take)(void *options, int c, const char *value, struct wss_error *err);
	/*
	 * Its own short options among those that are common to other commands, "c" for one that has
	 * another meaning for -c; NULL: none.
	 */
	const char *own_short;
	/* NULL-terminated list of layouts for --columns help; NULL: the command prints no table. */
	const struct wss_report_layout *const *layouts;
	enum wss_words takes;
	const char *words; /* the words, separated by blanks, or NULL */
	/*
	 * Values of its own options that are files or one of several words, ending with an option
	 * of NULL; NULL: there are no such options. An entry for an option that commands share
	 * overrides the shared one in src/cmd/completion.c.
	 */
	const struct wss_option_values *values;
	/*
	 * Runs the command; argv[0] is its name, followed by its own arguments. Returns an
	 * exit code.
	 */
	int (*run)(struct wss_cli *cli, int argc, char **argv);
};

/* All commands in the order of --help; src/cmd/NAME.c defines wss_cmd_NAME, with _ for each hyphen. */
#define WSS_COMMANDS(X)     \
	X(sample)           \
	X(profile)          \
	X(record)           \
	X(mark)             \
	X(report)           \
	X(diff)             \
	X(heatmap)          \
	X(methods)          \
	X(list)             \
	X(history)          \
	X(cold)             \
	X(recommend)        \
	X(plan)             \
	X(migrate_estimate) \
	X(balloon)          \
	X(squeeze)          \
	X(policy)           \
	X(serve)            \
	X(top)              \
	X(check)            \
	X(help)             \
	X(completion)

#define WSS_COMMAND_DECLARE(name) extern const struct wss_command wss_cmd_##name;
WSS_COMMANDS(WSS_COMMAND_DECLARE)

/*
 * Values of getopt_long() for the options that every command has. A command numbers its own
 * from 1, or uses their letters; options that several commands share begin at a thousand of
 * their own: window-options.h at 2000, file-options.h at 3000, store-options.h at 4000,
 * sizing-options.h at 5000, hosts.h at 6000.
 */
enum {
	WSS_OPT_ALL = 1000,
	WSS_OPT_OUTPUT,
	WSS_OPT_QMP,
	WSS_OPT_DEBUG,
	WSS_OPT_UUID,
	WSS_OPT_MONITOR,
	WSS_OPT_CONNECT, /* --connect of a command whose -c is its own */
	/* Options of commands that print a table. */
	WSS_OPT_COLUMNS,
	WSS_OPT_SORT,
	WSS_OPT_WIDE,
};

#define WSS_COMMON_SHORT ":c:h"
#define WSS_COMMON_LONG                                                              \
	{"connect", required_argument, NULL, 'c'}, {"help", no_argument, NULL, 'h'}, \
		{"all", no_argument, NULL, WSS_OPT_ALL},                             \
		{"output", required_argument, NULL, WSS_OPT_OUTPUT},                 \
		{"qmp", required_argument, NULL, WSS_OPT_QMP},                       \
		{"allow-monitor", no_argument, NULL, WSS_OPT_MONITOR},               \
		{"uuid", no_argument, NULL, WSS_OPT_UUID},                           \
	{                                                                            \
		"debug", no_argument, NULL, WSS_OPT_DEBUG                            \
	}

/* For a command that has no others. */
extern const struct option wss_common_options[];

/* Returns the short options of a command for getopt_long(). */
const char *wss_cli_short_options(const struct wss_command *command);

/* Further options of a command that prints a table and calls wss_cli_view(). */
#define WSS_TABLE_LONG                                           \
	{"columns", required_argument, NULL, WSS_OPT_COLUMNS},   \
		{"sort", required_argument, NULL, WSS_OPT_SORT}, \
	{                                                        \
		"wide", no_argument, NULL, WSS_OPT_WIDE          \
	}

/*
 * Parses all options of cli->command and stores its own in options; the remaining arguments
 * start at argv[optind]. WSS_ERR_USAGE.
 */
int wss_cli_parse(struct wss_cli *cli, int argc, char **argv, void *options, struct wss_error *err);

/*
 * Handles a getopt_long() result that is a common option of cli->command or an error; the
 * caller handles the command's own options first. WSS_ERR_USAGE.
 */
int wss_cli_option(struct wss_cli *cli, int c, char **argv, struct wss_error *err);

/*
 * Reports an unknown option and suggests the nearest one of the command. Always returns -1
 * with WSS_ERR_USAGE.
 */
int wss_cli_unknown_option(const struct wss_command *command, const char *word,
			   struct wss_error *err);

/* Reports a word that is not in commands, a NULL-terminated list, in the same way. */
int wss_cli_unknown_command(const struct wss_command *const *commands, const char *word,
			    struct wss_error *err);

/* Stores one of the options of WSS_TABLE_LONG. */
void wss_cli_view_option(struct wss_cli *cli, int c, const char *value);

/*
 * Checks that the columns named in cli->view exist in the layout, and determines the width of
 * the terminal. Call it after all options have been parsed. WSS_ERR_USAGE.
 */
int wss_cli_view(struct wss_cli *cli, const struct wss_report_layout *layout,
		 struct wss_error *err);

/* Prints the columns of the layouts, a NULL-terminated list. Returns the exit code. */
int wss_cli_print_columns(const struct wss_report_layout *const *layouts);

/*
 * Fails with WSS_ERR_USAGE if an option for tables, such as --output, was given to `what`, which
 * prints none.
 */
int wss_cli_refuse_view(const struct wss_cli *cli, const char *what, struct wss_error *err);

/* Takes the arguments after the options as domains, and refuses options that exclude each other. */
int wss_cli_finish(struct wss_cli *cli, int argc, char **argv, struct wss_error *err);

/* Checks that no domain is empty, and that each looks like a UUID if --uuid was given. WSS_ERR_USAGE. */
int wss_cli_check_domains(const struct wss_cli *cli, struct wss_error *err);

/* Returns a reference to the domain cli->domains[i]. */
struct wss_domain_ref wss_cli_domain(const struct wss_cli *cli, int i);

/*
 * Explains an empty table: names the URI (NULL: libvirt's default), which has no domains or no
 * running ones.
 */
void wss_cli_say_empty(const struct wss_cli *cli, const char *uri, bool running);

/* Prints a command's final error on stderr; returns the exit code. */
int wss_cli_error(const struct wss_error *err);

/* Tally of failures in a command over several domains. */
struct wss_tally {
	size_t bad;
	struct wss_error error; /* the first one; WSS_ERR_FAILED if later codes differ */
	char shared[512];	/* text of the last one that is shared */
};

/*
 * Counts a failed domain and prints the error, once if it is shared; domain is NULL if the error already names it.
 */
void wss_tally_bad(struct wss_tally *tally, const char *domain, const struct wss_error *error);

/* Counts a failed domain whose reason the output has. */
void wss_tally_count(struct wss_tally *tally, const struct wss_error *error);

/* Returns the exit code of a command over total domains. */
int wss_tally_exit_code(const struct wss_tally *tally, size_t total);

/*
 * Returns the connection that was given, by -c or by a setting; without one (NULL), LIBVIRT_DEFAULT_URI if that
 * names an inventory, that of this host's inventory (wss_inventory_default()) for root on a host without libvirt, else
 * NULL, libvirt's default.
 */
const char *wss_cli_uri(const char *given);

/*
 * Replaces words that are VMIDs by the names of these guests, for commands that read what is stored by name and UUID. Words
 * stay as they are where the inventory cannot be read. The words allocated here last as long as the process.
 */
void wss_cli_take_ids(struct wss_cli *cli);

/*
 * Finds the guests selected on the command line: the named ones, or all running ones (with
 * cli->inactive_too all defined ones). Opens none of them. deadline_ns limits the time for
 * each, not counting its windows. Free the result with wss_targets_free().
 */
int wss_cli_find_targets(const struct wss_cli *cli, uint64_t deadline_ns,
			 struct wss_targets *ret_targets, struct wss_error *err);

/*
 * Does the same, then opens them with wss_targets_open(): a guest that was typed twice is one
 * target, and a target that could not be opened has no guest, but an error.
 */
int wss_cli_open_targets(const struct wss_cli *cli, uint64_t deadline_ns,
			 struct wss_targets *ret_targets, struct wss_error *err);

/* Returns the width that a table's first column needs for all names. */
size_t wss_targets_name_width(const struct wss_targets *targets);

/* Returns the larger of width and the width of the name, for a table's first column. */
size_t wss_name_width(size_t width, const char *name);
