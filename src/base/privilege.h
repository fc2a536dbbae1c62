/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Errors of a missing permission: name the capability that this process lacks, and what to do. */
#pragma once

#include <linux/capability.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

#ifndef CAP_PERFMON
#define CAP_PERFMON 38
#endif
#ifndef CAP_BPF
#define CAP_BPF 39
#endif

#define WSS_CAP(capability) (1ULL << (capability))
/*
 * The capability to use a file or directory whose mode admits only its owner. To read one, CAP_DAC_READ_SEARCH is enough
 * and is accepted. Errors name only this one, because measuring also writes.
 */
#define WSS_CAPS_FILE WSS_CAP(CAP_DAC_OVERRIDE)
/* The capabilities to open the files of another user's process: proc(5), ptrace(2). */
#define WSS_CAPS_PROCESS (WSS_CAP(CAP_SYS_PTRACE) | WSS_CAPS_FILE)

/* Whether this thread has all of these capabilities. */
bool wss_privilege_has(uint64_t needed);

/*
 * Does what wss_error_errno() does. If errnum is EACCES or EPERM, the code becomes WSS_ERR_UNSUPPORTED and the text
 * also says which of the needed capabilities (WSS_CAP(...), combined) this thread lacks, and what to do.
 */
int wss_privilege_errno(struct wss_error *err, enum wss_error_code code, int errnum,
			uint64_t needed, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));
