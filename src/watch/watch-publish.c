/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Publishes the guests' profiles in libvirt's inventory.
 *
 * Each is written by a worker over a connection of its own, so that a libvirt that hangs delays neither the watch nor a
 * window. Writing it makes libvirt notify its clients of changed metadata; the watch follows no such events.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "measure/publish.h"
#include "watch/watch-private.h"

/* Profiles that are written at the same time. */
#define JOBS 4
#define LOOK_NS WSS_NS_PER_S
#define PERIOD_NS (WSS_PUBLISH_PERIOD_S * WSS_NS_PER_S)

/* A profile on its way to libvirt: the worker's, once that has been left. */
struct publication {
	struct wss_worker *worker;
	struct wss_target *target;
	struct wss_profile profile;
	char uuid[WSS_UUID_TEXT_MAX];
	uint64_t since_ns; /* of the guest: tells it from a later one with the same UUID */
	struct wss_error error;
};

struct wss_publisher {
	struct wss_workers *workers;
	struct publication *jobs[JOBS];
	uint64_t look_ns;
	size_t turn; /* the guest that is looked at first */
};

/* In the worker. A guest that has opted out is not opened. */
static void publication_run(void *opaque)
{
	struct publication *publication = opaque;
	struct wss_target *target = publication->target;

	wss_target_open(target);
	if (!target->guest)
		publication->error = target->error;
	else
		wss_publish(target, &publication->profile, WSS_PUBLISH_WHEN_DUE, false,
			    &publication->error);
	wss_target_charge(target);
}

static void publication_free(void *opaque)
{
	struct publication *publication = opaque;

	wss_target_free(publication->target);
	free(publication);
}

struct wss_publisher *wss_publisher_new(void)
{
	struct wss_publisher *publisher = calloc(1, sizeof(*publisher));

	if (!publisher)
		return NULL;
	publisher->workers = wss_workers_new();
	if (publisher->workers)
		return publisher;
	free(publisher);
	return NULL;
}

/* --- what comes of it --- */

/* A failure is tried again after the next window, and logged unless it is the same as the last one. */
static void publisher_finish(struct wss_watch *watch, const char *uuid, uint64_t since_ns,
			     uint64_t cpu_ns, const struct wss_error *error)
{
	struct wss_watch_guest *guest = wss_watch_guests_find(watch, uuid, &(size_t){0});
	enum wss_error_code before;

	if (guest && guest->watched.since_ns != since_ns)
		guest = NULL;
	wss_watch_charge(watch, guest, cpu_ns);
	if (!guest)
		return;
	before = guest->unpublished;
	guest->unpublished = error->code;
	guest->publishing = false;
	if (!error->code) {
		guest->watched.published = true;
		return;
	}
	guest->publish_ns = guest->watched.next_ns;
	if (error->code != before && error->code != WSS_ERR_GONE &&
	    error->code != WSS_ERR_INTERRUPTED)
		wss_log_guest(error->code == WSS_ERR_BUSY ? WSS_LOG_DEBUG : WSS_LOG_WARNING,
			      guest->watched.name, guest->watched.uuid,
			      "its profile was not published: %s", error->text);
}

static void publisher_abandon(struct publication *publication, struct wss_error *err)
{
	wss_deadline_error(&publication->target->deadline, err);
	if (wss_worker_leave(publication->worker, &publication->target->cancel))
		return;
	wss_worker_join(publication->worker);
	publication_free(publication);
}

static void publisher_take_finished(struct wss_watch *watch)
{
	struct wss_publisher *publisher = watch->publisher;

	for (size_t i = 0; i < JOBS; i++) {
		struct publication *publication = publisher->jobs[i];
		char uuid[WSS_UUID_TEXT_MAX];
		struct wss_error error = WSS_ERROR_INIT;
		uint64_t since_ns, cpu_ns;

		if (!publication)
			continue;
		since_ns = publication->since_ns;
		cpu_ns = atomic_load(&publication->target->cpu_ns);
		memcpy(uuid, publication->uuid, sizeof(uuid));
		if (wss_worker_done(publication->worker)) {
			wss_worker_join(publication->worker);
			cpu_ns = atomic_load(&publication->target->cpu_ns);
			error = publication->error;
			publication_free(publication);
		} else if (wss_worker_late(publication->worker)) {
			publisher_abandon(publication, &error);
		} else {
			continue;
		}
		publisher->jobs[i] = NULL;
		publisher_finish(watch, uuid, since_ns, cpu_ns, &error);
	}
}

