/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One guest under the controller's care. Private to control/: tender.c looks after it, step.c
 * takes steps, give-back.c returns its memory, measure.c measures it.
 *
 * Theory of operation
 *
 * A tender has two threads. One looks at the guest every second, and does what
 * wss_balloon_next() (wss/balloon.h) decides; the other measures the guest every period.
 * libvirt may let either wait for as long as it likes: that holds up no other guest, and what
 * a thread that is left behind still uses stays where it is.
 *
 * States, as the looking thread goes through them (wss_tender_look()):
 *
 *   opened      The guest is opened; nothing is known of it. It ends here where it is refused,
 *               is tended under another name already, or has unfinished steps of an earlier
 *               controller.
 *   in charge   It is looked at. shrunk is false: nothing is to be given back.
 *   shrunk      At least one step has been journaled. Each look ends in hold, a further step,
 *               growth, the return of everything (then it is "in charge" again and rests), or
 *               the end.
 *   left alone  end is set, by trouble or by the end of the controller: everything is given
 *               back, and insisted on every second until it works. Only a connection that is
 *               gone, or the end of the controller, ends the insisting without success.
 *   away        left alone and shrunk, but saved, or moved to another host: waited for.
 *   over        The looking thread has ended. Where shrunk is still set, the watchdog goes on.
 *
 * The order of a step is what makes it safe: (1) the journal has no unfinished step of others,
 * (2) the watchdog lives and has the guest in its charge, (3) the step is in the journal, (4)
 * the balloon is told. The order of giving back is the reverse: the balloon first, then the
 * journal. So at any moment at which this process may die, whatever was taken is in the
 * journal.
 *
 * What undoes a step, and what does so where the first mechanism is gone:
 *
 * - The guest needs memory: this tender, within a look; with autodeflate the guest itself.
 * - The controller is killed, hangs or stands still: the watchdog's command, by the journal.
 * - The watchdog is killed: this tender notices at its next look, and gives back.
 * - Both are killed: wss_restore_run(), by hand; until then a controller refuses the guest.
 * - The history is removed: this tender notices at its next look, and gives back.
 * - The guest is saved or moved: this tender while it lives, then the watchdog for a day.
 *
 * No step is begun while a window is open or about to be, and no window while a step is under
 * way: pages that the guest touches to free memory are not part of its working set.
 */
#ifndef WSS_CONTROL_TENDER_H
#define WSS_CONTROL_TENDER_H

#include "control/look.h"
#include "control/tending.h"

/* Between two looks at the statistics. */
#define LOOK_NS WSS_NS_PER_S

struct tender {
	struct tending *tending;
	const char *name;	      /* the target's */
	char uuid[WSS_UUID_TEXT_MAX]; /* once it is opened */
	struct wss_target *target;    /* of the thread that looks */
	struct wss_balloon balloon;
	struct wss_reports reports;
	uint64_t actual_bytes;
	uint64_t maximum_bytes; /* that the guest could have when the first step was taken */
	uint64_t refreshed_ns;
	bool shrunk;	      /* something is to be given back */
	bool watched;	      /* in the watchdog's charge, too */
	bool may_step;	      /* as the last refresh had it */
	const char *end;      /* why it is left alone, once that is so */
	unsigned short_looks; /* that failed for lack of memory, since one that did not */
	struct tender *next;
	size_t number;

	atomic_bool over;
	atomic_bool in_charge;	    /* taken on, and perhaps shrunk */
	atomic_bool away;	    /* shrunk, and saved or moved: may be back one day */
	_Atomic uint64_t looked_ns; /* when it last had an answer */
	bool stuck;		    /* of the main thread: that it has been said */

	/* Under the lock, as the theory of operation says. */
	bool measuring; /* changed by the thread that measures, */
	bool moving;	/* and by the one that looks */

	/* From the thread that measures, under the lock. */
	struct wss_need need;
	struct wss_policy policy;
	bool opted_out;

	int64_t measured_s; /* of that thread: the end of the newest window */
};

/* Runs a thread of a tender, which is counted until it calls the second of these. */
int wss_tender_start(struct tender *tender, void (*run)(void *), struct wss_error *err);
void wss_tender_thread_ended(struct tending *tending);

/* What the two threads run. */
void wss_tender_look(void *tender);
void wss_tender_measure(void *tender);

/*
 * Reads anew what the guest needs, by this policy; newest: a window that was just taken, or
 * NULL.
 */
int wss_tender_read_need(struct tender *tender, const struct wss_policy *policy,
			 const struct wss_sample *newest, struct wss_error *err);

/*
 * Is this no more than a lack of memory, which may be over by the next look? A host that is
 * short of memory is where the balloon is needed most: the guest is left alone only after so
 * many looks in a row have failed for lack of memory, which this counts.
 */
bool wss_tender_memory_is_short(struct tender *tender, const struct wss_error *err);

/* Reports trouble with the guest. */
void wss_tender_trouble(struct tender *tender, const struct wss_error *why);

/* Reports the trouble once; has the guest left alone once it has its memory. */
void wss_tender_leave(struct tender *tender, const struct wss_error *why);

/* step.c: WSS_ERR_FAILED where the journal has unfinished steps of others. WSS_ERR_BUSY. */
int wss_step_check_unfinished(struct tender *tender, struct wss_error *err);

/*
 * Are the watchdog and the history still there, which give the guest its memory back where
 * this process cannot? Puts the guest in the watchdog's charge, once. WSS_ERR_FAILED.
 */
int wss_step_check_safeguards(struct tender *tender, struct wss_error *err);

/* Does what was decided. False where it has to be put off. */
bool wss_step_act(struct tender *tender, const struct wss_balloon_decision *decision);

/* Writes a step of the balloon to bytes into the journal, through this connection. */
int wss_step_journal(struct tender *tender, struct wss_history *history, uint64_t bytes,
		     const char *reason, struct wss_error *err);

/* give-back.c: gives everything back and closes the journal, where something was taken. */
int wss_give_back(struct tender *tender, const char *reason, struct wss_error *err);

/*
 * The same until it works, or the process ends: what is then still taken is the watchdog's. A
 * guest that was saved, or has moved, is waited for as well, while there are others to look
 * after.
 */
void wss_give_back_insist(struct tender *tender);

/*
 * Does the guest not run any more? Then it has nothing to get back, and the journal is closed;
 * unless it goes on one day where it was: that is the watchdog's, or that of whoever restores.
 */
bool wss_give_back_has_ended(struct tender *tender);

#endif
