/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The choice of columns, the order of rows, and the fit to a terminal. */
#include "hosttest.h"

#include "base/nearest.h"
#include "history/sample-report.h"
#include "pages/range-report.h"
#include "pages/refset-columns.h"
#include "show/report.h"
#include "show/width.h"

#define CJK "\xe6\x95\xb0\xe6\x8d\xae\xe5\xba\x93" /* three characters, six columns */

struct row {
	const char *name;
	struct wss_value value;
	const char *text;
};

static struct wss_value get_name(const void *row)
{
	return wss_value_text(((const struct row *)row)->name);
}

static struct wss_value get_value(const void *row)
{
	return ((const struct row *)row)->value;
}

static struct wss_value get_text(const void *row)
{
	return wss_value_text(((const struct row *)row)->text);
}

static const struct wss_column columns[] = {
	{"name", NULL, "NAME", -6, WSS_GET(get_name), "The name"},
	{"value_bytes", NULL, "VALUE", 8, WSS_GET(get_value), "The value, in bytes"},
	{"text", NULL, "TEXT", -10, WSS_GET(get_text), "A text"},
	{"people", NULL, "PEOPLE", -6, WSS_GET(get_name), "The name again"},
};

static const struct wss_report_layout layout = {
	.schema = "virt-wss/test/1",
	.array_key = "rows",
	.columns = columns,
	.n_columns = sizeof(columns) / sizeof(columns[0]),
	.table_only = "people",
	.shown = "name,value_bytes",
	.wide = "name,value_bytes,text",
};

#define BYTES(n)                                      \
	{                                             \
		.kind = WSS_KIND_BYTES, .number = (n) \
	}
#define ABSENT                          \
	{                               \
		.kind = WSS_KIND_ABSENT \
	}

static const struct row four[] = {
	{"b", BYTES(2048), "ten"},
	{"a", ABSENT, "two"},
	{"c", BYTES(1 << 20), NULL},
	{"d", BYTES(100), "six"},
};

struct setting {
	enum wss_format format;
	struct wss_view view;
	size_t first_width;
	bool hold;
};

/* Returns the output, malloc()ed. */
static char *print(const struct setting *setting, const struct row *rows, size_t n)
{
	struct wss_report *report;
	struct wss_error err = WSS_ERROR_INIT;
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	assert_non_null(f);
	assert_int_equal(
		wss_report_open(f, setting->format, &setting->view, &layout, &report, &err), 0);
	wss_report_set_first_width(report, setting->first_width);
	if (setting->hold)
		wss_report_hold(report);
	for (size_t i = 0; i < n; i++)
		wss_report_row(report, &rows[i]);
	assert_int_equal(wss_report_close(report, &err), 0);
	fclose(f);
	return text;
}

static void assert_printed(struct setting setting, const struct row *rows, size_t n,
			   const char *expected)
{
	wss_auto_free char *text = print(&setting, rows, n);

	assert_string_equal(text, expected);
}

TEST(test_columns)
{
	assert_printed((struct setting){0}, four, 1, "NAME       VALUE\nb          2 KiB\n");
	assert_printed((struct setting){.view.wide = true}, four, 1,
		       "NAME       VALUE  TEXT\nb          2 KiB  ten\n");
	assert_printed((struct setting){.view.columns = "text,name"}, four, 1,
		       "TEXT        NAME\nten         b\n");
	/* A column for tables only appears in a CSV that asks for it, and in no other. */
	assert_printed((struct setting){.format = WSS_FORMAT_CSV}, four, 1,
		       "name,value_bytes,text\r\nb,2048,ten\r\n");
	assert_printed(
		(struct setting){WSS_FORMAT_CSV, {.columns = "people,value_bytes"}, 0, false}, four,
		1, "people,value_bytes\r\nb,2048\r\n");
	/* --wide does not change the CSV. */
	assert_printed((struct setting){WSS_FORMAT_CSV, {.wide = true}, 0, false}, four, 1,
		       "name,value_bytes,text\r\nb,2048,ten\r\n");
}

