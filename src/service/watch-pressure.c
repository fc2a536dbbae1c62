/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Whether memory pressure of the host holds the watch. */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/fault.h"
#include "host/pressure.h"
#include "service/watch-private.h"

#define LOOK_NS WSS_NS_PER_S
/* A hold ends at this part of the limit, so that it does not come and go. */
#define RELEASE_PART 0.5

struct wss_pressure_hold {
	struct wss_root root;
	double limit_percent;
	uint64_t next_ns;
	bool holds;
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
	    wss_pressure_read(&hold->root, &unused, err) < 0) {
		wss_pressure_hold_free(hold);
		return -1;
	}
	*ret_hold = hold;
	return 0;
}

/* A pressure that cannot be read for once leaves everything as it is. */
bool wss_pressure_hold_step(struct wss_pressure_hold *hold)
{
	uint64_t now_ns = wss_clock_now_ns();
	double percent;
	bool held;

	if (!hold || now_ns < hold->next_ns)
		return false;
	hold->next_ns = now_ns + LOOK_NS;
	if (wss_pressure_read(&hold->root, &percent, NULL) < 0)
		return false;
	held = hold->holds;
	hold->holds = percent > hold->limit_percent * (held ? RELEASE_PART : 1);
	if (hold->holds)
		snprintf(hold->reason, sizeof(hold->reason),
			 "tasks of the host wait for memory %.4g%% of the time, more than %.4g%%",
			 percent, hold->limit_percent * (held ? RELEASE_PART : 1));
	return hold->holds != held;
}

const char *wss_pressure_hold_reason(const struct wss_pressure_hold *hold)
{
	return hold && hold->holds ? hold->reason : NULL;
}

void wss_pressure_hold_free(struct wss_pressure_hold *hold)
{
	if (!hold)
		return;
	wss_root_close(&hold->root);
	free(hold);
}
