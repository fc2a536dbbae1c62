/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A prior for guests whose own history is too short: what guests of the same title, or else of the same operating
 * system, are recommended. It is no measurement of the guest.
 */
#ifndef WSS_WSS_PRIOR_H
#define WSS_WSS_PRIOR_H

#include <stddef.h>
#include <stdint.h>

#include "base/amount.h"
#include "base/error.h"
#include "wss/sizing.h"

#define WSS_PRIOR_GUESTS_MIN 3
/* The prior suffices for this share of them. */
#define WSS_PRIOR_PERCENTILE 0.9

/* Empty texts are alike to none. */
struct wss_prior_guest {
	const char *uuid, *title, *os;
	uint64_t bytes; /* what it is recommended */
};

enum wss_prior_kind { WSS_PRIOR_NONE, WSS_PRIOR_TITLE, WSS_PRIOR_OS };

/* Returns "none", "title", "os". */
const char *wss_prior_kind_name(enum wss_prior_kind kind);

struct wss_prior {
	enum wss_prior_kind kind;
	size_t guests;		 /* that it is from; unless NONE */
	struct wss_amount bytes; /* what suffices for most of them; unless NONE */
};

/* The size that a guest can be given by its prior. */
struct wss_prior_size {
	struct wss_amount bytes; /* unknown without a prior */
	/* The reason for the size: WSS_SIZING_PERCENTILE (of the similar guests), MINIMUM, ROUNDING or MAXIMUM. */
	enum wss_sizing_reason reason;
};

/* Finds the prior of a guest, whose bytes do not count, among n others; itself is left out. WSS_ERR_NO_MEMORY. */
int wss_prior_find(const struct wss_prior_guest *guests, size_t n, const struct wss_prior_guest *guest,
		   struct wss_prior *ret_prior, struct wss_error *err);

/*
 * Returns the size by a prior, at least the rule's minimum, rounded, and at most the policy's maximum and the
 * guest's own memory, maximum_bytes: similar guests may have more.
 */
struct wss_prior_size wss_prior_size(const struct wss_prior *prior, const struct wss_sizing_rule *rule,
				     const struct wss_policy *policy,
				     struct wss_amount maximum_bytes);

#endif
