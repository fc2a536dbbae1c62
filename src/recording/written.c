/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "recording/written.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "measure/control.h"
#include "measure/sampling.h"

/* Returns the longest time for which pages may be sampled, in s. */
static unsigned sampling_most_s(const struct wss_measure_options *measure)
{
	return (unsigned)(measure->window.track.window_ns / WSS_NS_PER_S);
}

uint64_t wss_written_length_ns(const struct wss_measure_options *measure)
{
	uint64_t seconds = 0;

	for (unsigned s = 1; s <= sampling_most_s(measure); s *= 2)
		seconds += s;
	return seconds * WSS_NS_PER_S + measure->window.track.window_ns;
}

/* Samples with the lock held. */
static int written_sample_locked(struct wss_target *target, unsigned most_s,
				 struct wss_written_result *result, struct wss_error *err)
{
	const struct wss_host *host = wss_hypervisor_host(target->hypervisor);
	struct wss_sampling sampling;

	for (unsigned s = 1; s <= most_s && result->n_sampled < WSS_WRITTEN_WINDOWS; s *= 2) {
		/* A guest that is paused meanwhile would look idle. */
		if (wss_sampling_take(host, target->guest, &target->deadline, s, &sampling, err) <
			    0 ||
		    wss_guest_check_ready(target->guest, err) < 0)
			return -1;
		/* So would one that stood still for a part of it. */
		if (sampling.stood_still[0]) {
			wss_error_set(err, WSS_ERR_FAILED, "the guest was %s",
				      sampling.stood_still);
			continue;
		}
		result->sampled[result->n_sampled++] = wss_writes_sampled(
			result->ram_bytes, s, sampling.mib_per_s, sampling.per_gib);
	}
	return 0;
}

/* Samples pages, and watches how busy the virtual CPUs are meanwhile. */
static int written_sample_busy(struct wss_target *target, unsigned most_s,
			       struct wss_written_result *result, struct wss_error *err)
{
	const struct wss_guest *guest = target->guest;
	wss_auto_free struct wss_cputime *times = calloc(2, sizeof(*times));
	bool known;
	int r;

	if (!times)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	known = wss_cputime_read(&guest->process, &times[0], NULL) == 0;
	r = written_sample_locked(target, most_s, result, err);
	if (known && !err->code && wss_cputime_read(&guest->process, &times[1], NULL) == 0)
		result->busy = wss_cputime_compare(&times[0], &times[1],
						   guest->config.vcpus ? guest->config.vcpus : 1);
	return r;
}

static void written_keep(const struct wss_sample *sample, bool last, void *opaque)
{
	(void)last;
	((struct wss_written_result *)opaque)->sample = *sample;
}

/* Lets the sample fail with the reason for which the guest could not run. */
static void written_refuse(struct wss_sample *sample)
{
	const char *why = "the guest could not run for a part of the window";

	for (size_t i = 0; i < sample->n_notes; i++)
		if (!strncmp(sample->notes[i], "the guest was ", strlen("the guest was ")))
			why = sample->notes[i];
	wss_error_set(&sample->error, WSS_ERR_FAILED, "%.*s", (int)strcspn(why, ":"), why);
	sample->quality = WSS_QUALITY_FAILED;
}

int wss_written_window(struct wss_target *target, const struct wss_measure_options *measure,
		       struct wss_written_result *ret_result, struct wss_error *err)
{
	*ret_result = (struct wss_written_result){.ram_bytes = 0};
	if (!target->guest)
		return wss_error_set(err, target->error.code, "%s", target->error.text);
	ret_result->ram_bytes = (double)target->guest->config.maximum_bytes;
	wss_deadline_pause(&target->deadline);
	wss_measure_run(target, measure, NULL, written_keep, ret_result);
	/* What it touched in the rest is no upper bound of anything. */
	if (wss_sample_measured(&ret_result->sample) && ret_result->sample.stood_still)
		written_refuse(&ret_result->sample);
	return wss_cancel_requested(&target->cancel)
		       ? wss_error_set(err, WSS_ERR_INTERRUPTED, "interrupted")
		       : 0;
}

int wss_written_sample(struct wss_target *target, const struct wss_measure_options *measure,
		       struct wss_written_result *result, struct wss_error *err)
{
	struct wss_guest *guest = target->guest;

	wss_deadline_renew(&target->deadline);
	wss_deadline_run(&target->deadline, 0);
	if (wss_guest_check_ready(guest, &result->sampling_error) == 0 &&
	    wss_guest_attach(guest, wss_hypervisor_host(target->hypervisor),
			     &result->sampling_error) == 0 &&
	    wss_control_take(&guest->process, &result->sampling_error) == 0) {
		wss_debug("%s: its writes are sampled", guest->config.name);
		written_sample_busy(target, sampling_most_s(measure), result,
				    &result->sampling_error);
		wss_control_release(&guest->process);
	}
	return wss_cancel_requested(&target->cancel)
		       ? wss_error_set(err, WSS_ERR_INTERRUPTED, "interrupted")
		       : 0;
}

/* Adds what the window knows about writes, instead of windows as long as it. */
static size_t written_add_exact(const struct wss_sample *sample, struct wss_writes_point *points,
				size_t n)
{
	double seconds = (double)sample->window_ns.value / 1e9;
	double low = (double)sample->written_low_bytes.value;
	double high = (double)sample->written_high_bytes.value;

	if (!sample->written_bytes.known || !sample->written_low_bytes.known ||
	    !sample->written_high_bytes.known)
		return n;
	while (n && points[n - 1].seconds >= seconds * 0.9)
		n--;
	points[n] = (struct wss_writes_point){seconds,
					      {low, (double)sample->written_bytes.value, high}};
	return n + 1;
}

void wss_written_curve(const struct wss_written_result *result, struct wss_writes *ret_writes)
{
	struct wss_writes_point points[WSS_WRITTEN_WINDOWS + 1];
	bool measured = wss_sample_measured(&result->sample);
	size_t n = 0;

	for (; n < result->n_sampled; n++)
		points[n] = result->sampled[n];
	if (measured)
		n = written_add_exact(&result->sample, points, n);
	wss_writes_combine(ret_writes, result->sample.curve, measured ? result->sample.n_curve : 0,
			   points, n);
}
