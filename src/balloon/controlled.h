/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One guest under the controller's care. Private to balloon/: controlled.c looks after it,
 * step.c takes steps, give-back.c returns its memory, measure.c measures it.
 *
 * Theory of operation
 *
 * Each guest has two threads. One looks at the guest every second, and carries out the
 * decisions of wss_balloon_next() (balloon/balloon.h) or wss_squeeze_next(); the other measures
 * the guest every period. libvirt may let either wait for any length of time without delaying
 * another guest. A thread that is left behind keeps what it uses. The disk of the journal is
 * waited for in a third one, so that a guest in need is seen meanwhile.
 *
 * States of the looking thread (wss_controlled_look()):
 *
 *   opened      The guest is open, and nothing is known about it. It ends here if the
 *               guest is refused, is controlled under another name, or if an earlier
 *               controller left unfinished steps.
 *   in charge   It is looked at. shrunk is false: there is nothing to give back.
 *   shrunk      At least one step has been journaled. Each look leads to waiting, to another
 *               step, to growth, to the return of everything (after which the state is
 *               "in charge", with a rest), or to the end.
 *   left alone  end is set, by trouble, by the end of the controller, or because a squeeze is
 *               over. The thread gives everything back, and tries again every second until
 *               that works. It stops trying only if the connection is gone or the controller
 *               ends. If somebody else has set the balloon since the last step, it stays as
 *               they set it, and only the journal is closed.
 *   away        Left alone and shrunk, but saved or moved to another host: the thread waits
 *               for it.
 *   over        The looking thread has ended. If shrunk is still set, the watchdog continues.
 *
 * A step is safe because of its order: (1) the journal has no unfinished step of others, (2)
 * the watchdog lives and guards the guest, (3) the step is written to the journal,
 * (4) the balloon is set. Giving back has the reverse order: first the balloon, then the
 * journal. So whenever this process dies, the journal lists everything that was taken.
 *
 * What undoes a step, and what does so if that fails:
 *
 * - The guest needs memory: its thread, within a look; with autodeflate the guest itself.
 * - The controller is killed, hangs or is stopped: the watchdog's command, by the journal.
 * - The watchdog is killed: its thread notices at its next look, and gives back.
 * - Both are killed: wss_restore_run(), by hand; until then a controller refuses the guest.
 * - The history is removed: its thread notices at its next look, and gives back.
 * - The guest is saved or moved: its thread while it lives, then the watchdog for a day.
 *
 * No step begins while a window is open or about to open, and no window opens during a step:
 * pages that the guest touches in order to free memory are not part of its working set.
 */
#pragma once

#include "balloon/controller-state.h"
#include "balloon/journal.h"
#include "balloon/look.h"
#include "balloon/mover.h"
#include "base/background.h"

/* Time from one look at the statistics to the next. */
#define LOOK_NS WSS_NS_PER_S

struct controlled {
	struct controller *controller;
	const char *name;	      /* the target's name */
	char uuid[WSS_UUID_TEXT_MAX]; /* set once the guest is open */
	struct wss_target *target;    /* used by the looking thread */
	struct wss_balloon balloon;
	struct wss_squeeze *squeeze; /* owned, decides in place of the balloon; NULL: none */
	struct wss_reports reports;
	uint64_t actual_bytes;
	uint64_t maximum_bytes;	      /* the guest's maximum when the first step was taken */
	struct wss_mover mover;	      /* while shrunk: who has moved the balloon */
	uint64_t mover_maximum_bytes; /* the guest's maximum as the mover knows it */
	uint64_t refreshed_ns;
	/* Journals steps, as the disk may hang; NULL: none yet. */
	struct wss_background *background;
	struct wss_journal_step step; /* the background's, like the next two, until that is idle */
	bool is_first_step;
	struct wss_error step_error;
	bool shrunk;	      /* there is memory to give back */
	bool watched;	      /* the watchdog guards it, too */
	bool may_step;	      /* as of the last refresh */
	bool is_here;	      /* its QEMU is known to run on this host; with a squeeze only */
	const char *end;      /* why it is left alone; NULL while it is not */
	unsigned short_looks; /* successive looks that failed for lack of memory */
	struct controlled *next;
	size_t number;

