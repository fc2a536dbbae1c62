/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The controller against invented guests: one that follows it, and others that never balloon, are
 * slow, lie, or come to need memory.
 */
#include "hosttest.h"

#include "balloon/balloon.h"
#include "cmd/balloon.h"
#include "cmd/cmd.h"

#define MIB (1ULL << 20)

/* A guest and its behaviour. */
struct guest {
	uint64_t actual, target, rss, wss, usable, swapped, major;
	uint64_t speed; /* bytes a second; 0: never */
	bool lies;	/* claims to have released memory, but keeps it */
	uint64_t qemu;	/* memory that its QEMU has allocated on the host since it was measured */
	bool has_statistics;
	uint64_t unmanaged, kept_free; /* by its kernel; 0: not reported */
	uint64_t cache;		       /* in its page cache, if there is room; 0: not reported */
	uint64_t cache_used;	       /* part of that cache in use */
	uint64_t own_reads, reads;     /* a second; in total */
	uint64_t least;		       /* smallest target it was ever given */
};

struct run {
	struct wss_balloon balloon;
	struct guest guest;
	uint64_t now_s, wss_s;
	struct wss_balloon_decision last;
	bool blind;	  /* it is no longer measured */
	bool busy;	  /* no step is possible */
	uint64_t every_s; /* time between its statistics; 0: each look has new ones */
	uint64_t usable, swapped, major, usable_s; /* as in its statistics */
	bool disks;				   /* disk reads are reported */
	bool remote;				   /* its resident memory cannot be checked */
	unsigned checks;			   /* of its resident memory */
};

static const struct wss_balloon_limits limits = {
	.original_bytes = 1024 * MIB,
	.minimum_bytes = 256 * MIB,
	.headroom_percent = 20,
	.period_s = 10,
	.pause_s = 10,
	.timeout_s = 30,
};

static void begin(struct run *run)
{
	*run = (struct run){.guest = {.actual = 1024 * MIB,
				      .target = 1024 * MIB,
				      .rss = 900 * MIB,
				      .wss = 200 * MIB,
				      .usable = 700 * MIB,
				      .speed = 100 * MIB,
				      .has_statistics = true,
				      .least = UINT64_MAX}};
	wss_balloon_init(&run->balloon, &limits);
}

static uint64_t cached(const struct guest *guest)
{
	return guest->cache < guest->usable ? guest->cache : guest->usable;
}

/* Reads page cache in use that had to be dropped, again within 10 s. */
static void disks_read(struct guest *guest)
{
	uint64_t cache = cached(guest);

	guest->reads += guest->own_reads;
	if (guest->cache_used > cache)
		guest->reads += (guest->cache_used - cache) / 10;
}

static void guest_lives(struct guest *guest)
{
	uint64_t step = guest->speed;

	disks_read(guest);
	if (guest->actual > guest->target && guest->speed) {
		uint64_t left = guest->actual - guest->target;

		step = step < left ? step : left;
		guest->actual -= step;
		guest->usable = guest->usable > step ? guest->usable - step : 0;
		if (!guest->lies && guest->rss > guest->actual)
			guest->rss = guest->actual;
	} else if (guest->actual < guest->target) {
		/* The guest uses all memory that it gets, at least as page cache. */
		guest->usable += guest->target - guest->actual;
		guest->rss += guest->target - guest->actual;
		guest->actual = guest->target;
	}
}

static struct wss_balloon_view look(struct run *run)
{
	const struct guest *guest = &run->guest;
	struct wss_balloon_view view = {
		.now_s = run->now_s,
		.actual_bytes = wss_amount_of(guest->actual),
		.rss_bytes = wss_amount_of(guest->rss + guest->qemu),
		.wss_bytes = wss_amount_of(guest->wss),
		.may_step = !run->busy,
	};

	if (run->now_s % 10 == 0 && !run->blind && !run->balloon.pending)
		run->wss_s = run->now_s;
	view.wss_age_s = run->now_s - run->wss_s;
	if (!run->every_s || run->now_s % run->every_s == 0) {
		run->usable = guest->usable;
		run->swapped = guest->swapped;
		run->major = guest->major;
		run->usable_s = run->now_s;
	}
	if (guest->has_statistics) {
		view.usable_bytes = wss_amount_of(run->usable);
		view.statistics_age_s = run->now_s - run->usable_s;
		view.swapped_bytes = wss_amount_of(run->swapped);
		view.major_faults = wss_amount_of(run->major);
		if (guest->unmanaged) {
			view.managed_of_bytes = wss_amount_of(guest->actual);
			view.managed_bytes = wss_amount_of(guest->actual - guest->unmanaged);
			view.free_bytes = wss_amount_of(guest->kept_free);
			view.cache_bytes = wss_amount_of(run->usable + guest->kept_free);
		}
	}
	if (guest->cache)
		view.cache_bytes = wss_amount_of(cached(guest));
	if (run->disks && run->now_s % 10 == 0)
		view.read_bytes = wss_amount_of(guest->reads);
	return view;
}

