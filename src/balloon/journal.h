/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Journal of balloon steps: each step is recorded before it is taken, so that the memory to
 * give back is known no matter how the program ends.
 */
#pragma once

#include <stdint.h>
#include <time.h>

#include "base/error.h"
#include "history/history.h"

struct wss_journal_step {
	const char *uuid;
	const char *name;
	time_t time;
	uint64_t original_bytes; /* the guest's size before the first step */
	uint64_t from_bytes, to_bytes;
	const char *reason;
	const char *uri;	/* URI of the connection; NULL if unknown */
	uint64_t maximum_bytes; /* the guest's maximum memory now; 0 if unknown */
};

/*
 * Records one step. The step is in the file when this returns, even if the process is then
 * killed.
 */
int wss_journal_write(struct wss_history *history, const struct wss_journal_step *step,
		      struct wss_error *err);

/*
 * Records the first step. WSS_ERR_FAILED if the guest has unfinished steps, of a killed
 * process or of one that began at the same moment.
 */
int wss_journal_begin(struct wss_history *history, const struct wss_journal_step *step,
		      struct wss_error *err);

/* Fails as wss_journal_begin() does, but records nothing. */
int wss_journal_check(struct wss_history *history, const char *uuid, struct wss_error *err);

/* Marks all steps of a guest as done, because it has its original size again. */
int wss_journal_done(struct wss_history *history, const char *uuid, struct wss_error *err);

/* A guest that does not have its original size back yet. */
struct wss_journal_open {
	char uuid[37];
	char name[256];
	char uri[512]; /* "" if unknown */
	uint64_t original_bytes;
	uint64_t from_bytes, to_bytes; /* of the newest step; 0 where the file is damaged */
	uint64_t maximum_bytes,
		first_maximum_bytes; /* at the newest and at the first step; 0 if unknown */
};

/*
 * Lists all such guests, or only the one with this UUID (NULL: all): a malloc()ed array of
 * *ret_n entries, owned by the caller.
 */
int wss_journal_unfinished(struct wss_history *history, const char *uuid,
			   struct wss_journal_open **ret_open, size_t *ret_n,
			   struct wss_error *err);

/*
 * Lists all such guests of the history at this path. Its disk may hang: as the following one, this gives up after 30 s
 * (WSS_ERR_TIMEOUT). WSS_ERR_GONE: there is no history.
 */
int wss_journal_read_in_time(const char *path, struct wss_journal_open **ret_open, size_t *ret_n,
			     struct wss_error *err);

/*
 * Marks all steps of these n guests as done; errors[], also n, says for each why it could not. Returns -1 if it could
 * for none.
 */
int wss_journal_close_in_time(const char *path, const struct wss_journal_open *open, size_t n,
			      struct wss_error *errors, struct wss_error *err);
