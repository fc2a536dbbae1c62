/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <inttypes.h>
#include <string.h>

#include "base/text.h"
#include "base/units.h"
#include "show/report-private.h"

/* Writes an unprintable character as an escape; above U+FFFF as a surrogate pair. */
static void put_code(FILE *stream, unsigned code)
{
	if (code > 0xffff) {
		fprintf(stream, "\\u%04x", 0xd800 + ((code - 0x10000) >> 10));
		code = 0xdc00 + ((code - 0x10000) & 0x3ff);
	}
	fprintf(stream, "\\u%04x", code);
}

/*
 * Escapes characters that a terminal would act on or not show. Bytes that are not UTF-8, as at
 * the end of a truncated name, become '?', because JSON cannot contain them.
 */
static void put_character(FILE *stream, const char *text, int len)
{
	static const char escaped[] = "\b\t\n\f\r\"\\", letters[] = "btnfr\"\\";
	const char *at = len == 1 ? strchr(escaped, *text) : NULL;
	unsigned code;

	if (!len)
		fputc('?', stream);
	else if (at)
		fprintf(stream, "\\%c", letters[at - escaped]);
	else if ((unsigned char)*text < 0x20)
		put_code(stream, (unsigned char)*text);
	else if (wss_text_hidden(text, &code))
		put_code(stream, code);
	else
		fwrite(text, (size_t)len, 1, stream);
}

static void put_text(FILE *stream, const char *text)
{
	putc_unlocked('"', stream);
	while (*text) {
		size_t plain = wss_text_plain(text);
		int len;

		fwrite_unlocked(text, 1, plain, stream);
		text += plain;
		if (!*text)
			break;
		len = wss_text_character(text);
		put_character(stream, text, len);
		text += len ? len : 1;
	}
	putc_unlocked('"', stream);
}

static void begin_member(struct wss_json *json, const char *key)
{
	if (!json)
		return;
	fputs_unlocked(json->any ? ", " : " ", json->stream);
	json->any = true;
	if (!key)
		return;
	put_text(json->stream, key);
	fputs_unlocked(": ", json->stream);
}

struct wss_json wss_json_object(FILE *stream, struct wss_json *parent, const char *key)
{
	begin_member(parent, key);
	putc_unlocked('{', stream);
	return (struct wss_json){.stream = stream};
}

struct wss_json wss_json_list(FILE *stream, struct wss_json *parent, const char *key)
{
	begin_member(parent, key);
	putc_unlocked('[', stream);
	return (struct wss_json){.stream = stream};
}

void wss_json_object_end(struct wss_json *json)
{
	fputs_unlocked(" }", json->stream);
}

void wss_json_list_end(struct wss_json *json)
{
	fputs_unlocked(" ]", json->stream);
}

void wss_json_value(struct wss_json *json, const char *key, const struct wss_value *value)
{
	char number[WSS_NUMBER_TEXT_MAX], seconds[32];

	if (value->kind == WSS_KIND_ABSENT)
		return;
	begin_member(json, key);
	switch (value->kind) {
	case WSS_KIND_TEXT:
		put_text(json->stream, value->text);
		break;
	case WSS_KIND_DURATION:
		wss_seconds_format(value->number, seconds, sizeof(seconds));
		fputs_unlocked(seconds, json->stream);
		break;
	case WSS_KIND_SHARE:
	case WSS_KIND_FACTOR:
		fprintf(json->stream, "%.6f", value->real);
		break;
	case WSS_KIND_BOOL:
		fputs(value->number ? "true" : "false", json->stream);
		break;
	case WSS_KIND_ADDRESS:
		fprintf(json->stream, "\"0x%" PRIx64 "\"", value->number);
		break;
	default:
		fputs_unlocked(wss_number_format(value->number, number), json->stream);
		break;
	}
}

void wss_json_null(struct wss_json *json, const char *key)
{
	begin_member(json, key);
	fputs("null", json->stream);
}

static bool same_group(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

/* The columns of a group are adjacent; the group starts with its first known value. */
static void write_columns(struct wss_json *json, const struct wss_report_layout *layout,
			  const void *row)
{
	struct wss_json group;
	const char *open = NULL;

	for (size_t i = 0; i < layout->n_columns; i++) {
		const struct wss_column *column = &layout->columns[i];
		struct wss_value value = {.kind = WSS_KIND_ABSENT};

		if (!wss_key_is_in(column->key, layout->table_only) &&
		    !same_group(column->key, layout->list_key))
			value = wss_column_value(column, row);
		if (value.kind == WSS_KIND_ABSENT)
			continue;
		if (open && !same_group(open, column->group)) {
			wss_json_object_end(&group);
			open = NULL;
		}
		if (column->group && !open) {
			group = wss_json_object(json->stream, json, column->group);
			open = column->group;
		}
		wss_json_value(open ? &group : json, column->key, &value);
	}
	if (open)
		wss_json_object_end(&group);
}

void wss_json_row(FILE *stream, struct wss_json *parent, const char *key,
		  const struct wss_report_layout *layout, const void *row)
{
	struct wss_json json = wss_json_object(stream, parent, key);

	write_columns(&json, layout, row);
	if (layout->extra)
		layout->extra(row, &json);
	wss_json_object_end(&json);
}

void wss_json_write_row(FILE *stream, const struct wss_report_layout *layout, const void *row)
{
	wss_json_row(stream, NULL, NULL, layout, row);
}
