/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The screen of top, by ncurses, which no other file uses.
 *
 * Every cell is drawn at its own place after the name, and no character that moves the cursor gets there,
 * so that a name cannot shift what stands beside it. ncurses handles SIGWINCH (KEY_RESIZE) and SIGTSTP; the
 * signals that end the program are ours (base/stop.h), and only end the loop. Messages of libraries on
 * standard error would break the screen: they go nowhere meanwhile.
 */
#define NCURSES_NOMACROS 1
#include <curses.h>
#include <errno.h>
#include <fcntl.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <term.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/stop.h"
#include "base/units.h"
#include "top/top.h"

#define CTRL_L 12
#define ESCAPE 27
/* How long an escape sequence may take, ms: less than a user needs for two keys. */
#define ESCAPE_MS 50
#define ASKED_MAX WSS_TOP_FILTER_MAX

enum pair { PAIR_HIGH = 1, PAIR_FULL, PAIR_TROUBLE };

enum asking { ASK_NOTHING, ASK_FILTER, ASK_DELAY };

struct top {
	struct wss_top_source *source;
	struct wss_top_settings *settings;
	struct wss_top_view view;
	size_t n_shown, first; /* guests that the filter lets through; the first on the screen */
	bool help;
	size_t help_first; /* line of the help that is first on the screen */
	bool colours;
	bool quit;
	uint64_t updates;
	enum asking asking;
	char asked[ASKED_MAX];
	char message[80]; /* instead of the trouble, until the next key */
	struct wss_error error;
};

const char *wss_top_version(void)
{
	return curses_version();
}

bool wss_top_locale(void)
{
	setlocale(LC_CTYPE, "");
	return !strcmp(nl_langinfo(CODESET), "UTF-8");
}

#define TERM_HELP "set TERM=xterm-256color, which most terminals understand"

int wss_top_screen_check(struct wss_error *err)
{
	const char *term = getenv("TERM");
	const char *move;
	int found;

	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return wss_error_set(err, WSS_ERR_UNSUPPORTED,
				     "standard input and output must be a terminal");
	if (!term || !*term)
		return wss_error_set(err, WSS_ERR_UNSUPPORTED, "TERM is not set: " TERM_HELP);
	if (setupterm(term, STDOUT_FILENO, &found) != OK)
		return wss_error_set(
			err, WSS_ERR_UNSUPPORTED,
			"the terminal '%s' (TERM) is unknown on this host: install its "
			"entry of terminfo, or " TERM_HELP,
			term);
	move = tigetstr("cup");
	if (!move || move == (char *)-1)
		return wss_error_set(err, WSS_ERR_UNSUPPORTED,
				     "the terminal '%s' (TERM) cannot move its cursor: " TERM_HELP,
				     term);
	return 0;
}

/* --- drawing --- */

static int table_top(void)
{
	return WSS_TOP_HEAD_LINES;
}

/* Lines of guests that fit. */
static size_t table_lines(void)
{
	return LINES > table_top() + 1 ? (size_t)(LINES - table_top() - 1) : 0;
}

static void put_line(int y, int x, attr_t attributes, const char *text)
{
	if (y >= LINES || x >= COLS)
		return;
	attrset((int)attributes);
	mvaddstr(y, x, text);
	attrset(A_NORMAL);
}

static attr_t attributes_of(const struct top *top, enum wss_top_style style)
{
	switch (style) {
	case WSS_TOP_FULL:
		return A_BOLD | (top->colours ? (attr_t)COLOR_PAIR(PAIR_FULL) : 0);
	case WSS_TOP_HIGH:
		return top->colours ? (attr_t)COLOR_PAIR(PAIR_HIGH) : A_BOLD;
	case WSS_TOP_DIM:
		return A_DIM;
	default:
		return A_NORMAL;
	}
}

