/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Hosts and guests of a fleet. All of a cluster comes from outside: figures are checked, and texts
 * are UTF-8, but may hold characters that must not reach a terminal (base/text.h).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/amount.h"
#include "base/error.h"

#define WSS_CLUSTER_HOSTS_MAX 10000
#define WSS_CLUSTER_GUESTS_MAX 50000
#define WSS_CLUSTER_FILE_MAX ((size_t)64 << 20)
#define WSS_CLUSTER_TREE_MAX ((size_t)256 << 20)
#define WSS_CLUSTER_HOURS 168 /* hours of a week; the first is Monday, 00:00 to 01:00 UTC */

struct wss_cluster_host {
	char name[256];
	struct wss_amount memory_bytes;
	struct wss_amount overhead_bytes; /* of all its QEMUs */
	uint32_t n_guests;
	char inventory[16]; /* "libvirt", "proxmox" or "kvm"; "": unknown, as of an older file */
	/* Only of a host that was read through an API: */
	uint32_t n_series;  /* how many series describe it; those of replicas count, too */
	bool has_exported;  /* its name is the label "exported_instance" */
	bool is_ambiguous;  /* they describe several hosts */
	bool is_incomplete; /* a series of a guest on it was left out */
	/* Of its newest page, when it was asked for; and the longest period of its guests. */
	struct wss_amount page_age_s, period_s;
	bool is_stale;	 /* that page is too old: what it says may have changed */
	bool is_partial; /* guests of it are missing in the answers */
};

struct wss_cluster_guest {
	char name[256];
	char uuid[37];	 /* "": unknown */
	char status[16]; /* of the recommendation; "": unknown */
	char state[16];	 /* "running", "paused", "shut off"; "": unknown */
	uint32_t host;	 /* index */
	struct wss_amount assigned_bytes, held_bytes, minimum_bytes, recommended_bytes, peak_bytes;
	struct wss_amount reclaimable_bytes; /* by a smaller balloon */
	bool is_blocked; /* a file says that its memory stays on the host, whatever its balloon does */
	bool is_elsewhere; /* it is on another host, too, as in a migration */
	bool is_ambiguous; /* series of an API contradict each other */
	uint32_t n_series; /* how many series of an API describe it; 0: it was read from a file */
	/* Working set in each hour of the week; there is none if no hour is known. */
	struct wss_amount week_bytes[WSS_CLUSTER_HOURS];
};

struct wss_cluster {
	struct wss_cluster_host *hosts;
	struct wss_cluster_guest *guests;
	size_t n_hosts, n_guests;
	size_t hosts_room, guests_room;
	/* Series of an API, of hosts or guests, that were left out; the first one and why, as text. */
	size_t n_left_out;
	char left_out[200];
};

/* Adds a host without guests. WSS_ERR_FAILED: too many. */
int wss_cluster_add_host(struct wss_cluster *fleet, const char *name, uint32_t *ret_index,
			 struct wss_error *err);

/* Adds a copy of a guest, whose host is set. WSS_ERR_FAILED: too many. */
int wss_cluster_add_guest(struct wss_cluster *fleet, const struct wss_cluster_guest *guest,
			  struct wss_error *err);

/*
 * Adds the host of a file, whose name is that of the file without directory and ".json", with
 * its guests; or the hosts that "list" names, if it was asked for several. Errors name the
 * file, and the guest. WSS_ERR_FAILED, WSS_ERR_NO_MEMORY, WSS_ERR_INTERRUPTED.
 */
int wss_cluster_read(struct wss_cluster *fleet, const char *path, struct wss_error *err);

/* The same for the text of a file, whose host has this name unless guests name theirs. */
int wss_cluster_parse(struct wss_cluster *fleet, const char *name, const char *text, size_t len,
		      struct wss_error *err);

/*
 * Checks that no two hosts have the same name, which WSS_ERR_FAILED says, and marks guests that are on two
 * hosts.
 */
int wss_cluster_check(struct wss_cluster *fleet, struct wss_error *err);

/* Frees the lists; accepts one that is all zero. */
void wss_cluster_release(struct wss_cluster *fleet);

#define wss_auto_cluster __attribute__((cleanup(wss_cluster_release)))
