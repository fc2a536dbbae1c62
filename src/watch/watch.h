/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The room watch/: measures all guests of a host, again and again, each within its budget, and keeps
 * advice on them. The service and top stand on it.
 *
 *   watch.c           the loop; what a caller may ask: this file
 *   watch-list.c      asks libvirt which guests there are, watch-guests.c keeps them
 *   watch-guest.c     one guest: its state, and what comes of its visits and reboots
 *   watch-visit.c     one window of it: what the budget says, in the thread that measures
 *                     (measure/round.h)
 *   watch-pressure.c  holds all while the host is short of memory
 *   watch-ages.c, watch-publish.c  save the ages of memory, and write profiles to the inventory
 *   advisor.h         reads the history at a slow pace, for readers that cannot wait
 *
 * In: a hypervisor (measure/target.h) and struct wss_watch_options. Out: struct wss_watched for each
 * guest, and a call for each sample; struct wss_advised.
 *
 * One thread steps the watch and sees all events; whatever may hang is done by workers (base/worker.h).
 * The states of a guest are below.
 *
 * Begin with wss_watch_step() in watch.c. What else a guest shows is a member of struct wss_watched, set
 * in watch-guest.c.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "cold/cold-timeline.h"
#include "measure/budget.h"
#include "measure/round.h"
#include "measure/target.h"
#include "sizing/config-advice.h"

/*
 * Theory of operation. One thread steps the watch; whatever may hang is done by workers. A guest is
 * known from the moment that libvirt lists it until it is not listed any more, and is in one of these
 * states:
 *
 *   waiting --due--> measuring --sample--> waiting
 *      |                 |
 *      |                 +--the budget says no--> refused --looked at again--> measuring
 *      |                 +--it boots, or has a job--> held --looked at again--> measuring
 *      +--opted out--> left out
 *      +--paused--> paused --looked at again--> measuring
 *      +--its QEMU cannot answer--> stopped --looked at again--> measuring
 *
 * A guest whose window shows that KVM maps it by more than 4 KiB gets fine windows, if they are wanted, after a
 * coarse one. Where one is not possible or too dear, or another program uses QEMU's dirty-rate calculation, a coarse
 * window takes its place at once, so that the guest always has a figure, and coarse_why says why.
 *
 * Before a window is armed it is predicted (measure/tracker.h), and the guest's pace (measure/budget.h) says
 * whether it may be and of which kind; afterwards what it cost is compared with the prediction. Faults
 * are predicted as all entries that the zap drops until windows have shown how many of them come back; that and the stall
 * are then predicted by what was measured (measure/lessons.h), for each kind of window.
 *
 * A guest that has restarted, that is in another QEMU process, begins again with a canary. So does one that has
 * rebooted within its QEMU, which only an event of libvirt tells: one that comes while libvirt cannot be reached
 * is not noticed. Both are left alone while they boot, and the ages of their memory begin again.
 *
 * The ages of all guests share one budget of memory. When it is short, the guest whose ages take most has them by
 * 2 MiB from then on, which its samples say.
 *
 * Guests are spread over their period when the watch begins, so that they do not fall due together. While
 * the watch is held nothing is armed; windows that are open come to their end. An operator holds it, or
 * memory pressure: the share of time in which all tasks that were not idle waited for memory ("full"), of the cgroup
 * that has all guests, usually machine.slice, or of the host where the kernel does not report that. It is looked at
 * every second, and has to fall to half the limit again. What other programs do to themselves counts as little as
 * a guest's own shortage, which is looked at before each of its windows, and holds that guest alone.
 *
 * libvirt may go away at any time. Then guests stay known, what was measured of them stays as it is,
 * and libvirt is called again every WSS_WATCH_RECONNECT_NS. A guest whose own connection fails is tried
 * again after WSS_WATCH_RETRY_NS, because libvirt may have too many clients.
 */

#define WSS_WATCH_PERIOD_NS (60 * WSS_NS_PER_S)
#define WSS_WATCH_CANARY_NS (200 * WSS_NS_PER_MS)
#define WSS_WATCH_WINDOW_NS (4 * WSS_NS_PER_S)
#define WSS_WATCH_BOOT_NS (120 * WSS_NS_PER_S)
#define WSS_WATCH_PRESSURE_SHARE 0.1
#define WSS_WATCH_AGES_BYTES (128ULL << 20)
/* Guests that are measured, or asked for their state, at the same time; the most descriptors and tasks for each. */
#define WSS_WATCH_VISITS_MAX 80U
#define WSS_WATCH_VISIT_FILES 24U
#define WSS_WATCH_VISIT_TASKS 2U
#define WSS_WATCH_LIST_NS (5 * WSS_NS_PER_S)
/* How often libvirt is called again that was lost, and a guest whose connection failed. */
#define WSS_WATCH_RECONNECT_NS (500 * WSS_NS_PER_MS)
#define WSS_WATCH_RETRY_NS (2 * WSS_NS_PER_S)
/* When a fine window is tried again that was not possible or too dear. */
#define WSS_WATCH_FINE_RETRY_NS (3600 * WSS_NS_PER_S)

