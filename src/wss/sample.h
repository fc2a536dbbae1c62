/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The sample: what one window over one guest has shown. Plain data; a figure
 * that is not known is absent (known == false), never 0.
 */
#ifndef WSS_WSS_SAMPLE_H
#define WSS_WSS_SAMPLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "base/amount.h"
#include "base/error.h"

enum wss_quality {
	WSS_QUALITY_OK,
	WSS_QUALITY_DEGRADED,	 /* measured, but something widens its bounds: see the notes */
	WSS_QUALITY_UNSUPPORTED, /* cannot be measured here or this way: error says why */
	WSS_QUALITY_FAILED,	 /* was tried and failed: error says why */
};

enum wss_observes { WSS_OBSERVES_ACCESSES, WSS_OBSERVES_WRITES, WSS_OBSERVES_RESIDENCY };

/* What a figure says of the true one. */
enum wss_bound {
	WSS_BOUND_EXACT,
	WSS_BOUND_AT_MOST,  /* the true one may be smaller */
	WSS_BOUND_AT_LEAST, /* the true one may be larger */
};

/*
 * What value says of a size that lies between low and high, of which value is one; a bound that is
 * not known says nothing. Exact where value is both, or neither is known.
 */
enum wss_bound wss_bound_of(uint64_t value, struct wss_amount low, struct wss_amount high);

/* One point of the growth curve: touched within ns of arming. */
struct wss_curve_point {
	uint64_t ns;
	uint64_t bytes;
	/* Where the method only bounds it; both 0 where bytes is the figure itself. */
	uint64_t low_bytes, high_bytes;
};

#define WSS_CURVE_MAX 96
#define WSS_NOTES_MAX 8
#define WSS_NOTE_LEN 240

struct wss_sample {
	char domain[256];
	char uuid[37]; /* "" if unknown */
	time_t wall;
	enum wss_quality quality;
	struct wss_error error;	 /* set when quality is unsupported or failed */
	const char *method;	 /* static; NULL when none was chosen */
	enum wss_observes observes;
	struct wss_amount granularity_bytes; /* largest entry seen */
	uint64_t requested_window_ns;
	struct wss_amount window_ns; /* measured: middle of arming to middle of reading */
	struct wss_amount wss_bytes;
	struct wss_amount low_bytes;
	struct wss_amount high_bytes;
	const char *recorder; /* static, what counted: "bpf" or "counters"; NULL where it does not apply */
	struct wss_amount mapped_bytes; /* under KVM's entries, the most that its counters showed */
	/* Known exactly only where all three are; else there may be bounds. */
	struct wss_amount written_bytes;
	struct wss_amount written_low_bytes;
	struct wss_amount written_high_bytes;

	/*
	 * The same guest by the host's mappings, in a window of its own just before this one;
	 * known only where both were asked for.
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
		struct wss_amount balloon_bytes; /* what the guest has been left with */
		struct wss_amount rss_bytes;	 /* of guest RAM alone, as are pss, swap and huge */
		struct wss_amount pss_bytes;
		struct wss_amount swap_bytes;
		struct wss_amount huge_bytes;
		struct wss_amount qemu_bytes; /* resident memory of QEMU that is not guest RAM */
	} memory;

	struct {
		struct wss_amount arm_ns;  /* the guest's vCPUs may have waited this long */
		struct wss_amount read_ns;
		struct wss_amount faults; /* second-level faults in the window */
		struct wss_amount outside_faults; /* outside guest RAM, seen by the recorder */
		struct wss_amount predicted_stall_ns;
		struct wss_amount user_ns;   /* our own CPU time in the window */
		struct wss_amount system_ns; /* the walk of the zap is in here */
	} cost;

	size_t n_curve;
	struct wss_curve_point curve[WSS_CURVE_MAX];
	size_t n_notes;
	char notes[WSS_NOTES_MAX][WSS_NOTE_LEN];
};

/* "ok", "degraded", "unsupported", "failed". */
const char *wss_quality_name(enum wss_quality quality);

/* "accesses", "writes", "residency". */
const char *wss_observes_name(enum wss_observes observes);

/* True for ok and degraded: wss_bytes is known. */
bool wss_sample_measured(const struct wss_sample *sample);

/* Adds a note; the same text twice is kept once, and beyond WSS_NOTES_MAX notes are dropped. */
void wss_sample_note(struct wss_sample *sample, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* A note that also makes an ok sample degraded. */
void wss_sample_degrade(struct wss_sample *sample, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * Makes the sample unsupported (err's code is WSS_ERR_UNSUPPORTED) or failed (any
 * other) and takes the measured figures back: what is half measured is not shown.
 */
void wss_sample_fail(struct wss_sample *sample, const struct wss_error *err);

/*
 * Adds a point to the curve. Times rise; when the curve is full the new point replaces
 * the last one, so that the end of the window is always there.
 */
void wss_sample_curve_add(struct wss_sample *sample, uint64_t ns, uint64_t bytes);

/* The newest point of the curve is only known to lie from low to high; equal: it is exact. */
void wss_sample_curve_bound(struct wss_sample *sample, uint64_t low_bytes, uint64_t high_bytes);

/* Working set as a share of the balloon, 0..1 and above; absent when either is. */
bool wss_sample_share(const struct wss_sample *sample, double *ret_share);

/* Copies the figures of a window by the host's mappings into sample->native. */
void wss_sample_set_native(struct wss_sample *sample, const struct wss_sample *native);

/*
 * The bloat factor of large pages: working set by the host's mappings over that by 4 KiB. False
 * where one of them is not known, and where the host maps 4 KiB: there two windows differ by what
 * the guest did, not by its pages.
 */
bool wss_sample_bloat(const struct wss_sample *sample, double *ret_factor);

#endif
