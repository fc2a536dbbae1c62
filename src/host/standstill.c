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
#include "host/procfile.h"

#define CGROUP_MAX_BYTES ((size_t)64 << 10)
/* Counters of a shorter time say nothing about a share: the scheduler's slices are too long. */
#define WAIT_MIN_NS (100 * WSS_NS_PER_MS)
/* An answer that takes as long as this was kept back by the stop that was seen before. */
#define LATE_NS (100 * WSS_NS_PER_MS)
/* A thread that gets less than this part of what it wants could not run. */
#define STARVED_PART 10

static int schedstat_read(const struct wss_root *proc, pid_t tid, uint64_t *ret_run_ns, uint64_t *ret_wait_ns)
{
	char path[64], line[96];
	int r;

	snprintf(path, sizeof(path), "task/%d/schedstat", tid);
	r = wss_root_read_line(proc, path, line, sizeof(line));
	if (r < 0)
		return r;
	return sscanf(line, "%" SCNu64 " %" SCNu64, ret_run_ns, ret_wait_ns) == 2 ? 0 : -1;
}

/* --- the threads --- */

struct candidate {
	pid_t tid;
	bool vcpu;
	uint64_t run_ns;
};

/* QEMU calls its threads so where it was told to name them, as libvirt does; others have vcpu in the name. */
static bool is_vcpu_name(const char *name)
{
	return !strncmp(name, "CPU ", 4) || !strncmp(name, "ALL CPUs", 8) || strcasestr(name, "vcpu");
}

/* vCPUs first, in a lasting order, then those that ran most, which are vCPUs where threads have no names. */
static int candidate_compare(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	if (x->vcpu != y->vcpu)
		return x->vcpu ? -1 : 1;
	if (x->vcpu)
		return x->tid < y->tid ? -1 : 1;
	return x->run_ns == y->run_ns ? 0 : x->run_ns > y->run_ns ? -1 : 1;
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
		uint64_t unused;

		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		if (n == size) {
			struct candidate *bigger = realloc(list, (size = size * 2 + 16) * sizeof(*list));

			if (!bigger)
				break;
			list = bigger;
		}
		list[n] = (struct candidate){ .tid = (pid_t)strtol(entry->d_name, NULL, 10) };
		snprintf(path, sizeof(path), "task/%.20s/comm", entry->d_name);
		if (wss_root_read_line(proc, path, name, sizeof(name)) < 0)
			continue;
		list[n].vcpu = is_vcpu_name(name);
		schedstat_read(proc, list[n].tid, &list[n].run_ns, &unused);
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
	for (size_t i = 0; i < standstill->n; i++)
		standstill->threads[i].tid = list[(first + i) % n].tid;
}

/* --- its cgroups --- */

/*
 * Finds the path of a cgroup in the text of a thread's "cgroup" file: of version 2 (controller ""), or of the
 * hierarchy of version 1 that has the controller. ret_path is below the root of the host; "" if there is none.
 */
static void cgroup_path(const struct wss_root *root, const char *text, const char *controller,
			char ret_path[PATH_MAX])
{
	size_t len = strlen(controller);

	ret_path[0] = '\0';
	for (const char *line = text; line && *line; line = strchrnul(line, '\n'), line += *line == '\n') {
		const char *list = strchr(line, ':'), *path = list ? strchr(++list, ':') : NULL;
		bool found = path && !len && path == list;

		if (!path)
			return;
		for (const char *word = list; len && word < path; word += strcspn(word, ",:") + 1)
			found = found || (strcspn(word, ",:") == len && !strncmp(word, controller, len));
		if (!found)
			continue;
		path++;
		for (int unified = 0; unified < 2 && !ret_path[0]; unified++) {
			wss_auto_close int fd = -1;

			snprintf(ret_path, PATH_MAX, "sys/fs/cgroup%s%.*s%.*s",
				 len ? "/" : unified ? "/unified" : "", len ? (int)(path - 1 - list) : 0, list,
				 (int)strcspn(path, "\n"), path);
			fd = wss_root_openat(root, ret_path, O_PATH | O_DIRECTORY);
			if (fd < 0)
				ret_path[0] = '\0';
		}
		return;
	}
}

