/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "hosttest.h"

#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>

#include "base/child.h"
#include "base/error.h"
#include "base/log.h"
#include "base/number.h"
#include "base/stop.h"
#include "base/units.h"

TEST(test_error)
{
	struct wss_error err = WSS_ERROR_INIT;
	char big[2 * sizeof(err.text)];

	assert_int_equal(err.code, WSS_OK);
	assert_string_equal(err.text, "");
	assert_int_equal(wss_error_set(&err, WSS_ERR_BUSY, "a %d", 5), -1);
	assert_error(&err, WSS_ERR_BUSY, "a 5");
	assert_int_equal(wss_error_prefix(&err, "guest %s", "g"), -1);
	assert_int_equal(err.code, WSS_ERR_BUSY);
	assert_string_equal(err.text, "guest g: a 5");
	assert_int_equal(wss_error_errno(&err, WSS_ERR_FAILED, ENOENT, "open %s", "x"), -1);
	assert_int_equal(err.code, WSS_ERR_FAILED);
	assert_string_equal(err.text, "open x: No such file or directory");
	/* ENOMEM is never reported as a lack of anything else. */
	wss_error_errno(&err, WSS_ERR_UNSUPPORTED, ENOMEM, "open %s", "x");
	assert_int_equal(err.code, WSS_ERR_NO_MEMORY);
	wss_error_clear(&err);
	assert_int_equal(err.code, WSS_OK);
	assert_string_equal(err.text, "");
	/* Long texts are cut, even when a prefix is added. */
	memset(big, 'x', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	wss_error_set(&err, WSS_ERR_FAILED, "%s", big);
	assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
	wss_error_prefix(&err, "%s", big);
	assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
	wss_error_errno(&err, WSS_ERR_FAILED, ENOENT, "%s", big);
	assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
	/* err may be NULL. */
	assert_int_equal(wss_error_set(NULL, WSS_ERR_FAILED, "%s", big), -1);
	assert_int_equal(wss_error_errno(NULL, WSS_ERR_FAILED, EIO, "x"), -1);
	assert_int_equal(wss_error_prefix(NULL, "x"), -1);
	wss_error_clear(NULL);
}

TEST(test_sanitize)
{
	static const struct {
		const char *in, *out;
	} table[] = {
		{"", ""},
		{"plain text 123 ~", "plain text 123 ~"},
		{"two\nlines\tand\rmore", "two?lines?and?more"},
		{"\x1b[31mred\x07\x7f", "?[31mred??"},
		{"caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80",
		 "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"},
		{"\xc3", "?"},
		{"\xe2\x82", "??"},
		{"\x80\xbf\xff\xfe", "????"},
		{"\xc0\xaf", "??"},
		{"\xc2\x9bX", "??X"},
		{"\xc3(", "?("},
		/* U+061C, U+200E to U+2010, U+2027 to U+202F, U+2066 to U+2069. */
		{"a\xd8\x9c"
		 "b\xd8\x9b",
		 "a??b\xd8\x9b"},
		{"\xe2\x80\x8a\xe2\x80\x8e\xe2\x80\x8f\xe2\x80\x90",
		 "\xe2\x80\x8a??????\xe2\x80\x90"},
		{"\xe2\x80\xaa|\xe2\x80\xab|\xe2\x80\xac|\xe2\x80\xad|\xe2\x80\xae",
		 "???|???|???|???|???"},
		{"\xe2\x80\xa7|\xe2\x80\xaf", "\xe2\x80\xa7|\xe2\x80\xaf"},
		{"\xe2\x81\xa6|\xe2\x81\xa7|\xe2\x81\xa8|\xe2\x81\xa9", "???|???|???|???"},
	};
	struct wss_error err = WSS_ERROR_INIT;
	char text[64];

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		strcpy(text, table[i].in);
		wss_text_sanitize(text);
		assert_string_equal(text, table[i].out);
	}
	wss_error_set(&err, WSS_ERR_FAILED, "name '%s'", "a\nb\x1b[2J");
	assert_string_equal(err.text, "name 'a?b?[2J'");
	wss_error_prefix(&err, "%s", "c\nd");
	assert_string_equal(err.text, "c?d: name 'a?b?[2J'");
}

