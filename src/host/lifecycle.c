/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "host/lifecycle.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

/* A domain that has rebooted. */
struct reboot {
	struct reboot *next;
	char uuid[VIR_UUID_STRING_BUFLEN];
};

/*
 * Freed with the last reference, held by the connection or by libvirt, whose event loop may be
 * in a callback.
 */
struct wss_lifecycle {
	atomic_int references;
	pthread_mutex_t lock;
	struct wss_watch *watches;   /* under the lock */
	struct reboot *reboots;	     /* under the lock; each domain once */
	pthread_mutex_t registering; /* held during a call of libvirt, which may never return */
	bool asked;		     /* under registering, as is callback */
	int callback;		     /* -1: libvirt sends no events */
	int reboot_callback;	     /* as callback */
	atomic_bool follows_reboots; /* somebody takes the reboots */
};

struct wss_lifecycle *wss_lifecycle_new(void)
{
	struct wss_lifecycle *lifecycle = calloc(1, sizeof(*lifecycle));

	if (!lifecycle)
		return NULL;
	lifecycle->references = 1;
	lifecycle->callback = lifecycle->reboot_callback = -1;
	pthread_mutex_init(&lifecycle->lock, NULL);
	pthread_mutex_init(&lifecycle->registering, NULL);
	return lifecycle;
}

static void lifecycle_unref(void *opaque)
{
	struct wss_lifecycle *lifecycle = opaque;
	char unused[VIR_UUID_STRING_BUFLEN];

	if (atomic_fetch_sub(&lifecycle->references, 1) != 1)
		return;
	while (wss_lifecycle_next_reboot(lifecycle, unused))
		;
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
	if (event == VIR_DOMAIN_EVENT_STOPPED) {
		watch->kept = detail == VIR_DOMAIN_EVENT_STOPPED_MIGRATED ||
			      detail == VIR_DOMAIN_EVENT_STOPPED_SAVED;
		watch->ended = !watch->kept;
	}
	if (event == VIR_DOMAIN_EVENT_SUSPENDED || event == VIR_DOMAIN_EVENT_STOPPED ||
	    event == VIR_DOMAIN_EVENT_CRASHED || event == VIR_DOMAIN_EVENT_PMSUSPENDED) {
		watch->disturbance.stopped = true;
		if (!watch->paused_since_ns)
			watch->paused_since_ns = wss_clock_now_ns();
	}
	if (event == VIR_DOMAIN_EVENT_RESUMED && watch->paused_since_ns) {
		watch->disturbance.paused_ns += wss_clock_now_ns() - watch->paused_since_ns;
		watch->paused_since_ns = 0;
	}
}

static int on_lifecycle(virConnectPtr vir, virDomainPtr dom, int event, int detail, void *opaque)
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

/* The caller holds the lock. */
static bool reboot_is_noted(const struct wss_lifecycle *lifecycle, const char *uuid)
{
	for (const struct reboot *reboot = lifecycle->reboots; reboot; reboot = reboot->next)
		if (!strcmp(reboot->uuid, uuid))
			return true;
	return false;
}

/* QEMU has reset the guest, on its own demand or on that of an operator. */
static void on_reboot(virConnectPtr vir, virDomainPtr dom, void *opaque)
{
	struct wss_lifecycle *lifecycle = opaque;
	struct reboot *reboot = calloc(1, sizeof(*reboot));
	unsigned char uuid[VIR_UUID_BUFLEN];

	(void)vir;
	if (!reboot || virDomainGetUUIDString(dom, reboot->uuid) < 0 ||
	    virDomainGetUUID(dom, uuid) < 0) {
		free(reboot);
		return;
	}
	pthread_mutex_lock(&lifecycle->lock);
	for (struct wss_watch *watch = lifecycle->watches; watch; watch = watch->next)
		watch->disturbance.reset |= !memcmp(watch->uuid, uuid, sizeof(uuid));
	if (lifecycle->follows_reboots && !reboot_is_noted(lifecycle, reboot->uuid)) {
		reboot->next = lifecycle->reboots;
		lifecycle->reboots = reboot;
		reboot = NULL;
	}
	pthread_mutex_unlock(&lifecycle->lock);
	free(reboot);
}