/* Evaluates a look, and checks the resident memory of guest RAM alone if that is asked for. */
static struct wss_balloon_decision decide(struct run *run)
{
	struct wss_balloon before = run->balloon;
	struct wss_balloon_view view = look(run);
	struct wss_balloon_decision decision = wss_balloon_next(&run->balloon, &view);

	if (decision.action != WSS_BALLOON_CHECK)
		return decision;
	run->checks++;
	run->balloon = before;
	view.rss_checked = true;
	if (!run->remote)
		view.rss_bytes = wss_amount_of(run->guest.rss);
	decision = wss_balloon_next(&run->balloon, &view);
	assert_int_not_equal(decision.action, WSS_BALLOON_CHECK);
	return decision;
}

/* Lets seconds pass, but stops at any unusual decision. */
static void live(struct run *run, unsigned seconds)
{
	for (unsigned i = 0; i < seconds; i++) {
		run->last = decide(run);
		assert_non_null(run->last.reason);
		if (run->last.action != WSS_BALLOON_HOLD)
			run->guest.target = run->last.target_bytes;
		if (run->last.action == WSS_BALLOON_SHRINK) {
			/* Never more than a step, never below its floor. */
			assert_true(run->last.target_bytes >=
				    run->guest.actual - run->guest.actual / 100 * 5 - MIB);
			assert_true(run->last.target_bytes >= 256 * MIB);
			assert_true(run->last.target_bytes >= run->guest.wss * 12 / 10 - MIB);
			/*
			 * Memory that it cannot give up, with headroom, if the statistics are
			 * current.
			 */
			if (run->guest.has_statistics)
				assert_true(run->last.target_bytes + MIB >=
					    run->guest.actual - run->guest.usable +
						    run->guest.wss / 5);
			run->guest.least = run->last.target_bytes < run->guest.least
						   ? run->last.target_bytes
						   : run->guest.least;
		}
		if (run->last.action == WSS_BALLOON_RETURN ||
		    run->last.action == WSS_BALLOON_RESTORE)
			return;
		guest_lives(&run->guest);
		run->now_s++;
	}
}

static void assert_action(const struct run *run, enum wss_balloon_action action, const char *reason)
{
	if (run->last.action != action || !strstr(run->last.reason, reason))
		fail_msg("%d '%s' at %d s, %d MiB", (int)run->last.action, run->last.reason,
			 (int)run->now_s, (int)(run->guest.actual / MIB));
}

TEST(test_good_guest)
{
	struct run run;

	begin(&run);
	live(&run, 1200);
	assert_action(&run, WSS_BALLOON_HOLD, "floor");
	/* It cannot give up 1024 - 700 MiB, plus a fifth of its working set. */
	assert_in_range(run.guest.actual, 363 * MIB, 366 * MIB);
	assert_int_equal(run.guest.rss, run.guest.actual);
	/* If most of that is cold, a tenth of it. */
	begin(&run);
	run.guest.wss = 20 * MIB;
	live(&run, 1200);
	assert_action(&run, WSS_BALLOON_HOLD, "floor");
	assert_in_range(run.guest.actual, 355 * MIB, 358 * MIB);
	/* Without statistics: policy, working set and headroom. */
	begin(&run);
	run.guest.has_statistics = false;
	live(&run, 1200);
	assert_action(&run, WSS_BALLOON_HOLD, "floor");
	assert_in_range(run.guest.actual, 256 * MIB, 258 * MIB);
}

TEST(test_never_balloons)
{
	struct run run;

	begin(&run);
	run.guest.speed = 0;
	live(&run, 1200);
	assert_action(&run, WSS_BALLOON_RESTORE, "does not release memory");
	assert_int_equal(run.last.target_bytes, 1024 * MIB);
	assert_true(run.now_s <= 60);
	/* It is never shrunk again. */
	live(&run, 100);
	assert_action(&run, WSS_BALLOON_HOLD, "left alone");
}

TEST(test_slow_guest)
{
	struct run run;

	begin(&run);
	run.guest.speed = 2 * MIB;
	live(&run, 3000);
	/* The controller waits for it, and takes no step during another one. */
	assert_action(&run, WSS_BALLOON_HOLD, "floor");
	assert_in_range(run.guest.actual, 363 * MIB, 366 * MIB);
}