/* Whether a file of the cgroup has this line, or a number other than 0 after this word. */
static bool cgroup_says(const struct wss_root *root, const char *directory, const char *name, const char *word)
{
	wss_auto_free char *text = NULL;
	char path[PATH_MAX];
	const char *at;
	size_t len;

	if (snprintf(path, sizeof(path), "%s/%s", directory, name) >= (int)sizeof(path) ||
	    wss_root_read(root, path, CGROUP_MAX_BYTES, &text, &len) < 0)
		return false;
	at = strstr(text, word);
	return at && (at == text || at[-1] == '\n') && at[strlen(word)] != '0';
}

static bool thread_is_frozen(const struct wss_root *root, const char *cgroups)
{
	char path[PATH_MAX];

	cgroup_path(root, cgroups, "", path);
	if (path[0] && cgroup_says(root, path, "cgroup.events", "frozen "))
		return true;
	cgroup_path(root, cgroups, "freezer", path);
	return path[0] && cgroup_says(root, path, "freezer.state", "FROZEN");
}

/* Whether a CPU limit of the cgroup, or of one above it, has ever taken effect. */
static bool thread_is_limited(const struct wss_root *root, const char *cgroups)
{
	static const char *const controllers[] = { "", "cpu" };
	char path[PATH_MAX];

	for (size_t i = 0; i < 2; i++) {
		cgroup_path(root, cgroups, controllers[i], path);
		while (strlen(path) > strlen("sys/fs/cgroup")) {
			if (cgroup_says(root, path, "cpu.stat", "nr_throttled "))
				return true;
			*strrchr(path, '/') = '\0';
		}
	}
	return false;
}

/* --- looks --- */

static char *thread_cgroups(const struct wss_process *process, pid_t tid)
{
	char path[64], *text = NULL;
	size_t len;

	snprintf(path, sizeof(path), "task/%d/cgroup", tid);
	return wss_root_read(&process->proc, path, CGROUP_MAX_BYTES, &text, &len) < 0 ? NULL : text;
}

static enum wss_standstill_cause thread_look(const struct wss_root *root, const struct wss_process *process,
					     pid_t tid, char *ret_state)
{
	wss_auto_free char *cgroups = NULL;
	char path[64];

	snprintf(path, sizeof(path), "task/%d/stat", tid);
	if (wss_procfile_read_state(&process->proc, path, ret_state) < 0)
		*ret_state = '?';
	if (*ret_state == 'T')
		return WSS_STANDSTILL_SIGNAL;
	if (*ret_state == 't')
		return WSS_STANDSTILL_TRACER;
	if (*ret_state != 'S' && *ret_state != 'D')
		return WSS_STANDSTILL_NONE;
	cgroups = thread_cgroups(process, tid);
	return cgroups && thread_is_frozen(root, cgroups) ? WSS_STANDSTILL_FREEZER : WSS_STANDSTILL_NONE;
}

/*
 * Counts the time that a thread waited in vain since it was last looked at. While it waits, the kernel does
 * not count the wait yet.
 */
static void thread_count(struct wss_standstill *standstill, size_t i, char state, uint64_t now_ns)
{
	uint64_t since_ns = now_ns - standstill->threads[i].look_ns, run_ns, wait_ns, ran_ns, waited_ns;
	wss_auto_free char *cgroups = NULL;

	if (since_ns < WAIT_MIN_NS ||
	    schedstat_read(&standstill->process->proc, standstill->threads[i].tid, &run_ns, &wait_ns) < 0)
		return;
	ran_ns = run_ns - standstill->threads[i].run_ns;
	waited_ns = wait_ns - standstill->threads[i].wait_ns;
	if (state == 'R' && !ran_ns && !waited_ns)
		waited_ns = since_ns;
	waited_ns = wss_u64_min(waited_ns, since_ns);
	standstill->threads[i].look_ns = now_ns;
	standstill->threads[i].run_ns = run_ns;
	standstill->threads[i].wait_ns = wait_ns;
	if (waited_ns < WAIT_MIN_NS / 2 || ran_ns > (ran_ns + waited_ns) / STARVED_PART ||
	    standstill->now != WSS_STANDSTILL_NONE)
		return;
	cgroups = thread_cgroups(standstill->process, standstill->threads[i].tid);
	if (cgroups && thread_is_limited(standstill->root, cgroups))
		standstill->lost_ns[WSS_STANDSTILL_LIMIT] += waited_ns / standstill->n;
}

