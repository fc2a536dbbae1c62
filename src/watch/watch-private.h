/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the files of the watch share. */
#pragma once

#include <stdatomic.h>

#include "base/clock.h"
#include "base/number.h"
#include "base/worker.h"
#include "cold/aging.h"
#include "watch/watch.h"

/* Tells one run of a guest from another, and one size from another. */
struct wss_instance {
	pid_t pid; /* 0: not known */
	uint64_t start_ticks;
	uint64_t maximum_bytes;
};

/*
 * Guests fall due at multiples of this. Most windows last a multiple of it, too, so that they end at these moments,
 * and an idle processor wakes once for several guests: with cold caches, a wake-up costs as much as a whole window
 * does with warm ones.
 */
#define WSS_WATCH_TICK_NS (100 * WSS_NS_PER_MS)

/* Returns the next tick, or the last one if that was less than a tenth of a tick ago: visits begin a moment late. */
static inline uint64_t wss_watch_tick_ns(uint64_t when_ns)
{
	return wss_u64_add(when_ns, WSS_WATCH_TICK_NS / 10 * 9) / WSS_WATCH_TICK_NS *
	       WSS_WATCH_TICK_NS;
}

/* Why a guest is held after a reboot. */
#define WSS_WHY_REBOOTED "it has just rebooted"

/* Why a window was not armed, beside the budget. */
enum wss_visit_end {
	WSS_VISIT_MEASURED, /* or tried to: the sample says it */
	WSS_VISIT_REFUSED,  /* by the budget: plan says why */
	WSS_VISIT_RENEWED,  /* it is not the guest that the visit was made for: it gets a canary */
	WSS_VISIT_BOOTING, /* it has just started or rebooted, and is left alone until not_before_ns */
	WSS_VISIT_PRESSED, /* its own cgroup is short of memory */
};

/* The cgroup (version 2) of a guest's process. */
struct wss_guest_cgroup {
	bool looked;   /* it was looked for */
	char *path;    /* directory below the root; NULL: not known */
	bool own;      /* the guest has it for itself */
	bool reported; /* the kernel reports the memory pressure of its own one */
};

/* Entries that a window has dropped may come back after its sample, each with a fault. */
struct wss_fault_debt {
	/* The guest's faults since it started, when the sample was taken. */
	struct wss_amount so_far;
	uint64_t most; /* how many of the window's may follow */
};

/*
 * One attempt to measure one guest: made by the watch, used by the thread that measures, and read by the
 * watch once that has told of its sample.
 *
 * A continuous visit is a row of windows, each of which goes on until the next one. The two threads take
 * turns: after a sample the visit is the watch's, until it sets when the next window is to begin.
 */
struct wss_visit {
	struct wss_watch_options options;
	struct wss_target *target;
	char uuid[WSS_UUID_TEXT_MAX];
	size_t index; /* the watch's: where its guest was last among the guests */
	uint64_t start_ns;
	enum wss_window_kind wanted; /* the dearest kind that the guest may have */
	enum wss_window_kind kind;
	struct wss_pace pace;
	struct wss_instance expected; /* all 0: any */
	/* When the guest last rebooted in its QEMU, as far as was known; 0: never. */
	uint64_t rebooted_ns;
	struct wss_lessons lessons; /* of windows of that kind */
	/* That its first fine window may touch, as the last coarse one tells. */
	struct wss_amount pages;
	struct wss_fault_debt debt;	 /* of the last window of any kind */
	struct wss_window_memory memory; /* of the last window that walked QEMU's page tables */
	struct wss_aging *aging;	 /* its own reference; NULL: nobody wants ages */
	bool continuous;
	atomic_uint_fast64_t next_ns; /* of the next window; 0: not known yet */
	atomic_bool over;	      /* there is to be no other window */
	unsigned windows;	      /* that were to be armed */
	uint64_t charged_ns;	      /* the watch's: of the target's CPU time */
	bool told_pages;	      /* of a window that goes on until the next one */
	bool admitted; /* a window was allowed, and the guest has not been charged with it yet */
	/* Found out while it measures. */
	enum wss_visit_end end;
	struct wss_instance found;
	struct wss_guest_cgroup cgroup;
	bool pressed; /* the last attempt found so; once this one has looked, whether it did */
	uint64_t not_before_ns;
	uint64_t period_ns;
	unsigned n_vcpus;
	struct wss_prediction prediction; /* of the method */
	uint64_t late_faults;		  /* of the last window, after its sample */
	struct wss_window_cost predicted;
	/* A window that costs more than this is dearer than predicted (measure/budget.h). */
	struct wss_window_cost bound;
	struct wss_window_plan plan;
};