TEST(test_liar)
{
	struct run run;

	/* Two steps are proof if all of the guest's memory is resident. */
	begin(&run);
	run.guest.lies = true;
	run.guest.rss = 1024 * MIB;
	live(&run, 1200);
	assert_action(&run, WSS_BALLOON_RESTORE, "reclaims nothing");
	assert_true(run.guest.least > 920 * MIB);
	/*
	 * Otherwise the proof is the first step that goes a whole step beyond the memory that
	 * was not resident.
	 */
	begin(&run);
	run.guest.lies = true;
	live(&run, 1200);
	assert_action(&run, WSS_BALLOON_RESTORE, "reclaims nothing");
	assert_in_range(run.guest.least, 830 * MIB, 849 * MIB);
}

/*
 * If QEMU itself allocates a little memory meanwhile, that does not mean that the guest kept
 * its own.
 */
TEST(test_little_to_give_back)
{
	struct run run;

	for (uint64_t rss = 700 * MIB; rss <= 1024 * MIB; rss += MIB) {
		begin(&run);
		run.guest.rss = rss;
		run.guest.qemu = 0;
		while (run.now_s < 1200) {
			live(&run, 1);
			run.guest.qemu = run.balloon.steps ? 10 * MIB : 0;
		}
		assert_action(&run, WSS_BALLOON_HOLD, "floor");
	}
}

/*
 * QEMU's own memory grows by more than the guest gives up, as the translation buffer of a TCG guest
 * does. A check shows that the guest's has fallen, and it takes few of them.
 */
TEST(test_growth_of_qemu)
{
	struct run run;

	begin(&run);
	run.guest.rss = 1024 * MIB;
	while (run.now_s < 1200) {
		live(&run, 1);
		if (run.balloon.steps && run.guest.qemu < 600 * MIB)
			run.guest.qemu += 8 * MIB;
	}
	assert_action(&run, WSS_BALLOON_HOLD, "floor");
	assert_in_range(run.guest.actual, 363 * MIB, 366 * MIB);
	assert_in_range(run.checks, 2, 1 + 1200 / 30);
	/* Growth hides no lie. */
	begin(&run);
	run.guest.rss = 1024 * MIB;
	run.guest.lies = true;
	run.guest.qemu = 100 * MIB;
	live(&run, 1200);
	assert_action(&run, WSS_BALLOON_RESTORE, "reclaims nothing");
	assert_int_equal(run.checks, 2);
	/* Where nothing can be checked, the figure counts as it is. */
	begin(&run);
	run.guest.rss = 1024 * MIB;
	run.guest.lies = run.remote = true;
	live(&run, 1200);
	assert_action(&run, WSS_BALLOON_RESTORE, "reclaims nothing");
}

/* Memory that the guest never touched is not on the host, so nothing can fall. */
TEST(test_untouched_memory)
{
	struct run run;

	begin(&run);
	run.guest.rss = 320 * MIB;
	run.guest.usable = 800 * MIB;
	live(&run, 1200);
	assert_action(&run, WSS_BALLOON_HOLD, "floor");
}

TEST(test_doubled_working_set)
{
	struct run run;

	begin(&run);
	run.guest.has_statistics = false;
	live(&run, 1200);
	run.guest.wss = 400 * MIB;
	live(&run, 20);
	assert_action(&run, WSS_BALLOON_RETURN, "half of its headroom");
	assert_int_equal(run.last.target_bytes, 1024 * MIB);
	/*
	 * The guest is left alone for a while, then asked again for memory that it does not need.
	 */
	guest_lives(&run.guest);
	live(&run, 60);
	assert_action(&run, WSS_BALLOON_HOLD, "resting");
	live(&run, 1200);
	assert_action(&run, WSS_BALLOON_HOLD, "floor");
	assert_in_range(run.guest.actual, 480 * MIB, 482 * MIB);
}

/* Infrequent statistics belong to the size before the last steps. */
TEST(test_stale_statistics)
{
	struct run run;

	begin(&run);
	run.every_s = 45;
	live(&run, 3000);
	assert_action(&run, WSS_BALLOON_HOLD, "floor");
	assert_in_range(run.guest.actual, 363 * MIB, 366 * MIB);
}

/* The statistics show that the guest is running out of memory, faster than a window would. */
TEST(test_guest_at_the_edge)
{
	struct run run;

	begin(&run);
	live(&run, 1200);
	run.guest.usable -= 5 * MIB;
	live(&run, 5);
	assert_action(&run, WSS_BALLOON_HOLD, "floor");
	run.guest.usable -= 17 * MIB;
	live(&run, 1);
	assert_action(&run, WSS_BALLOON_RETURN, "the guest reports");
	assert_int_equal(run.last.target_bytes, 1024 * MIB);
	/* The same applies while it gives memory up. */
	begin(&run);
	live(&run, 8);
	assert_true(run.balloon.pending || run.balloon.shrunk);
	run.guest.usable = 40 * MIB;
	live(&run, 1);
	assert_action(&run, WSS_BALLOON_RETURN, "the guest reports");
}

