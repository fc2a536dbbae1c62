/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "migration/migration.h"

#include <math.h>
#include <stddef.h>

#include "pages/recording.h"

#define PAGE ((double)WSS_PAGE_BYTES)
/* Bytes sent for a byte of memory. */
#define CONTENT_COST ((PAGE + 8) / PAGE)
#define ZERO_COST (9 / PAGE)

/* QEMU measures its bandwidth, and grants what max-bandwidth allows, for so long at a time. */
#define SLOT_S 0.1
#define THROTTLE_PERIOD_S 1.0
#define THROTTLE_TRIGGER 0.5
#define THROTTLE_INITIAL 20
#define THROTTLE_INCREMENT 10
#define THROTTLE_MAX 99

/* How much faster than in its worst window a guest may get. */
#define FASTER 1.25

/* A migration that has not got ahead in so many passes never will. */
#define STUCK_PASSES 20
#define STUCK_S 20.0
/* A pass gets ahead if it is smaller than any before by this share. */
#define AHEAD 0.01
/* Passes may be as short as a slot. */
#define PASSES_MAX 10000

/* What the ends assume besides the curve and the content. */
static const struct end_assumption {
	double zero_s;	   /* looking at a byte of zeros */
	double efficiency; /* share of the bandwidth that is reached */
	double stop_s;	   /* stopping the guest and sending its devices' state */
} assumptions[WSS_ENDS] = {
	[WSS_END_LOW] = {0.05e-6 / PAGE, 1.0, 0},
	[WSS_END_EXPECTED] = {0.3e-6 / PAGE, 0.99, 0.02},
	[WSS_END_HIGH] = {1.5e-6 / PAGE, 0.95, 0.1},
};

/* A migration under way. Bytes are bytes of memory unless they are called sent. */
struct course {
	const struct wss_migration *migration;
	enum wss_end end;
	bool auto_converge;
	struct wss_migration_run run;
	double content, zeros; /* left to be sent */
	double speed;	       /* bytes/s that are sent */
	double threshold;
	double synced_s; /* time since the bitmap was read */
	double pass_sent;
	/* Since the throttle was last considered. */
	double period_start_s, period_sent, period_written;
	bool written_much;
	/* The best pass so far, and when it was. */
	double best, best_s, best_sent;
	unsigned best_pass;
};

static double course_left(const struct course *course)
{
	return course->content + course->zeros;
}

static void course_start(struct course *course)
{
	const struct wss_migration *migration = course->migration;

	course->content = fmin(migration->content_bytes[course->end], migration->ram_bytes);
	course->zeros = migration->ram_bytes - course->content;
	course->speed = migration->bandwidth * assumptions[course->end].efficiency;
	course->best = migration->ram_bytes;
	course->run.passes = 1;
}

static void course_send(struct course *course, double share, double seconds)
{
	double sent = share * (course->content * CONTENT_COST + course->zeros * ZERO_COST);

	course->content -= share * course->content;
	course->zeros -= share * course->zeros;
	course->run.bytes += sent;
	course->run.seconds += seconds;
	course->synced_s += seconds;
	course->pass_sent += sent;
	course->period_sent += sent;
}

/*
 * Sends until the next slot in which less than the threshold may be left. Content and zeros
 * are assumed to be mixed evenly. The bandwidth of a slot that memory runs out in is not
 * measured.
 */
static void course_advance(struct course *course)
{
	double sent = course->content * CONTENT_COST + course->zeros * ZERO_COST;
	double sending_s = sent / course->speed;
	double looking_s = course->zeros * assumptions[course->end].zero_s;
	double seconds =
		course->end == WSS_END_HIGH ? sending_s + looking_s : fmax(sending_s, looking_s);
	double share = SLOT_S / seconds, above;

	if (seconds <= SLOT_S) {
		course_send(course, 1, seconds);
		return;
	}
	/* The threshold is 0 in the first slot, and anything may be left after it. */
	above = course->threshold > 0 ? 1 - course->threshold / course_left(course) : 0;
	share *= fmax(1, floor(above / share));
	course_send(course, fmin(share, 1), share * seconds);
	course->threshold = sent / seconds * course->migration->downtime_s;
}

/* Considers the throttle as QEMU does whenever it reads the bitmap. */
static void course_throttle(struct course *course, double written)
{
	struct wss_migration_run *run = &course->run;

	course->period_written += written;
	if (run->seconds <= course->period_start_s + THROTTLE_PERIOD_S)
		return;
	if (course->auto_converge &&
	    course->period_written > course->period_sent * THROTTLE_TRIGGER) {
		if (course->written_much && run->throttle_percent < THROTTLE_MAX) {
			run->throttle_percent +=
				run->throttle_percent ? THROTTLE_INCREMENT : THROTTLE_INITIAL;
			if (run->throttle_percent > THROTTLE_MAX)
				run->throttle_percent = THROTTLE_MAX;
			/* What comes is another guest: whether it gets ahead is open again. */
			course->best_pass = run->passes;
			course->best_s = run->seconds;
			course->best_sent = run->bytes;
		}
		course->written_much = !course->written_much;
	}
	course->period_start_s = run->seconds;
	course->period_sent = course->period_written = 0;
}

/*
 * Returns what is left once `written` has been added to it. The guest may have written just
 * what had not been sent yet, or none of it. In between, what is left is assumed to be spread
 * over the pages that the guest writes: in the first pass over all content, later over all
 * that it ever writes.
 */
