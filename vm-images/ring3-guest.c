// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A guest without a kernel, which touches a known number of pages. All of it runs in ring 3, so that
 * KVM without hardware virtualisation (kvm_pvm) runs it natively; it needs no interrupts. What to do
 * comes from QEMU's fw_cfg, from the entry opt/virt-wss/guest of up to 1023 characters: up to eight
 * phases separated by semicolons, run in turn forever, each of words NAME=VALUE:
 *
 *   pages=N      pages of 4 KiB to touch, by default 4096
 *   first=N      number of the first page, by default 4096 (at 16 MiB, above this program)
 *   stride=N     distance from a page to the next, in pages, by default 1
 *   order=       linear (default) or random
 *   access=      read (default), write, or modify (read, then write)
 *   rate=N       pages a second, over all processors; by default 0, as fast as possible
 *   seconds=N    length of the phase; by default 0, forever
 *   report=N     seconds from one report to the next; by default 5
 *
 * Of two processors each touches every second page; of more than two only the first runs. Pages are
 * numbered in RAM: on machines with more than 3.5 GiB page 0xc0000 lies at 4 GiB, above the hole.
 *
 * On the first serial port it writes a line when a phase begins, one when the first processor has
 * touched each of its pages once, and every five seconds how often that processor has touched a page
 * since it started, with the longest of its batches since the line before, in ns, and a histogram of how
 * long they took. A batch is 64 touches, or a single one at rates below 6,400 a second. Bucket b below 16
 * is b ns; bucket b from 16 on begins at (16 + b % 16) << (b / 16 - 1) ns; the last has all that is longer.
 *
 * Besides the pages asked for a guest touches those of this program and of its stacks: at most four
 * of 4 KiB.
 */
#include <stdbool.h>
#include <stdint.h>

#define PAGE_BYTES 4096
#define MAX_PHASES 8
#define BATCH 64
#define BUCKETS 448 /* up to 2 s */

enum access { ACCESS_READ, ACCESS_WRITE, ACCESS_MODIFY };

struct phase {
	uint64_t pages, first, stride, rate, seconds, report;
	bool random;
	enum access access;
};

static struct phase phases[MAX_PHASES];
static unsigned n_phases;
static uint64_t tsc_hz;
static unsigned n_cpus;		       /* that run */
static volatile unsigned cpus_started; /* besides the first */
static uint32_t histogram[BUCKETS];
static uint64_t touches, longest_ns;

static void out8(uint16_t port, uint8_t value)
{
	__asm__ volatile("outb %0, %1" : : "a"(value), "Nd"(port));
}

static void out16(uint16_t port, uint16_t value)
{
	__asm__ volatile("outw %0, %1" : : "a"(value), "Nd"(port));
}

static uint8_t in8(uint16_t port)
{
	uint8_t value;

	__asm__ volatile("inb %1, %0" : "=a"(value) : "Nd"(port));
	return value;
}

static uint64_t tsc(void)
{
	uint32_t low, high;

	__asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
	return (uint64_t)high << 32 | low;
}

/* The compiler makes calls of these two. */
void *memset(void *to, int value, unsigned long n_bytes)
{
	for (unsigned long i = 0; i < n_bytes; i++)
		((volatile uint8_t *)to)[i] = (uint8_t)value;
	return to;
}

void *memcpy(void *to, const void *from, unsigned long n_bytes)
{
	for (unsigned long i = 0; i < n_bytes; i++)
		((volatile uint8_t *)to)[i] = ((const uint8_t *)from)[i];
	return to;
}

static void print(const char *text)
{
	for (; *text; text++)
		out8(0x3f8, (uint8_t)*text);
}

static void print_number(uint64_t number)
{
	char digits[21], *at = digits + sizeof(digits) - 1;

	*at = '\0';
	do {
		*--at = (char)('0' + number % 10);
		number /= 10;
	} while (number);
	print(at);
}

static void print_field(const char *name, uint64_t number)
{
	print(name);
	print_number(number);
}

/*
 * fw_cfg (QEMU's docs/specs/fw_cfg): select an item by port 0x510, read its bytes at port 0x511. Item
 * 0x19 is the directory: a count, then 64 bytes a file: size, item, two bytes, name of 56; numbers are
 * big-endian.
 */
static uint32_t fw_cfg_number(unsigned n_bytes)
{
	uint32_t number = 0;

	while (n_bytes--)
		number = number << 8 | in8(0x511);
	return number;
}

