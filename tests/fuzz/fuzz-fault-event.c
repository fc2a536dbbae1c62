/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The format file of the tracepoint kvm_page_fault.
 */
#include <stdlib.h>

#include "base/cleanup.h"
#include "fuzz.h"
#include "track/fault-event.h"

static void fault_event_run(const uint8_t *data, size_t size)
{
	wss_auto_free char *text = fuzz_text(data, size);
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_fault_event event;
	int r = wss_fault_event_parse(text, &event, &err);

	fuzz_check(r, &err);
	/* With any other index the program in the kernel would read a wrong argument. */
	fuzz_require(r < 0 ||
		     (event.address_arg <= 1 && event.error_arg == event.address_arg + 1));
}

const struct fuzz_target fuzz_target = {
	.name = "fault-event",
	.run = fault_event_run,
	.max_bytes = 16384,
	.mutations = 60000,
};
