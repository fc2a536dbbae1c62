/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Compares the predicted miss rate with a simulated LRU memory, on traces with known locality.
 * One access takes a microsecond; W comes from windows at random places of the trace, at the
 * history's grid of times, as the tool sees it. The error is the difference between predicted
 * and simulated miss ratios (misses per access): its mean over 60 sizes from 1/60 of the pages
 * to all of them, and the size by which the prediction is off at worst.
 */
#include "hosttest.h"

#include <math.h>

#include "history/missrate.h"

#define LENGTH 400000
#define PAGES 4096
#define WINDOWS 200
#define SIZES 60
#define ACCESS_S 1e-6

static unsigned trace[LENGTH];
static uint64_t state;

static double uniform(void)
{
	state = state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (double)(state >> 11) / 9007199254740992.0;
}

static unsigned below(unsigned n)
{
	return (unsigned)(uniform() * n);
}

static void trace_uniform(void)
{
	for (size_t i = 0; i < LENGTH; i++)
		trace[i] = below(PAGES);
}

static void trace_zipf(void)
{
	static double sums[PAGES + 1];

	for (unsigned p = 0; p < PAGES; p++)
		sums[p + 1] = sums[p] + 1.0 / (p + 1);
	for (size_t i = 0; i < LENGTH; i++) {
		double at = uniform() * sums[PAGES];
		unsigned low = 0, high = PAGES;

		while (high - low > 1) {
			unsigned middle = (low + high) / 2;

			if (sums[middle] <= at)
				low = middle;
			else
				high = middle;
		}
		trace[i] = low;
	}
}

static void trace_loop(void)
{
	for (size_t i = 0; i < LENGTH; i++)
		trace[i] = (unsigned)(i % (PAGES / 2));
}

/* Ten phases, each uniform over another quarter of the pages. */
static void trace_phases(void)
{
	for (size_t i = 0; i < LENGTH; i++)
		trace[i] = (unsigned)(i / (LENGTH / 10)) % 4 * (PAGES / 4) + below(PAGES / 4);
}

/* Nine in ten accesses to a small hot set, the others to all. */
static void trace_mixture(void)
{
	for (size_t i = 0; i < LENGTH; i++)
		trace[i] = uniform() < 0.9 ? below(PAGES / 16) : below(PAGES);
}

/* A hot set and a slow scan through everything. */
static void trace_scan(void)
{
	for (size_t i = 0; i < LENGTH; i++)
		trace[i] =
			i % 4 ? below(PAGES / 8) : PAGES / 8 + (unsigned)(i / 4) % (PAGES / 8 * 7);
}

static unsigned tree[LENGTH + 1];

static void tree_add(size_t at, int n)
{
	for (at++; at <= LENGTH; at += at & -at)
		tree[at] += (unsigned)n;
}

static unsigned tree_sum(size_t end)
{
	unsigned sum = 0;

	for (; end; end -= end & -end)
		sum += tree[end];
	return sum;
}

/*
 * misses[c]: misses of an LRU memory of c pages over the second half of the trace, warmed up
 * by the first.
 */
static void simulate(double misses[PAGES + 1])
{
	static size_t last[PAGES];
	static double at_distance[PAGES + 2];
	double all = 0;

	memset(tree, 0, sizeof(tree));
	memset(last, 0xff, sizeof(last));
	memset(at_distance, 0, sizeof(at_distance));
	for (size_t i = 0; i < LENGTH; i++) {
		unsigned page = trace[i], distance = PAGES + 1;

		if (last[page] != SIZE_MAX) {
			/* Pages touched since, itself included. */
			distance = tree_sum(i) - tree_sum(last[page]);
			tree_add(last[page], -1);
		}
		tree_add(i, 1);
		last[page] = i;
		if (i >= LENGTH / 2) {
			at_distance[distance]++;
			all++;
		}
	}
	misses[0] = all;
	for (unsigned c = 1; c <= PAGES; c++)
		misses[c] = misses[c - 1] - at_distance[c];
	for (unsigned c = 0; c <= PAGES; c++)
		misses[c] /= all;
}

/* Windows as the tool takes them, into a summary. */
static void observe(struct wss_summary *summary)
{
	static size_t seen[PAGES];

	for (size_t w = 1; w <= WINDOWS; w++) {
		struct wss_sample sample = {.wall = (time_t)w, .method = "mmu"};
		size_t start = below(LENGTH / 2), touched = 0, due = 1000;

		memset(seen, 0, sizeof(seen));
		for (size_t i = 1; i <= LENGTH / 2 - 1; i++) {
			unsigned page = trace[start + i - 1];

			touched += !seen[page];
			seen[page] = 1;
			if (i < due && i != LENGTH / 2 - 1)
				continue;
			wss_sample_curve_add(&sample, i * 1000, touched * 4096);
			due += due / 16;
		}
		sample.wss_bytes = wss_amount_of(touched * 4096);
		assert_int_equal(wss_summary_add(summary, &sample), 0);
	}
}

struct errors {
	double mean;
	double largest; /* in sizes: how far off, of all pages, the size is for which it was predicted */
};

/*
 * The smallest shift of the size, as a share of all pages, at which the simulation agrees to
 * within 1 %.
 */
static double size_error(const double misses[PAGES + 1], unsigned size, double predicted)
{
	for (unsigned shift = 0; shift <= PAGES; shift++) {
		double low = misses[size + shift > PAGES ? PAGES : size + shift];
		double high = misses[size < shift ? 0 : size - shift];

		if (predicted >= low - 0.01 && predicted <= high + 0.01)
			return (double)shift / PAGES;
	}
	return 1;
}

