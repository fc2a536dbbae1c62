/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The table of top, as text: which columns fit, in which order the guests are, and what each cell says. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/number.h"
#include "base/text.h"
#include "base/units.h"
#include "cmd/guest-view.h"
#include "cmd/top.h"
#include "out/width.h"
#include "wss/sample.h"

/* Working set in percent of the balloon from which a guest stands out: the defaults of check. */
#define HIGH_PERCENT 90
#define FULL_PERCENT 95

/* Widest name that makes other columns wait; the rest is for reasons. */
#define NAME_MAX_WIDTH 40
#define NAME_MIN_WIDTH 20
#define WHY_MIN_WIDTH 48
/* Width of the screen from which reasons have a column. */
#define WHY_FROM 118

/* What a column sorts by: text, or a figure that may be unknown. */
struct key {
	const char *text;
	struct wss_amount number;
};

struct column {
	const char *name;   /* to sort by it; NULL: one cannot */
	const char *header;
	int width;	    /* 0: what is left, see wss_top_layout() */
	int from;	    /* width of the screen from which it is shown */
	int letter;	    /* key to sort by it */
	bool left;	    /* aligned */
	bool descending;    /* at first */
	const char *help;
	struct key (*key)(const struct wss_guest_view *guest);
	void (*format)(const struct wss_guest_view *guest, uint64_t late_ns, char *ret_text,
		       size_t size);
};

/* Formats an amount of memory; the text stays "" if it is unknown. */
static void format_size(struct wss_amount bytes, const char *bound, char *ret_text, size_t size)
{
	char text[16];

	if (!bytes.known)
		return;
	wss_size_format(bytes.value, text, sizeof(text));
	snprintf(ret_text, size, "%s%s", bound, text);
}

static enum wss_bound bound_of(const struct wss_guest_view *guest)
{
	return wss_bound_of(guest->sample.wss_bytes.value, guest->sample.low_bytes,
			    guest->sample.high_bytes);
}

#define SIZE_COLUMN(name, amount)                                                         \
	static struct key key_##name(const struct wss_guest_view *guest)                  \
	{                                                                                 \
		return (struct key){ .number = guest->amount };                           \
	}                                                                                 \
                                                                                          \
	static void format_##name(const struct wss_guest_view *guest, uint64_t late_ns,   \
				  char *ret_text, size_t size)                            \
	{                                                                                 \
		(void)late_ns;                                                            \
		format_size(guest->amount, "", ret_text, size);                           \
	}

SIZE_COLUMN(rss, sample.memory.rss_bytes)
SIZE_COLUMN(swap, sample.memory.swap_bytes)
SIZE_COLUMN(maximum, sample.memory.maximum_bytes)
SIZE_COLUMN(written, sample.written_bytes)
SIZE_COLUMN(cold, cold.high_bytes)
SIZE_COLUMN(recommended, advice.recommended_bytes)
SIZE_COLUMN(reclaimable, advice.reclaimable_bytes)

static struct key key_name(const struct wss_guest_view *guest)
{
	return (struct key){ .text = guest->name };
}

static void format_name(const struct wss_guest_view *guest, uint64_t late_ns, char *ret_text,
			size_t size)
{
	(void)late_ns;
	snprintf(ret_text, size, "%s", guest->name);
}

static void format_state(const struct wss_guest_view *guest, uint64_t late_ns, char *ret_text,
			 size_t size)
{
	char letter = wss_view_is(guest, "measuring") ? 'M'
		      : wss_view_is(guest, "refused") ? 'R'
		      : wss_view_is(guest, "left out") ? 'O'
		      : guest->why[0]		    ? '!'
						    : ' ';

	(void)late_ns;
	snprintf(ret_text, size, "%c", letter);
}

static struct key key_wss(const struct wss_guest_view *guest)
{
	return (struct key){ .number = guest->sample.wss_bytes };
}

static void format_wss(const struct wss_guest_view *guest, uint64_t late_ns, char *ret_text,
		       size_t size)
{
	enum wss_bound bound = bound_of(guest);

	(void)late_ns;
	format_size(guest->sample.wss_bytes,
		    bound == WSS_BOUND_AT_MOST ? "<= " : bound == WSS_BOUND_AT_LEAST ? ">= " : "",
		    ret_text, size);
}

static struct key key_percent(const struct wss_guest_view *guest)
{
	double percent;

	if (!wss_view_percent(guest, &percent))
		return (struct key){ .text = NULL };
	return (struct key){ .number = wss_amount_of((uint64_t)(percent * 1000)) };
}

static void format_percent(const struct wss_guest_view *guest, uint64_t late_ns, char *ret_text,
			   size_t size)
{
	enum wss_bound bound = bound_of(guest);
	double percent;

	(void)late_ns;
	if (wss_view_percent(guest, &percent))
		snprintf(ret_text, size, "%s%.0f%%",
			 bound == WSS_BOUND_AT_MOST ? "<" : bound == WSS_BOUND_AT_LEAST ? ">" : "",
			 percent);
}

static struct key key_balloon(const struct wss_guest_view *guest)
{
	return (struct key){ .number = wss_view_size(guest) };
}

