/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "show/plugin.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "show/width.h"

#define STATES 4
/* More than the digits of a double near 100. */
#define DECIMALS_MAX 15
/* Digits of a UUID in a label, as in the first part of one. */
#define ID_DIGITS 8

const char *wss_plugin_state_name(enum wss_plugin_state state)
{
	static const char *const names[STATES] = {"OK", "WARNING", "CRITICAL", "UNKNOWN"};

	return names[state];
}

int wss_plugin_state_parse(const char *text, const char *what, enum wss_plugin_state *ret_state,
			   struct wss_error *err)
{
	for (int i = 0; i < STATES; i++) {
		if (strcasecmp(text, wss_plugin_state_name((enum wss_plugin_state)i)) != 0)
			continue;
		*ret_state = (enum wss_plugin_state)i;
		return 0;
	}
	return wss_error_set(err, WSS_ERR_USAGE, "%s: '%s' is not ok, warning, critical or unknown",
			     what, text);
}

enum wss_plugin_state wss_plugin_worse(enum wss_plugin_state a, enum wss_plugin_state b)
{
	static const int rank[STATES] = {0, 2, 3, 1};

	return rank[a] > rank[b] ? a : b;
}

/* Parses a number, digits with a point and a sign, up to the character end; -1: it is none. */
static int parse_number(const char *text, size_t len, double *ret_number)
{
	char copy[WSS_THRESHOLD_TEXT_MAX], *end;

	if (!len || len >= sizeof(copy) || strspn(text, "-.0123456789") < len)
		return -1;
	memcpy(copy, text, len);
	copy[len] = '\0';
	*ret_number = strtod(copy, &end);
	return *end ? -1 : 0;
}

static int parse_limits(const char *text, struct wss_threshold *range)
{
	const char *colon = strchr(text, ':'), *end = colon ? colon + 1 : text;

	range->low = 0;
	range->high = INFINITY;
	if (colon && colon - text == 1 && *text == '~')
		range->low = -INFINITY;
	else if (colon && colon > text &&
		 parse_number(text, (size_t)(colon - text), &range->low) < 0)
		return -1;
	/* "10:" has no end, but ":" and "" are nothing. */
	if (!*end)
		return colon && colon > text ? 0 : -1;
	if (parse_number(end, strlen(end), &range->high) < 0)
		return -1;
	return range->low <= range->high ? 0 : -1;
}

int wss_threshold_parse(const char *text, const char *what, struct wss_threshold *ret_threshold,
			struct wss_error *err)
{
	struct wss_threshold range = {.inside = *text == '@'};

	if (strlen(text) >= sizeof(range.text) || parse_limits(text + range.inside, &range) < 0)
		return wss_error_set(err, WSS_ERR_USAGE,
				     "%s: '%s' is not a range (examples: 90, 10:90, ~:90, @10:20)",
				     what, text);
	strcpy(range.text, text);
	*ret_threshold = range;
	return 0;
}

static bool threshold_alerts(const struct wss_threshold *range, double value)
{
	return range->text[0] && (value >= range->low && value <= range->high) == range->inside;
}

enum wss_plugin_state wss_plugin_judge(const struct wss_threshold *warning,
				       const struct wss_threshold *critical, double value)
{
	if (threshold_alerts(critical, value))
		return WSS_PLUGIN_CRITICAL;
	return threshold_alerts(warning, value) ? WSS_PLUGIN_WARNING : WSS_PLUGIN_OK;
}

/* Prints text without hidden characters and those of list, which become a replacement. */
static bool put_without(FILE *stream, const char *text, const char *list, char replacement)
{
	bool changed = false;

	while (*text) {
		int len = wss_text_shown(text);

		if (!len || strchr(list, *text)) {
			unsigned code;
			int hidden = len ? len : wss_text_hidden(text, &code);

			fputc(replacement, stream);
			text += hidden ? hidden : 1;
			changed = true;
		} else {
			fwrite(text, (size_t)len, 1, stream);
			text += len;
		}
	}
	return changed;
}

void wss_plugin_text(FILE *stream, const char *text)
{
	put_without(stream, text, "|", '?');
}

void wss_plugin_name(FILE *stream, const char *name)
{
	char text[WSS_NAME_SHORT_MAX];

	wss_name_shorten(name, text);
	wss_plugin_text(stream, text);
}

/*
 * A label may hold neither '=' nor a quote. Old parsers also split at the bar and the semicolon. Two
 * names that are the same after that are told apart by their UUIDs.
 */
static void put_label(FILE *stream, const struct wss_plugin_figure *figure)
{
	if (!figure->name) {
		fputs(figure->what, stream);
		return;
	}
	fputc('\'', stream);
	if (put_without(stream, figure->name, "='|;\"\\", '_'))
		fprintf(stream, " %.*s", ID_DIGITS, figure->id);
	fprintf(stream, " %s'", figure->what);
}

static const char *text_of(const struct wss_threshold *range)
{
	return range ? range->text : "";
}

void wss_plugin_number(double value, enum wss_bound bound, int decimals,
		       const struct wss_threshold *warning, const struct wss_threshold *critical,
		       char ret_text[WSS_PLUGIN_NUMBER_MAX])
{
	double shown, scale;

	do {
		scale = pow(10, decimals);
		snprintf(ret_text, WSS_PLUGIN_NUMBER_MAX, "%.*f", decimals,
			 wss_bound_round(value * scale, bound) / scale);
		shown = strtod(ret_text, NULL);
	} while ((threshold_alerts(warning, shown) != threshold_alerts(warning, value) ||
		  threshold_alerts(critical, shown) != threshold_alerts(critical, value)) &&
		 decimals++ < DECIMALS_MAX);
}

/* With three decimals or more, without trailing zeros, and never an exponent. */
static void put_number(FILE *stream, double value, const struct wss_threshold *warning,
		       const struct wss_threshold *critical)
{
	static const struct wss_threshold none = {.text = ""};
	char text[WSS_PLUGIN_NUMBER_MAX];
	size_t len;

	wss_plugin_number(value, WSS_BOUND_EXACT, 3, warning ? warning : &none,
			  critical ? critical : &none, text);
	len = strlen(text);
	while (text[len - 1] == '0')
		len--;
	fwrite(text, 1, text[len - 1] == '.' ? len - 1 : len, stream);
}

void wss_plugin_figure(FILE *stream, const struct wss_plugin_figure *figure)
{
	fputc(' ', stream);
	put_label(stream, figure);
	fputc('=', stream);
	if (!figure->known) {
		fputc('U', stream);
		return;
	}
	put_number(stream, figure->value, figure->warning, figure->critical);
	fprintf(stream, "%s;%s;%s;0", figure->unit, text_of(figure->warning),
		text_of(figure->critical));
	if (figure->max > 0) {
		fputc(';', stream);
		put_number(stream, figure->max, NULL, NULL);
	}
}
