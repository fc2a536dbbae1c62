/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/error.h"

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

static void print_to_stderr(enum wss_log_level level, const char *text)
{
	static const char *const prefix[] = {
		[WSS_LOG_ERROR] = "error: ",
		[WSS_LOG_WARNING] = "warning: ",
		[WSS_LOG_INFO] = "",
		[WSS_LOG_DEBUG] = "debug: ",
	};
	void (*prologue)(void) = log_prologue;

	if (prologue)
		prologue();
	fprintf(stderr, "virt-wss: %s%s\n", prefix[level], text);
}

void wss_log(enum wss_log_level level, const char *fmt, ...)
{
	void (*sink)(enum wss_log_level, const char *) = log_sink;
	char text[1024];
	va_list ap;

	if (level > log_level)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	wss_text_sanitize(text);
	if (sink)
		sink(level, text);
	else
		print_to_stderr(level, text);
}
