/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "hosttest.h"

#include <sys/time.h>

#include "base/stop.h"
#include "fleet/pack.h"
#include "tests/random.h"

#define GUESTS_MAX 1500
#define HOSTS_MAX 100
#define APARTS_MAX 12

struct fleet {
	struct wss_pack_guest guests[GUESTS_MAX];
	struct wss_pack_host hosts[HOSTS_MAX];
	struct wss_pack_apart aparts[APARTS_MAX];
	uint32_t apart_guests[APARTS_MAX][4];
	struct wss_pack_problem problem;
};

static struct fleet *fleet_new(size_t n_guests, size_t n_hosts)
{
	struct fleet *fleet = calloc(1, sizeof(*fleet));

	assert_non_null(fleet);
	fleet->problem = (struct wss_pack_problem){.guests = fleet->guests,
						   .n_guests = n_guests,
						   .hosts = fleet->hosts,
						   .n_hosts = n_hosts,
						   .aparts = fleet->aparts,
						   .max_moves = SIZE_MAX};
	return fleet;
}

/* Needs `day` in the hours from..to of each day, and `night` in the others. */
static void guest_set(struct fleet *fleet, size_t i, uint32_t host, float day, float night,
		      int from, int to)
{
	struct wss_pack_guest *guest = &fleet->guests[i];

	guest->host = host;
	guest->copy_bytes = 1 << 20;
	for (int j = 0; j < WSS_PACK_HOURS; j++)
		guest->need_mib[j] = j % 24 >= from && j % 24 < to ? day : night;
}

static void hosts_set(struct fleet *fleet, float limit)
{
	for (size_t i = 0; i < fleet->problem.n_hosts; i++)
		fleet->hosts[i] = (struct wss_pack_host){limit, limit * 1.1f, false, false, {0}};
}

static struct wss_pack_plan solve(const struct fleet *fleet)
{
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_pack_plan plan;

	assert_int_equal(wss_pack_solve(&fleet->problem, &plan, &err), 0);
	return plan;
}

/* --- the check: nothing of the packer's own --- */

/* Whether a host breaks a constraint, in 64-bit arithmetic. */
static bool host_breaks(const struct fleet *fleet, const uint32_t *host_of, uint32_t host)
{
	const struct wss_pack_problem *problem = &fleet->problem;
	unsigned over = 0;

	for (int hour = 0; hour < WSS_PACK_HOURS; hour++) {
		int64_t sum = 0;

		for (size_t i = 0; i < problem->n_guests; i++)
			if (host_of[i] == host)
				sum += (int64_t)problem->guests[i].need_mib[hour];
		if (sum > (int64_t)problem->hosts[host].memory_mib)
			return true;
		over += sum > (int64_t)problem->hosts[host].limit_mib;
	}
	if (over > problem->over_hours)
		return true;
	for (int sum = 0; sum < WSS_PACK_SUMS; sum++) {
		uint64_t bytes = 0;

		for (size_t i = 0; i < problem->n_guests; i++)
			bytes += host_of[i] == host ? problem->guests[i].sum_bytes[sum] : 0;
		if (bytes > problem->hosts[host].most_bytes[sum])
			return true;
	}
	for (size_t i = 0; i < problem->n_aparts; i++) {
		size_t here = 0;

		for (size_t j = 0; j < problem->aparts[i].n; j++)
			here += host_of[problem->aparts[i].guests[j]] == host;
		if (here > 1)
			return true;
	}
	return false;
}

static void plan_check(const struct fleet *fleet, const struct wss_pack_plan *plan)
{
	const struct wss_pack_problem *problem = &fleet->problem;
	uint32_t *before = calloc(problem->n_guests + 1, sizeof(*before));
	size_t moves = 0, used = 0, bad_before = 0, bad_after = 0;
	uint64_t copied = 0;

	assert_non_null(before);
	for (size_t i = 0; i < problem->n_guests; i++) {
		const struct wss_pack_guest *guest = &problem->guests[i];

		before[i] = guest->host;
		assert_true(plan->host_of[i] < problem->n_hosts);
		if (plan->host_of[i] == guest->host)
			continue;
		assert_false(guest->pinned);
		moves++;
		copied += guest->copy_bytes;
	}
	for (uint32_t host = 0; host < problem->n_hosts; host++) {
		bool any = problem->hosts[host].keep, got = false;
		bool was_bad = host_breaks(fleet, before, host);
		bool is_bad = host_breaks(fleet, plan->host_of, host);

		for (size_t i = 0; i < problem->n_guests; i++) {
			any |= plan->host_of[i] == host;
			got |= plan->host_of[i] == host && before[i] != host;
		}
		used += any;
		bad_before += was_bad;
		bad_after += is_bad;
		assert_true(!is_bad || (was_bad && !got));
		assert_false(got && problem->hosts[host].closed);
	}
	assert_true(moves <= problem->max_moves);
	assert_int_equal(plan->moves, moves);
	assert_int_equal(plan->copy_bytes, copied);
	assert_int_equal(plan->hosts_after, used);
	assert_int_equal(plan->bad_before, bad_before);
	assert_int_equal(plan->bad_after, bad_after);
	if (!bad_after)
		assert_true(plan->bound <= used);
	free(before);
}

