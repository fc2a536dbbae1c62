/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * balloon --apply: the controller, in the foreground until it is stopped, and --restore. What
 * to do is decided by wss/balloon.h; here it is written down, done, and undone.
 */
#include "cmd/balloon.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/stop.h"
#include "base/units.h"
#include "store/journal.h"

/* Between two looks at the statistics. */
#define LOOK_NS (2 * WSS_NS_PER_S)
#define PAUSE_S 10
#define TIMEOUT_S 30

struct charge {
	struct wss_round_guest *entry;
	struct wss_balloon balloon;
	uint64_t original_bytes;
	uint64_t measure_ns; /* when the next window is due */
	bool shrunk;	     /* something is to be given back */
	bool over;
};

struct controller {
	const struct balloon_options *options;
	struct wss_guests *guests;
	struct wss_history *history;
	struct charge *charges;
	size_t n, left;
	struct wss_tally tally;
};

static const char *name_of(const struct charge *charge)
{
	return charge->entry->guest->config.name;
}

static void say(const struct charge *charge, const char *what, uint64_t bytes, const char *why)
{
	char size[16];

	wss_size_format(bytes, size, sizeof(size));
	wss_log(WSS_LOG_INFO, "%s: %s %s: %s", name_of(charge), what, size, why);
}

static int write_journal(struct controller *controller, const struct charge *charge, uint64_t from,
			 uint64_t to, const char *reason, struct wss_error *err)
{
	const struct wss_domxml *config = &charge->entry->guest->config;
	struct wss_journal_step step = {
		.uuid = config->uuid,
		.name = config->name,
		.time = wss_clock_wall_seconds(),
		.original_bytes = charge->original_bytes,
		.from_bytes = from,
		.to_bytes = to,
		.reason = reason,
	};

	return wss_journal_write(controller->history, &step, err);
}

/* Gives back first and writes afterwards: the guest goes before the journal. */
static int give_back(struct controller *controller, struct charge *charge, const char *reason,
		     struct wss_error *err)
{
	struct wss_guest *guest = charge->entry->guest;
	struct wss_error ignored = WSS_ERROR_INIT;

	if (!charge->shrunk)
		return 0;
	if (guest->ops->set_balloon(guest, charge->original_bytes, err) < 0)
		return -1;
	say(charge, "gives back to", charge->original_bytes, reason);
	charge->shrunk = false;
	write_journal(controller, charge, 0, charge->original_bytes, reason, &ignored);
	return wss_journal_done(controller->history, guest->config.uuid, err);
}

static void drop(struct controller *controller, struct charge *charge, const struct wss_error *why)
{
	if (charge->over)
		return;
	charge->over = true;
	controller->left--;
	wss_tally_bad(&controller->tally, name_of(charge), why);
}

static int shrink(struct controller *controller, struct charge *charge, uint64_t from, uint64_t to,
		  const char *reason, struct wss_error *err)
{
	struct wss_guest *guest = charge->entry->guest;

	if (write_journal(controller, charge, from, to, reason, err) < 0)
		return -1;
	charge->shrunk = true;
	say(charge, "shrinks to", to, reason);
	return guest->ops->set_balloon(guest, to, err);
}

static void act(struct controller *controller, struct charge *charge,
		const struct wss_balloon_decision *decision, uint64_t from)
{
	struct wss_error err = WSS_ERROR_INIT, why = WSS_ERROR_INIT;
	int r = 0;

	switch (decision->action) {
	case WSS_BALLOON_HOLD:
		wss_debug("%s: %s", name_of(charge), decision->reason);
		return;
	case WSS_BALLOON_SHRINK:
		r = shrink(controller, charge, from, decision->target_bytes, decision->reason, &err);
		if (r < 0)
			give_back(controller, charge, "the step failed", &why);
		break;
	case WSS_BALLOON_RETURN:
		r = give_back(controller, charge, decision->reason, &err);
		break;
	case WSS_BALLOON_RESTORE:
		r = give_back(controller, charge, decision->reason, &err);
		if (r == 0)
			r = wss_error_set(&err, WSS_ERR_FAILED, "%s: left alone", decision->reason);
		break;
	}
	if (r < 0)
		drop(controller, charge, &err);
}

