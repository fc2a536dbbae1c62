/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "cold/cold-timeline.h"

#include "base/number.h"
#include "pages/recording.h"

#define S 1000000000ULL
/* A merged slot is at most this fraction of its age long, at first. */
#define RESOLUTION 32

static const struct {
	const char *name;
	uint64_t ns;
} ages[WSS_COLD_AGES] = {
	[WSS_COLD_2MIN] = {"2m", 120 * S},	 [WSS_COLD_10MIN] = {"10m", 600 * S},
	[WSS_COLD_1H] = {"1h", 3600 * S},	 [WSS_COLD_24H] = {"24h", 86400 * S},
	[WSS_COLD_SINCE_WATCHED] = {"never", 0},
};

const char *wss_cold_age_name(enum wss_cold_age age)
{
	return ages[age].name;
}

uint16_t wss_cold_timeline_add(struct wss_cold_timeline *timeline, uint64_t start_ns,
			       uint64_t end_ns, bool follows)
{
	struct wss_cold_slot *slot = &timeline->slots[timeline->n];
	uint64_t seam_ns = follows ? WSS_COLD_LONG_SEAM_NS : WSS_COLD_SEAM_NS;
	uint64_t before_ns = timeline->n ? slot[-1].end_ns : 0;

	start_ns = wss_u64_max(start_ns, before_ns);
	if (end_ns <= start_ns)
		return 0;
	*slot = (struct wss_cold_slot){
		.start_ns = start_ns, .end_ns = end_ns, .observed_ns = end_ns - start_ns};
	if (timeline->n && start_ns - before_ns <= seam_ns)
		slot[-1].end_ns = start_ns;
	timeline->last_window_ns = end_ns - start_ns;
	return (uint16_t)++timeline->n;
}

static void slot_append(struct wss_cold_slot *slot, const struct wss_cold_slot *next)
{
	slot->holes = slot->holes || next->holes || next->start_ns > slot->end_ns;
	slot->end_ns = next->end_ns;
	slot->observed_ns += next->observed_ns;
	slot->pages += next->pages;
}

/* Merges what may be at most as long as its age times factor / RESOLUTION. */
static void timeline_merge_once(struct wss_cold_timeline *timeline, uint64_t factor,
				uint16_t *serials)
{
	uint64_t now_ns = timeline->slots[timeline->n - 1].end_ns;
	uint16_t moved[WSS_COLD_SLOTS_MAX + 1] = {0};
	size_t kept = 0;

	for (size_t i = 0; i < timeline->n; i++) {
		const struct wss_cold_slot *slot = &timeline->slots[i];
		struct wss_cold_slot *last = &timeline->slots[kept - !!kept];
		uint64_t age_ns = now_ns - slot->end_ns;

		if (kept &&
		    slot->end_ns - last->start_ns <= wss_u64_mul(age_ns, factor) / RESOLUTION)
			slot_append(last, slot);
		else
			timeline->slots[kept++] = *slot;
		moved[i + 1] = (uint16_t)kept;
	}
	timeline->n = kept;
	for (size_t i = 0; i <= WSS_COLD_SLOTS_MAX; i++)
		serials[i] = moved[serials[i]];
}

void wss_cold_timeline_merge(struct wss_cold_timeline *timeline,
			     uint16_t ret_serials[WSS_COLD_SLOTS_MAX + 1])
{
	for (size_t i = 0; i <= WSS_COLD_SLOTS_MAX; i++)
		ret_serials[i] = i <= timeline->n ? (uint16_t)i : 0;
	for (uint64_t factor = 1; timeline->n > WSS_COLD_SLOTS_MAX / 4 * 3; factor *= 2)
		timeline_merge_once(timeline, factor, ret_serials);
}

bool wss_cold_timeline_valid(const struct wss_cold_timeline *timeline, uint64_t n_pages,
			     uint64_t now_ns)
{
	uint64_t pages = wss_u64_add(timeline->never_pages, timeline->absent_pages), end_ns = 0;

	if (timeline->n > WSS_COLD_SLOTS_MAX || timeline->taken_bytes > WSS_BYTES_MAX)
		return false;
	for (size_t i = 0; i < timeline->n; i++) {
		const struct wss_cold_slot *slot = &timeline->slots[i];

		if (slot->start_ns < end_ns || slot->end_ns <= slot->start_ns ||
		    slot->end_ns > now_ns || !slot->observed_ns ||
		    slot->observed_ns > slot->end_ns - slot->start_ns)
			return false;
		end_ns = slot->end_ns;
		pages = wss_u64_add(pages, slot->pages);
	}
	return pages == n_pages && timeline->last_window_ns <= end_ns &&
	       (timeline->granularity_bytes >= WSS_PAGE_BYTES || !timeline->n) &&
	       timeline->granularity_bytes <= WSS_BYTES_MAX;
}

