/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the dry run, the controller and the restoring of balloons share.
 */
#ifndef WSS_CMD_BALLOON_H
#define WSS_CMD_BALLOON_H

#include "cmd/cmd.h"
#include "cmd/store-options.h"
#include "wss/balloon.h"

struct balloon_options {
	struct wss_store_options history;
	struct wss_sizing_rule rule;
	uint64_t span_ns;
	uint64_t period_ns; /* of the controller's windows */
	uint64_t window_ns;
	bool apply, restore;
};

/* One look at a guest: what is known of it, and what it may be left with. */
struct balloon_look {
	struct wss_balloon_facts facts;
	struct wss_balloon_limits limits; /* of these floor, headroom and period */
	struct wss_balloon_view view;
};

/* history: NULL where there is none. 0, or -1 where libvirt or the history cannot be asked. */
int wss_balloon_look(const struct balloon_options *options, struct wss_history *history,
		     const struct wss_round_guest *entry, struct balloon_look *ret_look,
		     struct wss_error *err);

/* balloon --apply, from a process that has no threads yet. The exit code. */
int wss_balloon_apply(const struct wss_cli *cli, const struct balloon_options *options);

/* balloon --restore: gives back what the journal says was taken. The exit code. */
int wss_balloon_restore(const struct wss_cli *cli, const struct balloon_options *options);

/*
 * Starts the watchdog: a process that runs "balloon --restore" when the caller dies without
 * having said that all is given back. Call before any thread is started. ret_fd is for
 * wss_balloon_all_is_well().
 */
int wss_balloon_watchdog(const struct wss_cli *cli, const struct balloon_options *options,
			 int *ret_fd, struct wss_error *err);

/* Lets the watchdog go, and closes fd. */
void wss_balloon_all_is_well(int fd);

#endif
