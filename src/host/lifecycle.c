/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "host/lifecycle.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/*
 * Freed with the last reference, held by the connection or by libvirt, whose event loop may be
 * in a callback.
 */
struct wss_lifecycle {
	atomic_int references;
	pthread_mutex_t lock;
	struct wss_watch *watches;   /* under the lock */
	pthread_mutex_t
		registering; /* held during a call of libvirt, which may never return */
	bool asked;	     /* under registering, as is callback */
	int callback;		     /* -1: libvirt sends no events */
};

struct wss_lifecycle *wss_lifecycle_new(void)
{
	struct wss_lifecycle *lifecycle = calloc(1, sizeof(*lifecycle));

	if (!lifecycle)
		return NULL;
	lifecycle->references = 1;
	lifecycle->callback = -1;
	pthread_mutex_init(&lifecycle->lock, NULL);
	pthread_mutex_init(&lifecycle->registering, NULL);
	return lifecycle;
}

static void lifecycle_unref(void *opaque)
{
	struct wss_lifecycle *lifecycle = opaque;

	if (atomic_fetch_sub(&lifecycle->references, 1) != 1)
		return;
	pthread_mutex_destroy(&lifecycle->registering);
	pthread_mutex_destroy(&lifecycle->lock);
	free(lifecycle);
}

void wss_lifecycle_free(struct wss_lifecycle *lifecycle)
{
	if (lifecycle)
		lifecycle_unref(lifecycle);
}

static void watch_note(struct wss_watch *watch, int event, int detail)
{
	if (event == VIR_DOMAIN_EVENT_STOPPED)
		watch->kept = detail == VIR_DOMAIN_EVENT_STOPPED_MIGRATED ||
			      detail == VIR_DOMAIN_EVENT_STOPPED_SAVED;
	if (event == VIR_DOMAIN_EVENT_SUSPENDED || event == VIR_DOMAIN_EVENT_STOPPED ||
	    event == VIR_DOMAIN_EVENT_CRASHED || event == VIR_DOMAIN_EVENT_PMSUSPENDED)
		watch->disturbed = true;
}

static int on_lifecycle(virConnectPtr vir, virDomainPtr dom, int event, int detail,
			void *opaque)
{
	struct wss_lifecycle *lifecycle = opaque;
	unsigned char uuid[VIR_UUID_BUFLEN];

	(void)vir;
	if (virDomainGetUUID(dom, uuid) < 0)
		return 0;
	pthread_mutex_lock(&lifecycle->lock);
	for (struct wss_watch *watch = lifecycle->watches; watch; watch = watch->next)
		if (!memcmp(watch->uuid, uuid, sizeof(uuid)))
			watch_note(watch, event, detail);
	pthread_mutex_unlock(&lifecycle->lock);
	return 0;
}

/* Whether libvirt sends events. */
static bool lifecycle_register(struct wss_lifecycle *lifecycle, virConnectPtr vir)
{
	bool sends;

	pthread_mutex_lock(&lifecycle->registering);
	if (!lifecycle->asked) {
		lifecycle->asked = true;
		atomic_fetch_add(&lifecycle->references, 1);
		lifecycle->callback = virConnectDomainEventRegisterAny(
			vir, NULL, VIR_DOMAIN_EVENT_ID_LIFECYCLE,
			VIR_DOMAIN_EVENT_CALLBACK(on_lifecycle), lifecycle, lifecycle_unref);
		if (lifecycle->callback < 0)
			lifecycle_unref(lifecycle);
	}
	sends = lifecycle->callback >= 0;
	pthread_mutex_unlock(&lifecycle->registering);
	return sends;
}

void wss_lifecycle_stop(struct wss_lifecycle *lifecycle, virConnectPtr vir)
{
	pthread_mutex_lock(&lifecycle->registering);
	if (lifecycle->callback >= 0)
		virConnectDomainEventDeregisterAny(vir, lifecycle->callback);
	lifecycle->callback = -1;
	pthread_mutex_unlock(&lifecycle->registering);
}

int wss_watch_begin(struct wss_lifecycle *lifecycle, virConnectPtr vir, virDomainPtr dom,
		    struct wss_watch **ret_watch)
{
	struct wss_watch *watch;

	*ret_watch = NULL;
	if (!lifecycle_register(lifecycle, vir))
		return 0;
	watch = calloc(1, sizeof(*watch));
	if (!watch)
		return -1;
	if (virDomainGetUUID(dom, watch->uuid) < 0) {
		free(watch);
		return 0;
	}
	watch->lifecycle = lifecycle;
	pthread_mutex_lock(&lifecycle->lock);
	watch->next = lifecycle->watches;
	lifecycle->watches = watch;
	pthread_mutex_unlock(&lifecycle->lock);
	*ret_watch = watch;
	return 0;
}

void wss_watch_end(struct wss_watch *watch)
{
	struct wss_watch **link;

	if (!watch)
		return;
	pthread_mutex_lock(&watch->lifecycle->lock);
	for (link = &watch->lifecycle->watches; *link != watch;)
		link = &(*link)->next;
	*link = watch->next;
	pthread_mutex_unlock(&watch->lifecycle->lock);
	free(watch);
}
