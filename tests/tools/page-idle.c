/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reads a guest once through page_idle, and prints the cost:
 *
 * 	page-idle PID SECONDS [--host]
 *
 * Takes the largest mapping of the process (its RAM, for a QEMU that was given one block),
 * finds where its pages lie in the host's memory, sets them idle, waits, and reads which are
 * no longer idle. Prints one line; the CPU time is that of both passes, of this process alone.
 * This is the least that such tools do: adjacent words of the bitmap go in one call, and only
 * words with a page of the guest. --host: the whole bitmap instead, as tools do that copy all
 * of it at once.
 *
 * Linux, Documentation/admin-guide/mm/idle_page_tracking.rst and pagemap.rst.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define BITMAP "/sys/kernel/mm/page_idle/bitmap"
#define PAGE_BYTES 4096
#define PRESENT (1ULL << 63)
#define PFN_MASK ((1ULL << 55) - 1)
#define CHUNK 512 /* limit of words per call: sysfs transfers a page at a time */

/* A bit for each page of the host's memory. */
struct bits {
	uint64_t *words;
	size_t n;
};

struct range {
	uint64_t start, end;
};

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "page-idle: %s: %s\n", what, strerror(errno));
	exit(1);
}

static int open_or_die(const char *path, int flags)
{
	int fd = open(path, flags | O_CLOEXEC);

	if (fd < 0)
		die(path);
	return fd;
}

static uint64_t cpu_us(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000 +
	       (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

static struct range largest_mapping(const char *pid)
{
	struct range largest = {0, 0}, range;
	char path[64], line[512];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%s/maps", pid);
	f = fopen(path, "re");
	if (!f)
		die(path);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "%" SCNx64 "-%" SCNx64, &range.start, &range.end) == 2 &&
		    range.end - range.start > largest.end - largest.start)
			largest = range;
	fclose(f);
	return largest;
}

static void set_bit(struct bits *bits, uint64_t i)
{
	size_t n = (size_t)(i / 64) + 1;

	if (n > bits->n) {
		bits->words = realloc(bits->words, n * sizeof(*bits->words));
		if (!bits->words)
			die("bitmap");
		memset(bits->words + bits->n, 0, (n - bits->n) * sizeof(*bits->words));
		bits->n = n;
	}
	bits->words[i / 64] |= 1ULL << (i % 64);
}

/* Finds the host-physical frames of the mapping's pages. Returns their number. */
static uint64_t find_pages(const char *pid, struct range range, struct bits *bits)
{
	static uint64_t entries[CHUNK];
	uint64_t pages = 0, at = range.start / PAGE_BYTES, end = range.end / PAGE_BYTES;
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%s/pagemap", pid);
	fd = open_or_die(path, O_RDONLY);
	while (at < end) {
		size_t want = end - at < CHUNK ? (size_t)(end - at) : CHUNK;
		ssize_t len = pread(fd, entries, want * 8, (off_t)(at * 8));

		if (len < 8)
			die(path);
		for (size_t i = 0; i < (size_t)len / 8; i++) {
			if (entries[i] & PRESENT && entries[i] & PFN_MASK) {
				set_bit(bits, entries[i] & PFN_MASK);
				pages++;
			}
		}
		at += (uint64_t)len / 8;
	}
	close(fd);
	return pages;
}

/* Returns the adjacent words of the bitmap, from *first on, that have a page in them. */
static size_t next_run(const struct bits *bits, bool all, size_t *first)
{
	size_t n = 0;

	while (!all && *first < bits->n && !bits->words[*first])
		(*first)++;
	while (*first + n < bits->n && n < CHUNK && (all || bits->words[*first + n]))
		n++;
	return n;
}

static void set_idle(int fd, const struct bits *bits, bool all)
{
	static uint64_t words[CHUNK];
	size_t first = 0, n;

	memset(words, 0xff, sizeof(words));
	while ((n = next_run(bits, all, &first))) {
		const uint64_t *from = all ? words : bits->words + first;

		if (pwrite(fd, from, n * 8, (off_t)(first * 8)) != (ssize_t)n * 8)
			die(BITMAP);
		first += n;
	}
}

static uint64_t count_accessed(int fd, const struct bits *bits, bool all)
{
	static uint64_t words[CHUNK];
	uint64_t accessed = 0;
	size_t first = 0, n;

	while ((n = next_run(bits, all, &first))) {
		if (pread(fd, words, n * 8, (off_t)(first * 8)) != (ssize_t)n * 8)
			die(BITMAP);
		for (size_t i = 0; i < n; i++)
			accessed +=
				(uint64_t)__builtin_popcountll(bits->words[first + i] & ~words[i]);
		first += n;
	}
	return accessed;
}

int main(int argc, char **argv)
{
	struct bits bits = {NULL, 0};
	bool all = argc == 4 && !strcmp(argv[3], "--host");
	uint64_t begun_us, set_us, waited_us, end_us, pages, accessed;
	int fd;

	if (argc != 3 && !all) {
		fprintf(stderr, "usage: page-idle PID SECONDS [--host]\n");
		return 2;
	}
	fd = open_or_die(BITMAP, O_RDWR);
	begun_us = cpu_us();
	pages = find_pages(argv[1], largest_mapping(argv[1]), &bits);
	set_idle(fd, &bits, all);
	set_us = cpu_us();
	nanosleep(&(struct timespec){.tv_sec = atoi(argv[2])}, NULL);
	waited_us = cpu_us();
	accessed = count_accessed(fd, &bits, all);
	end_us = cpu_us();
	printf("pages=%" PRIu64 " accessed=%" PRIu64 " set_us=%" PRIu64 " read_us=%" PRIu64
	       " cpu_us=%" PRIu64 "\n",
	       pages, accessed, set_us - begun_us, end_us - waited_us,
	       set_us - begun_us + end_us - waited_us);
	free(bits.words);
	close(fd);
	return 0;
}
