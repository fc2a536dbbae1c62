/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "serve/guest-metrics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/units.h"
#include "serve/service-metrics.h"
#include "wss/curve.h"

int wss_metrics_level_parse(const char *text, enum wss_metrics_level *ret_level,
			    struct wss_error *err)
{
	static const char *const names[] = { "minimal", "standard", "full" };

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
	struct wss_label labels[3] = { { "domain", guest->name }, { "uuid", guest->uuid } };

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

#define SAMPLE_AMOUNT(name, field)                                                  \
	static double get_##name(const struct metered *metered, size_t i)           \
	{                                                                           \
		const struct wss_watched *guest = metered_guest(metered, i);        \
                                                                                    \
		return guest->measured && guest->sample.field.known                 \
			       ? (double)guest->sample.field.value                  \
			       : NAN;                                               \
	}

SAMPLE_AMOUNT(wss, wss_bytes)
SAMPLE_AMOUNT(written, written_bytes)
SAMPLE_AMOUNT(rss, memory.rss_bytes)

static enum wss_bound sample_bound(const struct wss_sample *sample)
{
	return wss_bound_of(sample->wss_bytes.value, sample->low_bytes, sample->high_bytes);
}

/* Of an upper limit; any other figure is no more than what it is a bound of. */
static double get_low(const struct metered *metered, size_t i)
{
	const struct wss_watched *guest = metered_guest(metered, i);
	const struct wss_sample *sample = &guest->sample;

	return guest->measured && sample->low_bytes.known && sample_bound(sample) == WSS_BOUND_AT_MOST
		       ? (double)sample->low_bytes.value
		       : NAN;
}

/* Also of a guest that was never measured, as one that is paused. */
static double get_balloon(const struct metered *metered, size_t i)
{
	const struct wss_watched *guest = metered_guest(metered, i);
	struct wss_amount bytes = guest->balloon_bytes;

	if (guest->measured && guest->state != WSS_WATCHED_PAUSED && guest->sample.memory.balloon_bytes.known)
		bytes = guest->sample.memory.balloon_bytes;
	return bytes.known ? (double)bytes.value : NAN;
}

#define ADVISED_AMOUNT(name)                                                        \
	static double get_##name(const struct metered *metered, size_t i)           \
	{                                                                           \
		const struct wss_advised *advised = metered_advised(metered, i);    \
                                                                                    \
		return advised && advised->name##_bytes.known                       \
			       ? (double)advised->name##_bytes.value                \
			       : NAN;                                               \
	}

ADVISED_AMOUNT(recommended)
ADVISED_AMOUNT(reclaimable)

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

#define GAUGE(name, unit, help) { "virt_wss_" name "_" unit, WSS_METRIC_GAUGE, unit, help }
#define COUNTER(name, unit, help) { "virt_wss_" name, WSS_METRIC_COUNTER, unit, help }

static const struct guest_metric guest_metrics[] = {
	{ WSS_METRICS_MINIMAL,
	  GAUGE("working_set", "bytes", "Memory that the guest touched in its last window; info has its bound"), get_wss },
	{ WSS_METRICS_MINIMAL,
	  GAUGE("working_set_low", "bytes",
		"Memory that the guest touched at least, where its working set is only known to be at most so large"),
	  get_low },
	{ WSS_METRICS_MINIMAL,
	  GAUGE("sample_age", "seconds", "Time since the guest's last window"), get_age },
	{ WSS_METRICS_MINIMAL,
	  GAUGE("balloon", "bytes", "Memory that the balloon leaves to the guest"), get_balloon },
	{ WSS_METRICS_MINIMAL,
	  GAUGE("resident", "bytes", "Memory of the guest that is resident on the host"), get_rss },
	{ WSS_METRICS_MINIMAL,
	  GAUGE("recommended", "bytes", "Memory that the guest should have, from its history"),
	  get_recommended },
	{ WSS_METRICS_MINIMAL,
	  GAUGE("reclaimable", "bytes",
		"Resident memory beyond what the guest should have, from its history"),
	  get_reclaimable },
	{ WSS_METRICS_STANDARD,
	  GAUGE("written", "bytes", "Memory that the guest wrote to in its last window"), get_written },
	{ WSS_METRICS_STANDARD,
	  GAUGE("period", "seconds", "Time from one window to the next, as the budget allows it"),
	  get_period },
	{ WSS_METRICS_STANDARD, COUNTER("windows", NULL, "Windows of the guest"), get_windows },
	{ WSS_METRICS_STANDARD,
	  COUNTER("spent_seconds", "seconds",
		  "Time that windows have cost the guest, averaged over its vCPUs"), get_spent },
	{ WSS_METRICS_FULL,
	  COUNTER("dearer_windows", NULL, "Windows that cost the guest more than predicted"),
	  get_dearer },
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

/* Waiting and measuring are one: a label that changes with every window would make new series of it. */
static const char *info_state(enum wss_watched_state state)
{
	return state == WSS_WATCHED_WAITING || state == WSS_WATCHED_MEASURING
		       ? "watched"
		       : wss_watched_state_name(state);
}

static void put_info(struct wss_metrics *metrics, const struct wss_watched *guest,
		     const struct wss_advised *advised)
{
	const struct wss_sample *sample = &guest->sample;
	bool measured = guest->measured;
	char window[32] = "";
	const struct wss_label labels[] = {
		{ "domain", guest->name },
		{ "uuid", guest->uuid },
		{ "state", info_state(guest->state) },
		{ "kind", measured ? wss_window_kind_name(guest->kind) : "" },
		{ "method", measured && sample->method ? sample->method : "" },
		{ "quality", measured ? wss_quality_name(sample->quality) : "" },
		{ "bound", measured ? wss_bound_name(sample_bound(sample)) : "" },
		{ "coarse", wss_coarse_name(guest->coarse) },
		{ "window", window },
		{ "advice", advised ? wss_advice_status_name(advised->status) : "" },
		{ "confidence", advised ? wss_confidence_name(advised->confidence) : "" },
		{ "advice_bound", advised && advised->windows
					  ? wss_bound_name(wss_bound_of_granularity(advised->granularity_bytes))
					  : "" },
	};

	if (measured)
		snprintf(window, sizeof(window), "%g", SECONDS(sample->requested_window_ns));
	wss_metrics_value(metrics, labels, sizeof(labels) / sizeof(labels[0]), 1);
}

static void write_infos(struct wss_metrics *metrics, const struct metered *metered)
{
	static const struct wss_metric info = {
		"virt_wss_domain", WSS_METRIC_INFO, NULL,
		"How the guest is measured, and what its history is good for"
	};

	wss_metrics_family(metrics, &info);
	for (size_t i = 0; i < metered->n; i++)
		put_info(metrics, metered_guest(metered, i), metered_advised(metered, i));
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
	{ 200 * WSS_NS_PER_MS, "0.2" },
	{ WSS_NS_PER_S, "1" },
	{ 4 * WSS_NS_PER_S, "4" },
};

static void write_growth(struct wss_metrics *metrics, const struct metered *metered)
{
	static const struct wss_metric growth = {
		"virt_wss_working_set_within_bytes", WSS_METRIC_GAUGE, "bytes",
		"Memory that the guest touched within this time of its last window"
	};

	wss_metrics_family(metrics, &growth);
	for (size_t i = 0; i < metered->n; i++) {
		const struct wss_watched *guest = metered_guest(metered, i);
		const struct wss_sample *sample = &guest->sample;
		double bytes;

		for (size_t j = 0; guest->measured && j < sizeof(within) / sizeof(within[0]); j++)
			if (wss_curve_at(sample->curve, sample->n_curve, within[j].ns, &bytes))
				put_guest_value(metrics, guest,
						&(struct wss_label){ "seconds", within[j].label }, rint(bytes));
	}
}

static void write_percentiles(struct wss_metrics *metrics, const struct metered *metered)
{
	static const struct wss_metric percentiles = {
		"virt_wss_working_set_percentile_bytes", WSS_METRIC_GAUGE, "bytes",
		"Working set that this percentage of the guest's windows of a week did not exceed"
	};

	wss_metrics_family(metrics, &percentiles);
	for (size_t i = 0; i < metered->n; i++) {
		const struct wss_watched *guest = metered_guest(metered, i);
		const struct wss_advised *advised = metered_advised(metered, i);

		if (advised && advised->p50_bytes.known)
			put_guest_value(metrics, guest, &(struct wss_label){ "percentile", "50" },
					(double)advised->p50_bytes.value);
		if (advised && advised->p95_bytes.known)
			put_guest_value(metrics, guest, &(struct wss_label){ "percentile", "95" },
					(double)advised->p95_bytes.value);
	}
}

static void put_cold_class(struct wss_metrics *metrics, const struct wss_watched *guest,
			   enum wss_cold_age age, const struct wss_cold_class *class)
{
	struct wss_label labels[] = {
		{ "domain", guest->name },
		{ "uuid", guest->uuid },
		{ "age", wss_cold_age_name(age) },
		{ "bound", "low" },
	};

	wss_metrics_value(metrics, labels, 4, (double)class->low_bytes);
	labels[3].value = "high";
	wss_metrics_value(metrics, labels, 4, (double)class->high_bytes);
}

static void write_cold(struct wss_metrics *metrics, const struct wss_watch *watch,
		       enum wss_metrics_level level)
{
	static const struct wss_metric cold = {
		"virt_wss_cold_bytes", WSS_METRIC_GAUGE, "bytes",
		"Memory that the guest has not touched for at least this age, between two bounds"
	};
	/* All five would be two series too many. */
	static const struct {
		enum wss_metrics_level level;
		enum wss_cold_age age;
	} ages[] = {
		{ WSS_METRICS_FULL, WSS_COLD_2MIN },
		{ WSS_METRICS_STANDARD, WSS_COLD_1H },
		{ WSS_METRICS_STANDARD, WSS_COLD_24H },
		{ WSS_METRICS_STANDARD, WSS_COLD_SINCE_WATCHED },
	};

	wss_metrics_family(metrics, &cold);
	for (size_t i = 0; i < wss_watch_count(watch); i++) {
		struct wss_cold_report report;

		if (!wss_watch_cold(watch, i, &report))
			continue;
		for (size_t j = 0; j < sizeof(ages) / sizeof(ages[0]); j++)
			if (ages[j].level <= level)
				put_cold_class(metrics, wss_watch_guest(watch, i), ages[j].age,
					       &report.ages[ages[j].age]);
	}
}

void wss_metrics_write(FILE *stream, enum wss_metrics_form form, const struct wss_watch *watch,
		       const struct wss_service_facts *facts)
{
	struct wss_metrics metrics = wss_metrics_begin(stream, form);
	const struct metered metered = { watch, facts->advisor, wss_watch_count(watch) };

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
