/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "host/inventories.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"

/* In the order in which a host without libvirt takes the first that it has. */
static const struct wss_inventory_ops *const inventories[] = {&wss_inventory_proxmox,
							      &wss_inventory_kvm};

#define N_INVENTORIES (sizeof(inventories) / sizeof(inventories[0]))

const struct wss_inventory_ops *wss_inventory_find(const char *uri)
{
	for (size_t i = 0; uri && i < N_INVENTORIES; i++)
		if (!strcmp(uri, inventories[i]->uri))
			return inventories[i];
	return NULL;
}

const struct wss_inventory_ops *wss_inventory_meant(const char *uri)
{
	for (size_t i = 0; uri && i < N_INVENTORIES; i++)
		if (!strncasecmp(uri, inventories[i]->uri, strcspn(inventories[i]->uri, ":") + 1))
			return inventories[i];
	return NULL;
}

const struct wss_inventory_ops *wss_inventory_default(const struct wss_root *root)
{
	for (size_t i = 0; i < N_INVENTORIES; i++)
		if (inventories[i]->is_here(root))
			return inventories[i];
	return &wss_inventory_kvm;
}

static int guest_compare_names(const void *a, const void *b)
{
	return strcmp(((const struct wss_inventory_guest *)a)->name,
		      ((const struct wss_inventory_guest *)b)->name);
}

/* By UUIDs, the ones without any last. */
static int guest_compare_uuids(const void *a, const void *b)
{
	return strcmp(((const struct wss_inventory_guest *)b)->uuid,
		      ((const struct wss_inventory_guest *)a)->uuid);
}

/* Sorted by UUIDs, so that those that are the same are neighbours. */
static void settle_uuids(const struct wss_inventory_ops *ops, struct wss_inventory_guest *guests,
			 size_t n)
{
	if (n)
		qsort(guests, n, sizeof(*guests), guest_compare_uuids);
	for (size_t i = 0, end; i < n; i = end) {
		for (end = i + 1; end < n && !strcmp(guests[end].uuid, guests[i].uuid); end++)
			;
		for (size_t k = i; k < end && (end - i > 1 || !guests[i].uuid[0]); k++) {
			char text[WSS_INVENTORY_ID_MAX + 64];

			snprintf(text, sizeof(text), "%s%s", ops->uri, guests[k].id);
			wss_vms_make_uuid(text, guests[k].uuid);
		}
	}
}

static void settle_names(struct wss_inventory_guest *guests, size_t n)
{
	if (n)
		qsort(guests, n, sizeof(*guests), guest_compare_names);
	for (size_t i = 0, end; i < n; i = end) {
		for (end = i + 1; end < n && !strcmp(guests[end].name, guests[i].name); end++)
			;
		for (size_t k = i; k < end && end - i > 1; k++) {
			char name[WSS_NAME_MAX];

			snprintf(name, sizeof(name), "%s", guests[k].name);
			snprintf(guests[k].name, WSS_NAME_MAX, "%.180s:%s", name, guests[k].id);
		}
	}
	if (n)
		qsort(guests, n, sizeof(*guests), guest_compare_names);
}

int wss_inventory_list(const struct wss_inventory_ops *ops, const struct wss_root *root,
		       struct wss_inventory_guest **ret_guests, size_t *ret_n,
		       struct wss_error *err)
{
	wss_auto_free struct wss_vm *vms = NULL;
	size_t n = 0;

	if (wss_vms_list(root, &vms, &n, err) < 0 ||
	    ops->list(root, vms, n, ret_guests, ret_n, err) < 0)
		return -1;
	for (size_t i = 0; i < *ret_n; i++) {
		strcpy((*ret_guests)[i].own_name, (*ret_guests)[i].name);
		strcpy((*ret_guests)[i].own_uuid, (*ret_guests)[i].uuid);
	}
	settle_uuids(ops, *ret_guests, *ret_n);
	settle_names(*ret_guests, *ret_n);
	return 0;
}

enum guest_word { GUEST_ID, GUEST_NAME_OR_UUID, GUEST_SHARED_NAME };

static bool guest_is(const struct wss_inventory_guest *guest, enum guest_word kind,
		     const char *word)
{
	switch (kind) {
	case GUEST_ID:
		return !strcmp(word, guest->id);
	case GUEST_NAME_OR_UUID:
		return !strcmp(word, guest->name) || !strcasecmp(word, guest->uuid);
	default:
		return !strcmp(word, guest->own_name) || !strcmp(word, guest->vm.disputed);
	}
}

/* Returns the first of the guests that the word names so, and their number. */
static const struct wss_inventory_guest *guests_find(const struct wss_inventory_guest *guests,
						     size_t n, enum guest_word kind,
						     const char *word, size_t *ret_found,
						     const struct wss_inventory_guest **ret_second)
{
	const struct wss_inventory_guest *first = NULL;

	*ret_found = 0;
	for (size_t i = 0; i < n; i++) {
		if (!guest_is(&guests[i], kind, word))
			continue;
		if (!(*ret_found)++)
			first = &guests[i];
		else if (*ret_found == 2)
			*ret_second = &guests[i];
	}
	return first;
}

const struct wss_inventory_guest *wss_inventory_pick(const struct wss_inventory_guest *guests,
						     size_t n, const char *word,
						     struct wss_error *err)
{
	const struct wss_inventory_guest *first = NULL, *second = NULL;
	size_t found = 0;

	for (enum guest_word kind = GUEST_ID; *word && !found && kind <= GUEST_SHARED_NAME;
	     kind++) {
		first = guests_find(guests, n, kind, word, &found, &second);
		if (found == 1 && kind != GUEST_SHARED_NAME)
			return first;
	}
	if (found > 1)
		wss_error_set(err, WSS_ERR_AMBIGUOUS, "matches two guests, '%.80s' and '%.80s'",
			      first->name, second->name);
	else if (found)
		wss_error_set(
			err, WSS_ERR_GONE,
			"another process claims its name or UUID, too, so that it is listed as '%.80s'",
			first->name);
	else
		wss_error_set(err, WSS_ERR_GONE, "no such VM on this host");
	return NULL;
}

int wss_inventory_domains(const struct wss_inventory_ops *ops, const struct wss_root *root,
			  bool inactive_too, struct wss_conn_domain **ret_domains, size_t *ret_n,
			  struct wss_error *err)
{
	wss_auto_free struct wss_inventory_guest *guests = NULL;
	struct wss_conn_domain *domains;
	size_t n = 0, used = 0;

	if (wss_inventory_list(ops, root, &guests, &n, err) < 0)
		return -1;
	domains = calloc(n + 1, sizeof(*domains));
	if (!domains)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	for (size_t i = 0; i < n; i++) {
		if (guests[i].state == WSS_INVENTORY_TEMPLATE ||
		    (guests[i].state == WSS_INVENTORY_OFF && !inactive_too))
			continue;
		domains[used].name = strdup(guests[i].name);
		strcpy(domains[used].uuid, guests[i].uuid);
		if (!domains[used++].name) {
			wss_conn_free_list(domains, used);
			return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
		}
	}
	*ret_domains = domains;
	*ret_n = used;
	return 0;
}