/* Returns the entry's contents, cut to what fits in size bytes; "" if there is none. */
static void fw_cfg_read(const char *name, char *ret_text, unsigned size)
{
	uint32_t n_files, found_bytes = 0, found_item = 0;

	out16(0x510, 0x19);
	n_files = fw_cfg_number(4);
	for (uint32_t i = 0; i < n_files; i++) {
		uint32_t n_bytes = fw_cfg_number(4), item = fw_cfg_number(2);
		bool same = true, ended = false;

		fw_cfg_number(2);
		for (unsigned j = 0; j < 56; j++) {
			char c = (char)in8(0x511);

			if (!ended && c != name[j])
				same = false;
			ended = ended || !c || !name[j];
		}
		if (same) {
			found_bytes = n_bytes;
			found_item = item;
		}
	}
	if (found_bytes > size - 1)
		found_bytes = size - 1;
	out16(0x510, (uint16_t)found_item);
	for (uint32_t i = 0; i < found_bytes; i++)
		ret_text[i] = (char)in8(0x511);
	ret_text[found_bytes] = '\0';
}

/*
 * Counts the TSC while channel 2 of the interval timer, which runs at 1,193,182 Hz, counts down 20 ms.
 * The shortest of some tries is that in which the host ran nothing else.
 */
static uint64_t measure_tsc_hz(void)
{
	const unsigned ticks = 1193182 / 50;
	uint64_t shortest = UINT64_MAX;

	for (unsigned i = 0; i < 8; i++) {
		uint64_t began, took;

		out8(0x61, (uint8_t)((in8(0x61) & ~2) | 1)); /* speaker off, gate on */
		out8(0x43, 0xb0); /* channel 2, both bytes, interrupt on terminal count */
		out8(0x42, ticks & 0xff);
		out8(0x42, ticks >> 8);
		began = tsc();
		while (!(in8(0x61) & 0x20))
			;
		took = tsc() - began;
		if (took < shortest)
			shortest = took;
	}
	return shortest * 50;
}

static bool word_is(const char *text, const char *word)
{
	while (*word && *text == *word) {
		text++;
		word++;
	}
	return !*word;
}

static void phase_word(struct phase *phase, const char *text)
{
	static const struct {
		const char *name;
		unsigned long offset;
	} numbers[] = {
		{"pages=", __builtin_offsetof(struct phase, pages)},
		{"first=", __builtin_offsetof(struct phase, first)},
		{"stride=", __builtin_offsetof(struct phase, stride)},
		{"rate=", __builtin_offsetof(struct phase, rate)},
		{"seconds=", __builtin_offsetof(struct phase, seconds)},
		{"report=", __builtin_offsetof(struct phase, report)},
	};

	for (unsigned i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		uint64_t number = 0;

		if (!word_is(text, numbers[i].name))
			continue;
		while (*text++ != '=')
			;
		for (; *text >= '0' && *text <= '9'; text++)
			number = number * 10 + (uint64_t)(*text - '0');
		*(uint64_t *)((char *)phase + numbers[i].offset) = number;
		return;
	}
	if (word_is(text, "order=random"))
		phase->random = true;
	else if (word_is(text, "access=write"))
		phase->access = ACCESS_WRITE;
	else if (word_is(text, "access=modify"))
		phase->access = ACCESS_MODIFY;
	else if (!word_is(text, "order=linear") && !word_is(text, "access=read"))
		print("ring3: an unknown word in opt/virt-wss/guest\n");
}

static void phases_parse(const char *text)
{
	while (n_phases < MAX_PHASES) {
		struct phase *phase = &phases[n_phases++];

		*phase = (struct phase){.pages = 4096, .first = 4096, .stride = 1, .report = 5};
		while (*text && *text != ';') {
			while (*text == ' ' || *text == '\n')
				text++;
			if (*text && *text != ';')
				phase_word(phase, text);
			while (*text && *text != ' ' && *text != '\n' && *text != ';')
				text++;
		}
		if (!*text)
			return;
		text++;
	}
}

static void touch(enum access access, uint64_t page)
{
	volatile uint64_t *word;

	if (page >= 0xc0000)
		page += 0x40000;
	word = (volatile uint64_t *)(page * PAGE_BYTES);
	if (access == ACCESS_WRITE)
		*word = page;
	else if (access == ACCESS_READ)
		(void)*word;
	else
		*word = *word + 1;
}

