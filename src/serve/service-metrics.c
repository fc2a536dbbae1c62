/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "serve/service-metrics.h"

#include <sys/resource.h>

#include "base/clock.h"

#define SECONDS(ns) ((double)(ns) / WSS_NS_PER_S)
#define GAUGE(name, unit, help)                                         \
	{                                                               \
		"virt_wss_" name "_" unit, WSS_METRIC_GAUGE, unit, help \
	}
#define NUMBER(name, help)                                     \
	{                                                      \
		"virt_wss_" name, WSS_METRIC_GAUGE, NULL, help \
	}
#define COUNTER(name, unit, help)                                \
	{                                                        \
		"virt_wss_" name, WSS_METRIC_COUNTER, unit, help \
	}

static void put_one(struct wss_metrics *metrics, const struct wss_metric *metric, double value)
{
	wss_metrics_family(metrics, metric);
	wss_metrics_value(metrics, NULL, 0, value);
}

static void put_amount(struct wss_metrics *metrics, const struct wss_metric *metric,
		       struct wss_amount amount)
{
	if (amount.known)
		put_one(metrics, metric, (double)amount.value);
}

static void write_states(struct wss_metrics *metrics, const struct wss_watch *watch)
{
	static const struct wss_metric states =
		NUMBER("guests", "Running guests, by whether they are measured");
	size_t counts[WSS_WATCHED_STATES] = {0};

	for (size_t i = 0; i < wss_watch_count(watch); i++)
		counts[wss_watch_guest(watch, i)->state]++;
	wss_metrics_family(metrics, &states);
	for (size_t i = 0; i < WSS_WATCHED_STATES; i++) {
		const struct wss_label label = {"state", wss_watched_state_name(i)};

		wss_metrics_value(metrics, &label, 1, (double)counts[i]);
	}
}

static void write_held(struct wss_metrics *metrics, const struct wss_watch *watch)
{
	static const struct wss_metric held =
		NUMBER("held", "Whether measuring is paused on the host, 1 or 0");
	static const struct wss_metric seconds = COUNTER(
		"held_seconds", "seconds", "Time in which measuring was paused, by what paused it");

	put_one(metrics, &held, wss_watch_held(watch) != NULL);
	wss_metrics_family(metrics, &seconds);
	for (size_t i = 0; i < WSS_HOLDERS; i++) {
		const struct wss_label label = {"by", wss_watch_holder_name(i)};

		wss_metrics_value(metrics, &label, 1, SECONDS(wss_watch_held_ns(watch, i)));
	}
}

static void write_host(struct wss_metrics *metrics, const struct wss_host_sum *host)
{
	static const struct wss_metric memory = GAUGE("host_memory", "bytes", "Memory of the host");
	static const struct wss_metric assigned =
		GAUGE("host_assigned", "bytes", "Maximum memory of all guests together");
	static const struct wss_metric needed =
		GAUGE("host_needed", "bytes",
		      "Memory that all guests need together, not exceeded in 99% of hours");
	static const struct wss_metric overhead = GAUGE(
		"host_overhead", "bytes", "Resident memory of QEMU that is not memory of guests");
	static const struct wss_metric headroom =
		GAUGE("host_headroom", "bytes",
		      "Memory of the host that neither the guests' need nor QEMU takes");
	static const struct wss_metric unsized = NUMBER(
		"host_unsized_guests", "Guests that count with all of their memory, because their "
				       "need is not known");

	static const struct wss_metric unknown = NUMBER(
		"host_unknown_guests", "Guests whose memory is not known: the sums lack them");

	if (!host)
		return;
	put_amount(metrics, &memory, host->host_bytes);
	put_amount(metrics, &assigned, host->assigned_bytes);
	put_amount(metrics, &needed, host->needed_bytes);
	put_amount(metrics, &overhead, host->overhead_bytes);
	put_amount(metrics, &headroom, host->fits_bytes);
	put_one(metrics, &unsized, (double)host->unsized);
	put_one(metrics, &unknown, (double)host->unknown_memory);
}