static void draw_head(const struct top *top)
{
	char text[WSS_TOP_TEXT_MAX];
	bool held = top->view.guests.held[0] != 0;

	for (int i = 0; i < WSS_TOP_HEAD_LINES; i++) {
		attr_t attributes = i == 0 ? A_BOLD : A_NORMAL;

		if ((i == 2 && held) || (i == 3 && top->view.error.code))
			attributes = A_BOLD | (top->colours ? (attr_t)COLOR_PAIR(PAIR_TROUBLE) : 0);
		wss_top_head(top->settings, &top->view, top->n_shown, i, COLS, text);
		put_line(i, 0, attributes, text);
	}
}

/* The line below the head: a question, or a message. */
static void draw_question(const struct top *top)
{
	static const char *const questions[] = {
		[ASK_FILTER] = "Show names with: ",
		[ASK_DELAY] = "Delay, such as 2s: ",
	};
	char text[WSS_TOP_TEXT_MAX];

	if (top->asking == ASK_NOTHING && !top->message[0])
		return;
	snprintf(text, sizeof(text), "%s%s", top->asking ? questions[top->asking] : top->message,
		 top->asking ? top->asked : "");
	move(WSS_TOP_HEAD_LINES - 1, 0);
	clrtoeol();
	wss_top_fit(top->settings, text, COLS - 1);
	put_line(WSS_TOP_HEAD_LINES - 1, 0, A_BOLD, text);
}

/* Draws the heading (guest NULL) or a guest. */
static void draw_row(const struct top *top, const struct wss_top_layout *layout, int y,
		     const struct wss_guest_view *guest, uint64_t late_ns)
{
	char text[WSS_TOP_TEXT_MAX];

	if (!guest) {
		attrset(A_REVERSE);
		mvhline(y, 0, ' ', COLS);
		attrset(A_NORMAL);
	}
	for (size_t i = 0; i < layout->n; i++) {
		enum wss_top_style style =
			wss_top_cell(top->settings, layout, i, guest, late_ns, text);
		attr_t attributes = attributes_of(top, style);

		if (!guest)
			attributes =
				A_REVERSE | (style == WSS_TOP_PLAIN ? 0 : A_BOLD | A_UNDERLINE);
		put_line(y, layout->cells[i].x, attributes, text);
	}
}

static void draw_guests(struct top *top)
{
	struct wss_top_widths widths = wss_top_widths(&top->view);
	struct wss_top_layout layout = wss_top_layout(COLS, &widths);
	wss_auto_free const struct wss_guest_view **list = NULL;
	uint64_t late_ns = wss_clock_now_ns() - top->view.taken_ns;
	size_t rows = table_lines();

	if (wss_top_select(&top->view, top->settings, &list, &top->n_shown, &top->error) < 0) {
		top->quit = true;
		return;
	}
	if (top->first + rows > top->n_shown)
		top->first = top->n_shown > rows ? top->n_shown - rows : 0;
	draw_row(top, &layout, table_top(), NULL, 0);
	for (size_t i = 0; i < rows && top->first + i < top->n_shown; i++)
		draw_row(top, &layout, table_top() + 1 + (int)i, list[top->first + i], late_ns);
}

static bool help_has_more(const struct top *top)
{
	return LINES > 1 && wss_top_help(top->help_first + (size_t)LINES - 1) != NULL;
}

static void draw_help(const struct top *top)
{
	const char *line;

	for (int i = 0; (line = wss_top_help(top->help_first + (size_t)i)) != NULL && i < LINES - 1;
	     i++) {
		char text[WSS_TOP_TEXT_MAX];

		snprintf(text, sizeof(text), "%s", line);
		wss_top_fit(top->settings, text, COLS);
		put_line(i, 0, A_NORMAL, text);
	}
	put_line(LINES - 1, 0, A_REVERSE,
		 help_has_more(top) ? "q: quit; any other key: next page"
				    : "q: quit; any other key: back");
}

