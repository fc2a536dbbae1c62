/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Which process of this host a guest's QEMU is: by libvirt's files, or by a search through
 * /proc. What is found is only a number, until host/process.h holds it.
 */
#ifndef WSS_HOST_PROCESS_FIND_H
#define WSS_HOST_PROCESS_FIND_H

#include <sys/types.h>

#include "base/error.h"
#include "base/root.h"
#include "host/process.h"

/*
 * Finds the pid of the one process on this host whose command line carries
 * "-uuid uuid" and that runs as owner (WSS_UID_ANY: whoever that is), by reading every
 * /proc/[0-9]+/cmdline. Exactly one must match: none is WSS_ERR_GONE, several WSS_ERR_FAILED
 * that names them.
 *
 * Anyone may write "-uuid X" on a command line and into argv[0], so a match counts
 * only if its executable (the link /proc/PID/exe, which a process cannot choose
 * freely) is named like QEMU: its base name contains "qemu" or "kvm". Where the
 * link cannot be read (another user's process, and we are not root) the match
 * counts, because leaving it out could make a wrong one look unique. Where owner is known,
 * nobody else can prevent the search from succeeding, or be found. Where it is not, somebody who
 * runs a program named so with another guest's UUID can prevent it, but not steer it to the
 * wrong process while the right one is there.
 */
int wss_process_find(const struct wss_root *root, const char *uuid, uid_t owner, pid_t *ret_pid,
		     struct wss_error *err);

/*
 * Where libvirt keeps NAME.pid and NAME.xml: run_dir (absolute, e.g. "/run/libvirt/qemu",
 * or ROOT/run/qemu for embed; resolved below root). Reads NAME.pid, else, where that
 * is absent or no file with a pid, the pid of NAME.xml with its uuid compared; holds
 * the process, which must run as owner (WSS_UID_ANY: whoever that is). Both must be regular
 * files of root, of our own user or of the owner of run_dir: those of others, links, FIFOs and
 * files longer than they can sensibly be count as absent.
 *
 * A pid that is not that guest's here (stale, another user's, or written by a libvirt in another
 * pid namespace) falls back to the search of wss_process_find(); if that finds several
 * and NSpid of exactly one of them lists the recorded pid, it is that one.
 * The search is also used where run_dir or the files do not exist, and for a name
 * that cannot be libvirt's (empty, longer than a file name, with '/', "." or ".."),
 * for which no file is opened at all.
 */
int wss_process_attach(const struct wss_root *root, const char *run_dir, const char *name,
		       const char *uuid, uid_t owner, struct wss_process *ret_process,
		       struct wss_error *err);

#endif
