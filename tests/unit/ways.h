/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Chooses the allocations that a test lets fail, one at a time: as there are thousands, the first, the middle and the
 * last one of each way that leads to any. A way is the calls of this program's own functions that an allocation
 * happens in. What a library allocates within one call of ours is one way, because it answers them all alike.
 *
 * In a run in which nothing fails ways_note() is called for each allocation, then ways_choose() for each in turn.
 */
#pragma once

#include <string.h>
#include <unwind.h>

#include "tests/testing.h"

#define WAYS_MAX 200
#define ALLOCATIONS_MAX 20000

static struct {
	size_t n, n_allocations;
	uint64_t calls[WAYS_MAX]; /* a hash of them */
	unsigned total[WAYS_MAX], chosen_from[WAYS_MAX];
	uint8_t of[ALLOCATIONS_MAX]; /* way of each allocation */
} ways;

/* Of the program; see ld(1). */
extern const char __executable_start, etext;

static inline _Unwind_Reason_Code ways_add_call(struct _Unwind_Context *context, void *opaque)
{
	uint64_t *hash = opaque;
	uintptr_t address = _Unwind_GetIP(context);

	if (address >= (uintptr_t)&__executable_start && address < (uintptr_t)&etext)
		*hash = (*hash ^ address) * 0x100000001b3; /* FNV-1a */
	return _URC_NO_REASON;
}

static inline void ways_forget(void)
{
	memset(&ways, 0, sizeof(ways));
}

static inline void ways_note(void)
{
	uint64_t hash = 0xcbf29ce484222325;
	size_t i = 0;

	_Unwind_Backtrace(ways_add_call, &hash);
	while (i < ways.n && ways.calls[i] != hash)
		i++;
	assert_true(i < WAYS_MAX && ways.n_allocations < ALLOCATIONS_MAX);
	if (i == ways.n)
		ways.calls[ways.n++] = hash;
	ways.total[i]++;
	ways.of[ways.n_allocations++] = (uint8_t)i;
}

/* Whether the allocation of that number, from 0, is to fail. */
static inline bool ways_choose(size_t number)
{
	size_t way = ways.of[number];
	unsigned at = ++ways.chosen_from[way], total = ways.total[way];

	return at == 1 || at == (total + 1) / 2 || at == total;
}
