/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "hosttest.h"

#include "base/stop.h"
#include "fleet/pack.h"
#include "tests/random.h"

#define GUESTS_MAX 400
#define HOSTS_MAX 40

struct fleet {
	struct wss_pack_guest guests[GUESTS_MAX];
	struct wss_pack_host hosts[HOSTS_MAX];
	struct wss_pack_apart aparts[20];
	uint32_t apart_guests[20][3];
	struct wss_pack_problem problem;
};

static struct fleet *fleet_new(size_t n_guests, size_t n_hosts, float limit)
{
	struct fleet *fleet = calloc(1, sizeof(*fleet));

	assert_non_null(fleet);
	for (size_t i = 0; i < n_hosts; i++)
		fleet->hosts[i] = (struct wss_pack_host){limit, limit * 1.1f, false, false, {0}};
	fleet->problem = (struct wss_pack_problem){.guests = fleet->guests,
						   .n_guests = n_guests,
						   .hosts = fleet->hosts,
						   .n_hosts = n_hosts,
						   .aparts = fleet->aparts,
						   .max_moves = SIZE_MAX};
	return fleet;
}

static void guest_set(struct fleet *fleet, size_t i, uint32_t host, float need)
{
	fleet->guests[i].host = host;
	fleet->guests[i].copy_bytes = i + 1;
	for (int j = 0; j < WSS_PACK_HOURS; j++)
		fleet->guests[i].need_mib[j] = need;
}

/* A plan that has each guest on a given host. */
static struct wss_pack_plan plan_of(const struct fleet *fleet, const uint32_t *host_of)
{
	struct wss_pack_plan plan = {.host_of =
					     calloc(fleet->problem.n_guests + 1, sizeof(*host_of))};

	assert_non_null(plan.host_of);
	memcpy(plan.host_of, host_of, fleet->problem.n_guests * sizeof(*host_of));
	return plan;
}

static void order(const struct fleet *fleet, struct wss_pack_plan *plan)
{
	struct wss_error err = WSS_ERROR_INIT;

	assert_int_equal(wss_pack_order(&fleet->problem, plan, &err), 0);
}

static void plan_release(struct wss_pack_plan *plan)
{
	free(plan->host_of);
	free(plan->steps);
	free(plan->left_out);
}

/* Whether a host breaks a constraint while its guests are those of here, in 64-bit arithmetic. */
static bool host_breaks(const struct fleet *fleet, const bool *here, uint32_t host)
{
	const struct wss_pack_problem *problem = &fleet->problem;
	unsigned over = 0;

	for (int hour = 0; hour < WSS_PACK_HOURS; hour++) {
		int64_t sum = 0;

		for (size_t i = 0; i < problem->n_guests; i++)
			if (here[i])
				sum += (int64_t)problem->guests[i].need_mib[hour];
		if (sum > (int64_t)problem->hosts[host].memory_mib)
			return true;
		over += sum > (int64_t)problem->hosts[host].limit_mib;
	}
	for (int sum = 0; sum < WSS_PACK_SUMS; sum++) {
		uint64_t bytes = 0;

		for (size_t i = 0; i < problem->n_guests; i++)
			bytes += here[i] ? problem->guests[i].sum_bytes[sum] : 0;
		if (bytes > problem->hosts[host].most_bytes[sum])
			return true;
	}
	for (size_t i = 0; i < problem->n_aparts; i++) {
		size_t n = 0;

		for (size_t j = 0; j < problem->aparts[i].n; j++)
			n += here[problem->aparts[i].guests[j]];
		if (n > 1)
			return true;
	}
	return over > problem->over_hours;
}

/* Carries the plan out, one step after the other, and looks at each destination while the guest is on both. */
static void plan_carry_out(const struct fleet *fleet, const struct wss_pack_plan *plan)
{
	const struct wss_pack_problem *problem = &fleet->problem;
	uint32_t where[GUESTS_MAX];
	bool here[GUESTS_MAX];
	uint64_t copied = 0;

	for (size_t i = 0; i < problem->n_guests; i++)
		where[i] = problem->guests[i].host;
	for (size_t i = 0; i < plan->n_steps; i++) {
		const struct wss_pack_step *step = &plan->steps[i];
		bool again = false;

		assert_int_equal(where[step->guest], step->from);
		assert_int_not_equal(step->from, step->to);
		assert_false(problem->guests[step->guest].pinned ||
			     problem->hosts[step->to].closed);
		for (size_t j = 0; j < problem->n_guests; j++)
			here[j] = where[j] == step->to || j == step->guest;
		assert_false(host_breaks(fleet, here, step->to));
		where[step->guest] = step->to;
		for (size_t j = i + 1; j < plan->n_steps; j++)
			again |= plan->steps[j].guest == step->guest;
		assert_int_equal(step->aside, again);
		copied += problem->guests[step->guest].copy_bytes;
	}
	assert_memory_equal(where, plan->host_of, problem->n_guests * sizeof(where[0]));
	assert_true(plan->n_steps <= problem->max_moves);
	assert_int_equal(plan->moves, plan->n_steps);
	assert_int_equal(plan->copy_bytes, copied);
}

