/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "host/stopped.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/number.h"
#include "host/cgroup.h"
#include "host/procfile.h"

#define LOOK_NS (50 * WSS_NS_PER_MS)

static const char by_signal[] = "stopped by a signal (SIGSTOP)";

/* What has stopped its main thread; NULL: nothing. */
static const char *stopped_by(const struct wss_root *root, const struct wss_process *process)
{
	wss_auto_free char *cgroups = NULL;
	char state;
	size_t len;

	if (wss_procfile_read_state(&process->proc, "stat", &state) < 0)
		return NULL;
	if (state == 'T')
		return by_signal;
	if (state == 't')
		return "stopped by a debugger or another tracer";
	if ((state != 'S' && state != 'D') ||
	    wss_root_read(&process->proc, "cgroup", WSS_CGROUP_MAX_BYTES, &cgroups, &len) < 0)
		return NULL;
	return wss_cgroup_is_frozen(root, cgroups) ? "frozen by its cgroup" : NULL;
}

int wss_stopped_check(const struct wss_root *root, const struct wss_process *process,
		      const struct wss_deadline *deadline, struct wss_error *err)
{
	const struct wss_cancel *cancel = wss_deadline_cancel(deadline);
	const char *by = stopped_by(root, process);
	uint64_t until_ns;

	if (!by)
		return 0;
	until_ns = wss_clock_now_ns() + WSS_STOPPED_NS;
	if (deadline)
		until_ns = wss_u64_min(until_ns, wss_deadline_at_ns(deadline));
	while (by && wss_clock_now_ns() < until_ns) {
		if (wss_cancel_sleep_until_ns(cancel, wss_clock_now_ns() + LOOK_NS) < 0)
			return wss_error_set(err, WSS_ERR_INTERRUPTED, "interrupted");
		by = stopped_by(root, process);
	}
	if (by == by_signal)
		return wss_error_set(err, WSS_ERR_STOPPED,
				     "its QEMU process is %s: kill -CONT %d resumes it", by,
				     process->pid);
	return by ? wss_error_set(err, WSS_ERR_STOPPED, "its QEMU process, %d, is %s", process->pid,
				  by)
		  : 0;
}
