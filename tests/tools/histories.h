/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Invented histories of guests, the same for the same seed on every machine: the largest
 * working set of each measured hour of 28 days.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "history/history.h"
#include "sizing/backtest.h"

#define HISTORIES_HOURS (28 * 24)
/* A Monday, 00:00 UTC. */
#define HISTORIES_START 1764547200

enum histories_kind {
	HISTORIES_STEADY,
	HISTORIES_DAILY,
	HISTORIES_WEEKLY,
	HISTORIES_GROWTH,
	HISTORIES_LEAK,
	HISTORIES_PEAKS,
	HISTORIES_BOOTS,
	HISTORIES_RESIZES,
	HISTORIES_GAPS,
	HISTORIES_WALK,
	HISTORIES_BURSTS,
	HISTORIES_MIXED, /* of those before */
	HISTORIES_OFFICE,
	HISTORIES_NIGHT,   /* a batch each night */
	HISTORIES_BACKUP,  /* each Sunday */
	HISTORIES_CLOSING, /* on the first day and the last */
	HISTORIES_STARVED, /* it has less than it would touch */
	HISTORIES_KINDS
};

const char *histories_kind_name(enum histories_kind kind);

/* Fills hours, and returns their number: hours in gaps are left out. */
size_t histories_make(uint64_t seed, enum histories_kind kind,
		      struct wss_backtest_hour hours[HISTORIES_HOURS]);

/*
 * Stores a window of 4 s of that granularity in the middle of each hour, with a growth curve that ends within it.
 * Returns 0, or -1 with the errors of wss_history_add_all().
 */
int histories_store(struct wss_history *history, const char *uuid, const char *name,
		    const struct wss_backtest_hour *hours, size_t n, uint64_t granularity_bytes,
		    struct wss_error *err);
