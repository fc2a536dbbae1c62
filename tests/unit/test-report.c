/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "hosttest.h"

#include <json-c/json.h>

#include "history/sample-report.h"
#include "measure/sample.h"
#include "show/report.h"

struct row {
	const char *name;
	struct wss_value value;
};

static struct wss_value get_name(const void *row)
{
	return (struct wss_value){.kind = WSS_KIND_TEXT, .text = ((const struct row *)row)->name};
}

static struct wss_value get_value(const void *row)
{
	return ((const struct row *)row)->value;
}

static struct wss_value get_absent(const void *row)
{
	return wss_value_absent();
}

/* One column of each kind: for tables only, shown, in a group, and not shown. */
static const struct wss_column columns[] = {
	{"short", NULL, "SHORT", -5, WSS_GET(get_name), "The name again"},
	{"name", NULL, "NAME", -8, WSS_GET(get_name), "The name"},
	{"value", NULL, "VALUE", 8, WSS_GET(get_value), "The value, in bytes"},
	{"inner", "group", "INNER", 8, WSS_GET(get_value), "The value again, in bytes"},
};

static const struct wss_report_layout layout = {
	.schema = "virt-wss/test/1",
	.array_key = "rows",
	.columns = columns,
	.n_columns = sizeof(columns) / sizeof(columns[0]),
	.table_only = "short",
	.shown = "short,name,value",
	.wide = "short,name,value,inner",
};

/* Returns a whole report, malloc()ed. */
static char *report_view(const struct wss_report_layout *of, enum wss_format format,
			 const struct wss_view *view, const void *rows, size_t n, size_t row_size)
{
	struct wss_report *out = NULL;
	struct wss_error err = WSS_ERROR_INIT;
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	assert_non_null(f);
	assert_int_equal(wss_report_open(f, format, view, of, &out, &err), 0);
	for (size_t i = 0; i < n; i++)
		wss_report_row(out, (const char *)rows + i * row_size);
	assert_int_equal(wss_report_close(out, &err), 0);
	fclose(f);
	return text;
}

static char *report(const struct wss_report_layout *of, enum wss_format format, const void *rows,
		    size_t n, size_t row_size)
{
	return report_view(of, format, NULL, rows, n, row_size);
}

static char *report_rows(enum wss_format format, const struct row *rows, size_t n)
{
	return report(&layout, format, rows, n, sizeof(*rows));
}

/* Compares with tests/fixtures/report/NAME, or writes that with WSS_REGENERATE=1. */
static void assert_golden(const char *name, const char *text)
{
	char path[PATH_MAX];

	make_path(path, "%s/report/%s", WSS_FIXTURES, name);
	if (getenv("WSS_REGENERATE")) {
		make_path(path, "report/%s", name);
		put_text(WSS_FIXTURES, path, text);
	} else {
		wss_auto_free char *golden = read_text(path);

		assert_string_equal(text, golden);
	}
}

static struct wss_sample full_sample(void)
{
	struct wss_sample sample = {
		.domain = "web1",
		.uuid = UUID_A,
		.wall = 1795197600,
		.quality = WSS_QUALITY_DEGRADED,
		.method = "mmu",
		.granularity_bytes = wss_amount_of(2 << 20),
		.requested_window_ns = 4000000000,
		.window_ns = wss_amount_of(4020000500),
		.wss_bytes = wss_amount_of(77594624),
		.low_bytes = wss_amount_of(151552),
		.high_bytes = wss_amount_of(77594624),
		.recorder = "bpf",
		.mapped_bytes = wss_amount_of(77590528),
		.written_low_bytes = wss_amount_of(8192),
		.written_high_bytes = wss_amount_of(77594624),
	};