/* There is free memory, but at this rate only for a few seconds. */
TEST(test_fast_guest)
{
	struct run run;

	begin(&run);
	live(&run, 1200);
	/* Slow growth is allowed. */
	for (int i = 0; i < 10; i++) {
		run.guest.usable -= MIB;
		live(&run, 1);
		assert_action(&run, WSS_BALLOON_HOLD, "floor");
	}
	run.guest.usable -= 7 * MIB;
	live(&run, 1);
	assert_action(&run, WSS_BALLOON_RETURN, "allocating memory fast");
}

/* A hot page cache counts as usable, but does not fit in addition to the kernel's reserves. */
TEST(test_reserve)
{
	struct run run;

	begin(&run);
	run.guest.wss = 300 * MIB;
	run.guest.unmanaged = 50 * MIB;
	run.guest.kept_free = 60 * MIB;
	run.disks = true;
	live(&run, 1200);
	assert_action(&run, WSS_BALLOON_HOLD, "floor");
	assert_in_range(run.guest.actual, (360 + 110) * MIB, (360 + 110) * MIB + MIB);
	/* The reserve stays when the guest no longer reports it. */
	run.guest.unmanaged = 0;
	live(&run, 600);
	assert_action(&run, WSS_BALLOON_HOLD, "floor");
	assert_in_range(run.guest.actual, (360 + 110) * MIB, (360 + 110) * MIB + MIB);
	/* Half of the headroom is used up before the kernel has to reclaim. */
	run.guest.wss = 325 * MIB;
	live(&run, 10);
	assert_action(&run, WSS_BALLOON_HOLD, "");
	run.guest.wss = 328 * MIB;
	live(&run, 1);
	assert_action(&run, WSS_BALLOON_RETURN, "half of its headroom");
}

TEST(test_reserve_of_reports)
{
	struct wss_balloon_view view = {
		.actual_bytes = wss_amount_of(1024 * MIB),
		.usable_bytes = wss_amount_of(761 * MIB),
	};

	assert_int_equal(wss_balloon_reserve(&view), 0);
	view.free_bytes = wss_amount_of(580 * MIB);
	view.cache_bytes = wss_amount_of(302 * MIB);
	assert_int_equal(wss_balloon_reserve(&view) / 1024, (882 - 761) * 1024 / 2);
	view.managed_bytes = wss_amount_of(973 * MIB);
	view.managed_of_bytes = view.actual_bytes;
	assert_int_equal(wss_balloon_reserve(&view) / 1024, (51 * 1024) + (882 - 761) * 1024 / 2);
	/* Memory shared within the guest counts as page cache, and cannot be given up. */
	view.cache_bytes = wss_amount_of(700 * MIB);
	assert_in_range(wss_balloon_reserve(&view), (51 + 76) * MIB, (51 + 77) * MIB);
	/* Impossible figures are ignored. */
	view.managed_bytes = wss_amount_of(2048 * MIB);
	view.cache_bytes = view.free_bytes = wss_amount_of(0);
	assert_int_equal(wss_balloon_reserve(&view), 0);
	view.cache_bytes = view.free_bytes = wss_amount_of(UINT64_MAX);
	view.managed_bytes = wss_amount_of(0);
	assert_in_range(wss_balloon_reserve(&view), 1024 * MIB, 1101 * MIB);
}

/*
 * Of 300 MiB in use 150 are page cache, and 250 MiB of its memory are cold. It needs 550 MiB;
 * 300 plus 20 % are not enough, although by its statistics it could spare the rest.
 */
static void with_cache(struct run *run)
{
	begin(run);
	run->guest.wss = 300 * MIB;
	run->guest.usable = 624 * MIB;
	run->guest.cache = 500 * MIB;
	run->guest.cache_used = 150 * MIB;
	run->disks = true;
}

/* 400 MiB that it holds, 60 MiB of headroom, and all page cache in use. */
#define ROOMY (760 * MIB)

TEST(test_page_cache_in_use)
{
	struct run run;

	with_cache(&run);
	for (unsigned i = 0; i < 600 && run.last.action != WSS_BALLOON_GROW; i++)
		live(&run, 1);
	assert_action(&run, WSS_BALLOON_GROW, "reads its disks");
	assert_in_range(run.last.target_bytes, ROOMY, ROOMY + MIB);
	/* The first step that went too far has been undone. */
	assert_in_range(run.guest.least, 494 * MIB, 550 * MIB);
	/*
	 * The first caution lasts ten periods and the next one twenty, so it never stays below
	 * for long.
	 */
	live(&run, 90);
	assert_action(&run, WSS_BALLOON_HOLD, "reads its disks");
	assert_in_range(run.guest.actual, ROOMY, ROOMY + MIB);
	run.last.action = WSS_BALLOON_HOLD;
	for (unsigned i = 0; i < 600 && run.last.action != WSS_BALLOON_GROW; i++)
		live(&run, 1);
	assert_action(&run, WSS_BALLOON_GROW, "reads its disks");
	live(&run, 190);
	assert_in_range(run.guest.actual, ROOMY, ROOMY + MIB);
	assert_in_range(run.guest.least, 494 * MIB, 550 * MIB);
}