/* Sorts by value and not by text, unknown values last in either order, without losing rows. */
TEST(test_sort)
{
	assert_printed((struct setting){.view.sort = "value_bytes"}, four, 4,
		       "NAME       VALUE\nd          100 B\nb          2 KiB\n"
		       "c          1 MiB\na              -\n");
	assert_printed((struct setting){.view.sort = "-value_bytes"}, four, 4,
		       "NAME       VALUE\nc          1 MiB\nb          2 KiB\n"
		       "d          100 B\na              -\n");
	/* Sorting by a column that is not shown also works. */
	assert_printed((struct setting){.view.sort = "text", .view.columns = "name"}, four, 4,
		       "NAME\nd\nb\na\nc\n");
	assert_printed(
		(struct setting){WSS_FORMAT_CSV, {.sort = "-name", .columns = "name"}, 0, false},
		four, 4, "name\r\nd\r\nc\r\nb\r\na\r\n");
	assert_printed((struct setting){.view.sort = "name"}, NULL, 0, "NAME       VALUE\n");
}

/* JSON has all columns, and keeps the order of the rows. */
TEST(test_json_has_all)
{
	struct setting plain = {.format = WSS_FORMAT_JSON};
	struct setting asked = {WSS_FORMAT_JSON, {true, "name", "name", 20}, 0, false};
	wss_auto_free char *a = print(&plain, four, 4), *b = print(&asked, four, 4);

	assert_string_equal(a, b);
	assert_non_null(strstr(a, "\"text\": \"ten\""));
	assert_null(strstr(a, "people"));
}

TEST(test_unknown_columns)
{
	static const struct {
		const char *list, *says;
	} table[] = {
		{"nmae",
		 "no column 'nmae'; did you mean 'name'? Columns: name, value_bytes, text, people"},
		{"name,value", "did you mean 'value_bytes'"},
		{"VALUE", "did you mean 'value_bytes'"},
		{"", "no column ''. Columns: name"},
		{"name,", "no column ''"},
		{"name,,text", "no column ''"},
		{"frobnicate", "no column 'frobnicate'. Columns: name"},
		{"name ", "no column 'name '; did you mean 'name'"},
	};
	const struct wss_report_layout *samples = wss_sample_layout(true, true);
	struct wss_error err = WSS_ERROR_INIT;

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		wss_error_clear(&err);
		assert_int_equal(wss_view_check_columns(&layout, table[i].list, &err), -1);
		assert_error(&err, WSS_ERR_USAGE, table[i].says);
	}
	assert_int_equal(wss_view_check_columns(&layout, "text,name,text", &err), 0);
	assert_int_equal(wss_view_check_sort(&layout, "-name", &err), 0);
	assert_int_equal(wss_view_check_sort(&layout, "--name", &err), -1);
	assert_int_equal(wss_view_check_sort(&layout, "", &err), -1);
	/* More columns than one line holds: the message has their number. */
	wss_error_clear(&err);
	assert_int_equal(wss_view_check_columns(samples, "wss", &err), -1);
	assert_error(&err, WSS_ERR_USAGE, "did you mean 'wss_bytes'");
	assert_string_equal(err.text + strlen(err.text) - strlen(" more"), " more");
	assert_int_equal(wss_report_open(stdout, WSS_FORMAT_TABLE, &(struct wss_view){.sort = "x"},
					 &layout, &(struct wss_report *){NULL}, &err),
			 -1);
}

TEST(test_edit_distance)
{
	assert_int_equal(wss_edit_distance("", ""), 0);
	assert_int_equal(wss_edit_distance("", "abc"), 3);
	assert_int_equal(wss_edit_distance("abc", "abc"), 0);
	assert_int_equal(wss_edit_distance("kitten", "sitting"), 3);
	assert_int_equal(wss_edit_distance("ab", "ba"), 2);
	assert_true(wss_is_slip("smaple", 2));
	assert_false(wss_is_slip("ab", 2));
}

