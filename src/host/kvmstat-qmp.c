/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "host/kvmstat.h"
#include "qmp/qmp.h"
#include "qmp/query.h"

#define TIMEOUT_MS 5000

int wss_kvm_counts_qmp(struct qmp *qmp, struct wss_kvm_counts *ret_counts, struct wss_error *err)
{
	struct qmp_stat vm[] = {{.name = "pages_4k"},
				{.name = "pages_2m"},
				{.name = "pages_1g"},
				{.name = "remote_tlb_flush_requests"}};
	struct qmp_stat vcpu[] = {
		{.name = "pf_fixed"}, {.name = "nested_run"}, {.name = "guest_mode"}};

	if (qmp_query_stats(qmp, QMP_STATS_VM, vm, 4, TIMEOUT_MS, err) < 0 ||
	    qmp_query_stats(qmp, QMP_STATS_VCPU, vcpu, 3, TIMEOUT_MS, err) < 0)
		return -1;
	if (!vm[0].found || !vm[1].found || !vm[2].found)
		return wss_error_set(err, WSS_ERR_UNSUPPORTED,
				     "KVM's page counters are missing (needs KVM and Linux 5.15)");
	*ret_counts = (struct wss_kvm_counts){
		.pages_4k = vm[0].value,
		.pages_2m = vm[1].value,
		.pages_1g = vm[2].value,
		.tlb_flushes = vm[3].value,
		.pf_fixed = vcpu[0].value,
		.nested_run = vcpu[1].value,
		.guest_mode = vcpu[2].value,
		.has_pf_fixed = vcpu[0].found,
		.has_tlb_flushes = vm[3].found,
		.has_guest_mode = vcpu[2].found,
		.has_nested = vcpu[1].found && vcpu[2].found,
	};
	return 0;
}