/* Reads at the usual rate are not a sign, nor are reads of unused cache. */
TEST(test_disks_that_are_always_read)
{
	struct run run;

	with_cache(&run);
	run.guest.cache_used = 0;
	run.guest.own_reads = 50 * MIB;
	live(&run, 1200);
	assert_action(&run, WSS_BALLOON_HOLD, "floor");
	assert_in_range(run.guest.actual, 460 * MIB, 461 * MIB);
	/* Until it reads a quarter more than usual. */
	run.guest.own_reads = 62 * MIB;
	live(&run, 60);
	assert_action(&run, WSS_BALLOON_HOLD, "floor");
	run.guest.own_reads = 63 * MIB;
	for (unsigned i = 0; i < 60 && run.last.action != WSS_BALLOON_GROW; i++)
		live(&run, 1);
	assert_action(&run, WSS_BALLOON_GROW, "reads its disks");
	/* It still reads as much with more memory, so memory was not the reason. */
	live(&run, 60);
	assert_action(&run, WSS_BALLOON_HOLD, "reads its disks");
	live(&run, 20);
	assert_action(&run, WSS_BALLOON_RETURN, "keeps reading");
	run.guest.least = UINT64_MAX;
	live(&run, 90);
	assert_action(&run, WSS_BALLOON_HOLD, "");
	assert_int_equal(run.guest.actual, 1024 * MIB);
	live(&run, 1200);
	assert_action(&run, WSS_BALLOON_HOLD, "floor");
	assert_in_range(run.guest.actual, 460 * MIB, 461 * MIB);
}

/*
 * Reads that continue are noticed before they become the usual rate, however short the periods
 * are.
 */
TEST(test_reads_that_go_on)
{
	struct run run;

	with_cache(&run);
	run.balloon.limits.period_s = 5;
	run.guest.cache_used = 0;
	live(&run, 1200);
	assert_action(&run, WSS_BALLOON_HOLD, "floor");
	run.guest.own_reads = 50 * MIB;
	for (unsigned i = 0; i < 60 && run.last.action != WSS_BALLOON_GROW; i++)
		live(&run, 1);
	assert_action(&run, WSS_BALLOON_GROW, "reads its disks");
	run.guest.least = UINT64_MAX;
	live(&run, 100);
	assert_action(&run, WSS_BALLOON_RETURN, "keeps reading");
	assert_true(run.guest.least == UINT64_MAX);
}

TEST(test_disks_that_nobody_can_watch)
{
	struct run run;

	with_cache(&run);
	run.disks = false;
	live(&run, 1200);
	assert_action(&run, WSS_BALLOON_HOLD, "disks read is unknown");
	assert_in_range(run.guest.actual, ROOMY, ROOMY + MIB);
	/* After a disk was unplugged, the total is smaller. */
	with_cache(&run);
	run.guest.cache_used = 0;
	run.guest.reads = 1 << 30;
	live(&run, 300);
	run.guest.reads = 0;
	live(&run, 900);
	assert_in_range(run.guest.actual, 460 * MIB, 461 * MIB);
}

/* A policy's minimum, or a percentile, rises while the guest is shrunk. */
TEST(test_floor_rises)
{
	struct run run;

	begin(&run);
	run.guest.has_statistics = false;
	live(&run, 1200);
	assert_in_range(run.guest.actual, 256 * MIB, 258 * MIB);
	run.balloon.limits.minimum_bytes = 500 * MIB;
	live(&run, 1);
	assert_action(&run, WSS_BALLOON_GROW, "floor has risen");
	assert_int_equal(run.last.target_bytes, 500 * MIB);
	live(&run, 100);
	assert_action(&run, WSS_BALLOON_HOLD, "floor");
	assert_int_equal(run.guest.actual, 500 * MIB);
	run.balloon.limits.minimum_bytes = 2000 * MIB;
	live(&run, 1);
	assert_action(&run, WSS_BALLOON_RETURN, "its original size");
}

