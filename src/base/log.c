/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "base/log.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <syslog.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/journal.h"

#define TEXT_MAX 1024
/* Texts are formatted as long as this, and then shortened. */
#define LONGEST 4096
#define NAME_MAX_BYTES 256

static enum wss_log_level log_level = WSS_LOG_INFO;

void wss_log_set_level(enum wss_log_level level)
{
	log_level = level;
}

/* Set by one thread, and reset only after that thread has ended; others may log meanwhile. */
static void (*_Atomic log_prologue)(void);

void wss_log_set_prologue(void (*prologue)(void))
{
	log_prologue = prologue;
}

static void (*_Atomic log_sink)(enum wss_log_level level, const char *text);

void wss_log_set_sink(void (*sink)(enum wss_log_level level, const char *text))
{
	log_sink = sink;
}

/* Set before threads start. */
static bool log_to_journal, log_has_time;

void wss_log_show_time(void)
{
	log_has_time = true;
}

void wss_log_detect_journal(void)
{
	log_to_journal = wss_journal_has_stderr();
	if (log_to_journal)
		wss_journal_open();
}

static int log_priority(enum wss_log_level level)
{
	static const int priority[] = {
		[WSS_LOG_ERROR] = LOG_ERR,
		[WSS_LOG_WARNING] = LOG_WARNING,
		[WSS_LOG_INFO] = LOG_INFO,
		[WSS_LOG_DEBUG] = LOG_DEBUG,
	};

	return priority[level];
}

static void print_to_stderr(enum wss_log_level level, const char *text)
{
	static const char *const prefix[] = {
		[WSS_LOG_ERROR] = "error: ",
		[WSS_LOG_WARNING] = "warning: ",
		[WSS_LOG_INFO] = "",
		[WSS_LOG_DEBUG] = "debug: ",
	};
	void (*prologue)(void) = log_prologue;
	char time[WSS_CLOCK_TEXT_MAX] = "";

	if (prologue)
		prologue();
	if (log_has_time)
		wss_clock_format_local(wss_clock_wall_seconds(), time);
	fprintf(stderr, "%s%svirt-wss: %s%s\n", time, log_has_time ? " " : "", prefix[level], text);
}

/* The journal adds the program's name, and takes the level from the prefix (sd-daemon(3)). */
static void log_print(enum wss_log_level level, const char *text)
{
	void (*sink)(enum wss_log_level, const char *) = log_sink;

	if (sink)
		sink(level, text);
	else if (log_to_journal)
		fprintf(stderr, "<%d>%s\n", log_priority(level), text);
	else
		print_to_stderr(level, text);
}

void wss_log(enum wss_log_level level, const char *fmt, ...)
{
	char whole[LONGEST], text[TEXT_MAX];
	va_list ap;

	if (level > log_level)
		return;
	va_start(ap, fmt);
	vsnprintf(whole, sizeof(whole), fmt, ap);
	va_end(ap);
	wss_text_fit(whole, text, sizeof(text));
	wss_text_sanitize(text);
	log_print(level, text);
}

void wss_log_guest(enum wss_log_level level, const char *name, const char *uuid, const char *fmt,
		   ...)
{
	char text[TEXT_MAX], safe[NAME_MAX_BYTES];
	int len;
	va_list ap;

	if (level > log_level)
		return;
	wss_text_fit(name, safe, sizeof(safe));
	wss_text_sanitize(safe);
	len = snprintf(text, sizeof(text), "%s: ", safe);
	va_start(ap, fmt);
	vsnprintf(text + len, sizeof(text) - (size_t)len, fmt, ap);
	va_end(ap);
	wss_text_sanitize(text);
	if (log_sink || !log_to_journal ||
	    !wss_journal_send(log_priority(level), text, safe, uuid))
		log_print(level, text);
}
