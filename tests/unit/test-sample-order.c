/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The order in which samples of many guests are printed. */
#include "hosttest.h"

#include "measure/sample-order.h"

#define N 3

static struct wss_sample_place places[N];
static struct wss_sample_order order;
static char printed[4096];
static unsigned taken[N];

static void print(const struct wss_sample *sample, bool last, void *unused)
{
	char text[sizeof(sample->domain) + 3];

	snprintf(text, sizeof(text), "%s%s ", sample->domain, last ? "." : "");
	assert_true(strlen(printed) + strlen(text) < sizeof(printed));
	strcat(printed, text);
}

static int setup(void **state)
{
	memset(places, 0, sizeof(places));
	memset(taken, 0, sizeof(taken));
	order = (struct wss_sample_order){.places = places, .n = N, .print = print};
	printed[0] = '\0';
	return 0;
}

/* The guest's next sample: a1, a2, ... */
static void give(char guest, bool last)
{
	struct wss_sample sample = {.quality = WSS_QUALITY_OK};
	size_t i = (size_t)(guest - 'a');

	snprintf(sample.domain, sizeof(sample.domain), "%c%u", guest, ++taken[i]);
	wss_sample_order_give(&order, &places[i], &sample, last);
}

static void end(char guest)
{
	wss_sample_order_end(&order, &places[guest - 'a']);
}

TEST(test_later_guests_wait_for_earlier_ones)
{
	give('c', true);
	give('b', true);
	assert_string_equal(printed, "");
	give('a', true);
	assert_string_equal(printed, "a1. b1. c1. ");
}

TEST(test_a_sample_is_printed_once_all_before_it_are)
{
	give('a', true);
	assert_string_equal(printed, "a1. ");
	give('c', true);
	give('b', true);
	assert_string_equal(printed, "a1. b1. c1. ");
}

TEST(test_a_guest_that_ends_without_a_sample_holds_nothing_back)
{
	give('c', true);
	end('a');
	assert_string_equal(printed, "");
	end('b');
	assert_string_equal(printed, "c1. ");
}

TEST(test_each_round_is_in_order)
{
	give('b', false);
	give('c', false);
	give('b', true);
	give('a', false);
	assert_string_equal(printed, "a1 b1 c1 ");
	give('c', true);
	give('a', true);
	assert_string_equal(printed, "a1 b1 c1 a2. b2. c2. ");
}

TEST(test_a_guest_that_fails_early_misses_the_later_rounds)
{
	give('a', true);
	give('b', false);
	give('c', false);
	give('c', true);
	give('b', true);
	end('a');
	assert_string_equal(printed, "a1. b1 c1 b2. c2. ");
}

TEST(test_a_slow_guest_holds_back_few_samples)
{
	for (int i = 0; i < 100; i++) {
		give('b', false);
		give('c', false);
		assert_true(places[1].n_held <= WSS_SAMPLES_HELD_MAX);
		assert_true(places[2].n_held <= WSS_SAMPLES_HELD_MAX);
	}
	printed[0] = '\0';
	wss_sample_order_flush(&order);
	assert_string_equal(printed, "b99 c99 b100 c100 ");
}

TEST(test_a_slow_guest_goes_on_in_the_round_of_the_others)
{
	for (int i = 0; i < 4; i++) {
		give('b', false);
		give('c', false);
	}
	assert_string_equal(printed, "b1 c1 b2 c2 ");
	give('a', false);
	assert_string_equal(printed, "b1 c1 b2 c2 a1 b3 c3 ");
	give('c', true);
	end('a');
	assert_string_equal(printed, "b1 c1 b2 c2 a1 b3 c3 b4 c4 ");
	end('b');
	assert_string_equal(printed, "b1 c1 b2 c2 a1 b3 c3 b4 c4 c5. ");
}

TEST(test_an_interruption_loses_no_sample)
{
	give('b', false);
	give('c', false);
	give('c', false);
	wss_sample_order_flush(&order);
	assert_string_equal(printed, "b1 c1 c2 ");
}

int main(void)
{
	return tests_run_each(setup, NULL);
}
