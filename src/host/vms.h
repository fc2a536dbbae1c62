/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * All VMs of this host, whoever manages them: what the kernel knows (kvm/kvm.h), and what their processes claim to be.
 *
 * namers.c says which claims are believed. Any other guest is NAME@USER. If two processes claim the same name or UUID, neither is
 * believed, unless a manager vouches for one only. A guest without a name that can be used is PROGRAM-PID, or PROGRAM-PID.FD if the
 * process has several VMs.
 *
 * Each guest has a UUID, by which a history knows it: the one that is believed, else one made from manager and name, so that it
 * stays the same over restarts; for PROGRAM-PID from the start of the process, too.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/root.h"
#include "host/domxml.h"

/* Length of a socket path with its final NUL, which unix(7)'s sun_path may lack. */
#define WSS_SOCKET_PATH_MAX 109

struct wss_vm {
	uint64_t vm; /* which it is to the kernel (struct wss_kvm_entry) */
	pid_t pid;
	int fd;		      /* its process's descriptor of it */
	uint64_t start_ticks; /* when the process started, field 22 of its stat */
	bool shares_process;  /* with other VMs */
	unsigned n_vcpus;
	uint64_t memory_bytes;	      /* that it can write to, video memory included */
	char name[WSS_NAME_MAX];      /* unique on this host */
	char uuid[WSS_UUID_TEXT_MAX]; /* lower case */
	bool has_uuid;		      /* it is on the command line, not made */
	char program[32];	      /* base name of the executable; "" if unknown */
	char manager[16];	      /* of namers.c; "": none, "unknown": it is not believed */
	uid_t user;
	char user_name[64]; /* "" if it has none */
	/* QMP socket that its command line names, if that is believed; "": none. */
	char monitor[WSS_SOCKET_PATH_MAX];
	bool claims;   /* name and uuid are what the process says, and are believed */
	char why[160]; /* else: why not */
	/* Name that the process claims, and another one, too; "": none. */
	char disputed[WSS_NAME_MAX];
};

/*
 * Lists all VMs of the host, sorted by name, for the caller to free. root stands for "/". VMs of other pid
 * namespaces, whose processes cannot be seen from ours, are left out. Fails as wss_kvm.list().
 */
int wss_vms_list(const struct wss_root *root, struct wss_vm **ret_vms, size_t *ret_n,
		 struct wss_error *err);

/* Makes a UUID of version 8 (RFC 9562) from a text, always the same. */
void wss_vms_make_uuid(const char *text, char ret_uuid[WSS_UUID_TEXT_MAX]);