TEST(test_cut_text_ends_with_a_whole_character)
{
	static const struct {
		const char *in, *out;
	} table[] = {
		{"", ""},
		{"a", "a"},
		{"a\xc3\xbc", "a\xc3\xbc"},
		{"a\xc3", "a"},
		{"\xe2\x82", ""},
		{"\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80"},
		{"a\xf0\x9f\x98", "a"},
	};
	char text[16];

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		strcpy(text, table[i].in);
		wss_text_drop_incomplete(text);
		assert_string_equal(text, table[i].out);
	}
}

static void encode(unsigned code, char *text)
{
	int len = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;

	text[0] = (char)(len == 1 ? code : (0xf0U << (4 - len) & 0xff) | code >> (6 * (len - 1)));
	for (int i = 1; i < len; i++)
		text[i] = (char)(0x80 | (code >> (6 * (len - 1 - i)) & 0x3f));
	text[len] = '\0';
}

/* The first and the last character of each hidden class, and their neighbours that are shown. */
TEST(test_hidden)
{
	static const unsigned hidden[] = {
		1,	  9,	    0xa,     0xd,     0x1b,    0x1f,
		0x7f,	  0x80,	    0x9f, /* Cc */
		0xad,	  0x600,    0x605,   0x61c,   0x6dd,   0x70f,
		0x8e2,	  0x180e,   0x200b,  0x200c,  0x200d, /* Cf */
		0x2060,	  0x2064,   0x206a,  0x206f,  0xfeff,  0xfff9,
		0xfffb,	  0x110bd,  0x1d173, 0xe0001, 0xe0020, 0xe007f,
		0x200e,	  0x200f,   0x202a,  0x202e,  0x2066,  0x2069, /* Bidi_Control */
		0x2028,	  0x2029,				       /* Zl, Zp */
		0x34f,	  0x115f,   0x1160,  0x17b4,  0x180b,  0x3164,
		0xffa0,				      /* Default_Ignorable_Code_Point */
		0xfe00,	  0xfe0f,   0xe0100, 0xe01ef, /* variation selectors */
		0xfdd0,	  0xfdef,   0xfffe,  0xffff,  0x1fffe, 0x1ffff,
		0x10fffe, 0x10ffff, /* noncharacters */
	};
	static const unsigned shown[] = {
		0x20,	 0x7e,	  0xa0,	   0xac,    0xae,    0x34e,    0x350,  0x606,
		0x2027,	 0x202f,  0x2010,  0x3042,  0xfdcf,  0xfdf0,   0xfffc, 0xfffd,
		0x1f600, 0x1fffd, 0x20000, 0xdfffd, 0xe1000, 0x10fffd,
	};
	char text[8], sanitized[8];
	unsigned code;

	for (size_t i = 0; i < sizeof(hidden) / sizeof(hidden[0]); i++) {
		encode(hidden[i], text);
		encode(hidden[i], sanitized);
		assert_int_equal(wss_text_hidden(text, &code), strlen(text));
		assert_int_equal(code, hidden[i]);
		assert_int_equal(wss_text_shown(text), 0);
		wss_text_sanitize(sanitized);
		assert_int_equal(strspn(sanitized, "?"), strlen(text));
	}
	for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++) {
		encode(shown[i], text);
		assert_int_equal(wss_text_hidden(text, &code), 0);
		assert_int_equal(wss_text_shown(text), strlen(text));
	}
	/* A surrogate is not valid UTF-8. */
	assert_int_equal(wss_text_shown("\xed\xa0\x80"), 0);
	assert_int_equal(wss_text_space("\xe3\x80\x80"), 3);
	assert_int_equal(wss_text_space("x"), 0);
}

