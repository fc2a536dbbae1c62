/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "balloon/edge.h"

#include "balloon/balloon-private.h"
#include "base/number.h"
#include "base/units.h"

/* Part of its size that a guest must still be able to give up, and the least. */
#define GUARD_PART 50
#define GUARD_LEAST (8 * WSS_MIB)
/* A guest this close to its guard has reached it. */
#define TOLERANCE WSS_MIB
/* What the guest's free memory may vary by meanwhile: a part of the step, and the least. */
#define SCAN_NOISE_PART 8
#define SCAN_NOISE_LEAST (2 * WSS_MIB)
/* Pressure on the host, beyond that at the full size, that makes an observation useless. */
#define PRESSURE_NOISE_PERMILLE 100

uint64_t wss_edge_guard(uint64_t size_bytes)
{
	return wss_u64_max(size_bytes / GUARD_PART, GUARD_LEAST);
}

/* What the guest usually does at its full size. */
struct base {
	struct wss_amount major_faults_per_s, swapped_bytes_per_s, read_bytes_per_s;
	struct wss_amount pressure_permille;
};

/* The two largest of some figures. */
struct largest {
	struct wss_amount first, second;
};

static void largest_add(struct largest *largest, struct wss_amount amount)
{
	if (!amount.known)
		return;
	if (!largest->first.known || amount.value > largest->first.value) {
		largest->second = largest->first;
		largest->first = amount;
	} else if (!largest->second.known || amount.value > largest->second.value) {
		largest->second = amount;
	}
}

/* Returns the number of points at the full size, before the first step. */
static size_t base_read(const struct wss_edge_point *points, size_t n, struct base *ret_base)
{
	struct largest faults = {.first = {0}}, swapped = faults, reads = faults, pressure = faults;
	size_t i;

	for (i = 0; i < n && points[i].size_bytes == points[0].size_bytes && !points[i].returned;
	     i++) {
		largest_add(&faults, points[i].major_faults_per_s);
		largest_add(&swapped, points[i].swapped_bytes_per_s);
		largest_add(&reads, points[i].read_bytes_per_s);
		largest_add(&pressure, points[i].pressure_permille);
	}
	/* Without the largest: a single burst would hide all paging. */
	*ret_base = (struct base){faults.second, swapped.second, reads.second, pressure.second};
	return i;
}

/*
 * Whether a rate exceeds the usual one. A rate that was unknown at the full size proves
 * nothing.
 */
static bool exceeds(struct wss_amount rate, struct wss_amount usual, uint64_t noise)
{
	return rate.known && usual.known &&
	       rate.value > wss_u64_add(usual.value + usual.value / 4, noise);
}

static bool point_is_disturbed(const struct wss_edge_point *point, const struct base *base)
{
	return exceeds(point->pressure_permille, base->pressure_permille, PRESSURE_NOISE_PERMILLE);
}

/* Returns the sign of paging in the rates of a point; NULL if there is none. */
static const char *rate_sign(const struct wss_edge_point *point, const struct base *base)
{
	uint64_t noise = WSS_BALLOON_FAULTS_PER_S;

	if (exceeds(point->swapped_bytes_per_s, base->swapped_bytes_per_s,
		    noise * WSS_BALLOON_PAGE_BYTES))
		return "the guest swaps";
	if (exceeds(point->major_faults_per_s, base->major_faults_per_s, noise))
		return "its major faults rise";
	if (exceeds(point->read_bytes_per_s, base->read_bytes_per_s,
		    noise * WSS_BALLOON_PAGE_BYTES))
		return "disk reads rose";
	return NULL;
}

static bool point_is_used_up(const struct wss_edge_point *point)
{
	return point->usable_bytes.known &&
	       point->usable_bytes.value <= wss_edge_guard(point->size_bytes) + TOLERANCE;
}

/* Returns a sign that one observation proves; NULL if there is none. */
static const char *certain_sign(const struct wss_edge_point *point)
{
	if (point->grew)
		return "it took memory back by itself";
	if (point->refused_bytes.known)
		return "it did not release more memory";
	if (point_is_used_up(point))
		return "it has little left to give up without swapping";
	return NULL;
}

