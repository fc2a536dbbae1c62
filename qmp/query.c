/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "query.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "jsonline.h"

/* Runs a command without arguments whose reply must be an object. */
static int query_object(struct qmp *qmp, const char *command, unsigned int timeout_ms,
			struct json_object **ret_object, struct wss_error *err)
{
	qmp_auto_json struct json_object *value = NULL;

	if (qmp_execute(qmp, command, NULL, timeout_ms, &value, err) < 0)
		return -1;
	if (!json_object_is_type(value, json_type_object))
		return wss_error_set(err, WSS_ERR_FAILED, "QMP %s: %s instead of an object",
				     command, qmp_json_type_name(value));
	*ret_object = wss_steal_ptr(value);
	return 0;
}

int qmp_query_status(struct qmp *qmp, unsigned int timeout_ms, struct qmp_status *ret_status,
		     struct wss_error *err)
{
	qmp_auto_json struct json_object *reply = NULL;
	struct qmp_status status;

	if (query_object(qmp, "query-status", timeout_ms, &reply, err) < 0)
		return -1;
	if (qmp_get_bool(reply, "running", &status.running, err) < 0 ||
	    qmp_copy_string(reply, "status", status.state, sizeof(status.state), err) < 0)
		return wss_error_prefix(err, "QMP query-status");
	/* This answer is newer than any event before it. */
	qmp_stop_forget(qmp);
	*ret_status = status;
	return 0;
}

int qmp_query_kvm(struct qmp *qmp, unsigned int timeout_ms, struct qmp_kvm *ret_kvm,
		  struct wss_error *err)
{
	qmp_auto_json struct json_object *reply = NULL;
	struct qmp_kvm kvm;

	if (query_object(qmp, "query-kvm", timeout_ms, &reply, err) < 0)
		return -1;
	if (qmp_get_bool(reply, "enabled", &kvm.enabled, err) < 0 ||
	    qmp_get_bool(reply, "present", &kvm.present, err) < 0)
		return wss_error_prefix(err, "QMP query-kvm");
	*ret_kvm = kvm;
	return 0;
}

/*
 * Converts a UUID to lower case in place; returns false unless it is 8-4-4-4-12 hexadecimal
 * digits.
 */
static bool qmp_normalize_uuid(char *uuid)
{
	if (strlen(uuid) != QMP_UUID_TEXT_MAX - 1)
		return false;
	for (size_t i = 0; i < QMP_UUID_TEXT_MAX - 1; i++) {
		bool dash = i == 8 || i == 13 || i == 18 || i == 23;

		if (dash ? uuid[i] != '-' : !isxdigit((unsigned char)uuid[i]))
			return false;
		uuid[i] = (char)tolower((unsigned char)uuid[i]);
	}
	return true;
}

int qmp_query_uuid(struct qmp *qmp, unsigned int timeout_ms, char ret_uuid[QMP_UUID_TEXT_MAX],
		   struct wss_error *err)
{
	qmp_auto_json struct json_object *reply = NULL;
	char uuid[QMP_UUID_TEXT_MAX];

	if (query_object(qmp, "query-uuid", timeout_ms, &reply, err) < 0)
		return -1;
	if (qmp_copy_string(reply, "UUID", uuid, sizeof(uuid), err) < 0)
		return wss_error_prefix(err, "QMP query-uuid");
	if (!qmp_normalize_uuid(uuid))
		return wss_error_set(err, WSS_ERR_FAILED, "QMP query-uuid: not a UUID: %s", uuid);
	memcpy(ret_uuid, uuid, sizeof(uuid));
	return 0;
}

int qmp_query_name(struct qmp *qmp, unsigned int timeout_ms, char ret_name[QMP_NAME_MAX],
		   struct wss_error *err)
{
	qmp_auto_json struct json_object *reply = NULL;