TEST(test_bounds)
{
	static const struct {
		struct wss_value value;
		const char *text;
	} table[] = {
		{{.kind = WSS_KIND_BYTES, .number = 144 << 20, .bound = WSS_BOUND_AT_MOST},
		 "<= 144 MiB"},
		{{.kind = WSS_KIND_BYTES, .number = 144 << 20, .bound = WSS_BOUND_AT_LEAST},
		 ">= 144 MiB"},
		{{.kind = WSS_KIND_BYTES, .number = 144 << 20}, "144 MiB"},
		{{.kind = WSS_KIND_SHARE, .real = 0.051, .bound = WSS_BOUND_AT_MOST}, "<=5.1%"},
		{{.kind = WSS_KIND_SHARE, .real = 0.05101, .bound = WSS_BOUND_AT_MOST}, "<=5.2%"},
		{{.kind = WSS_KIND_SHARE, .real = 0.05199, .bound = WSS_BOUND_AT_LEAST}, ">=5.1%"},
		{{.kind = WSS_KIND_SHARE, .real = 0.05199}, "5.2%"},
		{{.kind = WSS_KIND_COUNT, .number = 7, .bound = WSS_BOUND_AT_MOST}, "<= 7"},
		{{.kind = WSS_KIND_COUNT, .number = 3, .text = "3 of 10"}, "3 of 10"},
		{{.kind = WSS_KIND_PERCENT, .number = 20}, "20%"},
		{{.kind = WSS_KIND_ADDRESS, .number = 0x100000000}, "0x100000000"},
		{{.kind = WSS_KIND_ABSENT, .text = "x", .bound = WSS_BOUND_AT_MOST}, "-"},
	};
	struct wss_amount none = {false, 0}, low = wss_amount_of(10), high = wss_amount_of(20);

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct row row = {"a", table[i].value, NULL};
		char expected[64];

		snprintf(expected, sizeof(expected), "   VALUE\n%8s\n", table[i].text);
		assert_printed((struct setting){.view.columns = "value_bytes"}, &row, 1, expected);
	}
	/* CSV has the figure alone. */
	assert_printed((struct setting){.format = WSS_FORMAT_CSV, .view.columns = "value_bytes"},
		       &(struct row){"a", table[0].value, NULL}, 1, "value_bytes\r\n150994944\r\n");
	assert_int_equal(wss_bound_of(20, low, high), WSS_BOUND_AT_MOST);
	assert_int_equal(wss_bound_of(10, low, high), WSS_BOUND_AT_LEAST);
	assert_int_equal(wss_bound_of(20, none, high), WSS_BOUND_AT_MOST);
	assert_int_equal(wss_bound_of(10, low, none), WSS_BOUND_AT_LEAST);
	assert_int_equal(wss_bound_of(10, low, low), WSS_BOUND_EXACT);
	assert_int_equal(wss_bound_of(10, none, none), WSS_BOUND_EXACT);
}

/* Characters that take two columns, and those that take none, leave the next column in place. */
TEST(test_wide_characters)
{
	static const struct row rows[] = {
		{CJK, BYTES(100), NULL},
		{"e\xcc\x81t\xc3\xa9", BYTES(100),
		 NULL}, /* one accent that combines, one that does not */
		{"abc", BYTES(100), NULL},
	};

	assert_int_equal(wss_text_width(CJK), 6);
	assert_int_equal(wss_text_width("e\xcc\x81t\xc3\xa9"), 3);
	assert_printed((struct setting){0}, rows, 3,
		       "NAME       VALUE\n" CJK "     100 B\n"
		       "e\xcc\x81t\xc3\xa9        100 B\n"
		       "abc        100 B\n");
}

static void assert_cut(const char *text, int width, const char *expected)
{
	char buf[64];

	snprintf(buf, sizeof(buf), "%s", text);
	wss_text_cut(buf, sizeof(buf), width);
	assert_string_equal(buf, expected);
	assert_true(wss_text_width(buf) <= width);
}

TEST(test_cut)
{
	char tight[4] = "abc";

	assert_cut("abc", 3, "abc");
	assert_cut("abcd", 3, "ab\xe2\x80\xa6");
	assert_cut(CJK, 6, CJK);
	assert_cut(CJK, 5, "\xe6\x95\xb0\xe6\x8d\xae\xe2\x80\xa6");
	assert_cut(CJK, 4, "\xe6\x95\xb0\xe2\x80\xa6");
	assert_cut(CJK, 1, "\xe2\x80\xa6");
	assert_cut("", 1, "");
	/* No room for the ellipsis in the buffer: nothing is written behind it. */
	wss_text_cut(tight, sizeof(tight), 2);
	assert_string_equal(tight, "a");
}

static const struct row long_names[] = {
	{"a-rather-long-name", BYTES(100), NULL},
	{"b", BYTES(200), NULL},
};

