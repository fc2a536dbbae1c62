/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the parts of the test guest's program share: guest-init.c is process 1 and goes through
 * the phases, guest-conf.c reads the kernel command line, guest-touch.c touches.
 */
#ifndef WSS_GUEST_H
#define WSS_GUEST_H

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
	uint64_t seconds; /* 0: for ever */
	struct way way;
};

/* As the kernel command line has it; README.md says what each key means. */
struct conf {
	uint64_t map_pages, touch_pages, rate, threads, idle, interval;
	uint64_t file_pages, cold_pages, draw;
	bool file_on_disk, balloon, lazy, gap;
	struct way way;
	struct phase phases[MAX_PHASES];
	unsigned int nr_phases;
	const char *phases_text; /* until everything that they may refer to is known */
	char control[32];
};

extern struct conf conf;

/* Reads and checks the kernel command line; what makes no sense ends the guest. */
void read_cmdline(void);

/* "MiB:S[:MODE[:ORDER]]", which is changed; key is what it came with. */
struct phase parse_phase(const char *key, char *text);

/* Time since the guest booted. */
uint64_t now_ms(void);
void sleep_until_ms(uint64_t ms);

/* One line on the console, in one write(), so that nothing is printed in the middle of it. */
__attribute__((format(printf, 1, 2))) void say(const char *fmt, ...);

_Noreturn void power_off(void);

/* A guest that cannot do what it was told must not look like one that does. */
#define fail(...)                                                                             \
	do {                                                                                  \
		say("error " __VA_ARGS__);                                                    \
		power_off();                                                                  \
	} while (0)

/* What is touched */

/* One share of the set. The owner changes it only between "go" and "parked". */
struct worker {
	bool is_file;
	uint64_t first, pages; /* its share: indices in the set, or file pages */
	uint64_t rate, began_ms;
	uint64_t mask, lcg; /* the permutation: power of two above pages, state */
	uint64_t touches;   /* in this phase */
	uint64_t counted;   /* of these, reported already */
	uint64_t drawn;	    /* different pages since then, with wss.draw */
	uint64_t next;      /* sequential cursor within the share */
	uint64_t gap_ns;    /* longest in this interval, with wss.gap */
};
extern struct worker workers[MAX_THREADS + 1];
extern unsigned int nr_workers;

/* The anonymous memory and, with wss.file, the file; file_fd stays open. */
void populate(void);
extern int file_fd;

void start_workers(void);

/* The next phase: all workers stand still, and begin anew. */
void share_out(const struct phase *phase);

/* Different pages that it has touched since the last call; *ret_touches: touches. */
uint64_t count_touched(struct worker *w, uint64_t *ret_touches);

/* Lets the workers run until then; they stand still again when it returns. */
void run_until_ms(uint64_t ms);

/* Last-level page tables of the guest that a pass over the set walks: one for 2 MiB. */
uint64_t table_pages(const struct phase *phase);

#endif
