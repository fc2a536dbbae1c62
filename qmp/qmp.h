/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The room qmp/: a client for QMP, QEMU's machine protocol (QEMU docs/interop/qmp-spec): one JSON
 * object per line, a greeting, the qmp_capabilities negotiation, replies that carry the id of their
 * command, and events in between.
 *
 *   in    a UNIX socket, a connected descriptor, or another transport, such as libvirt's monitor
 *   out   replies: here as objects of json-c, from query.h and dirtyrate.h as plain structs
 *
 * stream.h (lines with a deadline) and jsonline.h (JSON within limits) also serve client/ and
 * fleet/. Begin with query.c: a new query is a function there, or in query-*.c.
 *
 * The peer is not trusted. Everything it sends is bounded in bytes, depth and parsed size, and
 * every call ends by its deadline. After anything but a well-formed reply (garbage, a wrong id, an
 * oversized reply, end of file, a deadline, a stop request) the connection is closed, because the
 * stream can no longer be followed; later calls fail at once with WSS_ERR_GONE, after a stop
 * request with WSS_ERR_INTERRUPTED, and name the first cause. An error that QEMU itself reports
 * leaves the connection usable.
 *
 * One struct qmp belongs to one thread at a time. Every call also ends with WSS_ERR_INTERRUPTED on
 * a stop request (base/stop.h). err may be NULL everywhere. Outputs (ret_*) are untouched on
 * failure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/error.h"

struct json_object;
struct qmp;
struct qmp_peer;
struct wss_deadline;

struct qmp_limits {
	size_t reply_bytes; /* longest line accepted, and largest size of the line buffer */
	size_t tree_bytes;  /* estimated memory of one parsed line; checked before parsing */
	unsigned int depth; /* nesting of objects and arrays */
	/*
	 * Limits every timeout, and its token cancels every wait; must live as long as the
	 * connection. NULL: only a stop signal ends a wait.
	 */
	const struct wss_deadline *deadline;
	/* Number in the id of the first command. 0: at random, so that no other client has had it. */
	uint64_t first_id;
	/*
	 * Called once a socket is connected, before QEMU is waited for, with the process and its user: -1 with err set ends
	 * the attempt with that error. NULL: nobody wants to know.
	 */
	int (*check_peer)(const struct qmp_peer *peer, void *opaque, struct wss_error *err);
	void *check_opaque;
};

#define QMP_LIMITS_DEFAULT                                                    \
	{                                                                     \
		.reply_bytes = 4u << 20, .tree_bytes = 32u << 20, .depth = 64 \
	}

/* Length of a socket path with its final NUL, which unix(7)'s sun_path may lack. */
#define QMP_PATH_MAX 109

/* Why QEMU refused a command: the "class" of its error object. */
enum qmp_error_class {
	/* The last command succeeded, or failed without an error object from QEMU. */
	QMP_CLASS_NONE,
	QMP_CLASS_GENERIC,
	QMP_CLASS_COMMAND_NOT_FOUND,
	QMP_CLASS_DEVICE_NOT_ACTIVE,
	QMP_CLASS_DEVICE_NOT_FOUND,
	QMP_CLASS_KVM_MISSING_CAP,
	QMP_CLASS_OTHER,
};

/* The other end of the socket, in our pid and user namespace. */
struct qmp_peer {
	/* Process that called listen(): see qmp_peer(). */
	pid_t pid;
	uid_t uid;
	gid_t gid;
	uint32_t inode;		 /* inode of the socket at the other end; 0 if unknown */
	char path[QMP_PATH_MAX]; /* path that QEMU listens on, as QEMU got it; "" if none */
};

/* If the connection's deadline ends before timeout_ms has passed, the error states the deadline. */

/*
 * A transport other than our own socket, such as libvirt's passthrough. It has no greeting,
 * negotiation or events, and its commands carry no id.
 */
struct qmp_transport_ops {
	const char *name; /* for messages */

	/*
	 * Sends one command, a JSON object as text without "id" and without newline, and
	 * stores QEMU's whole reply ({"return": …} or {"error": …}) as a malloc()ed string in
	 * *ret_reply, which the caller frees. Returns 0, or -1 with err set (never NULL here)
	 * when there is no reply. deadline_ns is a time of wss_clock_now_ns(); a transport
	 * that cannot keep it must end by other means (libvirt: keepalive). A reply longer
	 * than reply_bytes is refused by the caller, so a transport may stop reading there.
	 */
	int (*execute)(void *opaque, const char *command, uint64_t deadline_ns, size_t reply_bytes,
		       char **ret_reply, struct wss_error *err);

	/* Releases opaque; may be NULL. Called once, by qmp_close(). */
	void (*close)(void *opaque);
};

/*
 * Connects to QEMU's UNIX socket, reads the greeting and negotiates, all within timeout_ms.
 * limits NULL means QMP_LIMITS_DEFAULT. Returns 0 and a connection for qmp_close(), or -1:
 * WSS_ERR_USAGE (the path is too long for a socket), WSS_ERR_CONNECT (no socket there,
 * refused, not a QMP server, or no answer in time: QEMU serves one client at a time and keeps
 * others waiting without a reply), WSS_ERR_INTERRUPTED, WSS_ERR_NO_MEMORY. The messages do not
 * name the path; the caller does.
 */