/* Without a terminal names are whole, and later columns are aligned. */
TEST(test_names_are_whole_in_a_pipe)
{
	assert_printed((struct setting){.first_width = 18}, long_names, 2,
		       "NAME                   VALUE\n"
		       "a-rather-long-name     100 B\n"
		       "b                      200 B\n");
	/* If the rows are held back, the width need not be known. */
	assert_printed((struct setting){.hold = true}, long_names, 2,
		       "NAME                   VALUE\n"
		       "a-rather-long-name     100 B\n"
		       "b                      200 B\n");
	assert_printed((struct setting){.view.sort = "-name"}, long_names, 2,
		       "NAME                   VALUE\n"
		       "b                      200 B\n"
		       "a-rather-long-name     100 B\n");
}

/* On a terminal names are cut to the room that the other columns leave. */
TEST(test_names_are_cut_on_a_terminal)
{
	assert_printed((struct setting){.view.width = 20, .first_width = 18}, long_names, 2,
		       "NAME           VALUE\n"
		       "a-rat\xe2\x80\xa6name     100 B\n"
		       "b              200 B\n");
	assert_printed((struct setting){.view.width = 80, .first_width = 18}, long_names, 1,
		       "NAME                   VALUE\n"
		       "a-rather-long-name     100 B\n");
	/* However narrow, a few letters remain. */
	assert_printed((struct setting){.view.width = 8, .first_width = 18}, long_names, 1,
		       "NAME       VALUE\na-r\xe2\x80\xa6me     100 B\n");
}

/* However names differ, no two that were cut look alike, and each is always cut alike. */
TEST(test_cut_names_differ)
{
	static const struct row rows[] = {
		{"guest-in-production-1", BYTES(100), NULL}, /* at the end */
		{"guest-in-production-2", BYTES(100), NULL},
		{"guest-in-prodaction-1", BYTES(100), NULL}, /* in the middle */
		{"guest-in-prodoction-1", BYTES(100), NULL},
		{"Guest-in-production-1", BYTES(100), NULL}, /* at the start */
		{"guest-in-production-2", BYTES(100), NULL}, /* again */
		{CJK CJK CJK "1", BYTES(100), NULL},
		{CJK CJK CJK "2", BYTES(100), NULL},
	};

	assert_printed((struct setting){.view.width = 20, .first_width = 21}, rows, 8,
		       "NAME           VALUE\n"
		       "guest\xe2\x80\xa6on-1     100 B\n"
		       "guest\xe2\x80\xa6on-2     100 B\n"
		       "\xe2\x80\xa6"
		       "daction-1     100 B\n"
		       "\xe2\x80\xa6"
		       "doction-1     100 B\n"
		       "Guest\xe2\x80\xa6on-1     100 B\n"
		       "guest\xe2\x80\xa6on-2     100 B\n"
		       "\xe6\x95\xb0\xe6\x8d\xae\xe2\x80\xa6\xe5\xba\x93"
		       "1       100 B\n"
		       "\xe6\x95\xb0\xe6\x8d\xae\xe2\x80\xa6\xe5\xba\x93"
		       "2       100 B\n");
}

/* More names that differ only where they are cut than there are columns for an ellipsis. */
TEST(test_names_differ_in_the_middle)
{
	wss_auto_free char *text = NULL;
	struct setting setting = {.view.width = 20, .first_width = 40};
	struct row rows[8];
	char names[8][40], *lines[9], *saved;

	for (int i = 0; i < 8; i++) {
		snprintf(names[i], sizeof(names[i]), "aaaaaaaaaaaaaa-%d-bbbbbbbbbbbbbb", i);
		rows[i] = (struct row){names[i], BYTES(100), NULL};
	}
	text = print(&setting, rows, 8);
	lines[0] = strtok_r(text, "\n", &saved);
	for (int i = 1; i < 9; i++) {
		lines[i] = strtok_r(NULL, "\n", &saved);
		assert_non_null(lines[i]);
		assert_int_equal(wss_text_width(lines[i]), wss_text_width(lines[0]));
		for (int k = 0; k < i; k++)
			assert_string_not_equal(lines[i], lines[k]);
	}
}

/* A text in the last column wraps on a terminal, and is one line in a pipe. */
TEST(test_last_text_is_wrapped)
{
	static const struct row row = {"a", BYTES(100), "one two three four five six"};

	assert_printed((struct setting){.view = {true, NULL, NULL, 32}}, &row, 1,
		       "NAME       VALUE  TEXT\n"
		       "a          100 B  one two three\n"
		       "                  four five six\n");
	assert_printed((struct setting){.view = {true, NULL, NULL, 0}}, &row, 1,
		       "NAME       VALUE  TEXT\n"
		       "a          100 B  one two three four five six\n");
	assert_int_equal(wss_text_line("abc def", 5), 3);
	assert_int_equal(wss_text_line("abc def", 7), 7);
	assert_int_equal(wss_text_line("abcdef", 4), 4);
	assert_int_equal(wss_text_line(CJK, 1), 3);
}