/* --- tests --- */

/* Guests of the day and of the night share a host, which their peaks do not. */
TEST(test_day_and_night)
{
	struct fleet *fleet = fleet_new(8, 8);
	struct wss_pack_plan plan;

	hosts_set(fleet, 1000);
	for (uint32_t i = 0; i < 8; i++)
		guest_set(fleet, i, i, 800, 100, i % 2 ? 8 : 20, i % 2 ? 20 : 24);
	plan = solve(fleet);
	plan_check(fleet, &plan);
	assert_int_equal(plan.hosts_before, 8);
	assert_int_equal(plan.hosts_after, 4);
	assert_int_equal(plan.bound, 4);
	assert_int_equal(plan.moves, 4);
	free(plan.host_of);
	free(fleet);
}

TEST(test_no_guests)
{
	struct fleet *fleet = fleet_new(0, 3);
	struct wss_pack_plan plan;

	hosts_set(fleet, 1000);
	fleet->hosts[1].keep = true;
	plan = solve(fleet);
	plan_check(fleet, &plan);
	assert_int_equal(plan.hosts_after, 1);
	assert_int_equal(plan.bound, 1);
	free(plan.host_of);
	free(fleet);
}

/* Full to the last MiB, and not one more. */
TEST(test_limit_is_exact)
{
	struct fleet *fleet = fleet_new(2, 2);
	struct wss_pack_plan plan;

	hosts_set(fleet, WSS_PACK_MIB_MAX);
	guest_set(fleet, 0, 0, WSS_PACK_MIB_MAX - 1, 1, 0, 12);
	guest_set(fleet, 1, 1, 1, 1, 0, 12);
	plan = solve(fleet);
	plan_check(fleet, &plan);
	assert_int_equal(plan.hosts_after, 1);
	free(plan.host_of);
	guest_set(fleet, 1, 1, 2, 1, 0, 12);
	plan = solve(fleet);
	plan_check(fleet, &plan);
	assert_int_equal(plan.hosts_after, 2);
	free(plan.host_of);
	free(fleet);
}

/* One that is over its limit is repaired at the least cost, and without moving anything else. */
TEST(test_repairs_only)
{
	struct fleet *fleet = fleet_new(4, 3);
	struct wss_pack_plan plan;

	hosts_set(fleet, 1000);
	for (uint32_t i = 0; i < 3; i++)
		guest_set(fleet, i, 0, 400, 100, 8, 20);
	guest_set(fleet, 3, 1, 100, 100, 8, 20);
	fleet->guests[0].copy_bytes = fleet->guests[2].copy_bytes = 5 << 20;
	fleet->problem.goal = WSS_PACK_SAFE;
	plan = solve(fleet);
	plan_check(fleet, &plan);
	assert_int_equal(plan.bad_before, 1);
	assert_int_equal(plan.bad_after, 0);
	assert_int_equal(plan.moves, 1);
	assert_int_equal(plan.copy_bytes, 1 << 20);
	assert_int_equal(plan.host_of[1], 1);
	free(plan.host_of);
	free(fleet);
}

/* A fleet of which each host has guests of 100 to 600 MiB, and an empty host at the end. */
static struct fleet *overloaded_new(size_t n_hosts, const float *mib, size_t each)
{
	struct fleet *fleet = fleet_new(n_hosts * each, n_hosts + 1);

	hosts_set(fleet, 1000);
	fleet->hosts[n_hosts] = (struct wss_pack_host){8000, 8000, false, false, {0}};
	fleet->problem.goal = WSS_PACK_SAFE;
	for (size_t i = 0; i < n_hosts * each; i++) {
		guest_set(fleet, i, (uint32_t)(i / each), mib[i % each], mib[i % each], 0, 24);
		fleet->guests[i].copy_bytes = (uint64_t)mib[i % each] << 20;
	}
	return fleet;
}

