/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A target that does everything forbidden to targets, each for a different input: for testing
 * the frame.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fuzz.h"

static bool is(const uint8_t *data, size_t size, const char *word)
{
	return size == strlen(word) && !memcmp(data, word, size);
}

static void broken_run(const uint8_t *data, size_t size)
{
	if (is(data, size, "crash"))
		abort();
	if (is(data, size, "require"))
		fuzz_require(size == 0);
	if (is(data, size, "slow"))
		while (clock() < 2 * CLOCKS_PER_SEC)
			;
	if (is(data, size, "large")) {
		size_t bytes = (FUZZ_MEMORY_MIB + 16UL) << 20;
		volatile char *block = malloc(bytes);

		fuzz_require(block);
		for (size_t i = 0; i < bytes; i += 1024)
			block[i] = 1;
		free((void *)block);
	}
	fuzz_file("a/file", data, size);
}

const struct fuzz_target fuzz_target = {
	.name = "broken",
	.run = broken_run,
	.max_bytes = 64,
	.mutations = 100,
};
