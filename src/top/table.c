/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The table of top, as text: which columns fit, in which order the guests are, and how each cell looks. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "client/guest-view.h"
#include "show/width.h"
#include "top/columns.h"
#include "top/top.h"

/* Working set in percent of the balloon from which a guest stands out: the defaults of check. */
#define HIGH_PERCENT 90
#define FULL_PERCENT 95

#define NAME_MIN_WIDTH 20
/* However long the names are, the column of reasons keeps this width. The line at the top shows one reason in full. */
#define WHY_MIN_WIDTH 20
/* The column of reasons is the last. */
#define WHY_COLUMN (wss_top_n_columns - 1)

/* --- columns --- */

/* Returns the larger of a width and that of a text as it is shown, which it changes to that. */
static int width_max(int width, char *text)
{
	int columns;

	wss_text_sanitize(text);
	columns = wss_text_width(text);
	if (columns > WSS_TOP_WIDTH_MAX)
		columns = WSS_TOP_WIDTH_MAX;
	return columns > width ? columns : width;
}

struct wss_top_widths wss_top_widths(const struct wss_top_view *view)
{
	struct wss_top_widths widths = {.name = NAME_MIN_WIDTH};
	char text[WSS_TOP_TEXT_MAX];

	for (size_t i = 0; i < view->guests.n; i++) {
		const struct wss_guest_view *guest = &view->guests.list[i];

		wss_top_columns[0].format(guest, 0, text, sizeof(text));
		widths.name = width_max(widths.name, text);
		wss_top_columns[WHY_COLUMN].format(guest, 0, text, sizeof(text));
		widths.why = width_max(widths.why, text);
	}
	return widths;
}

/* Shares the width that the other columns leave: names come first, and reasons take the rest. */
static void layout_share(struct wss_top_layout *layout, int both,
			 const struct wss_top_widths *widths)
{
	int why = widths->why < WHY_MIN_WIDTH ? widths->why : WHY_MIN_WIDTH;
	int name = both - why < widths->name ? both - why : widths->name;

	if (name < NAME_MIN_WIDTH)
		name = NAME_MIN_WIDTH;
	layout->cells[0].width = name;
	layout->cells[layout->n - 1].width = both > name ? both - name : 1;
}

struct wss_top_layout wss_top_layout(int width, const struct wss_top_widths *widths)
{
	struct wss_top_layout layout = {.n = 0};
	int fixed = 0, rest, x = 0;

	if (width > WSS_TOP_WIDTH_MAX)
		width = WSS_TOP_WIDTH_MAX;
	for (size_t i = 0; i < wss_top_n_columns; i++) {
		if (wss_top_columns[i].from > width || (i == WHY_COLUMN && !widths->why))
			continue;
		layout.cells[layout.n].column = i;
		layout.cells[layout.n++].width = wss_top_columns[i].width;
		fixed += wss_top_columns[i].width + 1;
	}
	rest = width - fixed + 1;
	if (layout.cells[layout.n - 1].column == WHY_COLUMN)
		layout_share(&layout, rest, widths);
	else
		layout.cells[0].width = rest > widths->name ? widths->name : rest > 1 ? rest : 1;
	for (size_t i = 0; i < layout.n; i++) {
		layout.cells[i].x = x;
		x += layout.cells[i].width + 1;
	}
	return layout;
}

size_t wss_top_sort_first(void)
{
	return (size_t)wss_top_sort_name("wss");
}

int wss_top_sort_name(const char *name)
{
	for (size_t i = 0; i < wss_top_n_columns; i++)
		if (wss_top_columns[i].name && !strcmp(wss_top_columns[i].name, name))
			return (int)i;
	return -1;
}

void wss_top_sort_names(char *ret_names, size_t size)
{
	size_t len = 0;

	ret_names[0] = '\0';
	for (size_t i = 0; i < wss_top_n_columns && len < size; i++)
		if (wss_top_columns[i].name)
			len += (size_t)snprintf(ret_names + len, size - len, "%s%s", len ? " " : "",
						wss_top_columns[i].name);
}

int wss_top_sort_key(int key)
{
	for (size_t i = 0; i < wss_top_n_columns; i++)
		if (wss_top_columns[i].letter && wss_top_columns[i].letter == key)
			return (int)i;
	return -1;
}

size_t wss_top_sort_step(size_t column, int step)
{
	do
		column = (column + wss_top_n_columns + (size_t)step) % wss_top_n_columns;
	while (!wss_top_columns[column].key);
	return column;
}

/* --- order --- */

/* What is unknown comes last, whatever the direction; names decide between equals. */
static int compare_guests(const void *a, const void *b, void *opaque)
{
	const struct wss_guest_view *left = *(const struct wss_guest_view *const *)a;
	const struct wss_guest_view *right = *(const struct wss_guest_view *const *)b;
	const struct wss_top_settings *settings = opaque;
	const struct wss_top_column *column = &wss_top_columns[settings->sort];
	struct wss_top_key x = column->key(left), y = column->key(right);
	int order = 0;

	if (x.text && y.text)
		order = strcasecmp(x.text, y.text);
	else if (x.number.known != y.number.known)
		return x.number.known ? -1 : 1;
	else if (x.number.known)
		order = (x.number.value > y.number.value) - (x.number.value < y.number.value);
	if (column->descending != settings->reverse)
		order = -order;
	if (!order)
		order = strcmp(left->name, right->name);
	return order ? order : strcmp(left->uuid, right->uuid);
}