/*
 * A guest, and what only the watch needs of it. What is looked at again and again, of all guests, comes first, in
 * one line of the processor's cache.
 */
struct wss_watch_guest {
	struct wss_visit *visit; /* that is under way, the target's; NULL: none */
	struct wss_watched watched;
	struct wss_instance instance;
	struct wss_guest_cgroup cgroup;
	/* When it last rebooted in its QEMU; 0: it did not since it was listed. */
	uint64_t rebooted_ns;
	struct wss_lessons lessons[WSS_WINDOW_FINE + 1]; /* of each kind of window */
	struct wss_fault_debt debt;
	struct wss_window_memory memory;
	struct wss_aging *aging;	/* NULL: out of memory */
	struct wss_cold_budget *budget; /* of its ages; the watch's */
	bool starting;			/* and has told of no sample yet */
	bool listed;
	uint64_t coarse_until_ns;    /* before that no fine window is tried */
	enum wss_coarse coarse_told; /* the kind of reason for none that was logged last */
	bool busy_told;		     /* why it has none for now was logged */
	/* Of its profile: being written; when the next one may be, and the time of the sample of the last one. */
	bool publishing;
	uint64_t publish_ns, published_ns;
	/* Why the last one was not written; WSS_OK: it was, or is the first. */
	enum wss_error_code unpublished;
};

/* A visit to the guest, without a target; NULL: out of memory. */
struct wss_visit *wss_visit_new(const struct wss_watch_options *options,
				const struct wss_watch_guest *guest);

/* Frees a visit; as a target's release_data. */
void wss_visit_free(void *visit);

/* How the visit's window is to be measured; points to the visit. */
struct wss_measure_options wss_visit_options(struct wss_visit *visit);

/*
 * Returns the vCPU time, in ns, that a window takes before it is armed: for a fine one the first zap and the start of
 * the dirty log, which nobody measures, and which the prediction of its stall covers. Once the visit was admitted.
 */
uint64_t wss_visit_preparation_ns(const struct wss_visit *visit);

/* Returns what the window of this sample has cost the guest, whether or not it was measured. */
struct wss_window_cost wss_visit_cost(const struct wss_visit *visit,
				      const struct wss_sample *sample);

/* What the window of this sample may cost the guest from now on. */
struct wss_fault_debt wss_visit_debt(const struct wss_visit *visit,
				     const struct wss_sample *sample);

/* --- the files of ages --- */

/* Writes and removes the files of ages, in a thread of its own, and has their guests charged with it. */
struct wss_ages_saver;

/* NULL: out of memory. */
struct wss_ages_saver *wss_ages_saver_new(void);

/* The file of a guest is to be saved, or removed if its aging was removed. Without memory it is not. */
void wss_ages_saver_add(struct wss_ages_saver *saver, const struct wss_watch_guest *guest);

/* Has the files written that are due. Waits for nothing. */
void wss_ages_saver_step(struct wss_ages_saver *saver, struct wss_watch *watch);

/* Has those written that were added, which it waits for, ten seconds at most, and frees it. Takes NULL. */
void wss_ages_saver_end(struct wss_ages_saver *saver);

