/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/testing.h"

#include <string.h>

#include "show/axis.h"

static const struct wss_axis_box box = {100, 900, 50, 450};

static bool has(const struct wss_ticks *ticks, const char *text)
{
	for (size_t i = 0; i < ticks->n; i++)
		if (strcmp(ticks->list[i].text, text) == 0)
			return true;
	return false;
}

TEST(test_sizes)
{
	static const struct {
		uint64_t bytes;
		const char *text;
	} cases[] = {
		{0, "0 B"},
		{4096, "4 KiB"},
		{640 << 10, "640 KiB"},
		{5ULL << 28, "1.25 GiB"},
		{9ULL << 27, "1152 MiB"},
		{1025ULL << 30, "1025 GiB"},
		{1ULL << 62, "4 EiB"},
	};
	char text[24];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		wss_axis_size_label(cases[i].bytes, text, sizeof(text));
		assert_string_equal(text, cases[i].text);
	}
}

TEST(test_times)
{
	static const struct {
		double ns, step_ns, end_ns;
		const char *text;
	} cases[] = {
		{0, 5e9, 22e9, "0 s"},
		{22.5e9, 5e9, 22.5e9, "22.5 s"},
		{0.25e9, 0.05e9, 1e9, "0.25 s"},
		{100e6, 50e6, 400e6, "100 ms"},
		{5400e9, 1800e9, 7200e9, "90 min"},
		{5400e9, 3600e9, 36000e9, "1.5 h"},
		/* A short part of a long recording. */
		{86401.5e9, 1e9, 86410e9, "86401.5 s"},
	};
	char text[16];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		wss_axis_time_label(cases[i].ns, cases[i].step_ns, cases[i].end_ns, text,
				    sizeof(text));
		assert_string_equal(text, cases[i].text);
	}
}

TEST(test_trim)
{
	char zeros[] = "1.50 GiB", whole[] = "40.00 s", none[] = "100 s";

	wss_axis_trim(zeros);
	wss_axis_trim(whole);
	wss_axis_trim(none);
	assert_string_equal(zeros, "1.5 GiB");
	assert_string_equal(whole, "40 s");
	assert_string_equal(none, "100 s");
}

/* Both ends have a label; other labels that would be too close to these are left out. */
TEST(test_ends)
{
	struct wss_ticks across = {.vertical = false}, down = {.vertical = true};

	wss_ticks_time(&across, &box, 3.2e9, 60.4e9);
	assert_true(has(&across, "3.2 s") && has(&across, "60.4 s") && has(&across, "50 s"));
	assert_false(has(&across, "60 s"));
	assert_int_equal(wss_ticks_size(&down, &box, 300ULL << 20), 320ULL << 20);
	assert_true(has(&down, "0 B") && has(&down, "256 MiB") && has(&down, "320 MiB"));
	assert_int_equal(wss_ticks_size(&across, &box, 0), 4096);
}

int main(void)
{
	return tests_run();
}
