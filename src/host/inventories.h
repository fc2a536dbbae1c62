/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Inventories: what names the VMs of this host that the kernel knows (host/vms.h), and says what may be done to them.
 *
 * Each is one file with a struct wss_inventory_ops, and a line in inventories.c; libvirt, which also reaches other hosts, is
 * in conn.h. An inventory only claims. Its claims come from files and from processes that others may write or start, so
 * it has to check that the process which it names is its own: by the user, the executable, the cgroup and the
 * arguments. A guest whose process does not fit is WSS_INVENTORY_UNKNOWN: listed with the reason, and never measured
 * under that name. Its process, if it has a VM, is still one of kvm:///.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/amount.h"
#include "base/error.h"
#include "base/root.h"
#include "host/conn.h"
#include "host/vms.h"

#define WSS_INVENTORY_ID_MAX 64

enum wss_inventory_state {
	WSS_INVENTORY_OFF,
	WSS_INVENTORY_RUNNING,	/* vm is its VM */
	WSS_INVENTORY_UNKNOWN,	/* its process is not believed: see why */
	WSS_INVENTORY_TEMPLATE, /* others are cloned from it, and it never runs */
};

struct wss_inventory_guest {
	char id[WSS_INVENTORY_ID_MAX]; /* what the inventory knows it by, which no other of its guests has */
	char name[WSS_NAME_MAX];      /* wss_inventory_list() makes it unique; "": it has none */
	char uuid[WSS_UUID_TEXT_MAX]; /* lower case, and likewise unique; "": it has none */
	enum wss_inventory_state state;
	char why[256];	  /* unknown: what does not fit */
	struct wss_vm vm; /* running; its name, UUID and monitor are not used */
	/* Its QMP socket; "": none, or one that is not ours to use. */
	char monitor[WSS_SOCKET_PATH_MAX];
	/*
	 * Longest time for which a connection may keep the monitor's other client waiting, in ms; 0: no limit but that of
	 * each question.
	 */
	unsigned monitor_ms;
	/* Its limits, as the inventory has them: undecided or not legible is unknown. */
	struct wss_amount memory_bytes;
	bool has_balloon;
	const char *balloon_device; /* id by which QEMU knows it, a constant; NULL: unknown */
	/* How often the guest is asked for its statistics; 0: never, as far as is known. */
	uint64_t balloon_period_s;
	bool balloon_unseen; /* whether it has one is not known */
	struct wss_amount balloon_minimum_bytes;
	struct wss_amount balloon_shares;
	char tags[WSS_NAME_MAX];
	/* Why its balloon must be left alone, a constant; NULL: nobody sets it but its operator. */
	const char *balloon_owner;
	/* Set by wss_inventory_list(): name and UUID before they were made unique. */
	char own_name[WSS_NAME_MAX];
	char own_uuid[WSS_UUID_TEXT_MAX];
};

struct wss_inventory_ops {
	const char *uri; /* by which a user names it: "proxmox:///" */
	bool ids_last; /* a guest's id stays the same over restarts, so that policies may name it */
	/* Who has a guest report the statistics of its memory, a clause; NULL: nobody but libvirt. */
	const char *statistics_by;
	/* Whether this host has it, so that it is the default where there is no libvirt. */
	bool (*is_here)(const struct wss_root *root);
	/*
	 * Lists all guests that it has on this host, running or not, for the caller to free. vms are all n VMs that the
	 * kernel knows. Fails only if the inventory as a whole cannot be read.
	 */
	int (*list)(const struct wss_root *root, const struct wss_vm *vms, size_t n,
		    struct wss_inventory_guest **ret_guests, size_t *ret_n, struct wss_error *err);
};

/* Returns the inventory with that URI; NULL: it is libvirt's, or none. */
const struct wss_inventory_ops *wss_inventory_find(const char *uri);

/* Returns the inventory that a URI with its scheme seems to mean ("KVM:///", "kvm:"); NULL: none. */
const struct wss_inventory_ops *wss_inventory_meant(const char *uri);

/* Returns the inventory of a host without libvirt. root stands for "/". */
const struct wss_inventory_ops *wss_inventory_default(const struct wss_root *root);

/*
 * Lists its guests, sorted by name, for the caller to free. A name that several have becomes NAME:ID; a UUID that is
 * missing, or that several have, is made from the id, so that it is the same over restarts. Fails as wss_vms_list() and ops->list().
 */
int wss_inventory_list(const struct wss_inventory_ops *ops, const struct wss_root *root,
		       struct wss_inventory_guest **ret_guests, size_t *ret_n,
		       struct wss_error *err);

/*
 * Returns the guest that a word names: its id before any name, its name or its UUID. NULL with err set: WSS_ERR_GONE, or
 * WSS_ERR_AMBIGUOUS if it names several, or is the name of several before it was made unique.
 */
const struct wss_inventory_guest *wss_inventory_pick(const struct wss_inventory_guest *guests,
						     size_t n, const char *word,
						     struct wss_error *err);

/* Lists the guests that run, with inactive_too all that can run, as wss_conn_list(). */
int wss_inventory_domains(const struct wss_inventory_ops *ops, const struct wss_root *root,
			  bool inactive_too, struct wss_conn_domain **ret_domains, size_t *ret_n,
			  struct wss_error *err);

extern const struct wss_inventory_ops wss_inventory_kvm;
extern const struct wss_inventory_ops wss_inventory_proxmox;
