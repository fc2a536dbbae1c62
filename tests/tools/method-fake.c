/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A method that observes nothing: in its n-th window, from 0, the guest is said to have
 * touched 8 MiB from 16 + n MiB on, and to have written the first half of that. virt-wss-fake
 * is virt-wss with this file instead of src/track/tracker-list.c, so that tests see what the
 * real code does with a method that it does not know.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "track/methods.h"

#define PAGE 4096ULL
#define MIB_PAGES 256ULL
#define FIRST_PAGE (16 * MIB_PAGES)
#define TOUCHED_PAGES (8 * MIB_PAGES)
#define GUEST_PAGES (64 * MIB_PAGES)

struct fake {
	struct wss_tracker base;
	uint64_t windows;
	struct wss_pageset *touched;
	struct wss_pageset *written;
};

static const struct wss_tracker_ops wss_tracker_fake;

const struct wss_tracker_ops *const wss_trackers[] = {
	&wss_tracker_mmu,
	&wss_tracker_refs,
	&wss_tracker_fake,
	NULL,
};

static int fake_probe(const struct wss_host *host, struct wss_guest *guest, struct wss_error *err)
{
	(void)host;
	if (guest && guest->config.maximum_bytes < GUEST_PAGES * PAGE)
		return wss_error_set(err, WSS_ERR_UNSUPPORTED, "the guest is too small to be true");
	return 0;
}

static void fake_close(struct wss_tracker *tracker)
{
	struct fake *fake = (struct fake *)tracker;

	if (!fake)
		return;
	wss_pageset_free(fake->touched);
	wss_pageset_free(fake->written);
	free(fake);
}

static int fake_open(const struct wss_host *host, struct wss_guest *guest,
		     const struct wss_track_options *options, struct wss_tracker **ret_tracker,
		     struct wss_error *err)
{
	struct fake *fake = calloc(1, sizeof(*fake));

	(void)host;
	(void)guest;
	(void)options;
	if (!fake)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	fake->base.ops = &wss_tracker_fake;
	fake->touched = wss_pageset_new(GUEST_PAGES);
	fake->written = wss_pageset_new(GUEST_PAGES);
	if (!fake->touched || !fake->written) {
		fake_close(&fake->base);
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	}
	*ret_tracker = &fake->base;
	return 0;
}

static int fake_begin(struct wss_tracker *tracker, struct wss_span *ret_span, struct wss_error *err)
{
	struct fake *fake = (struct fake *)tracker;
	uint64_t first = FIRST_PAGE + fake->windows++ % 32 * MIB_PAGES;

	wss_pageset_remove(fake->touched, 0, GUEST_PAGES);
	wss_pageset_remove(fake->written, 0, GUEST_PAGES);
	if (wss_pageset_add(fake->touched, first, TOUCHED_PAGES) < 0 ||
	    wss_pageset_add(fake->written, first, TOUCHED_PAGES / 2) < 0)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	ret_span->start_ns = ret_span->end_ns = wss_clock_now_ns();
	return 0;
}

static int fake_poll(struct wss_tracker *tracker, struct wss_reading *ret_reading,
		     struct wss_error *err)
{
	uint64_t bytes = wss_pageset_count(((struct fake *)tracker)->touched) * PAGE;
	uint64_t now_ns = wss_clock_now_ns();

	(void)err;
	*ret_reading = (struct wss_reading){ .span = { now_ns, now_ns },
					     .wss_bytes = bytes,
					     .low_bytes = bytes,
					     .high_bytes = bytes,
					     .granularity_bytes = PAGE };
	return 0;
}

static void fake_pages(const struct wss_tracker *tracker, struct wss_page_view *ret_view)
{
	const struct fake *fake = (const struct fake *)tracker;

	ret_view->touched = wss_pages_of_set(fake->touched);
	ret_view->written = wss_pages_of_set(fake->written);
}

static void fake_explain(const struct wss_tracker *tracker, struct wss_sample *sample)
{
	uint64_t pages = wss_pageset_count(((const struct fake *)tracker)->written);

	sample->written_bytes = wss_amount_of(pages * PAGE);
	sample->written_low_bytes = sample->written_high_bytes = sample->written_bytes;
	wss_sample_note(sample, "nothing of this is true");
}

static const struct wss_tracker_ops wss_tracker_fake = {
	.name = "fake",
	.summary = "observes nothing and says the same of every guest",
	.observes = WSS_OBSERVES_ACCESSES,
	.granularity = "4 KiB",
	.cheap_poll = true,
	.probe = fake_probe,
	.open = fake_open,
	.begin = fake_begin,
	.poll = fake_poll,
	.pages = fake_pages,
	.explain = fake_explain,
	.close = fake_close,
};
