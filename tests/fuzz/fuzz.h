/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The frame of the fuzz targets. A target is one file, tests/fuzz/fuzz-NAME.c, that defines
 * fuzz_target; its seeds are tests/fuzz/seeds/NAME/, its dictionary is tests/fuzz/NAME.dict.
 *
 * It is built in two ways. With driver.c it is a test: it runs every seed, its cuts and a
 * fixed sequence of mutations. With clang's libFuzzer (configure --enable-fuzzing, make fuzz)
 * it searches for inputs itself. Both stop at the first input that crashes, that a sanitizer
 * reports, that breaks a property checked by the target, or that exceeds the limits below.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/*
 * Limits on the processor time and memory of an input, even with sanitizers. The time only ends what hangs: make fuzz, which
 * searches for slow inputs, sets a short one as WSS_FUZZ_SECONDS.
 */
#define FUZZ_SECONDS_MAX 60
#define FUZZ_MEMORY_MIB 512

struct fuzz_target {
	const char *name; /* as in fuzz-NAME */
	/* Parses the size bytes at data, a block of exactly that size. Aborts on a violation. */
	void (*run)(const uint8_t *data, size_t size);
	size_t max_bytes;   /* longer inputs are not made */
	unsigned mutations; /* of the seeds, in a test */
	/*
	 * Makes seed number n (from 0 on) that is not a file, in at most room bytes at data.
	 * Returns its size, 0 if there is no seed n. May be NULL.
	 */
	size_t (*seed)(unsigned n, uint8_t *data, size_t room);
};

extern const struct fuzz_target fuzz_target;

/* Returns a copy of the input with a final NUL, for free(). */
char *fuzz_text(const uint8_t *data, size_t size);

/* Aborts unless r and err agree: 0 without an error, or negative with a code and a text. */
void fuzz_check(int r, const struct wss_error *err);

/* Aborts unless the condition holds. */
#define fuzz_require(condition) ((condition) ? (void)0 : fuzz_fail(#condition, __FILE__, __LINE__))
_Noreturn void fuzz_fail(const char *what, const char *file, int line);

/*
 * A directory in memory for this process, empty at first and removed at its end. Return its
 * path, and a descriptor of it.
 */
const char *fuzz_directory(void);
int fuzz_dirfd(void);

/* Returns where such directories are made: TMPDIR, else in memory if possible. */
const char *fuzz_memory_directory(void);

/* Writes a file below fuzz_directory(), and the directories above it; data NULL removes it. */
void fuzz_file(const char *path, const void *data, size_t size);

/*
 * An input of several files is text: "@NAME" on a separate line, then that file. Returns its
 * first byte and its size, NULL if the input has no such part.
 */
const uint8_t *fuzz_part(const uint8_t *data, size_t size, const char *name, size_t *ret_size);

/* Returns a descriptor of a file in memory with this content. */
int fuzz_memfd(const void *data, size_t size);

/*
 * Call this before each run of a command: redirects standard output to /dev/null, takes over
 * log messages, and starts counting errors among them.
 */
void fuzz_begin_command(void);

/* Returns the number of error messages since then. */
unsigned fuzz_errors(void);

/* Entry with the limits; also libFuzzer's. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Returns the longest processor time of an input so far, in seconds. */
double fuzz_longest(void);