	sample.memory.maximum_bytes = wss_amount_of(1ULL << 30);
	sample.memory.balloon_bytes = wss_amount_of(512 << 20);
	sample.memory.rss_bytes = wss_amount_of(400 << 20);
	sample.memory.pss_bytes = wss_amount_of(390 << 20);
	sample.memory.swap_bytes = wss_amount_of(0);
	sample.memory.huge_bytes = wss_amount_of(380 << 20);
	sample.memory.qemu_bytes = wss_amount_of(40 << 20);
	sample.cost.arm_ns = wss_amount_of(1234567);
	sample.cost.read_ns = wss_amount_of(45000);
	sample.cost.faults = wss_amount_of(16840);
	sample.cost.predicted_stall_ns = wss_amount_of(2000000);
	sample.cost.user_ns = wss_amount_of(1000000);
	sample.cost.system_ns = wss_amount_of(3000000);
	wss_sample_curve_add(&sample, 1000000, 4096);
	wss_sample_curve_add(&sample, 4020000500, 77594624);
	wss_sample_note(&sample, "KVM maps this guest by 2 MiB");
	return sample;
}

/*
 * Makes samples: measured exactly, measured within bounds, failed, and one of which little is
 * known.
 */
static void make_samples(struct wss_sample ret_samples[4])
{
	struct wss_error err = WSS_ERROR_INIT;

	ret_samples[0] = full_sample();
	ret_samples[0].quality = WSS_QUALITY_OK;
	ret_samples[0].granularity_bytes.value = 4096;
	ret_samples[0].low_bytes = ret_samples[0].wss_bytes;
	ret_samples[1] = full_sample();
	snprintf(ret_samples[1].domain, sizeof(ret_samples[1].domain), "a-rather-long-name, \"x\"");
	ret_samples[2] = full_sample();
	wss_error_set(&err, WSS_ERR_GONE, "the guest ended within the window");
	wss_sample_fail(&ret_samples[2], &err);
	ret_samples[3] = (struct wss_sample){.domain = "db2", .wall = 1795197600};
	wss_error_set(&err, WSS_ERR_UNSUPPORTED, "no method can measure this guest");
	wss_sample_fail(&ret_samples[3], &err);
}

static void assert_sample_golden(enum wss_format format, const char *name)
{
	struct wss_sample samples[4];
	wss_auto_free char *text = NULL;

	make_samples(samples);
	text = report(wss_sample_layout(false, false), format, samples, 4, sizeof(samples[0]));
	assert_golden(name, text);
}

/* Adds the native window; that of the first guest is unknown. */
TEST(test_both)
{
	static const char *const names[] = {"both.txt", "both.json", "both.csv"};
	struct wss_sample samples[2];

	for (int i = 0; i < 2; i++) {
		samples[i] = full_sample();
		samples[i].granularity_bytes.value = 4096;
	}
	samples[1].native.granularity_bytes = wss_amount_of(2 << 20);
	samples[1].native.window_ns = wss_amount_of(4010000000);
	samples[1].native.wss_bytes = wss_amount_of(155189248);
	samples[1].native.low_bytes = wss_amount_of(303104);
	samples[1].native.high_bytes = wss_amount_of(155189248);
	for (int format = 0; format < 3; format++) {
		wss_auto_free char *text =
			report(wss_sample_layout(true, false), (enum wss_format)format, samples, 2,
			       sizeof(samples[0]));

		assert_golden(names[format], text);
	}
}

/* A degraded sample may have a wrong figure even if its bounds are equal. */
TEST(test_degraded_is_not_exact)
{
	static const struct wss_view wide = {.wide = true};
	const struct wss_report_layout *of = wss_sample_layout(false, false);
	struct wss_sample sample = full_sample();
	wss_auto_free char *exact = NULL, *degraded = NULL;

	sample.quality = WSS_QUALITY_OK;
	sample.low_bytes = sample.high_bytes = sample.wss_bytes;
	exact = report_view(of, WSS_FORMAT_TABLE, &wide, &sample, 1, sizeof(sample));
	assert_non_null(strstr(exact, " exact "));
	wss_sample_degrade(&sample, "the guest was paused or stopped within the window");
	degraded = report_view(of, WSS_FORMAT_TABLE, &wide, &sample, 1, sizeof(sample));
	assert_null(strstr(degraded, "exact"));
	assert_non_null(strstr(degraded, " uncertain "));
	assert_null(strstr(exact, ">= "));
	assert_non_null(strstr(degraded, ">= "));
}

