/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What inject.so leaves behind for the test: the file that WSS_INJECT_STATE names. */
#ifndef WSS_TESTS_INJECT_H
#define WSS_TESTS_INJECT_H

#include <stdatomic.h>
#include <stdint.h>

#define INJECT_FRAMES 6

struct inject_state {
	_Atomic uint64_t calls; /* that were counted */
	_Atomic uint64_t fired; /* how many of them were failed */
	char function[32];	/* of the last of these, as what follows */
	/* Where in the program, from the innermost, as offsets for addr2line; 0 where there is
	 * none. */
	uint64_t frames[INJECT_FRAMES];
};

#endif
