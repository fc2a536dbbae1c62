/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Bounded queue of the events that arrive while a reply is awaited. Private to qmp/. */
#ifndef QMP_EVENTS_H
#define QMP_EVENTS_H

#include <stddef.h>
#include <stdint.h>

struct json_object;

/*
 * Largest estimated size of an event that is kept. QEMU's own take a few hundred bytes; the
 * limit bounds the whole queue, whatever the peer sends.
 */
#define QMP_EVENT_TREE_BYTES (64u << 10)

/* Ring of count entries, starting at first. All zero is an empty queue that keeps nothing. */
struct qmp_events {
	struct json_object **ring;
	unsigned int size, first, count;
	uint64_t dropped;
};

/* Allocates room for size events. Returns 0, or -1 when out of memory. */
int qmp_events_init(struct qmp_events *events, unsigned int size);

/*
 * Queues an event and takes it over. A full queue drops its oldest event; an event larger than
 * QMP_EVENT_TREE_BYTES is dropped itself. Both count as dropped.
 */
void qmp_events_push(struct qmp_events *events, struct json_object *event, size_t tree_bytes);

/* Returns the oldest event, which the caller then owns, or NULL. */
struct json_object *qmp_events_pop(struct qmp_events *events);

/* Releases all events; the struct can be freed afterwards. */
void qmp_events_release(struct qmp_events *events);

#endif
