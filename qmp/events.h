/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Events that arrive while a reply is awaited, bounded. Private to qmp/. */
#ifndef QMP_EVENTS_H
#define QMP_EVENTS_H

#include <stddef.h>
#include <stdint.h>

struct json_object;

/*
 * The estimated size of one event that is still kept. QEMU's are a few hundred bytes; the
 * bound makes the whole queue bounded, whatever a peer sends.
 */
#define QMP_EVENT_TREE_BYTES (64u << 10)

/* A ring: count entries from first on. All zero is an empty queue that keeps nothing. */
struct qmp_events {
	struct json_object **ring;
	unsigned int size, first, count;
	uint64_t dropped;
};

/* Makes room for size events. Returns 0, or -1 when out of memory. */
int qmp_events_init(struct qmp_events *events, unsigned int size);

/*
 * Takes the event over. The oldest is dropped for it when the queue is full; the event
 * itself when tree_bytes is over QMP_EVENT_TREE_BYTES. Both count as dropped.
 */
void qmp_events_push(struct qmp_events *events, struct json_object *event, size_t tree_bytes);

/* The oldest event, now the caller's, or NULL. */
struct json_object *qmp_events_pop(struct qmp_events *events);

/* Releases all that it holds; the struct can be freed afterwards. */
void qmp_events_release(struct qmp_events *events);

#endif
