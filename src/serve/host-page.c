/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "serve/host-page.h"

#include <limits.h>
#include <unistd.h>

#include "base/number.h"
#include "host/host.h"
#include "serve/guests-page.h"
#include "serve/page-json.h"

#define SCHEMA "virt-wss/host/1"

/* A figure of all guests: the sum over those of which it is known. */
struct sum {
	uint64_t guests, bytes;
};

struct sums {
	size_t states[WSS_WATCHED_STATES];
	uint64_t measured, stale;
	struct sum wss, wss_low, wss_high, balloon, maximum, rss, swap, recommended, reclaimable;
	struct wss_watch_spent spent;
};

static void sum_add(struct sum *sum, struct wss_amount amount)
{
	if (!amount.known)
		return;
	sum->guests++;
	sum->bytes = wss_u64_add(sum->bytes, amount.value);
}

/* An upper limit that is not known is none for the sum, either. */
static void sums_add_wss(struct sums *sums, const struct wss_sample *sample)
{
	struct wss_working_set figure = wss_sample_figure(sample);
	bool bounded = figure.low_bytes.known || figure.high_bytes.known;

	sum_add(&sums->wss, figure.bytes);
	if (!figure.bytes.known)
		return;
	sum_add(&sums->wss_low, bounded ? wss_amount_of(figure.low_bytes.value) : figure.bytes);
	sum_add(&sums->wss_high, bounded ? figure.high_bytes : figure.bytes);
}

static void sums_add(struct sums *sums, const struct wss_watched *guest,
		     const struct wss_advised *advised)
{
	const struct wss_sample *sample = &guest->sample;

	sums->states[guest->state]++;
	sums->spent.windows += guest->windows;
	sums->spent.dearer += guest->dearer;
	sums->spent.vcpu_ns += guest->spent_vcpu_ns;
	sums->spent.tool_ns += guest->spent_tool_ns;
	sums->spent.longest_stall_ns =
		wss_u64_max(sums->spent.longest_stall_ns, guest->longest_stall_ns);
	if (advised && advised->status == WSS_ADVICE_OK) {
		sum_add(&sums->recommended, advised->recommended_bytes);
		sum_add(&sums->reclaimable, wss_advised_reclaimable(advised, guest));
	}
	if (!guest->measured)
		return;
	sums->measured += wss_watched_has_wss(guest);
	sums->stale += wss_guest_is_stale(guest);
	sums_add_wss(sums, sample);
	sum_add(&sums->balloon, sample->memory.balloon_bytes);
	sum_add(&sums->maximum, sample->memory.maximum_bytes);
	sum_add(&sums->rss, sample->memory.rss_bytes);
	sum_add(&sums->swap, sample->memory.swap_bytes);
}

static void put_sum(struct wss_json *parent, const char *key, const struct sum *sum)
{
	struct wss_json json;

	if (!sum->guests)
		return;
	json = wss_json_object(parent->stream, parent, key);
	page_put_number(&json, "bytes", sum->bytes, WSS_KIND_BYTES);
	page_put_number(&json, "guests", sum->guests, WSS_KIND_COUNT);
	wss_json_object_end(&json);
}

static void put_wss(struct wss_json *parent, const struct sums *sums)
{
	struct wss_json json;

	if (!sums->wss.guests)
		return;
	json = wss_json_object(parent->stream, parent, "wss");
	page_put_number(&json, "bytes", sums->wss.bytes, WSS_KIND_BYTES);
	page_put_number(&json, "low_bytes", sums->wss_low.bytes, WSS_KIND_BYTES);
	if (sums->wss_high.guests == sums->wss.guests)
		page_put_number(&json, "high_bytes", sums->wss_high.bytes, WSS_KIND_BYTES);
	page_put_number(&json, "guests", sums->wss.guests, WSS_KIND_COUNT);
	wss_json_object_end(&json);
}

