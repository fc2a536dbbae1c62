/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The room balloon/: reclaims memory that guests do not need, and gives it back when they do; or
 * squeezes guests, to find how little they need.
 *
 *   in    the guests (scope.h), what they need (need.h, by the advice of sizing/), and their state
 *         and reports (look.h)
 *   out   sizes of balloons, events (events.h), and the journal of all steps in the history
 *
 *   controller.c         the process: starts the watchdog, then two threads for each guest
 *   controlled.h         one guest: its states, and why a step is safe
 *   balloon.h            decides the next step, by pure functions; squeeze.h and edge.h take its
 *                        place for a squeeze, and plan.h says what the controller would do
 *   step.c, give-back.c  carry a decision out; mover.h says who has moved the balloon
 *   journal.h, watchdog.h, restore.h  return the memory that a killed controller did not
 *
 * Begin with controlled.h and balloon.h. A reason to leave a guest alone goes into
 * balloon-refusal.c, a limit of a step into balloon.c, and what either has to know into look.c.
 */
#pragma once

#include "balloon/events.h"
#include "balloon/scope.h"
#include "balloon/squeeze.h"
#include "base/clock.h"
#include "base/error.h"
#include "measure/target.h"
#include "measure/window.h"
#include "sizing/advice.h"

/* The squeeze experiment, in place of reclaiming memory that guests do not need. */
struct wss_control_squeeze {
	struct wss_squeeze_options options;
	/*
	 * Called, as events are, once for each guest that has all its memory back, unless it was
	 * refused or left alone. The target has its guest.
	 */
	void (*done)(const struct wss_target *target, const struct wss_squeeze *squeeze,
		     void *opaque);
	void *opaque;
};

struct wss_balloon_options {
	struct wss_advice_options advice; /* for sizing the guests */
	uint64_t period_ns;		  /* from one window's start to the next */
	uint64_t window_ns;    /* shorter than the period; 0: others measure the guests */
	uint64_t pause_ns;     /* after each step */
	uint64_t max_stall_ns; /* longest stall of a guest's vCPUs that a window may cause */
	/*
	 * The command that the watchdog runs to give memory back: the words of a program,
	 * ending in NULL, to which it adds the UUIDs of guests. Exit status 0 means that all
	 * of them have their memory.
	 */
	const char *const *restore_command;
	const struct wss_control_squeeze *squeeze; /* NULL: none */
};

/* Defaults of everything but restore_command, which has none. */
#define WSS_BALLOON_OPTIONS_INIT                                                   \
	{                                                                          \
		.advice = WSS_ADVICE_OPTIONS_INIT, .period_ns = 30 * WSS_NS_PER_S, \
		.window_ns = 4 * WSS_NS_PER_S, .pause_ns = 10 * WSS_NS_PER_S,      \
		.max_stall_ns = WSS_MAX_STALL_DEFAULT_NS                           \
	}

/*
 * Looks after the guests of the scope until a stop is requested or none is left; a squeezed guest is
 * left when its edge was found. When it
 * returns, every guest has its memory back, or the watchdog goes on giving it back. Call this
 * before the process has any other thread.
 *
 * Problems with a guest are reported as trouble. *ret_guests is the number of guests that were
 * looked after, or should have been. Returns -1 only if nothing can work: WSS_ERR_CONNECT,
 * WSS_ERR_NO_MEMORY, and the errors of wss_history_open() and wss_watchdog_start().
 */
int wss_controller_run(const struct wss_control_scope *scope,
		       const struct wss_balloon_options *options,
		       const struct wss_control_events *events, size_t *ret_guests,
		       struct wss_error *err);