int wss_top_select(const struct wss_top_view *view, const struct wss_top_settings *settings,
		   const struct wss_guest_view ***ret_list, size_t *ret_n, struct wss_error *err)
{
	const struct wss_guest_view **list =
		calloc(view->guests.n + 1, sizeof(const struct wss_guest_view *));
	size_t n = 0;

	if (!list)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	for (size_t i = 0; i < view->guests.n; i++)
		if (strcasestr(view->guests.list[i].name, settings->filter))
			list[n++] = &view->guests.list[i];
	qsort_r(list, n, sizeof(const struct wss_guest_view *), compare_guests, (void *)settings);
	*ret_list = list;
	*ret_n = n;
	return 0;
}

const char *wss_top_column_name(size_t column)
{
	return wss_top_columns[column].name;
}

/* --- cells --- */

/* Replaces each character that is not ASCII by a question mark. */
static void make_ascii(char *text)
{
	char *to = text;

	for (char *from = text; *from;) {
		int len = wss_text_character(from);

		*to++ = len > 1 || !len ? '?' : *from;
		from += len ? len : 1;
	}
	*to = '\0';
}

void wss_top_fit(const struct wss_top_settings *settings, char text[WSS_TOP_TEXT_MAX], int width)
{
	wss_text_sanitize(text);
	if (width < 1)
		width = 1;
	if (settings->utf8) {
		wss_text_cut(text, WSS_TOP_TEXT_MAX, width);
		return;
	}
	make_ascii(text);
	if (strlen(text) > (size_t)width) {
		text[width] = '\0';
		text[width - 1] = '~';
	}
}

/* Fits text into its cell, and fills that with blanks. */
static void cell_pad(const struct wss_top_settings *settings, char text[WSS_TOP_TEXT_MAX],
		     int width, bool left)
{
	size_t len, blanks;
	int used;

	wss_top_fit(settings, text, width);
	used = wss_text_width(text);
	len = strlen(text);
	blanks = used < width ? (size_t)(width - used) : 0;
	if (len + blanks >= WSS_TOP_TEXT_MAX)
		return;
	if (!left)
		memmove(text + blanks, text, len + 1);
	memset(left ? text + len : text, ' ', blanks);
	text[len + blanks] = '\0';
}

static enum wss_top_style style_of(const struct wss_guest_view *guest)
{
	double percent;

	if (wss_view_is(guest, "left out") || !guest->sample.wss_bytes.known)
		return WSS_TOP_DIM;
	if (!wss_view_percent(guest, &percent) || percent <= HIGH_PERCENT)
		return WSS_TOP_PLAIN;
	return percent > FULL_PERCENT ? WSS_TOP_FULL : WSS_TOP_HIGH;
}

enum wss_top_style wss_top_cell(const struct wss_top_settings *settings,
				const struct wss_top_layout *layout, size_t i,
				const struct wss_guest_view *guest, uint64_t late_ns,
				char ret_text[WSS_TOP_TEXT_MAX])
{
	const struct wss_top_column *column = &wss_top_columns[layout->cells[i].column];
	int width = layout->cells[i].width;

	ret_text[0] = '\0';
	if (!guest)
		snprintf(ret_text, WSS_TOP_TEXT_MAX, "%s", column->header);
	else
		column->format(guest, late_ns, ret_text, WSS_TOP_TEXT_MAX);
	if (guest && !ret_text[0] && column->key)
		strcpy(ret_text, "-");
	cell_pad(settings, ret_text, width, column->left);
	if (!guest)
		return layout->cells[i].column == settings->sort ? WSS_TOP_HIGH : WSS_TOP_PLAIN;
	return style_of(guest);
}

/* --- help --- */

const char *wss_top_help(size_t i)
{
	static const char *const keys[] = {
		"Keys:",
		"  q, Ctrl-C   quit",
		"  h, ?        show this help",
		"  arrows, PgUp, PgDn, Home, End: scroll",
		"  Space       update now",
		"  p           pause, or continue",
		"  d           set the delay",
		"  r           reverse the order",
		"  <, >        sort by the column to the left or right",
		"  /           show names that contain a text; empty: all",
		"",
		"Columns, with the key to sort by them:",
	};
	static _Thread_local char line[160];
	const size_t n_keys = sizeof(keys) / sizeof(keys[0]);

	if (i < n_keys)
		return keys[i];
	if (i - n_keys >= wss_top_n_columns)
		return NULL;
	i -= n_keys;
	snprintf(line, sizeof(line), "  %c  %-8.8s %s",
		 wss_top_columns[i].letter ? wss_top_columns[i].letter : ' ',
		 wss_top_columns[i].header, wss_top_columns[i].help);
	return line;
}