/* Room for the reason of a hold, with its final NUL; a longer one is cut. */
#define WSS_WATCH_REASON_MAX 256

struct wss_watch_options {
	struct wss_hypervisor_options hypervisor; /* borrowed strings */
	/*
	 * The usual window. Its granularity: native, no guest has fine windows; auto, those have that KVM maps by more
	 * than 4 KiB, where possible; 4k, all have, and where that is not possible they fail.
	 */
	struct wss_measure_options measure;
	uint64_t period_ns; /* for guests whose policy has none, at least 1 s */
	uint64_t canary_ns; /* length of a canary's window */
	uint64_t boot_ns;   /* how long a guest that has just started or rebooted is left alone */
	uint64_t list_ns;   /* how often guests are listed */
	struct wss_budget budget;
	double pressure_share; /* memory pressure (host/pressure.h), 0 to 1, that holds the watch, or a guest; 0: none does */
	double fault_ns; /* what a second-level fault costs (measure/kvm-cost.h) */
	/*
	 * Each window of a guest goes on until its next one, where the method knows pages, so that ages have
	 * a low bound. The guest's lock is held all the time.
	 */
	bool continuous;
	uint64_t ages_bytes; /* memory for the ages of all guests */
	bool balloon_statistics; /* turn them on, while it runs, for a guest whose configuration has none */
	/* Directory of the files of ages, which exists; NULL: none (cold/ages.h). */
	const char *ages;
	unsigned visits_max;		 /* 1 to WSS_WATCH_VISITS_MAX */
	const struct wss_cancel *cancel; /* ends the watch; NULL: the stop signal */
};

/* With all defaults. */
void wss_watch_options_init(struct wss_watch_options *options);

enum wss_watched_state {
	WSS_WATCHED_WAITING,
	WSS_WATCHED_MEASURING,
	WSS_WATCHED_REFUSED, /* by the budget: why says it */
	WSS_WATCHED_HELD, /* left alone for now, by its start, a job or another measurement: why says it */
	WSS_WATCHED_LEFT_OUT, /* its operator has opted out */
	WSS_WATCHED_PAUSED,
	WSS_WATCHED_STOPPED, /* its QEMU process is stopped or frozen: why says it */
	WSS_WATCHED_STATES
};

/* "waiting", "measuring", "refused", "held", "left out", "paused", "stopped". */
const char *wss_watched_state_name(enum wss_watched_state state);

/* Why a guest that KVM maps by more than 4 KiB has no fine windows. */
enum wss_coarse {
	WSS_COARSE_NOT, /* it has, or may have soon, or needs none */
	WSS_COARSE_SETTING,
	WSS_COARSE_CONTINUOUS, /* windows that follow each other are no fine ones */
	WSS_COARSE_UNSUPPORTED,
	WSS_COARSE_BUDGET,
	WSS_COARSE_BUSY, /* for now: another program calculates its dirty rate, or QEMU did not answer in time */
	WSS_COARSE_FAILED,
};

/* "", "setting", "continuous", "unsupported", "budget", "busy", "failed". */
const char *wss_coarse_name(enum wss_coarse coarse);

/* What the watch knows of a guest. */
struct wss_watched {
	uint64_t next_ns; /* when it is due, wss_clock_now_ns() */
	char name[WSS_NAME_MAX];
	char uuid[WSS_UUID_TEXT_MAX];
	enum wss_watched_state state;
	struct wss_pace pace;
	uint64_t period_ns; /* from window to window, as it is now */
	/* Why the last attempt gave no sample; code 0: it gave one, or there was none yet. */
	struct wss_error why;
	bool published;		   /* its profile has been written to the inventory */
	bool measured;		   /* there is a sample */
	enum wss_window_kind kind; /* of the window that gave it */
	uint64_t measured_ns;	   /* when, wss_clock_now_ns() */
	struct wss_sample sample;  /* of a canary without a working set: its window is too short */
	enum wss_coarse coarse;
	struct wss_error coarse_why; /* set unless coarse is WSS_COARSE_NOT */
	/* Over all windows, and since when, wss_clock_now_ns(). */
	uint64_t since_ns;
	uint64_t windows;
	uint64_t spent_vcpu_ns; /* of its vCPUs' time: stalls and faults */
	/* Of CPU time of this process, for its visits, its profile and its ages. */
	uint64_t spent_tool_ns;
	uint64_t longest_stall_ns;
	uint64_t dearer;	  /* windows that cost more than predicted */
	unsigned n_vcpus;	  /* 0: not known yet */
	struct wss_policy policy; /* as its last window found it; empty before */
	/* Its memory and what its balloon leaves of it, as its last visit found them. */
	struct wss_amount maximum_bytes, balloon_bytes;
	bool examined;			     /* blocked is known */
	bool reports_free;		     /* its balloon reports free pages to the host */
	char blocked[WSS_CONFIG_BLOCKS_MAX]; /* what keeps its memory on the host; "": nothing */
	uint64_t spent_ns;		     /* spent_vcpu_ns for each of its vCPUs */
	/* Since when memory pressure of its own holds it, wss_clock_now_ns(), 0: it does not; for how long before. */
	uint64_t pressed_since_ns, pressed_ns;
};

