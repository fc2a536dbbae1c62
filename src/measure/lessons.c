/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "measure/lessons.h"

#include <stdlib.h>

#include "base/number.h"

static void lesson_add(struct wss_lesson *lesson, uint64_t measured, uint64_t said)
{
	lesson->ratio[lesson->n++ % WSS_LESSONS_KEPT] = (double)measured / (double)said;
}

static int compare_ratios(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;

	return (left > right) - (left < right);
}

static double lesson_ratio(const struct wss_lesson *lesson)
{
	double sorted[WSS_LESSONS_KEPT];
	size_t n = 0;

	while (n < WSS_LESSONS_KEPT && n < lesson->n) {
		sorted[n] = lesson->ratio[n];
		n++;
	}
	if (n < WSS_LESSONS_KEPT)
		sorted[n++] = 1;
	qsort(sorted, n, sizeof(*sorted), compare_ratios);
	return sorted[(n - 1) / 2];
}

void wss_lessons_learn(struct wss_lessons *lessons, const struct wss_prediction *said,
		       const struct wss_amount *stall_ns, const struct wss_amount *faults)
{
	if (said->stall_ns && stall_ns->known && stall_ns->value)
		lesson_add(&lessons->stall, stall_ns->value, said->stall_ns);
	if (said->faults.known && said->faults.value && faults->known)
		lesson_add(&lessons->faults, faults->value, said->faults.value);
}

void wss_lessons_apply(const struct wss_lessons *lessons, struct wss_prediction *prediction)
{
	prediction->stall_ns =
		wss_u64_from_double((double)prediction->stall_ns * lesson_ratio(&lessons->stall));
	prediction->faults.value = wss_u64_min(
		prediction->faults.value, wss_u64_from_double((double)prediction->faults.value *
							      lesson_ratio(&lessons->faults)));
}

bool wss_lessons_raise_stall(const struct wss_lessons *lessons)
{
	return lesson_ratio(&lessons->stall) > 1;
}
