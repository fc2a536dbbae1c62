/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the dry run, the controller and the restoring of balloons share.
 */
#ifndef WSS_CONTROL_LOOK_H
#define WSS_CONTROL_LOOK_H

#include "cmd/cmd.h"
#include "cmd/sizing-options.h"
#include "wss/balloon.h"

struct balloon_options {
	struct wss_sizing_options sizing;
	uint64_t period_ns; /* of the controller's windows */
	uint64_t window_ns;
	uint64_t pause_ns; /* after a step */
	uint64_t max_stall_ns; /* that a window may cost */
	bool apply, restore;
};

/* What the history knows of a guest. */
struct balloon_record {
	enum wss_confidence confidence;
	uint64_t minimum_bytes, headroom_percent; /* policy */
	uint64_t needed_bytes; /* 0 where too little is known */
	uint64_t period_s; /* between two rounds */
	/* Of the newest window, */
	struct wss_amount wss_bytes, rss_bytes, qemu_bytes;
	int64_t time_s; /* when that was: in seconds of wss_clock_now_ns(), perhaps before its 0 */
};

/* A guest's reports of its memory, from look to look: all 0 before the first. */
struct balloon_reports {
	uint64_t update_s; /* the newest, by the time of day, which may have been set since */
	/* Of wss_clock_now_ns(): */
	int64_t said_s;	  /* when that was */
	int64_t heard_s;  /* likewise, or when the guest was last seen not to run, so that it could not */
	int64_t looked_s; /* the look before */
	int64_t asked_s;  /* for what its disks have read */
};

/* One look at a guest: what is known of it, and what it may be left with. */
struct balloon_look {
	struct wss_balloon_facts facts;
	struct wss_balloon_limits limits; /* of these floor, headroom and period */
	struct wss_balloon_view view;
};

/*
 * What libvirt says of a guest, as it was when the guest was last refreshed, and its balloon's
 * statistics now. The second only looks at the statistics. 0, or -1 where libvirt cannot be asked.
 */
int wss_balloon_look(const struct wss_target *target, struct balloon_reports *reports,
		     struct balloon_look *ret_look, struct wss_error *err);
int wss_balloon_look_statistics(struct wss_guest *guest, struct balloon_reports *reports,
				struct balloon_look *look, struct wss_error *err);

/*
 * Completes a look with what its disks have read in all. As it is a question to its monitor, every
 * 10 s; in between, where libvirt does not tell, and without fresh statistics that stays absent.
 */
void wss_balloon_look_disks(struct wss_guest *guest, struct balloon_reports *reports,
			    struct balloon_look *look);

/* What the history says, which may be NULL; with what the policy has decided. */
int wss_balloon_read(const struct balloon_options *options, struct wss_history *history,
		     const char *uuid, const struct wss_policy *policy,
		     struct balloon_record *ret_record, struct wss_error *err);

/*
 * What a guest is to have back that had this much before the first step, and has that much now:
 * more is what somebody else has given it, and nobody can give it more than its maximum.
 */
uint64_t wss_balloon_due(const struct wss_guest *guest, uint64_t original_bytes,
			 uint64_t now_bytes);

/* Completes a look with it. */
void wss_balloon_join(const struct balloon_record *record, struct balloon_look *look);

/* balloon --apply, from a process that has no threads yet. The exit code. */
int wss_balloon_apply(const struct wss_cli *cli, const struct balloon_options *options);

/* balloon --restore: gives back what the journal says was taken. The exit code. */
int wss_balloon_restore(const struct wss_cli *cli, const struct balloon_options *options);

/*
 * Starts the watchdog: a process that runs "balloon --restore" for the guests in its charge when
 * the caller dies without having said that all is given back, and when no beat came for 10 s. Call
 * before any thread is started. ret_fd is for the calls below.
 */
int wss_balloon_watchdog(const struct wss_cli *cli, const struct balloon_options *options,
			 int *ret_fd, struct wss_error *err);

/*
 * Puts a guest into its charge, for good; NULL: only asks whether it is still there. 0, or -1 where
 * it is gone, or does not listen. Any thread may call it.
 */
int wss_balloon_watch(int fd, const char *uuid, struct wss_error *err);

/* Says that the caller is alive, about each second. Never waits. */
void wss_balloon_beat(int fd);

/* Lets the watchdog go, and closes fd. */
void wss_balloon_all_is_well(int fd);

#endif