static void draw(struct top *top)
{
	erase();
	if (top->help) {
		draw_help(top);
	} else {
		draw_guests(top);
		draw_head(top);
		draw_question(top);
	}
	refresh();
}

/* --- keys --- */

static void scroll_by(struct top *top, long rows)
{
	if (rows < 0 && (size_t)-rows > top->first)
		top->first = 0;
	else
		top->first += (size_t)rows;
}

static void set_delay(struct top *top)
{
	struct wss_error error = WSS_ERROR_INIT;
	uint64_t delay_ns;

	if (wss_duration_parse(top->asked, WSS_TOP_DELAY_MAX_NS, "delay", &delay_ns, &error) < 0 ||
	    delay_ns < WSS_TOP_DELAY_MIN_NS) {
		snprintf(top->message, sizeof(top->message), "The delay is a time from 0.5s to 1h");
		return;
	}
	top->settings->delay_ns = delay_ns;
	wss_top_source_refresh(top->source, delay_ns);
}

static void answer_question(struct top *top)
{
	if (top->asking == ASK_DELAY)
		set_delay(top);
	else
		snprintf(top->settings->filter, sizeof(top->settings->filter), "%s", top->asked);
	top->asking = ASK_NOTHING;
	top->first = 0;
}

/* Removes the last character, all bytes of it. */
static void erase_character(char *text)
{
	size_t len = strlen(text);

	while (len && ((unsigned char)text[len - 1] & 0xc0) == 0x80)
		len--;
	text[len ? len - 1 : 0] = '\0';
}

static void take_answer_key(struct top *top, int key)
{
	size_t len = strlen(top->asked);

	if (key == '\n' || key == '\r' || key == KEY_ENTER)
		answer_question(top);
	else if (key == ESCAPE)
		top->asking = ASK_NOTHING;
	else if (key == KEY_BACKSPACE || key == 127 || key == 8)
		erase_character(top->asked);
	else if (key == 'U' - 64)
		top->asked[0] = '\0';
	else if (key >= ' ' && key < 256 && len + 1 < sizeof(top->asked)) {
		top->asked[len] = (char)key;
		top->asked[len + 1] = '\0';
	}
}

static void ask(struct top *top, enum asking asking, const char *text)
{
	top->asking = asking;
	snprintf(top->asked, sizeof(top->asked), "%s", text);
}

static void sort_by(struct top *top, int column)
{
	if (column < 0)
		return;
	if ((size_t)column != top->settings->sort)
		top->settings->reverse = false;
	top->settings->sort = (size_t)column;
	top->first = 0;
}

/* Returns whether the key scrolls. */
static bool take_scroll_key(struct top *top, int key)
{
	long page = (long)table_lines();

	switch (key) {
	case KEY_UP:
	case 'k':
		scroll_by(top, -1);
		return true;
	case KEY_DOWN:
	case 'j':
		scroll_by(top, 1);
		return true;
	case KEY_PPAGE:
		scroll_by(top, -page);
		return true;
	case KEY_NPAGE:
		scroll_by(top, page);
		return true;
	case KEY_HOME:
		top->first = 0;
		return true;
	case KEY_END:
		top->first = top->n_shown;
		return true;
	default:
		return false;
	}
}

static void take_command_key(struct top *top, int key)
{
	struct wss_top_settings *settings = top->settings;

	switch (key) {
	case 'q':
		top->quit = true;
		break;
	case 'h':
	case '?':
		top->help = true;
		top->help_first = 0;
		break;
	case 'r':
		settings->reverse = !settings->reverse;
		break;
	case '<':
	case '>':
		sort_by(top, (int)wss_top_sort_step(settings->sort, key == '<' ? -1 : 1));
		break;
	case '/':
		ask(top, ASK_FILTER, settings->filter);
		break;
	case 'd':
	case 's':
		ask(top, ASK_DELAY, "");
		break;
	case 'p':
		settings->paused = !settings->paused;
		break;
	case ' ':
		wss_top_source_refresh(top->source, settings->delay_ns);
		break;
	case CTRL_L:
		clearok(curscr, TRUE);
		break;
	default:
		sort_by(top, wss_top_sort_key(key));
		break;
	}
}

