/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "serve/resource-limits.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/log.h"
#include "base/number.h"
#include "base/units.h"
#include "host/vmm-cgroup.h"

/* Of the service itself: HTTP, history, files, and the connections that list guests and publish profiles. */
#define OWN_FILES 128
#define OWN_TASKS 32
#define OWN_BYTES (384ULL << 20)

#define FILES_WANTED (OWN_FILES + WSS_WATCH_VISITS_MAX * WSS_WATCH_VISIT_FILES)
#define TASKS_WANTED (OWN_TASKS + WSS_WATCH_VISITS_MAX * WSS_WATCH_VISIT_TASKS)

static uint64_t files_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return FILES_WANTED;
	if (limit.rlim_cur < FILES_WANTED && limit.rlim_cur < limit.rlim_max) {
		struct rlimit more = {limit.rlim_max < FILES_WANTED ? limit.rlim_max : FILES_WANTED,
				      limit.rlim_max};

		if (setrlimit(RLIMIT_NOFILE, &more) == 0)
			limit = more;
	}
	return limit.rlim_cur;
}

/* A limit of the service's cgroup; with version 1, or without a limit, UINT64_MAX. */
static uint64_t cgroup_limit(const char *name)
{
	struct wss_root root = {.dirfd = -1}, self = {.dirfd = -1};
	char path[PATH_MAX], file[PATH_MAX + 16];
	uint64_t limit = UINT64_MAX;
	bool own;

	if (wss_root_open(wss_test_sysroot(), &root, NULL) == 0)
		self.dirfd = wss_root_openat(&root, "proc/self", O_RDONLY | O_DIRECTORY);
	if (self.dirfd >= 0 && wss_vmm_cgroup_find(&self, path, &own)) {
		snprintf(file, sizeof(file), "%s/%s", path, name);
		/* "max" is no number. */
		wss_root_read_u64(&root, file, &limit);
	}
	wss_root_close(&self);
	wss_root_close(&root);
	return limit;
}

static uint64_t tasks_limit(void)
{
	uint64_t tasks = cgroup_limit("pids.max");
	struct rlimit limit;

	/* Root is exempt from this one. */
	if (geteuid() != 0 && getrlimit(RLIMIT_NPROC, &limit) == 0 && limit.rlim_cur < tasks)
		tasks = limit.rlim_cur;
	return tasks;
}

static unsigned visits_of(uint64_t limit, unsigned own, unsigned each)
{
	uint64_t visits = limit > own ? (limit - own) / each : 0;

	return visits < 1		       ? 1
	       : visits < WSS_WATCH_VISITS_MAX ? (unsigned)visits
					       : WSS_WATCH_VISITS_MAX;
}

/* Killed by the kernel, the service would measure nothing. */
static void check_memory(const struct wss_watch_options *options)
{
	uint64_t limit = cgroup_limit("memory.max"),
		 wanted = wss_u64_add(options->ages_bytes, OWN_BYTES);
	char has[24], wants[24];

	if (limit >= wanted)
		return;
	wss_size_format(limit, has, sizeof(has));
	wss_size_format(wanted, wants, sizeof(wants));
	wss_log(WSS_LOG_WARNING,
		"the limit of memory (MemoryMax) is %s: with this ages-memory, raise it to %s", has,
		wants);
}

void wss_limits_apply(struct wss_watch_options *options)
{
	uint64_t files = files_limit(), tasks = tasks_limit();
	unsigned by_files = visits_of(files, OWN_FILES, WSS_WATCH_VISIT_FILES);
	unsigned by_tasks = visits_of(tasks, OWN_TASKS, WSS_WATCH_VISIT_TASKS);
	bool files_bind = by_files <= by_tasks;

	check_memory(options);
	options->visits_max = files_bind ? by_files : by_tasks;
	if (options->visits_max < WSS_WATCH_VISITS_MAX)
		wss_log(WSS_LOG_WARNING,
			"at most %u guest%s measured at a time, not %u: the limit of %s is %llu; raise it to %u",
			options->visits_max, options->visits_max == 1 ? " is" : "s are",
			WSS_WATCH_VISITS_MAX,
			files_bind ? "open files (LimitNOFILE)" : "tasks (TasksMax)",
			(unsigned long long)(files_bind ? files : tasks),
			files_bind ? FILES_WANTED : TASKS_WANTED);
}
