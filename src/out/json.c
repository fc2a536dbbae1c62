/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The JSON form of a row, through json-c.
 */
#include <string.h>

#include <json-c/json.h>

#include "base/text.h"
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

/* A character that is not to be shown, in ASCII: above U+FFFF as a pair of surrogates. */
static void put_code(FILE *stream, unsigned code)
{
	if (code > 0xffff) {
		fprintf(stream, "\\u%04x", 0xd800 + ((code - 0x10000) >> 10));
		code = 0xdc00 + ((code - 0x10000) & 0x3ff);
	}
	fprintf(stream, "\\u%04x", code);
}

/*
 * json-c leaves as they are what a terminal acts on; JSON may say it in ASCII, inside of texts. And
 * bytes that are no UTF-8, as at the end of a name that was cut: there is no JSON with them.
 */
static void put_text(FILE *stream, const char *text)
{
	while (*text) {
		int len = wss_text_character(text);
		unsigned code;

		if (!len)
			fputc('?', stream);
		else if (wss_text_hidden(text, &code))
			put_code(stream, code);
		else
			fwrite(text, (size_t)len, 1, stream);
		text += len ? len : 1;
	}
}

#define PLAIN                                                                       \
	"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 .,:;-_+/()" \
	"[]{}<>=!?*#%&@'"

/* A text with its quotation marks, as json-c writes it. */
static void put_string(FILE *stream, const char *text)
{
	static const char escaped[] = "\b\n\r\t\f\"\\", names[] = "bnrtf\"\\";

	fputc('"', stream);
	while (*text) {
		const char *special = strchr(escaped, *text);
		char one[8] = { 0 };
		int len = wss_text_character(text);
		size_t plain = strspn(text, PLAIN);

		/* Most texts are nothing else. */
		if (plain) {
			fwrite_unlocked(text, plain, 1, stream);
			text += plain;
			continue;
		}
		if (special) {
			fprintf(stream, "\\%c", names[special - escaped]);
		} else {
			memcpy(one, text, (size_t)(len ? len : 1));
			put_text(stream, one);
		}
		text += len ? len : 1;
	}
	fputc('"', stream);
}

static void put_value(FILE *stream, const struct wss_value *value)
{
	char text[WSS_NUMBER_TEXT_MAX > 32 ? WSS_NUMBER_TEXT_MAX : 32];

	switch (value->kind) {
	case WSS_KIND_TEXT:
		put_string(stream, value->text);
		break;
	case WSS_KIND_DURATION:
		wss_seconds_format(value->number, text, sizeof(text));
		fputs_unlocked(text, stream);
		break;
	case WSS_KIND_SHARE:
	case WSS_KIND_FACTOR:
		fprintf(stream, "%.6f", value->real);
		break;
	case WSS_KIND_BOOL:
		fputs(value->number ? "true" : "false", stream);
		break;
	default:
		fputs_unlocked(wss_number_format(value->number, text), stream);
		break;
	}
}

/*
 * What json-c would make of a row without groups and extras, without its memory and its time: there
 * are reports of a million rows.
 */
static int write_plain_row(FILE *stream, const struct wss_report_layout *layout, const void *row)
{
	bool first = true;

	fputs("{ ", stream);
	for (size_t i = 0; i < layout->n_columns; i++) {
		struct wss_value value = { .kind = WSS_KIND_ABSENT };

		if (layout->columns[i].key)
			value = layout->columns[i].get(row);
		if (value.kind == WSS_KIND_ABSENT)
			continue;
		fputs_unlocked(first ? "\"" : ", \"", stream);
		fputs_unlocked(layout->columns[i].key, stream);
		fputs_unlocked("\": ", stream);
		put_value(stream, &value);
		first = false;
	}
	fputs(first ? "}" : " }", stream);
	return ferror(stream) ? -1 : 0;
}

static bool is_plain(const struct wss_report_layout *layout)
{
	for (size_t i = 0; i < layout->n_columns; i++)
		if (layout->columns[i].group)
			return false;
	return !layout->extra;
}

int wss_json_write_row(FILE *stream, const struct wss_report_layout *layout, const void *row)
{
	struct json_object *object;
	const char *text;
	int r;

	if (is_plain(layout))
		return write_plain_row(stream, layout, row);
	object = json_object_new_object();
	r = object ? 0 : -1;
	for (size_t i = 0; r == 0 && i < layout->n_columns; i++)
		r = add_column(object, &layout->columns[i], row);
	if (r == 0 && layout->extra)
		layout->extra(row, object);
	text = r == 0 ? json_object_to_json_string_ext(object, JSON_C_TO_STRING_SPACED |
								       JSON_C_TO_STRING_NOSLASHESCAPE)
		      : NULL;
	if (text)
		put_text(stream, text);
	if (!text || ferror(stream))
		r = -1;
	json_object_put(object);
	return r;
}