TEST(test_sample_table)
{
	assert_sample_golden(WSS_FORMAT_TABLE, "samples.txt");
}

TEST(test_sample_csv)
{
	assert_sample_golden(WSS_FORMAT_CSV, "samples.csv");
}

TEST(test_sample_json)
{
	assert_sample_golden(WSS_FORMAT_JSON, "samples.json");
}

TEST(test_empty)
{
	wss_auto_free char *table = report_rows(WSS_FORMAT_TABLE, NULL, 0);
	wss_auto_free char *csv = report_rows(WSS_FORMAT_CSV, NULL, 0);
	wss_auto_free char *json = report_rows(WSS_FORMAT_JSON, NULL, 0);
	struct json_object *object = json_tokener_parse(json), *rows;

	assert_string_equal(table, "SHORT  NAME         VALUE\n");
	assert_string_equal(csv, "name,value,inner\r\n");
	assert_non_null(object);
	assert_true(json_object_object_get_ex(object, "rows", &rows));
	assert_int_equal(json_object_array_length(rows), 0);
	json_object_put(object);
}

/* An absent value is "-", empty, or no member, but never 0. */
TEST(test_absent)
{
	const struct row row = {"a", {.kind = WSS_KIND_ABSENT, .number = 7}};
	wss_auto_free char *table = report_rows(WSS_FORMAT_TABLE, &row, 1);
	wss_auto_free char *csv = report_rows(WSS_FORMAT_CSV, &row, 1);
	wss_auto_free char *json = report_rows(WSS_FORMAT_JSON, &row, 1);

	assert_string_equal(table, "SHORT  NAME         VALUE\na      a                -\n");
	assert_string_equal(csv, "name,value,inner\r\na,,\r\n");
	assert_null(strstr(json, "value"));
	assert_null(strstr(json, "group"));
	assert_null(strchr(json, '7'));
}

TEST(test_kinds)
{
	static const struct {
		struct wss_value value;
		const char *table, *csv, *json;
	} kinds[] = {
		{{.kind = WSS_KIND_BYTES, .number = 68943872}, "65.8 MiB", "68943872", "68943872"},
		{{.kind = WSS_KIND_BYTES, .number = UINT64_MAX},
		 "16 EiB",
		 "18446744073709551615",
		 "18446744073709551615"},
		{{.kind = WSS_KIND_DURATION, .number = 4020000500}, "4.02 s", "4.02", "4.02"},
		{{.kind = WSS_KIND_DURATION, .number = 0}, "0 s", "0", "0"},
		{{.kind = WSS_KIND_SHARE, .real = 0.5}, "50.0%", "0.500000", "0.500000"},
		{{.kind = WSS_KIND_COUNT, .number = 12}, "12", "12", "12"},
		{{.kind = WSS_KIND_AGE, .number = 7200}, "2 h", "7200", "7200"},
		{{.kind = WSS_KIND_BOOL, .number = 1}, "yes", "1", "true"},
		{{.kind = WSS_KIND_BOOL, .number = 0}, "no", "0", "false"},
	};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		const struct row row = {"a", kinds[i].value};
		wss_auto_free char *table = report_rows(WSS_FORMAT_TABLE, &row, 1);
		wss_auto_free char *csv = report_rows(WSS_FORMAT_CSV, &row, 1);
		wss_auto_free char *json = report_rows(WSS_FORMAT_JSON, &row, 1);
		char expected[256];

		snprintf(expected, sizeof(expected),
			 "SHORT  NAME         VALUE\na      a         %8s\n", kinds[i].table);
		assert_string_equal(table, expected);
		snprintf(expected, sizeof(expected), "name,value,inner\r\na,%s,%s\r\n",
			 kinds[i].csv, kinds[i].csv);
		assert_string_equal(csv, expected);
		snprintf(expected, sizeof(expected), "\"value\": %s, \"group\": { \"inner\": %s }",
			 kinds[i].json, kinds[i].json);
		if (!strstr(json, expected))
			fail_msg("%s is not in %s", expected, json);
	}
}