/* Solves and checks, then compares the moves and what they copy, in MiB. */
static void assert_repairs(const struct fleet *fleet, size_t bad_after, size_t moves,
			   uint64_t copy_mib)
{
	struct wss_pack_plan plan = solve(fleet);

	plan_check(fleet, &plan);
	assert_int_equal(plan.bad_after, bad_after);
	assert_int_equal(plan.moves, moves);
	assert_int_equal(plan.copy_bytes >> 20, copy_mib);
	free(plan.host_of);
}

/* 1400 MiB: the guests of 100 and 300 do not repair the host alone, those of 400 and 600 do. */
TEST(test_cheapest_that_repairs)
{
	struct fleet *fleet = overloaded_new(1, (const float[]){100, 300, 400, 600}, 4);

	assert_repairs(fleet, 0, 1, 400);
	/* It is worth more to stay. */
	fleet->guests[2].copy_bytes = 700 << 20;
	assert_repairs(fleet, 0, 1, 600);
	fleet->guests[3].pinned = true;
	assert_repairs(fleet, 0, 1, 700);
	free(fleet);
}

/* 1900 MiB: any two of the three large guests repair it. The one that would cost most stays. */
TEST(test_two_repair)
{
	struct fleet *fleet = overloaded_new(1, (const float[]){100, 300, 480, 500, 520}, 5);

	assert_repairs(fleet, 0, 2, 980);
	free(fleet);
}

/* A guest that needs nothing when the host is over its limit stays, however cheap it is. */
TEST(test_idle_guests_stay)
{
	struct fleet *fleet = fleet_new(4, 2);

	hosts_set(fleet, 1000);
	fleet->problem.goal = WSS_PACK_SAFE;
	guest_set(fleet, 0, 0, 0, 500, 8, 20);
	guest_set(fleet, 1, 0, 600, 0, 8, 20);
	guest_set(fleet, 2, 0, 600, 0, 8, 20);
	guest_set(fleet, 3, 1, 100, 100, 0, 24);
	fleet->guests[1].copy_bytes = fleet->guests[2].copy_bytes = 9 << 20;
	assert_repairs(fleet, 0, 1, 9);
	free(fleet);
}

/* Eight hosts, the first two of which need two moves: each move of a budget repairs one of the others first. */
TEST(test_budget_repairs_most_hosts)
{
	static const size_t left[] = {8, 7, 6, 5, 4, 3, 2, 2, 1, 1, 0};
	struct fleet *fleet = overloaded_new(8, (const float[]){200, 300, 300, 320}, 4);

	for (size_t i = 0; i < 8; i++)
		fleet->guests[i].need_mib[7] += 250;
	for (size_t budget = 0; budget < 11; budget++) {
		struct wss_pack_plan plan;

		fleet->problem.max_moves = budget;
		plan = solve(fleet);
		plan_check(fleet, &plan);
		assert_int_equal(plan.bad_after, left[budget]);
		free(plan.host_of);
	}
	fleet->problem.max_moves = 5;
	assert_repairs(fleet, 3, 5, 1000);
	free(fleet);
}

/* No guest repairs the host, but the largest that fits elsewhere relieves it. */
TEST(test_relieves_what_stays)
{
	struct fleet *fleet = overloaded_new(1, (const float[]){900, 250, 200, 400}, 4);

	fleet->hosts[1].limit_mib = fleet->hosts[1].memory_mib = 300;
	assert_repairs(fleet, 1, 1, 250);
	fleet->problem.max_moves = 0;
	assert_repairs(fleet, 1, 0, 0);
	free(fleet);
}

/* Two pairs that must be apart, on a host that is within its limit. */
TEST(test_parts_guests)
{
	struct fleet *fleet = overloaded_new(1, (const float[]){100, 200, 150, 50, 10}, 5);

	fleet->problem.n_aparts = 2;
	for (uint32_t i = 0; i < 2; i++) {
		fleet->aparts[i] = (struct wss_pack_apart){fleet->apart_guests[i], 2};
		fleet->apart_guests[i][0] = 2 * i;
		fleet->apart_guests[i][1] = 2 * i + 1;
	}
	assert_repairs(fleet, 0, 2, 150);
	free(fleet);
}

/* All guests on one host, where the 74 smallest fill the limit. The moves of the others are found in few passes. */
TEST(test_one_host_has_all)
{
	struct fleet *fleet = fleet_new(GUESTS_MAX, HOSTS_MAX);
	/* Two minutes of processor time end the program: it takes a fraction of a second. */
	const struct itimerval limit = {.it_value.tv_sec = 120}, none = {.it_value.tv_sec = 0};

	setitimer(ITIMER_VIRTUAL, &limit, NULL);
	hosts_set(fleet, 3000);
	fleet->problem.goal = WSS_PACK_SAFE;
	for (size_t i = 0; i < GUESTS_MAX; i++)
		guest_set(fleet, i, 0, 40 + (float)(i % 40), 20, 0, 12);
	assert_repairs(fleet, 0, 1426, 1426);
	setitimer(ITIMER_VIRTUAL, &none, NULL);
	free(fleet);
}

