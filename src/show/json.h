/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * JSON straight into a stream. Allocates no memory, so nothing is lost or cut short for lack of it;
 * ferror() of the stream shows whether all of it was written.
 */
#pragma once

#include "show/report.h"

/* Object or list that is being written. */
struct wss_json {
	FILE *stream;
	bool any; /* it has a member */
};

/*
 * Starts an object as the next member of its parent (NULL: it stands alone); key is NULL in a list.
 */
struct wss_json wss_json_object(FILE *stream, struct wss_json *parent, const char *key);

/* Starts a list, likewise. */
struct wss_json wss_json_list(FILE *stream, struct wss_json *parent, const char *key);

/* Writes the next member; key is NULL in a list. An absent value is left out. */
void wss_json_value(struct wss_json *json, const char *key, const struct wss_value *value);

/* Writes null as the next member: an unknown figure in a list whose places mean something. */
void wss_json_null(struct wss_json *json, const char *key);

/* Writes a row of a report as the next member, an object with all its columns. */
void wss_json_row(FILE *stream, struct wss_json *parent, const char *key,
		  const struct wss_report_layout *layout, const void *row);

/* Ends what wss_json_object() or wss_json_list() started. */
void wss_json_object_end(struct wss_json *json);
void wss_json_list_end(struct wss_json *json);