static struct errors compare(const char *name, void (*make)(void))
{
	static double misses[PAGES + 1];
	struct wss_summary summary = {0};
	struct wss_missrate missrate;
	struct errors errors = {0, 0};

	state = 2026;
	make();
	simulate(misses);
	/* The grid starts at 1 ms: here an access takes as long as 1 us, so 1000 accesses. */
	observe(&summary);
	assert_true(wss_missrate_from_summary(&missrate, &summary));
	for (unsigned i = 1; i <= SIZES; i++) {
		unsigned size = i * PAGES / SIZES;
		bool bound;
		double rate = wss_missrate_at(&missrate, size * 4096ULL, &bound) * ACCESS_S, off;

		if (bound)
			continue;
		errors.mean += fabs(rate - misses[size]) / SIZES;
		off = size_error(misses, size, rate);
		if (off > errors.largest)
			errors.largest = off;
	}
	print_message("# %-8s mean error of the miss ratio %.4f, size off by at most %.1f %%\n",
		      name, errors.mean, errors.largest * 100);
	wss_summary_free(&summary);
	return errors;
}

TEST(test_traces)
{
	static const struct {
		const char *name;
		void (*make)(void);
		double mean, largest; /* what the manual page states */
	} table[] = {
		{"uniform", trace_uniform, 0.02, 0.10}, {"zipf", trace_zipf, 0.01, 0.05},
		{"loop", trace_loop, 0.04, 0.07},	{"phases", trace_phases, 0.04, 0.10},
		{"mixture", trace_mixture, 0.03, 0.05}, {"scan", trace_scan, 0.04, 0.10},
	};

	unsigned bad = 0;

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct errors errors = compare(table[i].name, table[i].make);

		bad += errors.mean > table[i].mean || errors.largest > table[i].largest;
	}
	assert_int_equal(bad, 0);
}

#define TIMES 40

/*
 * W(t) = 100 MiB (1 - e^(-t / 0.4 s)) up to this many seconds: 64,000 e^(-t / 0.4 s) faults a
 * second.
 */
static double saturating(double seconds)
{
	return 104857600 * (1 - exp(-seconds / 0.4));
}

static double rising(double seconds)
{
	return 1000 * 4096 * seconds;
}

static void sample_curve(struct wss_missrate *missrate, double (*curve)(double), double until_s)
{
	double seconds[TIMES], bytes[TIMES];

	for (size_t i = 0; i < TIMES; i++) {
		seconds[i] = until_s * pow(1.2, (double)i - (TIMES - 1));
		bytes[i] = curve(seconds[i]);
	}
	wss_missrate_init(missrate, seconds, bytes, TIMES);
}

/* 1 % of the time is lost to 101 faults a second of 100 us, where W lacks 101 x 0.4 pages. */
TEST(test_size)
{
	struct wss_missrate missrate;
	uint64_t bytes = 0;

	sample_curve(&missrate, saturating, 5);
	assert_true(wss_missrate_size(&missrate, 0.01, 100000, &bytes));
	assert_in_range(bytes, 104857600 - 70 * 4096, 104857600 - 25 * 4096);
}

/*
 * At its end there are 431 faults a second: no measured size loses as little time as 101
 * faults do.
 */
TEST(test_reach)
{
	struct wss_missrate missrate;
	uint64_t bytes;

	sample_curve(&missrate, saturating, 2);
	assert_false(wss_missrate_size(&missrate, 0.01, 100000, &bytes));
	bytes = wss_missrate_reach_bytes(&missrate, 0.01, 100000);
	assert_in_range(bytes, (uint64_t)saturating(4), (uint64_t)(saturating(2) * 1.12));
	sample_curve(&missrate, rising, 3);
	assert_false(wss_missrate_size(&missrate, 0.01, 100000, &bytes));
	/* 3 s of 1000 pages, and of ln(1000 / 101) times as many. */
	bytes = wss_missrate_reach_bytes(&missrate, 0.01, 100000);
	assert_in_range(bytes, (3000 + 6850) * 4096, (3000 + 6900) * 4096);
	/* With 10 ms a fault, 1 % allows one fault a second. */
	bytes = wss_missrate_reach_bytes(&missrate, 0.01, 10000000);
	assert_in_range(bytes, (3000 + 20600) * 4096, (3000 + 20800) * 4096);
}

/* No figure of a forged history is converted to an integer that cannot hold it. */
TEST(test_no_such_figures)
{
	const double seconds[] = {0.1, 1, 10}, vast[] = {1e25, 1e28, 1e30},
		     none[] = {-1e30, -1, NAN};
	struct wss_missrate missrate;
	uint64_t bytes = 0;

	wss_missrate_init(&missrate, seconds, vast, 3);
	assert_true(wss_missrate_known_bytes(&missrate) == UINT64_MAX);
	wss_missrate_size(&missrate, 0.01, 100000, &bytes);
	wss_missrate_reach_bytes(&missrate, 0.01, 100000);
	wss_missrate_init(&missrate, seconds, none, 3);
	assert_int_equal(wss_missrate_known_bytes(&missrate), 0);
	wss_missrate_size(&missrate, 0.01, 100000, &bytes);
	wss_missrate_reach_bytes(&missrate, 0.01, 100000);
}

int main(void)
{
	return tests_run();
}
