/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "host/domain-stats.h"

#include <libvirt/virterror.h>
#include <string.h>

#include "base/number.h"
#include "host/conn-private.h"

/* libvirt reports the configuration's figures for a domain that does not run. */
static bool domain_runs(virDomainStatsRecordPtr record)
{
	int state;

	return virTypedParamsGetInt(record->params, record->nparams, "state.state", &state) != 1 ||
	       state != VIR_DOMAIN_SHUTOFF;
}

static int get_stats(virDomainPtr dom, unsigned stats, unsigned flags,
		     virDomainStatsRecordPtr **ret_records, struct wss_error *err)
{
	virDomainPtr list[] = {dom, NULL};
	int n = virDomainListGetStats(list, stats | VIR_DOMAIN_STATS_STATE, ret_records, flags);

	if (n < 0)
		return wss_conn_error(err, "cannot read the domain's statistics");
	if (n == 0 || !domain_runs((*ret_records)[0])) {
		virDomainStatsRecordListFree(*ret_records);
		return wss_error_set(err, WSS_ERR_GONE, "the domain is not running");
	}
	return 0;
}

static struct wss_amount get_amount(virDomainStatsRecordPtr record, const char *name,
				    uint64_t factor)
{
	unsigned long long value;

	/* Some of these figures come from the guest: an impossible one counts as unknown. */
	if (virTypedParamsGetULLong(record->params, record->nparams, name, &value) != 1 ||
	    value > WSS_BYTES_MAX / factor)
		return (struct wss_amount){0};
	return (struct wss_amount){true, (uint64_t)value * factor};
}

static struct wss_balloon_stats read_stats(virDomainStatsRecordPtr record)
{
	struct wss_amount in = get_amount(record, "balloon.swap_in", 1024),
			  out = get_amount(record, "balloon.swap_out", 1024);
	struct wss_balloon_stats stats = {
		.actual_bytes = get_amount(record, "balloon.current", 1024),
		.rss_bytes = get_amount(record, "balloon.rss", 1024),
		.usable_bytes = get_amount(record, "balloon.usable", 1024),
		.free_bytes = get_amount(record, "balloon.unused", 1024),
		.cache_bytes = get_amount(record, "balloon.disk_caches", 1024),
		.managed_bytes = get_amount(record, "balloon.available", 1024),
		.swapped_bytes = {in.known && out.known, in.value + out.value},
		.major_faults = get_amount(record, "balloon.major_fault", 1),
		.update_s = get_amount(record, "balloon.last-update", 1),
	};

	/*
	 * The time comes from the guest's and QEMU's clocks: an impossible one counts as
	 * unknown.
	 */
	if (stats.update_s.known && stats.update_s.value > (uint64_t)WSS_TIME_MAX_S)
		stats.update_s = (struct wss_amount){0};
	return stats;
}

void wss_domain_read_balloon(virDomainPtr dom, struct wss_guest *guest)
{
	struct wss_balloon_stats stats = {.update_s = {.known = false}};
	virDomainStatsRecordPtr *records;

	if (get_stats(dom, VIR_DOMAIN_STATS_BALLOON, VIR_CONNECT_GET_ALL_DOMAINS_STATS_NOWAIT,
		      &records, NULL) == 0) {
		stats = read_stats(records[0]);
		virDomainStatsRecordListFree(records);
	}
	guest->balloon_bytes = stats.actual_bytes;
	wss_balloon_report_take(guest, &stats);
}

int wss_domain_balloon_stats(virDomainPtr dom, struct wss_balloon_stats *ret_stats,
			     struct wss_error *err)
{
	virDomainStatsRecordPtr *records;

	if (get_stats(dom, VIR_DOMAIN_STATS_BALLOON, VIR_CONNECT_GET_ALL_DOMAINS_STATS_NOWAIT,
		      &records, err) < 0)
		return -1;
	*ret_stats = read_stats(records[0]);
	virDomainStatsRecordListFree(records);
	return 0;
}

int wss_domain_balloon_size(virDomainPtr dom, uint64_t *ret_bytes, struct wss_error *err)
{
	virDomainMemoryStatStruct stats[VIR_DOMAIN_MEMORY_STAT_NR];
	int n = virDomainMemoryStats(dom, stats, VIR_DOMAIN_MEMORY_STAT_NR, 0);

	if (n < 0)
		return wss_conn_error(err, "cannot read the size of its balloon");
	for (int i = 0; i < n; i++) {
		if (stats[i].tag != VIR_DOMAIN_MEMORY_STAT_ACTUAL_BALLOON ||
		    stats[i].val > WSS_BYTES_MAX / 1024)
			continue;
		*ret_bytes = (uint64_t)stats[i].val * 1024;
		return 0;
	}
	return wss_error_set(err, WSS_ERR_UNSUPPORTED,
			     "libvirt does not report the size of its balloon");
}

/*
 * Uses only query-blockstats, which reads QEMU's own counters. virDomainListGetStats() also
 * reads image sizes, for which QEMU calls stat() on each image in its main loop
 * (query-named-block-nodes), so hanging storage would stop the guest.
 */
