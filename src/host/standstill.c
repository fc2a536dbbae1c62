/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "host/standstill.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/number.h"
#include "host/cgroup.h"
#include "host/procfile.h"

/* Counters of a shorter time say nothing about a share: the scheduler's slices are too long. */
#define WAIT_MIN_NS (100 * WSS_NS_PER_MS)
/* An answer that takes as long as this was kept back by the stop that was seen before. */
#define LATE_NS (100 * WSS_NS_PER_MS)
/*
 * A thread that gets less than this part of what it wants could not run: within a limit, and without one. The vCPUs that
 * are looked at share a limit's part: four that are busy, in a group that may use 40 % of a CPU, get a tenth each.
 */
#define THROTTLED_PART 10
#define STARVED_PART 20
/* One that waits less for a slice, on the average, has a common load: slices are 1 to 4 ms long. */
#define STARVED_WAIT_NS (20 * WSS_NS_PER_MS)
/* A thread whose sleeps take less, on the average, waits for a common disk, and goes on. */
#define BLOCKED_SLEEP_NS (20 * WSS_NS_PER_MS)
/* The kernel's period of a CPU limit, unless it is set. */
#define PERIOD_NS (100 * WSS_NS_PER_MS)
/*
 * A quota may keep a healthy thread waiting for most of a period, and for longer if others ran when its turn came
 * or if it owes what it ran too long before.
 */
#define QUOTA_SLACK_NS (250 * WSS_NS_PER_MS)

/* What was judged, or began, longer ago says nothing about a window. */
#define SPAN_MAX_NS (5 * WSS_NS_PER_S)

static int schedstat_read(const struct wss_root *proc, pid_t tid,
			  struct wss_schedstat *ret_counters)
{
	char path[64], line[96];
	int r;

	snprintf(path, sizeof(path), "task/%d/schedstat", tid);
	r = wss_root_read_line(proc, path, line, sizeof(line));
	if (r < 0)
		return r;
	return sscanf(line, "%" SCNu64 " %" SCNu64 " %" SCNu64, &ret_counters->run_ns,
		      &ret_counters->wait_ns, &ret_counters->slices) == 3
		       ? 0
		       : -1;
}

/* --- the threads --- */

struct candidate {
	pid_t tid;
	bool vcpu;
	struct wss_schedstat counters;
};

/* QEMU calls its threads so where it was told to name them, as libvirt does; others have vcpu in the name. */
static bool is_vcpu_name(const char *name)
{
	return !strncmp(name, "CPU ", 4) || !strncmp(name, "ALL CPUs", 8) ||
	       strcasestr(name, "vcpu");
}

/* vCPUs first, in a lasting order, then those that ran most, which are vCPUs where threads have no names. */
static int candidate_compare(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	if (x->vcpu != y->vcpu)
		return x->vcpu ? -1 : 1;
	if (x->vcpu)
		return x->tid < y->tid ? -1 : 1;
	return x->counters.run_ns == y->counters.run_ns	 ? 0
	       : x->counters.run_ns > y->counters.run_ns ? -1
							 : 1;
}

static size_t candidates_read(const struct wss_root *proc, struct candidate **ret_candidates)
{
	wss_auto_dir DIR *dir = NULL;
	struct candidate *list = NULL;
	size_t n = 0, size = 0;

	*ret_candidates = NULL;
	if (wss_root_opendir(proc, "task", &dir) < 0)
		return 0;
	for (struct dirent *entry; (entry = readdir(dir));) {
		char path[64], name[64];

		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		if (n == size) {
			struct candidate *bigger =
				realloc(list, (size = size * 2 + 16) * sizeof(*list));

			if (!bigger)
				break;
			list = bigger;
		}
		list[n] = (struct candidate){.tid = (pid_t)strtol(entry->d_name, NULL, 10)};
		snprintf(path, sizeof(path), "task/%.20s/comm", entry->d_name);
		if (wss_root_read_line(proc, path, name, sizeof(name)) < 0)
			continue;
		list[n].vcpu = is_vcpu_name(name);
		schedstat_read(proc, list[n].tid, &list[n].counters);
		n++;
	}
	*ret_candidates = list;
	return n;
}