static double course_union(const struct course *course, double written)
{
	const struct wss_writes *writes = &course->migration->writes;
	double left = course->content, all;

	if (course->end == WSS_END_LOW)
		return fmax(left, written);
	all = course->run.passes == 1
		      ? course->migration->content_bytes[course->end]
		      : wss_writes_at(writes, wss_writes_seconds(writes), course->end);
	all = fmax(all, fmax(left, written));
	if (course->end == WSS_END_HIGH)
		return fmin(left + written, all);
	return all > 0 ? left + written - left * written / all : 0;
}

/* Returns how fast the guest writes, as a share of its usual speed. */
static double course_pace(const struct course *course)
{
	double left = 1 - course->run.throttle_percent / 100.0;
	double busy = course->migration->busy[course->end];

	return left < busy ? left / busy : 1;
}

/* Reads the bitmap. */
static void course_sync(struct course *course)
{
	const struct wss_migration *migration = course->migration;
	double runs_s = course->synced_s * course_pace(course);
	double written =
		fmin(wss_writes_at(&migration->writes, runs_s, course->end), migration->ram_bytes);
	double joined = course_union(course, written);

	course_throttle(course, joined - course->content);
	course->run.pass_bytes = course->pass_sent;
	course->run.pass_seconds = course->synced_s;
	course->run.passes++;
	course->content = joined;
	course->zeros = fmin(course->zeros, migration->ram_bytes - joined);
	course->synced_s = course->pass_sent = 0;
	if (course_left(course) < course->best * (1 - AHEAD)) {
		course->best = course_left(course);
		course->best_pass = course->run.passes;
		course->best_s = course->run.seconds;
		course->best_sent = course->run.bytes;
	}
}

static bool course_is_stuck(const struct course *course)
{
	unsigned passes = course->run.passes - course->best_pass;

	return course->run.passes >= PASSES_MAX ||
	       (passes >= STUCK_PASSES && course->run.seconds - course->best_s >= STUCK_S);
}

/* Gives up: from the best pass on, all passes are alike. */
static void course_give_up(struct course *course)
{
	struct wss_migration_run *run = &course->run;
	unsigned passes = run->passes - course->best_pass;

	if (passes) {
		run->pass_bytes = (run->bytes - course->best_sent) / passes;
		run->pass_seconds = (run->seconds - course->best_s) / passes;
	}
	run->passes = course->best_pass;
	run->bytes = course->best_sent;
	run->seconds = course->best_s;
}

/*
 * Sends the rest while the guest is stopped. QEMU lifts max-bandwidth for that, so that on a
 * fast link it takes hardly any time.
 */
static void course_complete(struct course *course)
{
	double sent = course->content * CONTENT_COST + course->zeros * ZERO_COST;

	course->run.converges = true;
	course->run.downtime_s = assumptions[course->end].stop_s;
	if (course->end != WSS_END_LOW)
		course->run.downtime_s += sent / course->speed;
	course->run.seconds += course->run.downtime_s;
	course->run.bytes += sent;
}

struct wss_migration_run wss_migration_precopy(const struct wss_migration *migration,
					       bool auto_converge, enum wss_end end)
{
	struct course course = {.migration = migration, .auto_converge = auto_converge, .end = end};

	course_start(&course);
	for (;;) {
		/* Where a page takes longer than the downtime, QEMU stops once nothing is left. */
		double limit = fmax(course.threshold, PAGE);

		/* QEMU measures the bandwidth at the end of a slot: what fits into the first one is sent without. */
		if (course.threshold > 0 && course_left(&course) < limit)
			course_sync(&course);
		if (course_left(&course) < limit) {
			course_complete(&course);
			break;
		}
		if (course_is_stuck(&course)) {
			course_give_up(&course);
			break;
		}
		course_advance(&course);
	}
	return course.run;
}

/* Whether it ends if the guest writes faster than in its worst window all the time, and other memory each time. */
static bool migration_withstands(const struct wss_migration *migration, bool auto_converge)
{
	struct wss_migration worst = *migration;
	double ram = migration->ram_bytes;

	worst.writes.n = 0;
	if (migration->fastest > 0)
		wss_writes_add(&worst.writes, ram / (migration->fastest * FASTER), ram, ram, ram);
	return wss_migration_precopy(&worst, auto_converge, WSS_END_EXPECTED).converges;
}

enum wss_migration_ends wss_migration_judge(const struct wss_migration *migration,
					    bool auto_converge,
					    const struct wss_migration_run runs[WSS_ENDS])
{
	size_t n = 0;

	for (size_t i = 0; i < WSS_ENDS; i++)
		n += runs[i].converges;
	if (n == WSS_ENDS)
		return WSS_MIGRATION_ENDS;
	if (!n)
		return WSS_MIGRATION_NEVER;
	if (!runs[WSS_END_EXPECTED].converges || !migration_withstands(migration, auto_converge))
		return WSS_MIGRATION_UNLIKELY;
	return migration->n_windows >= WSS_MIGRATION_WINDOWS_MIN ? WSS_MIGRATION_LIKELY
								 : WSS_MIGRATION_UNKNOWN;
}

struct wss_migration_run wss_migration_postcopy(const struct wss_migration *migration,
						enum wss_end end)
{
	struct course course = {.migration = migration, .end = end};

	course_start(&course);
	while (course_left(&course) >= fmax(course.threshold, PAGE))
		course_advance(&course);
	course_sync(&course);
	course.run.converges = true;
	course.run.downtime_s = assumptions[end].stop_s;
	course.run.pass_bytes = course.content * CONTENT_COST + course.zeros * ZERO_COST;
	course.run.pass_seconds = course.run.pass_bytes / course.speed;
	course.run.bytes += course.run.pass_bytes;
	course.run.seconds += course.run.downtime_s + course.run.pass_seconds;
	return course.run;
}