/* All observations at one size. */
struct level {
	uint64_t size_bytes;
	size_t n, disturbed, paging;
	struct wss_amount free_bytes;	      /* the newest */
	const char *sign;		      /* of paging */
	const struct wss_edge_point *certain; /* observation that alone proves it */
};

/* Reads the level that begins with the first of the points. Returns the number of its points. */
static size_t level_read(const struct wss_edge_point *points, size_t n, const struct base *base,
			 struct level *ret_level)
{
	size_t i;

	*ret_level = (struct level){.size_bytes = points[0].size_bytes};
	for (i = 0; i < n && points[i].size_bytes == ret_level->size_bytes &&
		    points[i].returned == points[0].returned;
	     i++) {
		const char *certain = certain_sign(&points[i]);
		const char *sign = rate_sign(&points[i], base);

		if (points[i].free_bytes.known)
			ret_level->free_bytes = points[i].free_bytes;
		if (certain && !ret_level->certain) {
			ret_level->certain = &points[i];
			ret_level->sign = certain;
		}
		if (point_is_disturbed(&points[i], base)) {
			ret_level->disturbed++;
			continue;
		}
		ret_level->n++;
		ret_level->paging += sign != NULL;
		if (sign && !ret_level->sign)
			ret_level->sign = sign;
	}
	return i;
}

static enum wss_edge_verdict level_verdict(const struct level *level)
{
	size_t calm = level->n - level->paging, enough = (WSS_EDGE_LEVEL_POINTS + 1) / 2;

	if (level->certain || level->paging >= enough)
		return WSS_EDGE_PAGES;
	if (calm >= enough || (calm && !level->paging))
		return WSS_EDGE_CLEAR;
	return level->disturbed >= WSS_EDGE_LEVEL_POINTS ? WSS_EDGE_DISTURBED : WSS_EDGE_UNSURE;
}

enum wss_edge_verdict wss_edge_judge(const struct wss_edge_point *points, size_t n)
{
	size_t base_n, at = n - 1;
	struct level level;
	struct base base;

	base_n = base_read(points, n, &base);
	if (base_n == n) {
		if (certain_sign(&points[at]))
			return WSS_EDGE_PAGES;
		return n < WSS_EDGE_BASE_POINTS ? WSS_EDGE_UNSURE : WSS_EDGE_CLEAR;
	}
	while (at > 0 && points[at - 1].size_bytes == points[n - 1].size_bytes &&
	       points[at - 1].returned == points[n - 1].returned)
		at--;
	level_read(points + at, n - at, &base, &level);
	return level_verdict(&level);
}

/* Sets the bounds of an edge and its middle. */
static void edge_set(struct wss_edge *edge, uint64_t low_bytes, uint64_t high_bytes,
		     const char *sign)
{
	*edge = (struct wss_edge){
		.edge_bytes = wss_amount_of(low_bytes + (high_bytes - low_bytes) / 2),
		.low_bytes = wss_amount_of(low_bytes),
		.high_bytes = wss_amount_of(high_bytes),
		.sign = sign,
	};
}

static void edge_lose(struct wss_edge *edge, const char *reason)
{
	*edge = (struct wss_edge){.reason = reason};
}

/* Sets the edge of a guest that pages at this level. high_bytes: the size of the level above. */
static void paging_set(struct wss_edge *edge, const struct level *level, uint64_t high_bytes)
{
	const struct wss_edge_point *point = level->certain;
	uint64_t low = level->size_bytes, high = high_bytes;

	if (point && !point->grew && point->refused_bytes.known) {
		low = wss_u64_min(point->refused_bytes.value, low);
		high = level->size_bytes;
	} else if (point && !point->grew) {
		/* It does not page here, but would without what it can give up. */
		low -= wss_u64_min(point->usable_bytes.value, low);
		high = level->size_bytes;
	}
	edge_set(edge, low, high, level->sign);
}