static void threads_find(struct wss_standstill *standstill, uint64_t now_ns)
{
	wss_auto_free struct candidate *list = NULL;
	size_t n = candidates_read(&standstill->process->proc, &list), n_vcpus = 0, first = 0;

	if (n)
		qsort(list, n, sizeof(*list), candidate_compare);
	while (n_vcpus < n && list[n_vcpus].vcpu)
		n_vcpus++;
	if (n_vcpus)
		n = n_vcpus;
	standstill->turns = n_vcpus > WSS_STANDSTILL_THREADS_MAX;
	if (standstill->turns)
		first = now_ns / WSS_NS_PER_MS % n_vcpus;
	standstill->n = n < WSS_STANDSTILL_THREADS_MAX ? n : WSS_STANDSTILL_THREADS_MAX;
	for (size_t i = 0; i < standstill->n; i++) {
		standstill->threads[i].tid = list[(first + i) % n].tid;
		standstill->threads[i].vcpu = list[(first + i) % n].vcpu;
		standstill->threads[i].span_ns = 0;
	}
}

static void threads_begin(struct wss_standstill *standstill, uint64_t now_ns)
{
	for (size_t i = 0; i < standstill->n; i++) {
		standstill->threads[i].look_ns = now_ns;
		standstill->threads[i].throttled = false;
		standstill->threads[i].starved_ns = 0;
		for (int by = 0; by < WSS_STANDSTILL_BLOCKS; by++) {
			standstill->threads[i].blocks[by].now = false;
			standstill->threads[i].blocks[by].lost_ns = 0;
		}
		if (schedstat_read(&standstill->process->proc, standstill->threads[i].tid,
				   &standstill->threads[i].counters) < 0 ||
		    (standstill->threads[i].span_ns &&
		     now_ns - standstill->threads[i].span_ns <= SPAN_MAX_NS))
			continue;
		standstill->threads[i].span_ns = now_ns;
		standstill->threads[i].span = standstill->threads[i].counters;
	}
}

/* --- its cgroups --- */

/* The period of a cgroup's CPU limit: by version 2 after the quota, by version 1 in a file of its own. */
static uint64_t cgroup_period_ns(const struct wss_root *root, const char *directory)
{
	wss_auto_free char *max = wss_cgroup_read(root, directory, "cpu.max");
	wss_auto_free char *period =
		max ? NULL : wss_cgroup_read(root, directory, "cpu.cfs_period_us");
	uint64_t us;

	if ((max && sscanf(max, "%*s %" SCNu64, &us) == 1) ||
	    (period && sscanf(period, "%" SCNu64, &us) == 1))
		return us * (WSS_NS_PER_MS / 1000);
	return PERIOD_NS;
}

/* The longest period of a CPU limit of the cgroup, or of one above it, that has ever taken effect; 0 if none has. */
static uint64_t thread_limit_period_ns(const struct wss_root *root, const char *cgroups)
{
	static const char *const controllers[] = {"", "cpu"};
	uint64_t period_ns = 0;
	char path[PATH_MAX];

	for (size_t i = 0; i < 2; i++) {
		wss_cgroup_path(root, cgroups, controllers[i], path);
		while (strlen(path) > strlen("sys/fs/cgroup")) {
			if (wss_cgroup_says(root, path, "cpu.stat", "nr_throttled "))
				period_ns = wss_u64_max(period_ns, cgroup_period_ns(root, path));
			*strrchr(path, '/') = '\0';
		}
	}
	return period_ns;
}

/* --- looks --- */

static char *thread_cgroups(const struct wss_process *process, pid_t tid)
{
	char path[64], *text = NULL;
	size_t len;

	snprintf(path, sizeof(path), "task/%d/cgroup", tid);
	return wss_root_read(&process->proc, path, WSS_CGROUP_MAX_BYTES, &text, &len) < 0 ? NULL
											  : text;
}

static char thread_state(const struct wss_process *process, pid_t tid)
{
	char path[64], state;

	snprintf(path, sizeof(path), "task/%d/stat", tid);
	return wss_procfile_read_state(&process->proc, path, &state) < 0 ? '?' : state;
}

static enum wss_standstill_cause thread_look(const struct wss_root *root,
					     const struct wss_process *process, pid_t tid)
{
	wss_auto_free char *cgroups = NULL;
	char state = thread_state(process, tid);

	if (state == 'T')
		return WSS_STANDSTILL_SIGNAL;
	if (state == 't')
		return WSS_STANDSTILL_TRACER;
	if (state != 'S' && state != 'D')
		return WSS_STANDSTILL_NONE;
	cgroups = thread_cgroups(process, tid);
	return cgroups && wss_cgroup_is_frozen(root, cgroups) ? WSS_STANDSTILL_FREEZER
							      : WSS_STANDSTILL_NONE;
}

