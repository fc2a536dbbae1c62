/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Formats a value as the text of a cell, and orders values. */
#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/number.h"
#include "base/text.h"
#include "base/units.h"
#include "show/report-private.h"

struct wss_value wss_value_absent(void)
{
	return (struct wss_value){.kind = WSS_KIND_ABSENT};
}

struct wss_value wss_value_text(const char *text)
{
	return (struct wss_value){.kind = text && *text ? WSS_KIND_TEXT : WSS_KIND_ABSENT,
				  .text = text};
}

struct wss_value wss_value_number(uint64_t number, enum wss_kind kind)
{
	return (struct wss_value){.kind = kind, .number = number};
}

struct wss_value wss_value_amount(struct wss_amount amount, enum wss_kind kind)
{
	return wss_value_number(amount.value, amount.known ? kind : WSS_KIND_ABSENT);
}

struct wss_value wss_value_share(double share)
{
	return (struct wss_value){.kind = WSS_KIND_SHARE, .real = share};
}

struct wss_value wss_value_bounded(struct wss_value value, enum wss_bound bound)
{
	value.bound = bound;
	return value;
}

struct wss_value wss_value_time(time_t when)
{
	static _Thread_local char text[WSS_CLOCK_TEXT_MAX];

	wss_clock_format(when, text);
	return wss_value_text(text);
}

static struct wss_value member_number(uint64_t number, enum wss_kind kind)
{
	return kind == WSS_KIND_PAGES ? wss_value_number(number << 12, WSS_KIND_BYTES)
				      : wss_value_number(number, kind);
}

static struct wss_value member_real(double real, enum wss_kind kind)
{
	if (kind == WSS_KIND_SHARE || kind == WSS_KIND_FACTOR)
		return (struct wss_value){.kind = kind, .real = real};
	return wss_value_number(
		wss_u64_from_double((kind == WSS_KIND_DURATION ? real * 1e9 : real) + 0.5), kind);
}

struct wss_value wss_column_value(const struct wss_column *column, const void *row)
{
	const struct wss_source *source = &column->source;
	const void *base = source->of ? source->of(row) : row;
	const void *at;

	if (source->get)
		return source->get(row);
	if (!base)
		return wss_value_absent();
	at = (const char *)base + source->offset;
	switch (source->member) {
	case WSS_MEMBER_ARRAY:
		return wss_value_text(at);
	case WSS_MEMBER_TEXT:
		return wss_value_text(*(const char *const *)at);
	case WSS_MEMBER_AMOUNT:
		return ((const struct wss_amount *)at)->known
			       ? member_number(((const struct wss_amount *)at)->value, source->kind)
			       : wss_value_absent();
	case WSS_MEMBER_NUMBER:
		return member_number(*(const uint64_t *)at, source->kind);
	case WSS_MEMBER_UNSIGNED:
		return wss_value_number(*(const unsigned *)at, source->kind);
	case WSS_MEMBER_BOOL:
		return wss_value_number(*(const bool *)at, source->kind);
	case WSS_MEMBER_INT:
		return *(const int *)at < 0
			       ? wss_value_absent()
			       : wss_value_number((uint64_t) * (const int *)at, source->kind);
	case WSS_MEMBER_DOUBLE:
		return member_real(*(const double *)at, source->kind);
	case WSS_MEMBER_VALUE:
		return *(const struct wss_value *)at;
	case WSS_MEMBER_TIME:
		return wss_value_time(*(const time_t *)at);
	}
	return wss_value_absent();
}

static const char *bound_sign(const struct wss_value *value)
{
	bool share = value->kind == WSS_KIND_SHARE;

	switch (value->bound) {
	case WSS_BOUND_AT_MOST:
		return share ? "<=" : "<= ";
	case WSS_BOUND_AT_LEAST:
		return share ? ">=" : ">= ";
	default:
		return "";
	}
}

