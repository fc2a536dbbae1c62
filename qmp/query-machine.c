/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>

#include "jsonline.h"
#include "query.h"

/* Reads a property of the machine object by qom-get. */
static int get_property(struct qmp *qmp, const char *property, unsigned int timeout_ms,
			struct json_object **ret_value, struct wss_error *err)
{
	qmp_auto_json struct json_object *args = json_object_new_object();

	if (!args || qmp_json_put(args, "path", json_object_new_string("/machine")) < 0 ||
	    qmp_json_put(args, "property", json_object_new_string(property)) < 0)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	return qmp_execute(qmp, "qom-get", args, timeout_ms, ret_value, err);
}

/* Copies the machine type without the suffix of its QOM type: "pc-q35-7.2-machine". */
static int copy_machine_type(struct json_object *value, char *ret_type, size_t size,
			     struct wss_error *err)
{
	static const char suffix[] = "-machine";
	const char *text =
		json_object_is_type(value, json_type_string) ? json_object_get_string(value) : NULL;
	size_t len = text ? strlen(text) : 0;

	if (len > sizeof(suffix) - 1 && !strcmp(text + len - (sizeof(suffix) - 1), suffix))
		len -= sizeof(suffix) - 1;
	if (!len || len >= size)
		return wss_error_set(err, WSS_ERR_FAILED, "QMP qom-get: no machine type");
	memcpy(ret_type, text, len);
	ret_type[len] = '\0';
	return 0;
}

int qmp_query_machine(struct qmp *qmp, unsigned int timeout_ms, struct qmp_machine *ret_machine,
		      struct wss_error *err)
{
	qmp_auto_json struct json_object *type = NULL;
	qmp_auto_json struct json_object *limit = NULL;
	struct qmp_machine machine = {.max_ram_below_4g_bytes = 0};

	if (get_property(qmp, "type", timeout_ms, &type, err) < 0 ||
	    copy_machine_type(type, machine.type, sizeof(machine.type), err) < 0)
		return -1;
	/* Only PC machines have this property. */
	if (get_property(qmp, "max-ram-below-4g", timeout_ms, &limit, NULL) == 0 &&
	    json_object_is_type(limit, json_type_int) && json_object_get_int64(limit) > 0)
		machine.max_ram_below_4g_bytes = (uint64_t)json_object_get_int64(limit);
	*ret_machine = machine;
	return 0;
}

int qmp_query_confidential(struct qmp *qmp, unsigned int timeout_ms, char ret_id[QMP_NAME_MAX],
			   struct wss_error *err)
{
	qmp_auto_json struct json_object *value = NULL;
	const char *path, *id;

	if (get_property(qmp, "confidential-guest-support", timeout_ms, &value, NULL) < 0 &&
	    get_property(qmp, "memory-encryption", timeout_ms, &value, err) < 0)
		return -1;
	path = json_object_is_type(value, json_type_string) ? json_object_get_string(value) : NULL;
	if (!path)
		return wss_error_set(err, WSS_ERR_FAILED,
				     "QMP qom-get: %s instead of an object's path",
				     qmp_json_type_name(value));
	id = strrchr(path, '/');
	id = id ? id + 1 : path;
	if (strlen(id) >= QMP_NAME_MAX)
		return wss_error_set(err, WSS_ERR_FAILED,
				     "QMP qom-get: an id longer than %d characters",
				     QMP_NAME_MAX - 1);
	strcpy(ret_id, id);
	return 0;
}

bool qmp_machine_has_backend(struct qmp *qmp, unsigned int timeout_ms)
{
	qmp_auto_json struct json_object *value = NULL;

	return get_property(qmp, "memory-backend", timeout_ms, &value, NULL) == 0 &&
	       json_object_is_type(value, json_type_string) && json_object_get_string_len(value);
}
