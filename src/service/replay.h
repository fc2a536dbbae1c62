/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The replay: what recommend would have said at each hour of a guest's history, with its minimum and maximum,
 * the miss-rate curve, growth beyond the windows, and rounding, each from the hours before alone.
 */
#ifndef WSS_SERVICE_REPLAY_H
#define WSS_SERVICE_REPLAY_H

#include "service/advice.h"
#include "wss/backtest.h"

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

/* Returns the end of the last hour; 0 without hours. */
time_t wss_replay_end(const struct wss_replay *replay);

/*
 * Whether what was learned counts as if the windows had growth curves that have ended, also with a headroom in the
 * policy: for rules that are tried out. false at first.
 */
void wss_replay_force_learned(struct wss_replay *replay, bool force);

/* Returns the size, as wss_backtest_options.size_at does; opaque is the replay. */
uint64_t wss_replay_size(const struct wss_learned *learned, time_t start, void *opaque);

/*
 * Predicts the share of time that the guest loses in the hour that starts at that time if it has so much memory,
 * by the hours before, as wss_missrate_at(). Returns false without a miss-rate curve.
 */
bool wss_replay_loss(struct wss_replay *replay, time_t start, uint64_t bytes, double *ret_share,
		     bool *ret_bound);

/*
 * Finds the guest's major faults of that hour, a count per second, and what the hours before predict for the
 * memory that it had. Returns false if either is unknown.
 */
bool wss_replay_faults(struct wss_replay *replay, time_t start, double *ret_seen,
		       double *ret_predicted);

#endif
