/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Parses a peer's JSON into an object, within limits: a line of QMP, or an answer of the service, which may
 * have more lines.
 */
#pragma once

#include <json-c/json.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "qmp.h"

/*
 * Parses len bytes as exactly one JSON object. The memory that the object needs is estimated
 * from the punctuation first, so that a line within reply_bytes cannot become a tree hundreds
 * of times its size. Returns 0 with an object for json_object_put() and, where ret_tree_bytes
 * is not NULL, the estimate; -1 with WSS_ERR_FAILED (not JSON, not an object, too deep, too
 * large) or WSS_ERR_NO_MEMORY.
 */
int qmp_json_parse(const char *text, size_t len, const struct qmp_limits *limits,
		   struct json_object **ret_object, size_t *ret_tree_bytes, struct wss_error *err);

/* Returns the name of a type for messages: "a string", "an object" ... */
const char *qmp_json_name_of_type(enum json_type type);

/* Returns the name of a value's type. */
const char *qmp_json_type_name(struct json_object *value);

/*
 * Hands value over to an object, as its member key, or to an array (key NULL). -1: out of memory,
 * also for value NULL, which json-c would take for null; value is released then.
 */
int qmp_json_put(struct json_object *container, const char *key, struct json_object *value);

static inline void qmp_cleanup_json(struct json_object **object)
{
	json_object_put(*object);
}

#define qmp_auto_json wss_cleanup(qmp_cleanup_json)
