/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * maps, smaps and status of a QEMU process. Parts: @sizes (of the blocks of RAM, in bytes),
 * @maps,
 * @smaps, @status.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "fuzz.h"
#include "host/ram.h"

#define SIZES_MAX 64

static void put_part(const uint8_t *data, size_t size, const char *name)
{
	size_t len;
	const uint8_t *part = fuzz_part(data, size, name, &len);

	fuzz_file(name, part, len);
}

static size_t read_sizes(const uint8_t *data, size_t size, uint64_t sizes[SIZES_MAX])
{
	size_t len, n = 0;
	const uint8_t *part = fuzz_part(data, size, "sizes", &len);
	wss_auto_free char *text = part ? fuzz_text(part, len) : NULL;
	char *at = text, *end;

	while (at && n < SIZES_MAX) {
		sizes[n] = strtoull(at, &end, 10);
		if (end == at)
			break;
		at = end;
		n++;
	}
	return n;
}

static void check_ram(const struct wss_ram *ram, size_t n)
{
	uint64_t total = 0;

	fuzz_require(ram->n_ranges == n);
	for (size_t i = 0; i < n; i++) {
		fuzz_require(ram->ranges[i].end > ram->ranges[i].start);
		fuzz_require(!i || ram->ranges[i].start >= ram->ranges[i - 1].end);
		total += ram->ranges[i].end - ram->ranges[i].start;
	}
	fuzz_require(total == ram->total_bytes);
}

static void smaps_run(const uint8_t *data, size_t size)
{
	static const char stat[] = "4242 (qemu) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 77\n";
	struct wss_process process = WSS_PROCESS_INIT;
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_ram ram = WSS_RAM_INIT;
	struct wss_smaps smaps;
	uint64_t sizes[SIZES_MAX], rss, hugetlb;
	size_t n = read_sizes(data, size, sizes);
	int found, r;

	process.pid = 4242;
	process.proc.dirfd = fuzz_dirfd();
	fuzz_file("stat", stat, strlen(stat));
	put_part(data, size, "maps");
	put_part(data, size, "smaps");
	put_part(data, size, "status");
	found = wss_ram_find(&process, sizes, n, &ram, &err);
	fuzz_check(found, &err);
	if (found == 0)
		check_ram(&ram, n);
	wss_error_clear(&err);
	r = wss_smaps_read(&process, found == 0 ? &ram : NULL, &smaps, &err);
	fuzz_check(r, &err);
	wss_error_clear(&err);
	r = wss_resident_read(&process, &rss, &hugetlb, &err);
	fuzz_check(r, &err);
	wss_ram_free(&ram);
}

const struct fuzz_target fuzz_target = {
	.name = "smaps",
	.run = smaps_run,
	.max_bytes = 32768,
	.mutations = 10000,
};
