/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The ages of one guest's memory, from its windows. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "cold/coldness.h"
#include "host/guest.h"
#include "measure/sample.h"
#include "pages/pages.h"

/* How often a file is written while there are windows. */
#define WSS_AGING_SAVE_NS (300 * WSS_NS_PER_S)
/* How often what the host holds is looked at in any case. */
#define WSS_AGING_LOOK_NS (900 * WSS_NS_PER_S)
/* Memory that the ages of a guest may take, as a part of the guest's. */
#define WSS_AGING_MEMORY_PART 1000

struct wss_aging;

/*
 * Of the guest with this UUID. budget: memory for the ages of all guests, of which it keeps a reference, or NULL. directory, which must exist when a window comes, has its file; NULL: it
 * has none. Returns NULL when out of memory.
 */
struct wss_aging *wss_aging_new(const char *directory, const char *uuid,
				struct wss_cold_budget *budget);

/*
 * The same for a guest that has just rebooted: begins again, and removes its aging of before (may be NULL), which is
 * to be saved first.
 */
struct wss_aging *wss_aging_new_after(struct wss_aging *aging, const char *directory,
				      const char *uuid, struct wss_cold_budget *budget);

struct wss_aging *wss_aging_ref(struct wss_aging *aging);

/* Frees it with the last reference; accepts NULL. Writes no file. */
void wss_aging_unref(struct wss_aging *aging);

struct wss_aging_window {
	uint64_t start_ns, end_ns; /* wss_clock_now_ns() */
	bool follows;		   /* the last window went on until this one was armed */
	struct wss_page_view view;
	const struct wss_sample *sample; /* of the window, or of its beginning */
};

/*
 * Adds a window of an attached guest. A window whose pages are not known counts as not observed. Waits for no
 * disk, because the next window may have to follow at once.
 */
void wss_aging_add(struct wss_aging *aging, struct wss_guest *guest,
		   const struct wss_aging_window *window);

/*
 * Looks, for an attached guest, after a window was added, which pages the host holds, if that may have changed. It
 * takes time: to be called while the next window is open.
 */
void wss_aging_look(struct wss_aging *aging, struct wss_guest *guest);

/* As wss_cold_timeline_report(). Waits for no disk. */
bool wss_aging_report(struct wss_aging *aging, uint64_t now_ns, struct wss_cold_report *ret_report);

/* Returns the memory that wss_aging_coarsen() would free, in bytes. Waits for nothing. */
uint64_t wss_aging_split_bytes(const struct wss_aging *aging);

/* As wss_coldness_coarsen(), unless a window is being added or a file written: false. */
bool wss_aging_coarsen(struct wss_aging *aging);

/* Whether the ages are those of 2 MiB for want of memory. Waits for nothing. */
bool wss_aging_lacks_memory(const struct wss_aging *aging);

/* Whether its file is to be written again. */
bool wss_aging_is_due(const struct wss_aging *aging, uint64_t now_ns);

/*
 * Writes the file if there is something new, or removes that of one that was removed, and waits for the disk while
 * windows go on: for a thread of its own, one aging after the other. Errors of wss_ages_encode() and
 * wss_ages_write().
 */
int wss_aging_save(struct wss_aging *aging, struct wss_error *err);

/* The guest has ended: the next wss_aging_save() removes the file. */
void wss_aging_remove(struct wss_aging *aging);
