/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The progress line, on a terminal made by the test, with a clock that the test controls. */
#include "show/progress.h"

#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "hosttest.h"

static _Atomic uint64_t now_ns;

static uint64_t get_now(void *opaque)
{
	return now_ns;
}

static void never_sleep(void *opaque, uint64_t when_ns)
{
}

static const struct wss_clock_source fake_clock = {.now_ns = get_now,
						   .sleep_until_ns = never_sleep};

struct terminal {
	int master, saved_stderr;
	size_t len;
	char text[8192];
};

static void terminal_open(struct terminal *terminal)
{
	int slave;

	*terminal = (struct terminal){.master = posix_openpt(O_RDWR | O_NOCTTY)};
	assert_true(terminal->master >= 0);
	assert_int_equal(grantpt(terminal->master), 0);
	assert_int_equal(unlockpt(terminal->master), 0);
	slave = open(ptsname(terminal->master), O_RDWR | O_NOCTTY);
	assert_true(slave >= 0);
	terminal->saved_stderr = dup(STDERR_FILENO);
	dup2(slave, STDERR_FILENO);
	close(slave);
	wss_clock_inject(&fake_clock);
	now_ns = 100 * WSS_NS_PER_S;
}

static void terminal_close(struct terminal *terminal)
{
	wss_clock_inject(NULL);
	dup2(terminal->saved_stderr, STDERR_FILENO);
	close(terminal->saved_stderr);
	close(terminal->master);
}

/* Reads until the text has appeared, or for five minutes; with NULL, reads what is there. */
static bool shows(struct terminal *terminal, const char *text)
{
	struct pollfd pfd = {.fd = terminal->master, .events = POLLIN};
	ssize_t n;

	while (!text || !strstr(terminal->text, text)) {
		if (poll(&pfd, 1, text ? 300000 : 0) <= 0)
			return !text;
		n = read(terminal->master, terminal->text + terminal->len,
			 sizeof(terminal->text) - 1 - terminal->len);
		assert_true(n > 0);
		terminal->len += (size_t)n;
		terminal->text[terminal->len] = '\0';
	}
	return true;
}

TEST(test_terminal)
{
	struct wss_progress *progress;
	struct terminal terminal;

	terminal_open(&terminal);
	progress = wss_progress_begin("measuring", 40 * WSS_NS_PER_S);
	assert_non_null(progress);
	/* Nothing is drawn for two seconds; the first line shows the time passed. */
	now_ns += 12 * WSS_NS_PER_S;
	assert_true(shows(&terminal, "\rmeasuring: 12 of 40 s, 28 s left\033[K"));
	assert_ptr_equal(strstr(terminal.text, "measuring"), terminal.text + 1);
	wss_progress_say(progress, "3 of 10 windows");
	assert_true(shows(&terminal, "28 s left; 3 of 10 windows\033[K"));
	/* A message has a line of its own. */
	wss_log(WSS_LOG_INFO, "web1: something");
	assert_true(shows(&terminal, "\r\033[Kvirt-wss: web1: something\r\n"));
	now_ns += 30 * WSS_NS_PER_S;
	assert_true(shows(&terminal, "measuring: 42 s, 40 s were expected"));
	wss_progress_end(progress);
	shows(&terminal, NULL);
	assert_string_equal(terminal.text + terminal.len - strlen("\r\033[K"), "\r\033[K");
	terminal_close(&terminal);
}

TEST(test_short)
{
	struct wss_progress *progress;
	struct terminal terminal;

	terminal_open(&terminal);
	progress = wss_progress_begin("measuring", 0);
	now_ns += 2 * WSS_NS_PER_S - 1;
	wss_progress_say(progress, "nothing");
	wss_progress_end(progress);
	shows(&terminal, NULL);
	assert_string_equal(terminal.text, "");
	terminal_close(&terminal);
}

TEST(test_no_terminal)
{
	int saved = dup(STDERR_FILENO), null = open("/dev/null", O_WRONLY);
	struct wss_progress *progress;

	dup2(null, STDERR_FILENO);
	progress = wss_progress_begin("measuring", 0);
	dup2(saved, STDERR_FILENO);
	assert_null(progress);
	wss_progress_say(progress, "nothing");
	wss_progress_end(progress);
	close(null);
	close(saved);
}

TEST(test_format)
{
	char text[64];

	wss_progress_format("asking", "", 3 * WSS_NS_PER_S, 0, text, sizeof(text));
	assert_string_equal(text, "asking: 3 s");
	wss_progress_format("asking", "", WSS_NS_PER_S / 2, WSS_NS_PER_S, text, sizeof(text));
	assert_string_equal(text, "asking: 0 of 1 s, 1 s left");
	wss_progress_format("a text that is long", "and one that is even longer", 0, 0, text, 16);
	assert_string_equal(text, "a text that is ");
}

int main(void)
{
	return tests_run();
}
