/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How long a guest could not run, although QEMU and libvirt may take it for running: stopped by a signal or a
 * tracer, frozen by its cgroup, throttled by a CPU limit, starved by others, blocked by a fault that waits for the
 * host's memory or storage, or kept by QEMU. An idle guest could run, and does not count.
 *
 * Theory of operation. The kernel counts the time that a thread ran and the time that it waited for a CPU
 * (/proc/PID/task/TID/schedstat), but not the time for which it was stopped, frozen or blocked. So a few of the guest's
 * vCPU threads are looked at in turn, at many moments of the window that keep no regular distance:
 *
 * - A thread that is stopped, or whose cgroup is frozen, stands still. A thread that sleeps looks the same
 *   whether it is frozen or idle (a vCPU that was frozen in KVM's halt has state S or D), so its cgroup is asked.
 *   The time between two looks counts by half for each. A stop that is longer than the distance of two looks is
 *   always seen, shorter ones as often as their share of the time suggests.
 * - A thread that got less than a tenth of the CPU time that it wanted between two looks 100 ms or more apart, in a
 *   cgroup whose CPU limit has taken effect, stood still while it waited. Each look reads all threads' counters. Of n vCPUs
 *   that are looked at, less than its part of the tenth: busy ones share what the limit leaves to their guest.
 * - Without a limit it competes with others, as on any busy host. It starved while it got less than a twentieth, as
 *   beside 19 equals on its CPU, and waited for 20 ms or more for each slice, on the average: a weight of 1 of 100,
 *   SCHED_IDLE and nice 19 mean slices of a few ms after 50 to 2000 ms. A guest that wakes often for a moment waits
 *   nearly all the time, too, where others are busy, but for 5 ms at most before it gets all that it wanted. The
 *   vCPU that starved most decides, as the others may be idle.
 * - A guest with a common quota runs and waits by turns, and is healthy: a wait counts if it is 250 ms longer than
 *   a period of the limit. So throttling is always seen if it lasts for three distances of looks more than that (0.7 s
 *   in a window of 3 s, 3.4 s in those of 26 s and more, for the kernel's period of 100 ms), and else only by chance.
 * - A vCPU that is idle sleeps in state S, in KVM's halt. One in state D waits for the host: for a page from swap or a
 *   file, or for room in its cgroup. Where two looks 100 ms or more apart find it so, and it hardly ran in between,
 *   it stood still; short page-ins let it run by turns. So a block is always seen that is twice as long as the
 *   distance of looks. The vCPU that was blocked most decides, as the others may be idle.
 * - A vCPU under KVM that is idle sleeps in the kernel's KVM. One that sleeps on a futex waits for another thread of
 *   QEMU: for the lock that a busy main loop holds, or because QEMU has paused it, which not every inventory tells. Counted
 *   as a block is. TCG's vCPUs are idle so, and those of a QEMU that was told to emulate interrupts itself; and only
 *   threads that are named as vCPUs are known to be some.
 * - Either counts in a cgroup whose CPU limit has taken effect only where it is longer than a throttled thread waits for
 *   its turn: that may be the one that holds the lock.
 * - A window of less than 250 ms is too short for who waits for a CPU. Its vCPUs are judged from the beginning of a window that is
 *   long enough ago, so that a series of short windows shows who waits, a single one does not.
 */
#pragma once

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
	WSS_STANDSTILL_STARVED, /* of CPU time, by others */
	WSS_STANDSTILL_BLOCKED, /* on the host's memory or storage */
	WSS_STANDSTILL_KEPT,	/* by QEMU */
	WSS_STANDSTILL_PAUSE,	/* by QEMU or libvirt; noted by the caller */
	WSS_STANDSTILL_SUSPEND, /* of the host; noted by the caller */
	WSS_STANDSTILL_CAUSES,
};

/* A thread's counters: time on a CPU, time waiting for one, and how often it got one. */
struct wss_schedstat {
	uint64_t run_ns, wait_ns, slices;
};

/* For how long a thread was blocked, in one of the ways that the kernel does not count. */
struct wss_standstill_block {
	bool now;	  /* at the last look */
	uint64_t edge_ns; /* that may have been blocked before, which is not counted yet */
	uint64_t lost_ns; /* counted */
};

enum { WSS_STANDSTILL_BY_HOST, WSS_STANDSTILL_BY_QEMU, WSS_STANDSTILL_BLOCKS };

struct wss_standstill {
	const struct wss_root *root;
	const struct wss_process *process;
	bool idles_in_kvm; /* set by wss_standstill_begin(): a vCPU that is idle does not sleep in QEMU */
	struct {
		pid_t tid;
		bool vcpu;		       /* by its name */
		uint64_t look_ns;	       /* when it was last looked at */
		struct wss_schedstat counters; /* then */
		/* Beginning of what is not judged yet, over short windows; 0: none. */
		uint64_t span_ns;
		struct wss_schedstat span; /* then */
		uint64_t starved_ns;
		bool throttled; /* until then */
		struct wss_standstill_block blocks[WSS_STANDSTILL_BLOCKS];
	} threads[WSS_STANDSTILL_THREADS_MAX];
	size_t n;	   /* 0: they are not known yet */
	bool turns;	   /* there are more vCPUs, which take turns */
	size_t next;	   /* the one whose state is looked at next */
	uint64_t begin_ns; /* of the window */
	/* Shares of the time lost, in short windows: what came of the last judgement, at judged_ns. */
	double limit_share, starved_share;
	uint64_t judged_ns;	       /* 0: none yet */
	uint64_t look_ns;	       /* the last look */
	enum wss_standstill_cause now; /* at the last look */
	uint64_t lost_ns[WSS_STANDSTILL_CAUSES];
	unsigned looks;
};

/*
 * Begins a window at now_ns, with a look at each thread. root ("/") and process must outlive the struct. kvm: the guest runs
 * under KVM.
 */
void wss_standstill_begin(struct wss_standstill *standstill, const struct wss_root *root,
			  const struct wss_process *process, bool kvm, uint64_t now_ns);

/* Looks at one thread's state and all threads' counters. Costs a few reads in /proc, and of a cgroup while it sleeps. */
void wss_standstill_look(struct wss_standstill *standstill, uint64_t now_ns);

/* Looks at each thread, so that the counters cover all time until now_ns. */
void wss_standstill_look_at_all(struct wss_standstill *standstill, uint64_t now_ns);

/*
 * Counts the time from a look at asked_ns, after which QEMU was asked something, to its answer, during which nobody
 * could look: if a stop was seen, it has kept back an answer that is late.
 */
void wss_standstill_answered(struct wss_standstill *standstill, uint64_t asked_ns,
			     uint64_t answered_ns);

/* When to look next in a window of window_ns. */
uint64_t wss_standstill_next_ns(const struct wss_standstill *standstill, uint64_t window_ns);

/* Returns the time lost by its main cause since the window began; 0, and WSS_STANDSTILL_NONE, if none was lost. */
uint64_t wss_standstill_lost_ns(const struct wss_standstill *standstill,
				enum wss_standstill_cause *ret_cause);

/* Whether the guest's threads stand still now, and why. Needs no window. */
enum wss_standstill_cause wss_standstill_now(const struct wss_root *root,
					     const struct wss_process *process);

/* "stopped by a signal", and the like. */
const char *wss_standstill_text(enum wss_standstill_cause cause);
