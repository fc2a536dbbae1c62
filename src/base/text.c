/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "base/text.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/*
 * Returns the length of the UTF-8 sequence at s (2 to 4) as RFC 3629 allows it: no overlong
 * form, no surrogate, nothing above U+10FFFF. 0 for anything else.
 */
static int utf8_sequence(const unsigned char *s)
{
	static const struct {
		unsigned char first_low, first_high, second_low, second_high;
		int len;
	} forms[] = {
		{0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
		{0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3},
		{0xee, 0xef, 0x80, 0xbf, 3}, {0xf0, 0xf0, 0x90, 0xbf, 4},
		{0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4},
	};

	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		if (s[0] < forms[i].first_low || s[0] > forms[i].first_high ||
		    s[1] < forms[i].second_low || s[1] > forms[i].second_high)
			continue;
		for (int k = 2; k < forms[i].len; k++)
			if ((s[k] & 0xc0) != 0x80)
				return 0;
		return forms[i].len;
	}
	return 0;
}

int wss_text_character(const char *text)
{
	const unsigned char *s = (const unsigned char *)text;

	return *s < 0x80 ? 1 : utf8_sequence(s);
}

unsigned wss_text_code(const char *text, int len)
{
	const unsigned char *s = (const unsigned char *)text;
	unsigned code = len == 1 ? s[0] : s[0] & (0xffU >> (len + 1));

	for (int k = 1; k < len; k++)
		code = code << 6 | (s[k] & 0x3f);
	return code;
}

struct range {
	unsigned first, last;
};

/*
 * Characters that are invisible or change how others appear: the general categories Cc, Cf, Zl
 * and Zp, Bidi_Control, Default_Ignorable_Code_Point and the noncharacters of Unicode 15
 * (except the last two of each plane, see below). Sorted.
 */
static const struct range hidden[] = {
	{0x0, 0x1f},	    {0x7f, 0x9f},	{0xad, 0xad},	    {0x34f, 0x34f},
	{0x600, 0x605},	    {0x61c, 0x61c},	{0x6dd, 0x6dd},	    {0x70f, 0x70f},
	{0x890, 0x891},	    {0x8e2, 0x8e2},	{0x115f, 0x1160},   {0x17b4, 0x17b5},
	{0x180b, 0x180f},   {0x200b, 0x200f},	{0x2028, 0x202e},   {0x2060, 0x206f},
	{0x3164, 0x3164},   {0xd800, 0xdfff},	{0xfdd0, 0xfdef},   {0xfe00, 0xfe0f},
	{0xfeff, 0xfeff},   {0xffa0, 0xffa0},	{0xfff0, 0xfffb},   {0x110bd, 0x110bd},
	{0x110cd, 0x110cd}, {0x13430, 0x1343f}, {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a},
	{0xe0000, 0xe0fff},
};

/* General category Zs. Sorted. */
static const struct range spaces[] = {
	{0x20, 0x20},	  {0xa0, 0xa0},	    {0x1680, 0x1680}, {0x2000, 0x200a},
	{0x202f, 0x202f}, {0x205f, 0x205f}, {0x3000, 0x3000},
};

static bool range_contains(unsigned code, const struct range *ranges, size_t n)
{
	for (size_t i = 0; i < n && ranges[i].first <= code; i++)
		if (code <= ranges[i].last)
			return true;
	return false;
}

int wss_text_hidden(const char *text, unsigned *ret_code)
{
	int len = wss_text_character(text);
	unsigned code = wss_text_code(text, len ? len : 1);

	if (!len || (code >= 0x20 && code < 0x7f))
		return 0;
	*ret_code = code;
	if ((code & 0xfffe) == 0xfffe ||
	    range_contains(code, hidden, sizeof(hidden) / sizeof(hidden[0])))
		return len;
	return 0;
}

int wss_text_space(const char *text)
{
	int len = wss_text_character(text);

	return len && range_contains(wss_text_code(text, len), spaces,
				     sizeof(spaces) / sizeof(spaces[0]))
		       ? len
		       : 0;
}

int wss_text_shown(const char *text)
{
	unsigned code;

	return wss_text_hidden(text, &code) ? 0 : wss_text_character(text);
}

size_t wss_text_plain(const char *text)
{
	size_t n = 0;

	while (text[n] >= ' ' && text[n] <= '~' && text[n] != '\\' && text[n] != '"')
		n++;
	return n;
}

static bool is_continuation(char c)
{
	return ((unsigned char)c & 0xc0) == 0x80;
}

void wss_text_fit(const char *text, char *ret_text, size_t size)
{
	static const char ellipsis[] = "\xe2\x80\xa6";
	size_t len = strlen(text), head = size / 4, tail = size - head - sizeof(ellipsis);

	if (len < size) {
		memcpy(ret_text, text, len + 1);
		return;
	}
	/* Neither part may begin or end within a character. */
	while (head > 0 && is_continuation(text[head]))
		head--;
	while (tail > 0 && is_continuation(text[len - tail]))
		tail--;
	memcpy(ret_text, text, head);
	memcpy(ret_text + head, ellipsis, sizeof(ellipsis) - 1);
	memcpy(ret_text + head + sizeof(ellipsis) - 1, text + len - tail, tail + 1);
}

void wss_text_sanitize(char *text)
{
	while (*text) {
		int len = wss_text_shown(text);

		if (!len)
			*text++ = '?';
		else
			text += len;
	}
}

void wss_text_drop_incomplete(char *text)
{
	size_t end = strlen(text), last = end;

	while (last && end - last < 3 && ((unsigned char)text[last - 1] & 0xc0) == 0x80)
		last--;
	if (last && !wss_text_character(text + last - 1))
		text[last - 1] = '\0';
}

char *wss_text_shell_word(const char *text)
{
	static const char plain[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-+:@%,/=";
	char *word = malloc(4 * strlen(text) + 3), *to = word;

	if (!word || (*text && !text[strspn(text, plain)]))
		return word ? strcpy(word, text) : NULL;
	*to++ = '\'';
	for (; *text; text++) {
		if (*text == '\'')
			to = stpcpy(to, "'\\'");
		*to++ = *text;
	}
	strcpy(to, "'");
	return word;
}
