/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "measure/target.h"

#include <stdlib.h>

#include <string.h>

#include "base/cleanup.h"
#include "host/inventory.h"
#include "measure/policy-element.h"
#include "measure/policy-file.h"

/* For statistics that are good to have. */
#define STATS_NS (10 * WSS_NS_PER_S)

/* Data of a target while its metadata element is read. */
struct reading {
	struct wss_target_entry result; /* must come first: the caller sees only this */
	const char *namespace_uri;
	unsigned more;
};

static void reading_free(void *opaque)
{
	struct reading *reading = opaque;

	free(reading->result.entry.xml);
	free(reading->result.config);
	free(reading->result.stats);
	free(reading);
}

/*
 * A domain whose configuration cannot be read has none here; only without memory that is an error. Statistics are no
 * reason to lose the rest, either.
 */
static void target_read_config(struct wss_target *target, struct wss_conn *conn)
{
	struct wss_target_entry *result = &((struct reading *)target->data)->result;
	wss_auto_free struct wss_domxml *config = calloc(1, sizeof(*config));
	wss_auto_free struct wss_balloon_stats *stats = calloc(1, sizeof(*stats));
	struct wss_error err = WSS_ERROR_INIT;

	if (!config || !stats) {
		wss_error_set(&target->error, WSS_ERR_NO_MEMORY, "out of memory");
		return;
	}
	if (wss_conn_config(conn, wss_hypervisor_host(target->hypervisor), result->entry.uuid,
			    &target->deadline, config, &err) == 0)
		result->config = wss_steal_ptr(config);
	else if (err.code == WSS_ERR_NO_MEMORY)
		target->error = err;
	if (result->config &&
	    wss_hypervisor_balloon_stats(target->hypervisor, result->entry.uuid, STATS_NS, stats,
					 &result->stats_error) == 0)
		result->stats = wss_steal_ptr(stats);
}

/* Of a guest without libvirt. Whether it is paused only QEMU's monitor says, and only of a guest that is attached. */
static struct wss_conn_size guest_size(struct wss_guest *guest, const struct wss_host *host)
{
	bool attached =
		guest->state != WSS_GUEST_SHUTOFF && wss_guest_attach(guest, host, NULL) == 0;
	struct wss_amount maximum = {guest->config.maximum_bytes > 0, guest->config.maximum_bytes};
	struct wss_conn_size size = {.maximum_bytes = maximum, .assigned_bytes = maximum};

	if (guest->state == WSS_GUEST_SHUTOFF)
		size.assigned_bytes = wss_amount_of(0);
	else if (attached && guest->state == WSS_GUEST_PAUSED)
		size.paused_bytes = guest->balloon_bytes.known ? guest->balloon_bytes : maximum;
	return size;
}

/* Of a guest without metadata: its policy, as the element that it would have. */
static void target_read_policy(struct wss_target *target, struct reading *reading)
{
	struct wss_target_entry *result = &reading->result;
	const struct wss_domain_ref ref = {target->name, target->uuid};
	struct wss_guest *guest = NULL;
	struct wss_conn_entry *entry = &result->entry;
	struct wss_error *err = &target->error;
	struct wss_policy policy;

	if (wss_hypervisor_guest(target->hypervisor, &ref, &target->deadline, &guest, err) < 0)
		return;
	if (wss_policy_file_read(guest, &policy, err) == 0 && !wss_policy_is_empty(&policy))
		wss_policy_write(&policy, &entry->xml, err);
	snprintf(entry->uuid, sizeof(entry->uuid), "%s", guest->config.uuid);
	snprintf(entry->name, sizeof(entry->name), "%s", guest->config.name);
	entry->active = guest->state != WSS_GUEST_SHUTOFF;
	if (reading->more & WSS_ENTRY_SIZES)
		result->size = guest_size(guest, wss_hypervisor_host(target->hypervisor));
	wss_guest_free(guest);
}

/* In a worker. */
static void target_read_element(struct wss_target *target)
{
	const struct wss_domain_ref ref = {target->name, target->uuid};
	struct wss_conn *conn = wss_hypervisor_conn(target->hypervisor);
	struct reading *reading = target->data;
	struct wss_conn_entry *entry = &reading->result.entry;

	if (!conn && !strcmp(reading->namespace_uri, WSS_POLICY_NAMESPACE)) {
		target_read_policy(target, reading);
		return;
	}
	if (!conn) {
		wss_error_set(&target->error, WSS_ERR_UNSUPPORTED,
			      "a guest without libvirt has no metadata");
		return;
	}
	if (wss_conn_metadata(conn, &ref, reading->namespace_uri, entry, &target->error) < 0 ||
	    !entry->active)
		return;
	if (reading->more & WSS_ENTRY_SIZES &&
	    wss_deadline_check(&target->deadline, &target->error) == 0)
		reading->result.size = wss_conn_size(conn, entry->uuid);
	if (reading->more & WSS_ENTRY_CONFIG && !target->error.code &&
	    wss_deadline_check(&target->deadline, &target->error) == 0)
		target_read_config(target, conn);
}

int wss_targets_read_element(struct wss_targets *targets, const char *namespace_uri, unsigned more,
			     struct wss_error *err)
{
	for (size_t i = 0; i < targets->n; i++) {
		struct wss_target *target = targets->list[i];
		struct reading *reading = calloc(1, sizeof(*reading));

		if (!reading)
			return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
		reading->namespace_uri = namespace_uri;
		reading->more = more;
		target->data = reading;
		target->release_data = reading_free;
	}
	return wss_targets_run(targets, target_read_element, true, err);
}
