/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The room top/: the terminal screen of all guests, which goes on until the user quits.
 *
 *   source.c   where guests come from: the service, or a watch of its own (watch/watch.h), in a thread
 *   table.c    which guests and columns are shown, and in which order; columns.h has the columns
 *   head.c     the lines above the table, and the help
 *   screen.c   the terminal and its keys; the only file that knows ncurses
 *
 * In: struct wss_guests (client/guests.h), every few seconds. Out: the screen; cmd/top.c prints the
 * same table as text.
 *
 * The source's thread asks or measures, and wakes the main thread by a descriptor; what it has found
 * is copied under its lock. The screen is drawn in the main thread, which handles keys between two
 * views; all that a key changes is in struct wss_top_settings.
 *
 * Begin with table.c. A new column is an entry of wss_top_columns in columns.c, a new key a case in
 * screen.c and a line of the help in head.c.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "client/guests.h"
#include "watch/watch.h"

#define WSS_TOP_DELAY_MIN_NS (WSS_NS_PER_S / 2)
#define WSS_TOP_DELAY_MAX_NS (3600 * WSS_NS_PER_S)

/* --- where guests come from (source.c) --- */

/* What is known of the guests at one time. */
struct wss_top_view {
	struct wss_guests guests;
	bool any;		/* there has been a list of guests */
	uint64_t taken_ns;	/* when, wss_clock_now_ns(): ages have grown since then */
	struct wss_error error; /* why there is none since then; code 0: nothing is wrong */
	bool complete;		/* each guest has been measured, or it is known why not */
};

struct wss_top_source;

/*
 * Asks the service at the socket, every delay_ns, in a thread; one that does not answer is asked
 * again. path must outlive the source. For wss_top_source_free().
 */
int wss_top_source_service(const char *path, uint64_t delay_ns, struct wss_top_source **ret_source,
			   struct wss_error *err);

/* Measures the guests itself, in a thread. Strings of options must outlive the source. */
int wss_top_source_watch(const struct wss_watch_options *options,
			 struct wss_top_source **ret_source, struct wss_error *err);

/* Becomes readable when there is something new, until wss_top_source_take(). */
int wss_top_source_fd(const struct wss_top_source *source);

/*
 * Copies what is new into view, and returns true; false if nothing is new or memory is short. view is the
 * caller's, for wss_guests_release() of its guests.
 */
bool wss_top_source_take(struct wss_top_source *source, struct wss_top_view *view);

/* Asks now, and from then on every delay_ns. */
void wss_top_source_refresh(struct wss_top_source *source, uint64_t delay_ns);

/* Ends the thread: guests that are being measured are restored first. Takes NULL. */
void wss_top_source_free(struct wss_top_source *source);

/* --- the table (table.c) --- */

#define WSS_TOP_FILTER_MAX 64
#define WSS_TOP_COLUMNS_MAX 24

struct wss_top_settings {
	size_t sort; /* index of a column that can be sorted by */
	bool reverse;
	char filter[WSS_TOP_FILTER_MAX]; /* part of the names to show; "": all */
	uint64_t delay_ns;
	bool utf8; /* the terminal shows UTF-8; else all is ASCII */
	bool paused;
	const char *source; /* "service", or how guests are measured */
};

enum wss_top_style { WSS_TOP_PLAIN, WSS_TOP_HIGH, WSS_TOP_FULL, WSS_TOP_DIM };

/* Columns of the table at one width of the screen. */
struct wss_top_layout {
	size_t n;
	struct {
		size_t column;
		int x, width;
	} cells[WSS_TOP_COLUMNS_MAX];
};

/* Room for the text of any cell or line of width columns, which is at most this. */
#define WSS_TOP_WIDTH_MAX 500
#define WSS_TOP_TEXT_MAX (4 * WSS_TOP_WIDTH_MAX + 8)

/* Columns that the longest name and the longest reason need, WSS_TOP_WIDTH_MAX at most; why 0: there is none. */
struct wss_top_widths {
	int name, why;
};

struct wss_top_widths wss_top_widths(const struct wss_top_view *view);

/* Returns the columns that fit into width. A wide screen shows reasons, if there are any, beside the names. */
struct wss_top_layout wss_top_layout(int width, const struct wss_top_widths *widths);

/* Returns the column to sort by at first, that of a key, or the next or previous one. -1: none. */
size_t wss_top_sort_first(void);
int wss_top_sort_key(int key);
size_t wss_top_sort_step(size_t column, int step);

/* Returns the column of that name ("wss"); -1: there is none, or it cannot be sorted by. */
int wss_top_sort_name(const char *name);

/* The name of a column that one can sort by; NULL for others. */
const char *wss_top_column_name(size_t column);

/* Stores the names of all columns that can be sorted by, separated by blanks. */
void wss_top_sort_names(char *ret_names, size_t size);

/*
 * Sorts the guests that the filter lets through: *ret_list, for free(), has *ret_n pointers into the
 * view. WSS_ERR_NO_MEMORY.
 */
int wss_top_select(const struct wss_top_view *view, const struct wss_top_settings *settings,
		   const struct wss_guest_view ***ret_list, size_t *ret_n, struct wss_error *err);

/*
 * Stores a cell of exactly its width: of the heading (guest NULL), or of a guest. Returns how it is to be
 * shown. late_ns: time since the view was taken.
 */
enum wss_top_style wss_top_cell(const struct wss_top_settings *settings,
				const struct wss_top_layout *layout, size_t i,
				const struct wss_guest_view *guest, uint64_t late_ns,
				char ret_text[WSS_TOP_TEXT_MAX]);

/* Lines above the table. */
#define WSS_TOP_HEAD_LINES 4

/* Stores line i (0 to WSS_TOP_HEAD_LINES - 1) of the head, at most width columns. */
void wss_top_head(const struct wss_top_settings *settings, const struct wss_top_view *view,
		  size_t n_shown, int i, int width, char ret_text[WSS_TOP_TEXT_MAX]);

/* Makes text safe for the terminal, and cuts it to width columns. */
void wss_top_fit(const struct wss_top_settings *settings, char text[WSS_TOP_TEXT_MAX], int width);

/* Returns line i of the help; NULL: there is none. */
const char *wss_top_help(size_t i);

/* --- the screen (screen.c) --- */

/*
 * Shows the source on the terminal until the user quits, count updates have been shown (0: any number), or
 * a stop is requested. The terminal is as before afterwards. WSS_ERR_UNSUPPORTED: it is no terminal,
 * or one that cannot move its cursor. WSS_ERR_FAILED, WSS_ERR_NO_MEMORY.
 */
int wss_top_screen(struct wss_top_source *source, struct wss_top_settings *settings, uint64_t count,
		   struct wss_error *err);

/* As wss_top_screen() would fail at once for this terminal. */
int wss_top_screen_check(struct wss_error *err);

/* Returns the name and version of the library, "ncurses 6.4.20221231". */
const char *wss_top_version(void);

/* Whether text in the locale of the environment is UTF-8. Sets that locale for characters. */
bool wss_top_locale(void);
