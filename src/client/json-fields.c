/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/json-fields.h"

#include <json-c/json.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "base/text.h"
#include "qmp/jsonline.h"

#define NANO_MAX 9e9

static int field_out_of_range(const struct wss_json_field *field, struct wss_error *err)
{
	return wss_error_set(err, WSS_ERR_FAILED, "\"%s\" is out of range", field->key);
}

/* json-c takes overlong UTF-8, and surrogates as such, for characters. */
static bool text_is_utf8(const char *text)
{
	int len = 1;

	while (*text && len) {
		len = wss_text_character(text);
		text += len;
	}
	return len > 0;
}

static int read_text(struct json_object *value, const struct wss_json_field *field, char *place,
		     struct wss_error *err)
{
	const char *text = json_object_get_string(value);
	size_t len = (size_t)json_object_get_string_len(value);

	if (len >= field->size)
		return wss_error_set(err, WSS_ERR_FAILED, "\"%s\" is longer than %zu bytes",
				     field->key, field->size - 1);
	if (memchr(text, '\0', len) || !text_is_utf8(text))
		return wss_error_set(err, WSS_ERR_FAILED, "\"%s\" is not a text in UTF-8",
				     field->key);
	memcpy(place, text, len + 1);
	return 0;
}

/* Whoever prints it replaces what cannot be shown (base/text.h). */
static void read_message(struct json_object *value, const struct wss_json_field *field, char *place)
{
	snprintf(place, field->size, "%s", json_object_get_string(value));
	wss_text_drop_incomplete(place);
	for (; *place; place++)
		if (*place == '\n' || *place == '\r' || *place == '\t')
			*place = ' ';
}

/* json-c makes the next integer that it knows of one that is too large. */
static int read_count(struct json_object *value, const struct wss_json_field *field,
		      struct wss_amount *ret_amount, struct wss_error *err)
{
	uint64_t number = json_object_get_uint64(value);

	if (json_object_is_type(value, json_type_double) || json_object_get_int64(value) < 0 ||
	    number > INT64_MAX)
		return field_out_of_range(field, err);
	*ret_amount = wss_amount_of(number);
	return 0;
}

static int read_nano(struct json_object *value, const struct wss_json_field *field,
		     struct wss_amount *ret_amount, struct wss_error *err)
{
	double number = json_object_get_double(value);

	/* Also false for NaN, which json-c accepts. */
	if (!(number >= 0 && number <= NANO_MAX))
		return field_out_of_range(field, err);
	*ret_amount = wss_amount_of((uint64_t)(number * 1e9));
	return 0;
}

static int read_list(struct json_object *list, const struct wss_json_field *field, void *place,
		     struct wss_error *err)
{
	size_t n = json_object_array_length(list);

	for (size_t i = 0; i < n; i++)
		if (field->element(json_object_array_get_idx(list, i), place, err) < 0)
			return -1;
	return 0;
}

static bool field_has_type(const struct wss_json_field *field, enum json_type type)
{
	switch (field->type) {
	case WSS_JSON_TEXT:
	case WSS_JSON_MESSAGE:
		return type == json_type_string;
	case WSS_JSON_BOOL:
		return type == json_type_boolean;
	case WSS_JSON_OBJECT:
		return type == json_type_object;
	case WSS_JSON_LIST:
		return type == json_type_array;
	case WSS_JSON_HAS:
		return true;
	default:
		return type == json_type_int || type == json_type_double;
	}
}

static const char *field_type_name(const struct wss_json_field *field)
{
	switch (field->type) {
	case WSS_JSON_TEXT:
	case WSS_JSON_MESSAGE:
		return "a string";
	case WSS_JSON_BOOL:
		return "true or false";
	case WSS_JSON_OBJECT:
		return "an object";
	case WSS_JSON_LIST:
		return "an array";
	default:
		return "a number";
	}
}

