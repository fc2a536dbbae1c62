/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Finds a guest's QEMU process on this host, through libvirt's files or by searching /proc.
 * The result is only a number until host/process.h holds the process.
 */
#pragma once

#include <sys/types.h>

#include "base/error.h"
#include "base/root.h"
#include "host/process.h"

/*
 * Finds the pid of the only process on this host whose command line has "-uuid uuid" and that
 * runs as owner (WSS_UID_ANY: any user), by reading every /proc/[0-9]+/cmdline. Exactly one
 * must match: none is WSS_ERR_GONE, several are WSS_ERR_FAILED, which names them.
 *
 * Anyone may write "-uuid X" on a command line and into argv[0], so a match counts only if its
 * executable (the link /proc/PID/exe, which a process cannot choose freely) is named like
 * QEMU: its base name contains "qemu" or "kvm"; or if it has a VM of KVM's open, as a QEMU of another
 * name. Where that cannot be read (another user's
 * process, without root) the match counts, because ignoring it could make a wrong one look
 * unique. If owner is known, no other user can prevent the search from succeeding, or be
 * found. If it is not, somebody who runs a program of such a name with another guest's UUID
 * can prevent the search, but not direct it to the wrong process while the right one exists.
 */
int wss_process_find(const struct wss_root *root, const char *uuid, uid_t owner, pid_t *ret_pid,
		     struct wss_error *err);

/*
 * Finds and holds a guest's process by libvirt's files NAME.pid and NAME.xml in run_dir
 * (absolute, e.g. "/run/libvirt/qemu", or ROOT/run/qemu for embed; resolved below root). Reads
 * NAME.pid, or, if that is missing or has no pid, the pid in NAME.xml with its uuid compared.
 * The process must run as owner (WSS_UID_ANY: any user). Both must be regular files of root,
 * of our own user or of the owner of run_dir: other users' files, links, FIFOs and oversized
 * files count as missing.
 *
 * A pid that does not belong to that guest here (stale, another user's, or written by a
 * libvirt in another pid namespace) falls back to the search of wss_process_find(); if that
 * finds several and NSpid of exactly one of them lists the recorded pid, it is that one. Such a process counts whatever
 * its program is called. The
 * search also applies if run_dir or the files do not exist, and for a name that cannot be
 * libvirt's (empty, longer than a file name, with '/', "." or ".."), for which no file is
 * opened at all.
 */
int wss_process_attach(const struct wss_root *root, const char *run_dir, const char *name,
		       const char *uuid, uid_t owner, struct wss_process *ret_process,
		       struct wss_error *err);

/* Holds the process that those files name, of whatever user, and searches for no other one. Fails as wss_process_hold(). */
int wss_process_attach_recorded(const struct wss_root *root, const char *run_dir, const char *name,
				const char *uuid, struct wss_process *ret_process,
				struct wss_error *err);
