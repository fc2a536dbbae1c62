/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Preloaded into a program that was compiled with -finstrument-functions, this counts which of its
 * functions call which. tests/root/walk.bats finds out from that whether a room calls one that it
 * does not name.
 *
 * WSS_WALK names a file with room for EDGES struct edge, all zero at first. All threads add to it
 * while they run, because the program may end by _exit(). A call belongs to the innermost function
 * that has not returned, so a callback by way of a library counts as a call of the function that
 * called the library.
 */
#include <fcntl.h>
#include <link.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define EDGES 65536 /* 2 MiB; the test makes the file */
#define DEPTH_MAX 1024

#define EXPORTED __attribute__((visibility("default")))

/* Addresses as in the program's file. */
struct edge {
	uint64_t bottom; /* the thread's first function */
	uint64_t caller; /* 0: none */
	uint64_t function;
	uint64_t calls;
};

static struct edge *edges;
static uintptr_t base, end; /* of the program in memory */
static atomic_flag lock = ATOMIC_FLAG_INIT;
static _Thread_local uintptr_t stack[DEPTH_MAX];
static _Thread_local unsigned depth;

/* The first object is the program itself; other objects may be instrumented, too. */
static int walk_find_program(struct dl_phdr_info *info, size_t size, void *unused)
{
	(void)size;
	(void)unused;
	base = info->dlpi_addr;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *header = &info->dlpi_phdr[i];

		if (header->p_type == PT_LOAD && base + header->p_vaddr + header->p_memsz > end)
			end = base + header->p_vaddr + header->p_memsz;
	}
	return 1;
}

__attribute__((constructor)) static void walk_begin(void)
{
	const char *name = getenv("WSS_WALK");
	int fd = name ? open(name, O_RDWR | O_CLOEXEC) : -1;
	void *map;

	if (fd < 0)
		return;
	dl_iterate_phdr(walk_find_program, NULL);
	map = mmap(NULL, EDGES * sizeof(*edges), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (map != MAP_FAILED)
		edges = map;
}

static void walk_count(const struct edge *new)
{
	uint64_t mixed = (new->bottom * 31 + new->caller) * 31 + new->function;
	size_t at = mixed * 0x9e3779b97f4a7c15 >> 48;

	while (atomic_flag_test_and_set(&lock))
		;
	for (size_t tries = 0; tries < EDGES; tries++, at = (at + 1) % EDGES) {
		struct edge *edge = &edges[at];

		if (edge->calls && (edge->bottom != new->bottom || edge->caller != new->caller ||
				    edge->function != new->function))
			continue;
		edge->bottom = new->bottom;
		edge->caller = new->caller;
		edge->function = new->function;
		edge->calls++;
		break;
	}
	atomic_flag_clear(&lock);
}

static int walk_is_ours(const void *function)
{
	return edges && (uintptr_t)function >= base && (uintptr_t)function < end;
}

/* The compiler inserts calls of these. */
EXPORTED void __cyg_profile_func_enter(void *function, void *site);
EXPORTED void __cyg_profile_func_exit(void *function, void *site);

void __cyg_profile_func_enter(void *function, void *site)
{
	(void)site;
	if (!walk_is_ours(function))
		return;
	if (depth < DEPTH_MAX) {
		stack[depth] = (uintptr_t)function - base;
		walk_count(&(struct edge){.bottom = stack[0],
					  .caller = depth ? stack[depth - 1] : 0,
					  .function = stack[depth]});
	}
	depth++;
}

void __cyg_profile_func_exit(void *function, void *site)
{
	(void)site;
	if (walk_is_ours(function) && depth)
		depth--;
}
