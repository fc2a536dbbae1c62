/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "service/target.h"

#include <stdlib.h>

#include "base/cleanup.h"

/* Data of a target while its metadata element is read. */
struct reading {
	struct wss_target_entry result; /* must come first: the front end sees only this */
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

/* A domain whose configuration cannot be read has none here; only without memory that is an error. */
static void target_read_config(struct wss_target *target, struct wss_conn *conn)
{
	struct reading *reading = target->data;
	struct wss_domxml *config = calloc(1, sizeof(*config));
	struct wss_balloon_stats *stats = calloc(1, sizeof(*stats));
	struct wss_error err = WSS_ERROR_INIT;

	if (!config || !stats)
		wss_error_set(&err, WSS_ERR_NO_MEMORY, "out of memory");
	else if (wss_conn_config(conn, reading->result.entry.uuid, config, stats, &err) == 0) {
		reading->result.config = wss_steal_ptr(config);
		reading->result.stats = wss_steal_ptr(stats);
	}
	if (err.code == WSS_ERR_NO_MEMORY)
		target->error = err;
	free(config);
	free(stats);
}

/* In a worker. */
static void target_read_element(struct wss_target *target)
{
	const struct wss_domain_ref ref = {target->name, target->uuid};
	struct wss_conn *conn = wss_hypervisor_conn(target->hypervisor);
	struct reading *reading = target->data;
	struct wss_conn_entry *entry = &reading->result.entry;

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

int wss_targets_read_element(struct wss_targets *targets, const char *namespace_uri,
			     unsigned more, struct wss_error *err)
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