static void write_totals(struct wss_json *parent, const struct sums *sums)
{
	struct wss_json json = wss_json_object(parent->stream, parent, "totals");

	put_wss(&json, sums);
	put_sum(&json, "balloon", &sums->balloon);
	put_sum(&json, "maximum", &sums->maximum);
	put_sum(&json, "rss", &sums->rss);
	put_sum(&json, "swap", &sums->swap);
	put_sum(&json, "recommended", &sums->recommended);
	put_sum(&json, "reclaimable", &sums->reclaimable);
	wss_json_object_end(&json);
}

static void write_counts(struct wss_json *parent, const struct wss_watch *watch,
			 const struct sums *sums)
{
	struct wss_json json = wss_json_object(parent->stream, parent, "guests");

	page_put_number(&json, "total", wss_watch_count(watch), WSS_KIND_COUNT);
	page_put_number(&json, "measured", sums->measured, WSS_KIND_COUNT);
	page_put_number(&json, "stale", sums->stale, WSS_KIND_COUNT);
	page_put_number(&json, "refused", sums->states[WSS_WATCHED_REFUSED], WSS_KIND_COUNT);
	page_put_number(&json, "left_out", sums->states[WSS_WATCHED_LEFT_OUT], WSS_KIND_COUNT);
	page_put_number(&json, "paused", sums->states[WSS_WATCHED_PAUSED], WSS_KIND_COUNT);
	page_put_number(&json, "stopped", sums->states[WSS_WATCHED_STOPPED], WSS_KIND_COUNT);
	wss_json_object_end(&json);
}

static void write_budget(struct wss_json *parent, const struct wss_watch_options *options)
{
	struct wss_json json = wss_json_object(parent->stream, parent, "budget");

	page_put_share(&json, "vcpu_share", options->budget.guest_share);
	page_put_number(&json, "stall_seconds", options->budget.stall_ns, WSS_KIND_DURATION);
	wss_json_object_end(&json);
}

static void write_spent(struct wss_json *parent, const struct wss_watch_spent *spent,
			uint64_t since_ns)
{
	struct wss_json json = wss_json_object(parent->stream, parent, "spent");

	page_put_number(&json, "windows", spent->windows, WSS_KIND_COUNT);
	page_put_number(&json, "dearer_windows", spent->dearer, WSS_KIND_COUNT);
	page_put_number(&json, "vcpu_seconds", spent->vcpu_ns, WSS_KIND_DURATION);
	page_put_number(&json, "cpu_seconds", spent->tool_ns, WSS_KIND_DURATION);
	if (spent->windows)
		page_put_number(&json, "longest_stall_seconds", spent->longest_stall_ns,
				WSS_KIND_DURATION);
	page_put_number(&json, "since_seconds", wss_clock_now_ns() - since_ns, WSS_KIND_DURATION);
	wss_json_object_end(&json);
}

void wss_host_page_write(FILE *stream, const struct wss_watch *watch,
			 const struct wss_service_facts *facts)
{
	struct wss_json json = page_begin(stream, SCHEMA);
	char name[HOST_NAME_MAX + 1] = "";
	struct sums sums = {.spent = wss_watch_spent_before(watch)};

	for (size_t i = 0; i < wss_watch_count(watch); i++) {
		const struct wss_watched *guest = wss_watch_guest(watch, i);

		sums_add(&sums, guest, wss_advisor_find(facts->advisor, guest->uuid));
	}
	if (gethostname(name, sizeof(name) - 1) == 0)
		page_put_text(&json, "host", name);
	page_put_text(&json, "version", PACKAGE_VERSION);
	wss_page_put_service(&json, watch, facts);
	page_put_amount(&json, "memory_bytes", wss_host_memory());
	write_counts(&json, watch, &sums);
	write_totals(&json, &sums);
	write_budget(&json, facts->options);
	write_spent(&json, &sums.spent, facts->since_ns);
	page_end(&json);
}
