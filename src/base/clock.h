/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The only source of time. Windows and deadlines use CLOCK_BOOTTIME, which keeps counting
 * while the host is suspended; wall-clock time is only printed.
 */
#pragma once

#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#define WSS_NS_PER_S 1000000000ULL
#define WSS_NS_PER_MS 1000000ULL

/* Nanoseconds since boot, suspended time included. */
uint64_t wss_clock_now_ns(void);

/* Time for which the host has been suspended since it was booted. A time namespace may add a constant to it. */
uint64_t wss_clock_suspended_ns(void);

/* CPU time of the calling thread in nanoseconds. It does not grow while the thread waits for a disk or a processor. */
uint64_t wss_clock_thread_ns(void);

/*
 * Returns the CPU time of the calling thread, in ns, since it last called this, or since it was started: for whoever
 * is charged with it. Waking up for a piece of work so counts with that work.
 */
uint64_t wss_clock_take_thread_ns(void);

/* CPU time of all threads of this process in nanoseconds, also of those that have ended. */
uint64_t wss_clock_process_ns(void);

/*
 * Whether the time *when_ns has come. If so, *when_ns becomes every_ns from now, for something that
 * is done again and again; 0 is due at once.
 */
bool wss_clock_is_due(uint64_t *when_ns, uint64_t every_ns);

/* Seconds since boot, suspended time included. */
int64_t wss_clock_now_seconds(void);

/* Seconds since the epoch. */
time_t wss_clock_wall_seconds(void);

/*
 * Returns the number of seconds between a wall-clock time and now. A time in the future comes
 * from a clock that was wrong, and counts as equally far in the past.
 */
int64_t wss_clock_age_seconds(int64_t wall_s);

/*
 * Sleeps until the given time of wss_clock_now_ns(). Returns 0, or -1 when a
 * signal asked the process to stop (base/stop.h).
 */
int wss_clock_sleep_until_ns(uint64_t when_ns);

/* The same for what has to be done after a request to stop as well, which does not shorten it. */
void wss_clock_rest_until_ns(uint64_t when_ns);

/*
 * If a test has injected a way to sleep, sleeps until when_ns by that and returns true; otherwise
 * returns false at once. For functions that sleep without this module (base/cancel.h).
 */
bool wss_clock_sleep_injected(uint64_t when_ns);

/* The same for a wait of at most timeout_ns on a condition (base/cond.h). *ret_signalled: the time is not over. */
bool wss_clock_wait_injected(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t timeout_ns,
			     bool *ret_signalled);

/* The same for ppoll(), whose result a caller must be able to do without. */
bool wss_clock_poll_injected(struct pollfd *fds, nfds_t n, uint64_t timeout_ns);

/* Milliseconds from now to the deadline, for poll(): rounded up, 0 when past. */
int wss_clock_poll_ms(uint64_t deadline_ns);

/*
 * Formats wall-clock time as ISO 8601 in UTC, "2026-11-20T18:00:00Z". ret_text
 * must hold WSS_CLOCK_TEXT_MAX bytes.
 */
#define WSS_CLOCK_TEXT_MAX 32
void wss_clock_format(time_t when, char *ret_text);

/* Does the same in local time with its offset, "2026-11-20T19:00:00+0100". */
void wss_clock_format_local(time_t when, char *ret_text);

/* Parses what wss_clock_format() writes. Returns 0, or -1 for any other text. */
int wss_clock_parse(const char *text, time_t *ret_when);

/*
 * Replaces the clock in tests: now_ns() returns the time, and sleeping calls sleep_until_ns(). If that is
 * NULL, a sleep is a real one, which goes on until its time has come by now_ns(); so is a wait for another thread
 * or a descriptor, if wait or poll are NULL: wait() returns false once its time is over.
 * NULL restores the real clock. If wall_seconds is NULL, the time of day stays real; if suspended_ns is, the
 * host is never suspended; if thread_ns and process_ns are, CPU time is real.
 */
struct wss_clock_source {
	uint64_t (*now_ns)(void *opaque);
	void (*sleep_until_ns)(void *opaque, uint64_t when_ns);
	void *opaque;
	time_t (*wall_seconds)(void *opaque);
	uint64_t (*suspended_ns)(void *opaque);
	bool (*wait)(void *opaque, pthread_cond_t *cond, pthread_mutex_t *lock,
		     uint64_t timeout_ns);
	void (*poll)(void *opaque, struct pollfd *fds, nfds_t n, uint64_t timeout_ns);
	uint64_t (*thread_ns)(void *opaque), (*process_ns)(void *opaque);
};
void wss_clock_inject(const struct wss_clock_source *source);