static void write_budget(struct wss_metrics *metrics, const struct wss_watch *watch,
			 const struct wss_watch_options *options)
{
	static const struct wss_metric share = GAUGE(
		"budget_vcpu", "ratio", "Share of a guest's vCPU time that its windows may cost");
	static const struct wss_metric stall =
		GAUGE("budget_stall", "seconds", "Longest stall that a window may cause");
	static const struct wss_metric longest = GAUGE(
		"longest_stall", "seconds",
		"Longest stall that the start of a window has caused to any guest that is running");
	uint64_t longest_ns = 0;

	for (size_t i = 0; i < wss_watch_count(watch); i++)
		if (wss_watch_guest(watch, i)->longest_stall_ns > longest_ns)
			longest_ns = wss_watch_guest(watch, i)->longest_stall_ns;
	put_one(metrics, &share, options->budget.guest_share);
	put_one(metrics, &stall, SECONDS(options->budget.stall_ns));
	put_one(metrics, &longest, SECONDS(longest_ns));
}

/* Of the service itself, without the process that speaks HTTP. */
static void write_process(struct wss_metrics *metrics, const struct wss_watch *watch)
{
	static const struct wss_metric cpu =
		COUNTER("process_cpu_seconds", "seconds", "CPU time of the service");
	static const struct wss_metric resident = GAUGE(
		"process_resident_max", "bytes", "Largest resident memory of the service so far");
	static const struct wss_metric uncharged = COUNTER(
		"uncharged_cpu_seconds", "seconds",
		"CPU time of the service that counts for no guest: its list of guests, metrics, pages, history");
	struct rusage usage;

	put_one(metrics, &cpu, SECONDS(wss_clock_process_ns()));
	put_one(metrics, &uncharged, SECONDS(wss_watch_uncharged_ns(watch)));
	if (getrusage(RUSAGE_SELF, &usage) == 0)
		put_one(metrics, &resident, (double)usage.ru_maxrss * 1024);
}

void wss_service_metrics_write(struct wss_metrics *metrics, const struct wss_watch *watch,
			       const struct wss_service_facts *facts)
{
	static const struct wss_metric build = {"virt_wss_build", WSS_METRIC_INFO, NULL,
						"The version of the program"};
	static const struct wss_metric up = NUMBER("libvirt_up", "Whether libvirt answers, 1 or 0");
	static const struct wss_metric samples =
		COUNTER("samples", NULL, "Samples for the history: stored, waiting and lost ones");
	static const struct wss_metric stored =
		COUNTER("stored_samples", NULL, "Samples that were stored in the history");
	static const struct wss_metric waiting =
		NUMBER("waiting_samples", "Samples that wait until they can be stored");
	static const struct wss_metric failures = COUNTER(
		"store_failures", NULL, "Samples that were lost because they could not be stored");
	static const struct wss_metric http_up =
		NUMBER("http_up", "Whether HTTP is served, 1 or 0");
	static const struct wss_metric starts =
		COUNTER("http_starts", NULL, "Starts of the process that serves HTTP");
	static const struct wss_metric written = GAUGE(
		"page_timestamp", "seconds", "Time at which this page was written, since 1970");
	const struct wss_label version = {"version", PACKAGE_VERSION};

	wss_metrics_family(metrics, &build);
	wss_metrics_value(metrics, &version, 1, 1);
	put_one(metrics, &written, (double)wss_clock_wall_seconds());
	if (wss_watch_has_tried(watch))
		put_one(metrics, &up, facts->connected);
	write_held(metrics, watch);
	put_one(metrics, &samples, (double)facts->samples.added);
	put_one(metrics, &stored, (double)facts->samples.stored);
	put_one(metrics, &waiting, (double)facts->samples.waiting);
	put_one(metrics, &failures, (double)facts->samples.lost);
	if (facts->http) {
		put_one(metrics, &http_up, facts->http_up);
		put_one(metrics, &starts, (double)facts->http_starts);
	}
	write_process(metrics, watch);
	write_budget(metrics, watch, facts->options);
	if (wss_watch_listed(watch))
		write_states(metrics, watch);
	write_host(metrics, wss_advisor_host(facts->advisor));
}
