/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Shared by the parts of the test guest's program: guest-init.c is process 1 and runs the
 * phases, guest-conf.c parses the kernel command line, guest-touch.c touches pages.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define PAGE 4096ull
#define MIB_PAGES 256ull
#define MAX_PHASES 32
#define MAX_THREADS 64

enum mode { MODE_READ, MODE_WRITE, MODE_RMW };
enum order { ORDER_SEQ, ORDER_RANDOM, ORDER_STRIDE };

/* How a set is touched. */
struct way {
	enum mode mode;
	enum order order;
	uint64_t stride; /* 1 unless ORDER_STRIDE */
};

struct phase {
	uint64_t pages;
	uint64_t seconds; /* 0: forever */
	struct way way;
};

/* Settings of the kernel command line; README.md describes each key. */
struct conf {
	uint64_t map_pages, touch_pages, rate, threads, idle, interval;
	uint64_t file_pages, cold_pages, draw;
	bool file_on_disk, balloon, lazy, gap;
	struct way way;
	struct phase phases[MAX_PHASES];
	unsigned int nr_phases;
	const char *phases_text; /* unparsed until the settings that they refer to are known */
	char control[32];
};

extern struct conf conf;

/* Parses and checks the kernel command line; an invalid one ends the guest. */
void read_cmdline(void);

/* Parses "MiB:S[:MODE[:ORDER]]", which it modifies; key is for the error message. */
struct phase parse_phase(const char *key, char *text);

/* Returns the time since the guest booted. */
uint64_t now_ms(void);
void sleep_until_ms(uint64_t ms);

/* Prints one line on the console in a single write(), so that no other output can split it. */
__attribute__((format(printf, 1, 2))) void say(const char *fmt, ...);

_Noreturn void power_off(void);

/*
 * Prints an error and powers off: a guest that cannot do what it was told must not look like
 * one that does.
 */
#define fail(...)                          \
	do {                               \
		say("error " __VA_ARGS__); \
		power_off();               \
	} while (0)

/* What is touched */

/* Share of the set. Its thread changes it only between "go" and "parked". */
struct worker {
	bool is_file;
	uint64_t first, pages; /* indices in the set, or file pages */
	uint64_t rate, began_ms;
	uint64_t mask, lcg; /* permutation: power of two above pages, state */
	uint64_t touches;   /* in this phase */
	uint64_t counted;   /* touches already reported */
	uint64_t drawn;	    /* different pages since then, with wss.draw */
	uint64_t next;	    /* sequential cursor within the share */
	uint64_t gap_ns;    /* longest gap in this interval, with wss.gap */
};
extern struct worker workers[MAX_THREADS + 1];
extern unsigned int nr_workers;

/* Maps the anonymous memory and, with wss.file, opens the file; file_fd stays open. */
void populate(void);
extern int file_fd;

void start_workers(void);

/* Sets up the next phase, while all workers stand still. */
void share_out(const struct phase *phase);

/*
 * Returns the number of different pages touched since the last call; *ret_touches is the
 * number of touches.
 */
uint64_t count_touched(struct worker *w, uint64_t *ret_touches);

/* Lets the workers run until that time; they stand still again when it returns. */
void run_until_ms(uint64_t ms);

/*
 * Returns the number of the guest's last-level page tables that a pass over the set walks: one
 * for 2 MiB.
 */
uint64_t table_pages(const struct phase *phase);
