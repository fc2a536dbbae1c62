/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "measure/marks.h"

#include "base/number.h"
#include "base/units.h"

/*
 * Entries of all TLBs of a processor together, for instructions and data, of the first and the second level: more than any
 * has. The largest are those of AMD's Zen 5: 4096 for data and 2048 for instructions on the second level, 96 and 64 on the first
 * (Cohen and Subramony, Next Generation "Zen 5" Core, Hot Chips 2024).
 */
#define TLB_ENTRIES 8192

int wss_marks_probe_host(const struct wss_host *host, const char *method, struct wss_error *err)
{
	char line[8];

	if (host->two_dim_paging == WSS_UNKNOWN)
		return wss_error_set(err, WSS_ERR_UNSUPPORTED,
				     "KVM is not loaded on this host (no kvm_intel or kvm_amd)");
	if (host->two_dim_paging == WSS_NO)
		return wss_error_set(
			err, WSS_ERR_UNSUPPORTED,
			"KVM uses shadow paging on this host (ept/npt is off), with which %s was not tried",
			method);
	if (host->ept &&
	    wss_root_read_line(&host->root, "sys/module/kvm_intel/parameters/eptad", line,
			       sizeof(line)) == 0 &&
	    line[0] != 'Y' && line[0] != '1')
		return wss_error_set(err, WSS_ERR_UNSUPPORTED,
				     "this processor's EPT has no accessed bits (eptad is off)");
	return 0;
}

int wss_marks_probe_guest(const struct wss_guest *guest, struct wss_error *err)
{
	if (!guest->kvm)
		return wss_error_set(
			err, WSS_ERR_UNSUPPORTED,
			"the guest does not run on KVM (type '%s'): it has no second-level mappings",
			guest->config.type);
	if (guest->config.launch_security[0])
		return wss_error_set(
			err, WSS_ERR_UNSUPPORTED,
			"the guest %s (%s): its memory is pinned, or not the host's to age",
			guest->config.security_unseen ? "may be confidential" : "is confidential",
			guest->config.launch_security);
	return 0;
}

uint64_t wss_marks_hidden_bytes(const struct wss_guest *guest, uint64_t granularity_bytes,
				uint64_t unmarked_bytes)
{
	uint64_t entries = wss_u64_mul(wss_u64_max(guest->config.vcpus, 1), TLB_ENTRIES);

	return wss_u64_min(wss_u64_mul(entries, granularity_bytes), unmarked_bytes);
}

void wss_marks_explain_hidden(uint64_t hidden_bytes, struct wss_sample *sample)
{
	char size[16];

	wss_size_format(hidden_bytes, size, sizeof(size));
	if (hidden_bytes)
		wss_sample_note(
			sample,
			"a page whose address the processor has kept in its TLB is not marked again: up to %s that the guest uses most may be missing",
			size);
}
