/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The JSON form of a row, through json-c.
 */
#include <json-c/json.h>

#include "base/error.h"
#include "base/units.h"
#include "out/report-private.h"

static struct json_object *value_object(const struct wss_value *value)
{
	char seconds[32];

	switch (value->kind) {
	case WSS_KIND_ABSENT:
		return NULL;
	case WSS_KIND_TEXT:
		return json_object_new_string(value->text);
	case WSS_KIND_DURATION:
		wss_seconds_format(value->number, seconds, sizeof(seconds));
		return json_object_new_double_s((double)value->number / 1e9, seconds);
	case WSS_KIND_SHARE:
	case WSS_KIND_FACTOR:
		snprintf(seconds, sizeof(seconds), "%.6f", value->real);
		return json_object_new_double_s(value->real, seconds);
	case WSS_KIND_BOOL:
		return json_object_new_boolean(value->number != 0);
	default:
		return json_object_new_uint64(value->number);
	}
}

/* The object of a group inside the row, made when it is first needed. */
static struct json_object *group_object(struct json_object *row, const char *group)
{
	struct json_object *object;

	if (!group)
		return row;
	if (json_object_object_get_ex(row, group, &object))
		return object;
	object = json_object_new_object();
	if (object && json_object_object_add(row, group, object) < 0) {
		json_object_put(object);
		return NULL;
	}
	return object;
}

static int add_column(struct json_object *row_object, const struct wss_column *column,
		      const void *row)
{
	struct wss_value value = { .kind = WSS_KIND_ABSENT };
	struct json_object *object, *group;

	if (column->key)
		value = column->get(row);
	if (value.kind == WSS_KIND_ABSENT)
		return 0;
	object = value_object(&value);
	group = group_object(row_object, column->group);
	if (!object || !group || json_object_object_add(group, column->key, object) < 0) {
		json_object_put(object);
		return -1;
	}
	return 0;
}

/*
 * json-c leaves as they are what a terminal acts on; JSON may say it in ASCII, inside of texts. And
 * bytes that are no UTF-8, as at the end of a name that was cut: there is no JSON with them.
 */
static int put_text(FILE *stream, const char *text)
{
	while (*text) {
		int len = wss_text_character(text), r;
		unsigned code;

		if (!len)
			r = fputc('?', stream);
		else if (wss_text_control(text, &code))
			r = fprintf(stream, "\\u%04x", code);
		else
			r = fwrite(text, (size_t)len, 1, stream) == 1 ? 0 : -1;
		if (r < 0)
			return -1;
		text += len ? len : 1;
	}
	return 0;
}

int wss_json_write_row(FILE *stream, const struct wss_report_layout *layout, const void *row)
{
	struct json_object *object = json_object_new_object();
	const char *text;
	int r = object ? 0 : -1;

	for (size_t i = 0; r == 0 && i < layout->n_columns; i++)
		r = add_column(object, &layout->columns[i], row);
	if (r == 0 && layout->extra)
		layout->extra(row, object);
	text = r == 0 ? json_object_to_json_string_ext(object, JSON_C_TO_STRING_SPACED |
								       JSON_C_TO_STRING_NOSLASHESCAPE)
		      : NULL;
	if (!text || put_text(stream, text) < 0)
		r = -1;
	json_object_put(object);
	return r;
}
