/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The QEMU process of a guest, held so that it cannot be mistaken for another: a pidfd to
 * signal it and to see it exit, and a descriptor of its /proc directory through which
 * everything about it is read and written. These never reach a process that gets the same pid
 * later: opening a file below the directory then fails (proc(5); fs/proc/base.c). A file that
 * was opened before the process exited is as safe: clear_refs and stat fail with ESRCH; smaps does
 * so too or, while the process is a zombie, is empty.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/root.h"

struct wss_process {
	pid_t pid;	      /* in our pid namespace */
	int pidfd;	      /* -1 if root is a captured machine: see wss_process_hold() */
	struct wss_root proc; /* its /proc/PID */
	uint64_t start_ticks; /* field 22 of stat */
	int stat;	      /* its stat, to be read again and again; -1: not open */
	int clear_refs;	      /* its clear_refs, locked; -1: not held, see measure/control.h */
	int lock;	      /* root's lock; -1: not held */
	pid_t intruder;	      /* has a lock on clear_refs, too; 0: none */
};

#define WSS_PROCESS_INIT                                                                    \
	{                                                                                   \
		.pid = 0, .pidfd = -1, .proc = {.dirfd = -1}, .stat = -1, .clear_refs = -1, \
		.lock = -1                                                                  \
	}

/*
 * Holds process pid after checking, through the held directory, that its command line has
 * uuid: an argument "-uuid" or "--uuid" followed by UUID (any case). uuid NULL skips that
 * check (guests that are addressed by their own socket). root stands for "/".
 *
 * Opens the directory, then the pidfd, then checks, and finally checks that the process is
 * still alive with the same start time, so that no order of events can mix up two processes
 * (pid reuse). Where root's proc is no procfs (a captured machine in a test) there is no
 * pidfd, because a pid from a file must never reach a process of this host. Such a process
 * counts as alive and cannot be signalled.
 *
 * WSS_ERR_GONE: no such process, or a zombie. WSS_ERR_FAILED: the pid is another guest's (the
 * message says whose), no QEMU's, or a thread's. WSS_ERR_UNSUPPORTED: no permission, or a
 * kernel without pidfd_open (before 5.3). ret_process is untouched on failure.
 */
int wss_process_hold(const struct wss_root *root, pid_t pid, const char *uuid,
		     struct wss_process *ret_process, struct wss_error *err);

/* Any user; the kernel assigns this uid to nobody. */
#define WSS_UID_ANY ((uid_t)-1)

/*
 * Checks that the command line of a held process has uuid, as wss_process_hold() does. Returns
 * 0, or -1 with its errors.
 */
int wss_process_check_uuid(const struct wss_process *process, const char *uuid,
			   struct wss_error *err);

/*
 * Checks that all user IDs of a held process are owner (WSS_UID_ANY: any user). Returns 0, or
 * -1 with WSS_ERR_FAILED (another user's), or as wss_process_error() does.
 */
int wss_process_check_owner(const struct wss_process *process, uid_t owner, struct wss_error *err);

/* Whether the process is alive (polls the pidfd; zombies count as exited). */
bool wss_process_alive(const struct wss_process *process);

/*
 * Returns the scheduler state of the process from stat's field 3, combined over all its
 * threads: 'T' or 't' only if every living thread is stopped ('t' if any is traced), else the
 * first that occurs of R, D, S, or another one. Returns 0 or negative errno (-ESRCH when gone,
 * zombies included).
 */
int wss_process_state(const struct wss_process *process, char *ret_state);

/* Sends a signal through the pidfd. Returns 0 or negative errno (-ESRCH when gone). */
int wss_process_signal(const struct wss_process *process, int signal_number);

/*
 * Converts a negative errno from reading or writing `what` ("smaps") through the held
 * directory into an error: WSS_ERR_GONE if the process has exited, WSS_ERR_UNSUPPORTED for a
 * missing permission or file, WSS_ERR_NO_MEMORY, else WSS_ERR_FAILED. Always returns -1.
 */
int wss_process_error(const struct wss_process *process, int negative_errno, const char *what,
		      struct wss_error *err);

/* Releases a process, which may be half open or WSS_PROCESS_INIT, and resets it to the latter. */
void wss_process_release(struct wss_process *process);

/*
 * Returns how many devices of the host the process has open that may write to its memory: VFIO (PCI and mediated
 * devices, NVMe disks), whose groups are counted, and vDPA. All its memory is pinned, unless each of them is of a kind
 * that pins none (wss_device_is_unpinning()). Whoever started QEMU, and however the device was added, the descriptor
 * shows. -1: that cannot be read, and none is known.
 */
int wss_process_count_passthrough(const struct wss_process *process);

/*
 * Whether the process has something open that an encrypted guest needs for as long as it runs: the device that encrypts
 * on AMD's processors (arch/x86/kvm/svm/sev.c), or memory that the host cannot map (virt/kvm/guest_memfd.c), which SEV-SNP
 * and TDX need. -1: that cannot be read.
 */
int wss_process_has_encryption(const struct wss_process *process);
