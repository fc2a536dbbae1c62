/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Invented guests, and a method that measures nothing, for tests of what runs over many guests.
 * Each guest has a child process of its own, which a window locks.
 */
#pragma once

#include "hosttest.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/stop.h"
#include "base/thread.h"
#include "base/units.h"
#include "measure/target.h"
#include "measure/tracker.h"
#include "tests/leaping.h"

#define GUESTS_MAX 512
#define MS WSS_NS_PER_MS
#define HANG_STEP_NS (50 * MS)

/* What comes of a window by 4 KiB. */
enum by_4k { BY_4K_WORKS, BY_4K_UNSUPPORTED, BY_4K_BUSY, BY_4K_SLOW };

enum hang {
	HANG_NOWHERE,
	HANG_OPEN,
	HANG_REFRESH,
	HANG_PREPARE,
	HANG_BEGIN,
	HANG_POLL,
	HANG_PUBLISH
};

static struct invented {
	char name[16];
	char uuid[WSS_UUID_TEXT_MAX];
	pid_t child;
	uint64_t
		start_ticks; /* of the child, by the clock of the tests, which the kernel's may be ahead of */
	_Atomic enum hang hang;
	_Atomic enum wss_guest_state state;
	atomic_bool opted_out, gone;
	atomic_bool job;  /* a migration, say */
	atomic_bool busy; /* takes no profile: a job has just begun */
	bool large;	  /* KVM maps it by 2 MiB */
	_Atomic enum by_4k by_4k;
	struct wss_prediction predicted_4k; /* of windows by 4 KiB; stall_ns 0: as predicted */
	atomic_uint tried_4k, begun_4k;
	atomic_bool reboots;	   /* and nobody has been told yet: set by reboot_guest() */
	bool dies;		   /* in its first window */
	atomic_bool untouched;	   /* windows show nothing that it touched, which is a failure */
	bool leaves;		   /* the round, as soon as a window of it is open */
	struct wss_target *target; /* of one that leaves */
	bool locked;		   /* its memory, as only its process shows */
	struct wss_prediction predicted; /* stall_ns 0: nothing is predicted */
	struct wss_amount faults;	 /* of each window */
	uint64_t opens_ns;		 /* how far opening it sets the clock ahead */
	atomic_uint dearer;		 /* as many times as that; 0: once */
	struct wss_pageset *touched;	 /* in each window, of 64 MiB; NULL: not known */
	/* What a window has instead whose pages are read so long after it was armed, or later; NULL: nothing else. */
	struct wss_pageset *touched_later;
	uint64_t later_ns;
	unsigned slow_refresh_us; /* libvirt takes its time */
	/* Of invented processor time, before each window, after it, and whenever it is published. */
	uint64_t burns_ns;
	_Atomic uint64_t burnt_ns;
	/* Calls of libvirt since its pages were read; the most of them before a window began that followed one. */
	atomic_uint calls, most_calls;
	atomic_bool pages_read;
	atomic_uint polls; /* in the window that was armed last */
	atomic_uint opens, prepares, begins, closes, published, refused;
	uint64_t armed_ns;
	atomic_bool is_open; /* a window of it */
	/* Events of the round about this guest. */
	unsigned samples, bad, lasts, troubles, left_out;
	struct wss_error error;
} guests[GUESTS_MAX];

static size_t n_guests;
static _Atomic uint64_t ahead_ns; /* of an injected clock */
static atomic_bool go_on;	  /* releases the guests that hang */
static atomic_uint arming, most_arming, open_windows, most_open;
static useconds_t arming_us = 2000; /* how long a guest is being armed */
static atomic_uint reboots;	    /* of guests, that nobody has been told yet */
static atomic_bool unreachable;	    /* libvirt cannot be reached */
static const struct wss_host host = {.root = {.dirfd = -1}};

static void hang_at(const struct invented *guest, enum hang where)
{
	/* All that hang look at the same times, so that they cost little. */
	while (guest->hang == where && !go_on)
		leaping_sleep_ns(HANG_STEP_NS - wss_clock_now_ns() % HANG_STEP_NS);
}

static _Thread_local uint64_t thread_burnt_ns;
static _Atomic uint64_t process_burnt_ns;

static void burn(struct invented *guest)
{
	guest->burnt_ns += guest->burns_ns;
	thread_burnt_ns += guest->burns_ns;
	process_burnt_ns += guest->burns_ns;
}

/* For a struct wss_clock_source: the processor time that was burnt, and nothing else. */
static inline uint64_t burnt_thread_ns(void *unused)
{
	(void)unused;
	return thread_burnt_ns;
}