/* Pinned guests cannot leave an overloaded host, which then gets no other guest. */
TEST(test_cannot_repair)
{
	struct fleet *fleet = fleet_new(3, 2);
	struct wss_pack_plan plan;

	hosts_set(fleet, 1000);
	for (uint32_t i = 0; i < 3; i++)
		guest_set(fleet, i, i / 2, 600, 10, 8, 20);
	fleet->guests[0].pinned = fleet->guests[1].pinned = true;
	plan = solve(fleet);
	plan_check(fleet, &plan);
	assert_int_equal(plan.bad_after, 1);
	assert_int_equal(plan.hosts_after, 2);
	assert_int_equal(plan.moves, 0);
	free(plan.host_of);
	free(fleet);
}

/* Room that only an exchange makes: 600 fits beside 400 once 300 has gone. */
TEST(test_exchanges)
{
	struct fleet *fleet = fleet_new(4, 3);
	struct wss_pack_plan plan;

	hosts_set(fleet, 1000);
	guest_set(fleet, 0, 0, 400, 400, 0, 24);
	guest_set(fleet, 1, 0, 300, 300, 0, 24);
	guest_set(fleet, 2, 1, 700, 700, 0, 24);
	guest_set(fleet, 3, 2, 600, 600, 0, 24);
	fleet->guests[0].copy_bytes = fleet->guests[2].copy_bytes = 5 << 20;
	plan = solve(fleet);
	plan_check(fleet, &plan);
	assert_int_equal(plan.hosts_after, 2);
	assert_int_equal(plan.moves, 2);
	free(plan.host_of);
	free(fleet);
}

/* In one hour of the week all three together are over the limit. */
TEST(test_risk)
{
	struct fleet *fleet = fleet_new(3, 3);
	struct wss_pack_plan plan;

	hosts_set(fleet, 1000);
	for (uint32_t i = 0; i < 3; i++) {
		guest_set(fleet, i, i, 300, 300, 0, 24);
		fleet->guests[i].need_mib[100] = 350;
	}
	plan = solve(fleet);
	plan_check(fleet, &plan);
	assert_int_equal(plan.hosts_after, 2);
	free(plan.host_of);
	fleet->problem.over_hours = 1;
	plan = solve(fleet);
	plan_check(fleet, &plan);
	assert_int_equal(plan.hosts_after, 1);
	assert_int_equal(plan.bound, 1);
	free(plan.host_of);
	/* But never over all memory. */
	fleet->guests[0].need_mib[100] = 500;
	plan = solve(fleet);
	plan_check(fleet, &plan);
	assert_int_equal(plan.hosts_after, 2);
	assert_int_equal(plan.bound, 2);
	free(plan.host_of);
	free(fleet);
}

/* Sums bind whatever the hours are: in the bound, between hosts, and where a host is over one of them. */
TEST(test_sums)
{
	for (int sum = 0; sum < WSS_PACK_SUMS; sum++) {
		struct fleet *fleet = fleet_new(4, 4);
		struct wss_pack_plan plan;

		hosts_set(fleet, 1000);
		for (uint32_t i = 0; i < 4; i++) {
			guest_set(fleet, i, i, 100, 100, 0, 24);
			fleet->guests[i].sum_bytes[sum] = (10ULL + (i == 3 ? 2 : 0)) << 20;
			fleet->hosts[i].most_bytes[sum] = 20ULL << 20;
		}
		plan = solve(fleet);
		plan_check(fleet, &plan);
		assert_int_equal(plan.bound, 3);
		assert_int_equal(plan.hosts_after, 3);
		free(plan.host_of);
		fleet->guests[3].sum_bytes[sum] = 10ULL << 20;
		plan = solve(fleet);
		plan_check(fleet, &plan);
		assert_int_equal(plan.hosts_after, 2);
		free(plan.host_of);
		/* One move repairs it; its needs would not. */
		for (uint32_t i = 0; i < 4; i++)
			fleet->guests[i].host = i / 3;
		fleet->problem.goal = WSS_PACK_SAFE;
		assert_int_equal(wss_pack_count_bad(&fleet->problem), 1);
		plan = solve(fleet);
		plan_check(fleet, &plan);
		assert_int_equal(plan.bad_before, 1);
		assert_int_equal(plan.bad_after, 0);
		assert_int_equal(plan.moves, 1);
		free(plan.host_of);
		free(fleet);
	}
}

