/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * KVM's counters in debugfs; the parts have the names of the files. A counter without a part
 * is missing.
 */
#include <stdio.h>

#include "fuzz.h"
#include "host/kvmstat.h"

static const char *const counters[] = {
	"pages_4k",
	"pages_2m",
	"pages_1g",
	"pf_fixed",
	"nested_run",
	"guest_mode",
	"remote_tlb_flush_requests",
};

static void kvmstat_run(const uint8_t *data, size_t size)
{
	struct wss_root root = {.dirfd = fuzz_dirfd()};
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_kvm_debugfs *debugfs;
	struct wss_kvm_counts counts;
	char path[96];
	int r;

	fuzz_file("sys/kernel/debug/kvm/4242-12/create_vm", "", 0);
	for (size_t i = 0; i < sizeof(counters) / sizeof(counters[0]); i++) {
		size_t len;
		const uint8_t *part = fuzz_part(data, size, counters[i], &len);

		snprintf(path, sizeof(path), "sys/kernel/debug/kvm/4242-12/%s", counters[i]);
		fuzz_file(path, part, len);
	}
	r = wss_kvm_debugfs_open(&root, 4242, &debugfs, &err);
	fuzz_check(r, &err);
	if (r < 0)
		return;
	r = wss_kvm_debugfs_read(debugfs, &counts, &err);
	fuzz_check(r, &err);
	fuzz_require(r == 0 && (!counts.has_nested || counts.has_guest_mode));
	wss_kvm_counts_entries(&counts);
	wss_kvm_debugfs_close(debugfs);
}

const struct fuzz_target fuzz_target = {
	.name = "kvmstat",
	.run = kvmstat_run,
	.max_bytes = 1024,
	.mutations = 8000,
};
