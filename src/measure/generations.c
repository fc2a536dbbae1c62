/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "measure/generations.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/number.h"

#define GENERATIONS "sys/kernel/debug/lru_gen"

static int generations_error(int negative_errno, struct wss_error *err)
{
	const char *why = negative_errno == -ENOENT ? "debugfs is not mounted at /sys/kernel/debug"
			  : negative_errno == -EPERM
				  ? "the kernel is locked down (Secure Boot), which closes it"
			  : negative_errno == -EACCES ? "only root may"
			  : negative_errno == -EROFS  ? "it is read-only here"
						      : strerror(-negative_errno);

	return wss_error_set(err, WSS_ERR_UNSUPPORTED, "cannot write to /" GENERATIONS ": %s", why);
}

static int generations_malformed(struct wss_error *err)
{
	return wss_error_set(err, WSS_ERR_UNSUPPORTED,
			     "/" GENERATIONS " has a form that virt-wss does not know");
}

/* Takes a line of the cgroup's part: " node 0", or one of a generation, the oldest first. Returns whether it was either. */
static bool generations_take_line(struct wss_generations *generations, const char *line)
{
	size_t n = generations->n_nodes;
	uint64_t generation, anon, file;
	unsigned node;
	int at = 0;

	if (sscanf(line, " node %u%n", &node, &at) == 1 && line[at] == '\n' &&
	    n < WSS_GENERATIONS_NODES) {
		memset(&generations->nodes[n], 0, sizeof(generations->nodes[n]));
		generations->nodes[n].node = node;
		generations->n_nodes++;
		return true;
	}
	if (!n ||
	    sscanf(line, " %" SCNu64 " %*u %" SCNu64 " %" SCNu64, &generation, &anon, &file) != 3)
		return false;
	generations->nodes[n - 1].newest = generation;
	generations->nodes[n - 1].previous_pages = generations->nodes[n - 1].newest_pages;
	generations->nodes[n - 1].newest_pages = wss_u64_add(anon, file);
	return true;
}

/* Reads "memcg ID PATH" and what follows it, up to the next. Other cgroups' lines are not looked at. */
static int generations_parse(FILE *f, const char *cgroup, struct wss_generations *ret,
			     struct wss_error *err)
{
	char line[PATH_MAX + 64];
	bool inside = false;

	*ret = (struct wss_generations){.n_nodes = 0};
	while (fgets(line, sizeof(line), f)) {
		size_t len = strlen(line);
		uint64_t memcg;
		int at = 0;

		if (!len || line[len - 1] != '\n')
			return generations_malformed(err);
		if (sscanf(line, "memcg %" SCNu64 " %n", &memcg, &at) == 1 && at) {
			if (inside)
				break;
			line[len - 1] = '\0';
			inside = !strcmp(line + at, cgroup);
			ret->memcg = memcg;
		} else if (inside && !generations_take_line(ret, line)) {
			return generations_malformed(err);
		}
	}
	if (ferror(f))
		return generations_error(-errno, err);
	if (!inside)
		return wss_error_set(err, WSS_ERR_UNSUPPORTED,
				     "its memory cgroup %s is not in /" GENERATIONS, cgroup);
	return ret->n_nodes ? 0 : generations_malformed(err);
}

int wss_generations_read(const struct wss_host *host, const char *cgroup,
			 struct wss_generations *ret, struct wss_error *err)
{
	wss_auto_file FILE *f = NULL;
	int r = wss_root_fopen(&host->root, GENERATIONS, &f);

	return r < 0 ? generations_error(r, err) : generations_parse(f, cgroup, ret, err);
}

int wss_generations_probe(const struct wss_host *host, struct wss_error *err)
{
	wss_auto_close int fd = wss_root_openat(&host->root, GENERATIONS, O_WRONLY);

	return fd < 0 ? generations_error(fd, err) : 0;
}

int wss_generations_start(const struct wss_host *host, struct wss_generations *generations,
			  struct wss_error *err)
{
	wss_auto_close int fd = wss_root_openat(&host->root, GENERATIONS, O_WRONLY);
	char command[96];

	if (fd < 0)
		return generations_error(fd, err);
	for (size_t i = 0; i < generations->n_nodes; i++) {
		int len = snprintf(command, sizeof(command), "+ %" PRIu64 " %u %" PRIu64 " 1 1\n",
				   generations->memcg, generations->nodes[i].node,
				   generations->nodes[i].newest);

		if (write(fd, command, (size_t)len) != len)
			return wss_error_errno(
				err, WSS_ERR_FAILED, errno,
				"MGLRU cannot start a generation of the guest's pages");
		generations->nodes[i].newest++;
	}
	return 0;
}

bool wss_generations_has_newer(const struct wss_host *host, const char *cgroup,
			       const struct wss_generations *since)
{
	struct wss_generations now;

	if (wss_generations_read(host, cgroup, &now, NULL) < 0)
		return false;
	for (size_t i = 0; i < now.n_nodes && i < since->n_nodes; i++)
		if (now.nodes[i].newest > since->nodes[i].newest)
			return true;
	return false;
}