	if (query_object(qmp, "query-name", timeout_ms, &reply, err) < 0)
		return -1;
	if (!qmp_has(reply, "name"))
		ret_name[0] = '\0';
	else if (qmp_copy_string(reply, "name", ret_name, QMP_NAME_MAX, err) < 0)
		return wss_error_prefix(err, "QMP query-name");
	return 0;
}

int qmp_query_balloon(struct qmp *qmp, unsigned int timeout_ms, struct qmp_balloon *ret_balloon,
		      struct wss_error *err)
{
	qmp_auto_json struct json_object *reply = NULL;
	struct qmp_balloon balloon = {.present = true};

	if (query_object(qmp, "query-balloon", timeout_ms, &reply, err) < 0) {
		if (qmp_last_class(qmp) != QMP_CLASS_DEVICE_NOT_ACTIVE)
			return -1;
		wss_error_clear(err);
		*ret_balloon = (struct qmp_balloon){0};
		return 0;
	}
	if (qmp_get_uint64(reply, "actual", &balloon.actual_bytes, err) < 0)
		return wss_error_prefix(err, "QMP query-balloon");
	if (balloon.actual_bytes > WSS_BYTES_MAX)
		return wss_error_set(err, WSS_ERR_FAILED,
				     "QMP query-balloon: \"actual\" is out of range");
	*ret_balloon = balloon;
	return 0;
}

/* QEMU has -1, as an unsigned number, where the guest reports nothing. */
static struct wss_amount get_reported(struct json_object *stats, const char *key)
{
	struct wss_amount amount = {.known = false};

	amount.known = qmp_get_uint64(stats, key, &amount.value, NULL) == 0 &&
		       amount.value <= WSS_BYTES_MAX;
	return amount;
}

int qmp_query_balloon_report(struct qmp *qmp, const char *device, unsigned int timeout_ms,
			     struct qmp_balloon_report *ret_report, struct wss_error *err)
{
	qmp_auto_json struct json_object *args = json_object_new_object(), *reply = NULL;
	struct json_object *stats = NULL;
	char path[QMP_NAME_MAX];
	uint64_t update_s;

	snprintf(path, sizeof(path), "/machine/peripheral/%s", device);
	if (!args || qmp_json_put(args, "path", json_object_new_string(path)) < 0 ||
	    qmp_json_put(args, "property", json_object_new_string("guest-stats")) < 0)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	if (qmp_execute(qmp, "qom-get", args, timeout_ms, &reply, err) < 0)
		return -1;
	if (qmp_get_uint64(reply, "last-update", &update_s, err) < 0 ||
	    qmp_get_object(reply, "stats", &stats, err) < 0)
		return wss_error_prefix(err, "QMP qom-get");
	*ret_report = (struct qmp_balloon_report){
		.free_bytes = get_reported(stats, "stat-free-memory"),
		.usable_bytes = get_reported(stats, "stat-available-memory"),
		.cache_bytes = get_reported(stats, "stat-disk-caches"),
		.managed_bytes = get_reported(stats, "stat-total-memory"),
		.update_s = update_s,
	};
	return 0;
}

int qmp_query_migrate(struct qmp *qmp, unsigned int timeout_ms, struct qmp_migration *ret_migration,
		      struct wss_error *err)
{
	qmp_auto_json struct json_object *reply = NULL;
	struct qmp_migration migration = {"", false};

	if (query_object(qmp, "query-migrate", timeout_ms, &reply, err) < 0)
		return -1;
	if (qmp_has(reply, "status")) {
		if (qmp_copy_string(reply, "status", migration.state, sizeof(migration.state),
				    err) < 0)
			return wss_error_prefix(err, "QMP query-migrate");
		/* States that later versions add count as a running migration. */
		migration.in_progress =
			strcmp(migration.state, "none") && strcmp(migration.state, "completed") &&
			strcmp(migration.state, "cancelled") && strcmp(migration.state, "failed");
	}
	*ret_migration = migration;
	return 0;
}
