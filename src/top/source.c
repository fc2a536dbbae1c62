/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Where top has its guests from: the service, or a watch of its own.
 *
 * Theory of operation. A thread of the source's asks or measures, and puts what it knows into "next" under
 * the lock. The screen takes a copy of it when the descriptor says that there is one. So no key waits
 * for a service or for libvirt.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/cancel.h"
#include "base/clock.h"
#include "base/thread.h"
#include "client/guest-view.h"
#include "client/service.h"
#include "top/top.h"

/* How long the service may take for an answer. */
#define ANSWER_NS (5 * WSS_NS_PER_S)
/* How often what a watch knows is copied. */
#define COPY_NS (WSS_NS_PER_S / 2)

struct wss_top_source {
	const char *path; /* NULL: it has a watch */
	struct wss_watch_options options;
	struct wss_watch *watch;
	struct wss_cancel cancel;
	struct wss_thread *thread;
	uint64_t start_ns;
	int news, wake; /* eventfds */
	pthread_mutex_t lock;
	/* Under the lock. */
	struct wss_top_view next;
	bool is_new;
	uint64_t delay_ns;
};

static void eventfd_set(int fd)
{
	uint64_t one = 1;

	(void)!write(fd, &one, sizeof(one));
}

static void eventfd_clear(int fd)
{
	uint64_t count;

	(void)!read(fd, &count, sizeof(count));
}

/* Publishes guests, whose list it takes over, or an error (not NULL), which keeps the last ones. */
static void source_put(struct wss_top_source *source, struct wss_guests *guests, bool complete,
		       const struct wss_error *error)
{
	static const struct wss_error fine = WSS_ERROR_INIT;

	pthread_mutex_lock(&source->lock);
	if (guests) {
		wss_guests_release(&source->next.guests);
		source->next.guests = *guests;
		*guests = (struct wss_guests){.n = 0};
		source->next.any = true;
		source->next.taken_ns = wss_clock_now_ns();
		source->next.complete = complete;
	}
	source->next.error = error ? *error : fine;
	source->is_new = true;
	pthread_mutex_unlock(&source->lock);
	eventfd_set(source->news);
}

/* --- the service --- */

/* WSS_ERR_GONE means a guest elsewhere; here it is the service that cannot be connected to. */
static void source_put_unanswered(struct wss_top_source *source, struct wss_error *error)
{
	if (error->code == WSS_ERR_GONE)
		error->code = WSS_ERR_CONNECT;
	source_put(source, NULL, false, error);
}

/* Waits for the delay, or until somebody wants an answer now. */
static void service_wait(struct wss_top_source *source)
{
	struct pollfd pfds[1 + WSS_CANCEL_CHAIN_MAX] = {{.fd = source->wake, .events = POLLIN}};
	nfds_t n = 1 + wss_cancel_poll_fds(&source->cancel, pfds + 1);
	uint64_t delay_ns;

	pthread_mutex_lock(&source->lock);
	delay_ns = source->delay_ns;
	pthread_mutex_unlock(&source->lock);
	poll(pfds, n, wss_clock_poll_ms(wss_clock_now_ns() + delay_ns));
	eventfd_clear(source->wake);
}

static void service_run(void *opaque)
{
	struct wss_top_source *source = opaque;

	while (!wss_cancel_requested(&source->cancel)) {
		struct wss_guests guests = {.n = 0};
		struct wss_error err = WSS_ERROR_INIT;

		if (wss_service_guests(source->path, wss_clock_now_ns() + ANSWER_NS,
				       &source->cancel, &guests, &err) == 0)
			source_put(source, &guests, !wss_guests_starting(&guests), NULL);
		else if (err.code != WSS_ERR_INTERRUPTED)
			source_put_unanswered(source, &err);
		service_wait(source);
	}
}

/* --- a watch --- */

static void view_watched(const struct wss_watch *watch, size_t i, struct wss_guest_view *guest)
{
	const struct wss_watched *watched = wss_watch_guest(watch, i);
	uint64_t now_ns = wss_clock_now_ns();
	struct wss_cold_report cold;

	snprintf(guest->name, sizeof(guest->name), "%s", watched->name);
	snprintf(guest->uuid, sizeof(guest->uuid), "%s", watched->uuid);
	snprintf(guest->state, sizeof(guest->state), "%s", wss_watched_state_name(watched->state));
	if (watched->why.code)
		snprintf(guest->why, sizeof(guest->why), "%s", watched->why.text);
	snprintf(guest->blocked_why, sizeof(guest->blocked_why), "%s", watched->blocked);
	guest->period_ns = wss_amount_of(watched->period_ns);
	if (wss_watch_cold(watch, i, &cold))
		guest->cold.high_bytes = wss_cold_high(&cold, WSS_COLD_10MIN);
	if (!watched->measured)
		return;
	snprintf(guest->kind, sizeof(guest->kind), "%s", wss_window_kind_name(watched->kind));
	if (watched->coarse != WSS_COARSE_NOT)
		snprintf(guest->coarse_why, sizeof(guest->coarse_why), "%s",
			 watched->coarse_why.text);
	guest->age_ns = wss_amount_of(now_ns - watched->measured_ns);
	wss_view_sample(&watched->sample, &guest->sample);
}

