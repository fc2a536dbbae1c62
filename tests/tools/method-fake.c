/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A method that observes nothing: it claims that in its n-th window, from 0, the guest touched
 * 8 MiB from 16 + n MiB on and wrote the first half of that. Options of its own change these
 * sizes, and what the method claims to know. virt-wss-fake is virt-wss with this file instead of
 * src/measure/tracker-list.c, so that tests see what the real code does with a method that it does
 * not know.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/units.h"
#include "measure/methods.h"

#define PAGE 4096ULL
#define MIB_PAGES 256ULL
#define FIRST_PAGE (16 * MIB_PAGES)
#define TOUCHED_MIB 8
#define TOUCHED_MIB_MAX 16
#define GUEST_PAGES (64 * MIB_PAGES)

/* What the method says of the touched set. */
enum bounds { BOUNDS_EXACT, BOUNDS_MOST, BOUNDS_LEAST };

struct fake {
	struct wss_tracker base;
	enum bounds bounds;
	uint64_t touched_pages;
	uint64_t guest_bytes;
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

static int fake_parse_touched(const char *text, const char *what, uint64_t *ret_value,
			      struct wss_error *err)
{
	return wss_number_parse(text, 1, TOUCHED_MIB_MAX, what, ret_value, err);
}

static int fake_parse_bounds(const char *text, const char *what, uint64_t *ret_value,
			     struct wss_error *err)
{
	static const char *const words[] = {
		[BOUNDS_EXACT] = "exact",
		[BOUNDS_MOST] = "most",
		[BOUNDS_LEAST] = "least",
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (!strcmp(text, words[i])) {
			*ret_value = i;
			return 0;
		}
	return wss_error_set(err, WSS_ERR_USAGE, "%s: '%s' is not exact, most or least", what,
			     text);
}

enum { OPTION_TOUCHED, OPTION_BOUNDS };

static const struct wss_method_option fake_options[] = {
	[OPTION_TOUCHED] = {"touched", "MiB touched in a window, from 1 to 16; default 8",
			    fake_parse_touched, TOUCHED_MIB},
	[OPTION_BOUNDS] = {"bounds", "what is known: exact, at most or at least; default exact",
			   fake_parse_bounds, BOUNDS_EXACT},
	{NULL, NULL, NULL, 0},
};

static int fake_open(const struct wss_host *host, struct wss_guest *guest,
		     const struct wss_track_options *options, struct wss_tracker **ret_tracker,
		     struct wss_error *err)
{
	struct fake *fake = calloc(1, sizeof(*fake));

	(void)host;
	if (!fake)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	fake->base.ops = &wss_tracker_fake;
	fake->guest_bytes = guest->config.maximum_bytes;
	fake->touched_pages =
		wss_tracker_option(&wss_tracker_fake, options, OPTION_TOUCHED) * MIB_PAGES;
	fake->bounds = (enum bounds)wss_tracker_option(&wss_tracker_fake, options, OPTION_BOUNDS);
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
	if (wss_pageset_add(fake->touched, first, fake->touched_pages) < 0 ||
	    wss_pageset_add(fake->written, first, fake->touched_pages / 2) < 0)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	ret_span->start_ns = ret_span->end_ns = wss_clock_now_ns();
	return 0;
}

static int fake_poll(struct wss_tracker *tracker, struct wss_reading *ret_reading,
		     struct wss_error *err)
{
	const struct fake *fake = (struct fake *)tracker;
	uint64_t bytes = wss_pageset_count(fake->touched) * PAGE;
	uint64_t now_ns = wss_clock_now_ns();

	(void)err;
	*ret_reading = (struct wss_reading){
		.span = {now_ns, now_ns},
		.wss_bytes = bytes,
		.low_bytes = fake->bounds == BOUNDS_MOST ? 0 : bytes,
		.high_bytes = fake->bounds == BOUNDS_LEAST ? fake->guest_bytes : bytes,
		.granularity_bytes = PAGE,
	};
	return 0;
}

static void fake_pages(const struct wss_tracker *tracker, struct wss_page_view *ret_view)
{
	const struct fake *fake = (const struct fake *)tracker;

	/* Not each of them is known. */
	if (fake->bounds != BOUNDS_EXACT)
		return;
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
	.costs = "nothing",
	.limits = "everywhere",
	.options = fake_options,
	.cheap_poll = true,
	.probe = fake_probe,
	.open = fake_open,
	.begin = fake_begin,
	.poll = fake_poll,
	.pages = fake_pages,
	.explain = fake_explain,
	.close = fake_close,
};