static void keep_sample(const struct wss_sample *sample, struct wss_round_guest *entry, bool last,
			void *opaque)
{
	struct controller *controller = opaque;
	struct wss_error err = WSS_ERROR_INIT;

	(void)last;
	if (wss_sample_measured(sample) && wss_history_add(controller->history, sample, &err) < 0)
		wss_warn("%s: %s", entry->name, err.text);
	else if (!wss_sample_measured(sample))
		wss_warn("%s: %s", sample->domain, sample->error.text);
}

static void measure(struct controller *controller, struct charge *charge)
{
	struct wss_round_options round = {
		.window = { .window_ns = controller->options->window_ns,
			    .max_stall_ns = WSS_MAX_STALL_DEFAULT_NS,
			    .max_faults = UINT64_MAX },
		.count = 1,
		.interval_ns = controller->options->window_ns,
	};

	charge->measure_ns = wss_clock_now_ns() + controller->options->period_ns;
	wss_round_run(&controller->guests->host, charge->entry, 1, &round, keep_sample, controller,
		      NULL);
}

/* Not while a job is under way, or the guest is paused: it could not answer. */
static bool may_be_touched(const struct balloon_look *look)
{
	return look->facts.running && !look->facts.job;
}

static void tend(struct controller *controller, struct charge *charge)
{
	struct wss_guest *guest = charge->entry->guest;
	struct wss_balloon_decision decision;
	struct wss_error err = WSS_ERROR_INIT;
	struct balloon_look look;

	if (wss_clock_now_ns() >= charge->measure_ns)
		measure(controller, charge);
	if (wss_stop_requested())
		return;
	if (guest->ops->refresh(guest, &err) < 0 ||
	    wss_balloon_look(controller->options, controller->history, charge->entry, &look, &err) <
		    0) {
		struct wss_error why = err;

		give_back(controller, charge, "it cannot be looked at", &err);
		drop(controller, charge, &why);
		return;
	}
	if (!may_be_touched(&look))
		return;
	/* The floor moves with the history; what is left behind never goes below it. */
	charge->balloon.limits.floor_bytes = look.limits.floor_bytes;
	look.view.now_s = wss_clock_now_ns() / WSS_NS_PER_S;
	decision = wss_balloon_next(&charge->balloon, &look.view);
	act(controller, charge, &decision, look.view.actual_bytes.value);
}

/* Takes a guest on: 1, or 0 where it is refused, with the reason in err. */
static int take_on(struct controller *controller, struct wss_round_guest *entry,
		   struct charge *charge, struct wss_error *err)
{
	wss_auto_free struct wss_journal_open *open = NULL;
	struct balloon_look look;
	const char *refusal;
	size_t n;

	if (!entry->guest) {
		*err = entry->error;
		return 0;
	}
	*charge = (struct charge){ .entry = entry };
	if (wss_journal_unfinished(controller->history, entry->guest->config.uuid, &open, &n, err) < 0)
		return 0;
	if (n) {
		wss_error_set(err, WSS_ERR_FAILED,
			      "it has unfinished steps: balloon --restore gives them back");
		return 0;
	}
	if (wss_balloon_look(controller->options, controller->history, entry, &look, err) < 0)
		return 0;
	refusal = wss_balloon_refusal(&look.facts);
	if (!refusal && (!look.view.actual_bytes.known || !entry->guest->ops->set_balloon))
		refusal = "the size of its balloon is not known";
	if (refusal) {
		wss_error_set(err, WSS_ERR_UNSUPPORTED, "refused: %s", refusal);
		return 0;
	}
	look.limits.original_bytes = charge->original_bytes = look.view.actual_bytes.value;
	look.limits.period_s = controller->options->period_ns / WSS_NS_PER_S + 1;
	look.limits.pause_s = PAUSE_S;
	look.limits.timeout_s = TIMEOUT_S;
	wss_balloon_init(&charge->balloon, &look.limits);
	return 1;
}

static void control(struct controller *controller)
{
	while (controller->left && !wss_stop_requested()) {
		uint64_t next_ns = wss_clock_now_ns() + LOOK_NS;

		for (size_t i = 0; i < controller->n && !wss_stop_requested(); i++)
			if (!controller->charges[i].over)
				tend(controller, &controller->charges[i]);
		wss_clock_sleep_until_ns(next_ns);
	}
}

/* True when nothing is left to give back. */
static bool give_all_back(struct controller *controller)
{
	bool well = true;

	for (size_t i = 0; i < controller->n; i++) {
		struct wss_error err = WSS_ERROR_INIT;

		if (give_back(controller, &controller->charges[i], "the controller ends", &err) < 0) {
			wss_log(WSS_LOG_ERROR, "%s: %s", name_of(&controller->charges[i]), err.text);
			well = false;
		}
	}
	return well;
}

