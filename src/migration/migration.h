/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The room migration/: how a live migration of a guest would go. A model without input or output, and
 * without threads or state; migration-report.h has its rows and notes.
 *
 * In: struct wss_migration, that is the growth curve of what the guest writes (measure/writes.h),
 * its memory, and the link; cmd/migrate-estimate.c measures a guest for it (recording/written.h) or
 * reads a recording (recording/recorded-writes.h). Out: struct wss_migration_run for each end of
 * the bounds, with passes, bytes, time and downtime; and whether it ends (wss_migration_judge()).
 *
 * Begin with wss_migration_precopy(). A rule of QEMU that is missing goes into migration.c, with
 * its source below, and into the simulation of tests/unit/test-migration.c.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "measure/writes.h"

/*
 * The rules of QEMU 7.2 (migration/migration.c, migration/ram.c, docs/devel/migration.rst there).
 *
 * Pre-copy sends all memory in a first pass while the guest runs. Every 100 ms QEMU measures
 * its bandwidth, and multiplies it by the downtime limit: so much can be sent while the guest
 * is stopped. Once less than that is left of a pass, QEMU reads the dirty bitmap, which adds
 * what the guest has written since it was read last. If less than the threshold is left even
 * so, QEMU stops the guest and sends the rest; otherwise this is the next pass. A pass
 * therefore takes as long as its bytes take, and the next one is as large as the written set
 * that has grown in this time (measure/writes.h), together with what was left. Where that is no
 * smaller than the pass before, the migration never ends: QEMU does not give up by itself.
 *
 * A page costs its 4096 bytes and a header of 8; a page of zeros costs 9 bytes, and time for
 * looking at it.
 *
 * Auto-converge slows the virtual CPUs down. When the bitmap is read, and 1 s has passed since
 * the last look, QEMU compares what the guest has newly written with half of what was sent
 * meanwhile. Each second time that it was more, the CPUs lose 20 % of their time at first and
 * 10 % more each further time, up to 99 % (cpu-throttle-initial, cpu-throttle-increment,
 * max-cpu-throttle, throttle-trigger-threshold).
 *
 * Post-copy, begun after the first pass, stops the guest only for its devices' state and
 * resumes it on the other host, which then fetches what was written since.
 */

/* QEMU's own default. */
#define WSS_MIGRATION_DOWNTIME_S 0.3

struct wss_migration {
	double bandwidth;  /* bytes/s that the link and max-bandwidth allow; above 0 */
	double downtime_s; /* QEMU's downtime-limit; above 0 */
	double ram_bytes;  /* all of the guest's RAM; above 0 */
	/*
	 * RAM that is not zero, which must be sent, by enum wss_end; at most ram_bytes. The
	 * rest costs almost nothing.
	 */
	double content_bytes[WSS_ENDS];
	struct wss_writes writes;
	double fastest;	    /* bytes/s written in the window in which most was; 0: unknown */
	uint64_t n_windows; /* of which that is the largest */
	/*
	 * Share of the time, 0 to 1, for which the virtual CPUs that write are busy, by enum
	 * wss_end. A throttle takes only idle time until they have no more. 1: each slowdown
	 * counts; 0: none does, because it is unknown.
	 */
	double busy[WSS_ENDS];
};

/* How it goes if everything is as one end of the bounds says. */
struct wss_migration_run {
	bool converges;
	/*
	 * Passes over the memory, the last of them with the guest stopped. QEMU's
	 * dirty-sync-count is one more. If the migration does not converge: until it stopped
	 * getting ahead.
	 */
	unsigned passes;
	double bytes;	   /* sent, with headers (ram.transferred); likewise */
	double seconds;	   /* from start to end, likewise */
	double downtime_s; /* 0 if it does not converge */
	/* The last pass with the guest running; a mean of the last ones if it does not
	 * converge. */
	double pass_bytes, pass_seconds;
	unsigned throttle_percent; /* largest share of time that the CPUs lose */
};

/*
 * Runs pre-copy at one end of the bounds. The low end is the fastest: what the guest writes
 * lies in what is still to be sent where that is possible, looking for zeros costs little; the
 * high end the slowest. Bounds of a figure are the smallest and the largest of all three.
 */
struct wss_migration_run wss_migration_precopy(const struct wss_migration *migration,
					       bool auto_converge, enum wss_end end);

/* With fewer windows it is not known how fast a guest writes at its worst. */
#define WSS_MIGRATION_WINDOWS_MIN 20

enum wss_migration_ends {
	WSS_MIGRATION_ENDS, /* at each end of the bounds */
	WSS_MIGRATION_LIKELY, /* as expected, and if the guest wrote a quarter more than in its worst window all the time */
	WSS_MIGRATION_UNKNOWN,	/* as expected, but there were too few windows to know the worst */
	WSS_MIGRATION_UNLIKELY, /* at some end of the bounds, or not in the worst window */
	WSS_MIGRATION_NEVER,	/* at no end of the bounds */
};

/* Judges the runs at all three ends of the bounds. A mean does not show how fast a guest writes at its worst. */
enum wss_migration_ends wss_migration_judge(const struct wss_migration *migration,
					    bool auto_converge,
					    const struct wss_migration_run runs[WSS_ENDS]);

/*
 * Runs a migration that changes to post-copy after the first pass. pass_bytes and pass_seconds
 * are those of the second part, in which the guest runs on the other host and waits for each
 * page that has not arrived. It always converges.
 */
struct wss_migration_run wss_migration_postcopy(const struct wss_migration *migration,
						enum wss_end end);
