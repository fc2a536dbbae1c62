/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "cold/aging.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/number.h"
#include "cold/ages.h"
#include "cold/coldness.h"
#include "host/gpa.h"
#include "pages/recording.h"
#include "measure/residency.h"

/* A loss of resident memory from which on it is looked which pages the host holds. */
#define RSS_LOSS_BYTES (16ULL << 20)

struct wss_aging {
	atomic_int references;
	atomic_bool removed;		  /* the guest has ended or rebooted */
	bool ignores_file;		  /* whatever the file has */
	char *path;			  /* NULL: no file */
	struct wss_cold_budget *budget;	  /* NULL: none */
	atomic_uint_fast64_t split_bytes; /* after the newest window */
	atomic_bool lacks_memory;
	bool told_full; /* that the budget has no room for it at all */
	/* For those who report, and never held for long. */
	pthread_mutex_t lock;
	/* As it is after the newest window; NULL: there was none. */
	struct wss_cold_timeline *timeline;
	/* For those who measure and store; may be held while a disk is slow. */
	pthread_mutex_t work;
	struct wss_coldness *coldness; /* NULL: no window yet */
	struct wss_ages_key key;
	atomic_bool changed; /* since the file was written */
	atomic_uint_fast64_t saved_ns;
	/* What the host holds is to be looked at; that was done at looked_ns, when the balloon had this size. */
	bool must_look, looked;
	uint64_t looked_ns, looked_balloon_bytes;
	uint64_t rss_bytes,
		most_rss_bytes; /* in the newest window, and the most in any since then */
	struct wss_amount maximum_bytes, balloon_bytes; /* in the newest window */
};

struct wss_aging *wss_aging_new(const char *directory, const char *uuid,
				struct wss_cold_budget *budget)
{
	struct wss_aging *aging = calloc(1, sizeof(*aging));

	if (!aging)
		return NULL;
	aging->references = 1;
	aging->budget = wss_cold_budget_ref(budget);
	pthread_mutex_init(&aging->lock, NULL);
	pthread_mutex_init(&aging->work, NULL);
	if (directory)
		aging->path = wss_ages_path(directory, uuid);
	return aging;
}

struct wss_aging *wss_aging_new_after(struct wss_aging *aging, const char *directory,
				      const char *uuid, struct wss_cold_budget *budget)
{
	struct wss_aging *after = wss_aging_new(directory, uuid, budget);

	if (aging)
		wss_aging_remove(aging);
	if (after)
		after->ignores_file = true;
	return after;
}

struct wss_aging *wss_aging_ref(struct wss_aging *aging)
{
	if (aging)
		atomic_fetch_add(&aging->references, 1);
	return aging;
}

void wss_aging_unref(struct wss_aging *aging)
{
	if (!aging || atomic_fetch_sub(&aging->references, 1) != 1)
		return;
	wss_coldness_free(aging->coldness);
	wss_cold_budget_unref(aging->budget);
	pthread_mutex_destroy(&aging->lock);
	pthread_mutex_destroy(&aging->work);
	free(aging->timeline);
	free(aging->path);
	free(aging);
}

/* --- whose ages they are --- */

static void key_of_guest(const struct wss_guest *guest, struct wss_ages_key *ret_key)
{
	*ret_key = (struct wss_ages_key){
		.pid = guest->process.pid,
		.start_ticks = guest->process.start_ticks,
	};
	memcpy(ret_key->uuid, guest->config.uuid, sizeof(ret_key->uuid));
	memcpy(ret_key->name, guest->config.name, sizeof(ret_key->name));
	wss_host_boot_id(wss_test_sysroot(), ret_key->boot_id);
}

/* Adjacent pieces are one part, wherever they are on the host. */
static int parts_of_guest(struct wss_guest *guest, struct wss_run ret_parts[WSS_COLD_PARTS_MAX],
			  size_t *ret_n, struct wss_error *err)
{
	struct wss_gpa_layout layout;
	size_t n = 0;

	if (wss_gpa_of_guest(guest, &layout, err) < 0)
		return -1;
	for (size_t i = 0; i < layout.n_ranges; i++) {
		uint64_t first = layout.ranges[i].start >> WSS_PAGE_SHIFT;
		uint64_t n_pages = (layout.ranges[i].end >> WSS_PAGE_SHIFT) - first;

		if (n && first == ret_parts[n - 1].first + ret_parts[n - 1].n)
			ret_parts[n - 1].n += n_pages;
		else if (n < WSS_COLD_PARTS_MAX)
			ret_parts[n++] = (struct wss_run){first, n_pages};
		else
			return wss_error_set(err, WSS_ERR_UNSUPPORTED,
					     "its RAM has more than %d parts", WSS_COLD_PARTS_MAX);
	}
	*ret_n = n;
	return 0;
}

static bool coldness_has_parts(const struct wss_coldness *coldness, const struct wss_run *parts,
			       size_t n)
{
	struct wss_run own[WSS_COLD_PARTS_MAX];

	return coldness && wss_coldness_parts(coldness, own) == n &&
	       !memcmp(own, parts, n * sizeof(*parts));
}

