/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "qmp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/deadline.h"
#include "client.h"
#include "jsonline.h"

#define ID_MAX 32
#define SEEN_LINES_MAX 1024

static const struct {
	const char *name;
	enum qmp_error_class class;
} classes[] = {
	{"GenericError", QMP_CLASS_GENERIC},
	{"CommandNotFound", QMP_CLASS_COMMAND_NOT_FOUND},
	{"DeviceNotActive", QMP_CLASS_DEVICE_NOT_ACTIVE},
	{"DeviceNotFound", QMP_CLASS_DEVICE_NOT_FOUND},
	{"KVMMissingCap", QMP_CLASS_KVM_MISSING_CAP},
};

uint64_t qmp_end_ns(const struct wss_deadline *deadline, unsigned int timeout_ms)
{
	uint64_t own_ns = wss_clock_now_ns() + timeout_ms * WSS_NS_PER_MS;
	uint64_t all_ns = wss_deadline_at_ns(deadline);

	return own_ns < all_ns ? own_ns : all_ns;
}

/* Closes a connection that is no longer usable and remembers why. Returns -1. */
static int close_stream(struct qmp *qmp, const struct wss_error *why)
{
	qmp_stream_close(&qmp->stream);
	qmp->closed_why = *why;
	return -1;
}

int qmp_read_object(struct qmp *qmp, uint64_t deadline_ns, struct json_object **ret_object,
		    struct wss_error *err)
{
	const char *line = NULL;
	size_t len = 0;

	if (qmp_stream_line(&qmp->stream, deadline_ns, &line, &len, err) < 0)
		return -1;
	return qmp_json_parse(line, len, &qmp->limits, ret_object, NULL, err);
}

/*
 * Whether text has everything that obj has, because json-c silently drops values when out of
 * memory.
 */
static bool text_is_complete(const char *text, struct json_object *obj)
{
	qmp_auto_json struct json_object *again = json_tokener_parse(text);

	return again && json_object_equal(again, obj);
}

/*
 * Builds the text of a command, without an id if id is NULL. The caller frees it. NULL: out of
 * memory.
 */
static char *build_command(const char *command, struct json_object *args, const char *id)
{
	qmp_auto_json struct json_object *obj = json_object_new_object();
	const char *text;
	char *ret;

	if (!obj || qmp_json_put(obj, "execute", json_object_new_string(command)) < 0 ||
	    (args && qmp_json_put(obj, "arguments", json_object_get(args)) < 0) ||
	    (id && qmp_json_put(obj, "id", json_object_new_string(id)) < 0))
		return NULL;
	text = json_object_to_json_string_ext(obj, JSON_C_TO_STRING_PLAIN);
	if (!text || !text_is_complete(text, obj) ||
	    asprintf(&ret, "%s%s", text, id ? "\n" : "") < 0)
		return NULL;
	return ret;
}

static int check_id(struct json_object *reply, const char *id, struct wss_error *err)
{
	const char *got = NULL;

	if (!qmp_has(reply, "return") && !qmp_has(reply, "error"))
		return wss_error_set(err, WSS_ERR_FAILED, "QEMU sent neither a reply nor an event");
	if (qmp_get_string(reply, "id", &got, err) < 0)
		return wss_error_prefix(err, "QEMU sent a reply without a request");
	if (strcmp(got, id))
		return wss_error_set(err, WSS_ERR_FAILED,
				     "reply has id \"%.32s\" instead of \"%s\"", got, id);
	return 0;
}

/*
 * Whether a reply answers a command of the previous client: if that was killed before QEMU replied, QEMU sends the
 * reply to the next client. It can only come before the first reply to this one. That client may have been another
 * virt-wss, so ids begin with a number at random.
 */
static bool is_for_previous_client(const struct qmp *qmp, struct json_object *reply, const char *id)
{
	const char *got;

	return qmp->commands == 1 && !qmp_get_string(reply, "id", &got, NULL) &&
	       strcmp(got, id) != 0;
}

static bool is_event(struct json_object *object)
{
	return qmp_has(object, "event");
}

/* When QEMU sent the event, by its time of day; 0 if it does not say so. */
static uint64_t event_us(struct json_object *event)
{
	struct json_object *stamp;
	uint64_t seconds, us;

	if (qmp_get_object(event, "timestamp", &stamp, NULL) < 0 ||
	    qmp_get_uint64(stamp, "seconds", &seconds, NULL) < 0 ||
	    qmp_get_uint64(stamp, "microseconds", &us, NULL) < 0)
		return 0;
	return seconds * 1000000 + us;
}

static uint64_t stop_length_us(const struct qmp *qmp, uint64_t until_us)
{
	return qmp->stopped_since_us && until_us > qmp->stopped_since_us
		       ? until_us - qmp->stopped_since_us
		       : 0;
}