TEST(test_numbers_from_outside)
{
	static const struct {
		double number;
		uint64_t integer;
	} table[] = {
		{0, 0},
		{0.99, 0},
		{1, 1},
		{1.5, 1},
		{-1, 0},
		{-1e300, 0},
		{9007199254740993.0, 9007199254740992},
		{18446744073709549568.0, 18446744073709549568U},
		{18446744073709551616.0, UINT64_MAX},
		{1e300, UINT64_MAX},
		{INFINITY, UINT64_MAX},
		{-INFINITY, 0},
		{NAN, 0},
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		assert_true(wss_u64_from_double(table[i].number) == table[i].integer);
	assert_true(wss_u64_add(UINT64_MAX, 1) == UINT64_MAX && wss_u64_add(2, 3) == 5);
	assert_true(wss_u64_mul(1ULL << 40, 1ULL << 24) == UINT64_MAX && wss_u64_mul(6, 7) == 42);
}

TEST(test_duration)
{
	static const struct {
		const char *text;
		uint64_t ns;
	} good[] = {
		{"10ms", 10 * WSS_NS_PER_MS},
		{"4s", 4 * WSS_NS_PER_S},
		{"1.5s", 1500 * WSS_NS_PER_MS},
		{"4", 4 * WSS_NS_PER_S},
		{"0.5", 500 * WSS_NS_PER_MS},
		{"5m", 300 * WSS_NS_PER_S},
		{"2min", 120 * WSS_NS_PER_S},
		{"1h", 3600 * WSS_NS_PER_S},
		{"250us", 250000},
		{"1MS", WSS_NS_PER_MS},
	};
	static const char *const bad[] = {"",
					  "s",
					  "-4s",
					  "+4s",
					  "0",
					  "0s",
					  "0.0",
					  "4 s",
					  " 4s",
					  "4x",
					  "1e3",
					  "0x10",
					  "inf",
					  "nan",
					  "1.2.3",
					  ".5s",
					  "4s4",
					  "10y",
					  "25h",
					  "99999999999999999999999999h",
					  "0.0000000001s"};
	struct wss_error err = WSS_ERROR_INIT;
	uint64_t ns;

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		if (wss_duration_parse(good[i].text, 24 * 3600 * WSS_NS_PER_S, "--window", &ns,
				       &err) < 0)
			fail_msg("%s: %s", good[i].text, err.text);
		assert_int_equal(ns, good[i].ns);
	}
	ns = 77;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		if (wss_duration_parse(bad[i], 24 * 3600 * WSS_NS_PER_S, "--window", &ns, &err) ==
		    0)
			fail_msg("accepted '%s'", bad[i]);
		assert_error(&err, WSS_ERR_USAGE, "--window");
		assert_int_equal(ns, 77);
	}
	/* The maximum itself is allowed. */
	/* A moment may be 0. */
	assert_int_equal(wss_duration_parse("0ms", 24 * 3600 * WSS_NS_PER_S, "w", &ns, &err), -1);
	assert_int_equal(wss_moment_parse("0ms", "w", &ns, &err), 0);
	assert_int_equal(ns, 0);
	assert_int_equal(wss_moment_parse("1.5s", "w", &ns, &err), 0);
	assert_int_equal(ns, 1500000000);
	assert_int_equal(wss_moment_parse("-1s", "w", &ns, &err), -1);
	assert_int_equal(wss_moment_parse("9999999h", "w", &ns, &err), -1);
	assert_int_equal(wss_duration_parse("24h", 24 * 3600 * WSS_NS_PER_S, "w", &ns, &err), 0);
}

/* An error names the limit as a person would type it. */
TEST(test_duration_limits)
{
	static const struct {
		uint64_t max_ns;
		const char *text, *message;
	} table[] = {
		{366 * 86400 * WSS_NS_PER_S, "400d", "--span: '400d' is too long: at most 366d"},
		{24 * 3600 * WSS_NS_PER_S, "25h", "--span: '25h' is too long: at most 1d"},
		{36 * 3600 * WSS_NS_PER_S, "1y",
		 "--span: '1y' is not a duration (examples: 10ms, 4s, 5m)"},
		{90 * WSS_NS_PER_S, "2m", "--span: '2m' is too long: at most 90s"},
		{1500 * WSS_NS_PER_MS, "2s", "--span: '2s' is too long: at most 1500ms"},
		{250000, "1s", "--span: '1s' is too long: at most 250us"},
		{250000, "0", "--span: '0' is too short: it must be more than 0"},
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct wss_error err = WSS_ERROR_INIT;
		uint64_t ns;

		assert_int_equal(
			wss_duration_parse(table[i].text, table[i].max_ns, "--span", &ns, &err),
			-1);
		assert_string_equal(err.text, table[i].message);
	}
}

/* As doubles 2^63 - 1 and 2^64 - 1 are 2^63 and 2^64: those are beyond the limit, not at it.
 */