static bool ages_are_of(const struct wss_ages *ages, const struct wss_ages_key *key,
			const struct wss_run *parts, size_t n)
{
	return wss_ages_same_guest(key, &ages->key) && ages->n_parts == n &&
	       !memcmp(ages->parts, parts, n * sizeof(*parts)) &&
	       ages->written_ns <= wss_clock_now_ns();
}

/*
 * The ages that an earlier service has left of this run of the guest; NULL: none. The pages of a file take
 * memory only once it is known to be of a guest of this size.
 */
static struct wss_coldness *coldness_load(const struct wss_aging *aging,
					  const struct wss_guest *guest,
					  const struct wss_ages_key *key,
					  const struct wss_run *parts, size_t n,
					  uint64_t limit_bytes)
{
	wss_auto_free struct wss_ages *ages = malloc(sizeof(*ages));
	struct wss_coldness *coldness = NULL;
	struct wss_error error = WSS_ERROR_INIT;

	if (!ages || !aging->path || aging->ignores_file)
		return NULL;
	if (wss_ages_read(aging->path, 0, NULL, ages, NULL, &error) == 0 &&
	    ages_are_of(ages, key, parts, n) &&
	    wss_ages_read(aging->path, limit_bytes, aging->budget, ages, &coldness, &error) == 0 &&
	    ages_are_of(ages, key, parts, n))
		return coldness;
	wss_coldness_free(coldness);
	if (error.code && error.code != WSS_ERR_GONE)
		wss_log_guest(WSS_LOG_WARNING, guest->config.name, guest->config.uuid,
			      "%s: ages begin again", error.text);
	return NULL;
}

/* Makes sure that the ages are those of this run of the guest. */
static int aging_begin(struct wss_aging *aging, struct wss_guest *guest, struct wss_error *err)
{
	uint64_t limit_bytes = guest->config.maximum_bytes / WSS_AGING_MEMORY_PART;
	struct wss_run parts[WSS_COLD_PARTS_MAX];
	struct wss_coldness *coldness;
	struct wss_ages_key key;
	bool first = !aging->coldness;
	size_t n = 0;

	key_of_guest(guest, &key);
	if (parts_of_guest(guest, parts, &n, err) < 0)
		return -1;
	if (wss_ages_same_guest(&key, &aging->key) && coldness_has_parts(aging->coldness, parts, n))
		return 0;
	coldness = first ? coldness_load(aging, guest, &key, parts, n, limit_bytes) : NULL;
	/* Those of an earlier run take memory that the new ones may need. */
	wss_coldness_free(aging->coldness);
	aging->coldness = NULL;
	if (!coldness)
		coldness = wss_coldness_new(parts, n, limit_bytes, aging->budget);
	if (!coldness)
		return wss_error_set(err, WSS_ERR_NO_MEMORY,
				     "there is no room for them in the memory for ages");
	aging->coldness = coldness;
	aging->key = key;
	aging->looked = false;
	aging->saved_ns = wss_clock_now_ns();
	return 0;
}

/* --- what the host holds --- */

/*
 * Whether it must be looked at again: reading it takes 8 bytes a page, so that is done when the balloon
 * has moved, when memory has gone that may have been discarded, in one window or bit by bit, and now and then:
 * where other memory came meanwhile, none seems to have gone.
 */
static bool must_look(struct wss_aging *aging, const struct wss_sample *sample)
{
	const struct wss_amount *rss = &sample->memory.rss_bytes;

	if (rss->known)
		aging->rss_bytes = rss->value;
	aging->most_rss_bytes = wss_u64_max(aging->most_rss_bytes, aging->rss_bytes);
	return !aging->looked ||
	       sample->memory.balloon_bytes.value != aging->looked_balloon_bytes ||
	       wss_u64_add(aging->rss_bytes, RSS_LOSS_BYTES) < aging->most_rss_bytes ||
	       wss_clock_now_ns() - aging->looked_ns >= WSS_AGING_LOOK_NS;
}

static uint64_t balloon_taken_bytes(const struct wss_aging *aging)
{
	if (!aging->balloon_bytes.known || aging->balloon_bytes.value > aging->maximum_bytes.value)
		return 0;
	return aging->maximum_bytes.value - aging->balloon_bytes.value;
}

/* Pages that the balloon or a discard took have no age. */
static void aging_look(struct wss_aging *aging, struct wss_guest *guest)
{
	struct wss_error error = WSS_ERROR_INIT;
	struct wss_pageset *held;

	aging->must_look = false;
	aging->looked = true;
	aging->looked_ns = wss_clock_now_ns();
	aging->most_rss_bytes = aging->rss_bytes;
	aging->looked_balloon_bytes = aging->balloon_bytes.value;
	if (wss_residency_read(guest, &held, &error) == 0) {
		const struct wss_pages pages = wss_pages_of_set(held);

		wss_coldness_set_held(aging->coldness, &pages);
		wss_pageset_free(held);
	} else {
		wss_log_guest(WSS_LOG_DEBUG, guest->config.name, guest->config.uuid, "%s",
			      error.text);
		wss_coldness_set_taken(aging->coldness, balloon_taken_bytes(aging));
	}
}