static void format_balloon(const struct wss_guest_view *guest, uint64_t late_ns, char *ret_text,
			   size_t size)
{
	(void)late_ns;
	format_size(wss_view_size(guest), "", ret_text, size);
}

static struct key key_age(const struct wss_guest_view *guest)
{
	return (struct key){ .number = guest->age_ns };
}

static void format_age(const struct wss_guest_view *guest, uint64_t late_ns, char *ret_text,
		       size_t size)
{
	if (guest->age_ns.known)
		wss_age_format((guest->age_ns.value + late_ns) / WSS_NS_PER_S, ret_text, size);
}

/* Share of the virtual CPUs' time; of one CPU, if their number is not known. */
static struct wss_amount cost_of(const struct wss_guest_view *guest)
{
	const struct wss_guest_spent *spent = &guest->spent;

	if (spent->vcpu_share_ppb.known)
		return spent->vcpu_share_ppb;
	if (!spent->vcpu_ns.known || !spent->since_ns.known || !spent->since_ns.value)
		return (struct wss_amount){ .known = false };
	return wss_amount_of((uint64_t)(1e9 * (double)spent->vcpu_ns.value /
					(double)spent->since_ns.value));
}

static struct key key_cost(const struct wss_guest_view *guest)
{
	return (struct key){ .number = cost_of(guest) };
}

static void format_cost(const struct wss_guest_view *guest, uint64_t late_ns, char *ret_text,
			size_t size)
{
	struct wss_amount cost = cost_of(guest);

	(void)late_ns;
	if (cost.known)
		snprintf(ret_text, size, "%.2f%%", (double)cost.value / 1e7);
}

static void format_period(const struct wss_guest_view *guest, uint64_t late_ns, char *ret_text,
			  size_t size)
{
	(void)late_ns;
	if (guest->period_ns.known)
		wss_age_format(guest->period_ns.value / WSS_NS_PER_S, ret_text, size);
}

static void format_kind(const struct wss_guest_view *guest, uint64_t late_ns, char *ret_text,
			size_t size)
{
	(void)late_ns;
	snprintf(ret_text, size, "%s", guest->kind);
}

static void format_method(const struct wss_guest_view *guest, uint64_t late_ns, char *ret_text,
			  size_t size)
{
	(void)late_ns;
	snprintf(ret_text, size, "%s", guest->sample.method);
}

static void format_why(const struct wss_guest_view *guest, uint64_t late_ns, char *ret_text,
		       size_t size)
{
	(void)late_ns;
	snprintf(ret_text, size, "%s%s%s", wss_view_is(guest, "refused") ? "refused: " : "",
		 wss_view_is(guest, "left out") ? "left out by its policy" : "", guest->why);
}

/* In the order of the screen. */
static const struct column columns[] = {
	{ "name", "NAME", 0, 0, 'N', true, false, "name of the guest", key_name, format_name },
	{ NULL, "S", 1, 24, 0, true, false,
	  "M measuring, R refused, O left out by its policy, ! not measured", NULL,
	  format_state },
	{ "wss", "WSS", 11, 24, 'W', false, true,
	  "working set; <= or >= where only that bound is known", key_wss, format_wss },
	{ "percent", "%BAL", 5, 32, 'P', false, true, "that as a share of the balloon",
	  key_percent, format_percent },
	{ "balloon", "BALLOON", 8, 44, 'B', false, true, "memory that the balloon leaves to it",
	  key_balloon, format_balloon },
	{ "maximum", "MAXIMUM", 8, 110, 'M', false, true, "its maximum memory", key_maximum,
	  format_maximum },
	{ "rss", "RSS", 8, 62, 'R', false, true, "what the host holds of it", key_rss, format_rss },
	{ "swap", "SWAP", 8, 165, 'S', false, true, "what the host has swapped out", key_swap,
	  format_swap },
	{ "written", "WRITTEN", 8, 100, 'D', false, true, "memory written in the window (dirty)",
	  key_written, format_written },
	{ "cold", "COLD", 8, 72, 'C', false, true,
	  "memory that no window has seen touched for 10 minutes", key_cold, format_cold },
	{ "recommended", "RECOMM", 8, 150, 'E', false, true, "size that recommend computes",
	  key_recommended, format_recommended },
	{ "reclaimable", "RECLAIM", 8, 140, 'L', false, true, "what that would free",
	  key_reclaimable, format_reclaimable },
	{ "age", "AGE", 6, 52, 'A', false, true, "age of the sample", key_age, format_age },
	{ "cost", "COST", 6, 80, 'X', false, true,
	  "share of the guest's CPU time that measuring it takes", key_cost, format_cost },
	{ NULL, "PERIOD", 6, 158, 0, false, false, "time from one window to the next", NULL,
	  format_period },
	{ NULL, "KIND", 6, 158, 0, true, false, "kind of the last window", NULL, format_kind },
	{ NULL, "METHOD", 6, 172, 0, true, false, "method of the last window", NULL,
	  format_method },
	{ NULL, "NOT MEASURED BECAUSE", 0, WHY_FROM, 0, true, false, "why the last attempt gave no sample", NULL,
	  format_why },
};

