/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The completion script for bash: two bash functions generated from the commands' tables, and
 * a fixed part that parses the line and calls them.
 */
#include <stdio.h>
#include <string.h>

#include "cmd/dispatch.h"
#include "help-text.h"
#include "out/report.h"
#include "track/tracker.h"

static const struct option long_options[] = {
	WSS_COMMON_LONG,
	{NULL, 0, NULL, 0},
};

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

/*
 * Prints an option's names, each after a blank: "--connect", and "-c" if it has a short form.
 */
static void print_option(const struct option *o)
{
	if (o->val > ' ' && o->val < 127)
		printf(" -%c", o->val);
	printf(" --%s", o->name);
}

static void print_options(const struct wss_command *command, const char *variable,
			  int has_value)
{
	printf("\t%s='", variable);
	for (const struct option *o = command->syntax->long_options; o->name; o++)
		if (o->has_arg == has_value)
			print_option(o);
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
	for (const struct option *o = command->syntax->long_options; o->name; o++) {
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

static const char head[] =
	"# SPDX-License-Identifier: LGPL-2.1-or-later\n"
	"# shellcheck shell=bash\n"
	"# bash completion for virt-wss(1), as printed by \"virt-wss completion bash\"\n\n";

static const char tail[] =
	"# The names or the UUIDs of all domains of the connection.\n"
	"_virt_wss_domains() { # COLUMN [-c URI]...\n"
	"\tvirt-wss \"${@:2}\" list --all --timeout 2s --output csv --columns \"$1\" "
	"2>/dev/null |\n"
	"\t\tsed -e 1d -e 's/\\r$//' -e 's/^\"\\(.*\\)\"$/\\1/' -e 's/\"\"/\"/g'\n"
	"}\n\n"
	"# The words of a list, one a line; of a list with commas, what continues the last "
	"word.\n"
	"_virt_wss_replies() { # KIND CURRENT LISTED COLUMN [-c URI]...\n"
	"\tlocal kind=$1 current=$2 listed=$3 before='' word\n"
	"\tcase $kind in\n"
	"\tdomains) listed=$(_virt_wss_domains \"${@:4}\") ;;\n"
	"\tfiles) compgen -f -- \"$current\"; return ;;\n"
	"\tcolumns)\n"
	"\t\t[[ $current != *,* ]] || before=${current%,*},\n"
	"\t\t[[ $current != -* ]] || before=-\n"
	"\t\tcurrent=${current#\"$before\"} ;;\n"
	"\tesac\n"
	"\t[[ $kind == domains ]] || listed=${listed// /$'\\n'}\n"
	"\t# Not by compgen -W, which would run what the name of a domain says.\n"
	"\twhile IFS= read -r word; do\n"
	"\t\t[[ -z $word || $word != \"$current\"* ]] || printf '%s\\n' \"$before$word\"\n"
	"\tdone <<<\"$listed\"\n"
	"}\n\n"
	"# The words of a line, without their quotes, the last of which is being typed; the quote that it has open.\n"
	"_virt_wss_split() { # LINE -> words, quote\n"
	"\tlocal char i word='' begun=''\n"
	"\twords=() quote=''\n"
	"\tfor ((i = 0; i < ${#1}; i++)); do\n"
	"\t\tchar=${1:i:1}\n"
	"\t\tif [[ -n $quote && $char == \"$quote\" ]]; then\n"
	"\t\t\tquote=''\n"
	"\t\telif [[ $char == \\\\ && ($quote == '' || ($quote == '\"' && ${1:i+1:1} == [\\\"\\\\\\$\\`])) ]]; then\n"
	"\t\t\t((++i))\n"
	"\t\t\tword+=${1:i:1} begun=1\n"
	"\t\telif [[ -n $quote ]]; then\n"
	"\t\t\tword+=$char\n"
	"\t\telif [[ $char == [\\'\\\"] ]]; then\n"
	"\t\t\tquote=$char begun=1\n"
	"\t\telif [[ $char != [[:space:]] ]]; then\n"
	"\t\t\tword+=$char begun=1\n"
	"\t\telif [[ -n $begun ]]; then\n"
	"\t\t\twords+=(\"$word\")\n"
	"\t\t\tword='' begun=''\n"
	"\t\tfi\n"
	"\tdone\n"
	"\twords+=(\"$word\")\n"
	"}\n"
	"\n"
	"# The names of domains as they stand on a line, behind the quote that is open there.\n"
	"_virt_wss_quote() { # QUOTE NAME -> quoted\n"
	"\tquoted=$2\n"
	"\tcase $1 in\n"
	"\t'') printf -v quoted %q \"$2\" ;;\n"
	"\t\\\")\n"
	"\t\tquoted=${2//\\\\/\\\\\\\\} quoted=${quoted//\\\"/\\\\\\\"}\n"
	"\t\tquoted=${quoted//\\$/\\\\\\$} quoted=${quoted//\\`/\\\\\\`} ;;\n"
	"\t\\') quoted=${2//\\'/\\'\\\\\\'\\'} ;;\n"
	"\tesac\n"
	"}\n"
	"\n"
	"_virt_wss() {\n"
	"\tlocal line=${COMP_LINE:0:COMP_POINT} words i word command='' option='' "
	"column=domain seen=0\n"
	"\tlocal takes listed valued flags connection=() current quote quoted prefix\n"
	"\t_virt_wss_split \"$line\"\n"
	"\tcurrent=${words[${#words[@]} - 1]}\n"
	"\t_virt_wss_command ''\n"
	"\tfor ((i = 1; i < ${#words[@]} - 1; i++)); do\n"
	"\t\tword=${words[i]}\n"
	"\t\tcase $word in\n"
	"\t\t--uuid) column=uuid ;;\n"
	"\t\t--connect=*) connection=(-c \"${word#*=}\") ;;\n"
	"\t\t-*)\n"
	"\t\t\tif [[ \" $valued \" == *\" $word \"* ]]; then\n"
	"\t\t\t\toption=$word\n"
	"\t\t\t\t((++i < ${#words[@]} - 1)) || break\n"
	"\t\t\t\toption=''\n"
	"\t\t\t\t[[ $word != --connect && ($word != -c || $valued != *' -c --connect '*) ]] || connection=(-c \"${words[i]}\")\n"
	"\t\t\tfi ;;\n"
	"\t\t*)\n"
	"\t\t\tif [[ -n $command ]]; then\n"
	"\t\t\t\tseen=$((seen + 1))\n"
	"\t\t\telse\n"
	"\t\t\t\tcommand=$word\n"
	"\t\t\t\t_virt_wss_command \"$command\" || return 0\n"
	"\t\t\tfi ;;\n"
	"\t\tesac\n"
	"\tdone\n"
	"\tif [[ -z $option && $current == --*=* ]]; then\n"
	"\t\toption=${current%%=*} current=${current#*=}\n"
	"\tfi\n"
	"\tif [[ -n $option ]]; then\n"
	"\t\t_virt_wss_value \"$command\" \"$option\"\n"
	"\telif [[ $current == -* ]]; then\n"
	"\t\ttakes=listed listed=\"${valued# }$flags\"\n"
	"\telif [[ $takes == commands ]]; then\n"
	"\t\ttakes=listed listed=$_virt_wss_commands\n"
	"\telif [[ $takes == listed && $seen -gt 0 ]]; then\n"
	"\t\ttakes=domains\n"
	"\tfi\n"
	"\t[[ $takes != files ]] || compopt -o filenames 2>/dev/null\n"
	"\tmapfile -t COMPREPLY < <(_virt_wss_replies \"$takes\" \"$current\" \"$listed\" "
	"\"$column\" \\\n"
	"\t\t\"${connection[@]}\")\n"
	"\t# bash replaces only what is behind the last colon that no quote hides.\n"
	"\tprefix=''\n"
	"\t[[ -n $quote || $current != *:* || $COMP_WORDBREAKS != *:* ]] || prefix=${current%\"${current##*:}\"}\n"
	"\tfor i in \"${!COMPREPLY[@]}\"; do\n"
	"\t\tCOMPREPLY[i]=${COMPREPLY[i]#\"$prefix\"}\n"
	"\t\t[[ $takes == domains ]] || continue\n"
	"\t\t_virt_wss_quote \"$quote\" \"${COMPREPLY[i]}\"\n"
	"\t\tCOMPREPLY[i]=$quoted\n"
	"\tdone\n"
	"}\n"
	"\n"
	"complete -F _virt_wss virt-wss\n";

static void print_script(void)
{
	fputs(head, stdout);
	printf("_virt_wss_commands='");
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
	printf("\tesac\n}\n\n");
	fputs(tail, stdout);
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

static const struct wss_syntax syntax = {WSS_COMMON_SHORT, long_options, NULL};

const struct wss_command wss_cmd_completion = {
	.name = "completion",
	.summary = "print the completion script for bash",
	.help = wss_help_completion,
	.syntax = &syntax,
	.takes = WSS_WORDS_LISTED,
	.words = "bash",
	.run = completion_run,
};