/* For how long memory pressure of its own has held the guest since it was listed, in ns. */
uint64_t wss_watched_pressed_ns(const struct wss_watched *guest);

/* Whether a window other than a canary has found its working set last. */
bool wss_watched_has_wss(const struct wss_watched *guest);

struct wss_watch_events {
	/* A new sample, good or bad; the guest's own lacks the working set of a canary. */
	void (*sample)(const struct wss_watched *guest, const struct wss_sample *sample,
		       void *opaque);
	/* A guest is listed no more. */
	void (*gone)(const struct wss_watched *guest, void *opaque);
	/* libvirt cannot be reached (error), or can again (error NULL). */
	void (*connection)(const struct wss_error *error, void *opaque);
	/*
	 * Returns whether to publish *ret_profile, which it makes of the guest's sample. Asked after a window, at most
	 * every WSS_PUBLISH_PERIOD_S for each guest, or after each window while it fails. NULL: nothing is published.
	 */
	bool (*profile)(const struct wss_watched *guest, struct wss_profile *ret_profile,
			void *opaque);
};

struct wss_watch;

/* Options and events are copied. For wss_watch_free(). WSS_ERR_NO_MEMORY. */
int wss_watch_new(const struct wss_watch_options *options, const struct wss_watch_events *events,
		  void *opaque, struct wss_watch **ret_watch, struct wss_error *err);

/*
 * The same, with guests of another source than libvirt: hypervisor is kept, and never opened again. It
 * is the caller's.
 */
int wss_watch_new_with(struct wss_hypervisor *hypervisor, const struct wss_watch_options *options,
		       const struct wss_watch_events *events, void *opaque,
		       struct wss_watch **ret_watch, struct wss_error *err);

/*
 * Does what is due and waits until more is, or a window tells something, at most 200 ms. False once its token
 * is requested and all guests are as they were.
 */
bool wss_watch_step(struct wss_watch *watch);

/*
 * Goes on with other options: the window, method, kind, periods, budget, boot time, memory pressure, memory for ages
 * and continuous ones; all others stay as they were. Windows that are open come to their end as they began. A guest whose next window
 * would be more than the new period away is measured within that.
 */
void wss_watch_change(struct wss_watch *watch, const struct wss_watch_options *options);

/* Stops all arming, with the reason (copied), or goes on (NULL). */
void wss_watch_hold(struct wss_watch *watch, const char *reason);

/* The reason, that of wss_watch_hold() before memory pressure; NULL: not held. */
const char *wss_watch_held(const struct wss_watch *watch);

/* What stops windows. */
enum wss_watch_holder {
	WSS_HOLDER_OPERATOR, /* all of them: wss_watch_hold() */
	WSS_HOLDER_PRESSURE, /* all of them: memory pressure of the guests together, or of the host */
	WSS_HOLDER_GUEST_PRESSURE, /* a guest's own ones: memory pressure of its cgroup */
	WSS_HOLDERS
};

/* "operator", "pressure", "guest pressure". */
const char *wss_watch_holder_name(enum wss_watch_holder holder);

/* For how long that has held since the watch began, in ns; of the guests' own pressure the sum over all guests. */
uint64_t wss_watch_held_ns(const struct wss_watch *watch, enum wss_watch_holder holder);

/* For how long what wss_watch_held() names has held without a pause, in ns; 0: nothing does. */
uint64_t wss_watch_held_now_ns(const struct wss_watch *watch);

/* Whether libvirt has listed the guests, or failed to, at least once. */
bool wss_watch_has_tried(const struct wss_watch *watch);
/* Whether the guests have been listed once; before that none is known. */
bool wss_watch_listed(const struct wss_watch *watch);

/* How many guests are known; one of them, in no order, which is valid until the next step. */
size_t wss_watch_count(const struct wss_watch *watch);

/* The cost of windows since the watch began; times in ns, vcpu_ns is the sum over all virtual CPUs. */
struct wss_watch_spent {
	uint64_t windows, dearer, vcpu_ns, tool_ns, longest_stall_ns;
	uint64_t pressed_ns; /* time in which memory pressure of their own held guests */
};

/*
 * Returns the CPU time of this process, in ns since its start, that no guest is charged with, as of the last step: the
 * list of guests, pages, metrics and history. It includes what windows under way have used so far.
 */
uint64_t wss_watch_uncharged_ns(const struct wss_watch *watch);

/* Returns the cost of the windows of guests that are no longer listed. */
struct wss_watch_spent wss_watch_spent_before(const struct wss_watch *watch);
const struct wss_watched *wss_watch_guest(const struct wss_watch *watch, size_t i);

/*
 * Reports how cold the memory of that guest is (cold/cold-timeline.h); false if no window has shown which
 * pages it touches.
 */
bool wss_watch_cold(const struct wss_watch *watch, size_t i, struct wss_cold_report *ret_report);

/* Stores the ages, and leaves behind what still runs. Takes NULL. */
void wss_watch_free(struct wss_watch *watch);
