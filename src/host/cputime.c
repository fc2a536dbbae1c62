/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "host/cputime.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "host/procfile.h"

int wss_cputime_read(const struct wss_process *process, struct wss_cputime *ret_cputime,
		     struct wss_error *err)
{
	struct wss_procfile_stat line;
	struct dirent *entry;
	DIR *dir;
	int r = wss_procfile_read_stat(&process->proc, "stat", &line);

	if (r < 0)
		return wss_process_error(process, r, "stat", err);
	ret_cputime->read_ns = wss_clock_now_ns();
	ret_cputime->ticks = line.cpu_ticks;
	ret_cputime->n = 0;
	r = wss_root_opendir(&process->proc, "task", &dir);
	if (r < 0)
		return wss_process_error(process, r, "task", err);
	while ((entry = readdir(dir)) && ret_cputime->n < WSS_CPUTIME_THREADS_MAX) {
		char path[sizeof("task//stat") + sizeof(entry->d_name)];

		snprintf(path, sizeof(path), "task/%s/stat", entry->d_name);
		/* A thread may end meanwhile. */
		if (!isdigit((unsigned char)entry->d_name[0]) ||
		    wss_procfile_read_stat(&process->proc, path, &line) < 0)
			continue;
		ret_cputime->threads[ret_cputime->n].tid = (pid_t)strtol(entry->d_name, NULL, 10);
		ret_cputime->threads[ret_cputime->n++].ticks = line.cpu_ticks;
	}
	closedir(dir);
	return 0;
}

/* A thread that was not there before began with 0. */
static uint64_t thread_ticks(const struct wss_cputime *cputime, pid_t tid)
{
	for (size_t i = 0; i < cputime->n; i++)
		if (cputime->threads[i].tid == tid)
			return cputime->threads[i].ticks;
	return 0;
}

static double share(uint64_t before, uint64_t after, double all)
{
	double part = after > before ? (double)(after - before) / all : 0;

	return part < 1 ? part : 1;
}

struct wss_cputime_shares wss_cputime_compare(const struct wss_cputime *before,
					      const struct wss_cputime *after, unsigned vcpus)
{
	struct wss_cputime_shares shares = {0, 0};
	double all;

	if (after->read_ns <= before->read_ns)
		return shares;
	all = (double)(after->read_ns - before->read_ns) / (double)WSS_NS_PER_S *
	      (double)sysconf(_SC_CLK_TCK);
	shares.mean = share(before->ticks, after->ticks, all * vcpus);
	for (size_t i = 0; i < after->n; i++) {
		double one = share(thread_ticks(before, after->threads[i].tid),
				   after->threads[i].ticks, all);

		shares.busiest = one > shares.busiest ? one : shares.busiest;
	}
	return shares;
}