/* The guest has not yet shrunk to the risen floor, so this is not an emergency. */
TEST(test_floor_rises_within_a_step)
{
	struct run run;

	begin(&run);
	run.guest.has_statistics = false;
	run.guest.speed = 2 * MIB;
	live(&run, 10);
	assert_true(run.balloon.pending);
	assert_in_range(run.guest.actual, 1005 * MIB, 1023 * MIB);
	run.balloon.limits.minimum_bytes = 990 * MIB;
	live(&run, 1);
	assert_action(&run, WSS_BALLOON_GROW, "floor has risen");
	live(&run, 60);
	assert_action(&run, WSS_BALLOON_HOLD, "floor");
	assert_int_equal(run.guest.actual, 990 * MIB);
	/* But this is an emergency. */
	run.guest.actual += 5 * MIB;
	live(&run, 1);
	assert_action(&run, WSS_BALLOON_RESTORE, "by itself");
}

/* Somebody else moves the balloon before anything was taken: the guest gets that size back. */
static void told(uint64_t bytes)
{
	struct run run;

	begin(&run);
	run.busy = true;
	live(&run, 20);
	run.guest.actual = run.guest.target = run.guest.rss = bytes;
	live(&run, 2);
	run.busy = false;
	live(&run, 100);
	assert_true(run.balloon.shrunk && run.guest.actual < bytes);
	run.guest.wss = 1900 * MIB;
	live(&run, 10);
	assert_action(&run, WSS_BALLOON_RETURN, "half of its headroom");
	assert_int_equal(run.last.target_bytes, bytes);
}

TEST(test_told_by_somebody_else)
{
	told(1500 * MIB);
	told(700 * MIB);
}

/* The guest is on its way to 1 GiB when it is first seen: its size then is not its original one. */
TEST(test_moves_at_first)
{
	struct wss_balloon_limits small = limits;
	struct run run;

	begin(&run);
	run.guest.has_statistics = false;
	small.original_bytes = run.guest.actual = run.guest.target = 400 * MIB;
	wss_balloon_init(&run.balloon, &small);
	while (run.guest.actual < 1024 * MIB) {
		live(&run, 1);
		assert_int_equal(run.last.action, WSS_BALLOON_HOLD);
		run.guest.target = run.guest.actual += 104 * MIB;
	}
	live(&run, 100);
	assert_true(run.balloon.shrunk);
	assert_int_equal(run.balloon.limits.original_bytes, 1024 * MIB);
}

/* Its size on the way back is not its original one, however long that takes. */
TEST(test_slow_on_the_way_back)
{
	struct run run;

	begin(&run);
	live(&run, 1200);
	run.guest.swapped += 4096;
	live(&run, 1);
	assert_action(&run, WSS_BALLOON_RETURN, "swapping");
	run.guest.target = run.guest.actual += 100 * MIB;
	run.guest.usable += 100 * MIB;
	run.guest.rss += 100 * MIB;
	live(&run, 300);
	assert_true(run.balloon.shrunk);
	run.guest.swapped += 4096;
	live(&run, 1);
	assert_action(&run, WSS_BALLOON_RETURN, "swapping");
	assert_int_equal(run.last.target_bytes, 1024 * MIB);
}

/* But one that turns round was set to something else meanwhile. */
TEST(test_turns_round_on_the_way_back)
{
	struct run run;
	uint64_t size;

	begin(&run);
	live(&run, 1200);
	run.guest.swapped += 4096;
	live(&run, 1);
	assert_action(&run, WSS_BALLOON_RETURN, "swapping");
	/* The last step may still go on for a moment. */
	run.guest.target = run.guest.actual -= 10 * MIB;
	live(&run, 1);
	assert_int_equal(run.balloon.limits.original_bytes, 1024 * MIB);
	run.guest.target = run.guest.actual += 200 * MIB;
	live(&run, 2);
	assert_int_equal(run.balloon.limits.original_bytes, 1024 * MIB);
	size = run.guest.target = run.guest.actual -= 50 * MIB;
	live(&run, 2);
	assert_int_equal(run.balloon.limits.original_bytes, size);
}

TEST(test_busy_guest)
{
	struct run run;

	begin(&run);
	run.busy = true;
	live(&run, 100);
	assert_action(&run, WSS_BALLOON_HOLD, "no step is possible");
	assert_true(run.balloon.ready);
	assert_int_equal(run.guest.actual, 1024 * MIB);
	run.busy = false;
	live(&run, 1);
	assert_action(&run, WSS_BALLOON_SHRINK, "less");
	assert_false(run.balloon.ready);
	live(&run, 100);
	assert_true(run.guest.actual < 900 * MIB);
	run.busy = true;
	run.guest.wss = 1000 * MIB;
	live(&run, 1);
	assert_action(&run, WSS_BALLOON_RETURN, "half of its headroom");
}

