/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The journal of what was done to balloons: each step is written before it is done, so that
 * whatever ends the program, what has to be given back is known.
 */
#ifndef WSS_STORE_JOURNAL_H
#define WSS_STORE_JOURNAL_H

#include <stdint.h>
#include <time.h>

#include "base/error.h"
#include "store/history.h"

struct wss_journal_step {
	const char *uuid;
	const char *name;
	time_t time;
	uint64_t original_bytes; /* what the guest had before the first step */
	uint64_t from_bytes, to_bytes;
	const char *reason;
	const char *uri; /* of the connection; NULL where that is not known */
};

/* Writes one step; it is in the file when this returns, also for a process that is killed then. */
int wss_journal_write(struct wss_history *history, const struct wss_journal_step *step,
		      struct wss_error *err);

/*
 * Writes the first step. WSS_ERR_FAILED where the guest has unfinished ones: of a process that was
 * killed, or of one that has begun at this very moment.
 */
int wss_journal_begin(struct wss_history *history, const struct wss_journal_step *step,
		      struct wss_error *err);

/* As that refuses, without writing anything. */
int wss_journal_check(struct wss_history *history, const char *uuid, struct wss_error *err);

/* The guest has what it had: nothing is open any more. */
int wss_journal_done(struct wss_history *history, const char *uuid, struct wss_error *err);

/* A guest that has not got back what it had. */
struct wss_journal_open {
	char uuid[37];
	char name[256];
	char uri[512]; /* "" where it is not known */
	uint64_t original_bytes;
};

/*
 * All of them, or the one with a UUID: a malloc'ed array of ret_n for the caller.
 */
int wss_journal_unfinished(struct wss_history *history, const char *uuid,
			   struct wss_journal_open **ret_open, size_t *ret_n,
			   struct wss_error *err);

#endif
