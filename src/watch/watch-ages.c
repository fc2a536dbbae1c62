/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Writes the files of ages, one after the other, in a thread that may wait for their disk. */
#include <stdlib.h>
#include <string.h>

#include "base/background.h"
#include "base/log.h"
#include "watch/watch-private.h"

/* How often guests are looked for whose file is due. */
#define LOOK_NS WSS_NS_PER_S
/* The disk should have answered by then, and at the end of the watch. */
#define LATE_NS (30 * WSS_NS_PER_S)
#define END_NS (10 * WSS_NS_PER_S)

struct item {
	struct item *next;
	struct wss_aging *aging; /* its own reference */
	char name[WSS_NAME_MAX];
	char uuid[WSS_UUID_TEXT_MAX];
	uint64_t cpu_ns; /* that its file has cost; the background's until that is idle */
};

struct wss_ages_saver {
	struct wss_background *background;
	struct item *waiting, **last;
	struct item *running; /* the background's until that is idle */
	bool failed;	      /* the last file; the background's */
	bool late;
	uint64_t look_ns;
};

void wss_watch_fit_ages(struct wss_watch *watch)
{
	struct wss_watch_guest *largest = NULL;
	uint64_t most_bytes = 0;

	if (!wss_cold_budget_is_short(watch->ages_budget))
		return;
	for (size_t i = 0; i < watch->n; i++) {
		struct wss_watch_guest *guest = watch->guests[i];
		uint64_t bytes = guest->aging ? wss_aging_split_bytes(guest->aging) : 0;

		if (bytes <= most_bytes)
			continue;
		most_bytes = bytes;
		largest = guest;
	}
	/* One that is busy is asked again when memory is refused again. */
	if (largest && wss_aging_coarsen(largest->aging))
		wss_log_guest(
			WSS_LOG_INFO, largest->watched.name, largest->watched.uuid,
			"the ages of its memory are known by 2 MiB from now on: those of all guests together take more than ages-memory");
}

struct wss_ages_saver *wss_ages_saver_new(void)
{
	struct wss_ages_saver *saver = calloc(1, sizeof(*saver));

	if (!saver)
		return NULL;
	saver->last = &saver->waiting;
	saver->background = wss_background_new();
	if (saver->background)
		return saver;
	free(saver);
	return NULL;
}

void wss_ages_saver_add(struct wss_ages_saver *saver, const struct wss_watch_guest *guest)
{
	struct item *item = guest->aging ? calloc(1, sizeof(*item)) : NULL;

	if (!item)
		return;
	item->aging = wss_aging_ref(guest->aging);
	memcpy(item->name, guest->watched.name, sizeof(item->name));
	memcpy(item->uuid, guest->watched.uuid, sizeof(item->uuid));
	*saver->last = item;
	saver->last = &item->next;
}

static void items_free(struct item **items)
{
	for (struct item *next; *items; *items = next) {
		next = (*items)->next;
		wss_aging_unref((*items)->aging);
		free(*items);
	}
}

/* A file that cannot be written is told once, until one could be. */
static void save_items(void *opaque)
{
	struct wss_ages_saver *saver = opaque;

	for (struct item *item = saver->running; item; item = item->next) {
		struct wss_error error = WSS_ERROR_INIT;
		bool failed = wss_aging_save(item->aging, &error) < 0;

		if (failed)
			wss_log_guest(saver->failed ? WSS_LOG_DEBUG : WSS_LOG_WARNING, item->name,
				      item->uuid, "%s", error.text);
		saver->failed = failed;
		item->cpu_ns = wss_clock_take_thread_ns();
	}
}

static void saver_start(struct wss_ages_saver *saver)
{
	items_free(&saver->running);
	saver->late = false;
	if (!saver->waiting)
		return;
	saver->running = saver->waiting;
	if (wss_background_start(saver->background, save_items, saver, NULL) < 0) {
		saver->running = NULL;
		return;
	}
	saver->waiting = NULL;
	saver->last = &saver->waiting;
}

static void saver_look_at_late(struct wss_ages_saver *saver)
{
	if (saver->late || wss_background_busy_ns(saver->background) <= LATE_NS)
		return;
	saver->late = true;
	wss_warn("idle-age files: their disk has not answered for 30 s");
}

static void items_charge(const struct item *items, struct wss_watch *watch)
{
	size_t hint = 0;

	for (; items; items = items->next)
		wss_watch_charge(watch, wss_watch_guests_find(watch, items->uuid, &hint),
				 items->cpu_ns);
}

void wss_ages_saver_step(struct wss_ages_saver *saver, struct wss_watch *watch)
{
	bool look = !saver->waiting && wss_clock_is_due(&saver->look_ns, LOOK_NS);
	uint64_t now_ns = wss_clock_now_ns();

	if (!saver->waiting && !look)
		return;
	if (!wss_background_is_idle(saver->background)) {
		saver_look_at_late(saver);
		return;
	}
	for (size_t i = 0; i < watch->n && look; i++)
		if (watch->guests[i]->aging && wss_aging_is_due(watch->guests[i]->aging, now_ns))
			wss_ages_saver_add(saver, watch->guests[i]);
	items_charge(saver->running, watch);
	saver_start(saver);
}

void wss_ages_saver_end(struct wss_ages_saver *saver)
{
	uint64_t end_ns = wss_clock_now_ns() + END_NS;

	if (!saver)
		return;
	if (wss_background_wait(saver->background, END_NS))
		saver_start(saver);
	if (!wss_background_end(saver->background,
				end_ns - wss_u64_min(end_ns, wss_clock_now_ns()))) {
		wss_warn("idle-age files: their disk does not answer, so some were not updated");
		return;
	}
	items_free(&saver->running);
	items_free(&saver->waiting);
	free(saver);
}