TEST(test_largest_duration)
{
	struct wss_error err = WSS_ERROR_INIT;
	uint64_t ns = 1;

	assert_int_equal(wss_moment_parse("9223372036.854775808", "--viewport", &ns, &err), -1);
	assert_int_equal(err.code, WSS_ERR_USAGE);
	wss_error_clear(&err);
	assert_int_equal(
		wss_duration_parse("18446744073.709551616", UINT64_MAX, "--window", &ns, &err), -1);
	assert_int_equal(err.code, WSS_ERR_USAGE);
	assert_int_equal(ns, 1);
}

TEST(test_size)
{
	static const struct {
		const char *text;
		uint64_t bytes;
	} good[] = {
		{"4M", 4 * WSS_MIB},
		{"512MiB", 512 * WSS_MIB},
		{"512M", 512 * WSS_MIB},
		{"512MB", 512000000},
		{"2GiB", 2 * WSS_GIB},
		{"4096KiB", 4 * WSS_MIB},
		{"100B", 100},
		{"1.5GiB", 1536 * WSS_MIB},
		{"0", 0},
		{"1TiB", 1024 * WSS_GIB},
		{"8kib", 8192},
	};
	static const char *const bad[] = {"",	   "MiB", "-1",	  "+1",	   "1 MiB",
					  "1MiBs", "1e3", "0x10", "1PiBB", "9999999999TiB",
					  "1..5M", "256", "1.5",  "00"};
	struct wss_error err = WSS_ERROR_INIT;
	uint64_t bytes = 77;

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		if (wss_size_parse(good[i].text, "--size", &bytes, &err) < 0)
			fail_msg("%s: %s", good[i].text, err.text);
		assert_int_equal(bytes, good[i].bytes);
	}
	bytes = 77;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		if (wss_size_parse(bad[i], "--size", &bytes, &err) == 0)
			fail_msg("accepted '%s'", bad[i]);
		assert_error(&err, WSS_ERR_USAGE, "--size");
		assert_int_equal(bytes, 77);
	}
	assert_int_equal(wss_size_parse("256", "--size", &bytes, &err), -1);
	assert_error(&err, WSS_ERR_USAGE, "--size: '256' has no unit");
}

TEST(test_number)
{
	static const char *const bad[] = {"",
					  "0",
					  "101",
					  "-1",
					  "+5",
					  " 5",
					  "5 ",
					  "5x",
					  "1.5",
					  "0x5",
					  "18446744073709551616",
					  "111111111111111111111"};
	struct wss_error err = WSS_ERROR_INIT;
	uint64_t number = 77;

	assert_int_equal(wss_number_parse("1", 1, 100, "--count", &number, &err), 0);
	assert_int_equal(number, 1);
	assert_int_equal(wss_number_parse("100", 1, 100, "--count", &number, &err), 0);
	assert_int_equal(number, 100);
	assert_int_equal(
		wss_number_parse("18446744073709551615", 0, UINT64_MAX, "n", &number, &err), 0);
	assert_int_equal(number, UINT64_MAX);
	number = 77;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		if (wss_number_parse(bad[i], 1, 100, "--count", &number, &err) == 0)
			fail_msg("accepted '%s'", bad[i]);
		assert_error(&err, WSS_ERR_USAGE, "--count");
		assert_int_equal(number, 77);
	}
}

TEST(test_formats)
{
	static const struct {
		uint64_t value;
		const char *text;
	} sizes[] = {
		{0, "0 B"},
		{999, "999 B"},
		{4096, "4 KiB"},
		{68943872, "65.8 MiB"},
		{12 * WSS_GIB, "12 GiB"},
		{512 * WSS_MIB, "512 MiB"},
		{1536 * WSS_KIB, "1.50 MiB"},
		{1023 * WSS_MIB, "1.00 GiB"},
		{UINT64_MAX, "16 EiB"},
	};
	static const struct {
		uint64_t value;
		const char *text;
	} durations[] = {
		{350000, "350 us"},
		{12 * WSS_NS_PER_MS, "12 ms"},
		{4020 * WSS_NS_PER_MS, "4.02 s"},
		{300 * WSS_NS_PER_S, "5.0 min"},
		{999400, "999 us"},
		{999500, "1 ms"},
		{999 * 3600 * WSS_NS_PER_S, "999 h"},
		{90 * 24 * 3600 * WSS_NS_PER_S, "90 d"},
	};
	static const struct {
		uint64_t value;
		const char *text;
	} ages[] = {
		{0, "0 s"},    {119, "119 s"},		{120, "2 min"},	    {7199, "119 min"},
		{7200, "2 h"}, {48 * 3600 - 1, "47 h"}, {48 * 3600, "2 d"},
	};
	char text[16];

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		wss_size_format(sizes[i].value, text, sizeof(text));
		assert_string_equal(text, sizes[i].text);
	}
	for (size_t i = 0; i < sizeof(durations) / sizeof(durations[0]); i++) {
		wss_duration_format(durations[i].value, text, sizeof(text));
		assert_string_equal(text, durations[i].text);
	}
	for (size_t i = 0; i < sizeof(ages) / sizeof(ages[0]); i++) {
		wss_age_format(ages[i].value, text, sizeof(text));
		assert_string_equal(text, ages[i].text);
	}
}

