/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One line of QMP as JSON, within the usual limits and within small ones, which are soon
 * reached.
 */
#include <json-c/json.h>

#include "fuzz.h"
#include "qmp/jsonline.h"

static void parse(const char *text, size_t size, const struct qmp_limits *limits)
{
	struct wss_error err = WSS_ERROR_INIT;
	struct json_object *object = NULL;
	size_t tree_bytes = 0;
	int r = qmp_json_parse(text, size, limits, &object, &tree_bytes, &err);

	fuzz_check(r, &err);
	if (r < 0)
		return;
	fuzz_require(json_object_is_type(object, json_type_object));
	fuzz_require(tree_bytes <= limits->tree_bytes);
	qmp_json_type_name(object);
	json_object_put(object);
}

static void jsonline_run(const uint8_t *data, size_t size)
{
	static const struct qmp_limits usual = QMP_LIMITS_DEFAULT;
	static const struct qmp_limits small = {.reply_bytes = 256, .tree_bytes = 4096, .depth = 4};

	parse((const char *)data, size, &usual);
	parse((const char *)data, size, &small);
}

const struct fuzz_target fuzz_target = {
	.name = "jsonline",
	.run = jsonline_run,
	.max_bytes = 65536,
	.mutations = 60000,
};
