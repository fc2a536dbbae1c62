/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "jsonline.h"
#include "query.h"

/* Refuses sizes that no machine has, so that sums cannot overflow. */
static int query_get_bytes(struct json_object *obj, const char *key, uint64_t *ret_bytes,
			   struct wss_error *err)
{
	if (qmp_get_uint64(obj, key, ret_bytes, err) < 0)
		return -1;
	if (*ret_bytes > WSS_BYTES_MAX)
		return wss_error_set(err, WSS_ERR_FAILED, "\"%s\" is out of range", key);
	return 0;
}

int qmp_query_memory_size(struct qmp *qmp, unsigned int timeout_ms,
			  struct qmp_memory_size *ret_size, struct wss_error *err)
{
	qmp_auto_json struct json_object *reply = NULL;
	struct qmp_memory_size size = {0};

	if (qmp_execute(qmp, "query-memory-size-summary", NULL, timeout_ms, &reply, err) < 0)
		return -1;
	size.has_plugged = qmp_has(reply, "plugged-memory");
	if (query_get_bytes(reply, "base-memory", &size.base_bytes, err) < 0 ||
	    (size.has_plugged &&
	     query_get_bytes(reply, "plugged-memory", &size.plugged_bytes, err) < 0))
		return wss_error_prefix(err, "QMP query-memory-size-summary");
	*ret_size = size;
	return 0;
}

/*
 * Runs a command whose reply is a list and allocates room for its entries of entry_bytes each:
 * *ret_room is zeroed memory for free(), NULL if the list is empty.
 */
static int query_list(struct qmp *qmp, const char *command, size_t entry_bytes,
		      unsigned int timeout_ms, struct json_object **ret_reply, void **ret_room,
		      size_t *ret_count, struct wss_error *err)
{
	qmp_auto_json struct json_object *reply = NULL;
	void *room = NULL;
	size_t count;

	if (qmp_execute(qmp, command, NULL, timeout_ms, &reply, err) < 0)
		return -1;
	if (!json_object_is_type(reply, json_type_array))
		return wss_error_set(err, WSS_ERR_FAILED, "QMP %s: %s instead of a list", command,
				     qmp_json_type_name(reply));
	count = json_object_array_length(reply);
	if (count > QMP_LIST_MAX)
		return wss_error_set(err, WSS_ERR_FAILED, "QMP %s: %zu entries, limit %d", command,
				     count, QMP_LIST_MAX);
	if (count) {
		room = calloc(count, entry_bytes);
		if (!room)
			return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	}
	*ret_reply = wss_steal_ptr(reply);
	*ret_room = room;
	*ret_count = count;
	return 0;
}

/* Like qmp_copy_string(), but leaves the text as it is if the member is missing. */
static int copy_optional(struct json_object *obj, const char *key, char *ret_text, size_t size,
			 struct wss_error *err)
{
	return qmp_has(obj, key) ? qmp_copy_string(obj, key, ret_text, size, err) : 0;
}

static int get_optional_bytes(struct json_object *obj, const char *key, uint64_t *ret_value,
			      struct wss_error *err)
{
	return qmp_has(obj, key) ? query_get_bytes(obj, key, ret_value, err) : 0;
}

static int parse_memdev(struct json_object *obj, struct qmp_memdev *dev, struct wss_error *err)
{
	/* QEMU 6.1 added "share". */
	if (qmp_has(obj, "share") && qmp_get_bool(obj, "share", &dev->share, err) < 0)
		return -1;
	if (copy_optional(obj, "id", dev->id, sizeof(dev->id), err) < 0)
		return -1;
	return query_get_bytes(obj, "size", &dev->size_bytes, err);
}

int qmp_query_memdev(struct qmp *qmp, unsigned int timeout_ms, struct qmp_memdev **ret_list,
		     size_t *ret_count, struct wss_error *err)
{
	qmp_auto_json struct json_object *reply = NULL;
	wss_auto_free void *room = NULL;
	struct qmp_memdev *list;
	size_t count = 0;

	if (query_list(qmp, "query-memdev", sizeof(*list), timeout_ms, &reply, &room, &count, err) <
	    0)
		return -1;
	list = room;
	for (size_t i = 0; i < count; i++)
		if (parse_memdev(json_object_array_get_idx(reply, i), &list[i], err) < 0)
			return wss_error_prefix(err, "QMP query-memdev: entry %zu", i);
	*ret_list = wss_steal_ptr(room);
	*ret_count = count;
	return 0;
}

/*
 * DIMMs and virtio-pmem have "addr" or "memaddr" and a "size"; virtio-mem has its current
 * "size" and a "max-size"; hv-balloon (QEMU 8.2) only has "max-size".
 */
static int parse_memory_device(struct json_object *obj, struct qmp_memory_device *dev,
			       struct wss_error *err)
{
	struct json_object *data = NULL;

	if (qmp_copy_string(obj, "type", dev->type, sizeof(dev->type), err) < 0 ||
	    qmp_get_object(obj, "data", &data, err) < 0 ||
	    copy_optional(data, "id", dev->id, sizeof(dev->id), err) < 0 ||
	    copy_optional(data, "memdev", dev->memdev, sizeof(dev->memdev), err) < 0 ||
	    get_optional_bytes(data, "addr", &dev->gpa, err) < 0 ||
	    get_optional_bytes(data, "memaddr", &dev->gpa, err) < 0 ||
	    get_optional_bytes(data, "size", &dev->size_bytes, err) < 0)
		return -1;
	dev->max_bytes = dev->size_bytes;
	return get_optional_bytes(data, "max-size", &dev->max_bytes, err);
}

int qmp_query_memory_devices(struct qmp *qmp, unsigned int timeout_ms,
			     struct qmp_memory_device **ret_list, size_t *ret_count,
			     struct wss_error *err)
{
	qmp_auto_json struct json_object *reply = NULL;
	wss_auto_free void *room = NULL;
	struct qmp_memory_device *list;
	size_t count = 0;

	if (query_list(qmp, "query-memory-devices", sizeof(*list), timeout_ms, &reply, &room,
		       &count, err) < 0)
		return -1;
	list = room;
	for (size_t i = 0; i < count; i++)
		if (parse_memory_device(json_object_array_get_idx(reply, i), &list[i], err) < 0)
			return wss_error_prefix(err, "QMP query-memory-devices: entry %zu", i);
	*ret_list = wss_steal_ptr(room);
	*ret_count = count;
	return 0;
}