/* The name as a CSV field, between the heading and ",,". */
static char *csv_field(const char *name)
{
	const struct row row = {name, {.kind = WSS_KIND_ABSENT}};
	char *csv = report_rows(WSS_FORMAT_CSV, &row, 1);
	size_t head = strlen("name,value,inner\r\n"), len = strlen(csv);

	assert_true(len >= head + 4);
	assert_string_equal(csv + len - 4, ",,\r\n");
	csv[len - 4] = '\0';
	memmove(csv, csv + head, len - 4 - head + 1);
	return csv;
}

TEST(test_csv_quoting)
{
	static const struct {
		const char *name, *field;
	} table[] = {
		{"web1", "web1"},
		{"", ""},
		{"a,b", "\"a,b\""},
		{"a\"b", "\"a\"\"b\""},
		{"\"", "\"\"\"\""},
		{"a b", "a b"},
		/* Texts that a spreadsheet would run as formulas. */
		{"=1+1", "\"'=1+1\""},
		{"+1", "\"'+1\""},
		{"-1", "\"'-1\""},
		{"@SUM(A1)", "\"'@SUM(A1)\""},
		{"=\"a\"", "\"'=\"\"a\"\"\""},
		{"a=1", "a=1"},
		/* Also after blanks of any width, and in wide forms. */
		{" =1", "\"' =1\""},
		{"  +1", "\"'  +1\""},
		{"\xc2\xa0-1", "\"'\xc2\xa0-1\""},
		{"\xe2\x80\x89\xe3\x80\x80@a", "\"'\xe2\x80\x89\xe3\x80\x80@a\""},
		{"\xef\xbc\x9d"
		 "1",
		 "\"'\xef\xbc\x9d"
		 "1\""},
		{" a=1", " a=1"},
		{"", ""},
		/* Characters without width, line separators, and noncharacters. */
		{"\xe2\x80\x8b=1", "???"
				   "=1"},
		{"\xef\xbb\xbf=1", "???"
				   "=1"},
		{"a\xe2\x80\xa8"
		 "b\xe2\x80\xa9",
		 "a???b???"},
		{"a\xef\xbf\xbe\xef\xbf\xbf", "a??????"},
		{"a\xf3\xa0\x80\xa1", "a????"},
		{"web-1", "web-1"},
		/* One record stays one line, and no cursor moves. */
		{"a\r\nb", "a??b"},
		{"\t=1", "?=1"},
		{"\r=1", "?=1"},
		{"a\033[2Jb", "a?[2Jb"},
		{"gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f"},
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		wss_auto_free char *field = csv_field(table[i].name);

		assert_string_equal(field, table[i].field);
	}
}

static void assert_table_line(const char *name, const char *line)
{
	const struct row row = {name, {.kind = WSS_KIND_COUNT, .number = 1}};
	wss_auto_free char *table = report_rows(WSS_FORMAT_TABLE, &row, 1);
	char expected[512];

	snprintf(expected, sizeof(expected), "SHORT  NAME         VALUE\n%s\n", line);
	assert_string_equal(table, expected);
}

/* Columns are counted in characters, so that what follows stays aligned. */
TEST(test_table_widths)
{
	assert_table_line("abc", "abc    abc              1");
	assert_table_line("gr\xc3\xbc\xc3\x9f",
			  "gr\xc3\xbc\xc3\x9f   gr\xc3\xbc\xc3\x9f             1");
	assert_table_line("\xe2\x82\xac", "\xe2\x82\xac      \xe2\x82\xac                1");
	/* A text longer than its column is printed whole and shifts the rest. */
	assert_table_line("longer-than-8", "longer-than-8  longer-than-8         1");
	/* No name can move the cursor or fake a line. */
	assert_table_line("a\nb", "a?b    a?b              1");
	assert_table_line("\033[31m", "?[31m  ?[31m            1");
	assert_table_line("\x9b"
			  "1",
			  "?1     ?1               1");
	assert_table_line("\xc2\x9b"
			  "1",
			  "??1    ??1              1");
	assert_table_line("\x7f", "?      ?                1");
	assert_table_line("\xe2\x80\xa8", "???    ???              1");
	assert_table_line("\xc2\xad", "??     ??               1");
	assert_table_line("\xef\xbf\xbe", "???    ???              1");
}

