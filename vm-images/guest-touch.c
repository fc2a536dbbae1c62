/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Touches pages.
 *
 * The counts are exact because every thread walks its share of the set in one fixed cyclic
 * order ("random" is a fixed permutation), and all threads stand still while an interval is
 * counted: k touches in a cycle of n pages have touched min(k, n) different ones.
 */
#define _GNU_SOURCE
#include "guest.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* State of the current phase; changes only while all workers stand still. */
static struct way way;
struct worker workers[MAX_THREADS + 1];
unsigned int nr_workers;
int file_fd = -1;

static pthread_barrier_t go, parked;
static atomic_bool stop;
static unsigned char *area;
/* For each page of the file, with wss.draw: the interval in which it was last read. */
static uint32_t *drawn;
static uint32_t intervals = 1;

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/*
 * Each page gets unique content, so that neither the zero page nor KSM replaces any. Small
 * pages, so that a touch is of 4 KiB in the guest.
 */
void populate(void)
{
	size_t size = conf.map_pages * PAGE;

	area = mmap(NULL, size ? size : PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		    -1, 0);
	if (area == MAP_FAILED)
		fail("cannot map %zu bytes", size);
	madvise(area, size, MADV_NOHUGEPAGE);
	for (uint64_t i = 0; i < conf.map_pages && !conf.lazy; i++)
		*(volatile uint64_t *)(area + i * PAGE) = i + 1;
}

/* Returns the next index of the share, in an order that repeats after w->pages steps. */
static uint64_t next_index(struct worker *w)
{
	uint64_t index;

	if (way.order == ORDER_RANDOM) {
		/* Full period by Hull and Dobell: multiplier 1 mod 4, odd increment. */
		do {
			w->lcg = (w->lcg * 1664525 + 1013904223) & w->mask;
		} while (w->lcg >= w->pages);
		return w->lcg;
	}
	index = w->next;
	w->next = index + 1 == w->pages ? 0 : index + 1;
	return index;
}

/* Draws the page that a uniform number in 0 to 1, to the power of wss.draw, falls on. */
static uint64_t drawn_index(struct worker *w)
{
	uint64_t x, index;

	/* Knuth's constants for MMIX; the upper half of the state is good. */
	w->lcg = w->lcg * 6364136223846793005u + 1442695040888963407u;
	x = w->lcg >> 32;
	for (uint64_t i = 1; i < conf.draw; i++)
		x = (x * (w->lcg >> 32)) >> 32;
	index = (x * w->pages) >> 32;
	w->drawn += drawn[index] != intervals;
	drawn[index] = intervals;
	return index;
}

static void read_file(struct worker *w)
{
	static __thread unsigned char page[PAGE];
	uint64_t index = conf.draw ? drawn_index(w) : next_index(w);

	if (pread(file_fd, page, PAGE, (off_t)(index * PAGE)) != (ssize_t)PAGE)
		fail("file: %s", strerror(errno));
}

static void touch_word(struct worker *w)
{
	uint64_t index = w->first + next_index(w);
	volatile uint64_t *word = (void *)(area + index * way.stride * PAGE);

	if (way.mode == MODE_READ) {
		(void)*word;
	} else if (way.mode == MODE_WRITE) {
		*word = w->touches;
	} else {
		*word = *word + 1;
	}
}

static void touch(struct worker *w)
{
	if (w->is_file)
		read_file(w);
	else
		touch_word(w);
	w->touches++;
}

uint64_t count_touched(struct worker *w, uint64_t *ret_touches)
{
	uint64_t touches = w->touches - w->counted;
	uint64_t distinct = touches < w->pages ? touches : w->pages;

	if (w->is_file && conf.draw) {
		distinct = w->drawn;
		w->drawn = 0;
		intervals++;
	}
	w->counted = w->touches;
	*ret_touches = touches;
	return distinct;
}

/*
 * Returns the touches that the rate allows by now. Those missed in a stall of a second or more
 * are not made up for.
 */
static uint64_t touches_due(struct worker *w)
{
	uint64_t due = (now_ms() - w->began_ms) * w->rate / 1000;

	if (due > w->touches + w->rate) {
		w->began_ms += (due - w->touches) * 1000 / w->rate;
		due = w->touches + 1;
	}
	return due;
}

/* A pause that the rate causes is a gap, too: wss.gap is meant for full speed. */
static void note_gap(struct worker *w, uint64_t *last_ns)
{
	uint64_t now = now_ns();

	if (now - *last_ns > w->gap_ns)
		w->gap_ns = now - *last_ns;
	*last_ns = now;
}

static void touch_until_stopped(struct worker *w)
{
	uint64_t last_ns = now_ns();

	if (!w->pages)
		return;
	w->gap_ns = 0;
	while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
		if (!w->rate || w->touches < touches_due(w))
			touch(w);
		else /* Short, so that a stop is noticed soon at any rate; where KVM is emulated each is dear. */
			sleep_until_ms(now_ms() + 20);
		if (conf.gap)
			note_gap(w, &last_ns);
	}
}

static void *work(void *arg)
{
	for (;;) {
		pthread_barrier_wait(&go);
		touch_until_stopped(arg);
		pthread_barrier_wait(&parked);
	}
	return NULL;
}

/* With wss.lazy the guest's kernel gets back the memory that this phase does not use. */
static void release_rest(const struct phase *phase)
{
	uint64_t used = phase->pages * phase->way.stride;

	if (conf.lazy && used < conf.map_pages)
		madvise(area + used * PAGE, (conf.map_pages - used) * PAGE, MADV_DONTNEED);
}

void share_out(const struct phase *phase)
{
	uint64_t pages = phase->pages;

	way = phase->way;
	release_rest(phase);
	for (unsigned int i = 0; i < nr_workers; i++) {
		struct worker *w = &workers[i];
		uint64_t first = pages * i / conf.threads;

		*w = (struct worker){.first = first,
				     .pages = pages * (i + 1) / conf.threads - first};
		if (i == conf.threads)
			*w = (struct worker){.is_file = true, .pages = conf.file_pages};
		w->rate = conf.rate;
		if (!w->is_file)
			w->rate = (conf.rate + conf.threads - 1) / conf.threads;
		w->began_ms = now_ms();
		w->mask = 1;
		while (w->mask < w->pages)
			w->mask <<= 1;
		w->mask--;
	}
}

void run_until_ms(uint64_t ms)
{
	atomic_store(&stop, false);
	pthread_barrier_wait(&go);
	sleep_until_ms(ms);
	atomic_store(&stop, true);
	pthread_barrier_wait(&parked);
}

uint64_t table_pages(const struct phase *phase)
{
	uint64_t tables = 0, last = UINT64_MAX;

	for (uint64_t i = 0; i < phase->pages; i++) {
		uint64_t table = (uintptr_t)(area + i * phase->way.stride * PAGE) >> 21;

		tables += table != last;
		last = table;
	}
	return tables;
}

void start_workers(void)
{
	drawn = calloc(conf.file_pages + 1, sizeof(*drawn));
	if (!drawn)
		fail("no memory");
	nr_workers = (unsigned int)conf.threads + (conf.file_pages ? 1 : 0);
	pthread_barrier_init(&go, NULL, nr_workers + 1);
	pthread_barrier_init(&parked, NULL, nr_workers + 1);
	for (unsigned int i = 0; i < nr_workers; i++) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, work, &workers[i]) != 0)
			fail("cannot start thread %u", i);
	}
}