/* Two guests change places, for which neither host has room at first. */
TEST(test_cycle_is_broken)
{
	struct fleet *fleet = fleet_new(3, 3, 10);
	struct wss_pack_plan plan = plan_of(fleet, (uint32_t[]){1, 0, 2});

	guest_set(fleet, 0, 0, 6);
	guest_set(fleet, 1, 1, 7);
	guest_set(fleet, 2, 2, 4);
	order(fleet, &plan);
	plan_carry_out(fleet, &plan);
	assert_int_equal(plan.n_steps, 3);
	assert_int_equal(plan.n_left_out, 0);
	assert_true(plan.steps[0].aside);
	assert_int_equal(plan.steps[0].guest, 0); /* the cheaper one */
	assert_int_equal(plan.steps[0].to, 2);
	plan_release(&plan);
	free(fleet);
}

/* A host stays over its limit because the guest that would leave it waits for one that would come. */
TEST(test_left_out_is_the_reason)
{
	struct fleet *fleet = fleet_new(4, 3, 100);
	struct wss_pack_plan plan = plan_of(fleet, (uint32_t[]){1, 0, 0, 1});

	guest_set(fleet, 0, 0, 60);
	guest_set(fleet, 1, 0, 50);
	guest_set(fleet, 2, 1, 45);
	guest_set(fleet, 3, 1, 39);
	fleet->hosts[2].limit_mib = fleet->hosts[2].memory_mib = 10;
	order(fleet, &plan);
	plan_carry_out(fleet, &plan);
	assert_int_equal(plan.n_left_out, 2);
	assert_int_equal(plan.bad_after, 1);
	assert_int_equal(plan.bad_why[WSS_PACK_STAY_LEFT_OUT], 1);
	plan_release(&plan);
	free(fleet);
}

TEST(test_cycle_is_left_out)
{
	struct fleet *fleet = fleet_new(5, 4, 10);

	guest_set(fleet, 0, 0, 6);
	guest_set(fleet, 1, 1, 7);
	guest_set(fleet, 2, 2, 5); /* no room for either */
	guest_set(fleet, 3, 2, 1); /* this one has nothing to do with it */
	guest_set(fleet, 4, 1, 1);
	for (int variant = 0; variant < 4; variant++) {
		struct wss_pack_plan plan = plan_of(fleet, (uint32_t[]){1, 0, 2, 1, 1});

		/* An empty host, one that is closed, and too few moves help no more. */
		if (variant == 2)
			fleet->hosts[3].closed = fleet->hosts[3].keep = true;
		if (variant == 3) {
			fleet->hosts[3].closed = false;
			fleet->problem.max_moves = 3;
		}
		order(fleet, &plan);
		plan_carry_out(fleet, &plan);
		assert_int_equal(plan.n_left_out, 2);
		assert_int_equal(plan.n_steps, 1);
		assert_int_equal(plan.host_of[0], 0);
		assert_int_equal(plan.host_of[3], 1);
		plan_release(&plan);
	}
	fleet->problem.max_moves = 4;
	struct wss_pack_plan plan = plan_of(fleet, (uint32_t[]){1, 0, 2, 1, 1});

	order(fleet, &plan);
	plan_carry_out(fleet, &plan);
	assert_int_equal(plan.n_left_out, 0);
	plan_release(&plan);
	free(fleet);
}

/* A chain has only one order: its end moves first. */
TEST(test_chain)
{
	struct fleet *fleet = fleet_new(3, 4, 10);
	struct wss_pack_plan plan = plan_of(fleet, (uint32_t[]){1, 2, 3});

	for (uint32_t i = 0; i < 3; i++)
		guest_set(fleet, i, i, 9);
	order(fleet, &plan);
	plan_carry_out(fleet, &plan);
	assert_int_equal(plan.n_steps, 3);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(plan.steps[i].guest, 2 - i);
	plan_release(&plan);
	free(fleet);
}

/* A cycle whose needs would fit, but not what the guests have: it takes a third host, or is left out. */
TEST(test_cycle_of_sums)
{
	for (int sum = 0; sum < WSS_PACK_SUMS; sum++) {
		struct fleet *fleet = fleet_new(3, 3, 100);

		for (uint32_t i = 0; i < 3; i++) {
			guest_set(fleet, i, i, 1);
			fleet->guests[i].sum_bytes[sum] = i == 2 ? 4 : 6;
			fleet->hosts[i].most_bytes[sum] = 10;
		}
		for (int room = 1; room >= 0; room--) {
			struct wss_pack_plan plan = plan_of(fleet, (uint32_t[]){1, 0, 2});

			fleet->hosts[2].most_bytes[sum] = room ? 10 : 9;
			order(fleet, &plan);
			plan_carry_out(fleet, &plan);
			assert_int_equal(plan.n_steps, room ? 3 : 0);
			assert_int_equal(plan.n_left_out, room ? 0 : 2);
			plan_release(&plan);
		}
		free(fleet);
	}
}

