/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The tracepoint kvm:kvm_page_fault as this kernel has it.
 */
#ifndef WSS_TRACK_FAULT_EVENT_H
#define WSS_TRACK_FAULT_EVENT_H

#include <stdbool.h>

#include "base/error.h"
#include "base/root.h"

/*
 * Which of the arguments of the tracepoint are what. Linux 6.1 put the vCPU before the
 * two that were there (arch/x86/kvm/trace.h), and distributions carry that back: the
 * version does not tell.
 */
struct wss_fault_event {
	unsigned address_arg; /* guest-physical address */
	unsigned error_arg;   /* AMD: the error code of the nested fault; Intel: exit qualification */
};

/*
 * From the text of the tracepoint's format file. Only the layouts that are known are
 * taken, field by field: any other is WSS_ERR_UNSUPPORTED.
 */
int wss_fault_event_parse(const char *format, struct wss_fault_event *ret_event,
			  struct wss_error *err);

/* From tracefs, at its own place or below debugfs. WSS_ERR_UNSUPPORTED where it is not there. */
int wss_fault_event_read(const struct wss_root *root, struct wss_fault_event *ret_event,
			 struct wss_error *err);

#endif
