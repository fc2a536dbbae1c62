/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sizing/host-sum.h"

#include "base/number.h"

int wss_host_sum_init(struct wss_host_sum *sum, time_t since, time_t now, struct wss_error *err)
{
	*sum = (struct wss_host_sum){.since = since};
	if (wss_fit_init(&sum->fit, since, now) < 0)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	return 0;
}

static void add_amount(struct wss_amount *sum, struct wss_amount amount)
{
	if (amount.known)
		*sum = wss_amount_of(wss_u64_add(sum->value, amount.value));
}

/* A guest whose hours are being added. */
struct guest_hours {
	struct wss_fit *fit;
	uint64_t beyond_bytes; /* growth beyond the end of its windows */
	uint64_t floor_bytes;  /* what it holds, touched or not */
};

static void on_hour(time_t start, uint64_t max_bytes, void *opaque)
{
	const struct guest_hours *hours = opaque;

	wss_fit_hour(hours->fit, start,
		     wss_u64_max(wss_u64_add(max_bytes, hours->beyond_bytes), hours->floor_bytes));
}

int wss_host_sum_add(struct wss_host_sum *sum, struct wss_history *history,
		     const struct wss_advice *advice, const struct wss_conn_size *size,
		     struct wss_error *err)
{
	bool paused = size->paused_bytes.known;
	bool sized = !paused && wss_advice_is_sized(advice);
	struct wss_amount assigned = size->assigned_bytes, flat;
	struct guest_hours hours = {&sum->fit, wss_advice_beyond_bytes(advice),
				    wss_advice_floor_bytes(advice)};
	int r = 0;

	if (advice->assigned_bytes.known)
		assigned = advice->assigned_bytes;
	flat = paused ? size->paused_bytes : assigned;
	sum->guests++;
	sum->paused += paused;
	sum->unsized += !sized && !paused;
	sum->unknown_memory += !sized && !flat.known;
	sum->unknown += advice->status == WSS_ADVICE_UNKNOWN;
	sum->too_early += advice->status == WSS_ADVICE_TOO_EARLY;
	add_amount(&sum->assigned_bytes, assigned);
	add_amount(&sum->wss_bytes, advice->sizing.base_bytes);
	if (advice->has_series)
		add_amount(&sum->overhead_bytes, advice->series.qemu_bytes);
	if (sized)
		r = wss_history_hours(history, &advice->series, sum->since, on_hour, &hours, err);
	wss_fit_guest(&sum->fit, sized ? wss_u64_max(wss_u64_add(advice->sizing.peak_bytes.value,
								 hours.beyond_bytes),
						     hours.floor_bytes)
				       : flat.value);
	return r < 0 ? -1 : 0;
}

int wss_host_sum_finish(struct wss_host_sum *sum, double probability, struct wss_amount host,
			struct wss_error *err)
{
	struct wss_fit_result result;
	uint64_t needed;

	if (wss_fit_result(&sum->fit, probability, &result) < 0)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	sum->probability = probability;
	sum->host_bytes = host;
	sum->hours = result.hours;
	sum->from_peak = result.from_peak;
	sum->needed_bytes = result.bytes;
	/* Guests that are all paused, or without a size, have no hours: each hour has all of their memory. */
	if (!result.hours && sum->guests > sum->unknown_memory)
		sum->needed_bytes = wss_amount_of(sum->fit.hours[0].bytes);
	if (!sum->needed_bytes.known || !host.known)
		return 0;
	needed = wss_u64_add(sum->needed_bytes.value, sum->overhead_bytes.value);
	sum->fits_bytes = wss_amount_of(host.value > needed ? host.value - needed : 0);
	return 0;
}

void wss_host_sum_free(struct wss_host_sum *sum)
{
	wss_fit_free(&sum->fit);
}