static void note_event(struct qmp *qmp, struct json_object *event)
{
	static const char *const stops[] = {"STOP", "SHUTDOWN", "SUSPEND", "SUSPEND_DISK"};
	static const char *const starts[] = {"RESUME", "WAKEUP"};
	const char *name = "";

	if (qmp_get_string(event, "event", &name, NULL) < 0)
		return;
	qmp->stops.reset |= !strcmp(name, "RESET");
	for (size_t i = 0; i < sizeof(stops) / sizeof(*stops); i++) {
		if (strcmp(name, stops[i]) != 0)
			continue;
		qmp->stops.stopped = true;
		if (!qmp->stopped_since_us)
			qmp->stopped_since_us = event_us(event);
	}
	for (size_t i = 0; i < sizeof(starts) / sizeof(*starts); i++) {
		if (strcmp(name, starts[i]) != 0)
			continue;
		qmp->stops.stopped_us += stop_length_us(qmp, event_us(event));
		qmp->stopped_since_us = 0;
	}
}

static int await_reply(struct qmp *qmp, const char *id, uint64_t deadline_ns,
		       struct json_object **ret_reply, struct wss_error *err)
{
	for (;;) {
		qmp_auto_json struct json_object *object = NULL;

		if (qmp_read_object(qmp, deadline_ns, &object, err) < 0)
			return -1;
		if (is_event(object)) {
			note_event(qmp, object);
		} else if (!is_for_previous_client(qmp, object, id)) {
			if (check_id(object, id, err) < 0)
				return -1;
			*ret_reply = wss_steal_ptr(object);
			return 0;
		}
		/* Buffered lines need no wait, so a flood of them is checked against the deadline here. */
		if (wss_clock_now_ns() >= deadline_ns)
			return wss_error_set(err, WSS_ERR_TIMEOUT, "timed out");
	}
}

static int exchange_stream(struct qmp *qmp, const char *command, struct json_object *args,
			   uint64_t deadline_ns, struct json_object **ret_reply,
			   struct wss_error *err)
{
	wss_auto_free char *text = NULL;
	char id[ID_MAX];

	snprintf(id, sizeof(id), "qmp-%llu", (unsigned long long)(qmp->first_id + qmp->commands++));
	text = build_command(command, args, id);
	if (!text)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	if (qmp_stream_send(&qmp->stream, text, strlen(text), deadline_ns, err) < 0)
		return -1;
	return await_reply(qmp, id, deadline_ns, ret_reply, err);
}

static int exchange_ops(struct qmp *qmp, const char *command, struct json_object *args,
			uint64_t deadline_ns, struct json_object **ret_reply, struct wss_error *err)
{
	wss_auto_free char *text = build_command(command, args, NULL);
	wss_auto_free char *reply = NULL;
	size_t len;

	if (!text)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	if (qmp->ops->execute(qmp->opaque, text, deadline_ns, qmp->limits.reply_bytes, &reply,
			      err) < 0)
		return -1;
	len = strlen(reply);
	while (len && reply[len - 1] == '\n')
		len--;
	if (len > qmp->limits.reply_bytes)
		return wss_error_set(err, WSS_ERR_FAILED, "the reply is larger than %zu bytes",
				     qmp->limits.reply_bytes);
	return qmp_json_parse(reply, len, &qmp->limits, ret_reply, NULL, err);
}

/* Converts QEMU's error object into err. Returns -1, or -2 if the object is malformed. */
static int parse_error_object(struct qmp *qmp, struct json_object *error, struct wss_error *err)
{
	enum wss_error_code code = WSS_ERR_FAILED;
	const char *class = NULL, *desc = NULL;

	if (qmp_get_string(error, "class", &class, err) < 0 ||
	    qmp_get_string(error, "desc", &desc, err) < 0) {
		wss_error_prefix(err, "malformed error reply");
		return -2;
	}
	snprintf(qmp->class_name, sizeof(qmp->class_name), "%s", class);
	wss_text_sanitize(qmp->class_name);
	if (qmp_last_class(qmp) == QMP_CLASS_COMMAND_NOT_FOUND ||
	    qmp_last_class(qmp) == QMP_CLASS_KVM_MISSING_CAP)
		code = WSS_ERR_UNSUPPORTED;
	return wss_error_set(err, code, "%s (%s)", desc, qmp->class_name);
}

/* Evaluates a reply: 0, -1 for QEMU's own error, -2 for a malformed reply. */
static int parse_reply(struct qmp *qmp, struct json_object *reply, struct json_object **ret_value,
		       struct wss_error *err)
{
	struct json_object *value = NULL, *error = NULL;
	bool has_value = json_object_object_get_ex(reply, "return", &value);
	bool has_error = json_object_object_get_ex(reply, "error", &error);

