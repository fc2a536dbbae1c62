/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "jsonline.h"
#include "query.h"

/* Runs a command that takes one string argument. */
static int execute_with_string(struct qmp *qmp, const char *command, const char *key,
			       const char *value, unsigned int timeout_ms,
			       struct json_object **ret_reply, struct wss_error *err)
{
	qmp_auto_json struct json_object *args = json_object_new_object();

	if (!args || qmp_json_put(args, key, json_object_new_string(value)) < 0)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	return qmp_execute(qmp, command, args, timeout_ms, ret_reply, err);
}

/*
 * Parses a qom-list entry: "child<virtio-net-pci>" is a child, "string" a property. Returns 1
 * for a child, 0 for a property, or -1.
 */
static int parse_child(struct json_object *entry, struct qmp_model *ret_model,
		       struct wss_error *err)
{
	static const char prefix[] = "child<";
	const char *type;
	size_t len;

	if (qmp_get_string(entry, "type", &type, err) < 0)
		return -1;
	len = strlen(type);
	if (strncmp(type, prefix, sizeof(prefix) - 1) != 0)
		return 0;
	if (type[len - 1] != '>' || len - sizeof(prefix) >= sizeof(ret_model->name))
		return wss_error_set(err, WSS_ERR_FAILED, "unknown \"type\": %.80s", type);
	memcpy(ret_model->name, type + sizeof(prefix) - 1, len - sizeof(prefix));
	return 1;
}

int qmp_query_children(struct qmp *qmp, const char *path, unsigned int timeout_ms,
		       struct qmp_model **ret_list, size_t *ret_count, struct wss_error *err)
{
	qmp_auto_json struct json_object *reply = NULL;
	wss_auto_free struct qmp_model *list = NULL;
	size_t n, count = 0;

	if (execute_with_string(qmp, "qom-list", "path", path, timeout_ms, &reply, err) < 0)
		return -1;
	if (!json_object_is_type(reply, json_type_array))
		return wss_error_set(err, WSS_ERR_FAILED, "QMP qom-list: %s instead of a list",
				     qmp_json_type_name(reply));
	n = json_object_array_length(reply);
	if (n > QMP_LIST_MAX)
		return wss_error_set(err, WSS_ERR_FAILED, "QMP qom-list: %zu entries, limit %d", n,
				     QMP_LIST_MAX);
	list = calloc(n + 1, sizeof(*list));
	if (!list)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	for (size_t i = 0; i < n; i++) {
		int r = parse_child(json_object_array_get_idx(reply, i), &list[count], err);

		if (r < 0)
			return wss_error_prefix(err, "QMP qom-list");
		count += (size_t)r;
	}
	*ret_list = count ? wss_steal_ptr(list) : NULL;
	*ret_count = count;
	return 0;
}

/*
 * Parses a line such as "net0: index=0,type=tap,fd=30"; a line "hub 0" has no backend. Returns
 * 1 for a backend, 0 for none, or -1.
 */
static int parse_backend(const char *line, struct qmp_model *ret_model)
{
	static const char before[] = ",type=";
	const char *type = strstr(line, ": index=");
	size_t len;

	if (!type)
		return strncmp(line, "hub ", 4) ? -1 : 0;
	type += strlen(": index=");
	type += strspn(type, "0123456789");
	if (strncmp(type, before, sizeof(before) - 1) != 0)
		return -1;
	type += sizeof(before) - 1;
	len = strcspn(type, ",");
	if (!len || len >= sizeof(ret_model->name))
		return -1;
	memcpy(ret_model->name, type, len);
	return 1;
}

int qmp_query_network(struct qmp *qmp, unsigned int timeout_ms, struct qmp_model **ret_list,
		      size_t *ret_count, struct wss_error *err)
{
	qmp_auto_json struct json_object *reply = NULL;
	wss_auto_free struct qmp_model *list = NULL;
	wss_auto_free char *text = NULL;
	size_t count = 0;
	char *state = NULL;

	if (execute_with_string(qmp, "human-monitor-command", "command-line", "info network",
				timeout_ms, &reply, err) < 0)
		return -1;
	if (!json_object_is_type(reply, json_type_string))
		return wss_error_set(err, WSS_ERR_FAILED,
				     "QMP human-monitor-command: %s instead of a string",
				     qmp_json_type_name(reply));
	text = strdup(json_object_get_string(reply));
	list = calloc(QMP_LIST_MAX, sizeof(*list));
	if (!text || !list)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	for (char *line = strtok_r(text, "\r\n", &state); line;
	     line = strtok_r(NULL, "\r\n", &state)) {
		int r = count < QMP_LIST_MAX ? parse_backend(line, &list[count]) : -1;

		if (r < 0)
			return wss_error_set(
				err, WSS_ERR_FAILED,
				"QMP human-monitor-command: cannot parse info network: %.80s",
				line);
		count += (size_t)r;
	}
	*ret_list = count ? wss_steal_ptr(list) : NULL;
	*ret_count = count;
	return 0;
}