/* Whether all time from cut_ns to as_of_ns was observed, but for seams. */
static bool timeline_is_whole(const struct wss_cold_timeline *timeline, uint64_t cut_ns,
			      uint64_t as_of_ns)
{
	uint64_t next_ns = as_of_ns;

	for (size_t i = timeline->n; i-- && next_ns > cut_ns;) {
		const struct wss_cold_slot *slot = &timeline->slots[i];

		if (slot->end_ns < next_ns || slot->holes)
			return false;
		next_ns = slot->start_ns;
	}
	return next_ns <= cut_ns;
}

/* How much of the time from cut_ns on was observed. */
static double timeline_observed_ns(const struct wss_cold_timeline *timeline, uint64_t cut_ns)
{
	double observed_ns = 0;

	for (size_t i = timeline->n; i--;) {
		const struct wss_cold_slot *slot = &timeline->slots[i];
		double part = 1;

		if (slot->end_ns <= cut_ns)
			break;
		if (slot->start_ns < cut_ns)
			part = (double)(slot->end_ns - cut_ns) /
			       (double)(slot->end_ns - slot->start_ns);
		observed_ns += part * (double)slot->observed_ns;
	}
	return observed_ns;
}

static void report_pages(const struct wss_cold_timeline *timeline, uint64_t cut_ns,
			 uint64_t *ret_low_pages, uint64_t *ret_high_pages)
{
	bool watched = timeline->slots[0].start_ns <= cut_ns;

	*ret_low_pages = watched ? timeline->never_pages : 0;
	*ret_high_pages = timeline->never_pages;
	for (size_t i = 0; i < timeline->n; i++) {
		const struct wss_cold_slot *slot = &timeline->slots[i];

		*ret_low_pages += slot->end_ns <= cut_ns ? slot->pages : 0;
		*ret_high_pages += slot->start_ns <= cut_ns ? slot->pages : 0;
	}
}

static void report_age(const struct wss_cold_timeline *timeline, enum wss_cold_age age,
		       struct wss_cold_report *report)
{
	struct wss_cold_class *class = &report->ages[age];
	uint64_t as_of_ns = report->as_of_ns, cut_ns, low_pages, high_pages;
	uint64_t age_ns = ages[age].ns;

	if (age == WSS_COLD_SINCE_WATCHED) {
		cut_ns = report->since_ns;
		age_ns = as_of_ns - cut_ns;
		low_pages = high_pages = timeline->never_pages;
	} else {
		/* Before the host was started nothing was touched, nor observed. */
		cut_ns = as_of_ns > age_ns ? as_of_ns - age_ns : 0;
		report_pages(timeline, cut_ns, &low_pages, &high_pages);
	}
	class->observed = timeline_observed_ns(timeline, cut_ns) / (double)age_ns;
	class->high_bytes = high_pages << WSS_PAGE_SHIFT;
	class->low_bytes = low_pages << WSS_PAGE_SHIFT;
	class->low_bytes -= wss_u64_min(class->low_bytes, timeline->taken_bytes);
	class->whole = timeline_is_whole(timeline, cut_ns, as_of_ns);
	if (!class->whole)
		class->low_bytes = 0;
}

static uint64_t timeline_pages(const struct wss_cold_timeline *timeline)
{
	uint64_t pages = timeline->never_pages;

	for (size_t i = 0; i < timeline->n; i++)
		pages += timeline->slots[i].pages;
	return pages;
}

bool wss_cold_watched(const struct wss_cold_report *report, enum wss_cold_age age)
{
	return report->as_of_ns - report->since_ns >= ages[age].ns;
}

struct wss_amount wss_cold_low(const struct wss_cold_report *report, enum wss_cold_age age)
{
	return (struct wss_amount){wss_cold_watched(report, age), report->ages[age].low_bytes};
}

struct wss_amount wss_cold_high(const struct wss_cold_report *report, enum wss_cold_age age)
{
	return (struct wss_amount){wss_cold_watched(report, age), report->ages[age].high_bytes};
}

bool wss_cold_timeline_report(const struct wss_cold_timeline *timeline, uint64_t now_ns,
			      struct wss_cold_report *ret_report)
{
	uint64_t end_ns;

	if (!timeline->n)
		return false;
	end_ns = timeline->slots[timeline->n - 1].end_ns;
	*ret_report = (struct wss_cold_report){
		.as_of_ns = end_ns,
		.since_ns = timeline->slots[0].start_ns,
		.held_bytes = timeline_pages(timeline) << WSS_PAGE_SHIFT,
		.absent_bytes = timeline->absent_pages << WSS_PAGE_SHIFT,
		.granularity_bytes = timeline->granularity_bytes,
		.no_memory = timeline->no_memory,
	};
	if (now_ns > end_ns && now_ns - end_ns > timeline->last_window_ns + WSS_COLD_SEAM_NS)
		ret_report->as_of_ns = now_ns;
	for (size_t i = 0; i < WSS_COLD_AGES; i++)
		report_age(timeline, (enum wss_cold_age)i, ret_report);
	return true;
}