/* A clock that only moves when somebody sleeps. */
static uint64_t fake_now(void *opaque)
{
	return *(uint64_t *)opaque;
}

static void fake_sleep(void *opaque, uint64_t when_ns)
{
	*(uint64_t *)opaque = when_ns;
}

/* A millisecond passes with each look. */
static uint64_t passing_now(void *opaque)
{
	uint64_t *now_ns = opaque;

	*now_ns += WSS_NS_PER_MS;
	return *now_ns;
}

TEST(test_clock)
{
	uint64_t now = 1000 * WSS_NS_PER_S, before;
	int64_t wall_s, past_s, future_s, passed_s;
	struct wss_clock_source source = {
		.now_ns = fake_now, .sleep_until_ns = fake_sleep, .opaque = &now};

	wss_clock_inject(&source);
	assert_int_equal(wss_clock_now_ns(), now);
	assert_int_equal(wss_clock_now_seconds(), 1000);
	/* The wall clock is the real one. */
	wall_s = time(NULL);
	past_s = wss_clock_age_seconds(wall_s - 3600);
	future_s = wss_clock_age_seconds(wall_s + 3600);
	passed_s = time(NULL) - wall_s;
	assert_in_range(past_s, 3600, 3600 + passed_s);
	assert_in_range(future_s, 3600 - passed_s, 3600);
	assert_int_equal(wss_clock_sleep_until_ns(now + 5 * WSS_NS_PER_S), 0);
	assert_int_equal(wss_clock_now_ns(), 1005 * WSS_NS_PER_S);
	/* For poll(): rounded up, never negative, never more than it can hold. */
	assert_int_equal(wss_clock_poll_ms(now), 0);
	assert_int_equal(wss_clock_poll_ms(now - 1), 0);
	assert_int_equal(wss_clock_poll_ms(now + 1), 1);
	assert_int_equal(wss_clock_poll_ms(now + WSS_NS_PER_MS), 1);
	assert_int_equal(wss_clock_poll_ms(now + WSS_NS_PER_MS + 1), 2);
	assert_int_equal(wss_clock_poll_ms(UINT64_MAX / 2), INT_MAX);
	/* Without a way to sleep of its own, it is slept until the time has come by it. */
	source.now_ns = passing_now;
	source.sleep_until_ns = NULL;
	assert_int_equal(wss_clock_sleep_until_ns(now + 5 * WSS_NS_PER_MS), 0);
	assert_int_equal(now, 1005 * WSS_NS_PER_S + 5 * WSS_NS_PER_MS);
	wss_clock_inject(NULL);

	before = wss_clock_now_ns();
	assert_int_equal(wss_clock_sleep_until_ns(before + 2 * WSS_NS_PER_MS), 0);
	assert_true(wss_clock_now_ns() >= before + 2 * WSS_NS_PER_MS);
	assert_int_equal(wss_clock_sleep_until_ns(before), 0);
}