int qmp_open_unix(const char *path, unsigned int timeout_ms, const struct qmp_limits *limits,
		  struct qmp **ret_qmp, struct wss_error *err);

/*
 * Like qmp_open_unix(), on a stream socket that is already connected. Takes fd over, on
 * failure as well, and makes it non-blocking.
 */
int qmp_open_fd(int fd, unsigned int timeout_ms, const struct qmp_limits *limits,
		struct qmp **ret_qmp, struct wss_error *err);

/*
 * Opens a connection over another transport. Sends nothing. Takes opaque over, on failure
 * (WSS_ERR_NO_MEMORY) as well: ops->close() is always called. ops must outlive the connection.
 */
int qmp_open_transport(const struct qmp_transport_ops *ops, void *opaque,
		       const struct qmp_limits *limits, struct qmp **ret_qmp,
		       struct wss_error *err);

/* Closes and frees a connection; accepts NULL. Keeps errno. */
void qmp_close(struct qmp *qmp);

/*
 * Runs a command. args is its arguments object, borrowed, or NULL. Returns 0 with a reference
 * to the value of "return" in *ret_value, for json_object_put() (ret_value may be NULL), or -1:
 *
 *   WSS_ERR_UNSUPPORTED  this QEMU does not know the command, or lacks KVM for it
 *   WSS_ERR_FAILED       QEMU refused it: qmp_last_class() says why; or the reply is
 *                        malformed or over the limits (connection closed)
 *   WSS_ERR_TIMEOUT, WSS_ERR_INTERRUPTED, WSS_ERR_GONE (connection closed),
 *   WSS_ERR_NO_MEMORY
 */
int qmp_execute(struct qmp *qmp, const char *command, struct json_object *args,
		unsigned int timeout_ms, struct json_object **ret_value, struct wss_error *err);

/* Returns the class of the error that QEMU reported for the last command. */
enum qmp_error_class qmp_last_class(const struct qmp *qmp);

/* What events of QEMU have said about the guest: whether its CPUs were stopped, and whether it was reset. */
struct qmp_stops {
	bool stopped;	     /* they have stopped (STOP, SUSPEND, SHUTDOWN …) */
	uint64_t stopped_us; /* for how long, until now if they have not gone on */
	bool reset;	     /* the guest was reset */
};

/*
 * Returns what events have reported since the last qmp_query_status() or qmp_stop_forget(). Reads only what has
 * already arrived: sends nothing and does not wait. On a closed connection the answer covers the time until it
 * closed.
 */
struct qmp_stops qmp_stops_seen(struct qmp *qmp);
void qmp_stop_forget(struct qmp *qmp);

/*
 * Returns the other end of the connection as it was after the greeting. The credentials are
 * those of the process that called listen() last (SO_PEERCRED, unix(7)). That is QEMU itself,
 * even on a socket that was passed to it (socket_listen() in util/qemu-sockets.c of QEMU 7.2).
 * But a listener may have forked and exited, and its pid may have been reused since. The inode
 * is that of the very socket at the other end (sock_diag(7)): whoever holds it is the peer.
 * Returns -1 with WSS_ERR_UNSUPPORTED over another transport, or where the listener is in a
 * pid namespace that is not visible here.
 */
int qmp_peer(const struct qmp *qmp, struct qmp_peer *ret_peer, struct wss_error *err);

/*
 * Typed access to a member of an object in a reply. Returns 0, or -1 with WSS_ERR_FAILED and a
 * message that names the key and the problem: missing, null, another type, an integer out of
 * range (refused, not saturated), a string that contains a NUL. Objects, arrays and strings
 * are borrowed from obj. It is an error if obj is NULL or not an object.
 */
int qmp_get_string(struct json_object *obj, const char *key, const char **ret_text,
		   struct wss_error *err);
int qmp_get_uint64(struct json_object *obj, const char *key, uint64_t *ret_value,
		   struct wss_error *err);
int qmp_get_bool(struct json_object *obj, const char *key, bool *ret_value, struct wss_error *err);
int qmp_get_object(struct json_object *obj, const char *key, struct json_object **ret_object,
		   struct wss_error *err);
int qmp_get_array(struct json_object *obj, const char *key, struct json_object **ret_array,
		  struct wss_error *err);

/*
 * Like qmp_get_string(), copied into a buffer of size bytes. A text that does not fit is an
 * error, because a truncated name would name something else.
 */
int qmp_copy_string(struct json_object *obj, const char *key, char *ret_text, size_t size,
		    struct wss_error *err);

/* Whether obj has that member with a value other than null; for optional members. */
bool qmp_has(struct json_object *obj, const char *key);

static inline void qmp_cleanup_close(struct qmp **qmp)
{
	qmp_close(*qmp);
}

#define qmp_auto wss_cleanup(qmp_cleanup_close)