static void format_figure(const struct wss_value *value, char *buf, size_t size)
{
	char number[WSS_NUMBER_TEXT_MAX];

	switch (value->kind) {
	case WSS_KIND_BYTES:
		wss_size_format(value->number, buf, size);
		break;
	case WSS_KIND_DURATION:
		wss_duration_format(value->number, buf, size);
		break;
	case WSS_KIND_SHARE:
		snprintf(buf, size, "%.1f%%",
			 wss_bound_round(value->real * 1000, value->bound) / 10);
		break;
	case WSS_KIND_FACTOR:
		snprintf(buf, size, "%.2f", value->real);
		break;
	case WSS_KIND_AGE:
		wss_age_format(value->number, buf, size);
		break;
	case WSS_KIND_BOOL:
		snprintf(buf, size, "%s", value->number ? "yes" : "no");
		break;
	case WSS_KIND_PERCENT:
		snprintf(buf, size, "%" PRIu64 "%%", value->number);
		break;
	case WSS_KIND_ADDRESS:
		snprintf(buf, size, "0x%" PRIx64, value->number);
		break;
	default:
		snprintf(buf, size, "%s", wss_number_format(value->number, number));
		break;
	}
}

void wss_cell_for_people(const struct wss_value *value, char cell[static WSS_CELL_MAX])
{
	char *end;

	if (value->kind == WSS_KIND_ABSENT) {
		memcpy(cell, "-", sizeof("-"));
	} else if (value->text) {
		snprintf(cell, WSS_CELL_TEXT_MAX, "%s", value->text);
		wss_text_sanitize(cell);
	} else {
		end = stpcpy(cell, bound_sign(value));
		format_figure(value, end, WSS_CELL_TEXT_MAX - (size_t)(end - cell));
	}
}

/* Formats every kind of value except text. */
static void format_for_csv(const struct wss_value *value, char *buf, size_t size)
{
	char number[WSS_NUMBER_TEXT_MAX];

	switch (value->kind) {
	case WSS_KIND_ABSENT:
		buf[0] = '\0';
		break;
	case WSS_KIND_DURATION:
		wss_seconds_format(value->number, buf, size);
		break;
	case WSS_KIND_SHARE:
	case WSS_KIND_FACTOR:
		snprintf(buf, size, "%.6f", value->real);
		break;
	case WSS_KIND_ADDRESS:
		snprintf(buf, size, "0x%" PRIx64, value->number);
		break;
	default:
		snprintf(buf, size, "%s", wss_number_format(value->number, number));
		break;
	}
}

/*
 * Whether a spreadsheet would take a text for a formula. It may skip blanks, and accepts
 * full-width characters.
 */
static bool is_formula(const char *text)
{
	static const char *const begins[] = {"=",      "+",	 "-",	   "@",
					     "\uff1d", "\uff0b", "\uff0d", "\uff20"};
	int blank;

	while ((blank = wss_text_space(text)) > 0)
		text += blank;
	for (size_t i = 0; i < sizeof(begins) / sizeof(begins[0]); i++)
		if (!strncmp(text, begins[i], strlen(begins[i])))
			return true;
	return false;
}

/*
 * Quotes by RFC 4180. A text that a spreadsheet would take for a formula gets a quotation mark
 * before it, because names come from the owners of guests.
 */
static void quote_for_csv(const char *text, char *to)
{
	bool formula = is_formula(text);

	if (!formula && !strpbrk(text, ",\"")) {
		memcpy(to, text, strlen(text) + 1);
		return;
	}
	*to++ = '"';
	if (formula)
		*to++ = '\'';
	for (; *text; text++) {
		if (*text == '"')
			*to++ = '"';
		*to++ = *text;
	}
	*to++ = '"';
	*to = '\0';
}

void wss_cell_for_csv(const struct wss_value *value, char cell[static WSS_CELL_MAX])
{
	char text[WSS_CELL_TEXT_MAX];

	if (value->kind != WSS_KIND_TEXT) {
		format_for_csv(value, cell, WSS_CELL_TEXT_MAX);
		return;
	}
	snprintf(text, sizeof(text), "%s", value->text);
	/* A record must stay one line, and no text may move a terminal's cursor. */
	wss_text_sanitize(text);
	quote_for_csv(text, cell);
}

static bool is_real_value(const struct wss_value *value)
{
	return value->kind == WSS_KIND_SHARE || value->kind == WSS_KIND_FACTOR;
}

int wss_value_compare(const struct wss_value *a, const struct wss_value *b)
{
	bool a_text = a->kind == WSS_KIND_TEXT, b_text = b->kind == WSS_KIND_TEXT;

	if (a_text || b_text)
		return a_text && b_text ? strcmp(a->text, b->text) : a_text - b_text;
	if (is_real_value(a) && is_real_value(b))
		return (a->real > b->real) - (a->real < b->real);
	return (a->number > b->number) - (a->number < b->number);
}
