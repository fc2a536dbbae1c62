/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "serve/guests-page.h"

#include "base/number.h"
#include "history/sample-report.h"
#include "serve/page-json.h"

#define SCHEMA "virt-wss/guests/1"

bool wss_guest_is_stale(const struct wss_watched *guest)
{
	uint64_t age_ns = wss_clock_now_ns() - guest->measured_ns;

	return guest->measured && age_ns > wss_u64_add(wss_u64_mul(guest->period_ns, 2),
						       guest->sample.requested_window_ns);
}

static void write_spent(struct wss_json *parent, const struct wss_watched *guest)
{
	struct wss_json json = wss_json_object(parent->stream, parent, "spent");
	uint64_t since_ns = wss_clock_now_ns() - guest->since_ns;

	page_put_number(&json, "windows", guest->windows, WSS_KIND_COUNT);
	page_put_number(&json, "dearer_windows", guest->dearer, WSS_KIND_COUNT);
	page_put_number(&json, "vcpu_seconds", guest->spent_vcpu_ns, WSS_KIND_DURATION);
	if (guest->n_vcpus && since_ns)
		page_put_share(&json, "vcpu_share",
			       (double)guest->spent_vcpu_ns / (double)since_ns / guest->n_vcpus);
	page_put_number(&json, "cpu_seconds", guest->spent_tool_ns, WSS_KIND_DURATION);
	page_put_number(&json, "longest_stall_seconds", guest->longest_stall_ns, WSS_KIND_DURATION);
	page_put_number(&json, "since_seconds", since_ns, WSS_KIND_DURATION);
	wss_json_object_end(&json);
}

/* --- coldness --- */

static void write_age(struct wss_json *list, enum wss_cold_age age,
		      const struct wss_cold_report *report)
{
	static const uint64_t seconds[WSS_COLD_AGES] = {
		[WSS_COLD_2MIN] = 120,
		[WSS_COLD_10MIN] = 600,
		[WSS_COLD_1H] = 3600,
		[WSS_COLD_24H] = 86400,
	};
	struct wss_json json = wss_json_object(list->stream, list, NULL);

	page_put_text(&json, "age", wss_cold_age_name(age));
	if (seconds[age])
		page_put_number(&json, "seconds", seconds[age], WSS_KIND_COUNT);
	page_put_amount(&json, "low_bytes", wss_cold_low(report, age));
	page_put_amount(&json, "high_bytes", wss_cold_high(report, age));
	page_put_share(&json, "observed", report->ages[age].observed);
	wss_json_object_end(&json);
}

static void write_cold(struct wss_json *parent, const struct wss_cold_report *report)
{
	struct wss_json json = wss_json_object(parent->stream, parent, "cold"), list;
	uint64_t now_ns = wss_clock_now_ns();

	page_put_number(&json, "age_seconds", now_ns - wss_u64_min(now_ns, report->as_of_ns),
			WSS_KIND_DURATION);
	page_put_number(&json, "since_seconds", now_ns - wss_u64_min(now_ns, report->since_ns),
			WSS_KIND_DURATION);
	page_put_number(&json, "held_bytes", report->held_bytes, WSS_KIND_BYTES);
	page_put_number(&json, "absent_bytes", report->absent_bytes, WSS_KIND_BYTES);
	page_put_number(&json, "granularity_bytes", report->granularity_bytes, WSS_KIND_BYTES);
	list = wss_json_list(json.stream, &json, "ages");
	for (int i = 0; i < WSS_COLD_AGES; i++)
		write_age(&list, (enum wss_cold_age)i, report);
	wss_json_list_end(&list);
	wss_json_object_end(&json);
}

/* --- recommendation --- */

static void write_why(struct wss_json *parent, const struct wss_advised *advice)
{
	struct wss_json list = wss_json_list(parent->stream, parent, "why");

	for (size_t i = 0; i < advice->n_why; i++)
		page_put_text(&list, NULL, advice->why[i]);
	wss_json_list_end(&list);
}