/* What is known of scanning, from the full size down. */
struct scan {
	enum {
		SCAN_NOT_YET,
		SCAN_MAYBE, /* at the last level, for the first time */
		SCAN_YES,
	} state;
	uint64_t low_bytes;
	struct wss_amount high_bytes;
	/* At the last level with a known figure. */
	uint64_t size_bytes, free_bytes;
};

/* Whether a part of the step to this level did not come from free memory. */
static bool level_scans(const struct scan *scan, const struct level *level)
{
	uint64_t step = scan->size_bytes - level->size_bytes;
	uint64_t free_bytes = level->free_bytes.value, given;

	given = scan->free_bytes > free_bytes ? scan->free_bytes - free_bytes : 0;
	return given + wss_u64_max(step / SCAN_NOISE_PART, SCAN_NOISE_LEAST) < step;
}

/*
 * A single level that scans, with one below it that does not, is a guest that has freed memory
 * meanwhile.
 */
static void scan_follow(struct scan *scan, const struct level *level)
{
	if (!level->free_bytes.known || scan->state == SCAN_YES)
		return;
	if (!scan->high_bytes.known || !level_scans(scan, level)) {
		scan->state = SCAN_NOT_YET;
		scan->high_bytes = wss_amount_of(level->size_bytes);
	} else if (scan->state == SCAN_MAYBE) {
		scan->state = SCAN_YES;
	} else {
		scan->state = SCAN_MAYBE;
		scan->low_bytes = level->size_bytes;
	}
	scan->size_bytes = level->size_bytes;
	scan->free_bytes = level->free_bytes.value;
}

static void scan_conclude(const struct scan *scan, struct wss_edge *ret_edge)
{
	if (!scan->high_bytes.known)
		edge_lose(ret_edge, "it does not report its free memory");
	else if (scan->state == SCAN_NOT_YET)
		*ret_edge = (struct wss_edge){.high_bytes = scan->high_bytes,
					      .reason = "it had free memory at every size"};
	else
		edge_set(ret_edge, scan->low_bytes, scan->high_bytes.value,
			 "its free memory no longer falls");
}

/* Follows paging to the next level down. */
static void paging_follow(struct wss_edge *edge, const struct level *level, bool first)
{
	enum wss_edge_verdict verdict = level_verdict(level);

	/* The full size is the measure of all rates, so only certain signs count. */
	if (first && !level->certain)
		verdict = WSS_EDGE_CLEAR;
	if (edge->sign)
		return;
	if (verdict == WSS_EDGE_PAGES)
		paging_set(edge, level, first ? level->size_bytes : edge->high_bytes.value);
	else if (verdict == WSS_EDGE_CLEAR)
		edge->high_bytes = wss_amount_of(level->size_bytes);
	else if (verdict == WSS_EDGE_DISTURBED)
		edge->reason = "the host itself was short of memory";
}

/* Whether paging has ended after the guest got all its memory back, or was not watched then. */
static bool paging_has_ended(const struct wss_edge_point *points, size_t n, const struct base *base)
{
	const struct wss_edge_point *last = &points[n - 1];

	return !last->returned || (!rate_sign(last, base) && !point_is_disturbed(last, base));
}

void wss_edges_find(const struct wss_edge_point *points, size_t n, struct wss_edges *ret_edges)
{
	struct wss_edges edges = {.paging.reason = "it did not page at any size"};
	struct scan scan = {.state = SCAN_NOT_YET};
	struct base base;

	if (base_read(points, n, &base) < WSS_EDGE_BASE_POINTS) {
		edge_lose(&edges.scanning, "too few observations at its full size");
		edge_lose(&edges.paging, "too few observations at its full size");
		*ret_edges = edges;
		return;
	}
	for (size_t i = 0; i < n && !points[i].returned;) {
		struct level level;
		size_t taken = level_read(points + i, n - i, &base, &level);

		scan_follow(&scan, &level);
		paging_follow(&edges.paging, &level, i == 0);
		i += taken;
	}
	scan_conclude(&scan, &edges.scanning);
	if (edges.paging.sign && !paging_has_ended(points, n, &base))
		edge_lose(&edges.paging, "the signs of paging did not end at its full size");
	*ret_edges = edges;
}
