/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * make-pages DIRECTORY [HISTORY]: watches three invented guests for some windows, and writes what the service
 * answers about them: host.json, guests.json, trends.json and UUID.json. guest0 shows which pages it touches,
 * guest1 is refused by the budget, and guest2 has opted out. HISTORY may have a past of guest0.
 */
#include "invented.h"

#include "base/cancel.h"
#include "history/history.h"
#include "serve/guests-page.h"
#include "serve/host-page.h"
#include "serve/past-page.h"
#include "watch/watch.h"

static const char *directory;
static struct wss_pasts *pasts;
static struct wss_advisor *advisor;
static struct wss_cancel cancel;

static void on_sample(const struct wss_watched *guest, const struct wss_sample *sample,
		      void *unused)
{
	(void)unused;
	if (wss_sample_measured(sample))
		wss_pasts_add(pasts, guest->uuid, sample);
}

static int read_past(const char *uuid, void *unused, struct wss_error *err)
{
	(void)unused;
	return wss_pasts_read(pasts, uuid, err);
}

static FILE *page_open(const char *name)
{
	char path[4096];
	FILE *stream;

	snprintf(path, sizeof(path), "%s/%s.json", directory, name);
	stream = fopen(path, "w");
	assert_non_null(stream);
	return stream;
}

static void pages_write(const struct wss_watch *watch, const struct wss_watch_options *options,
			uint64_t since_ns)
{
	const struct wss_service_facts facts = {
		.options = options, .advisor = advisor, .since_ns = since_ns, .connected = true};
	time_t now = wss_clock_wall_seconds();
	FILE *stream = page_open("host");

	wss_host_page_write(stream, watch, &facts);
	fclose(stream);
	stream = page_open("guests");
	wss_guests_page_write(stream, watch, &facts);
	fclose(stream);
	stream = page_open("trends");
	wss_trends_page_write(stream, watch, pasts, now);
	fclose(stream);
	for (size_t i = 0; i < n_guests; i++) {
		const struct wss_past *past = wss_pasts_find(pasts, guests[i].uuid);

		if (!past)
			continue;
		stream = page_open(guests[i].uuid);
		wss_past_page_write(stream, past, now);
		fclose(stream);
	}
}

/* Whether there is something to show of each guest. */
static bool ready(const struct wss_watch *watch, bool history)
{
	size_t states[WSS_WATCHED_STATES] = {0};
	bool read = true;

	for (size_t i = 0; i < wss_watch_count(watch); i++) {
		const struct wss_watched *guest = wss_watch_guest(watch, i);

		states[guest->state]++;
		read = read && wss_advisor_find(advisor, guest->uuid);
	}
	return states[WSS_WATCHED_REFUSED] && states[WSS_WATCHED_LEFT_OUT] &&
	       guests[0].begins > 4 && (read || !history);
}

static void prepare(struct wss_watch_options *options)
{
	invent_guests(3);
	guests[0].touched = wss_pageset_new(64 * WSS_MIB / 4096);
	assert_int_equal(wss_pageset_add(guests[0].touched, 1024, 256), 256);
	guests[1].predicted.stall_ns = 101 * MS;
	guests[2].opted_out = true;
	wss_watch_options_init(options);
	wss_measure_options_init(&options->measure, 20 * MS);
	options->measure.method = &method_ops;
	options->measure.window.growth = true;
	options->canary_ns = 10 * MS;
	options->period_ns = 100 * MS;
	options->boot_ns = 0;
	options->budget.guest_share = 1;
	options->budget.stall_ns = 100 * MS;
	options->fault_ns = 1000;
	options->cancel = &cancel;
}

int main(int argc, char **argv)
{
	static const struct wss_watch_events events = {.sample = on_sample};
	uint64_t since_ns = wss_clock_now_ns(), end_ns = since_ns + 60 * WSS_NS_PER_S;
	struct wss_watch_options options;
	struct wss_advisor_options advice;
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_history *history = NULL;
	struct wss_hypervisor *hypervisor;
	struct wss_watch *watch;

	if (argc < 2)
		return 2;
	directory = argv[1];
	assert_int_equal(wss_cancel_open(&cancel, NULL, NULL), 0);
	if (argc > 2 && wss_history_open(argv[2], &history, &err) < 0) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	pasts = wss_pasts_new(history);
	wss_advisor_options_init(&advice);
	advice.pauses = 0;
	advice.period_ns = 0;
	advice.read_more = read_past;
	advisor = wss_advisor_new(history, &advice);
	prepare(&options);
	hypervisor = hypervisor_new();
	assert_int_equal(wss_watch_new_with(hypervisor, &options, &events, NULL, &watch, NULL), 0);
	while (!ready(watch, history) && wss_clock_now_ns() < end_ns) {
		wss_watch_step(watch);
		assert_true(wss_advisor_step(advisor, watch, NULL) >= 0);
	}
	pages_write(watch, &options, since_ns);
	wss_cancel_request(&cancel);
	while (wss_watch_step(watch))
		;
	wss_watch_free(watch);
	wss_hypervisor_unref(hypervisor);
	forget();
	wss_pageset_free(guests[0].touched);
	wss_advisor_free(advisor);
	wss_pasts_free(pasts);
	wss_history_close(history);
	wss_cancel_close(&cancel);
	return 0;
}
