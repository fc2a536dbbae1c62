/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "hosttest.h"

#include "fleet/room.h"
#include "tests/random.h"

#define GIB (1ULL << 30)

static struct wss_amount unknown(void)
{
	return (struct wss_amount){.known = false};
}

TEST(test_need)
{
	struct wss_room_need need = {.flat_bytes = 5 * GIB};

	assert_int_equal(wss_room_need_in(&need, unknown()), 5 * GIB);
	assert_int_equal(wss_room_need_in(&need, wss_amount_of(GIB)), GIB);
	need.minimum_bytes = wss_amount_of(2 * GIB);
	need.maximum_bytes = wss_amount_of(4 * GIB);
	assert_int_equal(wss_room_need_in(&need, unknown()), 4 * GIB);
	assert_int_equal(wss_room_need_in(&need, wss_amount_of(GIB)), 2 * GIB);
}

/* Two guests by day and by night share the memory that their peaks would not. */
TEST(test_hours_share)
{
	struct wss_room room = {.bytes = {0}};
	struct wss_room_need need = {.flat_bytes = 8 * GIB};
	struct wss_room_host host = {20 * GIB, 18 * GIB, 0};
	struct wss_room_answer answer;
	uint64_t day[WSS_PACK_HOURS], night[WSS_PACK_HOURS];

	for (int i = 0; i < WSS_PACK_HOURS; i++) {
		day[i] = (i % 24 < 12 ? 8 : 2) * GIB;
		night[i] = (i % 24 < 12 ? 2 : 8) * GIB;
	}
	wss_room_add(&room, &need, day);
	wss_room_add(&room, &need, night);
	answer = wss_room_ask(&room, &host);
	assert_int_equal(answer.fits_bytes, 8 * GIB);
	assert_int_equal(answer.need_bytes, 10 * GIB);
	/* Unknown hours count in full. */
	wss_room_add(&room, &need, NULL);
	answer = wss_room_ask(&room, &host);
	assert_int_equal(answer.fits_bytes, 0);
	assert_int_equal(answer.short_bytes, 0);
	wss_room_add(&room, &need, NULL);
	answer = wss_room_ask(&room, &host);
	assert_int_equal(answer.short_bytes, 8 * GIB);
}

/* The hours that may be over the limit are the worst ones; the memory holds even then. */
TEST(test_risk_hours)
{
	struct wss_room room = {.bytes = {0}};
	struct wss_room_host host = {10 * GIB, 9 * GIB, 0};

	for (int i = 0; i < WSS_PACK_HOURS; i++)
		room.bytes[i] = 4 * GIB;
	room.bytes[30] = 7 * GIB;
	room.bytes[31] = 6 * GIB;
	assert_int_equal(wss_room_ask(&room, &host).fits_bytes, 2 * GIB);
	assert_int_equal(wss_room_ask(&room, &host).hour.value, 30);
	assert_int_equal(wss_room_ask(&room, &host).worst_hour.value, 30);
	/* What nobody has measured has no hour. */
	assert_false(wss_room_ask(&room, &host).hour.known);
	room.measured[30] = true;
	assert_true(wss_room_ask(&room, &host).hour.known);
	host.over_hours = 1;
	assert_false(wss_room_ask(&room, &host).hour.known);
	assert_true(wss_room_ask(&room, &host).worst_hour.known);
	/* Of hours that need the same, a measured one is named. */
	room.measured[40] = true;
	room.bytes[40] = 6 * GIB;
	assert_int_equal(wss_room_ask(&room, &host).hour.value, 40);
	room.bytes[40] = 4 * GIB;
	assert_int_equal(wss_room_ask(&room, &host).fits_bytes, 3 * GIB);
	host.over_hours = 2;
	assert_int_equal(wss_room_ask(&room, &host).fits_bytes, 3 * GIB); /* by all memory */
	assert_int_equal(wss_room_ask(&room, &host).hour.value, 30);
	host.memory_bytes = 20 * GIB;
	assert_int_equal(wss_room_ask(&room, &host).fits_bytes, 5 * GIB);
}

/* The packer places a guest of exactly that need, and none that needs one MiB more. */
TEST(test_agrees_with_the_packer)
{
	for (int round = 0; round < 50; round++) {
		static struct wss_pack_guest guests[9];
		struct wss_pack_host hosts[2] = {{1000, 1000, true, true, {0}},
						 {9000, 10000, true, false, {0}}};
		struct wss_pack_problem problem = {.guests = guests,
						   .n_guests = 9,
						   .hosts = hosts,
						   .n_hosts = 2,
						   .max_moves = SIZE_MAX,
						   .over_hours = (unsigned)random_below(5)};
		struct wss_room_host host = {10000ULL << 20, 9000ULL << 20, problem.over_hours};
		struct wss_room room = {.bytes = {0}};
		struct wss_room_need none = {.flat_bytes = 0};
		struct wss_error err = WSS_ERROR_INIT;
		uint64_t fits_mib;

		for (int i = 0; i < 8; i++) {
			uint64_t week[WSS_PACK_HOURS];

			guests[i].host = 1;
			guests[i].pinned = true;
			for (int j = 0; j < WSS_PACK_HOURS; j++) {
				guests[i].need_mib[j] = (float)(100 + random_below(800));
				week[j] = (uint64_t)guests[i].need_mib[j] << 20;
			}
			wss_room_add(&room, &none, week);
		}
		fits_mib = wss_room_ask(&room, &host).fits_bytes >> 20;
		assert_in_range(fits_mib, 1001, 9000);
		/* Host 0 has no room for it, so that it has to move if it can. */
		for (uint64_t more = 0; more < 2; more++) {
			struct wss_pack_plan plan;

			guests[8].host = 0;
			guests[8].copy_bytes = 1;
			for (int j = 0; j < WSS_PACK_HOURS; j++)
				guests[8].need_mib[j] = (float)(fits_mib + more);
			assert_int_equal(wss_pack_solve(&problem, &plan, &err), 0);
			assert_int_equal(plan.host_of[8], more ? 0 : 1);
			free(plan.host_of);
		}
	}
}

TEST(test_overflow)
{
	struct wss_room room = {.bytes = {0}};
	struct wss_room_need need = {.flat_bytes = UINT64_MAX};
	struct wss_room_host host = {GIB, GIB, 0};

	wss_room_add(&room, &need, NULL);
	wss_room_add(&room, &need, NULL);
	assert_int_equal(wss_room_ask(&room, &host).fits_bytes, 0);
	assert_int_equal(wss_room_ask(&room, &host).short_bytes, UINT64_MAX - GIB);
}

TEST(test_rank)
{
	struct wss_room_shrink list[] = {
		{4 * GIB, wss_room_risk(9, 18), 0},  /* 0.5: 8 GiB */
		{GIB, wss_room_risk(0, 670), 1},     /* 1 / 672: 672 GiB */
		{2 * GIB, wss_room_risk(0, 670), 2}, /* twice that */
		{GIB, wss_room_risk(0, 670), 3},
		{8 * GIB, wss_room_risk(0, 0), 4}, /* 0.5: 16 GiB */
	};
	const size_t order[] = {2, 1, 3, 4, 0};

	wss_room_rank(list, 5);
	for (size_t i = 0; i < 5; i++)
		assert_int_equal(list[i].guest, order[i]);
	wss_room_rank(NULL, 0);
}

int main(void)
{
	return tests_run();
}