static inline uint64_t burnt_process_ns(void *unused)
{
	(void)unused;
	return process_burnt_ns;
}

static void note_most(atomic_uint *most, unsigned value)
{
	unsigned seen = *most;

	while (value > seen && !atomic_compare_exchange_weak(most, &seen, value))
		;
}

/* --- the source --- */

static int guest_refresh(struct wss_guest *guest, struct wss_error *err)
{
	struct invented *invented = guest->source;

	(void)err;
	hang_at(invented, HANG_REFRESH);
	leaping_sleep_ns(invented->slow_refresh_us * 1000ULL);
	invented->calls++;
	guest->state = invented->state;
	strcpy(guest->job, invented->job ? "backup" : "");
	snprintf(guest->state_text, sizeof(guest->state_text), "state %d", (int)guest->state);
	return 0;
}

static int guest_attach(struct wss_guest *guest, const struct wss_host *unused,
			struct wss_error *err)
{
	const struct invented *invented = guest->source;

	(void)unused;
	guest->config.locked = invented->locked;
	if (hold_child(invented->child, &guest->process, err) < 0)
		return -1;
	guest->process.start_ticks = invented->start_ticks;
	return 0;
}

static int guest_metadata(struct wss_guest *guest, const char *namespace_uri, char **ret_xml,
			  struct wss_error *err)
{
	const struct invented *invented = guest->source;
	bool policy = strstr(namespace_uri, "policy") != NULL;

	(void)err;
	*ret_xml = invented->opted_out && policy
			   ? strdup("<policy xmlns='urn:virt-wss:policy:1' version='1' "
				    "opt-out='yes'/>")
			   : NULL;
	return 0;
}

static int guest_publish(struct wss_guest *guest, const char *xml, bool persistent,
			 struct wss_error *err)
{
	struct invented *invented = guest->source;

	(void)persistent;
	assert_non_null(strstr(xml, "profile"));
	hang_at(invented, HANG_PUBLISH);
	burn(invented);
	if (invented->busy) {
		invented->refused++;
		return wss_error_set(err, WSS_ERR_BUSY, "a job is running");
	}
	invented->published++;
	return 0;
}

static int source_list(void *unused, bool inactive_too, struct wss_conn_domain **ret_domains,
		       size_t *ret_n, struct wss_error *err)
{
	struct wss_conn_domain *domains = calloc(n_guests + 1, sizeof(*domains));
	size_t n = 0;

	(void)unused;
	(void)inactive_too;
	assert_non_null(domains);
	if (unreachable) {
		free(domains);
		return wss_error_set(err, WSS_ERR_CONNECT, "nobody is there");
	}
	for (size_t i = 0; i < n_guests; i++) {
		if (guests[i].gone)
			continue;
		domains[n].name = strdup(guests[i].name);
		assert_non_null(domains[n].name);
		snprintf(domains[n++].uuid, sizeof(domains->uuid), "%s", guests[i].uuid);
	}
	*ret_domains = domains;
	*ret_n = n;
	return 0;
}

static void source_follow_reboots(void *unused)
{
	(void)unused;
}

static bool source_next_reboot(void *unused, char ret_uuid[WSS_UUID_TEXT_MAX])
{
	(void)unused;
	for (size_t i = 0; reboots && i < n_guests; i++) {
		if (!atomic_exchange(&guests[i].reboots, false))
			continue;
		reboots--;
		memcpy(ret_uuid, guests[i].uuid, WSS_UUID_TEXT_MAX);
		return true;
	}
	return false;
}

static inline void reboot_guest(size_t i)
{
	guests[i].reboots = true;
	reboots++;
}

/* Returns n_guests if there is none. Tries the number in the name first: a benchmark asks for every window. */
static size_t find_invented(const char *name)
{
	size_t i = strtoul(name + strcspn(name, "0123456789"), NULL, 10);

	if (i < n_guests && !strcmp(guests[i].name, name))
		return i;
	for (i = 0; i < n_guests; i++)
		if (!strcmp(guests[i].name, name))
			break;
	return i;
}

static int source_open(void *unused, const struct wss_domain_ref *ref,
		       const struct wss_deadline *deadline, struct wss_guest **ret_guest,
		       struct wss_error *err)
{
	static const struct wss_guest_ops ops = {
		.refresh = guest_refresh,
		.attach = guest_attach,
		.metadata = guest_metadata,
		.publish = guest_publish,
	};
	struct wss_guest *guest;
	size_t i = find_invented(ref->name);

