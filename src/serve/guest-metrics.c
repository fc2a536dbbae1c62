/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "serve/guest-metrics.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "measure/curve.h"
#include "serve/service-metrics.h"

int wss_metrics_level_parse(const char *text, enum wss_metrics_level *ret_level,
			    struct wss_error *err)
{
	static const char *const names[] = {"minimal", "standard", "full"};

	for (int i = 0; i < 3; i++) {
		if (strcmp(text, names[i]) != 0)
			continue;
		*ret_level = (enum wss_metrics_level)(WSS_METRICS_MINIMAL + i);
		return 0;
	}
	return wss_error_set(err, WSS_ERR_USAGE, "'%s' is not minimal, standard or full", text);
}

#define SECONDS(ns) ((double)(ns) / WSS_NS_PER_S)

/* What the metrics are of. */
struct metered {
	const struct wss_watch *watch;
	const struct wss_advisor *advisor; /* NULL: nothing is advised */
	size_t n;			   /* guests */
};

static const struct wss_watched *metered_guest(const struct metered *metered, size_t i)
{
	return wss_watch_guest(metered->watch, i);
}

/* NULL: nothing was advised yet. */
static const struct wss_advised *metered_advised(const struct metered *metered, size_t i)
{
	return wss_advisor_find(metered->advisor, metered_guest(metered, i)->uuid);
}

static void put_guest_value(struct wss_metrics *metrics, const struct wss_watched *guest,
			    const struct wss_label *more, double value)
{
	struct wss_label labels[3] = {{"domain", guest->name}, {"uuid", guest->uuid}};

	if (more)
		labels[2] = *more;
	wss_metrics_value(metrics, labels, more ? 3 : 2, value);
}

/* --- one value for each guest --- */

/* A family with one value for each guest; NAN: it has none. */
struct guest_metric {
	enum wss_metrics_level level; /* the lowest that has it */
	struct wss_metric metric;
	double (*get)(const struct metered *metered, size_t i);
};

static double amount_value(struct wss_amount bytes)
{
	return bytes.known ? (double)bytes.value : NAN;
}

#define SAMPLE_AMOUNT(name, field)                                           \
	static double get_##name(const struct metered *metered, size_t i)    \
	{                                                                    \
		const struct wss_watched *guest = metered_guest(metered, i); \
                                                                             \
		return guest->measured && guest->sample.field.known          \
			       ? (double)guest->sample.field.value           \
			       : NAN;                                        \
	}

SAMPLE_AMOUNT(written, written_bytes)
SAMPLE_AMOUNT(rss, memory.rss_bytes)

static double get_wss(const struct metered *metered, size_t i)
{
	const struct wss_watched *guest = metered_guest(metered, i);

	return guest->measured ? amount_value(wss_sample_figure(&guest->sample).bytes) : NAN;
}

/* Of an upper limit; any other figure is no more than what it is a bound of. */
static double get_low(const struct metered *metered, size_t i)
{
	const struct wss_watched *guest = metered_guest(metered, i);
	struct wss_working_set figure = wss_sample_figure(&guest->sample);

	return guest->measured && figure.bound == WSS_BOUND_AT_MOST ? amount_value(figure.low_bytes)
								    : NAN;
}

/* Also of a guest that was never measured, as one that is paused. */
static double get_balloon(const struct metered *metered, size_t i)
{
	const struct wss_watched *guest = metered_guest(metered, i);
	struct wss_amount bytes = guest->balloon_bytes;

	if (guest->measured && guest->state != WSS_WATCHED_PAUSED &&
	    guest->sample.memory.balloon_bytes.known)
		bytes = guest->sample.memory.balloon_bytes;
	return amount_value(bytes);
}

static double get_recommended(const struct metered *metered, size_t i)
{
	const struct wss_advised *advised = metered_advised(metered, i);

	return advised ? amount_value(advised->recommended_bytes) : NAN;
}

static double get_reclaimable(const struct metered *metered, size_t i)
{
	const struct wss_advised *advised = metered_advised(metered, i);

	return advised ? amount_value(wss_advised_reclaimable(advised, metered_guest(metered, i)))
		       : NAN;
}

/* --- codes: docs/metrics.md has them, and so have the texts for help --- */

