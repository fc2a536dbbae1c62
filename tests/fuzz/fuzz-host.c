/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The files that describe the host. The parts have the names of the files: @osrelease,
 * @hostname, @boot_id, @tdp_mmu, @ept, @npt, @product_uuid, @machine-id, @smaps.
 */
#include <ctype.h>
#include <string.h>

#include "fuzz.h"
#include "host/host.h"

static const struct {
	const char *part, *path;
} files[] = {
	{"osrelease", "proc/sys/kernel/osrelease"},
	{"hostname", "proc/sys/kernel/hostname"},
	{"boot_id", "proc/sys/kernel/random/boot_id"},
	{"smaps", "proc/self/smaps"},
	{"tdp_mmu", "sys/module/kvm/parameters/tdp_mmu"},
	{"ept", "sys/module/kvm_intel/parameters/ept"},
	{"npt", "sys/module/kvm_amd/parameters/npt"},
	{"product_uuid", "sys/class/dmi/id/product_uuid"},
	{"machine-id", "etc/machine-id"},
};

static void check_uuid(const char *uuid)
{
	fuzz_require(!uuid[0] || strlen(uuid) == 36);
	for (; *uuid; uuid++)
		fuzz_require(*uuid == '-' || isdigit((unsigned char)*uuid) ||
			     (*uuid >= 'a' && *uuid <= 'f'));
}

static void host_run(const uint8_t *data, size_t size)
{
	struct wss_host host = {.root = {.dirfd = -1}};
	struct wss_error err = WSS_ERROR_INIT;
	char boot_id[WSS_HOST_BOOT_ID_MAX];
	int r;

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		size_t len;
		const uint8_t *part = fuzz_part(data, size, files[i].part, &len);

		fuzz_file(files[i].path, part, len);
	}
	r = wss_host_open(fuzz_directory(), &host, &err);
	fuzz_check(r, &err);
	fuzz_require(r == 0);
	fuzz_require(memchr(host.release, '\0', sizeof(host.release)));
	fuzz_require(memchr(host.name, '\0', sizeof(host.name)));
	check_uuid(host.uuid);
	check_uuid(host.machine_id);
	wss_host_close(&host);
	wss_host_boot_id(fuzz_directory(), boot_id);
	fuzz_require(memchr(boot_id, '\0', sizeof(boot_id)));
}

const struct fuzz_target fuzz_target = {
	.name = "host",
	.run = host_run,
	.max_bytes = 8192,
	.mutations = 5000,
};
