/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "recording/writer.h"

/*
 * A run of indices may span holes between regions, in which case it becomes several runs of
 * frame numbers.
 */
static int put_run(struct wss_recwriter *writer, const struct wss_recording *recording,
		   enum wss_change change, struct wss_run run, struct wss_error *err)
{
	while (run.n) {
		uint64_t first, room, n;
		size_t i = wss_recording_region(recording, run.first, &first);

		if (i == recording->n_regions)
			return wss_error_set(err, WSS_ERR_FAILED,
					     "a page outside the guest's memory");
		room = first + (recording->regions[i].length >> WSS_PAGE_SHIFT) - run.first;
		n = run.n < room ? run.n : room;
		if (wss_recwriter_room(writer, (struct wss_run){run.first, n}, err) < 0 ||
		    wss_recwriter_change(writer, change,
					 (recording->regions[i].start >> WSS_PAGE_SHIFT) +
						 (run.first - first),
					 n, err) < 0)
			return -1;
		run.first += n;
		run.n -= n;
	}
	return 0;
}

static int put_difference(struct wss_recwriter *writer, const struct wss_recording *recording,
			  enum wss_change change, const struct wss_pageset *set,
			  const struct wss_pageset *without, struct wss_error *err)
{
	struct wss_run run = {0, 0};

	while (wss_pageset_next(set, without, run.first + run.n, &run))
		if (put_run(writer, recording, change, run, err) < 0)
			return -1;
	return 0;
}

int wss_recwriter_delta(struct wss_recwriter *writer, const struct wss_recording *recording,
			enum wss_change change, const struct wss_pageset *before,
			const struct wss_pageset *after, struct wss_error *err)
{
	if (put_difference(writer, recording, change, after, before, err) < 0)
		return -1;
	return put_difference(writer, recording, (enum wss_change)(change + 1), before, after, err);
}
