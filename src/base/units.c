/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "base/units.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/number.h"

struct unit {
	const char *name;
	double factor;
};

static const struct unit duration_units[] = {
	{"", 1e9},     {"us", 1e3},   {"ms", 1e6},    {"s", 1e9}, {"m", 60e9},
	{"min", 60e9}, {"h", 3600e9}, {"d", 86400e9}, {NULL, 0},
};

static const struct unit size_units[] = {
	{"B", 1},
	{"K", 1024},
	{"KiB", 1024},
	{"KB", 1e3},
	{"M", 1024.0 * 1024},
	{"MiB", 1024.0 * 1024},
	{"MB", 1e6},
	{"G", 1024.0 * 1024 * 1024},
	{"GiB", 1024.0 * 1024 * 1024},
	{"GB", 1e9},
	{"T", 1024.0 * 1024 * 1024 * 1024},
	{"TiB", 1024.0 * 1024 * 1024 * 1024},
	{"TB", 1e12},
	{NULL, 0},
};

/* Parses a plain decimal number and its unit: no sign, no exponent, no hexadecimal, no "inf". */
static int parse_scaled(const char *text, const struct unit *units, double *ret_value)
{
	size_t digits = strspn(text, "0123456789.");
	char *end;
	double number;

	if (!digits || !isdigit((unsigned char)text[0]) || digits > 24)
		return -1;
	number = strtod(text, &end);
	if (end != text + digits)
		return -1;
	for (; units->name; units++) {
		if (!strcasecmp(end, units->name)) {
			*ret_value = number * units->factor;
			return 0;
		}
	}
	return -1;
}

void wss_duration_format_typed(uint64_t ns, char *ret_text, size_t size)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = {
		{"d", 86400000000000}, {"h", 3600000000000}, {"min", 60000000000},
		{"s", 1000000000},     {"ms", 1000000},	     {"us", 1000},
	};

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (ns % units[i].ns == 0) {
			snprintf(ret_text, size, "%" PRIu64 "%s", ns / units[i].ns, units[i].name);
			return;
		}
	}
	wss_duration_format(ns, ret_text, size);
}

static int parse_duration(const char *text, double min_ns, uint64_t max_ns, const char *what,
			  uint64_t *ret_ns, struct wss_error *err)
{
	double ns;
	char max[32];

	if (parse_scaled(text, duration_units, &ns) < 0)
		return wss_error_set(err, WSS_ERR_USAGE,
				     "%s: '%s' is not a duration (examples: 10ms, 4s, 5m)", what,
				     text);
	if (ns < min_ns)
		return wss_error_set(err, WSS_ERR_USAGE,
				     "%s: '%s' is too short: it must be more than 0", what, text);
	/* Compared as integers: converted to double, a large limit is rounded up. */
	if (ns >= 0x1p64 || (uint64_t)ns > max_ns) {
		wss_duration_format_typed(max_ns, max, sizeof(max));
		return wss_error_set(err, WSS_ERR_USAGE, "%s: '%s' is too long: at most %s", what,
				     text, max);
	}
	*ret_ns = wss_u64_from_double(ns);
	return 0;
}

int wss_duration_parse(const char *text, uint64_t max_ns, const char *what, uint64_t *ret_ns,
		       struct wss_error *err)
{
	return parse_duration(text, 1, max_ns, what, ret_ns, err);
}

int wss_moment_parse(const char *text, const char *what, uint64_t *ret_ns, struct wss_error *err)
{
	return parse_duration(text, 0, INT64_MAX, what, ret_ns, err);
}

int wss_size_parse(const char *text, const char *what, uint64_t *ret_bytes, struct wss_error *err)
{
	double bytes = 0;

	/* 0 needs no unit. */
	if (strcmp(text, "0") != 0 && parse_scaled(text, size_units, &bytes) < 0)
		return wss_error_set(err, WSS_ERR_USAGE,
				     *text && !text[strspn(text, "0123456789.")]
					     ? "%s: '%s' has no unit (examples: 512MiB, 2GiB)"
					     : "%s: '%s' is not a size (examples: 512MiB, 2GiB)",
				     what, text);
	if (bytes > 9e18)
		return wss_error_set(err, WSS_ERR_USAGE, "%s: '%s' is too large", what, text);
	*ret_bytes = wss_u64_from_double(bytes);
	return 0;
}

int wss_size_limit_parse(const char *text, const char *what, uint64_t *ret_bytes,
			 struct wss_error *err)
{
	if (wss_size_parse(text, what, ret_bytes, err) < 0)
		return -1;
	if (*ret_bytes < WSS_MIB)
		return wss_error_set(err, WSS_ERR_USAGE, "%s: '%s' is less than 1 MiB", what, text);
	return 0;
}