void wss_standstill_look(struct wss_standstill *standstill, uint64_t now_ns)
{
	uint64_t half_ns = (now_ns - standstill->look_ns) / 2;
	enum wss_standstill_cause cause;
	size_t i = standstill->next;
	char state;

	if (!standstill->n)
		return;
	standstill->next = (i + 1) % standstill->n;
	cause = thread_look(standstill->root, standstill->process, standstill->threads[i].tid, &state);
	standstill->lost_ns[standstill->now] += half_ns;
	standstill->lost_ns[cause] += half_ns;
	standstill->now = cause;
	standstill->look_ns = now_ns;
	standstill->looks++;
	thread_count(standstill, i, state, now_ns);
}

void wss_standstill_look_at_all(struct wss_standstill *standstill, uint64_t now_ns)
{
	for (size_t i = 0; i < standstill->n; i++)
		wss_standstill_look(standstill, now_ns);
}

void wss_standstill_answered(struct wss_standstill *standstill, uint64_t asked_ns, uint64_t answered_ns)
{
	if (standstill->now == WSS_STANDSTILL_NONE || answered_ns - asked_ns < LATE_NS)
		return;
	standstill->lost_ns[standstill->now] += answered_ns - asked_ns;
	/* The looks count the rest. */
	standstill->look_ns = answered_ns;
}

static bool threads_live(const struct wss_standstill *standstill)
{
	uint64_t run_ns, wait_ns;

	for (size_t i = 0; i < standstill->n; i++)
		if (schedstat_read(&standstill->process->proc, standstill->threads[i].tid, &run_ns, &wait_ns) < 0)
			return false;
	return standstill->n;
}

void wss_standstill_begin(struct wss_standstill *standstill, const struct wss_root *root,
			  const struct wss_process *process, uint64_t now_ns)
{
	standstill->root = root;
	standstill->process = process;
	if (standstill->turns || !threads_live(standstill))
		threads_find(standstill, now_ns);
	for (size_t i = 0; i < standstill->n; i++) {
		standstill->threads[i].look_ns = now_ns;
		schedstat_read(&process->proc, standstill->threads[i].tid, &standstill->threads[i].run_ns,
			       &standstill->threads[i].wait_ns);
	}
	standstill->look_ns = now_ns;
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
	uint64_t step_ns = wss_u64_min(window_ns / WSS_STANDSTILL_LOOKS, WSS_STANDSTILL_STEP_MAX_NS);

	step_ns = wss_u64_max(step_ns, WSS_STANDSTILL_STEP_MIN_NS);
	return standstill->look_ns + step_ns * 3 / 4 + step_ns / 2 * (standstill->looks * 618 % 1000) / 1000;
}

uint64_t wss_standstill_lost_ns(const struct wss_standstill *standstill, enum wss_standstill_cause *ret_cause)
{
	enum wss_standstill_cause most = WSS_STANDSTILL_NONE;
	uint64_t sum_ns = 0, most_ns = 0;

	for (int cause = WSS_STANDSTILL_NONE + 1; cause < WSS_STANDSTILL_CAUSES; cause++) {
		sum_ns += standstill->lost_ns[cause];
		if (standstill->lost_ns[cause] <= most_ns)
			continue;
		most_ns = standstill->lost_ns[cause];
		most = (enum wss_standstill_cause)cause;
	}
	*ret_cause = most;
	return sum_ns;
}

enum wss_standstill_cause wss_standstill_now(const struct wss_root *root, const struct wss_process *process)
{
	struct wss_standstill standstill = { .n = 0 };

	wss_standstill_begin(&standstill, root, process, wss_clock_now_ns());
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
		[WSS_STANDSTILL_PAUSE] = "paused",
		[WSS_STANDSTILL_SUSPEND] = "suspended with the host",
	};

	return texts[cause];
}