/* Waiting and measuring are one. */
static double get_state(const struct metered *metered, size_t i)
{
	static const int codes[WSS_WATCHED_STATES] = {
		[WSS_WATCHED_WAITING] = 0, [WSS_WATCHED_MEASURING] = 0, [WSS_WATCHED_HELD] = 1,
		[WSS_WATCHED_REFUSED] = 2, [WSS_WATCHED_LEFT_OUT] = 3,	[WSS_WATCHED_PAUSED] = 4,
		[WSS_WATCHED_STOPPED] = 5};

	return codes[metered_guest(metered, i)->state];
}

static double bound_code(enum wss_bound bound)
{
	return bound == WSS_BOUND_AT_MOST ? 1 : bound == WSS_BOUND_AT_LEAST ? -1 : 0;
}

static double get_bound(const struct metered *metered, size_t i)
{
	const struct wss_watched *guest = metered_guest(metered, i);

	return wss_watched_has_wss(guest) ? bound_code(wss_sample_figure(&guest->sample).bound)
					  : NAN;
}

static double get_degraded(const struct metered *metered, size_t i)
{
	const struct wss_watched *guest = metered_guest(metered, i);

	return wss_watched_has_wss(guest) ? guest->sample.quality == WSS_QUALITY_DEGRADED : NAN;
}

static double get_coarse(const struct metered *metered, size_t i)
{
	static_assert(WSS_COARSE_FAILED == 6 && WSS_CONFIDENCE_HIGH == 3,
		      "the codes of coarse and confidence");
	return metered_guest(metered, i)->coarse;
}

static double get_advice(const struct metered *metered, size_t i)
{
	static const int codes[] = {
		[WSS_ADVICE_OK] = 0,	    [WSS_ADVICE_UNKNOWN] = 1, [WSS_ADVICE_TOO_EARLY] = 2,
		[WSS_ADVICE_OPTED_OUT] = 3, [WSS_ADVICE_FAILED] = 4,  [WSS_ADVICE_NO_SIZE] = 5};
	const struct wss_advised *advised = metered_advised(metered, i);

	return advised ? codes[advised->status] : NAN;
}

static double get_advice_bound(const struct metered *metered, size_t i)
{
	const struct wss_advised *advised = metered_advised(metered, i);

	return advised && advised->windows
		       ? bound_code(wss_bound_of_granularity(advised->granularity_bytes))
		       : NAN;
}

static double get_confidence(const struct metered *metered, size_t i)
{
	const struct wss_advised *advised = metered_advised(metered, i);

	return advised ? advised->confidence : NAN;
}

/* --- times and counts --- */

static double get_age(const struct metered *metered, size_t i)
{
	const struct wss_watched *guest = metered_guest(metered, i);

	return guest->measured ? SECONDS(wss_clock_now_ns() - guest->measured_ns) : NAN;
}

static double get_period(const struct metered *metered, size_t i)
{
	return SECONDS(metered_guest(metered, i)->period_ns);
}

static double get_windows(const struct metered *metered, size_t i)
{
	return (double)metered_guest(metered, i)->windows;
}

static double get_dearer(const struct metered *metered, size_t i)
{
	return (double)metered_guest(metered, i)->dearer;
}

static double get_spent(const struct metered *metered, size_t i)
{
	return SECONDS(metered_guest(metered, i)->spent_ns);
}

static double get_cpu(const struct metered *metered, size_t i)
{
	return SECONDS(metered_guest(metered, i)->spent_tool_ns);
}

#define GAUGE(name, unit, help)                                         \
	{                                                               \
		"virt_wss_" name "_" unit, WSS_METRIC_GAUGE, unit, help \
	}
#define CODE(name, help)                                       \
	{                                                      \
		"virt_wss_" name, WSS_METRIC_GAUGE, NULL, help \
	}
#define COUNTER(name, unit, help)                                \
	{                                                        \
		"virt_wss_" name, WSS_METRIC_COUNTER, unit, help \
	}

