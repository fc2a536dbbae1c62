/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Files of ages. The checksum is made to fit, so that what it protects is tried as well. */
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "cold/ages.h"
#include "fuzz.h"
#include "recording/codec.h"

#define LIMIT_BYTES (1U << 20)
/* 16 GiB. */
#define PAGES_MAX (1U << 22)

static void check_report(const struct wss_ages *ages)
{
	struct wss_cold_report report;
	uint64_t high = UINT64_MAX;

	if (!wss_cold_timeline_report(&ages->timeline, ages->written_ns, &report))
		return;
	fuzz_require(report.as_of_ns > report.since_ns);
	for (size_t i = 0; i < WSS_COLD_AGES; i++) {
		const struct wss_cold_class *class = &report.ages[i];

		fuzz_require(class->low_bytes <= class->high_bytes);
		fuzz_require(class->high_bytes <= report.held_bytes && class->high_bytes <= high);
		fuzz_require(class->observed >= 0 && class->observed <= 1.0001);
		high = class->high_bytes;
	}
}

static void check_pages(const struct wss_ages *ages, const struct wss_coldness *coldness)
{
	uint64_t pages = 0;
	struct wss_cold_run run;

	fuzz_require(wss_coldness_bytes(coldness) <=
		     LIMIT_BYTES + 65536 + wss_coldness_pages(coldness) / 16 + 1024);
	for (; wss_coldness_next(coldness, pages, &run); pages += run.n)
		fuzz_require(run.n &&
			     (run.serial == WSS_COLD_ABSENT || run.serial <= ages->timeline.n));
	fuzz_require(pages == wss_coldness_pages(coldness));
}

static void add_window(const struct wss_ages *ages, struct wss_coldness *coldness)
{
	static const uint64_t bits[2] = {0x8000000000000001, 0xff00ff};
	const struct wss_cold_window window = {
		.start_ns = ages->written_ns,
		.end_ns = ages->written_ns + 1,
		.touched = wss_pages_of_bits(bits, 2),
	};

	wss_coldness_add(coldness, &window);
	fuzz_require(wss_cold_timeline_valid(wss_coldness_timeline(coldness),
					     wss_coldness_pages(coldness), ages->written_ns + 1));
}

static uint64_t ages_pages(const struct wss_ages *ages)
{
	uint64_t pages = 0;

	for (size_t i = 0; i < ages->n_parts; i++)
		pages += ages->parts[i].n;
	return pages;
}

static void ages_run(const uint8_t *data, size_t size)
{
	struct wss_ages *ages = malloc(sizeof(*ages));
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_coldness *coldness = NULL;
	uint8_t *copy = calloc(size ? size : 1, 1);
	uint32_t crc;
	int r;

	fuzz_require(ages && copy);
	if (size)
		memcpy(copy, data, size);
	fuzz_check(wss_ages_decode(copy, size, LIMIT_BYTES, NULL, ages, NULL, &err), &err);
	wss_error_clear(&err);
	if (size >= 4) {
		crc = htole32(wss_crc32c(0, copy, size - 4));
		memcpy(copy + size - 4, &crc, 4);
	}
	r = wss_ages_decode(copy, size, LIMIT_BYTES, NULL, ages, NULL, &err);
	fuzz_check(r, &err);
	/* The service compares the size with the guest's before it takes the pages. */
	if (r == 0 && ages_pages(ages) <= PAGES_MAX) {
		fuzz_require(
			wss_ages_decode(copy, size, LIMIT_BYTES, NULL, ages, &coldness, &err) == 0);
		check_report(ages);
		check_pages(ages, coldness);
		add_window(ages, coldness);
		wss_coldness_free(coldness);
	}
	free(copy);
	free(ages);
}

const struct fuzz_target fuzz_target = {
	.name = "ages",
	.run = ages_run,
	.max_bytes = 16384,
	.mutations = 20000,
};
