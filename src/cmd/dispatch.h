/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Finds the command or the help that the command line asks for. */
#pragma once

#include "cmd/cmd.h"

/* NULL-terminated list of all commands. */
extern const struct wss_command *const wss_commands[];

/* The program itself as a command: its name, and the options that precede the command's name. */
extern const struct wss_command wss_program;

/* Returns the command of that name; NULL with WSS_ERR_USAGE, which names the nearest one. */
const struct wss_command *wss_command_find(const char *name, struct wss_error *err);

/* Prints the help of a command, or of the program. */
void wss_help_print(const struct wss_command *command);

/*
 * Runs the command that argv names after the program's options; argv[0] is the program. --help
 * and -h anywhere before a "--" print the command's help instead, whatever is wrong with the
 * other arguments. Calls print_version for --version. Prints errors itself; returns the exit
 * code.
 */
int wss_dispatch(int argc, char **argv, void (*print_version)(void));
