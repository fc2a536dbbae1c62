/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>

#include "jsonline.h"
#include "qmp.h"

/*
 * Returns the member key of obj if it has exactly that type, borrowed; NULL with err set
 * otherwise.
 */
static struct json_object *get_typed(struct json_object *obj, const char *key, enum json_type type,
				     struct wss_error *err)
{
	struct json_object *value;

	if (!json_object_is_type(obj, json_type_object)) {
		wss_error_set(err, WSS_ERR_FAILED, "%s instead of an object with \"%s\"",
			      qmp_json_type_name(obj), key);
		return NULL;
	}
	if (!json_object_object_get_ex(obj, key, &value)) {
		wss_error_set(err, WSS_ERR_FAILED, "\"%s\" is missing", key);
		return NULL;
	}
	if (!json_object_is_type(value, type)) {
		wss_error_set(err, WSS_ERR_FAILED, "\"%s\" is %s, not %s", key,
			      qmp_json_type_name(value), qmp_json_name_of_type(type));
		return NULL;
	}
	return value;
}

int qmp_get_string(struct json_object *obj, const char *key, const char **ret_text,
		   struct wss_error *err)
{
	struct json_object *value = get_typed(obj, key, json_type_string, err);
	const char *text;

	if (!value)
		return -1;
	text = json_object_get_string(value);
	if (!text)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	if (strlen(text) != (size_t)json_object_get_string_len(value))
		return wss_error_set(err, WSS_ERR_FAILED, "\"%s\" contains a NUL character", key);
	*ret_text = text;
	return 0;
}

int qmp_copy_string(struct json_object *obj, const char *key, char *ret_text, size_t size,
		    struct wss_error *err)
{
	const char *text;
	size_t len;

	if (qmp_get_string(obj, key, &text, err) < 0)
		return -1;
	len = strlen(text);
	if (len >= size)
		return wss_error_set(err, WSS_ERR_FAILED, "\"%s\" has %zu characters, limit %zu",
				     key, len, size - 1);
	memcpy(ret_text, text, len + 1);
	return 0;
}

/*
 * json-c silently saturates an integer beyond the range of its types, so the extremes mean
 * "out of range". No quantity in QEMU is that large.
 */
int qmp_get_uint64(struct json_object *obj, const char *key, uint64_t *ret_value,
		   struct wss_error *err)
{
	struct json_object *value = get_typed(obj, key, json_type_int, err);
	uint64_t v;

	if (!value)
		return -1;
	if (json_object_get_int64(value) < 0)
		return wss_error_set(err, WSS_ERR_FAILED, "\"%s\" is negative", key);
	v = json_object_get_uint64(value);
	if (v == UINT64_MAX)
		return wss_error_set(err, WSS_ERR_FAILED, "\"%s\" is out of range", key);
	*ret_value = v;
	return 0;
}

int qmp_get_bool(struct json_object *obj, const char *key, bool *ret_value, struct wss_error *err)
{
	struct json_object *value = get_typed(obj, key, json_type_boolean, err);

	if (!value)
		return -1;
	*ret_value = json_object_get_boolean(value);
	return 0;
}

int qmp_get_object(struct json_object *obj, const char *key, struct json_object **ret_object,
		   struct wss_error *err)
{
	struct json_object *value = get_typed(obj, key, json_type_object, err);

	if (!value)
		return -1;
	*ret_object = value;
	return 0;
}

int qmp_get_array(struct json_object *obj, const char *key, struct json_object **ret_array,
		  struct wss_error *err)
{
	struct json_object *value = get_typed(obj, key, json_type_array, err);

	if (!value)
		return -1;
	*ret_array = value;
	return 0;
}

bool qmp_has(struct json_object *obj, const char *key)
{
	struct json_object *value;

	return json_object_is_type(obj, json_type_object) &&
	       json_object_object_get_ex(obj, key, &value) && value;
}
