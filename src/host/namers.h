/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What names the process of a VM: its manager, which it has to fit, or else its own command line. See namers.c for the
 * managers and what each has to fit.
 */
#pragma once

#include "base/root.h"
#include "host/vms.h"

/*
 * Fills manager, name, uuid, monitor, claims and why of a VM of which program and user are known. name and uuid are "" where
 * the process claims none; the UUID is on the command line, or made from manager and name where that has none. root stands for "/",
 * proc is the process's directory.
 */
void wss_namers_read(const struct wss_root *root, const struct wss_root *proc, struct wss_vm *vm);