TEST(test_first_width)
{
	const struct row row = {"abc", {.kind = WSS_KIND_COUNT, .number = 1}};
	struct wss_report *out;
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	assert_int_equal(wss_report_open(f, WSS_FORMAT_TABLE, NULL, &layout, &out, NULL), 0);
	wss_report_set_first_width(out, 9);
	wss_report_row(out, &row);
	assert_int_equal(wss_report_close(out, NULL), 0);
	fclose(f);
	assert_string_equal(text, "SHORT      NAME         VALUE\nabc        abc              1\n");
	free(text);
}

TEST(test_json_text)
{
	/* With DEL, CSI as a single character, and a reversal of the text direction. */
	const struct row row = {"a\"b\\c\n\001/\xc3\xbc\x7f\xc2\x9b"
				"31m\xe2\x80\xae"
				"d",
				{.kind = WSS_KIND_ABSENT}};
	wss_auto_free char *json = report_rows(WSS_FORMAT_JSON, &row, 1);
	struct json_object *object = json_tokener_parse(json), *rows, *name;

	assert_non_null(object);
	assert_true(json_object_object_get_ex(object, "rows", &rows));
	assert_true(json_object_object_get_ex(json_object_array_get_idx(rows, 0), "name", &name));
	assert_string_equal(json_object_get_string(name), row.name);
	json_object_put(object);
	/* In the output it is escaped. */
	assert_null(strchr(json, '\001'));
	assert_non_null(strstr(json, "/\xc3\xbc\\u007f\\u009b31m\\u202ed"));
}

/* Rows without groups are written without json-c, and are the same byte for byte. */
TEST(test_json_plain)
{
	static const struct wss_column plain_columns[] = {
		{"name", NULL, NULL, 0, WSS_GET(get_name), "The name"},
		{"value", NULL, NULL, 0, WSS_GET(get_value), "The value"},
	};
	static const struct wss_report_layout plain = {
		.schema = "virt-wss/test/1",
		.array_key = "rows",
		.columns = plain_columns,
		.n_columns = sizeof(plain_columns) / sizeof(plain_columns[0]),
	};
	static const struct row rows[] = {
		{"web1", {.kind = WSS_KIND_COUNT, .number = UINT64_MAX}},
		{"", {.kind = WSS_KIND_BYTES, .number = 0}},
		{"a\"b\\c/\b\n\r\t\f\001\037~ gr\xc3\xbc\xc3\x9f",
		 {.kind = WSS_KIND_BOOL, .number = 7}},
		{"d", {.kind = WSS_KIND_DURATION, .number = 1500001999}},
		{"s", {.kind = WSS_KIND_SHARE, .real = 1.0 / 3}},
		{"", {.kind = WSS_KIND_ABSENT}},
	};
	static const struct wss_column grouped_columns[] = {
		{"name", NULL, NULL, 0, WSS_GET(get_name), "The name"},
		{"value", NULL, NULL, 0, WSS_GET(get_value), "The value"},
		/* Always absent, but makes this a row with groups. */
		{"none", "group", NULL, 0, WSS_GET(get_absent), "Nothing"},
	};
	static const struct wss_report_layout grouped = {
		.schema = "virt-wss/test/1",
		.array_key = "rows",
		.columns = grouped_columns,
		.n_columns = sizeof(grouped_columns) / sizeof(grouped_columns[0]),
	};
	wss_auto_free char *a = report(&plain, WSS_FORMAT_JSON, rows, 6, sizeof(rows[0]));
	wss_auto_free char *b = report(&grouped, WSS_FORMAT_JSON, rows, 6, sizeof(rows[0]));

	assert_string_equal(a, b);
}

