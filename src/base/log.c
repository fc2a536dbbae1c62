/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "base/log.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/journal.h"

#define TEXT_MAX 1024
/* A reader that has stalled must not stop the windows and balloons of guests: it is waited for once in so long. */
#define READER_PATIENCE_NS WSS_NS_PER_S
#define READER_PERIOD_NS (60 * WSS_NS_PER_S)
/* Texts are formatted as long as this, and then shortened. */
#define LONGEST 4096
#define NAME_MAX_BYTES 256
#define UUID_BYTES 37

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
static int log_fd = STDERR_FILENO;

void wss_log_show_time(void)
{
	log_has_time = true;
}

void wss_log_open(void)
{
	log_to_journal = wss_journal_has_stderr();
	if (log_to_journal)
		wss_journal_open();
	if (log_fd != STDERR_FILENO)
		close(log_fd);
	/* O_NONBLOCK is of the open file, which a terminal's other programs share. */
	if (!isatty(STDERR_FILENO) || wss_file_reopen(STDERR_FILENO, O_WRONLY, &log_fd, NULL) < 0)
		log_fd = STDERR_FILENO;
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

static bool print_to_stderr(enum wss_log_level level, const char *text)
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
	return dprintf(log_fd, "%s%svirt-wss: %s%s\n", time, log_has_time ? " " : "", prefix[level],
		       text) > 0;
}

/* Under the lock of stderr: messages that nobody read in time, and when the reader is waited for again. */
static unsigned log_lost;
static uint64_t log_patient_ns;

/* A pipe takes a line if poll() says so; a terminal may take a part of it, or nothing. */
static bool stderr_takes_line(void)
{
	struct pollfd pfd = {.fd = log_fd, .events = POLLOUT};
	bool patient = !log_lost && wss_clock_now_ns() >= log_patient_ns;

	if (!wss_clock_poll_injected(&pfd, 1, patient ? READER_PATIENCE_NS : 0))
		poll(&pfd, 1, patient ? (int)(READER_PATIENCE_NS / WSS_NS_PER_MS) : 0);
	if (pfd.revents)
		return true;
	if (patient)
		log_patient_ns = wss_clock_now_ns() + READER_PERIOD_NS;
	return false;
}

/*
 * The journal adds the program's name, and takes the level from the prefix (sd-daemon(3)). False: the line, or its end,
 * is lost.
 */
static bool line_print(enum wss_log_level level, const char *text)
{
	if (log_to_journal)
		return dprintf(log_fd, "<%d>%s\n", log_priority(level), text) > 0;
	return print_to_stderr(level, text);
}

static void log_print(enum wss_log_level level, const char *text)
{
	void (*sink)(enum wss_log_level, const char *) = log_sink;
	char lost[64];

	if (sink) {
		sink(level, text);
		return;
	}
	flockfile(stderr);
	if (log_lost && stderr_takes_line()) {
		snprintf(lost, sizeof(lost), "%u message%s lost, as nobody read them", log_lost,
			 log_lost == 1 ? " was" : "s were");
		if (line_print(WSS_LOG_WARNING, lost))
			log_lost = 0;
	}
	if (log_lost || !stderr_takes_line() || !line_print(level, text))
		log_lost++;
	funlockfile(stderr);
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

/* --- about guests --- */

/*
 * A guest can cause messages as often as it likes, by resetting itself for instance. So many about each are logged in
 * a minute, the one that says how many others there were included.
 */
#define GUEST_MESSAGES 6
#define GUEST_PERIOD_NS (60 * WSS_NS_PER_S)

struct quota {
	char name[NAME_MAX_BYTES], uuid[UUID_BYTES];
	uint64_t since_ns;
	unsigned logged, left_out;
};

static pthread_mutex_t quotas_lock = PTHREAD_MUTEX_INITIALIZER;
static struct quota *quotas; /* under the lock, as what follows */
static size_t n_quotas;

static bool quota_is_over(const struct quota *quota)
{
	return wss_clock_now_ns() - quota->since_ns >= GUEST_PERIOD_NS;
}

/* NULL: out of memory. */
static struct quota *quota_find(const char *name, const char *uuid)
{
	struct quota *unused = NULL, *more;

	for (size_t i = 0; i < n_quotas; i++) {
		struct quota *quota = &quotas[i];

		if (!strcmp(quota->uuid, uuid) && !strcmp(quota->name, name))
			return quota;
		if (!quota->left_out && quota_is_over(quota))
			unused = quota;
	}
	if (!unused) {
		more = reallocarray(quotas, n_quotas + 1, sizeof(*quotas));
		if (!more)
			return NULL;
		quotas = more;
		unused = &quotas[n_quotas++];
	}
	*unused = (struct quota){.since_ns = wss_clock_now_ns()};
	snprintf(unused->name, sizeof(unused->name), "%s", name);
	snprintf(unused->uuid, sizeof(unused->uuid), "%s", uuid);
	return unused;
}

/* Whether another message about the guest is logged; one that is not is counted. */
static bool quota_take(const char *name, const char *uuid)
{
	struct quota *quota;
	bool allowed = true;

	pthread_mutex_lock(&quotas_lock);
	quota = quota_find(name, uuid);
	if (quota && !quota->left_out && quota_is_over(quota))
		*quota = (struct quota){.since_ns = wss_clock_now_ns()};
	if (quota) {
		allowed = quota->logged < GUEST_MESSAGES;
		quota->logged += allowed;
		quota->left_out += !allowed;
	}
	pthread_mutex_unlock(&quotas_lock);
	return allowed;
}

static void guest_print(enum wss_log_level level, const char *name, const char *uuid,
			const char *text)
{
	if (log_sink || !log_to_journal || !wss_journal_send(log_priority(level), text, name, uuid))
		log_print(level, text);
}

void wss_log_guests_left_out(void)
{
	pthread_mutex_lock(&quotas_lock);
	for (size_t i = 0; i < n_quotas; i++) {
		struct quota *quota = &quotas[i];
		char text[TEXT_MAX];

		if (!quota->left_out || !quota_is_over(quota))
			continue;
		snprintf(text, sizeof(text), "%s: left out %u more %s about it within a minute",
			 quota->name, quota->left_out,
			 quota->left_out == 1 ? "message" : "messages");
		guest_print(WSS_LOG_INFO, quota->name, quota->uuid, text);
		quota->since_ns = wss_clock_now_ns();
		quota->logged = 1;
		quota->left_out = 0;
	}
	pthread_mutex_unlock(&quotas_lock);
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
	wss_log_guests_left_out();
	/* Whoever wants to debug wants all of them. */
	if (level == WSS_LOG_DEBUG || quota_take(safe, uuid))
		guest_print(level, safe, uuid, text);
}
