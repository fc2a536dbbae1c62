/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Runs the fuzzing entry without a fuzzer: on the files given, or on those of the corpus,
 * each as it is, cut at every length, and with every byte changed in a few ways. What it
 * does wrong shows as a crash, a sanitizer's report or a hang. Prints TAP.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define INPUT_MAX 65536

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned long runs;

/* In a block of its own size, so that a read past the end is noticed. */
static void run(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size ? size : 1);

	if (!copy)
		abort();
	memcpy(copy, data, size);
	LLVMFuzzerTestOneInput(copy, size);
	free(copy);
	runs++;
}

static void run_variants(uint8_t *data, size_t size)
{
	static const uint8_t changes[] = {0, '"', '[', '}', '\n', '9', 0xff};

	for (size_t i = 0; i < size; i++)
		run(data, i);
	for (size_t i = 0; i < size; i++) {
		uint8_t saved = data[i];

		for (size_t c = 0; c < sizeof(changes); c++) {
			data[i] = changes[c];
			run(data, size);
		}
		data[i] = saved;
	}
}

static int replay(const char *path, int variants)
{
	static uint8_t data[INPUT_MAX];
	wss_auto_file FILE *f = fopen(path, "re");
	size_t size;

	if (!f) {
		perror(path);
		return 1;
	}
	size = fread(data, 1, sizeof(data), f);
	run(data, size);
	if (variants)
		run_variants(data, size);
	return 0;
}

static int replay_corpus(const char *path)
{
	wss_auto_dir DIR *dir = opendir(path);
	struct dirent *entry;
	unsigned int files = 0;
	char file[4096];

	if (!dir) {
		perror(path);
		return 1;
	}
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(file, sizeof(file), "%s/%s", path, entry->d_name);
		if (replay(file, 1))
			return 1;
		printf("ok %u - %s and its variants, %lu inputs\n", ++files, entry->d_name,
		       runs);
		fflush(stdout);
		runs = 0;
	}
	printf("1..%u\n", files);
	/* An empty corpus would be a test that cannot fail. */
	return files ? 0 : 1;
}

int main(int argc, char **argv)
{
	int failed = 0;

	if (argc == 1)
		return replay_corpus(CORPUS);
	for (int i = 1; i < argc; i++)
		failed |= replay(argv[i], 0);
	return failed;
}
