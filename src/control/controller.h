/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The balloon controller: reclaims memory that guests do not need, and watches them. */
#ifndef WSS_CONTROL_CONTROLLER_H
#define WSS_CONTROL_CONTROLLER_H

#include "base/clock.h"
#include "base/error.h"
#include "control/events.h"
#include "control/scope.h"
#include "service/advice.h"
#include "track/window.h"

struct wss_balloon_options {
	struct wss_advice_options advice; /* how much a guest needs */
	uint64_t period_ns; /* between the starts of two windows of a guest */
	uint64_t window_ns; /* shorter than the period; 0: others measure the guests */
	uint64_t pause_ns; /* after each step */
	uint64_t max_stall_ns; /* the longest that a window may stall a guest's vCPUs */
	/*
	 * What the watchdog runs to give back: a program's words, ending in NULL, to which it
	 * adds the UUIDs of guests. Exit status 0 means that all of them have their memory.
	 */
	const char *const *restore_command;
};

/* Without restore_command, which has no default. */
#define WSS_BALLOON_OPTIONS_INIT                                                              \
	{                                                                                     \
		.advice = WSS_ADVICE_OPTIONS_INIT, .period_ns = 30 * WSS_NS_PER_S,            \
		.window_ns = 4 * WSS_NS_PER_S, .pause_ns = 10 * WSS_NS_PER_S,                 \
		.max_stall_ns = WSS_MAX_STALL_DEFAULT_NS                                      \
	}

/*
 * Looks after the guests of the scope until a stop is requested, or none is left; then every
 * guest has its memory back, or its watchdog goes on giving it back. To be called before the
 * process has any thread.
 *
 * What goes wrong with a guest is the events' trouble. *ret_guests: how many guests were
 * looked after, or should have been. -1 only for what stops all: WSS_ERR_CONNECT,
 * WSS_ERR_NO_MEMORY, and the errors of wss_history_open() and wss_watchdog_start().
 */
int wss_controller_run(const struct wss_control_scope *scope,
		       const struct wss_balloon_options *options,
		       const struct wss_control_events *events, size_t *ret_guests,
		       struct wss_error *err);

#endif