TEST(test_distress)
{
	struct run run;

	begin(&run);
	live(&run, 100);
	run.guest.major += 15;
	live(&run, 1);
	assert_true(run.last.action == WSS_BALLOON_HOLD || run.last.action == WSS_BALLOON_SHRINK);
	run.guest.major += 100;
	live(&run, 1);
	assert_action(&run, WSS_BALLOON_RETURN, "major faults");
	begin(&run);
	live(&run, 100);
	run.guest.swapped += 4096;
	live(&run, 1);
	assert_action(&run, WSS_BALLOON_RETURN, "swapping");
	/* Statistics come every 10 s, so their major faults are those of 10 s. */
	begin(&run);
	run.every_s = 10;
	live(&run, 100);
	for (int i = 0; i < 30; i++) {
		run.guest.major += 15;
		live(&run, 1);
		assert_true(run.last.action == WSS_BALLOON_HOLD ||
			    run.last.action == WSS_BALLOON_SHRINK);
	}
	for (int i = 0; i < 11 && run.last.action != WSS_BALLOON_RETURN; i++) {
		run.guest.major += 30;
		live(&run, 1);
	}
	assert_action(&run, WSS_BALLOON_RETURN, "major faults");
	/* They do not matter before anything has been taken. */
	begin(&run);
	run.guest.wss = 1000 * MIB;
	live(&run, 5);
	run.guest.swapped += 4096;
	live(&run, 5);
	assert_action(&run, WSS_BALLOON_HOLD, "floor");
}

TEST(test_autodeflate)
{
	struct run run;

	begin(&run);
	live(&run, 300);
	run.guest.actual += 20 * MIB;
	live(&run, 1);
	assert_action(&run, WSS_BALLOON_RESTORE, "by itself");
}

TEST(test_blind)
{
	struct run run;

	begin(&run);
	live(&run, 60);
	run.blind = true;
	live(&run, 60);
	assert_action(&run, WSS_BALLOON_HOLD, "too long ago");
	live(&run, 100);
	assert_action(&run, WSS_BALLOON_RESTORE, "measured");
}

/* A guest whose step takes longer than ten periods still counts as measured. */
TEST(test_long_step)
{
	struct run run;

	begin(&run);
	run.guest.speed = MIB / 4;
	run.balloon.limits.timeout_s = 60;
	live(&run, 3000);
	assert_true(run.balloon.shrunk);
	assert_true(run.guest.actual < 900 * MIB);
	begin(&run);
	run.balloon.limits.period_s = 2;
	run.guest.speed = 0;
	live(&run, 100);
	assert_action(&run, WSS_BALLOON_RESTORE, "does not release memory");
}

TEST(test_unknown)
{
	struct wss_balloon_view view = {.now_s = 1};
	struct wss_balloon balloon;

	wss_balloon_init(&balloon, &limits);
	assert_int_equal(wss_balloon_next(&balloon, &view).action, WSS_BALLOON_HOLD);
	/* Without a window there is no step. */
	view.actual_bytes = wss_amount_of(1024 * MIB);
	assert_int_equal(wss_balloon_next(&balloon, &view).action, WSS_BALLOON_HOLD);
	/* A guest that claims to be able to give up more than it has is not believed. */
	view.usable_bytes = wss_amount_of(2048 * MIB);
	assert_int_equal(wss_balloon_floor(&limits, &view, 0), 256 * MIB);
}

TEST(test_gain)
{
	struct wss_balloon_view view = {.actual_bytes = wss_amount_of(512 * MIB)};

	/* An unknown figure is no reason to refuse. */
	assert_false(wss_balloon_gain(&view, 358 * MIB).known);
	assert_false(wss_balloon_is_futile(&view, 358 * MIB));
	/* Memory that is not resident cannot be freed. */
	view.rss_bytes = wss_amount_of(365 * MIB);
	assert_int_equal(wss_balloon_gain(&view, 358 * MIB).value, 7 * MIB);
	assert_true(wss_balloon_is_futile(&view, 358 * MIB));
	view.rss_bytes = wss_amount_of(300 * MIB);
	assert_int_equal(wss_balloon_gain(&view, 358 * MIB).value, 0);
	/* Nor can more be freed than was taken: the rest is QEMU's own. */
	view.rss_bytes = wss_amount_of(600 * MIB);
	assert_int_equal(wss_balloon_gain(&view, 358 * MIB).value, 154 * MIB);
	assert_false(wss_balloon_is_futile(&view, 358 * MIB));
	assert_int_equal(wss_balloon_gain(&view, 600 * MIB).value, 0);
	assert_in_range(wss_keep_least_gain(512 * MIB), 25 * MIB, 26 * MIB);
	assert_int_equal(wss_keep_least_gain(512 * 1024 * MIB), 64 * MIB);
}