	(void)unused;
	if (i == n_guests || guests[i].gone)
		return wss_error_set(err, WSS_ERR_GONE, "no such domain");
	hang_at(&guests[i], HANG_OPEN);
	burn(&guests[i]);
	guests[i].opens++;
	ahead_ns += guests[i].opens_ns;
	guest = wss_guest_new(&ops, &guests[i], deadline);
	assert_non_null(guest);
	snprintf(guest->config.name, sizeof(guest->config.name), "%s", guests[i].name);
	snprintf(guest->config.uuid, sizeof(guest->config.uuid), "%s", guests[i].uuid);
	snprintf(guest->config.type, sizeof(guest->config.type), "qemu");
	guest->config.vcpus = 1;
	guest->config.has_balloon = true;
	if (guests[i].touched) {
		snprintf(guest->config.machine, sizeof(guest->config.machine), "pc");
		guest->config.initial_bytes = guest->config.maximum_bytes = 64 * WSS_MIB;
	}
	guest->state = guests[i].state;
	*ret_guest = guest;
	return 0;
}

/* --- the method --- */

struct method {
	struct wss_tracker base;
	struct invented *guest;
	bool by_4k, prepared, wants_pages, is_later;
};

static const struct wss_tracker_ops method_ops;

static int method_probe(const struct wss_host *unused, struct wss_guest *guest,
			struct wss_error *err)
{
	(void)unused;
	(void)guest;
	(void)err;
	return 0;
}

static int method_open(const struct wss_host *unused, struct wss_guest *guest,
		       const struct wss_track_options *track, struct wss_tracker **ret_tracker,
		       struct wss_error *err)
{
	struct method *method = calloc(1, sizeof(*method));

	(void)unused;
	assert_non_null(method);
	method->base.ops = &method_ops;
	method->guest = guest->source;
	method->by_4k = track->granularity == WSS_GRANULARITY_4K;
	method->guest->tried_4k += method->by_4k;
	if (method->by_4k && method->guest->by_4k == BY_4K_UNSUPPORTED) {
		free(method);
		return wss_error_set(err, WSS_ERR_UNSUPPORTED, "a device does not survive it");
	}
	*ret_tracker = &method->base;
	return 0;
}

static struct invented *method_guest(struct wss_tracker *tracker)
{
	return ((struct method *)tracker)->guest;
}

static int method_prepare(struct wss_tracker *tracker, struct wss_error *err)
{
	struct method *method = (struct method *)tracker;

	method->guest->prepares++;
	hang_at(method->guest, HANG_PREPARE);
	if (!method->by_4k)
		return 1;
	if (method->guest->by_4k == BY_4K_SLOW)
		return wss_error_set(err, WSS_ERR_TIMEOUT, "QMP calc-dirty-rate: timed out");
	if (method->guest->by_4k == BY_4K_BUSY)
		return wss_error_set(err, WSS_ERR_BUSY, "another program's calculation is running");
	/* As before QEMU's dirty log is requested, which is on a moment later. */
	if (method->prepared)
		return 1;
	note_most(&most_arming, ++arming);
	leaping_sleep_ns(arming_us * 1000ULL);
	arming--;
	method->prepared = true;
	return 0;
}

static bool method_prepare_stalls(const struct wss_tracker *tracker)
{
	const struct method *method = (const struct method *)tracker;

	return method->by_4k && !method->prepared;
}

static int method_begin(struct wss_tracker *tracker, struct wss_span *ret_span,
			struct wss_error *err)
{
	struct invented *guest = method_guest(tracker);

	(void)err;
	/* A guest that hangs here may be overtaken, because it arms only itself. */
	if (guest->hang != HANG_BEGIN)
		note_most(&most_arming, ++arming);
	guest->armed_ns = wss_clock_now_ns();
	guest->begins++;
	guest->polls = 0;
	guest->begun_4k += ((struct method *)tracker)->by_4k;
	if (guest->pages_read)
		note_most(&guest->most_calls, guest->calls);
	leaping_sleep_ns(arming_us * 1000ULL);
	hang_at(guest, HANG_BEGIN);
	/* Its vCPUs stall as long on a busy machine. */
	ret_span->end_ns = wss_clock_now_ns();
	ret_span->start_ns = ret_span->end_ns - arming_us * 1000ULL;
	if (guest->hang != HANG_BEGIN)
		arming--;
	guest->is_open = true;
	note_most(&most_open, ++open_windows);
	return 0;
}

