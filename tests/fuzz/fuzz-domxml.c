/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Feeds the readers of domain XML with anything. Built with -DWSS_LIBFUZZER and
 * clang's -fsanitize=fuzzer it searches for inputs itself; built without, it mutates
 * the files that it is given in a fixed pseudo-random sequence, so that a test run
 * is the same every time:
 *
 *   fuzz-domxml [-n MUTATIONS] [FILE...]
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "host/domxml.h"
#include "mutate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What must hold of every outcome. */
static void check(int r, const struct wss_error *err)
{
	if ((r == 0) != (err->code == WSS_OK) || (r < 0 && !err->text[0]))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	wss_auto_free char *xml = malloc(size + 1);
	struct wss_error err = WSS_ERROR_INIT;
	char uuid[WSS_UUID_TEXT_MAX];
	static struct wss_domxml dom;
	int pid = 0, r;

	if (!xml)
		return 0;
	memcpy(xml, data, size);
	xml[size] = '\0';
	r = wss_domxml_parse(xml, &dom, &err);
	check(r, &err);
	if (r == 0 && (!dom.name[0] || strlen(dom.uuid) != WSS_UUID_TEXT_MAX - 1 ||
		       !dom.maximum_bytes || !dom.n_blocks || dom.n_blocks > WSS_RAM_BLOCKS_MAX))
		abort();
	wss_error_clear(&err);
	r = wss_domxml_parse_status(xml, &pid, uuid, &err);
	check(r, &err);
	if (r == 0 && (pid <= 0 || strlen(uuid) != WSS_UUID_TEXT_MAX - 1))
		abort();
	return 0;
}

#ifndef WSS_LIBFUZZER

#define INPUT_MAX 65536

static const char *const pieces[] = {
	"<!DOCTYPE a [<!ENTITY b 'c'>]>", "&b;", "<memory>",  "</memory>",
	"<cell memory='4'/>",		  "99999999999999999999", "unit='EiB'",
	"\xff",				  "]]>",	  "<![CDATA[", "xmlns='urn:x'",
};
#define N_PIECES (sizeof(pieces) / sizeof(pieces[0]))

static int run_file(const char *path, unsigned long mutations)
{
	static uint8_t original[INPUT_MAX], data[INPUT_MAX];
	wss_auto_file FILE *f = fopen(path, "re");
	size_t size = f ? fread(original, 1, sizeof(original), f) : 0;

	if (!size) {
		fprintf(stderr, "%s: cannot be read, or empty\n", path);
		return 1;
	}
	LLVMFuzzerTestOneInput(original, size);
	for (unsigned long i = 0; i < mutations; i++) {
		size_t now = size, n = 1 + (size_t)random_below(4);

		memcpy(data, original, size);
		while (n--)
			now = mutate(data, now, sizeof(data), pieces, N_PIECES);
		LLVMFuzzerTestOneInput(data, now);
	}
	return 0;
}

int main(int argc, char **argv)
{
	static char *const fixtures[] = { WSS_FIXTURES "/domxml/live-numa-dimm.xml",
					  WSS_FIXTURES "/domxml/live-plain.xml",
					  WSS_FIXTURES "/domxml/status.xml" };
	unsigned long mutations = 2000;
	char *const *files = fixtures;
	int first = 1, n = sizeof(fixtures) / sizeof(fixtures[0]), failed = 0;

	if (argc > 2 && !strcmp(argv[1], "-n")) {
		mutations = strtoul(argv[2], NULL, 10);
		first = 3;
	}
	if (argc > first) {
		files = argv + first;
		n = argc - first;
	}
	printf("1..%d\n", n);
	for (int i = 0; i < n; i++) {
		const char *name = strrchr(files[i], '/');
		int r = run_file(files[i], mutations);

		printf("%s %d - %s and %lu mutations of it\n", r ? "not ok" : "ok", i + 1,
		       name ? name + 1 : files[i], mutations);
		failed |= r;
	}
	return failed;
}

#endif