/*
 * Whether a thread that is ready to run, and whose counters stand still, must be waiting. CPUs without a tick
 * count what they run only once a second.
 */
static bool thread_must_wait(const struct wss_standstill *standstill, pid_t tid)
{
	char cpus[16] = "";

	if (thread_state(standstill->process, tid) != 'R')
		return false;
	wss_root_read_line(standstill->root, "sys/devices/system/cpu/nohz_full", cpus,
			   sizeof(cpus));
	return !isdigit((unsigned char)cpus[0]);
}

/* The function of the kernel in which a thread sleeps; "" where that cannot be read. */
static void thread_wchan(const struct wss_standstill *standstill, pid_t tid, char ret_name[64])
{
	char path[64];

	ret_name[0] = '\0';
	snprintf(path, sizeof(path), "task/%d/wchan", tid);
	wss_root_read_line(&standstill->process->proc, path, ret_name, 64);
}

/*
 * Whether a thread waits in the kernel for memory or storage, or for another thread of QEMU, and not for an interrupt. A
 * vCPU that is idle sleeps in KVM's halt, in state S; a fault that a userfaultfd is to serve sleeps so, too (KVM since Linux
 * 6.2). Futexes wait in futex_do_wait (6.16), futex_wait_queue (5.16) or futex_wait_queue_me.
 */
static bool thread_is_blocked(const struct wss_standstill *standstill, size_t i, int by)
{
	pid_t tid = standstill->threads[i].tid;
	char state = thread_state(standstill->process, tid), function[64];
	wss_auto_free char *cgroups = NULL;

	if (state == 'S') {
		thread_wchan(standstill, tid, function);
		if (by == WSS_STANDSTILL_BY_HOST)
			return !strcmp(function, "handle_userfault");
		if (!standstill->idles_in_kvm || !standstill->threads[i].vcpu ||
		    strncmp(function, "futex_", 6) != 0)
			return false;
	} else if (state != 'D' || by != WSS_STANDSTILL_BY_HOST) {
		return false;
	}
	cgroups = thread_cgroups(standstill->process, tid);
	return !cgroups || !wss_cgroup_is_frozen(standstill->root, cgroups);
}

/* Whether a thread that got ran_ns, and waited for waited_ns, could not run, if its group has a limit. */
static bool thread_hardly_gets(const struct wss_standstill *standstill, uint64_t ran_ns,
			       uint64_t waited_ns)
{
	return ran_ns <= (ran_ns + waited_ns) / (THROTTLED_PART * standstill->n);
}

/*
 * How long a block may last that is none: who holds the lock that the thread waits for, as QEMU's own, waits for its
 * turn within the limit of CPU time of the group.
 */
static uint64_t thread_turn_ns(const struct wss_standstill *standstill, size_t i)
{
	wss_auto_free char *cgroups =
		thread_cgroups(standstill->process, standstill->threads[i].tid);
	uint64_t period_ns = cgroups ? thread_limit_period_ns(standstill->root, cgroups) : 0;

	return period_ns ? period_ns + QUOTA_SLACK_NS : 0;
}

/*
 * Counts the time for which a thread was blocked until now, which the kernel does not count unless told to at boot.
 * One that has not had a CPU since the last look has slept since then; one that was blocked then, too, and hardly ran
 * meanwhile, was blocked in between. A block that is seen so began and ended in the midst of two looks. One that is
 * seen but once may have been short.
 */
static void thread_count_blocked(struct wss_standstill *standstill, size_t i, int by,
				 uint64_t since_ns, uint64_t ran_ns, uint64_t slices)
{
	static const enum wss_standstill_cause causes[WSS_STANDSTILL_BLOCKS] = {
		WSS_STANDSTILL_BLOCKED, WSS_STANDSTILL_KEPT};
	struct wss_standstill_block *block = &standstill->threads[i].blocks[by];
	uint64_t *sum_ns = &standstill->lost_ns[causes[by]];
	bool was_blocked = block->now, was_counted = was_blocked && !block->edge_ns;
	bool hardly_ran =
		ran_ns <= since_ns / STARVED_PART && since_ns / BLOCKED_SLEEP_NS >= slices;

	block->now = standstill->now == WSS_STANDSTILL_NONE && hardly_ran &&
		     thread_is_blocked(standstill, i, by);
	if (block->now && (was_blocked || !slices)) {
		block->edge_ns = since_ns + (was_blocked ? block->edge_ns : 0);
		if (was_counted || block->edge_ns >= thread_turn_ns(standstill, i)) {
			block->lost_ns += block->edge_ns;
			block->edge_ns = 0;
		}
	} else if (block->now) {
		block->edge_ns = since_ns / 2;
	} else if (was_counted) {
		block->lost_ns += since_ns / 2;
	}
	*sum_ns = wss_u64_max(*sum_ns, block->lost_ns);
}

