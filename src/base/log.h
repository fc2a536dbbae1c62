/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Messages for people, one line each, on standard error ("virt-wss: warning: ...") or in a sink.
 * Library code returns errors instead; only front ends, and code that cannot return what it has to
 * say, log.
 */
#ifndef WSS_BASE_LOG_H
#define WSS_BASE_LOG_H

enum wss_log_level { WSS_LOG_ERROR, WSS_LOG_WARNING, WSS_LOG_INFO, WSS_LOG_DEBUG };

/* Messages above this level are dropped. Starts as WSS_LOG_INFO. */
void wss_log_set_level(enum wss_log_level level);

/* Called before each message that goes to standard error, to clear the line; NULL: nothing. */
void wss_log_set_prologue(void (*prologue)(void));

/*
 * Hands each message to sink in place of standard error: the text is one line, sanitized, without
 * the program's name, the level or a newline. Threads may call sink at the same time. NULL:
 * standard error again. A service that has another log sets this once, before it starts threads.
 */
void wss_log_set_sink(void (*sink)(enum wss_log_level level, const char *text));

void wss_log(enum wss_log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#define wss_debug(...) wss_log(WSS_LOG_DEBUG, __VA_ARGS__)
#define wss_warn(...) wss_log(WSS_LOG_WARNING, __VA_ARGS__)

#endif
