/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * JSON straight into a stream, in json.c. Nothing is allocated, so no output is lost or cut
 * short where memory is; whether all of it arrived is for the stream to say (ferror()).
 */
#ifndef WSS_OUT_REPORT_PRIVATE_H
#define WSS_OUT_REPORT_PRIVATE_H

#include "out/report.h"

/* An object or a list that is being written. */
struct wss_json {
	FILE *stream;
	bool any; /* has a member */
};

/* Begins an object as the next member of its parent (NULL: it stands alone): key NULL in a
 * list. */
struct wss_json wss_json_object(FILE *stream, struct wss_json *parent, const char *key);

/* The same for a list. */
struct wss_json wss_json_list(FILE *stream, struct wss_json *parent, const char *key);

/* The next member: key NULL in a list. An absent value is left out. */
void wss_json_value(struct wss_json *json, const char *key, const struct wss_value *value);

/* The end of what wss_json_object() or wss_json_list() began. */
void wss_json_object_end(struct wss_json *json);
void wss_json_list_end(struct wss_json *json);

/* Writes a row as a JSON object in one line without newline. */
void wss_json_write_row(FILE *stream, const struct wss_report_layout *layout, const void *row);

#endif
