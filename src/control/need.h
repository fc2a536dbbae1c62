/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a guest needs by its history and its policy. */
#ifndef WSS_CONTROL_NEED_H
#define WSS_CONTROL_NEED_H

#include <stdint.h>

#include "base/amount.h"
#include "base/error.h"
#include "service/advice.h"
#include "store/history.h"
#include "wss/policy.h"

struct wss_need {
	enum wss_confidence confidence;
	uint64_t windows;			  /* that this rests on */
	uint64_t minimum_bytes, headroom_percent; /* policy */
	uint64_t needed_bytes;			  /* 0 where too little is known */
	uint64_t period_s;			  /* between two rounds */
	/* Of the newest window, */
	struct wss_amount wss_bytes, rss_bytes, qemu_bytes;
	/* and when that was: in seconds of wss_clock_now_ns(), before its 0 for a window of an
	 * earlier boot. */
	int64_t time_s;
};

/*
 * Reads the history of the guest with this UUID, and sizes the guest by it and by its policy.
 * history may be NULL: then only the policy is known. 0, or -1 with the errors of
 * wss_advice_read().
 */
int wss_need_read(const struct wss_advice_options *options, struct wss_history *history,
		  const char *uuid, const struct wss_policy *policy, struct wss_need *ret_need,
		  struct wss_error *err);

#endif
