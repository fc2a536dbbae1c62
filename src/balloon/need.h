/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A guest's need for memory according to its history and policy. */
#pragma once

#include <stdint.h>

#include "base/amount.h"
#include "base/error.h"
#include "history/history.h"
#include "measure/policy.h"
#include "sizing/advice.h"

struct wss_need {
	enum wss_confidence confidence;
	uint64_t windows;			  /* number of windows behind this figure */
	uint64_t minimum_bytes, headroom_percent; /* from the policy */
	uint64_t needed_bytes;			  /* 0 if too little is known */
	enum wss_sizing_reason reason;		  /* what binds it */
	uint64_t period_s;			  /* between two rounds */
	/* Of the newest window. */
	struct wss_amount wss_bytes, rss_bytes, qemu_bytes;
	/*
	 * Time of that window, in seconds of wss_clock_now_ns(); negative if before this boot.
	 */
	int64_t time_s;
};

/*
 * Sizes the guest with this UUID by its history and policy. If history is NULL, only the
 * policy counts. Returns 0, or -1 with the errors of wss_advice_read().
 */
int wss_need_read(const struct wss_advice_options *options, struct wss_history *history,
		  const char *uuid, const struct wss_policy *policy, struct wss_need *ret_need,
		  struct wss_error *err);
