/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "cmd/recommend.h"

static const struct wss_host_sum *host_of(const void *row)
{
	return row;
}

static struct wss_value recommend_get_guests(const void *row)
{
	return wss_value_number(host_of(row)->guests, WSS_KIND_COUNT);
}

static struct wss_value recommend_get_unsized(const void *row)
{
	return wss_value_number(host_of(row)->unsized, WSS_KIND_COUNT);
}

static struct wss_value recommend_get_unknown(const void *row)
{
	return wss_value_number(host_of(row)->unknown, WSS_KIND_COUNT);
}

static struct wss_value recommend_get_too_early(const void *row)
{
	return wss_value_number(host_of(row)->too_early, WSS_KIND_COUNT);
}

static struct wss_value recommend_get_hours(const void *row)
{
	return wss_value_number(host_of(row)->hours, WSS_KIND_COUNT);
}

static struct wss_value recommend_get_probability(const void *row)
{
	return recommend_value_share(host_of(row)->probability);
}

static struct wss_value recommend_get_needed_is(const void *row)
{
	return recommend_value_share_or_peak(host_of(row)->probability, host_of(row)->from_peak);
}

static struct wss_value recommend_get_host_from_peak(const void *row)
{
	return host_of(row)->needed_bytes.known
		       ? wss_value_number(host_of(row)->from_peak, WSS_KIND_BOOL)
		       : wss_value_absent();
}

#define HOST(name)                                                                            \
	static struct wss_value recommend_get_##name##_bytes(const void *row)                 \
	{                                                                                     \
		return wss_value_amount(host_of(row)->name##_bytes, WSS_KIND_BYTES);          \
	}

HOST(host)
HOST(assigned)
HOST(wss)
HOST(needed)
HOST(overhead)
HOST(fits)

static struct wss_value value_ratio(struct wss_amount a, struct wss_amount b)
{
	if (!a.known || !b.known || !b.value)
		return wss_value_absent();
	return recommend_value_share((double)a.value / (double)b.value);
}

static struct wss_value recommend_get_assigned_of_needed(const void *row)
{
	return value_ratio(host_of(row)->assigned_bytes, host_of(row)->needed_bytes);
}

static struct wss_value recommend_get_assigned_of_host(const void *row)
{
	return value_ratio(host_of(row)->assigned_bytes, host_of(row)->host_bytes);
}

static const struct wss_column host_columns[] = {
	{"guests", NULL, "GUESTS", 6, recommend_get_guests,
	 "Guests that run on the host, a count", false},
	{"unknown_guests", NULL, "UNSIZED", 7, recommend_get_unsized,
	 "Guests without a size, whatever their status, a count; each counts with all its "
	 "memory",
	 false},
	{"host_bytes", NULL, "HOST", 8, recommend_get_host_bytes,
	 "Memory of the host, hot-plugged memory included, in bytes", false},
	{"assigned_bytes", NULL, "ASSIGNED", 8, recommend_get_assigned_bytes,
	 "Maximum memory of all guests, in bytes", false},
	{"wss_bytes", NULL, "WSS", 8, recommend_get_wss_bytes,
	 "Sum of the guests' bases, in bytes", false},
	{"hours", NULL, "HOURS", 5, recommend_get_hours,
	 "Hours of history that are added up, a count", false},
	{"probability", NULL, "PROBABILITY", 11, recommend_get_probability,
	 "Requested probability, as a share, 1 = 100%", false},
	{"needed_is", NULL, "PROB", 6, recommend_get_needed_is, "The probability, or peak",
	 true},
	{"from_peak", NULL, "FROM-PEAK", -9, recommend_get_host_from_peak,
	 "Whether the peak is used instead, because there are too few hours", false},
	{"needed_bytes", NULL, "NEEDED", 8, recommend_get_needed_bytes,
	 "Need of all guests together, not exceeded with that probability, in bytes", false},
	{"overhead_bytes", NULL, "OVERHEAD", 8, recommend_get_overhead_bytes,
	 "Resident memory of QEMU that is not guest memory, in bytes", false},
	{"overcommit", NULL, "ASSIGNED/NEEDED", 15, recommend_get_assigned_of_needed,
	 "Assigned memory as a share of what is needed, 1 = 100%", false},
	{"fits_bytes", NULL, "FREE", 8, recommend_get_fits_bytes,
	 "Memory of the host less that need and QEMU's own memory, in bytes", false},
	{"assigned_of_host", NULL, "OF-HOST", 7, recommend_get_assigned_of_host,
	 "Assigned memory as a share of the host's, 1 = 100%", false},
	{"status_unknown_guests", NULL, "UNKNOWN", 7, recommend_get_unknown,
	 "Guests whose status is unknown, a count", false},
	{"too_early_guests", NULL, "EARLY", 5, recommend_get_too_early,
	 "Guests whose status is too early, a count", false},
};

const struct wss_report_layout recommend_host_layout = {
	.schema = "virt-wss/recommendations/1",
	.array_key = "host",
	.columns = host_columns,
	.n_columns = sizeof(host_columns) / sizeof(host_columns[0]),
	.shown = "guests,status_unknown_guests,too_early_guests,host_bytes,assigned_bytes,"
		 "needed_bytes,overcommit,fits_bytes",
	.wide = "guests,status_unknown_guests,too_early_guests,unknown_guests,host_bytes,"
		"assigned_bytes,assigned_of_host,wss_bytes,hours,needed_is,needed_bytes,"
		"overcommit,overhead_bytes,fits_bytes",
};
