/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The guests that a watch knows: those that libvirt listed last. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/number.h"
#include "base/text.h"
#include "watch/watch-private.h"

struct wss_watch_guest *wss_watch_guests_find(const struct wss_watch *watch, const char *uuid,
					      size_t *hint)
{
	for (size_t i = 0; i < watch->n; i++) {
		size_t at = (*hint + i) % watch->n;

		if (strcmp(watch->guests[at]->watched.uuid, uuid) != 0)
			continue;
		*hint = at;
		return watch->guests[at];
	}
	return NULL;
}

void wss_watch_charge(struct wss_watch *watch, struct wss_watch_guest *guest, uint64_t cpu_ns)
{
	*(guest ? &guest->watched.spent_tool_ns : &watch->gone.tool_ns) += cpu_ns;
	watch->charged_ns += cpu_ns;
}

static struct wss_watch_guest *watch_add(struct wss_watch *watch,
					 const struct wss_conn_domain *domain)
{
	struct wss_watch_guest **guests = watch->guests, *guest;

	if (watch->n == watch->room) {
		size_t room = watch->room ? 2 * watch->room : 64;

		guests = realloc(watch->guests, room * sizeof(*guests));
		if (!guests)
			return NULL;
		watch->guests = guests;
		watch->room = room;
	}
	guest = wss_watch_guest_new(&watch->options, domain->uuid, watch->ages_budget);
	if (!guest)
		return NULL;
	guests[watch->n++] = guest;
	return guest;
}

static void watch_keep_spent(struct wss_watch *watch, const struct wss_watched *watched)
{
	watch->gone.windows += watched->windows;
	watch->gone.dearer += watched->dearer;
	watch->gone.vcpu_ns = wss_u64_add(watch->gone.vcpu_ns, watched->spent_vcpu_ns);
	watch->gone.longest_stall_ns =
		wss_u64_max(watch->gone.longest_stall_ns, watched->longest_stall_ns);
	watch->gone.pressed_ns += wss_watched_pressed_ns(watched);
	watch->gone.tool_ns = wss_u64_add(watch->gone.tool_ns, watched->spent_tool_ns);
}

/* Those that run no more. A window that is still open ends by itself. */
static void watch_forget_unlisted(struct wss_watch *watch)
{
	size_t kept = 0;

	for (size_t i = 0; i < watch->n; i++) {
		struct wss_watch_guest *guest = watch->guests[i];

		if (guest->listed) {
			watch->guests[kept++] = guest;
			continue;
		}
		watch_keep_spent(watch, &guest->watched);
		if (watch->events.gone)
			watch->events.gone(&guest->watched, watch->opaque);
		if (guest->aging)
			wss_aging_remove(guest->aging);
		wss_ages_saver_add(watch->saver, guest);
		wss_watch_visit_started(watch, guest);
		wss_watch_guest_free(guest);
	}
	watch->n = kept;
}

/* Those that run when the watch begins fall due one after the other. */
static void watch_spread(struct wss_watch *watch)
{
	for (size_t i = 0; i < watch->n; i++) {
		uint64_t *next_ns = &watch->guests[i]->watched.next_ns;

		*next_ns = wss_watch_tick_ns(*next_ns + watch->options.period_ns / watch->n * i);
	}
	watch->began = true;
}

static void watch_take_list(struct wss_watch *watch, const struct wss_conn_domain *domains,
			    size_t n)
{
	size_t before = watch->n, likely = 0;

	for (size_t i = 0; i < watch->n; i++)
		watch->guests[i]->listed = false;
	for (size_t i = 0; i < n; i++) {
		/* Two lists have the same order, but for guests that came or went. */
		struct wss_watch_guest *guest =
			wss_watch_guests_find(watch, domains[i].uuid, &likely);

		likely += guest != NULL;
		if (!guest)
			guest = watch_add(watch, &domains[i]);
		if (!guest)
			continue;
		guest->listed = true;
		wss_text_fit(domains[i].name, guest->watched.name, sizeof(guest->watched.name));
	}
	watch_forget_unlisted(watch);
	if (!watch->began)
		watch_spread(watch);
	if (watch->n == before)
		return;
	wss_watch_set_pace(watch);
	watch->due_ns = 0;
}

/* Guests that could not be measured while libvirt was gone are due again. The gate staggers them. */
static void watch_retry_lost(struct wss_watch *watch)
{
	for (size_t i = 0; i < watch->n; i++) {
		struct wss_watched *watched = &watch->guests[i]->watched;

		if (watched->why.code == WSS_ERR_CONNECT || watched->why.code == WSS_ERR_TIMEOUT)
			watched->next_ns = wss_clock_now_ns();
	}
}

static void watch_tell_connection(struct wss_watch *watch, const struct wss_error *error)
{
	if (watch->disconnected == (error != NULL))
		return;
	watch->disconnected = error != NULL;
	if (!error)
		watch_retry_lost(watch);
	if (watch->events.connection)
		watch->events.connection(error, watch->opaque);
}

void wss_watch_guests_update(struct wss_watch *watch)
{
	struct wss_error error = WSS_ERROR_INIT;
	struct wss_conn_domain *domains = NULL;
	size_t n = 0;
	int r = wss_lister_step(watch->lister, &domains, &n, &error);

	if (r == 0)
		return;
	watch_tell_connection(watch, r < 0 ? &error : NULL);
	if (r > 0)
		watch_take_list(watch, domains, n);
	wss_conn_free_list(domains, n);
}

/* --- reboots --- */

void wss_watch_guests_take_reboots(struct wss_watch *watch)
{
	char uuid[WSS_UUID_TEXT_MAX];
	struct wss_watch_guest *guest;

	while (wss_lister_next_reboot(watch->lister, uuid)) {
		guest = wss_watch_guests_find(watch, uuid, &(size_t){0});
		if (guest)
			wss_watch_guest_reboot(guest, &watch->options, watch->saver);
	}
}

/* --- for the caller --- */

bool wss_watch_has_tried(const struct wss_watch *watch)
{
	return watch->began || watch->disconnected;
}

bool wss_watch_listed(const struct wss_watch *watch)
{
	return watch->began;
}

size_t wss_watch_count(const struct wss_watch *watch)
{
	return watch->n;
}

struct wss_watch_spent wss_watch_spent_before(const struct wss_watch *watch)
{
	return watch->gone;
}

const struct wss_watched *wss_watch_guest(const struct wss_watch *watch, size_t i)
{
	return &watch->guests[i]->watched;
}

bool wss_watch_cold(const struct wss_watch *watch, size_t i, struct wss_cold_report *ret_report)
{
	struct wss_aging *aging = watch->guests[i]->aging;

	return aging && wss_aging_report(aging, wss_clock_now_ns(), ret_report);
}