static int read_field(struct json_object *value, const struct wss_json_field *field, char *place,
		      struct wss_error *err)
{
	if (!field_has_type(field, json_object_get_type(value)))
		return wss_error_set(err, WSS_ERR_FAILED,
				     "\"%s\" has the wrong type: %s instead of %s", field->key,
				     qmp_json_type_name(value), field_type_name(field));
	switch (field->type) {
	case WSS_JSON_HAS:
		*(struct wss_amount *)(void *)place = wss_amount_of(1);
		return 0;
	case WSS_JSON_TEXT:
		return read_text(value, field, place, err);
	case WSS_JSON_MESSAGE:
		read_message(value, field, place);
		return 0;
	case WSS_JSON_BOOL:
		*(struct wss_amount *)(void *)place =
			wss_amount_of(json_object_get_boolean(value) != 0);
		return 0;
	case WSS_JSON_OBJECT:
		return wss_json_read(value, field->table, place, err);
	case WSS_JSON_LIST:
		return read_list(value, field, place, err);
	case WSS_JSON_COUNT:
		return read_count(value, field, (struct wss_amount *)(void *)place, err);
	default:
		return read_nano(value, field, (struct wss_amount *)(void *)place, err);
	}
}

int wss_json_read(struct json_object *value, const struct wss_json_table *table, void *data,
		  struct wss_error *err)
{
	if (!json_object_is_type(value, json_type_object))
		return wss_error_set(err, WSS_ERR_FAILED, "%s instead of an object",
				     qmp_json_type_name(value));
	for (size_t i = 0; i < table->n; i++) {
		const struct wss_json_field *field = &table->fields[i];
		struct json_object *member;

		if (json_object_object_get_ex(value, field->key, &member) &&
		    read_field(member, field, (char *)data + field->offset, err) < 0)
			return -1;
	}
	return 0;
}

int wss_json_bytes(struct json_object *element, struct wss_amount *ret_bytes, struct wss_error *err)
{
	double number = json_object_get_double(element);

	*ret_bytes = (struct wss_amount){.known = false};
	if (!element)
		return 0;
	if (!json_object_is_type(element, json_type_int) &&
	    !json_object_is_type(element, json_type_double))
		return wss_error_set(err, WSS_ERR_FAILED, "%s instead of a number of bytes or null",
				     qmp_json_type_name(element));
	/* Also false for NaN, which json-c accepts. */
	if (!(number >= 0 && number <= (double)WSS_BYTES_MAX))
		return wss_error_set(err, WSS_ERR_FAILED, "%g bytes instead of 0 to 1 EiB", number);
	*ret_bytes = wss_amount_of(wss_u64_from_double(ceil(number)));
	return 0;
}

int wss_json_list_read(struct json_object *list, void *data,
		       int (*element)(struct json_object *element, void *data,
				      struct wss_error *err),
		       struct wss_error *err)
{
	const struct wss_json_field field = {
		.key = "list", .type = WSS_JSON_LIST, .element = element};

	if (!json_object_is_type(list, json_type_array))
		return wss_error_set(err, WSS_ERR_FAILED, "%s instead of an array",
				     qmp_json_type_name(list));
	return read_list(list, &field, data, err);
}

int wss_json_text(struct json_object *element, char *ret_text, size_t size, struct wss_error *err)
{
	const struct wss_json_field field = {.key = "text", .type = WSS_JSON_TEXT, .size = size};

	if (!json_object_is_type(element, json_type_string))
		return wss_error_set(err, WSS_ERR_FAILED, "%s instead of a text",
				     qmp_json_type_name(element));
	return read_text(element, &field, ret_text, err);
}

void wss_json_message(struct json_object *element, char *ret_text, size_t size)
{
	const struct wss_json_field field = {.type = WSS_JSON_MESSAGE, .size = size};

	*ret_text = '\0';
	if (json_object_is_type(element, json_type_string))
		read_message(element, &field, ret_text);
}