static int method_poll(struct wss_tracker *tracker, struct wss_reading *ret_reading,
		       struct wss_error *err)
{
	struct invented *guest = method_guest(tracker);
	struct wss_amount faults = guest->faults;
	unsigned dearer = guest->dearer;
	uint64_t now_ns = wss_clock_now_ns();

	(void)err;
	guest->polls++;
	hang_at(guest, HANG_POLL);
	if (guest->dies)
		make_zombie(guest->child);
	if (((struct method *)tracker)->wants_pages)
		((struct method *)tracker)->is_later =
			guest->touched_later && now_ns >= guest->armed_ns + guest->later_ns;
	((struct method *)tracker)->wants_pages = false;
	faults.value *= dearer ? dearer : 1;
	*ret_reading = (struct wss_reading){
		.span = {now_ns, now_ns},
		.wss_bytes = WSS_MIB,
		.low_bytes = WSS_MIB,
		.high_bytes = WSS_MIB,
		.granularity_bytes = 4096,
		.faults = faults,
	};
	if (guest->large && !((struct method *)tracker)->by_4k) {
		ret_reading->granularity_bytes = 2 * WSS_MIB;
		ret_reading->wss_bytes = ret_reading->high_bytes = 64 * WSS_MIB;
	}
	if (guest->untouched)
		ret_reading->wss_bytes = ret_reading->low_bytes = ret_reading->high_bytes = 0;
	return 0;
}

static int method_predict(struct wss_tracker *tracker, struct wss_prediction *ret_prediction,
			  struct wss_error *err)
{
	(void)err;
	*ret_prediction = method_guest(tracker)->predicted;
	if (((struct method *)tracker)->by_4k && method_guest(tracker)->predicted_4k.stall_ns)
		*ret_prediction = method_guest(tracker)->predicted_4k;
	return 0;
}

static void method_want_pages(struct wss_tracker *tracker)
{
	((struct method *)tracker)->wants_pages = true;
}

static void method_pages(const struct wss_tracker *tracker, struct wss_page_view *ret_view)
{
	const struct method *method = (const struct method *)tracker;
	struct invented *guest = method->guest;

	guest->calls = 0;
	guest->pages_read = true;
	if (guest->touched)
		ret_view->touched =
			wss_pages_of_set(method->is_later ? guest->touched_later : guest->touched);
}

static void method_close(struct wss_tracker *tracker)
{
	if (tracker) {
		if (atomic_exchange(&method_guest(tracker)->is_open, false))
			open_windows--;
		method_guest(tracker)->pages_read = false;
		method_guest(tracker)->closes++;
		burn(method_guest(tracker));
	}
	free(tracker);
}

static const struct wss_tracker_ops method_ops = {
	.name = "invented",
	.summary = "measures nothing",
	.granularity = "none",
	.probe = method_probe,
	.open = method_open,
	.predict = method_predict,
	.prepare = method_prepare,
	.prepare_stalls = method_prepare_stalls,
	.begin = method_begin,
	.want_pages = method_want_pages,
	.poll = method_poll,
	.pages = method_pages,
	.close = method_close,
};

static void start_child(struct invented *guest)
{
	guest->start_ticks = wss_clock_now_ns() / (WSS_NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK));
	guest->child = fork();
	assert_true(guest->child >= 0);
	if (guest->child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
}

static void invent_guests(size_t n)
{
	n_guests = n;
	go_on = unreachable = false;
	arming = most_arming = open_windows = most_open = reboots = 0;
	for (size_t i = 0; i < n; i++) {
		guests[i] = (struct invented){.state = WSS_GUEST_RUNNING};
		snprintf(guests[i].name, sizeof(guests[i].name), "guest%zu", i % GUESTS_MAX);
		snprintf(guests[i].uuid, sizeof(guests[i].uuid), "a1b2c3d4-0000-4000-8000-%012zu",
			 i % GUESTS_MAX);
		start_child(&guests[i]);
	}
}

static void forget(void)
{
	go_on = true;
	/* Threads that were left behind must end before the memory that they use is freed. */
	assert_true(wss_threads_end(20 * WSS_NS_PER_S));
	for (size_t i = 0; i < n_guests; i++) {
		assert_int_equal(guests[i].is_open, 0);
		end_child(guests[i].child);
	}
}

static struct wss_hypervisor *hypervisor_new(void)
{
	static const struct wss_guest_source source = {
		.list = source_list,
		.open = source_open,
		.follow_reboots = source_follow_reboots,
		.next_reboot = source_next_reboot,
	};
	struct wss_hypervisor *hypervisor;

	assert_int_equal(wss_hypervisor_new(&host, &source, NULL, &hypervisor, NULL), 0);
	return hypervisor;
}