static void watch_copy(struct wss_top_source *source, const struct wss_error *error)
{
	struct wss_guests guests = {.n = 0};
	bool complete = true;

	/* Nobody listed is not nobody there. */
	if (!wss_watch_count(source->watch) &&
	    (error->code || wss_clock_now_ns() < source->start_ns + WSS_WATCH_LIST_NS)) {
		if (error->code)
			source_put(source, NULL, false, error);
		return;
	}

	for (size_t i = 0; i < wss_watch_count(source->watch); i++) {
		struct wss_guest_view *guest = wss_guests_add(&guests);

		if (!guest) {
			wss_guests_release(&guests);
			return;
		}
		view_watched(source->watch, i, guest);
		complete = complete && (guest->sample.wss_bytes.known || guest->why[0] ||
					!strcmp(guest->state, "left out"));
	}
	source_put(source, &guests, complete, error->code ? error : NULL);
}

/* What a watch says: only whether libvirt answers. */
static void source_on_connection(const struct wss_error *error, void *opaque)
{
	struct wss_error *trouble = opaque;

	if (error)
		*trouble = *error;
	else
		wss_error_clear(trouble);
}

static void watch_run(void *opaque)
{
	static const struct wss_watch_events events = {.connection = source_on_connection};
	struct wss_top_source *source = opaque;
	struct wss_error trouble = WSS_ERROR_INIT;
	uint64_t copied_ns = 0;

	if (wss_watch_new(&source->options, &events, &trouble, &source->watch, &trouble) < 0) {
		source_put(source, NULL, true, &trouble);
		return;
	}
	while (wss_watch_step(source->watch)) {
		if (wss_clock_now_ns() < copied_ns + COPY_NS)
			continue;
		copied_ns = wss_clock_now_ns();
		watch_copy(source, &trouble);
	}
	wss_watch_free(source->watch);
}

/* --- both --- */

static int source_new(struct wss_top_source **ret_source, struct wss_error *err)
{
	struct wss_top_source *source = calloc(1, sizeof(*source));

	if (!source)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	source->cancel = (struct wss_cancel)WSS_CANCEL_INIT;
	source->start_ns = wss_clock_now_ns();
	pthread_mutex_init(&source->lock, NULL);
	source->news = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	source->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (source->news < 0 || source->wake < 0) {
		wss_error_errno(err, WSS_ERR_FAILED, errno, "eventfd");
		wss_top_source_free(source);
		return -1;
	}
	if (wss_cancel_open(&source->cancel, NULL, err) < 0) {
		wss_top_source_free(source);
		return -1;
	}
	*ret_source = source;
	return 0;
}

static int source_start(struct wss_top_source *source, void (*run)(void *opaque),
			struct wss_top_source **ret_source, struct wss_error *err)
{
	if (wss_thread_start(run, source, &source->thread, err) < 0) {
		wss_top_source_free(source);
		return -1;
	}
	*ret_source = source;
	return 0;
}

int wss_top_source_service(const char *path, uint64_t delay_ns, struct wss_top_source **ret_source,
			   struct wss_error *err)
{
	struct wss_top_source *source = NULL;

	if (source_new(&source, err) < 0)
		return -1;
	source->path = path;
	source->delay_ns = delay_ns;
	return source_start(source, service_run, ret_source, err);
}

int wss_top_source_watch(const struct wss_watch_options *options,
			 struct wss_top_source **ret_source, struct wss_error *err)
{
	struct wss_top_source *source = NULL;

	if (source_new(&source, err) < 0)
		return -1;
	source->options = *options;
	source->options.cancel = &source->cancel;
	return source_start(source, watch_run, ret_source, err);
}

int wss_top_source_fd(const struct wss_top_source *source)
{
	return source->news;
}

/* Copies a list of guests into another one, whose memory is used again. */
static bool guests_copy(struct wss_guests *to, const struct wss_guests *from)
{
	struct wss_guest_view *list = to->list;
	size_t room = to->room;

	if (room < from->n) {
		list = realloc(list, from->n * sizeof(*list));
		if (!list)
			return false;
		room = from->n;
	}
	*to = *from;
	to->list = list;
	to->room = room;
	if (from->n)
		memcpy(list, from->list, from->n * sizeof(*list));
	return true;
}

bool wss_top_source_take(struct wss_top_source *source, struct wss_top_view *view)
{
	bool taken;

	eventfd_clear(source->news);
	pthread_mutex_lock(&source->lock);
	taken = source->is_new && guests_copy(&view->guests, &source->next.guests);
	if (taken) {
		view->any = source->next.any;
		view->taken_ns = source->next.taken_ns;
		view->error = source->next.error;
		view->complete = source->next.complete;
		source->is_new = false;
	}
	pthread_mutex_unlock(&source->lock);
	return taken;
}

void wss_top_source_refresh(struct wss_top_source *source, uint64_t delay_ns)
{
	pthread_mutex_lock(&source->lock);
	source->delay_ns = delay_ns;
	pthread_mutex_unlock(&source->lock);
	eventfd_set(source->wake);
}

void wss_top_source_free(struct wss_top_source *source)
{
	if (!source)
		return;
	if (source->thread) {
		wss_cancel_request(&source->cancel);
		wss_thread_join(source->thread);
	}
	wss_guests_release(&source->next.guests);
	wss_cancel_close(&source->cancel);
	pthread_mutex_destroy(&source->lock);
	if (source->news >= 0)
		close(source->news);
	if (source->wake >= 0)
		close(source->wake);
	free(source);
}