int wss_number_parse(const char *text, uint64_t min, uint64_t max, const char *what,
		     uint64_t *ret_number, struct wss_error *err)
{
	size_t len = strlen(text);
	unsigned long long number = 0;

	errno = 0;
	if (len && len <= 20 && strspn(text, "0123456789") == len)
		number = strtoull(text, NULL, 10);
	else
		errno = EINVAL;
	if (errno || number < min || number > max)
		return wss_error_set(err, WSS_ERR_USAGE,
				     "%s: '%s' is not a whole number from %" PRIu64 " to %" PRIu64,
				     what, text, min, max);
	*ret_number = number;
	return 0;
}

int wss_whole_percent_parse(const char *text, uint64_t min, uint64_t max, const char *what,
			    uint64_t *ret_percent, struct wss_error *err)
{
	size_t len = strlen(text);
	char number[24];

	if (len && text[len - 1] == '%')
		len--;
	if (len >= sizeof(number))
		return wss_number_parse(text, min, max, what, ret_percent, err);
	memcpy(number, text, len);
	number[len] = '\0';
	return wss_number_parse(number, min, max, what, ret_percent, err);
}

void wss_size_format(uint64_t bytes, char *ret_text, size_t size)
{
	static const char *const names[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	double value = (double)bytes;
	size_t i = 0;

	while (value >= 999.5 && i + 1 < sizeof(names) / sizeof(names[0])) {
		value /= 1024;
		i++;
	}
	if (i == 0 || value >= 99.95 || value == floor(value))
		snprintf(ret_text, size, "%.0f %s", value, names[i]);
	else
		snprintf(ret_text, size, value < 9.995 ? "%.2f %s" : "%.1f %s", value, names[i]);
}

void wss_duration_format(uint64_t ns, char *ret_text, size_t size)
{
	if (ns == 0)
		snprintf(ret_text, size, "0 s");
	else if (ns < 999500ULL)
		snprintf(ret_text, size, "%.3g us", (double)ns / 1e3);
	else if (ns < 999500000ULL)
		snprintf(ret_text, size, "%.3g ms", (double)ns / 1e6);
	else if (ns < 120 * 1000000000ULL)
		snprintf(ret_text, size, ns < 9995000000ULL ? "%.2f s" : "%.1f s",
			 (double)ns / 1e9);
	else if (ns < 7200 * 1000000000ULL)
		snprintf(ret_text, size, "%.1f min", (double)ns / 60e9);
	else if (ns < 3598200 * 1000000000ULL)
		snprintf(ret_text, size, "%.3g h", (double)ns / 3600e9);
	else
		snprintf(ret_text, size, "%.0f d", (double)ns / 86400e9);
}

char *wss_number_format(uint64_t number, char ret_text[WSS_NUMBER_TEXT_MAX])
{
	char *at = ret_text + WSS_NUMBER_TEXT_MAX;

	*--at = '\0';
	do {
		*--at = (char)('0' + number % 10);
		number /= 10;
	} while (number);
	return at;
}

void wss_seconds_format(uint64_t ns, char *ret_text, size_t size)
{
	uint64_t micro = ns / 1000 % 1000000;
	char number[WSS_NUMBER_TEXT_MAX], fraction[8] = ".000000";
	size_t len = micro ? 7 : 0;

	for (size_t i = 6; i > 0; i--, micro /= 10)
		fraction[i] = (char)('0' + micro % 10);
	while (len && fraction[len - 1] == '0')
		len--;
	fraction[len] = '\0';
	snprintf(ret_text, size, "%s%s", wss_number_format(ns / 1000000000, number), fraction);
}

void wss_age_format(uint64_t seconds, char *ret_text, size_t size)
{
	if (seconds < 120)
		snprintf(ret_text, size, "%" PRIu64 " s", seconds);
	else if (seconds < 120 * 60)
		snprintf(ret_text, size, "%" PRIu64 " min", seconds / 60);
	else if (seconds < 48 * 3600)
		snprintf(ret_text, size, "%" PRIu64 " h", seconds / 3600);
	else
		snprintf(ret_text, size, "%" PRIu64 " d", seconds / 86400);
}

int wss_percent_parse(const char *text, double min, double max, const char *what, double *ret_share,
		      struct wss_error *err)
{
	size_t digits = strspn(text, "0123456789.");
	double percent = strtod(text, NULL);

	if (text[0] < '0' || text[0] > '9' || digits > 12 ||
	    strchr(text, '.') != strrchr(text, '.') ||
	    (text[digits] && strcmp(text + digits, "%") != 0) || percent < min || percent > max)
		return wss_error_set(err, WSS_ERR_USAGE,
				     "%s: '%s' is not a percentage from %g to %g", what, text, min,
				     max);
	*ret_share = percent / 100;
	return 0;
}
