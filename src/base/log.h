/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Messages for people, one line each, on standard error ("virt-wss: warning: ...") or to a
 * sink. Other code returns errors instead: commands and the service log, and code that has no
 * caller to return to.
 */
#pragma once

enum wss_log_level { WSS_LOG_ERROR, WSS_LOG_WARNING, WSS_LOG_INFO, WSS_LOG_DEBUG };

/* Messages above this level are dropped. Starts as WSS_LOG_INFO. */
void wss_log_set_level(enum wss_log_level level);

/* Sets a function to call before each message on standard error, to clear the line; NULL: none. */
void wss_log_set_prologue(void (*prologue)(void));

/*
 * Passes each message to sink instead of standard error: the text is one sanitized line,
 * without the program's name, the level or a newline. Several threads may call sink at the
 * same time. NULL: back to standard error. A service with a log of its own calls this once,
 * before it starts threads.
 */
void wss_log_set_sink(void (*sink)(enum wss_log_level level, const char *text));

/* Lets each message on standard error begin with the local time; the journal has its own. Call it before threads start. */
void wss_log_show_time(void);

/*
 * Finds out what standard error is. If it is the journal (JOURNAL_STREAM, systemd.exec(5)), messages get its levels
 * instead of words; a terminal is not waited for. Call it before threads start.
 */
void wss_log_open(void);

void wss_log(enum wss_log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/*
 * Logs a message about a guest: its name comes before the text. The journal gets the name and the UUID (may be "")
 * as fields, too: "journalctl DOMAIN_NAME=web1". At most six in a minute are logged about a guest, which may cause
 * them as often as it likes; others, but debug messages, are counted.
 */
void wss_log_guest(enum wss_log_level level, const char *name, const char *uuid, const char *fmt,
		   ...) __attribute__((format(printf, 4, 5)));

/* Logs how many messages about guests were left out, once a minute. A service calls this again and again. */
void wss_log_guests_left_out(void);

#define wss_debug(...) wss_log(WSS_LOG_DEBUG, __VA_ARGS__)
#define wss_warn(...) wss_log(WSS_LOG_WARNING, __VA_ARGS__)