/* Guests that must be apart are never together on the way either. */
TEST(test_apart)
{
	struct fleet *fleet = fleet_new(3, 3, 10);
	struct wss_pack_plan plan = plan_of(fleet, (uint32_t[]){1, 0, 2});

	for (uint32_t i = 0; i < 3; i++)
		guest_set(fleet, i, i, 1);
	fleet->aparts[0] = (struct wss_pack_apart){(uint32_t[]){0, 1}, 2};
	fleet->problem.n_aparts = 1;
	order(fleet, &plan);
	plan_carry_out(fleet, &plan);
	assert_int_equal(plan.n_steps, 3);
	plan_release(&plan);
	free(fleet);
}

/* Dense fleets, whose plans need exchanges. */
TEST(test_random_fleets)
{
	size_t with_aside = 0;

	for (int round = 0; round < 60; round++) {
		size_t n_hosts = 4 + random_below(20), n = 0;
		struct fleet *fleet = fleet_new(0, n_hosts, 1000);
		struct wss_error err = WSS_ERROR_INIT;
		struct wss_pack_plan plan;

		for (uint32_t host = 0; host < n_hosts; host++) {
			float room = (float)(300 + random_below(900));

			while (room > 50 && n < GUESTS_MAX) {
				float need = (float)(50 + random_below(400));

				guest_set(fleet, n, host, need < room ? need : room);
				fleet->guests[n].need_mib[random_below(WSS_PACK_HOURS)] /= 2;
				fleet->guests[n].need_mib[0] =
					(float)(int)fleet->guests[n].need_mib[0];
				for (int j = 0; j < WSS_PACK_HOURS; j++)
					fleet->guests[n].need_mib[j] =
						(float)(int)fleet->guests[n].need_mib[j];
				fleet->guests[n].pinned = random_below(20) == 0;
				for (int sum = 0; round % 2 && sum < WSS_PACK_SUMS; sum++)
					fleet->guests[n].sum_bytes[sum] = random_below(400);
				room -= need;
				n++;
			}
		}
		fleet->problem.n_guests = n;
		for (size_t i = 0; i < n_hosts; i++)
			for (int sum = 0; round % 2 && sum < WSS_PACK_SUMS; sum++)
				fleet->hosts[i].most_bytes[sum] = 1000 + random_below(500);
		for (size_t i = 0; i < 5; i++) {
			for (size_t j = 0; j < 3; j++)
				fleet->apart_guests[i][j] =
					(uint32_t)((i * 7 + j * 13 + random_below(3)) % n);
			if (fleet->apart_guests[i][0] != fleet->apart_guests[i][1] &&
			    fleet->apart_guests[i][1] != fleet->apart_guests[i][2] &&
			    fleet->apart_guests[i][0] != fleet->apart_guests[i][2])
				fleet->aparts[fleet->problem.n_aparts++] =
					(struct wss_pack_apart){fleet->apart_guests[i], 3};
		}
		fleet->problem.over_hours = (unsigned)random_below(3);
		fleet->problem.max_moves = random_below(3) ? SIZE_MAX : random_below(30);
		fleet->hosts[0].closed = random_below(4) == 0;
		assert_int_equal(wss_pack_solve(&fleet->problem, &plan, &err), 0);
		order(fleet, &plan);
		plan_carry_out(fleet, &plan);
		for (size_t i = 0; i < plan.n_steps; i++)
			with_aside += plan.steps[i].aside;
		plan_release(&plan);
		free(fleet);
	}
	/* Arbitrary exchanges, most of which need more than one order. */
	for (int round = 0; round < 60; round++) {
		struct fleet *fleet = fleet_new(60, 12, 1000);
		uint32_t host_of[60];
		struct wss_pack_plan plan;

		for (uint32_t i = 0; i < 60; i++) {
			guest_set(fleet, i, i % 12, (float)(150 + random_below(40)));
			host_of[i] = i % 12;
		}
		for (uint32_t i = 0; i < 60; i += 2) {
			uint32_t other = (uint32_t)random_below(60), host = host_of[i];

			host_of[i] = host_of[other];
			host_of[other] = host;
		}
		plan = plan_of(fleet, host_of);
		order(fleet, &plan);
		plan_carry_out(fleet, &plan);
		for (size_t i = 0; i < plan.n_steps; i++)
			with_aside += plan.steps[i].aside;
		plan_release(&plan);
		free(fleet);
	}
	assert_true(with_aside > 20);
}

TEST(test_stops)
{
	struct fleet *fleet = fleet_new(1, 2, 10);
	struct wss_pack_plan plan = plan_of(fleet, (uint32_t[]){1});
	struct wss_error err = WSS_ERROR_INIT;

	guest_set(fleet, 0, 0, 1);
	wss_stop_install();
	raise(SIGTERM);
	assert_int_equal(wss_pack_order(&fleet->problem, &plan, &err), -1);
	assert_error(&err, WSS_ERR_INTERRUPTED, "interrupted");
	assert_null(plan.steps);
	plan_release(&plan);
	free(fleet);
}

int main(void)
{
	return tests_run();
}