/* To the lines that did not fit on the screen, or back to the guests. */
static void turn_help_over(struct top *top)
{
	top->help = help_has_more(top);
	if (top->help)
		top->help_first += (size_t)LINES - 1;
}

static void take_key(struct top *top, int key)
{
	if (key == KEY_RESIZE)
		return;
	top->message[0] = '\0';
	if (top->help && key == 'q')
		top->quit = true;
	else if (top->help)
		turn_help_over(top);
	else if (top->asking)
		take_answer_key(top, key);
	else if (!take_scroll_key(top, key))
		take_command_key(top, key);
}

/* --- the loop --- */

/* Waits for a key, for news or for the end, and at most a second, because ages grow. */
static void wait_for_events(struct top *top)
{
	struct pollfd pfds[] = {
		{.fd = STDIN_FILENO, .events = POLLIN},
		{.fd = wss_top_source_fd(top->source), .events = POLLIN},
		{.fd = wss_stop_fd(), .events = POLLIN},
	};

	/* What is paused must not end the wait at once, again and again. */
	if (top->settings->paused)
		pfds[1].fd = -1;
	if (poll(pfds, sizeof(pfds) / sizeof(pfds[0]), 1000) < 0 && errno != EINTR)
		top->quit = true;
	/* The terminal has gone. */
	if (pfds[0].revents & (POLLHUP | POLLERR | POLLNVAL))
		top->quit = true;
}

static void top_loop(struct top *top, uint64_t count)
{
	while (!top->quit && !wss_stop_requested()) {
		int key;

		if (!top->settings->paused && wss_top_source_take(top->source, &top->view))
			top->updates += top->view.any;
		draw(top);
		if (count && top->updates >= count)
			break;
		wait_for_events(top);
		while (!top->quit && (key = getch()) != ERR)
			take_key(top, key);
	}
}

static void begin_colours(struct top *top)
{
	if (getenv("NO_COLOR") || !has_colors() || start_color() != OK)
		return;
	top->colours = use_default_colors() == OK && init_pair(PAIR_HIGH, COLOR_YELLOW, -1) == OK &&
		       init_pair(PAIR_FULL, COLOR_RED, -1) == OK &&
		       init_pair(PAIR_TROUBLE, COLOR_RED, -1) == OK;
}

/* Redirects standard error to nowhere. Returns a copy of it, or -1. */
static int silence_errors(void)
{
	wss_auto_close int null = -1;
	int saved = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);

	null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	if (saved >= 0 && null >= 0)
		dup2(null, STDERR_FILENO);
	return saved;
}

static void restore_errors(int saved)
{
	if (saved < 0)
		return;
	dup2(saved, STDERR_FILENO);
	close(saved);
}

int wss_top_screen(struct wss_top_source *source, struct wss_top_settings *settings, uint64_t count,
		   struct wss_error *err)
{
	struct top top = {.source = source, .settings = settings, .error = WSS_ERROR_INIT};
	SCREEN *screen;
	int saved;

	if (wss_top_screen_check(err) < 0)
		return -1;
	saved = silence_errors();
	screen = newterm(NULL, stdout, stdin);
	if (!screen) {
		restore_errors(saved);
		return wss_error_set(err, WSS_ERR_UNSUPPORTED, "the terminal cannot be used");
	}
	set_escdelay(ESCAPE_MS);
	cbreak();
	noecho();
	nonl();
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	curs_set(0);
	begin_colours(&top);
	top_loop(&top, count);
	endwin();
	delscreen(screen);
	restore_errors(saved);
	wss_guests_release(&top.view.guests);
	if (top.error.code && err)
		*err = top.error;
	return top.error.code ? -1 : 0;
}