TEST(test_clock_text)
{
	static const char *const bad[] = {"9999-12-31T23:59:60Z",
					  "",
					  "now",
					  "2026-11-20",
					  "2026-11-20T18:00:00",
					  "2026-11-20T18:00:00+01:00",
					  "2026-13-20T18:00:00Z",
					  "2026-11-20T18:00:00Zx",
					  "2026-02-29T18:00:00Z",
					  "2026-02-30T00:00:00Z",
					  "2026-04-31T23:59:59Z",
					  "2100-02-29T00:00:00Z",
					  "2026-01-00T00:00:00Z"};
	char text[WSS_CLOCK_TEXT_MAX];
	time_t when = 0;

	/* The local time zone does not matter. */
	setenv("TZ", "America/St_Johns", 1);
	tzset();
	wss_clock_format(1795197600, text);
	assert_string_equal(text, "2026-11-20T18:00:00Z");
	assert_int_equal(wss_clock_parse(text, &when), 0);
	assert_int_equal(when, 1795197600);
	unsetenv("TZ");
	tzset();
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(wss_clock_parse(bad[i], &when), -1);
	assert_int_equal(when, 1795197600);
	assert_int_equal(wss_clock_parse("2028-02-29T00:00:00Z", &when), 0);
	assert_int_equal(when, 1835395200);
}

TEST(test_root)
{
	static const struct {
		const char *text;
		int r;
		uint64_t value;
	} numbers[] = {
		{"0\n", 0, 0},	      {"18446744073709551615\n", 0, UINT64_MAX},
		{"42 \t\n", 0, 42},   {"18446744073709551616\n", -EINVAL, 0},
		{"-1\n", -EINVAL, 0}, {"", -EINVAL, 0},
		{" 1", -EINVAL, 0},   {"1 2", -EINVAL, 0},
		{"0x10", -EINVAL, 0},
	};
	char *tree = make_tree();
	wss_auto_free char *text = NULL;
	wss_auto_free char *big = calloc(1, 100001);
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_root root = {.dirfd = -1};
	char line[8], path[PATH_MAX];
	uint64_t value = 0;
	size_t len = 0;
	DIR *dir = NULL;
	FILE *file = NULL;
	int fd;

	wss_root_close(&root);
	assert_int_equal(wss_root_open(make_path(path, "%s/missing", tree), &root, &err), -1);
	assert_error(&err, WSS_ERR_FAILED, "missing");
	assert_int_equal(wss_root_open(tree, &root, NULL), 0);

	/* A path never leads out of the root. */
	put_text(tree, "proc/a", "one line\ntwo\n");
	assert_int_equal(wss_root_read(&root, "proc/a", 100, &text, &len), 0);
	assert_string_equal(text, "one line\ntwo\n");
	assert_int_equal(len, 13);
	assert_int_equal(wss_root_read(&root, "proc/self/stat", 100, &text, NULL), -ENOENT);
	assert_int_equal(wss_root_read(&root, "proc", 100, &text, NULL), -EISDIR);
	assert_string_equal(text, "one line\ntwo\n");
	/* Exactly as long as allowed, and one byte longer. */
	memset(big, 'b', 100000);
	put_text(tree, "big", big);
	free(wss_steal_ptr(text));
	assert_int_equal(wss_root_read(&root, "big", 100000, &text, &len), 0);
	assert_int_equal(len, 100000);
	assert_string_equal(text, big);
	free(wss_steal_ptr(text));
	assert_int_equal(wss_root_read(&root, "big", 99999, &text, &len), -EFBIG);
	/* Without waiting for a writer. */
	assert_int_equal(mkfifo(make_path(path, "%s/fifo", tree), 0600), 0);
	alarm(300);
	assert_int_equal(wss_root_read(&root, "fifo", 100, &text, &len), -EINVAL);
	assert_int_equal(wss_root_read_line(&root, "fifo", line, sizeof(line)), -EINVAL);
	assert_int_equal(wss_root_fopen(&root, "fifo", &file), -EINVAL);
	alarm(0);
	put_text(tree, "empty", "");
	assert_int_equal(wss_root_read(&root, "empty", 0, &text, &len), 0);
	assert_int_equal(len, 0);
	assert_string_equal(text, "");

	assert_int_equal(wss_root_read_line(&root, "proc/a", line, sizeof(line)), 0);
	assert_string_equal(line, "one lin");
	assert_int_equal(wss_root_read_line(&root, "empty", line, sizeof(line)), 0);
	assert_string_equal(line, "");
	assert_int_equal(wss_root_read_line(&root, "missing", line, sizeof(line)), -ENOENT);

	fd = wss_root_openat(&root, "proc/a", O_RDONLY);
	assert_true(fd >= 0);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	close(fd);
	assert_int_equal(wss_root_openat(&root, "proc/b", O_RDONLY), -ENOENT);
	assert_int_equal(wss_root_fopen(&root, "proc/a", &file), 0);
	assert_true(fcntl(fileno(file), F_GETFD) & FD_CLOEXEC);
	fclose(file);
	assert_int_equal(wss_root_fopen(&root, "proc/b", &file), -ENOENT);
	assert_int_equal(wss_root_opendir(&root, "proc", &dir), 0);
	closedir(dir);
	assert_int_equal(wss_root_opendir(&root, "proc/a", &dir), -ENOTDIR);

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		put_text(tree, "number", numbers[i].text);
		value = 7;
		assert_int_equal(wss_root_read_u64(&root, "number", &value), numbers[i].r);
		assert_int_equal(value, numbers[i].r ? 7 : numbers[i].value);
	}
	wss_root_close(&root);
	assert_int_equal(root.dirfd, -1);
	remove_tree(tree);
}