/*
 * Counts the time that a thread waited in vain since it was last looked at. While it waits, the kernel does
 * not count the wait yet. A wait that may be a quota's is left to a later look.
 */
static void thread_count(struct wss_standstill *standstill, size_t i, uint64_t now_ns)
{
	uint64_t since_ns = now_ns - standstill->threads[i].look_ns, ran_ns, waited_ns, slices;
	struct wss_schedstat *before = &standstill->threads[i].counters, counters;
	uint64_t *starved_ns = &standstill->lost_ns[WSS_STANDSTILL_STARVED];
	wss_auto_free char *cgroups = NULL;

	if (since_ns < WAIT_MIN_NS ||
	    schedstat_read(&standstill->process->proc, standstill->threads[i].tid, &counters) < 0)
		return;
	ran_ns = counters.run_ns - before->run_ns;
	waited_ns = counters.wait_ns - before->wait_ns;
	slices = counters.slices - before->slices;
	if (!ran_ns && !waited_ns && thread_must_wait(standstill, standstill->threads[i].tid))
		waited_ns = since_ns;
	waited_ns = wss_u64_min(waited_ns, since_ns);
	if (waited_ns >= WAIT_MIN_NS / 2 && ran_ns <= (ran_ns + waited_ns) / THROTTLED_PART &&
	    standstill->now == WSS_STANDSTILL_NONE &&
	    (cgroups = thread_cgroups(standstill->process, standstill->threads[i].tid))) {
		uint64_t period_ns = thread_limit_period_ns(standstill->root, cgroups);

		if (!standstill->threads[i].throttled && since_ns < period_ns + QUOTA_SLACK_NS)
			return;
		if (period_ns && thread_hardly_gets(standstill, ran_ns, waited_ns)) {
			standstill->threads[i].throttled = true;
			standstill->lost_ns[WSS_STANDSTILL_LIMIT] += waited_ns / standstill->n;
		} else if (!period_ns && ran_ns <= (ran_ns + waited_ns) / STARVED_PART &&
			   waited_ns / STARVED_WAIT_NS >= slices) {
			standstill->threads[i].starved_ns += waited_ns;
			*starved_ns = wss_u64_max(*starved_ns, standstill->threads[i].starved_ns);
		}
	}
	for (int by = 0; by < WSS_STANDSTILL_BLOCKS; by++)
		thread_count_blocked(standstill, i, by, since_ns, ran_ns, slices);
	/* It may have begun to wait again. */
	if (!thread_hardly_gets(standstill, ran_ns, wss_u64_sub(since_ns, ran_ns)))
		standstill->threads[i].throttled = false;
	standstill->threads[i].look_ns = now_ns;
	*before = counters;
}

/* Judges a thread from the beginning of its span, if that is long enough. Returns whether it is. */
static bool span_judge(struct wss_standstill *standstill, size_t i, uint64_t now_ns,
		       double *limit_share, double *starved_share)
{
	uint64_t span_ns = standstill->threads[i].span_ns, since_ns = now_ns - span_ns, ran_ns,
		 waited_ns, slices, period_ns;
	const struct wss_schedstat *before = &standstill->threads[i].span;
	pid_t tid = standstill->threads[i].tid;
	struct wss_schedstat counters;
	wss_auto_free char *cgroups = NULL;

	if (!span_ns || since_ns < QUOTA_SLACK_NS ||
	    schedstat_read(&standstill->process->proc, tid, &counters) < 0 ||
	    !(cgroups = thread_cgroups(standstill->process, tid)))
		return false;
	period_ns = thread_limit_period_ns(standstill->root, cgroups);
	if (period_ns && since_ns < period_ns + QUOTA_SLACK_NS)
		return false;
	ran_ns = counters.run_ns - before->run_ns;
	waited_ns = counters.wait_ns - before->wait_ns;
	slices = counters.slices - before->slices;
	if (!ran_ns && !waited_ns && thread_must_wait(standstill, tid))
		waited_ns = since_ns;
	waited_ns = wss_u64_min(waited_ns, since_ns);
	standstill->threads[i].span_ns = 0;
	if (period_ns && thread_hardly_gets(standstill, ran_ns, waited_ns))
		*limit_share += (double)waited_ns / (double)since_ns / (double)standstill->n;
	else if (!period_ns && ran_ns <= (ran_ns + waited_ns) / STARVED_PART &&
		 waited_ns / STARVED_WAIT_NS >= slices &&
		 (double)waited_ns / (double)since_ns > *starved_share)
		*starved_share = (double)waited_ns / (double)since_ns;
	return true;
}

