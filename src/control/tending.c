/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "control/tender.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/thread.h"

/* How long libvirt may stay silent before that is reported. */
#define STUCK_NS (60 * WSS_NS_PER_S)
/* A step is put off if the history keeps it waiting longer than this. */
#define STEPS_PATIENCE_MS 1000

void wss_tender_thread_ended(struct tending *tending)
{
	tending_lock(tending);
	tending->threads--;
	tending_unlock(tending);
}

int wss_tender_start(struct tender *tender, void (*run)(void *), struct wss_error *err)
{
	struct tending *tending = tender->tending;
	struct wss_thread *thread;

	tending_lock(tending);
	tending->threads++;
	tending_unlock(tending);
	if (wss_thread_start(run, tender, &thread, err) < 0) {
		wss_tender_thread_ended(tending);
		return -1;
	}
	wss_thread_leave(thread);
	return 0;
}

void wss_tending_init(struct tending *tending, const struct wss_balloon_options *options,
		      const struct wss_control_events *events)
{
	*tending = (struct tending){.options = *options,
				    .history = WSS_SHARED_HISTORY_INIT,
				    .journal = WSS_SHARED_HISTORY_INIT,
				    .events = *events,
				    .watchdog = -1};
	pthread_mutex_init(&tending->events_lock, NULL);
	pthread_mutex_init(&tending->lock, NULL);
}

int wss_tending_open_history(struct tending *tending, const char *path, struct wss_error *err)
{
	if (wss_shared_history_open(&tending->history, path, 0, err) < 0)
		return -1;
	return wss_shared_history_open(&tending->journal, path, STEPS_PATIENCE_MS, err);
}

void wss_tending_moved(struct tending *tending, const struct wss_control_move *move)
{
	pthread_mutex_lock(&tending->events_lock);
	if (!tending->muted)
		tending->events.moved(move, tending->events.opaque);
	pthread_mutex_unlock(&tending->events_lock);
}

void wss_tending_trouble(struct tending *tending, const char *guest,
			 const struct wss_error *why)
{
	pthread_mutex_lock(&tending->events_lock);
	if (!tending->muted)
		tending->events.trouble(guest, why, tending->events.opaque);
	pthread_mutex_unlock(&tending->events_lock);
}

void wss_tending_progress(struct tending *tending, const char *guest, const char *text)
{
	pthread_mutex_lock(&tending->events_lock);
	if (!tending->muted)
		tending->events.progress(guest, text, tending->events.opaque);
	pthread_mutex_unlock(&tending->events_lock);
}

void wss_tending_squeezed(struct tending *tending, const struct wss_target *target,
			  const struct wss_squeeze *squeeze)
{
	const struct wss_control_squeeze *control = tending->options.squeeze;

	pthread_mutex_lock(&tending->events_lock);
	if (!tending->muted)
		control->done(target, squeeze, control->opaque);
	pthread_mutex_unlock(&tending->events_lock);
}

void wss_tending_mute(struct tending *tending)
{
	pthread_mutex_lock(&tending->events_lock);
	tending->muted = true;
	pthread_mutex_unlock(&tending->events_lock);
}

int wss_tending_add(struct tending *tending, struct wss_target *target, struct wss_error *err)
{
	struct tender *tender = calloc(1, sizeof(*tender));

	if (!tender) {
		wss_target_free(target);
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	}
	tender->tending = tending;
	tender->target = target;
	tender->name = target->name;
	tender->looked_ns = wss_clock_now_ns();
	tending_lock(tending);
	tender->next = tending->tenders;
	tending->tenders = tender;
	tender->number = tending->total++;
	tending->busy++;
	tending_unlock(tending);
	if (wss_tender_start(tender, wss_tender_look, err) == 0)
		return 0;
	tender->over = true;
	tending_lock(tending);
	tending->busy--;
	tending_unlock(tending);
	return -1;
}

size_t wss_tending_missed(struct tending *tending)
{
	size_t n;

	tending_lock(tending);
	n = tending->total - tending->missing;
	tending_unlock(tending);
	return n;
}

size_t wss_tending_threads(struct tending *tending)
{
	size_t n;

	tending_lock(tending);
	n = tending->threads;
	tending_unlock(tending);
	return n;
}

size_t wss_tending_busy(struct tending *tending)
{
	size_t n;

	tending_lock(tending);
	n = tending->busy;
	tending_unlock(tending);
	return n;
}

size_t wss_tending_stuck(struct tending *tending)
{
	uint64_t now_ns = wss_clock_now_ns();
	size_t n = 0;

	for (struct tender *tender = tending->tenders; tender; tender = tender->next) {
		uint64_t looked_ns = tender->looked_ns;
		bool stuck =
			!tender->over && now_ns > looked_ns && now_ns - looked_ns > STUCK_NS;

		if (stuck && !tender->stuck) {
			struct wss_error err = WSS_ERROR_INIT;

			wss_error_set(&err, WSS_ERR_TIMEOUT,
				      "libvirt has not answered for a minute");
			wss_tending_trouble(tending, tender->name, &err);
		}
		tender->stuck = stuck;
		n += stuck || tender->away;
	}
	return n;
}

void wss_tending_free(struct tending *tending)
{
	struct tender *next;

	for (struct tender *tender = tending->tenders; tender; tender = next) {
		next = tender->next;
		wss_target_free(tender->target);
		free(tender->squeeze);
		free(tender);
	}
	wss_targets_free(&tending->targets);
	/*
	 * The connection that may have created the file is closed last, so that it can remove
	 * an unused file.
	 */
	wss_shared_history_close(&tending->journal);
	wss_shared_history_close(&tending->history);
	pthread_mutex_destroy(&tending->events_lock);
	pthread_mutex_destroy(&tending->lock);
}
