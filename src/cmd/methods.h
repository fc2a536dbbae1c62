/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef WSS_CMD_METHODS_H
#define WSS_CMD_METHODS_H

#include "cmd/cmd.h"

/* Prints what the guests' configurations cost. Returns the exit code. */
int wss_methods_config(const struct wss_cli *cli, struct wss_targets *targets);

#endif