/* Judges a window that is too short to be judged by itself, by those before. */
static void short_window_judge(struct wss_standstill *standstill, uint64_t now_ns)
{
	uint64_t window_ns = now_ns - standstill->begin_ns, *lost_ns = standstill->lost_ns;
	double limit_share = 0, starved_share = 0;
	bool judged = false;

	if (window_ns >= QUOTA_SLACK_NS || standstill->now != WSS_STANDSTILL_NONE)
		return;
	for (size_t i = 0; i < standstill->n; i++)
		judged = span_judge(standstill, i, now_ns, &limit_share, &starved_share) || judged;
	if (judged) {
		standstill->limit_share = limit_share;
		standstill->starved_share = starved_share;
		standstill->judged_ns = now_ns;
	}
	if (!standstill->judged_ns || now_ns - standstill->judged_ns > SPAN_MAX_NS)
		return;
	lost_ns[WSS_STANDSTILL_LIMIT] =
		wss_u64_max(lost_ns[WSS_STANDSTILL_LIMIT],
			    (uint64_t)(standstill->limit_share * (double)window_ns));
	lost_ns[WSS_STANDSTILL_STARVED] =
		wss_u64_max(lost_ns[WSS_STANDSTILL_STARVED],
			    (uint64_t)(standstill->starved_share * (double)window_ns));
}

void wss_standstill_look(struct wss_standstill *standstill, uint64_t now_ns)
{
	uint64_t half_ns = (now_ns - standstill->look_ns) / 2;
	enum wss_standstill_cause cause;
	pid_t tid;

	standstill->look_ns = now_ns;
	standstill->looks++;
	/* They could not be listed before: there was no memory, or no descriptor. */
	if (!standstill->n) {
		threads_find(standstill, now_ns);
		threads_begin(standstill, now_ns);
		return;
	}
	tid = standstill->threads[standstill->next].tid;
	standstill->next = (standstill->next + 1) % standstill->n;
	cause = thread_look(standstill->root, standstill->process, tid);
	standstill->lost_ns[standstill->now] += half_ns;
	standstill->lost_ns[cause] += half_ns;
	standstill->now = cause;
	for (size_t i = 0; i < standstill->n; i++)
		thread_count(standstill, i, now_ns);
}

void wss_standstill_look_at_all(struct wss_standstill *standstill, uint64_t now_ns)
{
	for (size_t i = 0; i < standstill->n; i++)
		wss_standstill_look(standstill, now_ns);
	short_window_judge(standstill, now_ns);
}

void wss_standstill_answered(struct wss_standstill *standstill, uint64_t asked_ns,
			     uint64_t answered_ns)
{
	if (standstill->now == WSS_STANDSTILL_NONE || answered_ns - asked_ns < LATE_NS)
		return;
	standstill->lost_ns[standstill->now] += answered_ns - asked_ns;
	/* The looks count the rest. */
	standstill->look_ns = answered_ns;
}

static bool threads_live(const struct wss_standstill *standstill)
{
	struct wss_schedstat counters;

	for (size_t i = 0; i < standstill->n; i++)
		if (schedstat_read(&standstill->process->proc, standstill->threads[i].tid,
				   &counters) < 0)
			return false;
	return standstill->n;
}

/* Whether the argument is that of an option that may say where interrupts are emulated. */
static bool option_has_irqchip(const char *before)
{
	const char *name = before + strspn(before, "-");

	return *before == '-' &&
	       (!strcmp(name, "machine") || !strcmp(name, "M") || !strcmp(name, "accel"));
}