/* The callback's number; -1: libvirt sends no such events. The caller holds registering. */
static int lifecycle_subscribe(struct wss_lifecycle *lifecycle, virConnectPtr vir, int event,
			       virConnectDomainEventGenericCallback on_event)
{
	int callback;

	atomic_fetch_add(&lifecycle->references, 1);
	callback = virConnectDomainEventRegisterAny(vir, NULL, event, on_event, lifecycle,
						    lifecycle_unref);
	if (callback < 0)
		lifecycle_unref(lifecycle);
	return callback;
}

/* Whether libvirt sends events. */
static bool lifecycle_register(struct wss_lifecycle *lifecycle, virConnectPtr vir)
{
	bool sends;

	pthread_mutex_lock(&lifecycle->registering);
	if (!lifecycle->asked) {
		lifecycle->asked = true;
		lifecycle->callback =
			lifecycle_subscribe(lifecycle, vir, VIR_DOMAIN_EVENT_ID_LIFECYCLE,
					    VIR_DOMAIN_EVENT_CALLBACK(on_lifecycle));
		lifecycle->reboot_callback =
			lifecycle_subscribe(lifecycle, vir, VIR_DOMAIN_EVENT_ID_REBOOT,
					    VIR_DOMAIN_EVENT_CALLBACK(on_reboot));
	}
	sends = lifecycle->callback >= 0;
	pthread_mutex_unlock(&lifecycle->registering);
	return sends;
}

void wss_lifecycle_follow_reboots(struct wss_lifecycle *lifecycle, virConnectPtr vir)
{
	lifecycle->follows_reboots = true;
	lifecycle_register(lifecycle, vir);
}

bool wss_lifecycle_next_reboot(struct wss_lifecycle *lifecycle,
			       char ret_uuid[VIR_UUID_STRING_BUFLEN])
{
	struct reboot *reboot;

	pthread_mutex_lock(&lifecycle->lock);
	reboot = lifecycle->reboots;
	if (reboot)
		lifecycle->reboots = reboot->next;
	pthread_mutex_unlock(&lifecycle->lock);
	if (!reboot)
		return false;
	memcpy(ret_uuid, reboot->uuid, sizeof(reboot->uuid));
	free(reboot);
	return true;
}

/* The caller holds registering. */
static void lifecycle_unsubscribe(virConnectPtr vir, int *callback)
{
	if (*callback >= 0)
		virConnectDomainEventDeregisterAny(vir, *callback);
	*callback = -1;
}

void wss_lifecycle_stop(struct wss_lifecycle *lifecycle, virConnectPtr vir)
{
	pthread_mutex_lock(&lifecycle->registering);
	lifecycle_unsubscribe(vir, &lifecycle->callback);
	lifecycle_unsubscribe(vir, &lifecycle->reboot_callback);
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

struct wss_disturbance wss_watch_disturbance(const struct wss_watch *watch)
{
	struct wss_disturbance disturbance;

	pthread_mutex_lock(&watch->lifecycle->lock);
	disturbance = watch->disturbance;
	if (watch->paused_since_ns)
		disturbance.paused_ns += wss_clock_now_ns() - watch->paused_since_ns;
	pthread_mutex_unlock(&watch->lifecycle->lock);
	return disturbance;
}

void wss_watch_forget(struct wss_watch *watch)
{
	pthread_mutex_lock(&watch->lifecycle->lock);
	watch->disturbance = (struct wss_disturbance){.stopped = false};
	watch->paused_since_ns = 0;
	pthread_mutex_unlock(&watch->lifecycle->lock);
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
