/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "jsonline.h"

#include <ctype.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>

/*
 * Upper bounds of json-c 0.16's allocations on a 64-bit machine, with malloc's own overhead:
 * an object comes with a hash table of 16 entries that grows by doubling, an array starts with
 * 32 slots. tests/qmp measures them.
 */
enum {
	OBJECT_BYTES = 960,
	ARRAY_BYTES = 448,
	MEMBER_BYTES = 256,
	VALUE_BYTES = 128,
};

struct scan {
	size_t tree_bytes, members;
	unsigned int depth;
	bool in_string;
};

static void scan_structure(struct scan *s, char c)
{
	switch (c) {
	case '"':
		s->in_string = true;
		break;
	case '{':
		s->depth++;
		s->tree_bytes += OBJECT_BYTES;
		break;
	case '[':
		s->depth++;
		s->tree_bytes += ARRAY_BYTES + VALUE_BYTES;
		break;
	case '}':
	case ']':
		if (s->depth)
			s->depth--;
		break;
	case ':':
		s->members++;
		s->tree_bytes += MEMBER_BYTES;
		break;
	case ',':
		s->tree_bytes += VALUE_BYTES;
		break;
	default:
		break;
	}
}

/*
 * Characters that JSON allows outside a string. json-c accepts more, in strict mode as well:
 * strings in single quotes would hide their content from this scan.
 */
static bool allowed_outside(unsigned char c)
{
	return isalnum(c) || (c && strchr("{}[]:,\"+-. \t\r\n", c));
}

static int scan_line(const char *text, size_t len, const struct qmp_limits *limits,
		     size_t *ret_tree_bytes, size_t *ret_members, struct wss_error *err)
{
	struct scan s = {.tree_bytes = len};

	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)text[i];

		if (c < 0x20 && (s.in_string || !allowed_outside(c)))
			return wss_error_set(err, WSS_ERR_FAILED,
					     "not JSON: control character 0x%02x", c);
		if (!s.in_string && !allowed_outside(c))
			return wss_error_set(err, WSS_ERR_FAILED,
					     "not JSON: unexpected character at byte %zu", i);
		if (!s.in_string)
			scan_structure(&s, text[i]);
		else if (c == '"')
			s.in_string = false;
		else if (c == '\\' && i + 1 < len && (text[i + 1] == '"' || text[i + 1] == '\\'))
			i++;
		if (s.depth > limits->depth)
			return wss_error_set(err, WSS_ERR_FAILED, "JSON nested deeper than %u",
					     limits->depth);
		if (s.tree_bytes > limits->tree_bytes)
			return wss_error_set(err, WSS_ERR_FAILED,
					     "JSON would need more than %zu bytes of memory",
					     limits->tree_bytes);
	}
	*ret_tree_bytes = s.tree_bytes;
	*ret_members = s.members;
	return 0;
}

static struct json_tokener *tokener_new(unsigned int depth)
{
	/* json-c counts the value inside the innermost container as a level of its own. */
	struct json_tokener *tok = json_tokener_new_ex((int)depth + 1);

	if (tok)
		json_tokener_set_flags(tok, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
	return tok;
}

/*
 * Counts the members of all objects in a value. The depth of the recursion is that of the
 * text, which is bounded.
 */
static size_t count_members(struct json_object *value)
{
	struct lh_entry *entry;
	size_t n = 0;

	if (json_object_is_type(value, json_type_array))
		for (size_t i = 0; i < json_object_array_length(value); i++)
			n += count_members(json_object_array_get_idx(value, i));
	if (json_object_is_type(value, json_type_object))
		lh_foreach(json_object_get_object(value), entry) n +=
			1 + count_members((struct json_object *)lh_entry_v(entry));
	return n;
}

int qmp_json_parse(const char *text, size_t len, const struct qmp_limits *limits,
		   struct json_object **ret_object, size_t *ret_tree_bytes, struct wss_error *err)
{
	struct json_object *object;
	struct json_tokener *tok;
	enum json_tokener_error fault;
	size_t parsed, tree_bytes = 0, members = 0, kept;

	while (len && strchr(" \t\r\n", text[len - 1]) && text[len - 1])
		len--;
	if (len > INT_MAX)
		return wss_error_set(err, WSS_ERR_FAILED,
				     "JSON of %zu bytes is too long (limit %d)", len, INT_MAX);
	if (scan_line(text, len, limits, &tree_bytes, &members, err) < 0)
		return -1;
	tok = tokener_new(limits->depth);
	if (!tok)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	object = json_tokener_parse_ex(tok, text, (int)len);
	fault = json_tokener_get_error(tok);
	parsed = json_tokener_get_parse_end(tok);
	json_tokener_free(tok);
	/* json-c 0.16 gives up silently when it cannot allocate a value. */
	if (fault == json_tokener_success && !object && parsed != len)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	if (fault == json_tokener_continue) {
		json_object_put(object);
		return wss_error_set(err, WSS_ERR_FAILED, "not JSON: the text ends too early");
	}
	if (fault != json_tokener_success || parsed != len) {
		json_object_put(object);
		return wss_error_set(err, WSS_ERR_FAILED, "not JSON: %s at byte %zu",
				     fault == json_tokener_success ? "trailing text"
								   : json_tokener_error_desc(fault),
				     parsed);
	}
	/* json-c 0.16 silently drops a member when it cannot copy its name. */
	kept = count_members(object);
	if (kept != members) {
		json_object_put(object);
		return wss_error_set(err, WSS_ERR_NO_MEMORY,
				     "only %zu of the JSON's %zu members were kept: it names one "
				     "twice, or virt-wss is out of memory",
				     kept, members);
	}
	if (!json_object_is_type(object, json_type_object)) {
		wss_error_set(err, WSS_ERR_FAILED, "%s instead of an object",
			      qmp_json_type_name(object));
		json_object_put(object);
		return -1;
	}
	*ret_object = object;
	if (ret_tree_bytes)
		*ret_tree_bytes = tree_bytes;
	return 0;
}

const char *qmp_json_name_of_type(enum json_type type)
{
	switch (type) {
	case json_type_null:
		return "null";
	case json_type_boolean:
		return "a boolean";
	case json_type_double:
		return "a fraction";
	case json_type_int:
		return "an integer";
	case json_type_object:
		return "an object";
	case json_type_array:
		return "an array";
	case json_type_string:
		return "a string";
	}
	return "something else";
}

const char *qmp_json_type_name(struct json_object *value)
{
	return qmp_json_name_of_type(json_object_get_type(value));
}

int qmp_json_put(struct json_object *container, const char *key, struct json_object *value)
{
	int failed = -1;

	if (value)
		failed = key ? json_object_object_add(container, key, value)
			     : json_object_array_add(container, value);
	if (failed)
		json_object_put(value);
	return failed ? -1 : 0;
}
