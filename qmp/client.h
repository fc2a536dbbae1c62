/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The connection itself. Private to qmp/: qmp.c runs commands on it, open.c makes it. */
#ifndef QMP_CLIENT_H
#define QMP_CLIENT_H

#include "events.h"
#include "qmp.h"
#include "stream.h"

#define CLASS_NAME_MAX 48

struct qmp {
	struct qmp_limits limits;
	struct qmp_stream stream;	     /* fd -1 where ops is set, or once closed */
	const struct qmp_transport_ops *ops; /* NULL on a socket */
	void *opaque;
	struct qmp_events events;
	bool stop_seen;			 /* an event said so since qmp_stop_forget() */
	uint64_t commands;		 /* sent so far: the number in the last id */
	struct qmp_peer peer;		 /* pid 0 where unknown */
	char class_name[CLASS_NAME_MAX]; /* of the last command's error, "" for none */
	struct wss_error closed_why;	 /* WSS_OK while the connection is good */
};

/*
 * What the kernel says of the other end of a connected socket. What it does not say stays 0 or
 * "". The inode is known once the other end has accepted the connection.
 */
void qmp_peer_read(int fd, struct qmp_peer *ret_peer);

/* The time of wss_clock_now_ns() that is timeout_ms away, or that of the deadline if it is earlier. */
uint64_t qmp_end_ns(const struct wss_deadline *deadline, unsigned int timeout_ms);

/* The next line from the stream as an object, and the estimate of its size where wanted. */
int qmp_read_object(struct qmp *qmp, uint64_t deadline_ns, struct json_object **ret_object,
		    size_t *ret_tree_bytes, struct wss_error *err);

/*
 * qmp_execute() on a good connection, by an absolute deadline; timeout_ms is for the
 * message. err is never NULL.
 */
int qmp_run(struct qmp *qmp, const char *command, struct json_object *args,
	    unsigned int timeout_ms, uint64_t deadline_ns, struct json_object **ret_value,
	    struct wss_error *err);

#endif
