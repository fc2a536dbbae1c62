/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The domain XML, and where its memory lies in the guest. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "fuzz.h"
#include "host/domxml.h"
#include "host/gpa.h"

/* The layout of a guest of which only the configuration is known. */
static int derive(const struct wss_domxml *config, struct wss_gpa_layout *ret_layout,
		  struct wss_error *err)
{
	static struct wss_guest guest;

	guest.config = *config;
	return wss_gpa_of_guest(&guest, ret_layout, err);
}

static void check_layout(const struct wss_domxml *dom)
{
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_gpa_layout layout;
	uint64_t last = 0;
	int r = derive(dom, &layout, &err);

	fuzz_check(r, &err);
	if (r < 0)
		return;
	fuzz_require(layout.n_ranges <= WSS_GPA_RANGES_MAX);
	for (size_t i = 0; i < layout.n_ranges; i++) {
		const struct wss_gpa_range *range = &layout.ranges[i];

		fuzz_require((!i || range->start > last) && range->end > range->start &&
			     range->end % 4096 == 0);
		last = range->end;
	}
}

static void domxml_run(const uint8_t *data, size_t size)
{
	wss_auto_free char *xml = fuzz_text(data, size);
	struct wss_error err = WSS_ERROR_INIT;
	static struct wss_domxml dom;
	int r = wss_domxml_parse(xml, &dom, &err);

	fuzz_check(r, &err);
	if (r < 0)
		return;
	fuzz_require(dom.name[0] && strlen(dom.uuid) == WSS_UUID_TEXT_MAX - 1);
	fuzz_require(dom.maximum_bytes && dom.n_blocks && dom.n_blocks <= WSS_RAM_BLOCKS_MAX);
	fuzz_require(dom.n_devices <= WSS_MEMORY_DEVICES_MAX);
	for (size_t i = 0; i < dom.n_blocks; i++)
		fuzz_require(dom.block_bytes[i]);
	check_layout(&dom);
}

const struct fuzz_target fuzz_target = {
	.name = "domxml",
	.run = domxml_run,
	.max_bytes = 65536,
	.mutations = 8000,
};
