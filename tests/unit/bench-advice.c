/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * bench-advice [GUESTS [SEED...]]: holds the recommendations and their rivals against invented
 * histories of 28 days, the second half of which is judged, for each kind of guest and for all
 * kinds together.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../tools/histories.h"

static void print(const char *what, struct wss_backtest *backtest)
{
	for (int i = 0; i < WSS_BACKTEST_PLAYERS; i++) {
		const struct wss_backtest_score *score = &backtest->scores[i];

		printf("%-8s %-19s %6.1f %8.2f %7.1f %8.1f", i ? "" : what,
		       wss_backtest_player_name((enum wss_backtest_player)i),
		       100 * wss_backtest_slack(score), 100 * wss_backtest_violations(score),
		       100 * wss_backtest_above(score), wss_backtest_changes_per_week(score));
		putchar('\n');
	}
}

static void add(struct wss_backtest *backtest, uint64_t seed, enum histories_kind kind)
{
	static struct wss_backtest_hour hours[HISTORIES_HOURS];
	const struct wss_backtest_options options = {
		.train_s = 14 * 86400, .test_s = 14 * 86400, .hold_s = 7 * 86400};
	size_t n = histories_make(seed, kind, hours);

	if (wss_backtest_add(backtest, hours, n, HISTORIES_START + 28 * 86400, &options, NULL,
			     NULL) < 0)
		exit(99);
}

int main(int argc, char **argv)
{
	long guests = argc > 1 ? atol(argv[1]) : 200;
	uint64_t seeds[16] = {1, 2, 3};
	int n_seeds = 3;

	for (int i = 2; i < argc && i < 18; i++) {
		seeds[i - 2] = strtoull(argv[i], NULL, 10);
		n_seeds = i - 1;
	}
	printf("%-8s %-19s %6s %8s %7s %8s\n", "GUESTS", "SIZE", "SLACK%", "VIOLAT.%", "ABOVE%",
	       "CHANGES");
	for (int k = 0; k <= HISTORIES_KINDS; k++) {
		struct wss_backtest backtest = {0};

		for (int s = 0; s < n_seeds; s++)
			for (long i = 0; i < guests; i++)
				add(&backtest, seeds[s] * 1000003 + (uint64_t)i,
				    (enum histories_kind)(
					    k < HISTORIES_KINDS ? k : i % HISTORIES_KINDS));
		print(k < HISTORIES_KINDS ? histories_kind_name((enum histories_kind)k) : "all",
		      &backtest);
	}
	return 0;
}