/* Cleanup releases everything that is still owned, and nothing that was passed on. */
static int open_pipe_end(bool hand_on)
{
	int fds[2];
	wss_auto_close int a = -1;
	wss_auto_close int unused = -1;

	assert_int_equal(pipe(fds), 0);
	close(fds[1]);
	a = fds[0];
	assert_int_equal(unused, -1);
	return hand_on ? wss_steal_fd(&a) : a;
}

TEST(test_cleanup)
{
	char *p = strdup("x"), *q;
	int fd;

	fd = open_pipe_end(true);
	assert_true(fcntl(fd, F_GETFD) >= 0);
	close(fd);
	fd = open_pipe_end(false);
	assert_int_equal(fcntl(fd, F_GETFD), -1);
	q = wss_steal_ptr(p);
	assert_null(p);
	assert_string_equal(q, "x");
	free(q);
}

static struct {
	unsigned messages;
	enum wss_log_level level;
	char text[64];
} logged;

static void log_keep(enum wss_log_level level, const char *text)
{
	logged.messages++;
	logged.level = level;
	snprintf(logged.text, sizeof(logged.text), "%s", text);
}

/* A sink gets the bare line, and only what the level lets through. */
TEST(test_log_sink)
{
	wss_log_set_sink(log_keep);
	wss_warn("%s is\ngone", "web1");
	assert_int_equal(logged.messages, 1);
	assert_int_equal(logged.level, WSS_LOG_WARNING);
	assert_string_equal(logged.text, "web1 is?gone");
	wss_debug("nobody asked");
	assert_int_equal(logged.messages, 1);
	wss_log_set_sink(NULL);
	wss_warn("to standard error");
	assert_int_equal(logged.messages, 1);
}

static uint64_t log_now_ns;

static uint64_t log_clock(void *unused)
{
	return log_now_ns;
}

/* A guest that resets itself eight times a second for ten minutes. Another one is logged all the same. */
TEST(test_log_of_a_noisy_guest)
{
	static const struct wss_clock_source source = {.now_ns = log_clock};
	unsigned minute, most = 0;

	log_now_ns = 1000 * WSS_NS_PER_S;
	wss_clock_inject(&source);
	wss_log_set_sink(log_keep);
	for (minute = 0; minute < 10; minute++) {
		logged.messages = 0;
		for (unsigned i = 0; i < 480; i++, log_now_ns += WSS_NS_PER_S / 8)
			wss_log_guest(i % 2 ? WSS_LOG_INFO : WSS_LOG_WARNING, "web1", UUID_A,
				      "has rebooted");
		most = logged.messages > most ? logged.messages : most;
	}
	assert_int_equal(most, 6);
	logged.messages = 0;
	/* Those of its last minute are counted, too, though it is quiet now. */
	wss_log_guests_left_out();
	assert_string_equal(logged.text,
			    "web1: left out 475 more messages about it within a minute");
	wss_log_guest(WSS_LOG_INFO, "web2", UUID_B, "has rebooted");
	assert_string_equal(logged.text, "web2: has rebooted");
	assert_int_equal(logged.messages, 2);
	log_now_ns += 60 * WSS_NS_PER_S;
	wss_log_guests_left_out();
	assert_int_equal(logged.messages, 2);
	wss_log_set_sink(NULL);
	wss_clock_inject(NULL);
}

