/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Whether memory pressure holds the watch, or one of its guests. */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/text.h"
#include "base/units.h"
#include "host/pressure.h"
#include "host/vmm-cgroup.h"
#include "watch/watch-private.h"

#define LOOK_NS WSS_NS_PER_S
/* At most one hold in so long is logged when it begins. */
#define TELL_NS (60 * WSS_NS_PER_S)
#define CGROUPS "sys/fs/cgroup/"
/* Where libvirt and systemd put guests; taken until a guest's own place is known. */
#define GUESTS_CGROUP CGROUPS "machine.slice"

struct wss_pressure_hold {
	struct wss_root root;
	double limit_percent;
	uint64_t next_ns;
	uint64_t since_ns;  /* 0: it does not hold */
	uint64_t before_ns; /* in all holds before */
	uint64_t tell_ns;   /* the next beginning that is logged */
	bool told;	    /* that it holds */
	bool told_unreported;
	char reason[WSS_WATCH_REASON_MAX];
};

int wss_pressure_hold_new(double limit_share, struct wss_pressure_hold **ret_hold,
			  struct wss_error *err)
{
	struct wss_pressure_hold *hold = calloc(1, sizeof(*hold));
	double unused;

	if (!hold)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	hold->root.dirfd = -1;
	hold->limit_percent = 100 * limit_share;
	if (wss_root_open(wss_test_sysroot(), &hold->root, err) < 0 ||
	    wss_pressure_read(&hold->root, NULL, WSS_PSI_FULL, &unused, err) < 0) {
		wss_pressure_hold_free(hold);
		return -1;
	}
	*ret_hold = hold;
	return 0;
}

/* --- where the guests are --- */

/* Shortens path to the directory that has both, or is both. */
static void path_join(char *path, const char *other)
{
	size_t same = 0, end = 0;

	while (path[same] && path[same] == other[same]) {
		same++;
		if ((!path[same] || path[same] == '/') && (!other[same] || other[same] == '/'))
			end = same;
	}
	path[end] = '\0';
}

/*
 * Finds the directory of the cgroup that has all guests, as far as their places are known: that around a cgroup that
 * is a guest's own. False: only the root has them all.
 */
static bool guests_cgroup(const struct wss_watch *watch, char ret_path[PATH_MAX])
{
	bool known = false;

	for (size_t i = 0; i < watch->n; i++) {
		const struct wss_guest_cgroup *cgroup = &watch->guests[i]->cgroup;
		char path[PATH_MAX];

		if (!cgroup->path)
			continue;
		snprintf(path, sizeof(path), "%s", cgroup->path);
		if (cgroup->own)
			*strrchr(path, '/') = '\0';
		if (known)
			path_join(ret_path, path);
		else
			strcpy(ret_path, path);
		known = true;
	}
	if (!known)
		strcpy(ret_path, GUESTS_CGROUP);
	return strlen(ret_path) > strlen(CGROUPS);
}

/* That the kernel reports the pressure of all guests together, but not of each, is said once. */
static void hold_tell_unreported(struct wss_pressure_hold *hold, const struct wss_watch *watch)
{
	for (size_t i = 0; i < watch->n && !hold->told_unreported; i++) {
		const struct wss_watch_guest *guest = watch->guests[i];

		if (!guest->cgroup.looked || guest->cgroup.reported)
			continue;
		hold->told_unreported = true;
		wss_log(WSS_LOG_INFO,
			"memory pressure of single guests is not known, and pauses none of them: %s has no cgroup (version 2) of its own in which the kernel reports it",
			guest->watched.name);
	}
}

/* --- the hold --- */

static bool hold_read(const struct wss_pressure_hold *hold, const struct wss_watch *watch,
		      double *ret_percent, char ret_who[WSS_WATCH_REASON_MAX / 2])
{
	char path[PATH_MAX];

	if (guests_cgroup(watch, path) &&
	    wss_pressure_read(&hold->root, path, WSS_PSI_FULL, ret_percent, NULL) == 0) {
		wss_text_fit(path + strlen(CGROUPS), ret_who, WSS_WATCH_REASON_MAX / 2);
		return true;
	}
	strcpy(ret_who, "the host");
	return wss_pressure_read(&hold->root, NULL, WSS_PSI_FULL, ret_percent, NULL) == 0;
}

