/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "show/width.h"

#include <locale.h>
#include <pthread.h>
#include <string.h>
#include <wchar.h>

#include "base/text.h"

#define ELLIPSIS "\xe2\x80\xa6"

/* Locale with the Unicode widths, independent of the caller's locale. 0: this system has none. */
static locale_t utf8_locale;
static pthread_once_t utf8_locale_once = PTHREAD_ONCE_INIT;

static void open_utf8_locale(void)
{
	utf8_locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
}

/* Returns the columns of the character of len bytes (1-4) at s. */
static int character_width(const char *s, int len)
{
	wchar_t code = (wchar_t)wss_text_code(s, len);
	locale_t before;
	int width;

	if (code < 0x80)
		return 1;
	pthread_once(&utf8_locale_once, open_utf8_locale);
	if (!utf8_locale)
		return 1;
	before = uselocale(utf8_locale);
	width = wcwidth(code);
	uselocale(before);
	return width < 0 ? 1 : width;
}

/* Returns the next character; adds the columns of this one to *width. */
static const char *character_next(const char *s, int *width)
{
	int len = wss_text_character(s);

	*width += len ? character_width(s, len) : 1;
	return s + (len ? len : 1);
}

int wss_text_width(const char *text)
{
	int width = 0;

	while (*text) {
		/* Most texts are plain ASCII. */
		if (*text >= ' ' && *text <= '~') {
			width++;
			text++;
		} else {
			text = character_next(text, &width);
		}
	}
	return width;
}

/* Returns the number of bytes of text whose characters fit into width columns. */
static size_t fitting_bytes(const char *text, int width)
{
	const char *end = text;
	int used = 0;

	while (*end) {
		const char *next = character_next(end, &used);

		if (used > width)
			break;
		end = next;
	}
	return (size_t)(end - text);
}

/* Returns the end of text whose characters fit into width columns. */
static const char *fitting_end(const char *text, int width)
{
	int left = wss_text_width(text), columns;
	const char *next;

	while (*text && left > width) {
		columns = 0;
		text = character_next(text, &columns);
		left -= columns;
	}
	/* An accent would combine with what comes before. */
	for (; *text; text = next) {
		columns = 0;
		next = character_next(text, &columns);
		if (columns)
			break;
	}
	return text;
}

void wss_text_cut_inside(char *text, size_t size, int width, int head)
{
	size_t len, end_bytes;
	const char *end;

	if (wss_text_width(text) <= width)
		return;
	len = fitting_bytes(text, head);
	end = fitting_end(text + len, width - 1 - head);
	end_bytes = strlen(end) + 1;
	if (len + strlen(ELLIPSIS) + end_bytes > size) {
		text[len] = '\0';
		return;
	}
	memmove(text + len + strlen(ELLIPSIS), end, end_bytes);
	memcpy(text + len, ELLIPSIS, strlen(ELLIPSIS));
}

void wss_text_cut(char *text, size_t size, int width)
{
	wss_text_cut_inside(text, size, width, width - 1);
}

void wss_name_shorten(const char *name, char ret_text[static WSS_NAME_SHORT_MAX])
{
	wss_text_fit(name, ret_text, WSS_NAME_SHORT_MAX);
	wss_text_cut_inside(ret_text, WSS_NAME_SHORT_MAX, WSS_NAME_WIDTH_MAX,
			    WSS_NAME_WIDTH_MAX / 2);
}

size_t wss_text_line(const char *text, int width)
{
	size_t len = fitting_bytes(text, width), at;
	int unused = 0;

	if (!text[len] || text[len] == ' ')
		return len;
	for (at = len; at > 0; at--)
		if (text[at - 1] == ' ')
			return at - 1 ? at - 1 : 1;
	return len ? len : (size_t)(character_next(text, &unused) - text);
}