/* What is at a descriptor takes nothing any more. */
static void fill(int fd)
{
	static const char much[4096];
	struct pollfd pfd = {.fd = fd, .events = POLLOUT};

	fcntl(fd, F_SETFL, O_NONBLOCK);
	while (poll(&pfd, 1, 0) > 0 && write(fd, much, sizeof(much)) > 0)
		;
	fcntl(fd, F_SETFL, 0);
}

static int terminal_open(int *ret_reader)
{
	char name[64];

	*ret_reader = posix_openpt(O_RDWR | O_NOCTTY);
	assert_int_equal(grantpt(*ret_reader) | unlockpt(*ret_reader), 0);
	assert_int_equal(ptsname_r(*ret_reader, name, sizeof(name)), 0);
	return open(name, O_RDWR | O_NOCTTY);
}

/* Standard error until log_back(), which returns what took the messages. */
static void log_to(int fd, int *ret_before)
{
	*ret_before = dup(STDERR_FILENO);
	dup2(fd, STDERR_FILENO);
	close(fd);
	wss_log_open();
}

static void log_back(int before)
{
	dup2(before, STDERR_FILENO);
	close(before);
	wss_log_open();
}

/* Whoever waits in vain has waited by that clock. */
static void log_poll(void *unused, struct pollfd *fds, nfds_t n, uint64_t timeout_ns)
{
	if (poll(fds, n, 0) == 0)
		log_now_ns += timeout_ns;
}

/* A reader that falls behind again and again, and a terminal that has stopped: a balloon could wait for them. */
TEST(test_log_waits_for_nobody)
{
	static const struct wss_clock_source source = {.now_ns = log_clock, .poll = log_poll};
	uint64_t began_ns = log_now_ns = 1000 * WSS_NS_PER_S;
	int fds[2], before, terminal;
	char text[65536];

	wss_clock_inject(&source);
	assert_int_equal(pipe(fds), 0);
	log_to(fds[1], &before);
	for (unsigned i = 0; i < 5; i++) {
		fill(STDERR_FILENO);
		wss_warn("nobody reads this");
		assert_true(read(fds[0], text, sizeof(text)) > 0);
		wss_warn("this is read");
		assert_true(read(fds[0], text, sizeof(text) - 1) > 0);
	}
	log_back(before);
	/* Once in a minute. */
	assert_true(log_now_ns - began_ns == WSS_NS_PER_S);
	wss_clock_inject(NULL);
	assert_non_null(strstr(text, "1 message was lost, as nobody read them\n"));
	assert_non_null(strstr(text, "this is read\n"));
	close(fds[0]);
	terminal = terminal_open(&fds[0]);
	log_to(terminal, &before);
	alarm(300);
	for (unsigned i = 0; i < 2000; i++)
		wss_warn("a terminal that takes a part of a message");
	alarm(0);
	log_back(before);
	close(fds[0]);
}

/* A child has no descriptor but the one for its result and standard error, whatever its parent has open. */
static void count_descriptors(void *result)
{
	unsigned *n = result;

	*n = 0;
	for (int fd = 0; fd < 1024; fd++)
		*n += fcntl(fd, F_GETFD) >= 0;
}

TEST(test_child_descriptors)
{
	int low = open("/dev/null", O_RDONLY), high = fcntl(low, F_DUPFD, 700);
	unsigned n = 0;

	assert_true(low >= 0 && high >= 700);
	assert_int_equal(wss_child_run(count_descriptors, &n, sizeof(n), 300 * WSS_NS_PER_S, NULL),
			 0);
	assert_int_equal(n, 2);
	close(low);
	close(high);
}

static void rest_and_count(void *opaque)
{
	uint64_t began_ns = wss_clock_now_ns();

	wss_stop_install();
	raise(SIGTERM);
	wss_clock_rest_until_ns(began_ns + 50 * WSS_NS_PER_MS);
	*(uint64_t *)opaque = wss_clock_now_ns() - began_ns;
}

/* What a program does after a request to stop may have to wait, too. In a child, because the request stays. */
TEST(test_rest_after_a_stop)
{
	uint64_t rested_ns = 0;

	assert_int_equal(wss_child_run(rest_and_count, &rested_ns, sizeof(rested_ns),
				       300 * WSS_NS_PER_S, NULL),
			 0);
	assert_true(rested_ns >= 50 * WSS_NS_PER_MS);
}

int main(void)
{
	return tests_run();
}