#define N_COLUMNS (sizeof(columns) / sizeof(columns[0]))
#define WHY_COLUMN (N_COLUMNS - 1)

_Static_assert(N_COLUMNS <= WSS_TOP_COLUMNS_MAX, "a layout has room for all columns");

/* --- columns --- */

int wss_top_name_width(const struct wss_top_view *view)
{
	int width = NAME_MIN_WIDTH;

	for (size_t i = 0; i < view->guests.n && width < NAME_MAX_WIDTH; i++) {
		int name = wss_text_width(view->guests.list[i].name);

		if (name > width)
			width = name < NAME_MAX_WIDTH ? name : NAME_MAX_WIDTH;
	}
	return width;
}

struct wss_top_layout wss_top_layout(int width, int name_width)
{
	struct wss_top_layout layout = { .n = 0 };
	int fixed = 0, name, x = 0;

	if (width > WSS_TOP_WIDTH_MAX)
		width = WSS_TOP_WIDTH_MAX;
	for (size_t i = 0; i < N_COLUMNS; i++) {
		if (columns[i].from > width)
			continue;
		layout.cells[layout.n].column = i;
		layout.cells[layout.n++].width = columns[i].width;
		fixed += columns[i].width + 1;
	}
	name = width - fixed + 1;
	if (layout.cells[layout.n - 1].column == WHY_COLUMN) {
		int both = name;

		name = both - WHY_MIN_WIDTH < name_width ? both - WHY_MIN_WIDTH : name_width;
		if (name < NAME_MIN_WIDTH)
			name = NAME_MIN_WIDTH;
		layout.cells[layout.n - 1].width = both > name ? both - name : 1;
	}
	layout.cells[0].width = name > 1 ? name : 1;
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
	for (size_t i = 0; i < N_COLUMNS; i++)
		if (columns[i].name && !strcmp(columns[i].name, name))
			return (int)i;
	return -1;
}

void wss_top_sort_names(char *ret_names, size_t size)
{
	size_t len = 0;

	ret_names[0] = '\0';
	for (size_t i = 0; i < N_COLUMNS && len < size; i++)
		if (columns[i].name)
			len += (size_t)snprintf(ret_names + len, size - len, "%s%s",
						len ? " " : "", columns[i].name);
}

int wss_top_sort_key(int key)
{
	for (size_t i = 0; i < N_COLUMNS; i++)
		if (columns[i].letter && columns[i].letter == key)
			return (int)i;
	return -1;
}

size_t wss_top_sort_step(size_t column, int step)
{
	do
		column = (column + N_COLUMNS + (size_t)step) % N_COLUMNS;
	while (!columns[column].key);
	return column;
}

/* --- order --- */

static int compare_numbers(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

/* What is unknown comes last, whatever the direction; names decide between equals. */
static int compare_guests(const void *a, const void *b, void *opaque)
{
	const struct wss_guest_view *left = *(const struct wss_guest_view *const *)a;
	const struct wss_guest_view *right = *(const struct wss_guest_view *const *)b;
	const struct wss_top_settings *settings = opaque;
	const struct column *column = &columns[settings->sort];
	struct key x = column->key(left), y = column->key(right);
	int order = 0;

	if (x.text && y.text)
		order = strcasecmp(x.text, y.text);
	else if (x.number.known != y.number.known)
		return x.number.known ? -1 : 1;
	else if (x.number.known)
		order = compare_numbers(x.number.value, y.number.value);
	if (column->descending != settings->reverse)
		order = -order;
	if (!order)
		order = strcmp(left->name, right->name);
	return order ? order : strcmp(left->uuid, right->uuid);
}

int wss_top_select(const struct wss_top_view *view, const struct wss_top_settings *settings,
		   const struct wss_guest_view ***ret_list, size_t *ret_n, struct wss_error *err)
{
	const struct wss_guest_view **list = calloc(view->guests.n + 1, sizeof(const struct wss_guest_view *));
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
	return columns[column].name;
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
static void cell_pad(const struct wss_top_settings *settings, char text[WSS_TOP_TEXT_MAX], int width,
		     bool left)
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
	const struct column *column = &columns[layout->cells[i].column];
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
		"  q, Ctrl-C     quit                  h, ?          this help",
		"  arrows, PgUp, PgDn, Home, End       scroll",
		"  Space         ask again now         p             pause, and go on",
		"  d             set the delay         r             reverse the order",
		"  <, >          sort by the column to the left, to the right",
		"  /             show names with a text only; an empty one shows all",
		"",
		"Columns, with the key to sort by them:",
	};
	static _Thread_local char line[160];
	const size_t n_keys = sizeof(keys) / sizeof(keys[0]);

	if (i < n_keys)
		return keys[i];
	if (i - n_keys >= N_COLUMNS)
		return NULL;
	i -= n_keys;
	snprintf(line, sizeof(line), "  %c  %-8.8s %s",
		 columns[i].letter ? columns[i].letter : ' ', i == WHY_COLUMN ? "NOT ..." : columns[i].header, columns[i].help);
	return line;
}
