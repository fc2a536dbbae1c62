/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The replay: what recommend would have said at each hour of a guest's history, with its minimum and maximum,
 * growth beyond the windows, and rounding, each from the hours before alone.
 */
#pragma once

#include "sizing/advice.h"
#include "sizing/backtest.h"

struct wss_replay;

/*
 * Reads the hours of the guest's main series. options and policy must outlive the replay. Returns 1 with
 * *ret_replay for wss_replay_free(); 0 if the guest has no such hours, or windows that see only writes; -1:
 * WSS_ERR_NO_MEMORY and the errors of wss_history_series().
 */
int wss_replay_read(struct wss_history *history, const char *uuid,
		    const struct wss_advice_options *options, const struct wss_policy *policy,
		    struct wss_replay **ret_replay, struct wss_error *err);

/* Accepts NULL. */
void wss_replay_free(struct wss_replay *replay);

/* Returns the hours with their needs, ascending, and their number. */
const struct wss_backtest_hour *wss_replay_hours(const struct wss_replay *replay, size_t *ret_n);

/* Adds the days before that time that the history still has of the guest, as wss_backtest_options.begin does. */
void wss_replay_begin(struct wss_learner *learner, time_t start, void *opaque);

/* Returns the end of the last hour; 0 without hours. */
time_t wss_replay_end(const struct wss_replay *replay);

/* Returns the size, as wss_backtest_options.size_at does; opaque is the replay. */
uint64_t wss_replay_size(const struct wss_learned *learned, time_t start, void *opaque);