/* Where the memory for ages is short, those of the guest that takes most are by 2 MiB from then on. */
void wss_watch_fit_ages(struct wss_watch *watch);

/* --- a guest --- */

/* Due now; NULL: out of memory. The budget, for its ages, is the watch's. */
struct wss_watch_guest *wss_watch_guest_new(const struct wss_watch_options *options,
					    const char *uuid, struct wss_cold_budget *budget);

/* A visit that is under way arms no other window. */
void wss_watch_guest_end_visit(struct wss_watch_guest *guest);

/* Ends its visit, too. Its ages are not stored. */
void wss_watch_guest_free(struct wss_watch_guest *guest);

/*
 * It has rebooted in the same QEMU: it is left alone while it boots, and none of its memory has an age. A visit
 * that is under way arms nothing more, and keeps the aging of before.
 */
void wss_watch_guest_reboot(struct wss_watch_guest *guest, const struct wss_watch_options *options,
			    struct wss_ages_saver *saver);

/* No sample came of it: the next attempt is a period later, or soon if only the connection was lost. */
void wss_watch_guest_fail(struct wss_watch_guest *guest, const struct wss_error *why);

/*
 * Takes a sample of the visit, good or bad, and finds out when the guest is due again. True: it is of the guest as
 * it is, and the caller is to be told.
 */
bool wss_watch_guest_take(struct wss_watch_guest *guest, struct wss_visit *visit,
			  const struct wss_sample *sample);

/* --- memory pressure --- */

/* A hold ends at this part of the limit, so that it does not come and go. */
#define WSS_WATCH_RELEASE_PART 0.5

/* Looks every second whether the host's guests, or the host, are short of memory. */
struct wss_pressure_hold;

/* WSS_ERR_UNSUPPORTED, WSS_ERR_FAILED: it cannot be known (host/pressure.h); WSS_ERR_NO_MEMORY. */
int wss_pressure_hold_new(double limit_share, struct wss_pressure_hold **ret_hold,
			  struct wss_error *err);

/*
 * Looks, if a second has passed, at the cgroup that has all guests of the watch, or at the host where there is none, or
 * the kernel does not report it. Logs what it finds. True: it holds now, and did not before. hold may be NULL.
 */
bool wss_pressure_hold_step(struct wss_pressure_hold *hold, const struct wss_watch *watch);

/* Why it holds; NULL: it does not. Takes NULL. */
const char *wss_pressure_hold_reason(const struct wss_pressure_hold *hold);

/* For how long it has held, in all and, if ret_now_ns is not NULL, without a pause until now. Takes NULL. */
uint64_t wss_pressure_hold_ns(const struct wss_pressure_hold *hold, uint64_t *ret_now_ns);

/* Takes NULL. */
void wss_pressure_hold_free(struct wss_pressure_hold *hold);

/*
 * Whether the guest's own cgroup is short of memory, in the thread that measures; sets the visit's cgroup. What the
 * kernel does not report is no pressure. With err: why.
 */
bool wss_visit_is_pressed(struct wss_visit *visit, struct wss_error *err);

/* --- the list of guests --- */

/* Opens libvirt where it is not open, and lists what runs, in a worker. */
struct wss_lister;
struct wss_pool;

/*
 * hypervisor NULL: it is opened with options->hypervisor, whose strings must outlive it. Shrinks the pool, which may be
 * NULL, after each listing. NULL: out of memory.
 */
struct wss_lister *wss_lister_new(const struct wss_watch_options *options,
				  struct wss_hypervisor *hypervisor, struct wss_pool *pool);

/*
 * Starts a listing where one is due, and takes the result of one that is done: 1 with *ret_domains for
 * wss_conn_free_list(); 0: none is done; -1 with err: it failed or was late.
 */
int wss_lister_step(struct wss_lister *lister, struct wss_conn_domain **ret_domains, size_t *ret_n,
		    struct wss_error *err);

