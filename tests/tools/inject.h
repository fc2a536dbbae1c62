/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The file that WSS_INJECT_STATE names, which inject.so leaves for the test. */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#define INJECT_FRAMES 6

struct inject_state {
	_Atomic uint64_t calls; /* number of calls counted */
	_Atomic uint64_t fired; /* number of those that failed */
	char function[32];	/* function of the last of these, as are the frames */
	/* Where in the program, innermost first, as offsets for addr2line; 0 if there is none. */
	uint64_t frames[INJECT_FRAMES];
};
