/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Tests in C: TEST(test_x) { ... } defines a test, and main() runs all of a file in their order by
 * tests_run(). A test cannot be forgotten in a list.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

/* Tests, their fixtures and the callbacks they pass need few of their arguments. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

#define TESTS_MAX 100

/* cmocka passes over the places without a test. */
static struct CMUnitTest all_tests[TESTS_MAX];

static inline void test_add(struct CMUnitTest test)
{
	size_t n = 0;

	while (n < TESTS_MAX && all_tests[n].test_func)
		n++;
	if (n == TESTS_MAX)
		__builtin_trap();
	all_tests[n] = test;
}

#define TEST(name)                                                   \
	static void name(void **unused);                             \
	__attribute__((constructor)) static void name##_add(void)    \
	{                                                            \
		test_add((struct CMUnitTest)cmocka_unit_test(name)); \
	}                                                            \
	static void name(void **unused)

/* Runs all tests between setup and teardown, either of which may be NULL. Returns main()'s result. */
/* With TEST=PATTERN in the environment only the tests whose names match it. */
static inline int tests_run_within(CMFixtureFunction setup, CMFixtureFunction teardown)
{
	if (getenv("TEST"))
		cmocka_set_test_filter(getenv("TEST"));
	return cmocka_run_group_tests(all_tests, setup, teardown);
}

static inline int tests_run(void)
{
	return tests_run_within(NULL, NULL);
}

/* The same with setup and teardown around each test. */
static inline int tests_run_each(CMFixtureFunction setup, CMFixtureFunction teardown)
{
	for (size_t i = 0; i < TESTS_MAX && all_tests[i].test_func; i++) {
		all_tests[i].setup_func = setup;
		all_tests[i].teardown_func = teardown;
	}
	return tests_run();
}
