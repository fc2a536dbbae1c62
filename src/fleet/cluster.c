/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fleet/cluster.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"

/* Makes room for one more element; returns the list, or NULL with an error. */
static void *list_grow(void *list, size_t n, size_t *room, size_t size, size_t most,
		       const char *what, struct wss_error *err)
{
	size_t more = *room ? *room * 2 : 64;

	if (n == most) {
		wss_error_set(err, WSS_ERR_FAILED, "more than %zu %s: plan for a part of them",
			      most, what);
		return NULL;
	}
	if (n < *room)
		return list;
	if (more > most)
		more = most;
	*room = more;
	return wss_xreallocarray(list, more, size);
}

int wss_cluster_add_host(struct wss_cluster *fleet, const char *name, uint32_t *ret_index,
			 struct wss_error *err)
{
	struct wss_cluster_host *hosts =
		list_grow(fleet->hosts, fleet->n_hosts, &fleet->hosts_room, sizeof(*hosts),
			  WSS_CLUSTER_HOSTS_MAX, "hosts", err);
	size_t len = strlen(name);

	if (!hosts)
		return -1;
	fleet->hosts = hosts;
	if (!len || len >= sizeof(hosts->name))
		return wss_error_set(err, WSS_ERR_FAILED,
				     "a host's name must have 1 to %zu bytes, not %zu",
				     sizeof(hosts->name) - 1, len);
	*ret_index = (uint32_t)fleet->n_hosts;
	hosts[fleet->n_hosts] = (struct wss_cluster_host){.name = ""};
	memcpy(hosts[fleet->n_hosts++].name, name, len + 1);
	return 0;
}

int wss_cluster_add_guest(struct wss_cluster *fleet, const struct wss_cluster_guest *guest,
			  struct wss_error *err)
{
	struct wss_cluster_guest *guests =
		list_grow(fleet->guests, fleet->n_guests, &fleet->guests_room, sizeof(*guests),
			  WSS_CLUSTER_GUESTS_MAX, "guests", err);

	if (!guests)
		return -1;
	fleet->guests = guests;
	guests[fleet->n_guests++] = *guest;
	fleet->hosts[guest->host].n_guests++;
	return 0;
}

static int hosts_compare(const void *a, const void *b)
{
	const struct wss_cluster_host *const *left = a, *const *right = b;

	return strcmp((*left)->name, (*right)->name);
}

static int guests_compare(const void *a, const void *b)
{
	const struct wss_cluster_guest *const *left = a, *const *right = b;

	return strcmp((*left)->uuid, (*right)->uuid);
}

static int check_hosts(const struct wss_cluster *fleet, const void **list, struct wss_error *err)
{
	for (size_t i = 0; i < fleet->n_hosts; i++)
		list[i] = &fleet->hosts[i];
	qsort(list, fleet->n_hosts, sizeof(*list), hosts_compare);
	for (size_t i = 1; i < fleet->n_hosts; i++)
		if (!hosts_compare(&list[i - 1], &list[i]))
			return wss_error_set(err, WSS_ERR_FAILED,
					     "host %s was given twice: one file for each "
					     "host, named after it",
					     ((const struct wss_cluster_host *)list[i])->name);
	return 0;
}

/* A guest on two hosts moves from one to the other; two of one host with the same UUID cannot both be right. */
static int check_guests(struct wss_cluster *fleet, const void **list, struct wss_error *err)
{
	for (size_t i = 0; i < fleet->n_guests; i++)
		list[i] = &fleet->guests[i];
	qsort(list, fleet->n_guests, sizeof(*list), guests_compare);
	for (size_t i = 1; i < fleet->n_guests; i++) {
		struct wss_cluster_guest *a = (void *)list[i - 1], *b = (void *)list[i];

		if (!a->uuid[0] || strcmp(a->uuid, b->uuid) != 0)
			continue;
		if (a->host == b->host)
			return wss_error_set(err, WSS_ERR_FAILED,
					     "host %s: its guests %s and %s have the same UUID, %s",
					     fleet->hosts[a->host].name, a->name, b->name, a->uuid);
		a->is_elsewhere = b->is_elsewhere = true;
	}
	return 0;
}

int wss_cluster_check(struct wss_cluster *fleet, struct wss_error *err)
{
	wss_auto_free const void **list =
		wss_xcalloc(fleet->n_hosts + fleet->n_guests, sizeof(*list));

	return check_guests(fleet, list, err) < 0 ? -1 : check_hosts(fleet, list, err);
}

void wss_cluster_release(struct wss_cluster *fleet)
{
	free(fleet->hosts);
	free(fleet->guests);
	*fleet = (struct wss_cluster){.n_hosts = 0};
}
