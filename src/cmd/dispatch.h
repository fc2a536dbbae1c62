/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Finds the command, or the help, that the words of the command line ask for. */
#ifndef WSS_CMD_DISPATCH_H
#define WSS_CMD_DISPATCH_H

#include "cmd/cmd.h"

/* All commands, a list that ends in NULL. */
extern const struct wss_command *const wss_commands[];

/* The program as a command: its name, and the options before the command's name. */
extern const struct wss_command wss_program;

/* Returns the command of that name; NULL with WSS_ERR_USAGE, which names the nearest one. */
const struct wss_command *wss_command_find(const char *name, struct wss_error *err);

/* Prints the help of a command, or of the program. */
void wss_help_print(const struct wss_command *command);

/*
 * Runs the command that argv names after the program's options; argv[0] is the program. --help
 * and -h print the help of the command instead, wherever they stand before a "--" and whatever
 * is wrong with the other words. Calls print_version for --version. Prints its own errors;
 * returns the exit code.
 */
int wss_dispatch(int argc, char **argv, void (*print_version)(void));

#endif