	atomic_bool over;
	atomic_bool in_charge;	    /* taken on, and perhaps shrunk */
	atomic_bool away;	    /* shrunk, and saved or moved: may come back */
	_Atomic uint64_t looked_ns; /* time of libvirt's last answer */
	bool stuck;		    /* used by the main thread: it has been reported as stuck */

	/* Protected by the lock; see the theory of operation. */
	bool measuring; /* changed by the measuring thread */
	bool moving;	/* changed by the looking thread */

	/* Set by the measuring thread, under the lock. */
	struct wss_need need;
	struct wss_policy policy;
	bool opted_out;

	int64_t measured_s; /* used by the measuring thread: end of the newest window */
};

/* Starts a thread of a controlled guest. It counts as running until it calls
 * wss_controlled_thread_ended(). */
int wss_controlled_start(struct controlled *controlled, void (*run)(void *), struct wss_error *err);
void wss_controlled_thread_ended(struct controller *controller);

/* Main functions of the two threads. */
void wss_controlled_look(void *controlled);
void wss_controlled_measure(void *controlled);

/*
 * Reads the guest's need again, with this policy. newest is a window that was just taken, or
 * NULL.
 */
int wss_controlled_read_need(struct controlled *controlled, const struct wss_policy *policy,
			     const struct wss_sample *newest, struct wss_error *err);

/*
 * Whether an error is only a lack of memory, which may be over by the next look. A host that
 * is short of memory needs the balloon most, so the guest is left alone only after several
 * looks in a row have failed this way. Counts them.
 */
bool wss_controlled_memory_is_short(struct controlled *controlled, const struct wss_error *err);

/* Reports trouble with the guest. */
void wss_controlled_trouble(struct controlled *controlled, const struct wss_error *why);

/* Reports the trouble once, and leaves the guest alone once it has its memory. */
void wss_controlled_leave(struct controlled *controlled, const struct wss_error *why);

/*
 * step.c: checks that the watchdog and the history, needed to give the guest its memory back
 * if this process cannot, are still there. Has the watchdog guard the guest, once.
 * WSS_ERR_FAILED.
 */
int wss_step_check_safeguards(struct controlled *controlled, struct wss_error *err);

/*
 * Carries out a decision. Returns false if it must be put off, as WSS_BALLOON_CHECK always is.
 */
bool wss_step_act(struct controlled *controlled, const struct wss_balloon_decision *decision);

/* Journals that the balloon has reached its target, so that a later change is not taken for
 * the last step. */
void wss_step_note_reached(struct controlled *controlled);

/* Returns a step that sets the balloon to bytes, for the journal. */
struct wss_journal_step wss_step_of(const struct controlled *controlled, uint64_t bytes,
				    const char *reason);

/* give-back.c: gives everything back and closes the journal if anything was taken. */
int wss_give_back(struct controlled *controlled, const char *reason, struct wss_error *err);

/* Returns who has moved the balloon since the last step; the guest is shrunk, and its size in
 * this look known. */
enum wss_moved_by wss_give_back_moved_by(struct controlled *controlled,
					 struct wss_balloon_view *view);

/*
 * Leaves the guest alone with the size that somebody else set, and closes the journal. Sets
 * that size once more where QEMU may still have ours.
 */
int wss_give_back_yield(struct controlled *controlled, const struct wss_balloon_view *view,
			struct wss_error *err);

/*
 * Repeats wss_give_back() until it works or the process ends; then the watchdog takes over.
 * Also waits for a guest that was saved or has moved, while there are others to look after.
 */
void wss_give_back_until_done(struct controlled *controlled);

/*
 * Returns whether the guest no longer runs. If it has ended, it has nothing to get back, so
 * this closes its journal entry. If it may resume, or libvirt does not know it any more and
 * did not see it end, the entry stays open for the watchdog or a later restore.
 */
bool wss_give_back_has_ended(struct controlled *controlled);
