/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The generations of a memory cgroup's pages that the kernel's multi-generational LRU (MGLRU) keeps, in debugfs' lru_gen
 * (Documentation/admin-guide/mm/multigen_lru.rst).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "host/host.h"

#define WSS_GENERATIONS_NODES 64

/* The newest generation of a memory cgroup on each NUMA node. */
struct wss_generations {
	uint64_t memcg;
	size_t n_nodes;
	struct {
		unsigned node;
		uint64_t newest;
		/* Number of pages in the newest generation, and in the one before it. */
		uint64_t newest_pages, previous_pages;
	} nodes[WSS_GENERATIONS_NODES];
};

/* Checks whether a generation can be started. WSS_ERR_UNSUPPORTED with the reason. */
int wss_generations_probe(const struct wss_host *host, struct wss_error *err);

/*
 * Reads the generations of a cgroup, named by its path in /proc/PID/cgroup. WSS_ERR_UNSUPPORTED if the file cannot be
 * read, has an unknown format, or does not list the cgroup.
 */
int wss_generations_read(const struct wss_host *host, const char *cgroup,
			 struct wss_generations *ret, struct wss_error *err);

/*
 * Starts a generation on each node, in which anonymous pages and those that are in use take part, and counts it in
 * *generations. WSS_ERR_UNSUPPORTED if the file cannot be written to, WSS_ERR_FAILED if the kernel refuses.
 */
int wss_generations_start(const struct wss_host *host, struct wss_generations *generations,
			  struct wss_error *err);

/* Whether a newer generation of that cgroup has begun since. Unknown counts as none. */
bool wss_generations_has_newer(const struct wss_host *host, const char *cgroup,
			       const struct wss_generations *since);
