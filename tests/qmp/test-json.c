/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Parses lines into JSON within limits, and typed access to it. */
#include "fixture.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qmp/jsonline.h"

static const struct qmp_limits defaults = QMP_LIMITS_DEFAULT;

static void refuse(const char *text, size_t len, const char *needle)
{
	struct wss_error err = WSS_ERROR_INIT;
	struct json_object *object = NULL;

	if (qmp_json_parse(text, len, &defaults, &object, NULL, &err) == 0)
		fail_msg("accepted: %s", text);
	assert_null(object);
	assert_code(&err, WSS_ERR_FAILED);
	assert_text(&err, needle);
}

static struct json_object *parse(const char *text)
{
	struct wss_error err = WSS_ERROR_INIT;
	struct json_object *object = NULL;

	if (qmp_json_parse(text, strlen(text), &defaults, &object, NULL, &err) < 0)
		fail_msg("%s: %s", err.text, text);
	return object;
}

TEST(test_refused_lines)
{
	static const struct {
		const char *text, *needle;
	} cases[] = {
		{"", "ends too early"},
		{" \r", "ends too early"},
		{"{\"a\": 1", "ends too early"},
		{"{\"a\": \"b", "ends too early"},
		{"{\"a\": 1} x", "not JSON"},
		{"{\"a\": 1}{\"a\": 1}", "not JSON"},
		{"{\"a\": 1,}", "not JSON"},
		{"{'a': 1}", "not JSON"},
		{"{a: 1}", "not JSON"},
		{"{\"a\": 1 /* b */}", "not JSON"},
		{"QEMU 7.2.22 monitor - type 'help' for more information", "not JSON"},
		{"\xff\xfe", "not JSON"},
		{"{\"a\": \"\xff\"}", "not JSON"},
		{"{\"a\": \"\x01\"}", "control character 0x01"},
		{"{\"a\": \"\n\"}", "control character 0x0a"},
		{"[]", "an array instead of an object"},
		{"null", "ends too early"},
		{"\"{}\"", "a string instead of an object"},
		{"}", "not JSON"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		refuse(cases[i].text, strlen(cases[i].text), cases[i].needle);
	refuse("{\"a\": 1\0}", 9, "control character 0x00");
	refuse("{\"a\": \"\\\0\"}", 11, "control character 0x00");
}

TEST(test_accepted_lines)
{
	json_object_put(parse("{}"));
	json_object_put(parse("{\n\t\"a\":\n1\n}\n"));
	json_object_put(parse("  {\"a\": [1, -2, 3.5, true, null, \"x\\\\\"]}\t\r"));
	json_object_put(parse("{\"brackets [{[{ in a string \\\" [[\": \"\\\\\"}"));
}

/* json-c keeps the last of two, and silently keeps none when out of memory. */
TEST(test_lost_member)
{
	static const char text[] = "{\"a\": {\"b\": 1, \"c\": 2, \"b\": 3}}";
	struct json_object *object = NULL;
	struct wss_error err = WSS_ERROR_INIT;

	assert_int_equal(qmp_json_parse(text, strlen(text), &defaults, &object, NULL, &err), -1);
	assert_int_equal(err.code, WSS_ERR_NO_MEMORY);
	assert_non_null(strstr(err.text, "only 3 of the JSON's 4 members were kept: it names one "
					 "twice, or virt-wss is out of memory"));
}

/* Makes "{"a": [[…]]}" with this number of arrays. */
static char *nested(unsigned int arrays)
{
	char *text = calloc(1, 2 * (size_t)arrays + 16);

	assert_non_null(text);
	strcpy(text, "{\"a\": ");
	memset(text + strlen(text), '[', arrays);
	memset(text + strlen(text), ']', arrays);
	strcat(text, "}");
	return text;
}

TEST(test_depth)
{
	char *text = nested(defaults.depth - 1);

	json_object_put(parse(text));
	free(text);
	text = nested(defaults.depth);
	refuse(text, strlen(text), "nested deeper than 64");
	free(text);
	text = nested(1000000);
	refuse(text, strlen(text), "nested deeper than 64");
	free(text);
}

/* Makes {"a": [PIECE,PIECE…]} of about this size. */
static char *repeated(const char *piece, size_t bytes)
{
	size_t len = strlen(piece);
	char *text = malloc(bytes + len + 32), *at = text;

	assert_non_null(text);
	at += sprintf(at, "{\"a\": [%s", piece);
	while ((size_t)(at - text) < bytes)
		at += sprintf(at, ",%s", piece);
	strcpy(at, "]}");
	return text;
}

static const char *const pieces[] = {
	"0",
	"[]",
	"{}",
	"\"\"",
	"1.5",
	"{\"a\":0}",
	"[0]",
	"[[[[0]]]]",
	"{\"a\":{\"b\":{}}}",
	("{\"a\":0,\"b\":0,\"c\":0,\"d\":0,\"e\":0,\"f\":0,\"g\":0,\"h\":0,"
	 "\"i\":0,\"j\":0,\"k\":0,\"l\":0}"),
	"\"a string that is long enough to need memory of its own, beyond what is inside\"",
};

/*
 * The estimate is at least what json-c allocates; measured where malloc can be asked (not under
 * ASan).
 */
TEST(test_estimate_is_an_upper_bound)
{
	for (size_t i = 0; i < sizeof(pieces) / sizeof(*pieces); i++) {
		const struct qmp_limits unlimited = {
			.reply_bytes = SIZE_MAX, .tree_bytes = SIZE_MAX, .depth = 64};
		char *text = repeated(pieces[i], 100000);
		struct json_object *object = NULL;
		size_t estimate = 0, before = mallinfo2().uordblks, taken;

		assert_int_equal(
			qmp_json_parse(text, strlen(text), &unlimited, &object, &estimate, NULL),
			0);
		taken = mallinfo2().uordblks - before;
		if (taken > estimate)
			fail_msg("%s: %zu bytes estimated, %zu taken", pieces[i], estimate, taken);
		json_object_put(object);
		free(text);
	}
}

TEST(test_tree_bound)
{
	char *text = repeated("{}", 4000000);

	refuse(text, strlen(text), "more than 33554432 bytes of memory");
	free(text);
}

TEST(test_get_right_types)
{
	struct json_object *obj = parse("{\"s\": \"text\", \"u\": 18446744073709551614, "
					"\"b\": true, \"o\": {\"x\": 1}, \"l\": [1], \"n\": null}");
	struct json_object *inner = NULL;
	const char *text = NULL;
	uint64_t u = 0;
	bool b = false;
	char copy[5];

	assert_int_equal(qmp_get_string(obj, "s", &text, NULL), 0);
	assert_string_equal(text, "text");
	assert_int_equal(qmp_copy_string(obj, "s", copy, sizeof(copy), NULL), 0);
	assert_string_equal(copy, "text");
	assert_int_equal(qmp_get_uint64(obj, "u", &u, NULL), 0);
	assert_true(u == UINT64_MAX - 1);
	assert_int_equal(qmp_get_bool(obj, "b", &b, NULL), 0);
	assert_true(b);
	assert_int_equal(qmp_get_object(obj, "o", &inner, NULL), 0);
	assert_int_equal(qmp_get_uint64(inner, "x", &u, NULL), 0);
	assert_int_equal(u, 1);
	assert_int_equal(qmp_get_array(obj, "l", &inner, NULL), 0);
	assert_true(qmp_has(obj, "b"));
	assert_false(qmp_has(obj, "n"));
	assert_false(qmp_has(obj, "z"));
	assert_false(qmp_has(NULL, "z"));
	assert_false(qmp_has(inner, "z"));
	json_object_put(obj);
}

/* Runs the getter of that letter; its output must not change. */
static int get(char getter, struct json_object *obj, const char *key, struct wss_error *err)
{
	struct json_object *inner = NULL;
	const char *text = NULL;
	uint64_t u = 77;
	bool b = false;
	char copy[5] = "orig";
	int result = 0;

	switch (getter) {
	case 's':
		result = qmp_get_string(obj, key, &text, err);
		break;
	case 'c':
		result = qmp_copy_string(obj, key, copy, sizeof(copy), err);
		break;
	case 'u':
		result = qmp_get_uint64(obj, key, &u, err);
		break;
	case 'b':
		result = qmp_get_bool(obj, key, &b, err);
		break;
	case 'o':
		result = qmp_get_object(obj, key, &inner, err);
		break;
	case 'a':
		result = qmp_get_array(obj, key, &inner, err);
		break;
	}
	assert_true(!text && u == 77 && !b && !inner && !strcmp(copy, "orig"));
	return result;
}

/*
 * Outside its range json-c saturates or (0.17, 0.18) refuses the text; either way there is no
 * number.
 */
TEST(test_far_out_of_range)
{
	static const char *const texts[] = {
		"{\"k\": -99999999999999999999}",
		"{\"k\": 99999999999999999999}",
	};

	for (size_t n = 0; n < sizeof(texts) / sizeof(*texts); n++) {
		struct wss_error err = WSS_ERROR_INIT;
		struct json_object *object = NULL;
		uint64_t u = 77;

		if (qmp_json_parse(texts[n], strlen(texts[n]), &defaults, &object, NULL, &err) < 0)
			continue;
		assert_int_equal(qmp_get_uint64(object, "k", &u, &err), -1);
		assert_true(u == 77);
		json_object_put(object);
	}
}

TEST(test_get_refuses)
{
	static const struct {
		char getter;
		const char *text, *needle;
	} cases[] = {
		{'s', "{}", "\"k\" is missing"},
		{'u', "{\"K\": 1}", "\"k\" is missing"},
		{'s', "{\"k\": null}", "\"k\" is null, not a string"},
		{'s', "{\"k\": 1}", "\"k\" is an integer, not a string"},
		{'s', "{\"k\": \"a\\u0000b\"}", "NUL character"},
		{'c', "{\"k\": \"12345\"}", "5 characters, limit 4"},
		{'c', "{\"k\": []}", "an array, not a string"},
		{'u', "{\"k\": \"1\"}", "a string, not an integer"},
		{'u', "{\"k\": 1.0}", "a fraction, not an integer"},
		{'u', "{\"k\": 18446744073709551615}", "out of range"},
		{'u', "{\"k\": -1}", "negative"},
		{'u', "{\"k\": true}", "a boolean, not an integer"},
		{'b', "{\"k\": 1}", "an integer, not a boolean"},
		{'o', "{\"k\": []}", "an array, not an object"},
		{'a', "{\"k\": {}}", "an object, not an array"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct wss_error err = WSS_ERROR_INIT;
		struct json_object *obj = parse(cases[i].text);

		assert_int_equal(get(cases[i].getter, obj, "k", &err), -1);
		assert_code(&err, WSS_ERR_FAILED);
		assert_text(&err, cases[i].needle);
		json_object_put(obj);
	}
}

TEST(test_get_from_no_object)
{
	struct json_object *list = json_object_new_array();
	const char *getters = "scuboa";

	for (; *getters; getters++) {
		struct wss_error err = WSS_ERROR_INIT;

		assert_int_equal(get(*getters, NULL, "k", &err), -1);
		assert_text(&err, "null instead of an object with \"k\"");
		assert_int_equal(get(*getters, list, "k", &err), -1);
		assert_text(&err, "an array instead of an object with \"k\"");
	}
	json_object_put(list);
}

int main(void)
{
	return tests_run();
}
