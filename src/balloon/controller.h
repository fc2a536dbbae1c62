/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The controller: a process that looks after the balloons of many guests until it is stopped. */
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
