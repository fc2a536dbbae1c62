/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The budget: what measuring may cost a guest, and which window it may have next.
 *
 * Theory of operation. Dropping a guest's second-level mappings costs it twice: its vCPUs may wait while
 * the mappings are dropped (measure/stall.h), and afterwards each dropped entry that it touches again
 * costs a fault, whether the window is still open or not, and another one if it is read before it is
 * written and the kernel has soft-dirty tracking. Both are known before anything is dropped: the stall from
 * the number of resident entries, and the faults from the number of second-level entries. So a window is first of all
 * predicted, then either allowed, or put off until the budget covers it, or refused.
 *
 * A prediction may be wrong, also one that earlier windows have corrected (measure/lessons.h). Therefore a guest's pace
 * begins with a canary, the cheapest window there is, and only windows that cost no more than predicted lead to the next
 * kind:
 *
 *   canary --as predicted--> coarse --as predicted, and wanted--> fine
 *     ^                        |  ^                                 |
 *     +---dearer, twice--------+  +----------dearer, twice----------+
 *
 * Each time that two windows in a row were dearer than predicted, the period is doubled as well; a canary
 * that is still dearer after WSS_PACE_DOUBLINGS_MAX of them is the last one for a day.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct wss_budget {
	double guest_share;	/* of a guest's vCPU time, 0 to 1 */
	uint64_t stall_ns;	/* for which its vCPUs may wait at a time */
	uint64_t max_period_ns; /* a guest that could be measured only less often is refused */
};

#define WSS_BUDGET_INIT                                                                          \
	{                                                                                        \
		.guest_share = 0.005, .stall_ns = 20000000ULL, .max_period_ns = 3600000000000ULL \
	}

/* What a window costs a guest. */
struct wss_window_cost {
	uint64_t stall_ns;  /* for which its vCPUs wait at a time, the longest one */
	uint64_t faults;    /* second-level faults */
	uint64_t faults_ns; /* that they take */
	uint64_t vcpu_ns;   /* of all its vCPUs together: stall and faults */
};

/* Of n_vcpus (at least 1) that wait for stall_ns, then take faults of fault_ns each. */
struct wss_window_cost wss_window_cost_of(uint64_t stall_ns, uint64_t faults, double fault_ns,
					  unsigned n_vcpus);

/* From the cheapest to the dearest. */
enum wss_window_kind {
	WSS_WINDOW_CANARY, /* short, by the host's mappings */
	WSS_WINDOW_COARSE, /* of the usual length, by the host's mappings */
	WSS_WINDOW_FINE,   /* of the usual length, by 4 KiB */
};

/* "canary", "coarse", "fine". */
const char *wss_window_kind_name(enum wss_window_kind kind);

/* How often the period of a guest is doubled at most. */
#define WSS_PACE_DOUBLINGS_MAX 6
/* Windows in a row that cost what was predicted, until one doubling is taken back. */
#define WSS_PACE_GOOD 8
/*
 * A window is dearer than predicted if its stall, or its faults, take more than this many times as long, and exceed that
 * by this part of the longest stall that the budget allows. Smaller differences do no harm. Faults are counted, and not
 * timed on a host that may be busy, so for them it is never more than WSS_PACE_NOISE_FAULTS_NS.
 */
#define WSS_PACE_TOLERANCE 1.5
#define WSS_PACE_NOISE_PART 10
#define WSS_PACE_NOISE_FAULTS_NS 2000000ULL
/* What is refused for good behaviour that did not come is tried again after so long. */
#define WSS_PACE_RETRY_NS (86400 * 1000000000ULL)

/* How often and how thoroughly one guest is measured. All zero: a guest that nobody has measured yet. */
struct wss_pace {
	enum wss_window_kind kind; /* the dearest that is allowed next */
	unsigned dearer;	   /* windows in a row that cost more than predicted */
	unsigned good;		   /* windows in a row that did not, while doublings is not 0 */
	unsigned doublings;	   /* of the period */
	bool given_up;		   /* even canaries cost more than predicted */
};

/* What the budget says to the next window of a guest. */
enum wss_verdict {
	WSS_VERDICT_ALLOWED,
	WSS_VERDICT_STALL,  /* refused: its vCPUs would wait for too long at a time */
	WSS_VERDICT_VCPU,   /* refused: dearer than the budget of the longest period */
	WSS_VERDICT_DEARER, /* refused: windows cost more than predicted, again and again */
};

struct wss_window_plan {
	enum wss_verdict verdict;
	enum wss_window_kind kind; /* of the next window, no dearer than what was wanted */
	/*
	 * From the start of the last window to that of the next, at least the period that was asked
	 * for; where it is refused, until it is looked at again.
	 */
	uint64_t period_ns;
};

/*
 * Plans the next window of a guest with n_vcpus (at least 1): wanted is the kind it should have,
 * period_ns how often, predicted what the window would cost.
 */
struct wss_window_plan wss_pace_plan(const struct wss_pace *pace, const struct wss_budget *budget,
				     const struct wss_window_cost *predicted, unsigned n_vcpus,
				     enum wss_window_kind wanted, uint64_t period_ns);

/*
 * Takes account of a window of that kind which was measured: predicted before, and what it cost. Returns
 * whether it was dearer than predicted.
 */
bool wss_pace_account(struct wss_pace *pace, const struct wss_budget *budget,
		      enum wss_window_kind kind, const struct wss_window_cost *predicted,
		      const struct wss_window_cost *measured);

/* The guest is another than before: it has restarted, migrated, or got more memory. */
void wss_pace_reset(struct wss_pace *pace);
