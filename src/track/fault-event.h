/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The arguments of the tracepoint kvm:kvm_page_fault on this kernel. */
#ifndef WSS_TRACK_FAULT_EVENT_H
#define WSS_TRACK_FAULT_EVENT_H

#include <stdbool.h>

#include "base/error.h"
#include "base/root.h"

/*
 * Positions of the tracepoint's arguments. Linux 6.1 put the vCPU in front of the two older
 * ones (arch/x86/kvm/trace.h), and distributions backport that, so the version does not
 * decide.
 */
struct wss_fault_event {
	unsigned address_arg; /* guest-physical address */
	unsigned error_arg;   /* AMD: the error code of the nested fault; Intel: exit qualification */
};

/*
 * Reads the positions from the text of the tracepoint's format file. Compares the layout field
 * by field with those known; any other is WSS_ERR_UNSUPPORTED.
 */
int wss_fault_event_parse(const char *format, struct wss_fault_event *ret_event,
			  struct wss_error *err);

/*
 * Reads them from tracefs, mounted at its own place or below debugfs. WSS_ERR_UNSUPPORTED if
 * it is not there.
 */
int wss_fault_event_read(const struct wss_root *root, struct wss_fault_event *ret_event,
			 struct wss_error *err);

#endif