/* JSON has characters that are hidden elsewhere, in ASCII. */
TEST(test_json_hidden)
{
	const struct row row = {"a\xe2\x80\x8b\xef\xbf\xbe\xe2\x80\xa8\xc2\xad\xf3\xa0\x80\xa1 =1",
				{.kind = WSS_KIND_ABSENT}};
	wss_auto_free char *json = report_rows(WSS_FORMAT_JSON, &row, 1);
	struct json_object *object = json_tokener_parse(json), *rows, *name;

	assert_non_null(strstr(json, "\"a\\u200b\\ufffe\\u2028\\u00ad\\udb40\\udc21 =1\""));
	assert_true(json_object_object_get_ex(object, "rows", &rows));
	assert_true(json_object_object_get_ex(json_object_array_get_idx(rows, 0), "name", &name));
	assert_string_equal(json_object_get_string(name), row.name);
	json_object_put(object);
}

/* A name that was cut within a character, and bytes that are not UTF-8. */
TEST(test_json_is_utf8)
{
	const struct row row = {"a\xc3\xbc\xe2\x82\xf0\x9f\x98\x80\xff\xc3",
				{.kind = WSS_KIND_ABSENT}};
	wss_auto_free char *json = report_rows(WSS_FORMAT_JSON, &row, 1);

	assert_non_null(strstr(json, "\"a\xc3\xbc??\xf0\x9f\x98\x80??\""));
}

/* Rows are written as they come, so a series can be followed. */
TEST(test_flushed)
{
	const struct row row = {"a", {.kind = WSS_KIND_COUNT, .number = 1}};
	struct wss_report *out;
	int fds[2];
	char text[256];
	ssize_t n;
	FILE *f;

	assert_int_equal(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
	f = fdopen(fds[1], "w");
	assert_non_null(f);
	assert_int_equal(wss_report_open(f, WSS_FORMAT_JSON, NULL, &layout, &out, NULL), 0);
	/* Nothing before the first row: an error leaves the output empty. */
	assert_int_equal(read(fds[0], text, sizeof(text)), -1);
	wss_report_row(out, &row);
	n = read(fds[0], text, sizeof(text) - 1);
	assert_true(n > 0);
	text[n] = '\0';
	assert_non_null(strstr(text, "\"name\": \"a\""));
	assert_int_equal(wss_report_close(out, NULL), 0);
	fclose(f);
	close(fds[0]);
}

TEST(test_write_errors)
{
	const struct row row = {"a", {.kind = WSS_KIND_COUNT, .number = 1}};

	for (int format = WSS_FORMAT_TABLE; format <= WSS_FORMAT_CSV; format++) {
		for (int rows = 0; rows <= 2; rows++) {
			struct wss_error err = WSS_ERROR_INIT;
			struct wss_report *out;
			FILE *f = fopen("/dev/full", "we");

			assert_non_null(f);
			assert_int_equal(wss_report_open(f, (enum wss_format)format, NULL, &layout,
							 &out, &err),
					 0);
			for (int i = 0; i < rows; i++)
				wss_report_row(out, &row);
			assert_int_equal(wss_report_close(out, &err), -1);
			assert_error(&err, WSS_ERR_FAILED, "No space left on device");
			fclose(f);
		}
	}
	assert_int_equal(wss_report_close(NULL, NULL), 0);
}

TEST(test_format_parse)
{
	struct wss_error err = WSS_ERROR_INIT;
	enum wss_format format;

	assert_int_equal(wss_format_parse("table", &format, &err), 0);
	assert_int_equal(format, WSS_FORMAT_TABLE);
	assert_int_equal(wss_format_parse("json", &format, &err), 0);
	assert_int_equal(format, WSS_FORMAT_JSON);
	assert_int_equal(wss_format_parse("csv", &format, &err), 0);
	assert_int_equal(format, WSS_FORMAT_CSV);
	assert_int_equal(wss_format_parse("JSON", &format, &err), -1);
	assert_error(&err, WSS_ERR_USAGE, "JSON");
	assert_int_equal(wss_format_parse("", &format, &err), -1);
	assert_int_equal(format, WSS_FORMAT_CSV);
}

int main(void)
{
	return tests_run();
}
