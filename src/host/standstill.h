/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How long a guest could not run, although QEMU and libvirt may take it for running: stopped by a signal or a
 * tracer, frozen by its cgroup, or throttled by a CPU limit. An idle guest could run, and does not count.
 *
 * Theory of operation. The kernel counts the time that a thread ran and the time that it waited for a CPU
 * (/proc/PID/task/TID/schedstat), but not the time for which it was stopped or frozen. So a few of the guest's
 * vCPU threads are looked at in turn, at many moments of the window that keep no regular distance:
 *
 * - A thread that is stopped, or whose cgroup is frozen, stands still. A thread that sleeps looks the same
 *   whether it is frozen or idle (a vCPU that was frozen in KVM's halt has state S or D), so its cgroup is asked.
 *   The time between two looks counts by half for each. A stop that is longer than the distance of two looks is
 *   always seen, shorter ones as often as their share of the time suggests.
 * - A thread that got less than a tenth of the CPU time that it wanted since the look before, in a cgroup whose
 *   CPU limit has taken effect, stood still while it waited. Without a limit it competes with others, as on any
 *   busy host.
 */
#ifndef WSS_HOST_STANDSTILL_H
#define WSS_HOST_STANDSTILL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/root.h"
#include "host/process.h"

/*
 * Threads that are looked at in a window. A stop of QEMU as a whole, or a limit of its cgroup, hits all in the same way.
 * Of a guest with more vCPUs each window looks at others, as the moment of its beginning has it: a stop of one vCPU
 * alone shows only in some of the windows.
 */
#define WSS_STANDSTILL_THREADS_MAX 4
/* Looks within a window, on the average, unless it is shorter or longer than the limits of their distance allow. */
#define WSS_STANDSTILL_LOOKS 32
#define WSS_STANDSTILL_STEP_MIN_NS (10 * WSS_NS_PER_MS)
#define WSS_STANDSTILL_STEP_MAX_NS (800 * WSS_NS_PER_MS)

enum wss_standstill_cause {
	WSS_STANDSTILL_NONE,
	WSS_STANDSTILL_SIGNAL,
	WSS_STANDSTILL_TRACER,
	WSS_STANDSTILL_FREEZER,
	WSS_STANDSTILL_LIMIT,	/* of CPU time */
	WSS_STANDSTILL_PAUSE,	/* by QEMU or libvirt; noted by the caller */
	WSS_STANDSTILL_SUSPEND, /* of the host; noted by the caller */
	WSS_STANDSTILL_CAUSES,
};

struct wss_standstill {
	const struct wss_root *root;
	const struct wss_process *process;
	struct {
		pid_t tid;
		uint64_t look_ns, run_ns, wait_ns; /* when it was last looked at, and its counters then */
	} threads[WSS_STANDSTILL_THREADS_MAX];
	size_t n;    /* 0: they are not known yet */
	bool turns;  /* there are more vCPUs, which take turns */
	size_t next; /* the one to be looked at next */
	uint64_t look_ns; /* the last look */
	enum wss_standstill_cause now; /* at the last look */
	uint64_t lost_ns[WSS_STANDSTILL_CAUSES];
	unsigned looks;
};

/* Begins a window at now_ns, with a look at each thread. root ("/") and process must outlive the struct. */
void wss_standstill_begin(struct wss_standstill *standstill, const struct wss_root *root,
			  const struct wss_process *process, uint64_t now_ns);

/* Looks at one thread. Costs a few reads in /proc, and of a cgroup while the thread sleeps. */
void wss_standstill_look(struct wss_standstill *standstill, uint64_t now_ns);

/* Looks at each thread, so that the counters cover all time until now_ns. */
void wss_standstill_look_at_all(struct wss_standstill *standstill, uint64_t now_ns);

/*
 * Counts the time from a look at asked_ns, after which QEMU was asked something, to its answer, during which nobody
 * could look: if a stop was seen, it has kept back an answer that is late.
 */
void wss_standstill_answered(struct wss_standstill *standstill, uint64_t asked_ns, uint64_t answered_ns);

/* When to look next in a window of window_ns. */
uint64_t wss_standstill_next_ns(const struct wss_standstill *standstill, uint64_t window_ns);

/*
 * Sums up the time lost since the window began, and its main cause (WSS_STANDSTILL_NONE if none was lost). A sum
 * of several causes may exceed the window.
 */
uint64_t wss_standstill_lost_ns(const struct wss_standstill *standstill, enum wss_standstill_cause *ret_cause);

/* Whether the guest's threads stand still now, and why. Needs no window. */
enum wss_standstill_cause wss_standstill_now(const struct wss_root *root, const struct wss_process *process);

/* "stopped by a signal", and the like. */
const char *wss_standstill_text(enum wss_standstill_cause cause);

#endif