/* --- windows --- */

/* By single pages where they are known, else by what the host maps. */
static bool choose_pages(const struct wss_page_view *view, struct wss_cold_window *window)
{
	window->by_unit = !view->touched.known;
	window->touched = window->by_unit ? view->blocks : view->touched;
	return window->touched.known;
}

/* Shows the ages to those who report. Without memory they see the last ones. */
static void aging_publish(struct wss_aging *aging)
{
	pthread_mutex_lock(&aging->lock);
	if (!aging->timeline)
		aging->timeline = malloc(sizeof(*aging->timeline));
	if (aging->timeline)
		*aging->timeline = *wss_coldness_timeline(aging->coldness);
	pthread_mutex_unlock(&aging->lock);
	aging->split_bytes = wss_coldness_split_bytes(aging->coldness);
	aging->lacks_memory = wss_coldness_timeline(aging->coldness)->no_memory;
}

static int aging_add_window(struct wss_aging *aging, struct wss_guest *guest,
			    const struct wss_cold_window *window, const struct wss_sample *sample,
			    struct wss_error *err)
{
	if (aging_begin(aging, guest, err) < 0)
		return -1;
	wss_coldness_add(aging->coldness, window);
	aging->must_look = must_look(aging, sample) || aging->must_look;
	aging->maximum_bytes = sample->memory.maximum_bytes;
	aging->balloon_bytes = sample->memory.balloon_bytes;
	aging->changed = true;
	aging_publish(aging);
	return 0;
}

void wss_aging_add(struct wss_aging *aging, struct wss_guest *guest,
		   const struct wss_aging_window *seen)
{
	struct wss_cold_window window = {
		.start_ns = seen->start_ns, .end_ns = seen->end_ns, .follows = seen->follows};
	struct wss_error error = WSS_ERROR_INIT;

	if (!choose_pages(&seen->view, &window))
		return;
	pthread_mutex_lock(&aging->work);
	if (aging_add_window(aging, guest, &window, seen->sample, &error) < 0) {
		wss_log_guest(error.code == WSS_ERR_NO_MEMORY && !aging->told_full ? WSS_LOG_WARNING
										   : WSS_LOG_DEBUG,
			      guest->config.name, guest->config.uuid, "its ages are not kept: %s",
			      error.text);
		aging->told_full = error.code == WSS_ERR_NO_MEMORY;
	}
	pthread_mutex_unlock(&aging->work);
}

void wss_aging_look(struct wss_aging *aging, struct wss_guest *guest)
{
	pthread_mutex_lock(&aging->work);
	if (aging->coldness && aging->must_look) {
		aging_look(aging, guest);
		aging_publish(aging);
	}
	pthread_mutex_unlock(&aging->work);
}

bool wss_aging_report(struct wss_aging *aging, uint64_t now_ns, struct wss_cold_report *ret_report)
{
	bool known;

	pthread_mutex_lock(&aging->lock);
	known = aging->timeline && wss_cold_timeline_report(aging->timeline, now_ns, ret_report);
	pthread_mutex_unlock(&aging->lock);
	return known;
}

uint64_t wss_aging_split_bytes(const struct wss_aging *aging)
{
	return aging->split_bytes;
}

bool wss_aging_coarsen(struct wss_aging *aging)
{
	if (pthread_mutex_trylock(&aging->work) != 0)
		return false;
	if (aging->coldness) {
		wss_coldness_coarsen(aging->coldness);
		aging->changed = true;
		aging_publish(aging);
	}
	pthread_mutex_unlock(&aging->work);
	return true;
}

bool wss_aging_lacks_memory(const struct wss_aging *aging)
{
	return aging->lacks_memory;
}

bool wss_aging_is_due(const struct wss_aging *aging, uint64_t now_ns)
{
	return aging->path && aging->changed && now_ns - aging->saved_ns >= WSS_AGING_SAVE_NS;
}

/* *ret_data NULL: there is nothing new. */
static int aging_encode(struct wss_aging *aging, uint8_t **ret_data, size_t *ret_size,
			struct wss_error *err)
{
	int r = 0;

	*ret_data = NULL;
	pthread_mutex_lock(&aging->work);
	aging->saved_ns = wss_clock_now_ns();
	if (aging->changed)
		r = wss_ages_encode(&aging->key, aging->coldness, WSS_AGES_BYTES_MAX, ret_data,
				    ret_size, err);
	aging->changed = false;
	pthread_mutex_unlock(&aging->work);
	return r;
}

int wss_aging_save(struct wss_aging *aging, struct wss_error *err)
{
	wss_auto_free uint8_t *data = NULL;
	size_t size;

	if (!aging->path)
		return 0;
	if (!aging->removed && aging_encode(aging, &data, &size, err) < 0)
		return -1;
	if (data && wss_ages_write(aging->path, data, size, err) < 0) {
		aging->changed = true;
		return -1;
	}
	if (aging->removed)
		unlink(aging->path);
	return 0;
}

void wss_aging_remove(struct wss_aging *aging)
{
	aging->removed = true;
}
