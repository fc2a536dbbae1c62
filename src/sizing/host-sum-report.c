/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sizing/host-sum-report.h"

struct wss_value wss_value_share_or_peak(double share, bool from_peak)
{
	return from_peak ? wss_value_text("peak") : wss_value_share(share);
}

static const struct wss_host_sum *host_of(const void *row)
{
	return row;
}

static struct wss_value recommend_get_needed_is(const void *row)
{
	return wss_value_share_or_peak(host_of(row)->probability, host_of(row)->from_peak);
}

static const void *needed_of(const void *row)
{
	return host_of(row)->needed_bytes.known ? row : NULL;
}

static struct wss_value value_ratio(struct wss_amount a, struct wss_amount b)
{
	if (!a.known || !b.known || !b.value)
		return wss_value_absent();
	return wss_value_share((double)a.value / (double)b.value);
}

static struct wss_value recommend_get_assigned_of_needed(const void *row)
{
	return value_ratio(host_of(row)->assigned_bytes, host_of(row)->needed_bytes);
}

static struct wss_value recommend_get_assigned_of_host(const void *row)
{
	return value_ratio(host_of(row)->assigned_bytes, host_of(row)->host_bytes);
}

#define FIELD(member, kind) WSS_FIELD(struct wss_host_sum, member, kind)

static const struct wss_column host_columns[] = {
	{"guests", NULL, "GUESTS", 6, FIELD(guests, COUNT), "Guests that run on the host, a count"},
	{"unknown_guests", NULL, "UNSIZED", 7, FIELD(unsized, COUNT),
	 "Guests without a size, whatever their status, a count; each counts with all its memory"},
	{"host_bytes", NULL, "HOST", 8, FIELD(host_bytes, BYTES),
	 "Memory of the host, hot-plugged memory included, in bytes"},
	{"assigned_bytes", NULL, "ASSIGNED", 8, FIELD(assigned_bytes, BYTES),
	 "Maximum memory of all guests, in bytes"},
	{"wss_bytes", NULL, "WSS", 8, FIELD(wss_bytes, BYTES),
	 "Sum of the guests' bases, in bytes"},
	{"hours", NULL, "HOURS", 5, FIELD(hours, COUNT),
	 "Hours of history that are added up, a count"},
	{"probability", NULL, "PROBABILITY", 11, FIELD(probability, SHARE),
	 "Requested probability, as a share, 1 = 100%"},
	{"needed_is", NULL, "PROB", 6, WSS_GET(recommend_get_needed_is),
	 "The probability, or peak"},
	{"from_peak", NULL, "FROM-PEAK", -9,
	 WSS_FIELD_OF(needed_of, struct wss_host_sum, from_peak, BOOL),
	 "Whether the peak is used instead, because there are too few hours"},
	{"needed_bytes", NULL, "NEEDED", 8, FIELD(needed_bytes, BYTES),
	 "Need of all guests together, not exceeded with that probability, in bytes"},
	{"overhead_bytes", NULL, "OVERHEAD", 8, FIELD(overhead_bytes, BYTES),
	 "Resident memory of QEMU that is not guest memory, in bytes"},
	{"overcommit", NULL, "ASSIGNED/NEEDED", 15, WSS_GET(recommend_get_assigned_of_needed),
	 "Assigned memory as a share of what is needed, 1 = 100%"},
	{"fits_bytes", NULL, "FREE", 8, FIELD(fits_bytes, BYTES),
	 "Memory of the host less that need and QEMU's own memory, in bytes"},
	{"assigned_of_host", NULL, "OF-HOST", 7, WSS_GET(recommend_get_assigned_of_host),
	 "Assigned memory as a share of the host's, 1 = 100%"},
	{"status_unknown_guests", NULL, "UNKNOWN", 7, FIELD(unknown, COUNT),
	 "Guests whose status is unknown, a count"},
	{"too_early_guests", NULL, "EARLY", 5, FIELD(too_early, COUNT),
	 "Guests whose status is too early, a count"},
	{"inventory", NULL, "INVENTORY", -9, FIELD(inventory, TEXT),
	 "Whose guests they are: libvirt, proxmox, or kvm for all of the kernel's"},
};

const struct wss_report_layout wss_host_sum_layout = {
	.schema = "virt-wss/recommendations/1",
	.array_key = "host",
	.columns = host_columns,
	.n_columns = sizeof(host_columns) / sizeof(host_columns[0]),
	.table_only = "needed_is",
	.shown = "guests,status_unknown_guests,too_early_guests,host_bytes,assigned_bytes,"
		 "needed_bytes,overcommit,fits_bytes",
	.wide = "guests,status_unknown_guests,too_early_guests,unknown_guests,host_bytes,"
		"assigned_bytes,assigned_of_host,wss_bytes,hours,needed_is,needed_bytes,"
		"overcommit,overhead_bytes,fits_bytes",
};
