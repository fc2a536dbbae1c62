/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reads objects of JSON into structs, by tables of the members that are wanted. The objects come from
 * qmp_json_parse() (qmp/jsonline.h), so they are bounded, but their values are not trusted: a wanted
 * member that has another type, or does not fit, is an error.
 */
#pragma once

#include <stddef.h>

#include "base/amount.h"
#include "base/error.h"

struct json_object;

enum wss_json_type {
	WSS_JSON_TEXT,	  /* char[size]; longer text is an error, as is one that is not UTF-8 */
	WSS_JSON_MESSAGE, /* char[size] for people: longer text is cut, white space becomes blanks */
	WSS_JSON_BOOL,	  /* struct wss_amount: 1 or 0 */
	WSS_JSON_COUNT,	  /* struct wss_amount: a whole number below 2^63 */
	WSS_JSON_NANO,	  /* struct wss_amount: 1e9 times a number from 0 to 9e9, as ns of s */
	WSS_JSON_OBJECT,  /* struct with the members of table */
	WSS_JSON_LIST,	  /* calls element for each element */
	WSS_JSON_HAS,	  /* struct wss_amount: 1, whatever the member is */
};

struct wss_json_field {
	const char *key;
	enum wss_json_type type;
	size_t offset; /* in the struct */
	size_t size;   /* of a text, with its final NUL */
	const struct wss_json_table *table;
	int (*element)(struct json_object *element, void *data, struct wss_error *err);
};

struct wss_json_table {
	const struct wss_json_field *fields;
	size_t n;
};

/* The field of a member with a value of its own, in struct struct_type. */
#define WSS_JSON_FIELD(struct_type, key, json_type, member)                      \
	{                                                                        \
		key, json_type, offsetof(struct struct_type, member),            \
			sizeof(((struct struct_type *)NULL)->member), NULL, NULL \
	}

/* Defines NAME_table, static, of the fields NAME_fields. */
#define WSS_JSON_TABLE(name)                                \
	static const struct wss_json_table name##_table = { \
		name##_fields, sizeof(name##_fields) / sizeof(name##_fields[0])}

/*
 * Reads value, which must be an object, into data. Members that are absent leave data as it is, and
 * those that the table does not name are ignored. WSS_ERR_FAILED names the member.
 */
int wss_json_read(struct json_object *value, const struct wss_json_table *table, void *data,
		  struct wss_error *err);

/*
 * Reads an element of a list: bytes, a number from 0 to 1 EiB that is rounded up to a whole one; null is
 * unknown. WSS_ERR_FAILED.
 */
int wss_json_bytes(struct json_object *element, struct wss_amount *ret_bytes,
		   struct wss_error *err);

/*
 * Reads an element of a list that is a list itself: calls element for each of its elements. WSS_ERR_FAILED.
 */
int wss_json_list_read(struct json_object *list, void *data,
		       int (*element)(struct json_object *element, void *data,
				      struct wss_error *err),
		       struct wss_error *err);

/* Reads an element of a list: a text that fits into size bytes with its final NUL. WSS_ERR_FAILED. */
int wss_json_text(struct json_object *element, char *ret_text, size_t size, struct wss_error *err);

/* Reads an element of a list: a text for people, as WSS_JSON_MESSAGE; anything but a text is "". */
void wss_json_message(struct json_object *element, char *ret_text, size_t size);
