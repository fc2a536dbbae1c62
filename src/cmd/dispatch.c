/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "cmd/dispatch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/fault.h"
#include "base/log.h"
#include "help-text.h"

#define COMMAND_ENTRY(name) &wss_cmd_##name,
const struct wss_command *const wss_commands[] = {WSS_COMMANDS(COMMAND_ENTRY) NULL};

static const struct option program_options[] = {
	WSS_COMMON_LONG,
	{"version", no_argument, NULL, 'V'},
	{NULL, 0, NULL, 0},
};

/* "+": arguments after the command's name belong to the command. */
const struct wss_command wss_program = {
	.name = "virt-wss",
	.help = wss_help_global,
	.short_options = "+" WSS_COMMON_SHORT "V",
	.long_options = program_options,
	.takes = WSS_WORDS_COMMANDS,
};

const struct wss_command *wss_command_find(const char *name, struct wss_error *err)
{
	for (size_t i = 0; wss_commands[i]; i++)
		if (!strcmp(wss_commands[i]->name, name))
			return wss_commands[i];
	wss_cli_unknown_command(wss_commands, name, err);
	return NULL;
}

/* Placeholder for the list of commands in docs/synopsis/global.txt. */
#define LIST_MARK "@COMMANDS@\n"

void wss_help_print(const struct wss_command *command)
{
	const char *mark = command == &wss_program ? strstr(command->help, LIST_MARK) : NULL;

	if (!mark) {
		fputs(command->help, stdout);
		return;
	}
	fwrite(command->help, 1, (size_t)(mark - command->help), stdout);
	for (size_t i = 0; wss_commands[i]; i++)
		printf("  %-22s %s\n", wss_commands[i]->name, wss_commands[i]->summary);
	fputs(mark + strlen(LIST_MARK), stdout);
}

#define USAGE_COLUMNS 6

/* Prints a short usage for a call without arguments, on stderr because it was not requested. */
static int print_usage(void)
{
	struct wss_error err = WSS_ERROR_INIT;

	fprintf(stderr, "%.*s\n\nCommands:\n", (int)strcspn(wss_program.help, "\n"),
		wss_program.help);
	for (size_t i = 0; wss_commands[i]; i++) {
		bool ends = i % USAGE_COLUMNS == USAGE_COLUMNS - 1 || !wss_commands[i + 1];

		fprintf(stderr, "  %-*s%s", ends ? 0 : 10, wss_commands[i]->name, ends ? "\n" : "");
	}
	fputc('\n', stderr);
	wss_error_set(&err, WSS_ERR_USAGE, "missing command (see virt-wss --help)");
	return wss_cli_error(&err);
}

/*
 * Whether a word is a plain --help or -h. This counts even where an option expects its value,
 * because no option has such a value.
 */
static bool has_help_word(int argc, char **argv)
{
	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
		if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h"))
			return true;
	return false;
}

enum question { QUESTION_NONE, QUESTION_HELP, QUESTION_COLUMNS };

/*
 * Determines whether the options ask for anything other than running the command, even if some
 * of them are wrong.
 */
static enum question find_question(const struct wss_command *command, int argc, char **argv)
{
	int c;

	optind = 0;
	while ((c = getopt_long(argc, argv, wss_cli_short_options(command), command->long_options,
				NULL)) != -1) {
		if (c == 'h')
			return QUESTION_HELP;
		if (c == WSS_OPT_COLUMNS && !strcmp(optarg, "help"))
			return QUESTION_COLUMNS;
	}
	return QUESTION_NONE;
}

/* Does so on a copy of the arguments, because getopt_long() reorders them. */
static enum question dispatch_ask(const struct wss_command *command, int argc, char **argv)
{
	wss_auto_free char **words = wss_xcalloc((size_t)argc + 1, sizeof(*words));

	memcpy(words, argv, (size_t)argc * sizeof(*words));
	return has_help_word(argc, argv) ? QUESTION_HELP : find_question(command, argc, words);
}

/* Prints the help of the command after the program's options, even if those are wrong. */
static int print_asked_help(int argc, char **argv, struct wss_error *err)
{
	const struct wss_command *command = &wss_program;

	find_question(&wss_program, argc, argv);
	while (optind < argc && argv[optind][0] == '-')
		optind++;
	if (optind < argc)
		command = wss_command_find(argv[optind], err);
	if (!command)
		return -1;
	wss_help_print(command);
	return 0;
}

static void warn_of_tests(void)
{
	if (wss_fault_text())
		wss_warn("VIRT_WSS_FAULT is set (%s): results are for tests only",
			 wss_fault_text());
	if (strcmp(wss_test_sysroot(), "/") != 0)
		wss_warn("VIRT_WSS_SYSROOT is set (%s): results are for tests only",
			 wss_test_sysroot());
}

static int run_command(struct wss_cli *cli, int argc, char **argv, struct wss_error *err)
{
	enum question question;

	cli->command = wss_command_find(argv[0], err);
	if (!cli->command)
		return wss_cli_error(err);
	question = dispatch_ask(cli->command, argc, argv);
	if (question == QUESTION_HELP) {
		wss_help_print(cli->command);
		return WSS_EXIT_OK;
	}
	if (question == QUESTION_COLUMNS)
		return wss_cli_print_columns(cli->command->layouts);
	warn_of_tests();
	return cli->command->run(cli, argc, argv);
}

int wss_dispatch(int argc, char **argv, void (*print_version)(void))
{
	struct wss_cli cli = {.command = &wss_program};
	struct wss_error err = WSS_ERROR_INIT;
	int c;

	if (argc < 2)
		return print_usage();
	if (has_help_word(argc, argv))
		return print_asked_help(argc, argv, &err) < 0 ? wss_cli_error(&err) : WSS_EXIT_OK;
	optind = 0;
	while ((c = getopt_long(argc, argv, wss_program.short_options, program_options, NULL)) !=
	       -1) {
		if (c == 'V') {
			print_version();
			return WSS_EXIT_OK;
		}
		/* An abbreviation of --help. */
		if (c == 'h')
			return print_asked_help(argc, argv, &err) < 0 ? wss_cli_error(&err)
								      : WSS_EXIT_OK;
		if (wss_cli_option(&cli, c, argv, &err) < 0)
			return wss_cli_error(&err);
	}
	if (optind >= argc)
		return print_usage();
	return run_command(&cli, argc - optind, argv + optind, &err);
}
