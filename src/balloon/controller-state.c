/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "balloon/controlled.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/thread.h"

/* How long libvirt may stay silent before that is reported. */
#define STUCK_NS (60 * WSS_NS_PER_S)
/* How long a guest's thread waits for a look whether the history is in its place: usually that takes microseconds. */
#define PLACE_WAIT_NS (200 * WSS_NS_PER_MS)
/* A step is put off if the history keeps it waiting longer than this. */
#define STEPS_PATIENCE_MS 1000

void wss_controlled_thread_ended(struct controller *controller)
{
	controller_lock(controller);
	controller->threads--;
	controller_unlock(controller);
}

int wss_controlled_start(struct controlled *controlled, void (*run)(void *), struct wss_error *err)
{
	struct controller *controller = controlled->controller;
	struct wss_thread *thread;

	controller_lock(controller);
	controller->threads++;
	controller_unlock(controller);
	if (wss_thread_start(run, controlled, &thread, err) < 0) {
		wss_controlled_thread_ended(controller);
		return -1;
	}
	wss_thread_leave(thread);
	return 0;
}

void wss_controller_init(struct controller *controller, const struct wss_balloon_options *options,
			 const struct wss_control_events *events)
{
	*controller = (struct controller){.options = *options,
					  .history = WSS_SHARED_HISTORY_INIT,
					  .journal = WSS_SHARED_HISTORY_INIT,
					  .events = *events,
					  .watchdog = -1};
	pthread_mutex_init(&controller->events_lock, NULL);
	pthread_mutex_init(&controller->lock, NULL);
}

int wss_controller_open_history(struct controller *controller, const char *path,
				struct wss_error *err)
{
	if (wss_shared_history_open(&controller->history, path, 0, err) < 0)
		return -1;
	return wss_shared_history_open(&controller->journal, path, STEPS_PATIENCE_MS, err);
}

static void place_look(void *opaque)
{
	struct controller *controller = opaque;

	controller->displaced = !wss_history_is_in_place(controller->history.history);
}

bool wss_controller_history_in_place(struct controller *controller)
{
	controller_lock(controller);
	if (!controller->place)
		controller->place = wss_background_new();
	if (controller->place && wss_background_is_idle(controller->place) &&
	    wss_background_start(controller->place, place_look, controller, NULL) == 0)
		wss_background_wait(controller->place, PLACE_WAIT_NS);
	controller_unlock(controller);
	return !controller->displaced;
}

void wss_controller_moved(struct controller *controller, const struct wss_control_move *move)
{
	pthread_mutex_lock(&controller->events_lock);
	if (!controller->muted)
		controller->events.moved(move, controller->events.opaque);
	pthread_mutex_unlock(&controller->events_lock);
}

void wss_controller_trouble(struct controller *controller, const char *guest,
			    const struct wss_error *why)
{
	pthread_mutex_lock(&controller->events_lock);
	if (!controller->muted)
		controller->events.trouble(guest, why, controller->events.opaque);
	pthread_mutex_unlock(&controller->events_lock);
}

void wss_controller_progress(struct controller *controller, const char *guest, const char *text)
{
	pthread_mutex_lock(&controller->events_lock);
	if (!controller->muted)
		controller->events.progress(guest, text, controller->events.opaque);
	pthread_mutex_unlock(&controller->events_lock);
}

void wss_controller_squeezed(struct controller *controller, const struct wss_target *target,
			     const struct wss_squeeze *squeeze)
{
	const struct wss_control_squeeze *control = controller->options.squeeze;

	pthread_mutex_lock(&controller->events_lock);
	if (!controller->muted)
		control->done(target, squeeze, control->opaque);
	pthread_mutex_unlock(&controller->events_lock);
}

void wss_controller_mute(struct controller *controller)
{
	pthread_mutex_lock(&controller->events_lock);
	controller->muted = true;
	pthread_mutex_unlock(&controller->events_lock);
}

int wss_controller_add(struct controller *controller, struct wss_target *target,
		       struct wss_error *err)
{
	struct controlled *controlled = calloc(1, sizeof(*controlled));

	if (!controlled) {
		wss_target_free(target);
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	}
	controlled->controller = controller;
	controlled->target = target;
	controlled->name = target->name;
	controlled->looked_ns = wss_clock_now_ns();
	controller_lock(controller);
	controlled->next = controller->guests;
	controller->guests = controlled;
	controlled->number = controller->total++;
	controller->busy++;
	controller_unlock(controller);
	if (wss_controlled_start(controlled, wss_controlled_look, err) == 0)
		return 0;
	controlled->over = true;
	controller_lock(controller);
	controller->busy--;
	controller_unlock(controller);
	return -1;
}

size_t wss_controller_missed(struct controller *controller)
{
	size_t n;

	controller_lock(controller);
	n = controller->total - controller->missing;
	controller_unlock(controller);
	return n;
}

size_t wss_controller_threads(struct controller *controller)
{
	size_t n;

	controller_lock(controller);
	n = controller->threads;
	controller_unlock(controller);
	return n;
}

size_t wss_controller_busy(struct controller *controller)
{
	size_t n;

	controller_lock(controller);
	n = controller->busy;
	controller_unlock(controller);
	return n;
}

size_t wss_controller_stuck(struct controller *controller)
{
	uint64_t now_ns = wss_clock_now_ns();
	size_t n = 0;

	for (struct controlled *controlled = controller->guests; controlled;
	     controlled = controlled->next) {
		uint64_t looked_ns = controlled->looked_ns;
		bool stuck =
			!controlled->over && now_ns > looked_ns && now_ns - looked_ns > STUCK_NS;

		if (stuck && !controlled->stuck) {
			struct wss_error err = WSS_ERROR_INIT;

			wss_error_set(&err, WSS_ERR_TIMEOUT,
				      "libvirt has not answered for a minute");
			wss_controller_trouble(controller, controlled->name, &err);
		}
		controlled->stuck = stuck;
		n += stuck || controlled->away;
	}
	return n;
}

bool wss_controller_free(struct controller *controller)
{
	struct controlled *next;
	bool idle = wss_background_end(controller->place, 0);

	for (struct controlled *controlled = controller->guests; controlled;
	     controlled = controlled->next)
		idle = wss_background_end(controlled->background, 0) && idle;
	if (!idle)
		return false;
	for (struct controlled *controlled = controller->guests; controlled; controlled = next) {
		next = controlled->next;
		wss_target_free(controlled->target);
		free(controlled->squeeze);
		free(controlled);
	}
	wss_targets_free(&controller->targets);
	/*
	 * The connection that may have created the file is closed last, so that it can remove
	 * an unused file.
	 */
	wss_shared_history_close(&controller->journal);
	wss_shared_history_close(&controller->history);
	pthread_mutex_destroy(&controller->events_lock);
	pthread_mutex_destroy(&controller->lock);
	return true;
}