/* The hypervisor as it was opened last; NULL: it is not open. The lister's. */
struct wss_hypervisor *wss_lister_hypervisor(const struct wss_lister *lister);

/* As wss_hypervisor_next_reboot(), of that hypervisor. */
bool wss_lister_next_reboot(const struct wss_lister *lister, char ret_uuid[WSS_UUID_TEXT_MAX]);

/* Waits until a listing is done, at most wait_ns. */
void wss_lister_wait(struct wss_lister *lister, uint64_t wait_ns);

/* Leaves behind what still runs. Takes NULL. */
void wss_lister_free(struct wss_lister *lister);

/* --- profiles --- */

/* Publishes profiles; belongs to one watch. */
struct wss_publisher;

/* NULL: out of memory. */
struct wss_publisher *wss_publisher_new(void);

/* Takes note of profiles that have been written, and begins to write those that are due. */
void wss_publisher_step(struct wss_watch *watch);

/* Leaves behind what still runs. Takes NULL. */
void wss_publisher_free(struct wss_publisher *publisher);

/* --- the watch --- */

struct wss_watch {
	struct wss_watch_options options;
	struct wss_watch_events events;
	void *opaque;
	struct wss_lister *lister;
	struct wss_pool *pool; /* NULL: all use the hypervisor that was given */
	struct wss_round *round;
	struct wss_publisher *publisher;
	struct wss_watch_guest **guests;
	size_t n, room;
	size_t turn;		     /* the guest that is looked at first */
	uint64_t due_ns;	     /* when to look for guests that are due */
	size_t n_starting;	     /* visits without a sample yet */
	struct wss_watch_spent gone; /* by guests that are no longer listed */
	uint64_t charged_ns;	     /* CPU time of the process, to guests, also to those */
	uint64_t uncharged_ns;	     /* and the most that was not */
	size_t visits_max;	     /* of these */
	bool began;		     /* the guests have been listed once */
	bool disconnected;	     /* and the caller knows */
	bool is_held;
	char held[WSS_WATCH_REASON_MAX];
	uint64_t held_since_ns, held_ns;    /* by the operator: now; in all before */
	struct wss_pressure_hold *pressure; /* NULL: not looked at */
	uint64_t pressure_ns;		    /* that earlier ones have held */
	struct wss_ages_saver *saver;
	struct wss_cold_budget *ages_budget;
};

/*
 * Returns a connection for one thread, for wss_hypervisor_unref(), while the lister's is open. Errors of
 * wss_pool_lease().
 */
int wss_watch_hypervisor(const struct wss_watch *watch, struct wss_hypervisor **ret_hypervisor,
			 struct wss_error *err);

/* Has as many windows at once, and as close to each other, as the guests' periods need. */
void wss_watch_set_pace(struct wss_watch *watch);

/* The guest's visit has told of a sample, or has ended, or the guest is not listed any more. */
void wss_watch_visit_started(struct wss_watch *watch, struct wss_watch_guest *guest);

/* --- its guests --- */

/*
 * Returns the guest with that UUID; NULL: it is not listed any more. *hint is where among the guests it is
 * likely, and becomes where it is.
 */
struct wss_watch_guest *wss_watch_guests_find(const struct wss_watch *watch, const char *uuid,
					      size_t *hint);

/* Charges the guest with CPU time of this process; NULL: one that is not listed any more. */
void wss_watch_charge(struct wss_watch *watch, struct wss_watch_guest *guest, uint64_t cpu_ns);

/*
 * Takes a new list of guests, if there is one: adds those that are new, and forgets those that run no more. Tells
 * the caller of guests that are gone, and of libvirt, when it cannot be reached or can again.
 */
void wss_watch_guests_update(struct wss_watch *watch);

/* Takes the reboots that libvirt has told of. */
void wss_watch_guests_take_reboots(struct wss_watch *watch);
