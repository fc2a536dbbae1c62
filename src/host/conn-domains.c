/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The domains of a connection: listing them, and finding one by what a person typed. */
#include "host/conn-private.h"

#include <libvirt/virterror.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/fault.h"

static int compare_names(const void *a, const void *b)
{
	return strcmp(((const struct wss_conn_domain *)a)->name,
		      ((const struct wss_conn_domain *)b)->name);
}

static int copy_identity(virDomainPtr dom, struct wss_conn_domain *ret, struct wss_error *err)
{
	const char *name = virDomainGetName(dom);

	if (!name || virDomainGetUUIDString(dom, ret->uuid) < 0)
		return wss_conn_error(err, "cannot list the domains");
	ret->name = strdup(name);
	return ret->name ? 0 : wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
}

int wss_conn_list(struct wss_conn *conn, bool inactive_too, struct wss_conn_domain **ret_domains,
		  size_t *ret_n, struct wss_error *err)
{
	unsigned flags = inactive_too ? 0 : VIR_CONNECT_LIST_DOMAINS_ACTIVE;
	struct wss_conn_domain *domains;
	virDomainPtr *doms = NULL;
	int n = virConnectListAllDomains(conn->vir, &doms, flags);
	size_t used = 0;
	int r = 0;

	if (n < 0)
		return wss_conn_error(err, "cannot list the domains");
	domains = calloc((size_t)n + 1, sizeof(*domains));
	if (!domains)
		r = wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	for (int i = 0; i < n; i++) {
		if (r == 0)
			r = copy_identity(doms[i], &domains[used], err);
		used += r == 0;
		virDomainFree(doms[i]);
	}
	free(doms);
	if (r < 0 && !(domains && wss_fault("short-list"))) {
		wss_conn_free_list(domains, used);
		return -1;
	}
	qsort(domains, used, sizeof(*domains), compare_names);
	*ret_domains = domains;
	*ret_n = used;
	return 0;
}

void wss_conn_free_list(struct wss_conn_domain *domains, size_t n)
{
	for (size_t i = 0; domains && i < n; i++)
		free(domains[i].name);
	free(domains);
}

/* Possible meanings of a word that names a domain. */
enum meaning { MEANS_ID, MEANS_UUID, MEANS_NAME, MEANINGS };

static const char *const meaning_names[] = {"ID", "UUID", "name"};
_Static_assert(sizeof(meaning_names) / sizeof(meaning_names[0]) == MEANINGS, "one name each");

/* Returns NULL without a libvirt error if the word cannot have that meaning. */
static virDomainPtr lookup_as(struct wss_conn *conn, const char *word, enum meaning meaning)
{
	size_t digits = strspn(word, "0123456789");

	virResetLastError();
	switch (meaning) {
	case MEANS_ID:
		return *word && !word[digits] && digits < 10
			       ? virDomainLookupByID(conn->vir, atoi(word))
			       : NULL;
	case MEANS_UUID:
		return strlen(word) == VIR_UUID_STRING_BUFLEN - 1
			       ? virDomainLookupByUUIDString(conn->vir, word)
			       : NULL;
	default:
		return *word ? virDomainLookupByName(conn->vir, word) : NULL;
	}
}

/* Whether libvirt reported that there is no such domain, rather than some other failure. */
static bool domain_is_absent(void)
{
	switch (virGetLastErrorCode()) {
	case VIR_ERR_OK:
	case VIR_ERR_NO_DOMAIN:
	case VIR_ERR_NO_SUPPORT:
	case VIR_ERR_INVALID_ARG: /* 36 characters that are not a UUID */
		return true;
	default:
		return false;
	}
}

static void uuid_of(virDomainPtr dom, char ret_uuid[VIR_UUID_STRING_BUFLEN])
{
	if (virDomainGetUUIDString(dom, ret_uuid) < 0)
		strcpy(ret_uuid, "?");
}

static int refuse_ambiguous_word(virDomainPtr first, enum meaning first_meaning,
				 virDomainPtr second, enum meaning second_meaning,
				 struct wss_error *err)
{
	char first_uuid[VIR_UUID_STRING_BUFLEN], second_uuid[VIR_UUID_STRING_BUFLEN];

	uuid_of(first, first_uuid);
	uuid_of(second, second_uuid);
	return wss_error_set(err, WSS_ERR_AMBIGUOUS,
			     "matches two domains, as the %s of '%.80s' (UUID %s) and as the %s of "
			     "'%.80s' (UUID %s)",
			     meaning_names[first_meaning], virDomainGetName(first), first_uuid,
			     meaning_names[second_meaning], virDomainGetName(second), second_uuid);
}

static virDomainPtr lookup_word(struct wss_conn *conn, const char *word, struct wss_error *err)
{
	wss_auto_domain virDomainPtr found = NULL;
	enum meaning found_meaning = MEANS_ID;

	for (enum meaning meaning = MEANS_ID; meaning < MEANINGS; meaning++) {
		wss_auto_domain virDomainPtr dom = lookup_as(conn, word, meaning);
		char uuid[VIR_UUID_STRING_BUFLEN], found_uuid[VIR_UUID_STRING_BUFLEN];

		if (!dom && !domain_is_absent()) {
			wss_conn_error(err, "cannot look up the domain");
			return NULL;
		}
		if (dom && !found) {
			found = wss_steal_ptr(dom);
			found_meaning = meaning;
		} else if (dom) {
			uuid_of(dom, uuid);
			uuid_of(found, found_uuid);
			if (strcmp(uuid, found_uuid) != 0) {
				refuse_ambiguous_word(found, found_meaning, dom, meaning, err);
				return NULL;
			}
		}
	}
	if (!found)
		wss_error_set(err, WSS_ERR_GONE, "no such domain");
	return wss_steal_ptr(found);
}

virDomainPtr wss_conn_lookup(struct wss_conn *conn, const struct wss_domain_ref *ref,
			     struct wss_error *err)
{
	virDomainPtr dom;

	if (!ref->uuid)
		return lookup_word(conn, ref->name, err);
	dom = lookup_as(conn, ref->uuid, MEANS_UUID);
	if (!dom && domain_is_absent())
		wss_error_set(err, WSS_ERR_GONE, "no such domain");
	else if (!dom)
		wss_conn_error(err, "cannot look up the domain");
	return dom;
}
