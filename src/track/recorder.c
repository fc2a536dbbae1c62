/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Theory of operation
 *
 * KVM takes a fault when a guest first touches a page that an invalidation has dropped from the
 * second-level page table. A BPF program on the tracepoint of these faults (recorder.bpf.c) sets the
 * page's bit in a bitmap, another if the fault was for a write, and counts each page's first touch
 * in a histogram over time. Bitmaps and counters are in memory that it shares with us: reading them
 * takes no system call and does not slow the guest down, and no event can be lost in a queue.
 *
 *	wss_recorder_open()	  loaded, for one process and the RAM layout of one guest
 *	wss_recorder_start()	  all zero, attached: before the invalidation, as a page that comes
 *				  back between the two would be missing for the whole window
 *	(the invalidation)	  pages that come back now fall into the histogram's first bucket,
 *				  because the origin is still 0
 *	wss_recorder_set_origin() times count from here; touches until now stay in that bucket,
 *				  so the curve begins at settled_ns and not before
 *	wss_recorder_read()	  any number of times; the bitmaps still change
 *	wss_recorder_stop()	  detached: what was recorded stays until the next start
 *
 * A fault between attaching and the invalidation counts as well, although its page is dropped again
 * at once: the guest touched that page right before the window.
 *
 * The program only observes, so there is nothing to restore in the guest. A descriptor attaches it,
 * so the kernel detaches and unloads it when this process ends, however that happens. The ranges of
 * the guest's RAM are constants of the loaded program: wss_recorder_fits() returns whether they are
 * still right, and after memory has been plugged the guest needs another recorder.
 */
#include "track/recorder.h"

#include <assert.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "track/recorder-backend.h"

#define PAGE 4096ULL
/* Inode of the first pid namespace (include/linux/proc_ns.h, PROC_PID_INIT_INO). */
#define FIRST_PID_NAMESPACE 0xEFFFFFFCU

static_assert(WSS_RECORDER_RANGES == WSS_GPA_RANGES_MAX, "a layout must fit the program");

struct wss_recorder {
	struct wss_recorder_backend *backend;
	struct wss_recorder_plan plan;
	struct wss_recorder_state state;
	uint64_t settled_ns; /* time from the origin to the call that set it */
};

const char *wss_recorder_version(void)
{
	return wss_recorder_backend_ops.version();
}

/*
 * Checks that our pid namespace is the first one, because the program sees the pids of that
 * one only.
 */
static int check_pid_namespace(const struct wss_root *root, struct wss_error *err)
{
	wss_auto_close int fd = wss_root_openat(root, "proc/self/ns/pid", O_RDONLY);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || st.st_ino == FIRST_PID_NAMESPACE)
		return 0;
	return wss_error_set(err, WSS_ERR_UNSUPPORTED,
			     "virt-wss runs in a pid namespace, where it does not know the "
			     "pid that the kernel records");
}

static int make_plan(const struct wss_host *host, const struct wss_guest *guest,
		     struct wss_recorder_plan *plan, struct wss_error *err)
{
	*plan = (struct wss_recorder_plan){ .tgid = 0 };
	if (wss_recorder_backend_ops.probe(err) < 0 ||
	    check_pid_namespace(&host->root, err) < 0 ||
	    wss_fault_event_read(&host->root, &plan->event, err) < 0)
		return -1;
	if (!guest)
		return 0;
	plan->tgid = guest->process.pid;
	return wss_gpa_layout(&guest->config, &plan->layout, err);
}

int wss_recorder_probe(const struct wss_host *host, const struct wss_guest *guest,
		       struct wss_error *err)
{
	struct wss_recorder_plan unused;

	return make_plan(host, guest, &unused, err);
}

int wss_recorder_open(const struct wss_host *host, const struct wss_guest *guest,
		      struct wss_recorder **ret_recorder, struct wss_error *err)
{
	wss_auto_free struct wss_recorder *recorder = calloc(1, sizeof(*recorder));

	if (!recorder)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	if (make_plan(host, guest, &recorder->plan, err) < 0 ||
	    wss_recorder_backend_ops.open(&recorder->plan, &recorder->backend,
					  &recorder->state, err) < 0)
		return -1;
	*ret_recorder = wss_steal_ptr(recorder);
	return 0;
}

bool wss_recorder_fits(const struct wss_recorder *recorder, const struct wss_guest *guest)
{
	const struct wss_gpa_layout *old = &recorder->plan.layout;
	struct wss_gpa_layout now;

	return wss_gpa_layout(&guest->config, &now, NULL) == 0 && now.n_ranges == old->n_ranges &&
	       !memcmp(now.ranges, old->ranges, now.n_ranges * sizeof(now.ranges[0]));
}

int wss_recorder_start(struct wss_recorder *recorder, struct wss_error *err)
{
	wss_recorder_backend_ops.stop(recorder->backend);
	recorder->settled_ns = 0;
	return wss_recorder_backend_ops.start(recorder->backend, err);
}

void wss_recorder_set_origin(struct wss_recorder *recorder, uint64_t origin_ns)
{
	uint64_t now_ns;

	*recorder->state.origin_ns = origin_ns;
	now_ns = wss_clock_now_ns();
	recorder->settled_ns = now_ns > origin_ns ? now_ns - origin_ns : 0;
}

void wss_recorder_read(const struct wss_recorder *recorder,
		       struct wss_recorder_counts *ret_counts)
{
	const struct wss_recorder_state *state = &recorder->state;
	struct wss_recorder_counts counts = {
		.written_pages = *state->written_pages,
		.ram_faults = *state->ram_faults,
		.outside_faults = *state->outside_faults,
		.missed_events = wss_recorder_backend_ops.missed(recorder->backend),
	};

	for (size_t i = 0; i < WSS_TOUCH_BUCKETS; i++)
		counts.touched_pages += state->first_touches[i];
	*ret_counts = counts;
}

size_t wss_recorder_curve(const struct wss_recorder *recorder, uint64_t until_ns,
			  struct wss_curve_point *ret_points, size_t n)
{
	uint64_t pages = 0;
	size_t found = 0;

	for (uint32_t i = 0; i < WSS_TOUCH_BUCKETS - 1 && found < n; i++) {
		uint64_t ns = wss_touch_bound(i);

		if (ns > until_ns)
			break;
		pages += recorder->state.first_touches[i];
		/*
		 * Touches before the origin was known may have happened at any time until
		 * then.
		 */
		if (ns >= recorder->settled_ns)
			ret_points[found++] = (struct wss_curve_point){ .ns = ns, .bytes = pages * PAGE };
	}
	return found;
}

struct wss_pages wss_recorder_touched(const struct wss_recorder *recorder)
{
	return wss_pages_of_bits(recorder->state.touched, recorder->state.words);
}

struct wss_pages wss_recorder_written(const struct wss_recorder *recorder)
{
	return wss_pages_of_bits(recorder->state.written, recorder->state.words);
}

void wss_recorder_stop(struct wss_recorder *recorder)
{
	wss_recorder_backend_ops.stop(recorder->backend);
}

void wss_recorder_close(struct wss_recorder *recorder)
{
	if (!recorder)
		return;
	wss_recorder_backend_ops.close(recorder->backend);
	free(recorder);
}