int wss_domain_disk_reads(virDomainPtr dom, uint64_t *ret_bytes, struct wss_error *err)
{
	virDomainBlockStatsStruct stats = {.rd_bytes = -1};

	if (virDomainBlockStats(dom, "", &stats, sizeof(stats)) < 0)
		return wss_conn_error(err, "cannot read its disk statistics");
	if (stats.rd_bytes < 0)
		return wss_error_set(err, WSS_ERR_UNSUPPORTED,
				     "libvirt does not report the guest's disk reads");
	*ret_bytes = (uint64_t)stats.rd_bytes;
	return 0;
}

#if LIBVIR_VERSION_NUMBER >= 8009000
static bool get_counter(virDomainStatsRecordPtr record, const char *name, uint64_t *ret_value)
{
	unsigned long long value;

	if (virTypedParamsGetULLong(record->params, record->nparams, name, &value) != 1)
		return false;
	*ret_value = value;
	return true;
}

/* Sums vcpu.N.FIELD over all vCPUs; returns false if none has it. */
static bool sum_vcpus(virDomainStatsRecordPtr record, const char *field, uint64_t *ret_sum)
{
	bool found = false;

	*ret_sum = 0;
	for (int i = 0; i < record->nparams; i++) {
		const virTypedParameter *p = &record->params[i];
		const char *dot = strncmp(p->field, "vcpu.", 5) ? NULL : strchr(p->field + 5, '.');

		if (dot && !strcmp(dot + 1, field) && p->type == VIR_TYPED_PARAM_ULLONG) {
			*ret_sum = wss_u64_add(*ret_sum, p->value.ul);
			found = true;
		}
	}
	return found;
}

int wss_domain_kvm_counts(virDomainPtr dom, struct wss_kvm_counts *ret_counts,
			  struct wss_error *err)
{
	struct wss_kvm_counts counts = {0};
	virDomainStatsRecordPtr *records;
	bool found;

	if (get_stats(dom, VIR_DOMAIN_STATS_VM | VIR_DOMAIN_STATS_VCPU, 0, &records, err) < 0)
		return -1;
	found = get_counter(records[0], "vm.pages_4k.cur", &counts.pages_4k) &&
		get_counter(records[0], "vm.pages_2m.cur", &counts.pages_2m) &&
		get_counter(records[0], "vm.pages_1g.cur", &counts.pages_1g);
	counts.has_tlb_flushes =
		get_counter(records[0], "vm.remote_tlb_flush_requests.sum", &counts.tlb_flushes);
	counts.has_pf_fixed = sum_vcpus(records[0], "pf_fixed.sum", &counts.pf_fixed);
	counts.has_guest_mode = sum_vcpus(records[0], "guest_mode.cur", &counts.guest_mode);
	counts.has_nested = counts.has_guest_mode &&
			    sum_vcpus(records[0], "nested_run.sum", &counts.nested_run);
	virDomainStatsRecordListFree(records);
	if (!found)
		return wss_error_set(err, WSS_ERR_UNSUPPORTED,
				     "libvirt does not report KVM's page counters for this "
				     "guest (needs libvirt 8.9, QEMU 7.1)");
	*ret_counts = counts;
	return 0;
}
#else
int wss_domain_kvm_counts(virDomainPtr dom, struct wss_kvm_counts *ret_counts,
			  struct wss_error *err)
{
	(void)dom;
	(void)ret_counts;
	return wss_error_set(err, WSS_ERR_UNSUPPORTED,
			     "this build's libvirt has no KVM page counters (needs 8.9)");
}
#endif

int wss_domain_dirty_log(virDomainPtr dom, struct wss_dirty_log *ret_log, struct wss_error *err)
{
	virDomainStatsRecordPtr *records;
	const char *mode = NULL;
	long long mib_per_s = -1, start_s = 0;
	int status, length_s = 0;

	if (get_stats(dom, VIR_DOMAIN_STATS_DIRTYRATE, 0, &records, err) < 0)
		return -1;
	if (virTypedParamsGetInt(records[0]->params, records[0]->nparams, "dirtyrate.calc_status",
				 &status) != 1)
		status = -1;
	virTypedParamsGetString(records[0]->params, records[0]->nparams, "dirtyrate.calc_mode",
				&mode);
	virTypedParamsGetLLong(records[0]->params, records[0]->nparams,
			       "dirtyrate.megabytes_per_second", &mib_per_s);
	virTypedParamsGetLLong(records[0]->params, records[0]->nparams, "dirtyrate.calc_start_time",
			       &start_s);
	virTypedParamsGetInt(records[0]->params, records[0]->nparams, "dirtyrate.calc_period",
			     &length_s);
	*ret_log = (struct wss_dirty_log){
		.measuring = status == VIR_DOMAIN_DIRTYRATE_MEASURING,
		.bitmap = mode && !strcmp(mode, "dirty-bitmap"),
		.mib_per_s = {status == VIR_DOMAIN_DIRTYRATE_MEASURED && mib_per_s >= 0,
			      mib_per_s < 0 ? 0 : (uint64_t)mib_per_s},
	};
	if (ret_log->measuring && start_s > 0 && length_s > 0)
		ret_log->left_s = wss_dirty_log_left_s((uint64_t)start_s, (uint64_t)length_s);
	virDomainStatsRecordListFree(records);
	if (status < 0)
		return wss_error_set(err, WSS_ERR_UNSUPPORTED,
				     "libvirt does not report the state of the dirty log");
	return 0;
}
