/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "events.h"

#include <json-c/json.h>
#include <stdlib.h>

int qmp_events_init(struct qmp_events *events, unsigned int size)
{
	*events = (struct qmp_events){0};
	if (!size)
		return 0;
	events->ring = calloc(size, sizeof(*events->ring));
	if (!events->ring)
		return -1;
	events->size = size;
	return 0;
}

void qmp_events_push(struct qmp_events *events, struct json_object *event, size_t tree_bytes)
{
	if (!events->size || tree_bytes > QMP_EVENT_TREE_BYTES) {
		json_object_put(event);
		events->dropped++;
		return;
	}
	if (events->count == events->size) {
		json_object_put(qmp_events_pop(events));
		events->dropped++;
	}
	events->ring[(events->first + events->count) % events->size] = event;
	events->count++;
}

struct json_object *qmp_events_pop(struct qmp_events *events)
{
	struct json_object *event;

	if (!events->count)
		return NULL;
	event = events->ring[events->first];
	events->first = (events->first + 1) % events->size;
	events->count--;
	return event;
}

void qmp_events_release(struct qmp_events *events)
{
	while (events->count)
		json_object_put(qmp_events_pop(events));
	free(events->ring);
	*events = (struct qmp_events){0};
}
