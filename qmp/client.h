/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A QMP connection. Private to qmp/: open.c makes it, qmp.c runs commands on it. */
#pragma once

#include "qmp.h"
#include "stream.h"

#define CLASS_NAME_MAX 48

struct qmp {
	struct qmp_limits limits;
	struct qmp_stream stream;	     /* fd is -1 if ops is set, or after closing */
	const struct qmp_transport_ops *ops; /* NULL on a socket of our own */
	void *opaque;
	/* By the events since qmp_stop_forget(); the times are QEMU's, of day. */
	struct qmp_stops stops;
	uint64_t stopped_since_us;	 /* 0: the CPUs run */
	uint64_t first_id;		 /* number in the id of the first command */
	uint64_t commands;		 /* number of commands sent */
	struct qmp_peer peer;		 /* pid is 0 if unknown */
	char class_name[CLASS_NAME_MAX]; /* error class of the last command, or "" */
	/* Why the connection was closed; WSS_OK while it is usable. */
	struct wss_error closed_why;
};

/*
 * Reads what the kernel knows about the other end of a connected socket. Unknown fields stay 0
 * or "". The inode is known once the other end has accepted the connection.
 */
void qmp_peer_read(int fd, struct qmp_peer *ret_peer);

/*
 * Returns the time of wss_clock_now_ns() that is timeout_ms from now, or that of the deadline
 * if it is earlier.
 */
uint64_t qmp_end_ns(const struct wss_deadline *deadline, unsigned int timeout_ms);

/* Reads the next line of the stream as an object. */
int qmp_read_object(struct qmp *qmp, uint64_t deadline_ns, struct json_object **ret_object,
		    struct wss_error *err);

/*
 * qmp_execute() on an open connection, with an absolute deadline; timeout_ms appears in
 * messages only. err is never NULL.
 */
int qmp_run(struct qmp *qmp, const char *command, struct json_object *args, unsigned int timeout_ms,
	    uint64_t deadline_ns, struct json_object **ret_value, struct wss_error *err);