static const struct guest_metric guest_metrics[] = {
	{WSS_METRICS_MINIMAL,
	 CODE("state",
	      "0 watched, 1 held, 2 refused by the budget, 3 left out by its policy, 4 paused, 5 stopped"),
	 get_state},
	{WSS_METRICS_MINIMAL,
	 GAUGE("working_set", "bytes", "Memory that the guest touched in its last window"),
	 get_wss},
	{WSS_METRICS_MINIMAL,
	 CODE("working_set_bound",
	      "Whether the true working set is: 0 exactly, 1 at most, -1 at least that"),
	 get_bound},
	{WSS_METRICS_MINIMAL,
	 GAUGE("working_set_low", "bytes",
	       "Memory that the guest touched at least, where its working set is only known to be at most so large"),
	 get_low},
	{WSS_METRICS_MINIMAL, GAUGE("sample_age", "seconds", "Time since the guest's last window"),
	 get_age},
	{WSS_METRICS_MINIMAL,
	 GAUGE("balloon", "bytes", "Memory that the balloon leaves to the guest"), get_balloon},
	{WSS_METRICS_MINIMAL,
	 GAUGE("resident", "bytes", "Memory of the guest that is resident on the host"), get_rss},
	{WSS_METRICS_MINIMAL,
	 GAUGE("recommended", "bytes", "Memory that the guest should have, from its history"),
	 get_recommended},
	{WSS_METRICS_MINIMAL,
	 GAUGE("reclaimable", "bytes", "Memory that balloon would return to the host now"),
	 get_reclaimable},
	{WSS_METRICS_MINIMAL,
	 CODE("advice",
	      "Why nothing is recommended: 0 it is, 1 unknown, 2 too early, 3 opted out, 4 failed, 5 no size"),
	 get_advice},
	{WSS_METRICS_MINIMAL,
	 CODE("advice_bound",
	      "Whether the need that the history shows is: 0 exactly, 1 at most that"),
	 get_advice_bound},
	{WSS_METRICS_STANDARD,
	 CODE("advice_confidence",
	      "Confidence in the recommendation: 0 none, 1 low, 2 medium, 3 high"),
	 get_confidence},
	{WSS_METRICS_STANDARD,
	 CODE("degraded",
	      "Whether something disturbed the last window, as the notes of its sample say"),
	 get_degraded},
	{WSS_METRICS_STANDARD,
	 CODE("coarse",
	      "Why a guest on huge pages is not measured by 4 KiB: 0 it is, 1 setting, 2 continuous, "
	      "3 unsupported, 4 budget, 5 busy, 6 failed"),
	 get_coarse},
	{WSS_METRICS_STANDARD,
	 GAUGE("written", "bytes", "Memory that the guest wrote to in its last window"),
	 get_written},
	{WSS_METRICS_STANDARD,
	 GAUGE("period", "seconds", "Time from one window to the next, as the budget allows it"),
	 get_period},
	{WSS_METRICS_STANDARD, COUNTER("windows", NULL, "Windows of the guest"), get_windows},
	{WSS_METRICS_STANDARD,
	 COUNTER("spent_seconds", "seconds",
		 "Time that windows have cost the guest, averaged over its vCPUs"),
	 get_spent},
	{WSS_METRICS_STANDARD,
	 COUNTER("cpu_seconds", "seconds", "CPU time of the service for the guest"), get_cpu},
	{WSS_METRICS_FULL,
	 COUNTER("dearer_windows", NULL, "Windows that cost the guest more than predicted"),
	 get_dearer},
};

static void write_guest_metrics(struct wss_metrics *metrics, const struct metered *metered,
				enum wss_metrics_level level)
{
	for (size_t i = 0; i < sizeof(guest_metrics) / sizeof(guest_metrics[0]); i++) {
		if (guest_metrics[i].level > level)
			continue;
		wss_metrics_family(metrics, &guest_metrics[i].metric);
		for (size_t j = 0; j < metered->n; j++) {
			double value = guest_metrics[i].get(metered, j);

			if (!isnan(value))
				put_guest_value(metrics, metered_guest(metered, j), NULL, value);
		}
	}
}

/* --- the info --- */

/* Its labels stay the same for the guest's lifetime: one that changes would make it another series. */
static void write_infos(struct wss_metrics *metrics, const struct metered *metered)
{
	static const struct wss_metric info = {"virt_wss_domain", WSS_METRIC_INFO, NULL,
					       "A running guest"};

	wss_metrics_family(metrics, &info);
	for (size_t i = 0; i < metered->n; i++)
		put_guest_value(metrics, metered_guest(metered, i), NULL, 1);
}

/* --- several values for each guest --- */

/*
 * Times on the growth curve, ns. The working set itself is its end. Times beyond the window have no
 * value.
 */
static const struct {
	uint64_t ns;
	const char *label;
} within[] = {
	{200 * WSS_NS_PER_MS, "0.2"},
	{WSS_NS_PER_S, "1"},
	{4 * WSS_NS_PER_S, "4"},
};

