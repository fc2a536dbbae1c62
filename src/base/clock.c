/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "base/clock.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "base/cancel.h"

static const struct wss_clock_source *injected;

void wss_clock_inject(const struct wss_clock_source *source)
{
	injected = source;
}

static uint64_t read_clock(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * WSS_NS_PER_S + (uint64_t)ts.tv_nsec;
}

uint64_t wss_clock_now_ns(void)
{
	return injected ? injected->now_ns(injected->opaque) : read_clock(CLOCK_BOOTTIME);
}

uint64_t wss_clock_suspended_ns(void)
{
	uint64_t awake_ns, boot_ns, best_ns = UINT64_MAX;

	if (injected)
		return injected->suspended_ns ? injected->suspended_ns(injected->opaque) : 0;
	/* A thread that loses its processor between the two reads finds too much: the smallest of three is nearest. */
	for (int tries = 0; tries < 3; tries++) {
		awake_ns = read_clock(CLOCK_MONOTONIC);
		boot_ns = read_clock(CLOCK_BOOTTIME);
		best_ns = boot_ns - awake_ns < best_ns ? boot_ns - awake_ns : best_ns;
	}
	return best_ns;
}

uint64_t wss_clock_thread_ns(void)
{
	return injected && injected->thread_ns ? injected->thread_ns(injected->opaque)
					       : read_clock(CLOCK_THREAD_CPUTIME_ID);
}

uint64_t wss_clock_take_thread_ns(void)
{
	static _Thread_local uint64_t taken_ns;
	uint64_t now_ns = wss_clock_thread_ns(), since_ns = now_ns - taken_ns;

	taken_ns = now_ns;
	return since_ns;
}

uint64_t wss_clock_process_ns(void)
{
	return injected && injected->process_ns ? injected->process_ns(injected->opaque)
						: read_clock(CLOCK_PROCESS_CPUTIME_ID);
}

bool wss_clock_is_due(uint64_t *when_ns, uint64_t every_ns)
{
	uint64_t now_ns = wss_clock_now_ns();

	if (now_ns < *when_ns)
		return false;
	*when_ns = now_ns + every_ns;
	return true;
}

int64_t wss_clock_now_seconds(void)
{
	return (int64_t)(wss_clock_now_ns() / WSS_NS_PER_S);
}

time_t wss_clock_wall_seconds(void)
{
	return injected && injected->wall_seconds ? injected->wall_seconds(injected->opaque)
						  : time(NULL);
}

int64_t wss_clock_age_seconds(int64_t wall_s)
{
	int64_t now = wss_clock_wall_seconds();

	return now > wall_s ? now - wall_s : wall_s - now;
}

bool wss_clock_sleep_injected(uint64_t when_ns)
{
	if (!injected || !injected->sleep_until_ns)
		return false;
	injected->sleep_until_ns(injected->opaque, when_ns);
	return true;
}

bool wss_clock_wait_injected(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t timeout_ns,
			     bool *ret_signalled)
{
	if (!injected || !injected->wait)
		return false;
	*ret_signalled = injected->wait(injected->opaque, cond, lock, timeout_ns);
	return true;
}

bool wss_clock_poll_injected(struct pollfd *fds, nfds_t n, uint64_t timeout_ns)
{
	if (!injected || !injected->poll)
		return false;
	injected->poll(injected->opaque, fds, n, timeout_ns);
	return true;
}

int wss_clock_sleep_until_ns(uint64_t when_ns)
{
	return wss_cancel_sleep_until_ns(NULL, when_ns);
}

void wss_clock_rest_until_ns(uint64_t when_ns)
{
	const struct timespec when = {.tv_sec = (time_t)(when_ns / WSS_NS_PER_S),
				      .tv_nsec = (long)(when_ns % WSS_NS_PER_S)};

	if (!wss_clock_sleep_injected(when_ns))
		while (clock_nanosleep(CLOCK_BOOTTIME, TIMER_ABSTIME, &when, NULL) == EINTR)
			continue;
}

int wss_clock_poll_ms(uint64_t deadline_ns)
{
	uint64_t now = wss_clock_now_ns(), ms;

	if (now >= deadline_ns)
		return 0;
	ms = (deadline_ns - now + WSS_NS_PER_MS - 1) / WSS_NS_PER_MS;
	return ms > INT_MAX ? INT_MAX : (int)ms;
}

void wss_clock_format(time_t when, char *ret_text)
{
	struct tm tm;

	gmtime_r(&when, &tm);
	strftime(ret_text, WSS_CLOCK_TEXT_MAX, "%Y-%m-%dT%H:%M:%SZ", &tm);
}

void wss_clock_format_local(time_t when, char *ret_text)
{
	struct tm tm;

	localtime_r(&when, &tm);
	strftime(ret_text, WSS_CLOCK_TEXT_MAX, "%Y-%m-%dT%H:%M:%S%z", &tm);
}

int wss_clock_parse(const char *text, time_t *ret_when)
{
	struct tm tm = {0}, normal;
	const char *end = strptime(text, "%Y-%m-%dT%H:%M:%SZ", &tm);
	time_t when;

	/*
	 * strptime() accepts days that a month does not have, and a leap second, which would count as the next minute,
	 * possibly of the year 10000.
	 */
	if (!end || *end || tm.tm_sec > 59)
		return -1;
	normal = tm;
	when = timegm(&normal);
	if (normal.tm_mday != tm.tm_mday)
		return -1;
	*ret_when = when;
	return 0;
}
