/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Messages for people, on stderr, one line each: "virt-wss: warning: ...". Library code
 * returns errors instead; only commands, and code that cannot return what it has to say, log.
 */
#ifndef WSS_BASE_LOG_H
#define WSS_BASE_LOG_H

enum wss_log_level { WSS_LOG_ERROR, WSS_LOG_WARNING, WSS_LOG_INFO, WSS_LOG_DEBUG };

/* Messages above this level are dropped. Starts as WSS_LOG_INFO. */
void wss_log_set_level(enum wss_log_level level);

/* Called before each message that is printed, to clear the line; NULL: nothing. */
void wss_log_set_prologue(void (*prologue)(void));

void wss_log(enum wss_log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#define wss_debug(...) wss_log(WSS_LOG_DEBUG, __VA_ARGS__)
#define wss_warn(...) wss_log(WSS_LOG_WARNING, __VA_ARGS__)

#endif