/*
 * Whether a vCPU that is idle sleeps in the kernel, as on x86 and ARM. Not where QEMU was told to emulate the interrupt
 * controller (kernel_irqchip=off), as nobody does but who debugs it.
 */
static bool process_idles_in_kvm(const struct wss_process *process, bool kvm)
{
#if defined(__x86_64__) || defined(__aarch64__)
	const bool known = true;
#else
	const bool known = false;
#endif
	wss_auto_free char *cmdline = NULL;
	const char *before = "";
	size_t len, at = 0;

	if (!kvm || !known ||
	    wss_root_read(&process->proc, "cmdline", WSS_CMDLINE_MAX, &cmdline, &len) < 0)
		return false;
	for (; at < len; at += strlen(cmdline + at) + 1) {
		if (option_has_irqchip(before) && strstr(cmdline + at, "irqchip=off"))
			return false;
		before = cmdline + at;
	}
	return true;
}

void wss_standstill_begin(struct wss_standstill *standstill, const struct wss_root *root,
			  const struct wss_process *process, bool kvm, uint64_t now_ns)
{
	if (standstill->process != process || !standstill->n)
		standstill->idles_in_kvm = process_idles_in_kvm(process, kvm);
	standstill->root = root;
	standstill->process = process;
	if (standstill->turns || !threads_live(standstill))
		threads_find(standstill, now_ns);
	threads_begin(standstill, now_ns);
	standstill->begin_ns = standstill->look_ns = now_ns;
	standstill->now = WSS_STANDSTILL_NONE;
	standstill->looks = 0;
	memset(standstill->lost_ns, 0, sizeof(standstill->lost_ns));
	wss_standstill_look(standstill, now_ns);
}

/*
 * The distances vary from three quarters to five quarters of the mean by the golden ratio, so that no regular
 * stopping and starting, such as cpulimit's, stays between them.
 */
uint64_t wss_standstill_next_ns(const struct wss_standstill *standstill, uint64_t window_ns)
{
	uint64_t step_ns =
		wss_u64_min(window_ns / WSS_STANDSTILL_LOOKS, WSS_STANDSTILL_STEP_MAX_NS);

	step_ns = wss_u64_max(step_ns, WSS_STANDSTILL_STEP_MIN_NS);
	return standstill->look_ns + step_ns * 3 / 4 +
	       step_ns / 2 * (standstill->looks * 618 % 1000) / 1000;
}

uint64_t wss_standstill_lost_ns(const struct wss_standstill *standstill,
				enum wss_standstill_cause *ret_cause)
{
	enum wss_standstill_cause most = WSS_STANDSTILL_NONE;
	uint64_t most_ns = 0;

	for (int cause = WSS_STANDSTILL_NONE + 1; cause < WSS_STANDSTILL_CAUSES; cause++) {
		if (standstill->lost_ns[cause] <= most_ns)
			continue;
		most_ns = standstill->lost_ns[cause];
		most = (enum wss_standstill_cause)cause;
	}
	*ret_cause = most;
	return most_ns;
}

enum wss_standstill_cause wss_standstill_now(const struct wss_root *root,
					     const struct wss_process *process)
{
	struct wss_standstill standstill = {.n = 0};

	wss_standstill_begin(&standstill, root, process, false, wss_clock_now_ns());
	return standstill.now;
}

const char *wss_standstill_text(enum wss_standstill_cause cause)
{
	static const char *const texts[WSS_STANDSTILL_CAUSES] = {
		[WSS_STANDSTILL_NONE] = "running",
		[WSS_STANDSTILL_SIGNAL] = "stopped by a signal",
		[WSS_STANDSTILL_TRACER] = "stopped by a tracer",
		[WSS_STANDSTILL_FREEZER] = "frozen by its cgroup",
		[WSS_STANDSTILL_LIMIT] = "throttled by a CPU limit",
		[WSS_STANDSTILL_STARVED] = "starved of CPU time by other processes",
		[WSS_STANDSTILL_BLOCKED] = "blocked on the host's memory or storage",
		[WSS_STANDSTILL_KEPT] = "paused, or kept waiting by QEMU",
		[WSS_STANDSTILL_PAUSE] = "paused",
		[WSS_STANDSTILL_SUSPEND] = "suspended with the host",
	};

	return texts[cause];
}
