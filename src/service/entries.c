/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "service/target.h"

#include <stdlib.h>

/* Data of a target while its metadata element is read. */
struct reading {
	struct wss_target_entry result; /* must come first: the front end sees only this */
	const char *namespace_uri;
	bool sizes;
};

static void reading_free(void *opaque)
{
	struct reading *reading = opaque;

	free(reading->result.entry.xml);
	free(reading);
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
	if (wss_conn_metadata(conn, &ref, reading->namespace_uri, entry, &target->error) ==
		    0 &&
	    reading->sizes && entry->active &&
	    wss_deadline_check(&target->deadline, &target->error) == 0)
		reading->result.assigned_bytes = wss_conn_assigned(conn, entry->uuid);
}

int wss_targets_read_element(struct wss_targets *targets, const char *namespace_uri,
			     bool sizes, struct wss_error *err)
{
	for (size_t i = 0; i < targets->n; i++) {
		struct wss_target *target = targets->list[i];
		struct reading *reading = calloc(1, sizeof(*reading));

		if (!reading)
			return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
		reading->namespace_uri = namespace_uri;
		reading->sizes = sizes;
		target->data = reading;
		target->release_data = reading_free;
	}
	return wss_targets_run(targets, target_read_element, true, err);
}
