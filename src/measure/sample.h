/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Sample: the result of one window over one guest. Plain data; an unknown figure has known ==
 * false, and is never 0.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "base/amount.h"
#include "base/bound.h"
#include "base/error.h"

enum wss_quality {
	WSS_QUALITY_OK,
	WSS_QUALITY_DEGRADED,	 /* measured, but the notes say what widens its bounds */
	WSS_QUALITY_UNSUPPORTED, /* cannot be measured here or in this way: error says why */
	WSS_QUALITY_FAILED,	 /* the measurement failed: error says why */
};

enum wss_observes { WSS_OBSERVES_ACCESSES, WSS_OBSERVES_WRITES, WSS_OBSERVES_RESIDENCY };

/* Point of the growth curve: bytes touched within ns of arming. */
struct wss_curve_point {
	uint64_t ns;
	uint64_t bytes;
	/* Bounds, if the method only gives bounds; both 0 if bytes is exact. */
	uint64_t low_bytes, high_bytes;
};

/* Room for the name of a method with its final NUL. */
#define WSS_METHOD_NAME_MAX 16

#define WSS_CURVE_MAX 96
#define WSS_NOTES_MAX 8
#define WSS_NOTE_LEN 240

struct wss_sample {
	char domain[256];
	char uuid[37]; /* "" if unknown */
	time_t wall;
	enum wss_quality quality;
	struct wss_error error; /* set when quality is unsupported or failed */
	bool stood_still;   /* the guest could not run for a part of the window: a note says why */
	const char *method; /* static; NULL if none was chosen */
	enum wss_observes observes;
	struct wss_amount granularity_bytes; /* size of the largest entry */
	uint64_t requested_window_ns;
	struct wss_amount window_ns; /* as measured, from the middle of arming to the middle of
					reading */
	struct wss_amount wss_bytes;
	struct wss_amount low_bytes;
	struct wss_amount high_bytes;
	const char *recorder;		/* static: "bpf" or "counters"; NULL if not applicable */
	struct wss_amount mapped_bytes; /* memory under KVM's entries, the largest value of its
					   counters */
	/* Exact only if all three are known; else there may be bounds. */
	struct wss_amount written_bytes;
	struct wss_amount written_low_bytes;
	struct wss_amount written_high_bytes;

	/*
	 * The same guest by the host's mappings, from a separate window right before this one;
	 * known only if both granularities were requested.
	 */
	struct {
		struct wss_amount granularity_bytes;
		struct wss_amount window_ns;
		struct wss_amount wss_bytes;
		struct wss_amount low_bytes;
		struct wss_amount high_bytes;
	} native;

	struct {
		struct wss_amount maximum_bytes;
		struct wss_amount balloon_bytes; /* memory that the balloon leaves to the guest */
		/* Of that, what its kernel cannot give up without swapping, as it says itself. */
		struct wss_amount unreclaimable_bytes;
		struct wss_amount cache_bytes; /* page cache that it could give up */
		/* What its kernel keeps (wss_balloon_stats_reserve()). */
		struct wss_amount reserve_bytes;
		struct wss_amount rss_bytes; /* guest RAM only, as are pss, swap and huge */
		struct wss_amount pss_bytes;
		struct wss_amount swap_bytes;
		struct wss_amount huge_bytes;
		struct wss_amount qemu_bytes; /* resident memory of QEMU that is not guest RAM */
	} memory;

	struct {
		struct wss_amount arm_ns; /* time for which the guest's vCPUs may have stalled */
		struct wss_amount read_ns;
		struct wss_amount faults; /* second-level faults in the window */
		struct wss_amount predicted_stall_ns;
		struct wss_amount predicted_faults;
		/* For which QEMU's page tables were walked: by the method, and for memory figures. */
		uint64_t memory_ns;
		struct wss_amount user_ns;   /* CPU time of virt-wss in the window */
		struct wss_amount system_ns; /* includes the walk of the zap */
	} cost;

	/* At the end, because most of it is empty: see wss_sample_copy(). */
	size_t n_notes, n_curve;
	char notes[WSS_NOTES_MAX][WSS_NOTE_LEN];
	struct wss_curve_point curve[WSS_CURVE_MAX];
};

/* Copies a sample: of its notes and its curve only what there is, which is a tenth of it most often. */
void wss_sample_copy(struct wss_sample *ret_copy, const struct wss_sample *sample);

/* "ok", "degraded", "unsupported", "failed". */
const char *wss_quality_name(enum wss_quality quality);

/* "accesses", "writes", "residency". */
const char *wss_observes_name(enum wss_observes observes);

/* Whether wss_bytes is known: true for ok and degraded. */
bool wss_sample_measured(const struct wss_sample *sample);

/* A working set as far as it can be relied on. */
struct wss_working_set {
	struct wss_amount bytes, low_bytes, high_bytes;
	enum wss_bound bound; /* of bytes */
};

/*
 * Returns what may be shown, judged and added up as the working set: that of a degraded sample may be wrong, except that
 * the guest touched its lower bound at least.
 */
struct wss_working_set wss_sample_figure(const struct wss_sample *sample);

/* Adds a note; duplicates are dropped, and so are notes beyond WSS_NOTES_MAX. */
void wss_sample_note(struct wss_sample *sample, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Adds a note and makes an ok sample degraded. */
void wss_sample_degrade(struct wss_sample *sample, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * Makes the sample unsupported (err's code is WSS_ERR_UNSUPPORTED) or failed (any other) and
 * clears the measured figures, which would be incomplete.
 */
void wss_sample_fail(struct wss_sample *sample, const struct wss_error *err);

/*
 * Adds a point to the curve. Times ascend; a full curve replaces its last point, so that the
 * end of the window is always included.
 */
void wss_sample_curve_add(struct wss_sample *sample, uint64_t ns, uint64_t bytes);

/* Marks the newest point of the curve as bounded by low and high; equal bounds make it exact. */
void wss_sample_curve_bound(struct wss_sample *sample, uint64_t low_bytes, uint64_t high_bytes);

/* Returns the working set as a share of the balloon, 0 to 1 and above; unknown if either is. */
bool wss_sample_share(const struct wss_sample *sample, double *ret_share);

/* Copies the figures of a window by the host's mappings into sample->native. */
void wss_sample_set_native(struct wss_sample *sample, const struct wss_sample *native);

/*
 * Computes the bloat factor of large pages: the working set by the host's mappings divided by
 * that by 4 KiB. Returns false if either is unknown, or if the host maps 4 KiB, where the two
 * windows differ by the guest's activity, not by page size.
 */
bool wss_sample_bloat(const struct wss_sample *sample, double *ret_factor);