/* --- what is due --- */

/* Not of a canary, whose window is shorter than the others; and not beside a window that ends soon. */
static bool guest_is_due(const struct wss_watch_guest *guest, uint64_t now_ns)
{
	const struct wss_watched *watched = &guest->watched;

	return watched->measured && !guest->publishing && guest->publish_ns <= now_ns &&
	       watched->measured_ns > guest->published_ns && watched->kind != WSS_WINDOW_CANARY &&
	       watched->state != WSS_WATCHED_LEFT_OUT &&
	       (!guest->visit || guest->visit->continuous);
}

/* Returns 0 with *ret_publication NULL if the guest's source has no inventory. */
static int publisher_start(struct wss_watch *watch, const struct wss_watched *watched,
			   const struct wss_profile *profile, struct publication **ret_publication,
			   struct wss_error *err)
{
	const struct wss_domain_ref ref = {watched->name, watched->uuid};
	struct publication *publication = calloc(1, sizeof(*publication));
	struct wss_work work = {publication_run, publication_free, publication, NULL};
	struct wss_hypervisor *hypervisor;

	if (!publication)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	publication->profile = *profile;
	memcpy(publication->uuid, watched->uuid, sizeof(publication->uuid));
	publication->since_ns = watched->since_ns;
	if (wss_watch_hypervisor(watch, &hypervisor, err) == 0) {
		if (!wss_hypervisor_has_inventory(hypervisor)) {
			wss_hypervisor_unref(hypervisor);
			publication_free(publication);
			*ret_publication = NULL;
			return 0;
		}
		publication->target = wss_target_new(hypervisor, &ref, WSS_TARGET_DEADLINE_NS,
						     watch->options.cancel, err);
		wss_hypervisor_unref(hypervisor);
	}
	if (publication->target) {
		work.deadline = &publication->target->deadline;
		if (wss_worker_start(watch->publisher->workers, &work, &publication->worker, err) ==
		    0) {
			*ret_publication = publication;
			return 0;
		}
	}
	publication_free(publication);
	return -1;
}

/* Starts to publish a guest's profile, where the caller has one. */
static void publisher_take_guest(struct wss_watch *watch, struct wss_watch_guest *guest,
				 struct publication **ret_publication)
{
	struct wss_error error = WSS_ERROR_INIT;
	struct wss_profile profile;

	if (!watch->events.profile(&guest->watched, &profile, watch->opaque))
		return;
	guest->publishing = true;
	guest->published_ns = guest->watched.measured_ns;
	guest->publish_ns = wss_clock_now_ns() + PERIOD_NS;
	if (publisher_start(watch, &guest->watched, &profile, ret_publication, &error) < 0)
		publisher_finish(watch, guest->watched.uuid, guest->watched.since_ns, 0, &error);
	else
		guest->publishing = *ret_publication;
}

static void publisher_start_due(struct wss_watch *watch)
{
	struct wss_publisher *publisher = watch->publisher;
	uint64_t now_ns = wss_clock_now_ns();
	size_t job = 0;

	for (size_t looked = 0; looked < watch->n; looked++) {
		struct wss_watch_guest *guest =
			watch->guests[(publisher->turn + looked) % watch->n];

		if (!guest_is_due(guest, now_ns))
			continue;
		while (job < JOBS && publisher->jobs[job])
			job++;
		if (job == JOBS) {
			publisher->turn = (publisher->turn + looked) % watch->n;
			return;
		}
		publisher_take_guest(watch, guest, &publisher->jobs[job]);
	}
}

void wss_publisher_step(struct wss_watch *watch)
{
	if (!watch->events.profile)
		return;
	publisher_take_finished(watch);
	if (wss_lister_hypervisor(watch->lister) && !wss_cancel_requested(watch->options.cancel) &&
	    wss_clock_is_due(&watch->publisher->look_ns, LOOK_NS))
		publisher_start_due(watch);
}

void wss_publisher_free(struct wss_publisher *publisher)
{
	struct wss_error unused = WSS_ERROR_INIT;

	if (!publisher)
		return;
	for (size_t i = 0; i < JOBS; i++)
		if (publisher->jobs[i])
			publisher_abandon(publisher->jobs[i], &unused);
	wss_workers_free(publisher->workers);
	free(publisher);
}