static int run_controller(struct controller *controller)
{
	struct wss_guests *guests = controller->guests;
	size_t total = guests->n;

	controller->charges = calloc(total ? total : 1, sizeof(*controller->charges));
	if (!controller->charges)
		return WSS_EXIT_FAILED;
	for (size_t i = 0; i < total; i++) {
		struct wss_error err = WSS_ERROR_INIT;

		if (take_on(controller, &guests->list[i], &controller->charges[controller->n], &err))
			controller->n++;
		else
			wss_tally_bad(&controller->tally, guests->list[i].name, &err);
	}
	controller->left = controller->n;
	control(controller);
	return -1;
}

int wss_balloon_apply(const struct wss_cli *cli, const struct balloon_options *options)
{
	wss_auto_free char *path = wss_store_path(&options->history);
	struct wss_guests guests = WSS_GUESTS_INIT;
	struct controller controller = { .options = options, .guests = &guests };
	struct wss_error err = WSS_ERROR_INIT;
	int watchdog = -1, code = -1;

	if (!path)
		wss_error_set(&err, WSS_ERR_NO_MEMORY, "out of memory");
	if (!path || wss_balloon_watchdog(cli, options, &watchdog, &err) < 0 ||
	    wss_history_open(path, &controller.history, &err) < 0 ||
	    wss_guests_open(cli, &guests, &err) < 0)
		code = wss_cli_error(&err);
	if (code < 0)
		code = run_controller(&controller);
	/* What could not be given back is the watchdog's to go on with. */
	if (watchdog >= 0 && give_all_back(&controller))
		wss_balloon_all_is_well(watchdog);
	if (code < 0)
		code = wss_stop_requested() ? 128 + wss_stop_signal()
					    : wss_tally_exit_code(&controller.tally, guests.n);
	free(controller.charges);
	wss_guests_close(&guests);
	wss_history_close(controller.history);
	return code;
}

static int restore_one(struct wss_history *history, struct wss_conn *conn,
		       const struct wss_journal_open *open, struct wss_error *err)
{
	struct wss_guest *guest = NULL;
	char size[16];
	int r = wss_conn_guest(conn, open->uuid, &guest, err);

	/* A guest that has ended has given everything back. */
	if (r < 0 && err->code == WSS_ERR_GONE)
		wss_error_clear(err);
	else if (r < 0)
		return -1;
	if (guest && guest->state != WSS_GUEST_SHUTOFF) {
		r = guest->ops->set_balloon(guest, open->original_bytes, err);
		wss_guest_free(guest);
		if (r < 0)
			return -1;
		wss_size_format(open->original_bytes, size, sizeof(size));
		wss_log(WSS_LOG_INFO, "%s: given back to %s", open->name, size);
	} else {
		wss_guest_free(guest);
	}
	return wss_journal_done(history, open->uuid, err);
}

static bool is_named(const struct wss_cli *cli, const struct wss_journal_open *open)
{
	bool named = cli->n_domains == 0;

	for (int i = 0; i < cli->n_domains; i++)
		named = named || !strcmp(cli->domains[i], open->name) ||
			!strcasecmp(cli->domains[i], open->uuid);
	return named;
}

int wss_balloon_restore(const struct wss_cli *cli, const struct balloon_options *options)
{
	wss_auto_free char *path = wss_store_path(&options->history);
	wss_auto_free struct wss_journal_open *open = NULL;
	struct wss_history *history = NULL;
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_tally tally = { 0 };
	struct wss_conn *conn = NULL;
	size_t n = 0, total = 0;
	int r = path ? wss_history_open(path, &history, &err) : -1;

	if (r == 0)
		r = wss_journal_unfinished(history, NULL, &open, &n, &err);
	if (r == 0 && n)
		r = wss_conn_open(cli->uri, &conn, &err);
	for (size_t i = 0; r == 0 && i < n; i++) {
		struct wss_error why = WSS_ERROR_INIT;

		if (!is_named(cli, &open[i]))
			continue;
		total++;
		if (restore_one(history, conn, &open[i], &why) < 0)
			wss_tally_bad(&tally, open[i].name, &why);
	}
	wss_conn_close(conn);
	wss_history_close(history);
	return r < 0 ? wss_cli_error(&err) : wss_tally_exit_code(&tally, total);
}
