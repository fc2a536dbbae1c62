/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The completion script for bash: completion.bash, which parses the line, and two bash functions that it calls, made
 * from the commands' tables.
 */
#include <stdio.h>
#include <string.h>

#include "cmd/dispatch.h"
#include "help-text.h"
#include "measure/tracker.h"
#include "show/report.h"

/* Values of the options that commands share; those of a command's own are in its table. */
static const struct wss_option_values shared_values[] = {
	{"columns", WSS_VALUES_COLUMNS},
	{"connect", "qemu:///system qemu:///session"},
	{"granularity", "native 4k auto both"},
	{"history", WSS_VALUES_FILES},
	{"hosts", WSS_VALUES_FILES},
	{"method", WSS_VALUES_METHODS},
	{"output", "table json csv"},
	{"plot", WSS_VALUES_FILES},
	{"qmp", WSS_VALUES_FILES},
	{"recorder", "auto bpf counters"},
	{"socket", WSS_VALUES_FILES},
	{"sort", WSS_VALUES_COLUMNS},
	{NULL, NULL},
};

static const char *const words_names[] = {
	[WSS_WORDS_NONE] = "none",     [WSS_WORDS_DOMAINS] = "domains",
	[WSS_WORDS_FILES] = "files",   [WSS_WORDS_COMMANDS] = "commands",
	[WSS_WORDS_LISTED] = "listed",
};

static const char *find_values(const struct wss_option_values *values, const char *option)
{
	for (; values && values->option; values++)
		if (!strcmp(values->option, option))
			return values->values;
	return NULL;
}

const char *wss_option_values(const struct wss_command *command, const char *option)
{
	const char *own = find_values(command->values, option);

	return own ? own : find_values(shared_values, option);
}

static void print_options(const struct wss_command *command, const char *variable, int has_value)
{
	printf("\t%s='", variable);
	for (const struct option *o = command->long_options; o->name; o++)
		if (o->has_arg == has_value) {
			if (o->val > ' ' && o->val < 127)
				printf(" -%c", o->val);
			printf(" --%s", o->name);
		}
	putchar('\'');
}

/* Prints a command's options and words as a branch of a bash case statement. */
static void print_command(const struct wss_command *command, const char *name)
{
	printf("\t%s)\n\t\ttakes=%s listed='%s'\n\t", name, words_names[command->takes],
	       command->words ? command->words : "");
	print_options(command, "valued", required_argument);
	printf("\n\t");
	print_options(command, "flags", no_argument);
	printf(" ;;\n");
}

static void print_words(const struct wss_command *command, const char *words)
{
	const struct wss_report_layout *layout = command->layouts ? command->layouts[0] : NULL;

	if (!strcmp(words, WSS_VALUES_METHODS)) {
		printf("auto");
		for (size_t i = 0; wss_trackers[i]; i++)
			printf(" %s", wss_trackers[i]->name);
	} else if (!strcmp(words, WSS_VALUES_COLUMNS)) {
		for (size_t i = 0; layout && i < layout->n_columns; i++)
			printf("%s%s", i ? " " : "", layout->columns[i].key);
	} else {
		printf("%s", words);
	}
}

/* Prints the possible values of a command's options as branches of a bash case statement. */
static void print_values(const struct wss_command *command, const char *name)
{
	for (const struct option *o = command->long_options; o->name; o++) {
		const char *words = o->has_arg ? wss_option_values(command, o->name) : NULL;

		if (!words)
			continue;
		printf("\t'%s:--%s'", name, o->name);
		if (o->val > ' ' && o->val < 127)
			printf(" | '%s:-%c'", name, o->val);
		if (!strcmp(words, WSS_VALUES_FILES)) {
			printf(") takes=files ;;\n");
			continue;
		}
		printf(") takes=%s listed='",
		       !strcmp(words, WSS_VALUES_COLUMNS) ? "columns" : "listed");
		if (!strcmp(o->name, "columns"))
			printf("help ");
		print_words(command, words);
		printf("' ;;\n");
	}
}

static const char script[] =
#include "completion-text.h"
	;

static void print_script(void)
{
	fputs(script, stdout);
	printf("\n_virt_wss_commands='");
	for (size_t i = 0; wss_commands[i]; i++)
		printf("%s%s", i ? " " : "", wss_commands[i]->name);
	printf("'\n\n"
	       "# What a command takes, '' being the program: words, options with a value and "
	       "without.\n"
	       "_virt_wss_command() { # COMMAND -> takes, listed, valued, flags\n"
	       "\tcase $1 in\n");
	print_command(&wss_program, "''");
	for (size_t i = 0; wss_commands[i]; i++)
		print_command(wss_commands[i], wss_commands[i]->name);
	printf("\t*) return 1 ;;\n\tesac\n}\n\n"
	       "# What the value of an option can be.\n"
	       "_virt_wss_value() { # COMMAND OPTION -> takes, listed\n"
	       "\ttakes=none listed=''\n"
	       "\tcase $1:$2 in\n");
	print_values(&wss_program, "");
	for (size_t i = 0; wss_commands[i]; i++)
		print_values(wss_commands[i], wss_commands[i]->name);
	printf("\tesac\n}\n");
}

static int completion_run(struct wss_cli *cli, int argc, char **argv)
{
	struct wss_error err = WSS_ERROR_INIT;

	if (wss_cli_parse(cli, argc, argv, NULL, &err) < 0)
		return wss_cli_error(&err);
	if (argc - optind != 1 || strcmp(argv[optind], "bash") != 0) {
		wss_error_set(&err, WSS_ERR_USAGE,
			      "completion: name the shell, which must be bash");
		return wss_cli_error(&err);
	}
	print_script();
	return WSS_EXIT_OK;
}

const struct wss_command wss_cmd_completion = {
	.name = "completion",
	.summary = "print the completion script for bash",
	.help = wss_help_completion,
	.long_options = wss_common_options,
	.takes = WSS_WORDS_LISTED,
	.words = "bash",
	.run = completion_run,
};
