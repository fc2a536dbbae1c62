/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/estate.h"

#include <stdlib.h>
#include <string.h>

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
	list = reallocarray(list, more, size);
	if (!list) {
		wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
		return NULL;
	}
	*room = more;
	return list;
}

int wss_estate_add_host(struct wss_estate *fleet, const char *name, uint32_t *ret_index,
			struct wss_error *err)
{
	struct wss_estate_host *hosts =
		list_grow(fleet->hosts, fleet->n_hosts, &fleet->hosts_room, sizeof(*hosts),
			  WSS_ESTATE_HOSTS_MAX, "hosts", err);
	size_t len = strlen(name);

	if (!hosts)
		return -1;
	fleet->hosts = hosts;
	if (!len || len >= sizeof(hosts->name))
		return wss_error_set(err, WSS_ERR_FAILED,
				     "a host's name must have 1 to %zu bytes, not %zu",
				     sizeof(hosts->name) - 1, len);
	*ret_index = (uint32_t)fleet->n_hosts;
	hosts[fleet->n_hosts] = (struct wss_estate_host){.name = ""};
	memcpy(hosts[fleet->n_hosts++].name, name, len + 1);
	return 0;
}

int wss_estate_add_guest(struct wss_estate *fleet, const struct wss_estate_guest *guest,
			 struct wss_error *err)
{
	struct wss_estate_guest *guests =
		list_grow(fleet->guests, fleet->n_guests, &fleet->guests_room, sizeof(*guests),
			  WSS_ESTATE_GUESTS_MAX, "guests", err);

	if (!guests)
		return -1;
	fleet->guests = guests;
	guests[fleet->n_guests++] = *guest;
	fleet->hosts[guest->host].n_guests++;
	return 0;
}

static int hosts_compare(const void *a, const void *b)
{
	const struct wss_estate_host *const *left = a, *const *right = b;

	return strcmp((*left)->name, (*right)->name);
}

static int guests_compare(const void *a, const void *b)
{
	const struct wss_estate_guest *const *left = a, *const *right = b;

	return strcmp((*left)->uuid, (*right)->uuid);
}

static int check_hosts(const struct wss_estate *fleet, const void **list,
		       struct wss_error *err)
{
	for (size_t i = 0; i < fleet->n_hosts; i++)
		list[i] = &fleet->hosts[i];
	qsort(list, fleet->n_hosts, sizeof(*list), hosts_compare);
	for (size_t i = 1; i < fleet->n_hosts; i++)
		if (!hosts_compare(&list[i - 1], &list[i]))
			return wss_error_set(err, WSS_ERR_FAILED,
					     "host %s was given twice: one file for each "
					     "host, named after it",
					     ((const struct wss_estate_host *)list[i])->name);
	return 0;
}

static void mark_guests(struct wss_estate *fleet, const void **list)
{
	for (size_t i = 0; i < fleet->n_guests; i++)
		list[i] = &fleet->guests[i];
	qsort(list, fleet->n_guests, sizeof(*list), guests_compare);
	for (size_t i = 1; i < fleet->n_guests; i++) {
		struct wss_estate_guest *a = (void *)list[i - 1], *b = (void *)list[i];

		if (a->uuid[0] && !strcmp(a->uuid, b->uuid))
			a->is_elsewhere = b->is_elsewhere = true;
	}
}

int wss_estate_check(struct wss_estate *fleet, struct wss_error *err)
{
	wss_auto_free const void **list =
		calloc(fleet->n_hosts + fleet->n_guests + 1, sizeof(*list));

	if (!list)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	mark_guests(fleet, list);
	return check_hosts(fleet, list, err);
}

void wss_estate_release(struct wss_estate *fleet)
{
	free(fleet->hosts);
	free(fleet->guests);
	*fleet = (struct wss_estate){.n_hosts = 0};
}