static void hold_tell(struct wss_pressure_hold *hold, uint64_t now_ns)
{
	if (hold->told || now_ns < hold->tell_ns)
		return;
	hold->told = true;
	hold->tell_ns = now_ns + TELL_NS;
	wss_log(WSS_LOG_INFO, "not measuring: %s", hold->reason);
}

static void hold_end(struct wss_pressure_hold *hold, uint64_t now_ns)
{
	uint64_t held_ns = now_ns - hold->since_ns;
	char text[16];

	hold->before_ns += held_ns;
	hold->since_ns = 0;
	wss_duration_format(held_ns, text, sizeof(text));
	if (hold->told)
		wss_log(WSS_LOG_INFO, "measuring again: memory pressure has fallen after %s", text);
	hold->told = false;
}

/* A pressure that cannot be read for once leaves everything as it is. */
bool wss_pressure_hold_step(struct wss_pressure_hold *hold, const struct wss_watch *watch)
{
	uint64_t now_ns = wss_clock_now_ns();
	char who[WSS_WATCH_REASON_MAX / 2];
	double percent, limit;
	bool begins;

	if (!hold || now_ns < hold->next_ns)
		return false;
	hold->next_ns = now_ns + LOOK_NS;
	hold_tell_unreported(hold, watch);
	if (!hold_read(hold, watch, &percent, who))
		return false;
	limit = hold->limit_percent * (hold->since_ns ? WSS_WATCH_RELEASE_PART : 1);
	if (percent <= limit) {
		if (hold->since_ns)
			hold_end(hold, now_ns);
		return false;
	}
	begins = !hold->since_ns;
	if (begins)
		hold->since_ns = now_ns;
	snprintf(hold->reason, sizeof(hold->reason),
		 "all tasks of %s wait for memory %.4g%% of the time, more than %.4g%%", who,
		 percent, limit);
	hold_tell(hold, now_ns);
	return begins;
}

const char *wss_pressure_hold_reason(const struct wss_pressure_hold *hold)
{
	return hold && hold->since_ns ? hold->reason : NULL;
}

uint64_t wss_pressure_hold_ns(const struct wss_pressure_hold *hold, uint64_t *ret_now_ns)
{
	uint64_t now_ns = hold && hold->since_ns ? wss_clock_now_ns() - hold->since_ns : 0;

	if (ret_now_ns)
		*ret_now_ns = now_ns;
	return now_ns + (hold ? hold->before_ns : 0);
}

void wss_pressure_hold_free(struct wss_pressure_hold *hold)
{
	if (!hold)
		return;
	wss_root_close(&hold->root);
	free(hold);
}

/* --- a guest's own --- */

/* Reads the pressure of the visit's cgroup, which it finds. */
static bool visit_read_pressure(struct wss_visit *visit, double *ret_percent)
{
	struct wss_guest_cgroup *cgroup = &visit->cgroup;
	struct wss_root root = {.dirfd = -1}, proc = {.dirfd = -1};
	char path[PATH_MAX];

	free(cgroup->path);
	*cgroup = (struct wss_guest_cgroup){.looked = true};
	snprintf(path, sizeof(path), "proc/%d", visit->found.pid);
	if (wss_root_open(wss_test_sysroot(), &root, NULL) == 0)
		proc.dirfd = wss_root_openat(&root, path, O_RDONLY | O_DIRECTORY);
	if (proc.dirfd >= 0 && wss_vmm_cgroup_find(&proc, path, &cgroup->own)) {
		cgroup->path = strdup(path);
		cgroup->reported = cgroup->own && wss_pressure_read(&root, path, WSS_PSI_FULL,
								    ret_percent, NULL) == 0;
	}
	wss_root_close(&proc);
	wss_root_close(&root);
	return cgroup->reported;
}

bool wss_visit_is_pressed(struct wss_visit *visit, struct wss_error *err)
{
	double percent, limit = 100 * visit->options.pressure_share *
				(visit->pressed ? WSS_WATCH_RELEASE_PART : 1);
	bool known = visit_read_pressure(visit, &percent);

	visit->pressed = limit > 0 && known && percent > limit;
	if (visit->pressed)
		wss_error_set(err, WSS_ERR_BUSY,
			      "all its tasks wait for memory %.4g%% of the time, more than %.4g%%",
			      percent, limit);
	return visit->pressed;
}