static void write_advice(struct wss_json *parent, const struct wss_advised *advice,
			 const struct wss_watched *guest)
{
	struct wss_json json = wss_json_object(parent->stream, parent, "recommendation");

	page_put_text(&json, "status", wss_advice_status_name(advice->status));
	page_put_number(&json, "age_seconds", wss_clock_now_ns() - advice->read_ns,
			WSS_KIND_DURATION);
	if (advice->windows) {
		page_put_text(&json, "confidence", wss_confidence_name(advice->confidence));
		page_put_number(&json, "windows", advice->windows, WSS_KIND_COUNT);
		page_put_time(&json, "since", advice->first);
		page_put_text(&json, "bound",
			      wss_bound_name(wss_bound_of_granularity(advice->granularity_bytes)));
	}
	page_put_amount(&json, "p50_bytes", advice->p50_bytes);
	page_put_amount(&json, "p95_bytes", advice->p95_bytes);
	page_put_amount(&json, "p99_bytes", advice->p99_bytes);
	page_put_amount(&json, "peak_bytes", advice->peak_bytes);
	page_put_amount(&json, "recommended_bytes", advice->recommended_bytes);
	page_put_amount(&json, "reclaimable_bytes", wss_advised_reclaimable(advice, guest));
	write_why(&json, advice);
	wss_json_object_end(&json);
}

/* --- guests --- */

static void write_sample(struct wss_json *json, const struct wss_watched *guest)
{
	page_put_text(json, "kind", wss_window_kind_name(guest->kind));
	page_put_number(json, "sample_age_seconds", wss_clock_now_ns() - guest->measured_ns,
			WSS_KIND_DURATION);
	page_put_bool(json, "stale", wss_guest_is_stale(guest));
	wss_json_row(json->stream, json, "sample", wss_sample_layout(false, false), &guest->sample);
}

static void write_guest(struct wss_json *list, const struct wss_watch *watch, size_t i,
			const struct wss_advisor *advisor)
{
	const struct wss_watched *guest = wss_watch_guest(watch, i);
	const struct wss_advised *advice = wss_advisor_find(advisor, guest->uuid);
	struct wss_json json = wss_json_object(list->stream, list, NULL);
	uint64_t now_ns = wss_clock_now_ns();
	struct wss_cold_report cold;

	page_put_text(&json, "domain", guest->name);
	page_put_text(&json, "uuid", guest->uuid);
	page_put_text(&json, "state", wss_watched_state_name(guest->state));
	page_put_text(&json, "why", guest->why.code ? guest->why.text : NULL);
	if (guest->pressed_since_ns)
		page_put_number(&json, "held_seconds", now_ns - guest->pressed_since_ns,
				WSS_KIND_DURATION);
	if (guest->coarse != WSS_COARSE_NOT) {
		page_put_text(&json, "coarse", wss_coarse_name(guest->coarse));
		page_put_text(&json, "coarse_why", guest->coarse_why.text);
	}
	page_put_text(&json, "blocked_why", guest->blocked[0] ? guest->blocked : NULL);
	if (guest->n_vcpus)
		page_put_number(&json, "vcpus", guest->n_vcpus, WSS_KIND_COUNT);
	page_put_number(&json, "period_seconds", guest->period_ns, WSS_KIND_DURATION);
	page_put_number(&json, "next_seconds",
			guest->next_ns > now_ns ? guest->next_ns - now_ns : 0, WSS_KIND_DURATION);
	write_spent(&json, guest);
	if (wss_watch_cold(watch, i, &cold))
		write_cold(&json, &cold);
	if (advice)
		write_advice(&json, advice, guest);
	if (guest->measured)
		write_sample(&json, guest);
	wss_json_object_end(&json);
}

void wss_page_put_service(struct wss_json *json, const struct wss_watch *watch,
			  const struct wss_service_facts *facts)
{
	if (!wss_watch_listed(watch)) {
		page_put_text(json, "state", "starting");
		page_put_number(json, "since_seconds", wss_clock_now_ns() - facts->since_ns,
				WSS_KIND_DURATION);
	}
	page_put_text(json, "held", wss_watch_held(watch));
	if (wss_watch_held(watch))
		page_put_number(json, "held_seconds", wss_watch_held_now_ns(watch),
				WSS_KIND_DURATION);
	if (wss_watch_has_tried(watch))
		page_put_bool(json, "libvirt_up", facts->connected);
}

void wss_guests_page_write(FILE *stream, const struct wss_watch *watch,
			   const struct wss_service_facts *facts)
{
	struct wss_json json = page_begin(stream, SCHEMA), list;

	wss_page_put_service(&json, watch, facts);
	list = wss_json_list(stream, &json, "guests");
	for (size_t i = 0; i < wss_watch_count(watch); i++)
		write_guest(&list, watch, i, facts->advisor);
	wss_json_list_end(&list);
	page_end(&json);
}