static void fleet_invent(struct fleet *fleet, bool with_sums)
{
	struct wss_pack_problem *problem = &fleet->problem;

	for (size_t i = 0; i < problem->n_hosts; i++) {
		float limit = (float)(3000 + random_below(3) * 1000);

		fleet->hosts[i] = (struct wss_pack_host){
			limit, limit + 300, !random_below(20), !random_below(15), {0}};
		for (int sum = 0; with_sums && sum < WSS_PACK_SUMS; sum++)
			fleet->hosts[i].most_bytes[sum] = 5000 + i * 577 % 3000;
	}
	for (size_t i = 0; i < problem->n_guests; i++) {
		/* Not as arguments, whose order of evaluation differs between compilers. */
		int from = (int)random_below(24);
		int to = from + (int)random_below(12);
		float quiet = (float)(20 + random_below(100));
		float busy = (float)(50 + random_below(400));
		uint32_t host = (uint32_t)random_below(problem->n_hosts);

		guest_set(fleet, i, host, busy, quiet, from, to);
		for (int j = 0; j < WSS_PACK_HOURS; j++)
			fleet->guests[i].need_mib[j] += (float)random_below(30);
		fleet->guests[i].pinned = !random_below(12);
		fleet->guests[i].copy_bytes = random_below(1ULL << 33);
		for (int sum = 0; with_sums && sum < WSS_PACK_SUMS; sum++)
			fleet->guests[i].sum_bytes[sum] =
				fleet->guests[i].copy_bytes % (997 + (uint64_t)sum);
	}
	problem->n_aparts = random_below(APARTS_MAX);
	for (size_t i = 0; i < problem->n_aparts; i++) {
		uint32_t first = (uint32_t)random_below(problem->n_guests - 20);

		fleet->aparts[i] = (struct wss_pack_apart){fleet->apart_guests[i], 4};
		for (uint32_t j = 0; j < 4; j++)
			fleet->apart_guests[i][j] = first + j * 5;
	}
	problem->over_hours = random_below(2) ? 0 : (unsigned)random_below(5);
	problem->max_moves = random_below(3) ? SIZE_MAX : random_below(100);
	problem->goal = random_below(4) ? WSS_PACK_EMPTY : WSS_PACK_SAFE;
}

TEST(test_random_fleets)
{
	size_t emptied = 0, repaired = 0;

	for (int i = 0; i < 60; i++) {
		size_t n_hosts = 5 + random_below(35), n_guests = 40 + random_below(360);
		struct fleet *fleet = fleet_new(n_guests, n_hosts);
		struct wss_pack_plan plan;

		fleet_invent(fleet, i % 2);
		plan = solve(fleet);
		plan_check(fleet, &plan);
		emptied += plan.hosts_before - plan.hosts_after;
		repaired += plan.bad_before - plan.bad_after;
		free(plan.host_of);
		free(fleet);
	}
	/* They are worth the test. */
	assert_in_range(emptied, 100, 10000);
	assert_in_range(repaired, 30, 10000);
}

/* Without constraints. */
TEST(test_close_to_the_bound)
{
	struct fleet *fleet = fleet_new(GUESTS_MAX, HOSTS_MAX);
	struct wss_pack_plan plan;

	fleet_invent(fleet, false);
	for (size_t j = 0; j < GUESTS_MAX; j++)
		fleet->guests[j].pinned = false;
	hosts_set(fleet, 4000);
	fleet->problem.max_moves = SIZE_MAX;
	fleet->problem.over_hours = 0;
	fleet->problem.n_aparts = 0;
	fleet->problem.goal = WSS_PACK_EMPTY;
	plan = solve(fleet);
	plan_check(fleet, &plan);
	assert_in_range(plan.hosts_after, plan.bound, plan.bound + plan.bound / 20);
	free(plan.host_of);
	free(fleet);
}

/* The last test, because the request stays. */
TEST(test_stops)
{
	struct fleet *fleet = fleet_new(GUESTS_MAX, HOSTS_MAX);
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_pack_plan plan;

	fleet_invent(fleet, true);
	wss_stop_install();
	raise(SIGTERM);
	assert_int_equal(wss_pack_solve(&fleet->problem, &plan, &err), -1);
	assert_error(&err, WSS_ERR_INTERRUPTED, "interrupted");
	free(fleet);
}

int main(void)
{
	return tests_run();
}