static bool names(const char *list, const char *key)
{
	size_t len = strlen(key);

	for (const char *at = list; at && (at = strstr(at, key)); at += len)
		if ((at == list || at[-1] == ',') && (!at[len] || at[len] == ','))
			return true;
	return false;
}

static bool ends_with(const char *text, const char *end)
{
	size_t len = strlen(text), end_len = strlen(end);

	return len >= end_len && !strcmp(text + len - end_len, end);
}

/* A group is not entered twice, because JSON would have its object twice. */
static void check_groups(const struct wss_report_layout *of)
{
	for (size_t i = 1; i < of->n_columns; i++) {
		const char *group = of->columns[i].group, *before = of->columns[i - 1].group;

		for (size_t k = 0; group && (!before || strcmp(group, before)) && k < i; k++)
			if (of->columns[k].group)
				assert_string_not_equal(of->columns[k].group, group);
	}
}

/* Each column has a description with the unit in its name, and a heading for tables. */
static void check_columns(const struct wss_report_layout *of)
{
	for (size_t i = 0; i < of->n_columns; i++) {
		const struct wss_column *column = &of->columns[i];

		if (!column->help || !*column->help)
			fail_msg("%s has no description", column->key);
		if (ends_with(column->key, "_bytes") && !strstr(column->help, "in bytes"))
			fail_msg("%s: not in bytes: %s", column->key, column->help);
		if (ends_with(column->key, "_seconds") && !strstr(column->help, "seconds"))
			fail_msg("%s: not in seconds: %s", column->key, column->help);
		if (of->shown && !column->header)
			fail_msg("%s has no heading", column->key);
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(column->key, of->columns[k].key);
	}
}

static void check_fits_80(const struct wss_report_layout *of)
{
	int width = -2;

	for (size_t i = 0; i < of->n_columns; i++) {
		const struct wss_column *column = &of->columns[i];
		int heading = wss_text_width(column->header), least = abs(column->width);

		if (names(of->shown, column->key))
			width += 2 + (heading > least ? heading : least);
	}
	if (width > 80)
		fail_msg("the table of %s takes %d columns", of->array_key, width);
}

TEST(test_layouts)
{
	const struct wss_report_layout *list[32] = {
		wss_sample_layout(false, false), wss_sample_layout(false, true),
		wss_sample_layout(true, false),	 wss_sample_layout(true, true),
		&wss_sample_all_layout,		 &wss_diff_layout,
		&wss_diff_summary_layout,	 &wss_heat_layout,
		&wss_heat_summary_layout,
	};
	size_t n = 9;

	for (int part = 0; part < WSS_REFSET_PARTS; part++)
		list[n++] = &wss_refset_layouts[part];
	for (size_t i = 0; i < n; i++) {
		struct wss_error err = WSS_ERROR_INIT;

		check_columns(list[i]);
		check_groups(list[i]);
		if (!list[i]->shown)
			continue;
		assert_int_equal(wss_view_check_columns(list[i], list[i]->shown, &err), 0);
		assert_int_equal(wss_view_check_columns(list[i], list[i]->wide, &err), 0);
		/* The table of all columns exists only for the list of columns. */
		if (list[i] != &wss_sample_all_layout)
			check_fits_80(list[i]);
	}
}

TEST(test_columns_are_listed)
{
	const struct wss_report_layout *const layouts[] = {&layout, &wss_diff_summary_layout, NULL};
	struct wss_error err = WSS_ERROR_INIT;
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	assert_int_equal(wss_columns_print(f, layouts, 0, &err), 0);
	fclose(f);
	assert_non_null(
		strstr(text, "\nname                        NAME       default  The name\n"));
	assert_non_null(strstr(text, "\ntext                        TEXT       wide     A text\n"));
	assert_non_null(
		strstr(text, "\npeople                      PEOPLE     -        The name again\n"));
	assert_non_null(strstr(text, "\nsummary:\n"));
	assert_non_null(strstr(text, "\na_bytes                     -          JSON     "));
	free(text);
}

int main(void)
{
	return tests_run();
}
