/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "measure/counters.h"

#include <stdlib.h>

#include "kvm/kvm.h"

struct wss_counters {
	struct wss_guest *guest;
	struct wss_kvm_debugfs *debugfs; /* the source if it is set; else */
	struct wss_kvm_vm *vm;		 /* this is if it is set; else the guest's own */
};

/* The sums over the vCPUs are known only if all of them were found. */
static int read_vm(const struct wss_kvm_vm *vm, struct wss_kvm_counts *ret_counts,
		   struct wss_error *err)
{
	struct wss_kvm_counters found;
	bool all;

	if (wss_kvm.count(vm, &found, err) < 0)
		return -1;
	all = found.n_vcpus == found.all_vcpus;
	*ret_counts = (struct wss_kvm_counts){
		.pages_4k = found.pages[0],
		.pages_2m = found.pages[1],
		.pages_1g = found.pages[2],
		.pf_fixed = found.pf_fixed,
		.nested_run = found.nested_run,
		.tlb_flushes = found.tlb_flushes,
		.guest_mode = found.guest_mode,
		.has_pf_fixed = all,
		.has_tlb_flushes = found.has_tlb_flushes,
		.has_nested = all,
		.has_guest_mode = all,
	};
	return 0;
}

/* Returns -1 only when out of memory. */
static int open_debugfs(const struct wss_host *host, struct wss_counters *counters,
			struct wss_error *err)
{
	struct wss_error why = WSS_ERROR_INIT;

	if (wss_kvm_debugfs_open(&host->root, counters->guest->process.pid, &counters->debugfs,
				 &why) == 0 ||
	    why.code != WSS_ERR_NO_MEMORY)
		return 0;
	return wss_error_set(err, WSS_ERR_NO_MEMORY, "%s", why.text);
}

/* The process of a captured machine is none of this kernel's. */
static void open_vm(struct wss_counters *counters)
{
	struct wss_kvm_counts unused;

	if (counters->guest->process.pidfd < 0 || wss_kvm.probe(NULL) < 0 ||
	    wss_kvm.open(counters->guest->process.pid, counters->guest->vm, &counters->vm, NULL) <
		    0)
		return;
	if (read_vm(counters->vm, &unused, NULL) < 0) {
		wss_kvm.close(counters->vm);
		counters->vm = NULL;
	}
}

int wss_counters_open(const struct wss_host *host, struct wss_guest *guest,
		      struct wss_counters **ret_counters, struct wss_error *err)
{
	struct wss_counters *counters = calloc(1, sizeof(*counters));
	struct wss_kvm_counts unused;

	if (!counters)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	counters->guest = guest;
	if (open_debugfs(host, counters, err) < 0)
		goto failed;
	if (!counters->debugfs)
		open_vm(counters);
	if (wss_counters_need_qemu(counters) && guest->ops->kvm_counts(guest, &unused, err) < 0) {
		wss_error_prefix(err, "KVM's counters are not in debugfs, and");
		goto failed;
	}
	*ret_counters = counters;
	return 0;
failed:
	wss_counters_close(counters);
	return -1;
}

int wss_counters_read(const struct wss_counters *counters, struct wss_kvm_counts *ret_counts,
		      struct wss_error *err)
{
	if (counters->debugfs)
		return wss_kvm_debugfs_read(counters->debugfs, ret_counts, err);
	if (counters->vm)
		return read_vm(counters->vm, ret_counts, err);
	return counters->guest->ops->kvm_counts(counters->guest, ret_counts, err);
}

bool wss_counters_need_qemu(const struct wss_counters *counters)
{
	return !counters->debugfs && !counters->vm;
}

void wss_counters_close(struct wss_counters *counters)
{
	if (!counters)
		return;
	wss_kvm_debugfs_close(counters->debugfs);
	wss_kvm.close(counters->vm);
	free(counters);
}