/* A guest with hardly any resident memory beyond its floor is left alone until that changes. */
TEST(test_nothing_to_gain)
{
	struct run run;

	begin(&run);
	run.guest.rss = 280 * MIB;
	live(&run, 100);
	assert_int_equal(run.last.action, WSS_BALLOON_HOLD);
	assert_int_equal(run.guest.actual, 1024 * MIB);
	assert_non_null(strstr(run.last.reason, "too little"));
	run.guest.rss = 500 * MIB;
	live(&run, 600);
	assert_true(run.guest.actual < 400 * MIB);
}

TEST(test_refusals)
{
	const struct wss_balloon_facts good = {.running = true,
					       .has_device = true,
					       .answers = true,
					       .autodeflate = true,
					       .confidence = WSS_CONFIDENCE_LOW,
					       .current = true};
	struct wss_balloon_facts facts;

	assert_null(wss_balloon_refusal(&good));
#define REFUSED(change, part)                                               \
	do {                                                                \
		facts = good;                                               \
		facts.change;                                               \
		assert_non_null(wss_balloon_refusal(&facts));               \
		assert_non_null(strstr(wss_balloon_refusal(&facts), part)); \
	} while (0)
	REFUSED(unfinished = true, "unfinished");
	REFUSED(opted_out = true, "policy");
	REFUSED(foreign = true, "not a QEMU guest");
	REFUSED(running = false, "not run");
	REFUSED(job = true, "job");
	REFUSED(has_device = false, "no balloon");
	REFUSED(fixed = true, "cannot be set");
	REFUSED(owner = "its manager sets its balloon", "its manager sets its balloon");
	REFUSED(unsized = true, "size");
	REFUSED(answers = false, "does not answer");
	REFUSED(hazard = "it has VFIO", "VFIO");
	REFUSED(confidence = WSS_CONFIDENCE_NONE, "too early");
	REFUSED(current = false, "too long ago");
	REFUSED(autodeflate = false, "no balloon statistics");
	assert_ptr_equal(wss_balloon_objection(&facts), wss_balloon_refusal(&facts));
	/* If statistics are configured, the message does not claim that they are off. */
	facts.asked = true;
	assert_non_null(strstr(wss_balloon_refusal(&facts), "have stopped"));
	facts.statistics = true;
	assert_null(wss_balloon_refusal(&facts));
	assert_null(wss_balloon_objection(&facts));
	/* A shrunk guest that is paused, or was not measured lately, need not be given up. */
	facts.running = facts.current = false;
	assert_null(wss_balloon_objection(&facts));
	facts.hazard = "it has VFIO";
	assert_non_null(wss_balloon_objection(&facts));
}

static int never_set(struct wss_guest *guest, uint64_t bytes, struct wss_error *err)
{
	(void)guest;
	(void)bytes;
	return wss_error_set(err, WSS_ERR_FAILED, "not to be called");
}

/* What stands under a refusal has to lift that one. */
TEST(test_a_hint_lifts_the_refusal_that_it_stands_under)
{
	struct wss_guest_ops libvirt = {.set_balloon = never_set}, none = {.set_balloon = NULL};
	struct wss_guest guest = {
		.ops = &libvirt,
		.config = {.name = "web1", .uuid = "a1b2c3d4-0000-4000-8000-00000000aaaa"}};
	struct wss_cli cli = {.uri = "qemu:///session"};
	struct wss_balloon_facts facts = {.running = true,
					  .has_device = true,
					  .confidence = WSS_CONFIDENCE_HIGH,
					  .current = true};
	char hint[WSS_BALLOON_HINT_MAX];

#define HINT_IS(text)                                                                \
	do {                                                                         \
		balloon_hint(&cli, NULL, &guest, wss_balloon_refusal(&facts), hint); \
		assert_string_equal(hint, text);                                     \
	} while (0)

	HINT_IS("load the balloon driver in the guest");
	/* Neither the driver nor statistics would do. */
	facts.job = true;
	HINT_IS("");
	facts.job = false;
	facts.unsized = true;
	HINT_IS("");
	facts.unsized = false;
	facts.answers = true;
	HINT_IS("virsh -c qemu:///session dommemstat a1b2c3d4-0000-4000-8000-00000000aaaa --period 5 --live");
	cli.uri = NULL;
	HINT_IS("virsh dommemstat a1b2c3d4-0000-4000-8000-00000000aaaa --period 5 --live");
	facts.job = true;
	HINT_IS("");
	facts.job = false;
	facts.current = false;
	HINT_IS("");
	facts.unfinished = true;
	HINT_IS("virt-wss balloon --restore web1");
	/* Only through libvirt can it be given back. */
	guest.ops = &none;
	HINT_IS("");
#undef HINT_IS
}

int main(void)
{
	return tests_run();
}