	if (has_value && has_error) {
		wss_error_set(err, WSS_ERR_FAILED, "reply has both \"return\" and \"error\"");
		return -2;
	}
	if (has_error)
		return parse_error_object(qmp, error, err);
	if (!value) {
		wss_error_set(err, WSS_ERR_FAILED, "reply has no \"return\"");
		return -2;
	}
	if (ret_value)
		*ret_value = json_object_get(value);
	return 0;
}

int qmp_run(struct qmp *qmp, const char *command, struct json_object *args, unsigned int timeout_ms,
	    uint64_t deadline_ns, struct json_object **ret_value, struct wss_error *err)
{
	qmp_auto_json struct json_object *reply = NULL;
	int result = wss_deadline_check(qmp->limits.deadline, err);

	if (result < 0)
		return wss_error_prefix(err, "QMP %s", command);
	if (qmp->ops)
		result = exchange_ops(qmp, command, args, deadline_ns, &reply, err);
	else
		result = exchange_stream(qmp, command, args, deadline_ns, &reply, err);
	/* Any other failure leaves the stream in an unknown state, as a malformed reply does. */
	if (result < 0)
		result = -2;
	else
		result = parse_reply(qmp, reply, ret_value, err);
	if (result == 0)
		return 0;
	if (err->code == WSS_ERR_TIMEOUT && wss_deadline_check(qmp->limits.deadline, err) == 0)
		wss_error_set(err, WSS_ERR_TIMEOUT, "no reply within %u ms", timeout_ms);
	wss_error_prefix(err, "QMP %s", command);
	if (result == -2 && !qmp->ops)
		close_stream(qmp, err);
	return -1;
}

/*
 * After an interruption, further commands fail with WSS_ERR_INTERRUPTED again, not with
 * WSS_ERR_GONE.
 */
static int closed_before(const struct qmp *qmp, const char *what, struct wss_error *err)
{
	enum wss_error_code code = qmp->closed_why.code;

	return wss_error_set(err, code == WSS_ERR_INTERRUPTED ? code : WSS_ERR_GONE,
			     "QMP %s: the connection was closed after: %s", what,
			     qmp->closed_why.text);
}

int qmp_execute(struct qmp *qmp, const char *command, struct json_object *args,
		unsigned int timeout_ms, struct json_object **ret_value, struct wss_error *err)
{
	struct wss_error unwanted = WSS_ERROR_INIT;

	/* The error code decides whether the connection is closed, so there must be one. */
	if (!err)
		err = &unwanted;
	qmp->class_name[0] = '\0';
	if (qmp->closed_why.code != WSS_OK)
		return closed_before(qmp, command, err);
	return qmp_run(qmp, command, args, timeout_ms, qmp_end_ns(qmp->limits.deadline, timeout_ms),
		       ret_value, err);
}

enum qmp_error_class qmp_last_class(const struct qmp *qmp)
{
	if (!qmp->class_name[0])
		return QMP_CLASS_NONE;
	for (size_t i = 0; i < sizeof(classes) / sizeof(*classes); i++)
		if (!strcmp(classes[i].name, qmp->class_name))
			return classes[i].class;
	return QMP_CLASS_OTHER;
}

/* Notes one event, if it has arrived. Anything else closes the connection. */
static bool read_event(struct qmp *qmp)
{
	qmp_auto_json struct json_object *object = NULL;
	struct wss_error err = WSS_ERROR_INIT;

	if (qmp_read_object(qmp, 0, &object, &err) < 0) {
		/* Part of an event may have arrived; the next reader gets the rest. */
		if (err.code == WSS_ERR_TIMEOUT)
			return false;
	} else if (is_event(object)) {
		note_event(qmp, object);
		return true;
	} else {
		wss_error_set(&err, WSS_ERR_FAILED, "QEMU sent a reply without a request");
	}
	wss_error_prefix(&err, "QMP event");
	close_stream(qmp, &err);
	return false;
}

struct qmp_stops qmp_stops_seen(struct qmp *qmp)
{
	struct qmp_stops stops;
	struct timespec now;
	int lines = 0;

	/* Limited, because a peer that never stops sending would hold us here. */
	while (!qmp->ops && qmp->closed_why.code == WSS_OK && lines++ < SEEN_LINES_MAX &&
	       read_event(qmp))
		;
	stops = qmp->stops;
	clock_gettime(CLOCK_REALTIME, &now);
	stops.stopped_us +=
		stop_length_us(qmp, (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000);
	return stops;
}

void qmp_stop_forget(struct qmp *qmp)
{
	qmp->stops = (struct qmp_stops){.stopped = false};
	qmp->stopped_since_us = 0;
}