static void write_growth(struct wss_metrics *metrics, const struct metered *metered)
{
	static const struct wss_metric growth = {
		"virt_wss_working_set_within_bytes", WSS_METRIC_GAUGE, "bytes",
		"Memory that the guest touched within this time of its last window"};

	wss_metrics_family(metrics, &growth);
	for (size_t i = 0; i < metered->n; i++) {
		const struct wss_watched *guest = metered_guest(metered, i);
		const struct wss_sample *sample = &guest->sample;
		double bytes;

		for (size_t j = 0; guest->measured && j < sizeof(within) / sizeof(within[0]); j++)
			if (wss_curve_at(sample->curve, sample->n_curve, within[j].ns, &bytes))
				put_guest_value(metrics, guest,
						&(struct wss_label){"seconds", within[j].label},
						rint(bytes));
	}
}

static void write_percentiles(struct wss_metrics *metrics, const struct metered *metered)
{
	static const struct wss_metric percentiles = {
		"virt_wss_working_set_percentile_bytes", WSS_METRIC_GAUGE, "bytes",
		"Working set that this percentage of the guest's windows of a week did not exceed"};

	wss_metrics_family(metrics, &percentiles);
	for (size_t i = 0; i < metered->n; i++) {
		const struct wss_watched *guest = metered_guest(metered, i);
		const struct wss_advised *advised = metered_advised(metered, i);

		if (advised && advised->p50_bytes.known)
			put_guest_value(metrics, guest, &(struct wss_label){"percentile", "50"},
					(double)advised->p50_bytes.value);
		if (advised && advised->p95_bytes.known)
			put_guest_value(metrics, guest, &(struct wss_label){"percentile", "95"},
					(double)advised->p95_bytes.value);
	}
}

static void put_cold(struct wss_metrics *metrics, const struct wss_watched *guest,
		     enum wss_cold_age age, const struct wss_cold_report *report)
{
	struct wss_amount low = wss_cold_low(report, age), high = wss_cold_high(report, age);
	struct wss_label labels[] = {
		{"domain", guest->name},
		{"uuid", guest->uuid},
		{"age", wss_cold_age_name(age)},
		{"bound", "low"},
	};

	if (low.known)
		wss_metrics_value(metrics, labels, 4, (double)low.value);
	labels[3].value = "high";
	if (high.known)
		wss_metrics_value(metrics, labels, 4, (double)high.value);
}

static void write_cold(struct wss_metrics *metrics, const struct wss_watch *watch,
		       enum wss_metrics_level level)
{
	static const struct wss_metric cold = {
		"virt_wss_cold_bytes", WSS_METRIC_GAUGE, "bytes",
		"Memory that the guest has not touched for at least this age, between two bounds"};
	/* All five would be two series too many. */
	static const struct {
		enum wss_metrics_level level;
		enum wss_cold_age age;
	} ages[] = {
		{WSS_METRICS_FULL, WSS_COLD_2MIN},
		{WSS_METRICS_STANDARD, WSS_COLD_1H},
		{WSS_METRICS_STANDARD, WSS_COLD_24H},
		{WSS_METRICS_STANDARD, WSS_COLD_SINCE_WATCHED},
	};

	wss_metrics_family(metrics, &cold);
	for (size_t i = 0; i < wss_watch_count(watch); i++) {
		struct wss_cold_report report;

		if (!wss_watch_cold(watch, i, &report))
			continue;
		for (size_t j = 0; j < sizeof(ages) / sizeof(ages[0]); j++)
			if (ages[j].level <= level)
				put_cold(metrics, wss_watch_guest(watch, i), ages[j].age, &report);
	}
}

void wss_metrics_write(FILE *stream, enum wss_metrics_form form, const struct wss_watch *watch,
		       const struct wss_service_facts *facts)
{
	struct wss_metrics metrics = wss_metrics_begin(stream, form);
	const struct metered metered = {watch, facts->advisor, wss_watch_count(watch)};

	wss_service_metrics_write(&metrics, watch, facts);
	write_infos(&metrics, &metered);
	write_guest_metrics(&metrics, &metered, facts->level);
	if (facts->level >= WSS_METRICS_STANDARD) {
		write_growth(&metrics, &metered);
		write_percentiles(&metrics, &metered);
		write_cold(&metrics, watch, facts->level);
	}
	wss_metrics_end(&metrics);
}
