/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "hosttest.h"

#include "track/fault-event.h"

static char *tree;
static struct wss_root root;

static int set_up(void **unused)
{
	(void)unused;
	tree = make_tree();
	assert_int_equal(wss_root_open(tree, &root, NULL), 0);
	return 0;
}

static int tear_down(void **unused)
{
	(void)unused;
	wss_root_close(&root);
	remove_tree(tree);
	return 0;
}

/* Puts the format file of a kernel into the invented machine's tracefs. */
static void put_format(const char *place, const char *kernel)
{
	struct wss_root fixtures;
	char path[PATH_MAX];
	char *text;

	assert_int_equal(wss_root_open(WSS_FIXTURES "/kvm_page_fault", &fixtures, NULL), 0);
	assert_int_equal(wss_root_read(&fixtures, kernel, 1 << 16, &text, NULL), 0);
	put_text(tree, make_path(path, "%s/events/kvm/kvm_page_fault/format", place), text);
	free(text);
	wss_root_close(&fixtures);
}

static void assert_args(unsigned address, unsigned error)
{
	struct wss_fault_event event = { 99, 99 };
	struct wss_error err = WSS_ERROR_INIT;

	if (wss_fault_event_read(&root, &event, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(event.address_arg, address);
	assert_int_equal(event.error_arg, error);
}

static void test_new(void **unused)
{
	(void)unused;
	put_format("sys/kernel/tracing", "linux-6.1");
	assert_args(1, 2);
}

static void test_old(void **unused)
{
	(void)unused;
	put_format("sys/kernel/tracing", "linux-5.10");
	assert_args(0, 1);
}

/* tracefs that is not mounted at its own place is found below debugfs. */
static void test_debugfs(void **unused)
{
	(void)unused;
	put_format("sys/kernel/debug/tracing", "linux-6.1");
	assert_args(1, 2);
}

static void test_absent(void **unused)
{
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_fault_event event;

	(void)unused;
	assert_int_equal(wss_fault_event_read(&root, &event, &err), -1);
	assert_error(&err, WSS_ERR_UNSUPPORTED, "tracefs");
}

/* A layout that differs even slightly from the known ones would give wrong addresses. */
static void test_unknown(void **unused)
{
	static const char *const formats[] = {
		"",
		"field:",
		"field:u64 fault_address;",
		"field:u64 error_code;\nfield:u64 fault_address;",
		"field:int vcpu_id;\nfield:u64 fault_address;\nfield:u64 error_code;",
		"field:u64 fault_address;\nfield:u64 error_code;\nfield:u64 new_one;",
		"field:a 1;field:a 2;field:a 3;field:a 4;field:a 5;field:a 6;field:a 7;field:a 8;field:a 9;",
		"field:u64 a_name_that_is_much_longer_than_any_field_of_any_tracepoint_is;",
	};

	(void)unused;
	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
		struct wss_fault_event event = { 99, 99 };
		struct wss_error err = WSS_ERROR_INIT;

		assert_int_equal(wss_fault_event_parse(formats[i], &event, &err), -1);
		assert_error(&err, WSS_ERR_UNSUPPORTED, "unknown fields");
		assert_int_equal(event.address_arg, 99);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_new), TEST(test_old),	    TEST(test_debugfs),
		TEST(test_absent), TEST(test_unknown),
	};

	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