static void histogram_add(uint64_t tsc_ticks)
{
	uint64_t ns = tsc_ticks * 1000 / (tsc_hz / 1000000);
	unsigned high = 63 - (unsigned)__builtin_clzll(ns | 16);
	uint64_t bucket = ns < 16 ? ns : (uint64_t)(high - 3) * 16 + (ns >> (high - 4) & 15);

	if (ns > longest_ns)
		longest_ns = ns;
	histogram[bucket < BUCKETS ? bucket : BUCKETS - 1]++;
}

static void report(void)
{
	print_field("ring3: touches=", touches);
	print_field(" longest=", longest_ns);
	longest_ns = 0;
	print(" batches=");
	for (unsigned i = 0; i < BUCKETS; i++) {
		if (!histogram[i])
			continue;
		print_number(i);
		print_field(":", histogram[i]);
		print(",");
		histogram[i] = 0;
	}
	print("\n");
}

/*
 * The order in which indices below n are visited, each once before any is visited again. At random, by
 * a linear congruential generator modulo a power of two, whose period is full.
 */
struct order {
	uint64_t n, mask, index;
	bool random;
};

static struct order order_begin(uint64_t n, bool random)
{
	struct order order = {.n = n, .random = random, .mask = 1};

	while (order.mask < n)
		order.mask <<= 1;
	order.mask--;
	return order;
}

static uint64_t order_next(struct order *order)
{
	if (!order->random) {
		if (++order->index >= order->n)
			order->index = 0;
		return order->index;
	}
	do
		order->index = (order->index * 1664525 + 1013904223) & order->mask;
	while (order->index >= order->n);
	return order->index;
}

static void phase_run(unsigned cpu, unsigned number)
{
	const struct phase *phase = &phases[number];
	/* Pages cpu, cpu + n_cpus ... are this processor's. */
	uint64_t n = phase->pages > cpu ? (phase->pages - cpu + n_cpus - 1) / n_cpus : 0;
	struct order order = order_begin(n, phase->random);
	uint64_t began = tsc(), reported = began, done = 0;

	if (cpu == 0) {
		print_field("ring3: phase=", number);
		print_field(" pages=", phase->pages);
		print("\n");
	}
	for (;;) {
		uint64_t before = tsc(), due;

		if (phase->seconds && before - began >= phase->seconds * tsc_hz)
			return;
		/* 128 bits would need a library for the division. */
		due = (before - began) / 1024 * phase->rate / n_cpus / (tsc_hz / 1024);
		if (!n || (phase->rate && done >= due)) {
			__builtin_ia32_pause();
		} else {
			unsigned batch = phase->rate && phase->rate < BATCH * 100 ? 1 : BATCH;

			for (unsigned i = 0; i < batch; i++) {
				uint64_t index = order_next(&order) * n_cpus + cpu;

				touch(phase->access, phase->first + index * phase->stride);
			}
			if (cpu == 0) {
				histogram_add(tsc() - before);
				touches += batch;
				if (done < n && done + batch >= n)
					print("ring3: all pages touched\n");
			}
			done += batch;
		}
		if (cpu == 0 && tsc() - reported >= phase->report * tsc_hz) {
			reported = tsc();
			report();
		}
	}
}

/* Sends INIT, then the startup interrupt for page 0xf0, where the ROM begins, to all but this one. */
static void start_cpus(void)
{
	volatile uint32_t *command = (volatile uint32_t *)0xfee00300;
	uint64_t began;

	*command = 0xc4500;
	began = tsc();
	while (tsc() - began < tsc_hz / 100)
		;
	*command = 0xc46f0;
	while (tsc() - began < tsc_hz / 10 * 5 && cpus_started + 1 < n_cpus)
		__builtin_ia32_pause();
}

void ring3_main(unsigned cpu)
{
	static char text[1024];

	if (cpu == 0) {
		uint64_t hz = measure_tsc_hz();

		fw_cfg_read("opt/virt-wss/guest", text, sizeof(text));
		phases_parse(text);
		out16(0x510, 5); /* number of processors */
		n_cpus = in8(0x511);
		/* There are two stacks. */
		if (n_cpus != 2)
			n_cpus = 1;
		tsc_hz = hz;
		if (n_cpus > 1)
			start_cpus();
		print_field("ring3: ready cpus=", cpus_started + 1);
		print_field(" mhz=", hz / 1000000);
		print("\n");
	} else {
		cpus_started++;
	}
	for (unsigned i = 0;; i = (i + 1) % n_phases)
		phase_run(cpu, i);
}
