/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "watch/watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/number.h"
#include "measure/kvm-cost.h"
#include "measure/pool.h"
#include "watch/watch-private.h"

/* Windows at the same time: those that fall due while one lasts, and as many again. */
#define JOBS_MIN 8
#define JOBS_MAX 64
/* Visits without a sample yet, beside the windows that are open: libvirt answers that many at once. */
#define VISITS_MORE 16
_Static_assert(JOBS_MAX + VISITS_MORE == WSS_WATCH_VISITS_MAX, "the most visits at the same time");
/* No two guests of a host are armed within this, unless their periods need it. */
#define STAGGER_NS WSS_NS_PER_S
/* After a stop request, until guests count as restored: the service ends within five seconds. */
#define RESTORE_NS (3 * WSS_NS_PER_S)
/*
 * The longest wait of a step, which is how late it may notice a stop request, or take a sample that a worker has
 * brought: with many guests, waking for each of them would be a third of all wake-ups. And how often the guests that
 * are due are looked for.
 */
#define STEP_NS (200 * WSS_NS_PER_MS)
#define DUE_MIN_NS (20 * WSS_NS_PER_MS)

void wss_watch_options_init(struct wss_watch_options *options)
{
	*options = (struct wss_watch_options){
		.period_ns = WSS_WATCH_PERIOD_NS,
		.canary_ns = WSS_WATCH_CANARY_NS,
		.boot_ns = WSS_WATCH_BOOT_NS,
		.list_ns = WSS_WATCH_LIST_NS,
		.pressure_share = WSS_WATCH_PRESSURE_SHARE,
		.ages_bytes = WSS_WATCH_AGES_BYTES,
		.visits_max = WSS_WATCH_VISITS_MAX,
		.budget = WSS_BUDGET_INIT,
		.fault_ns = ((struct wss_kvm_cost)WSS_KVM_COST_FALLBACK).fault_ns,
	};
	wss_measure_options_init(&options->measure, WSS_WATCH_WINDOW_NS);
}

const char *wss_watched_state_name(enum wss_watched_state state)
{
	static const char *const names[] = {
		[WSS_WATCHED_WAITING] = "waiting",   [WSS_WATCHED_MEASURING] = "measuring",
		[WSS_WATCHED_REFUSED] = "refused",   [WSS_WATCHED_HELD] = "held",
		[WSS_WATCHED_LEFT_OUT] = "left out", [WSS_WATCHED_PAUSED] = "paused",
		[WSS_WATCHED_STOPPED] = "stopped",
	};

	return names[state];
}

bool wss_watched_has_wss(const struct wss_watched *guest)
{
	return guest->measured && guest->sample.wss_bytes.known;
}

const char *wss_coarse_name(enum wss_coarse coarse)
{
	static const char *const names[] = {
		[WSS_COARSE_NOT] = "",
		[WSS_COARSE_SETTING] = "setting",
		[WSS_COARSE_CONTINUOUS] = "continuous",
		[WSS_COARSE_UNSUPPORTED] = "unsupported",
		[WSS_COARSE_BUDGET] = "budget",
		[WSS_COARSE_BUSY] = "busy",
		[WSS_COARSE_FAILED] = "failed",
	};

	return names[coarse];
}

/* --- visits --- */

void wss_watch_set_pace(struct wss_watch *watch)
{
	uint64_t n = watch->n ? watch->n : 1, period_ns = watch->options.period_ns;
	uint64_t window_ns = watch->options.measure.window.track.window_ns;
	uint64_t jobs = wss_u64_mul(2 * n, window_ns) / period_ns;

	jobs = wss_u64_max(JOBS_MIN, wss_u64_min(jobs, JOBS_MAX));
	jobs = wss_u64_min(jobs, watch->options.visits_max);
	watch->visits_max = wss_u64_min(jobs + VISITS_MORE, watch->options.visits_max);
	wss_round_set_pace(watch->round, (unsigned)jobs,
			   wss_u64_min(STAGGER_NS, period_ns / (2 * n)));
}

/*
 * NULL: it is not listed any more, or has been away: what has the same UUID now is another guest, to which nothing
 * counts that comes late of this visit.
 */
static struct wss_watch_guest *watch_find_visited(const struct wss_watch *watch,
						  struct wss_visit *visit)
{
	struct wss_watch_guest *guest = wss_watch_guests_find(watch, visit->uuid, &visit->index);

	return guest && guest->visit == visit ? guest : NULL;
}

void wss_watch_visit_started(struct wss_watch *watch, struct wss_watch_guest *guest)
{
	/* There may be guests for which there was no room. */
	if (guest->starting && watch->n_starting == watch->visits_max)
		watch->due_ns = 0;
	watch->n_starting -= guest->starting;
	guest->starting = false;
}

int wss_watch_hypervisor(const struct wss_watch *watch, struct wss_hypervisor **ret_hypervisor,
			 struct wss_error *err)
{
	struct wss_hypervisor *listing = wss_lister_hypervisor(watch->lister);

	if (watch->pool)
		return wss_pool_lease(watch->pool, listing, ret_hypervisor, err);
	*ret_hypervisor = wss_hypervisor_ref(listing);
	return 0;
}

static int watch_visit(struct wss_watch *watch, struct wss_watch_guest *guest,
		       struct wss_error *err)
{
	const struct wss_domain_ref ref = {guest->watched.name, guest->watched.uuid};
	struct wss_measure_options measure;
	struct wss_hypervisor *hypervisor;
	struct wss_target *target;
	struct wss_visit *visit;

	if (wss_watch_hypervisor(watch, &hypervisor, err) < 0)
		return -1;
	target = wss_target_new(hypervisor, &ref, WSS_TARGET_DEADLINE_NS, watch->options.cancel,
				err);
	wss_hypervisor_unref(hypervisor);
	if (!target)
		return -1;
	visit = wss_visit_new(&watch->options, guest);
	if (!visit) {
		wss_target_free(target);
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	}
	visit->target = target;
	target->data = visit;
	target->release_data = wss_visit_free;
	measure = wss_visit_options(visit);
	if (wss_round_join(watch->round, target, &measure, true, err) < 0) {
		wss_target_free(target);
		return -1;
	}
	guest->watched.state = WSS_WATCHED_MEASURING;
	guest->visit = visit;
	guest->starting = true;
	watch->n_starting++;
	return 0;
}

/* This thread and the visit's have worked for the guest; NULL: it is not listed any more. */
static void watch_charge_visit(struct wss_watch *watch, struct wss_watch_guest *guest,
			       struct wss_target *target)
{
	struct wss_visit *visit = target->data;
	uint64_t cpu_ns;

	wss_target_charge(target);
	cpu_ns = atomic_load(&target->cpu_ns);
	wss_watch_charge(watch, guest, cpu_ns - visit->charged_ns);
	visit->charged_ns = cpu_ns;
}

static void watch_start(struct wss_watch *watch, size_t i)
{
	struct wss_watch_guest *guest = watch->guests[i];
	struct wss_error error = WSS_ERROR_INIT;

	if (watch_visit(watch, guest, &error) < 0)
		wss_watch_guest_fail(guest, &error);
	else
		guest->visit->index = i;
	wss_watch_charge(watch, guest, wss_clock_take_thread_ns());
}

/* Starts the guests that are due, if it is time to, and finds out when the next ones will be. */
static void watch_start_due(struct wss_watch *watch)
{
	uint64_t now_ns = wss_clock_now_ns(), next_ns = wss_watch_tick_ns(now_ns + STEP_NS);

	if (now_ns < watch->due_ns)
		return;
	for (size_t looked = 0; looked < watch->n && watch->n_starting < watch->visits_max;
	     looked++) {
		size_t i = watch->turn++ % watch->n;
		const struct wss_watch_guest *guest = watch->guests[i];

		if (guest->visit)
			continue;
		if (guest->watched.next_ns <= now_ns)
			watch_start(watch, i);
		else
			next_ns = wss_u64_min(next_ns, guest->watched.next_ns);
	}
	watch->due_ns = wss_u64_max(next_ns, now_ns + DUE_MIN_NS);
}

static void watch_on_sample(struct wss_target *target, const struct wss_sample *sample, bool last,
			    void *opaque)
{
	struct wss_watch *watch = opaque;
	struct wss_visit *visit = target->data;
	struct wss_watch_guest *guest = watch_find_visited(watch, visit);

	(void)last;
	if (!guest) {
		atomic_store(&visit->over, true);
	} else {
		wss_watch_visit_started(watch, guest);
		if (wss_watch_guest_take(guest, visit, sample) && watch->events.sample)
			watch->events.sample(&guest->watched, sample, watch->opaque);
	}
	watch_charge_visit(watch, guest, target);
}

static void watch_on_left_out(struct wss_target *target, void *opaque)
{
	struct wss_visit *visit = target->data;
	struct wss_watch_guest *guest = watch_find_visited(opaque, visit);

	if (!guest)
		return;
	wss_watch_guest_fail(guest, &target->error);
	guest->watched.policy = target->policy;
	if (target->policy.opt_out)
		guest->watched.state = WSS_WATCHED_LEFT_OUT;
}

/* Its worker may still run: of the visit only what was set before it began may be looked at. */
static void watch_on_trouble(struct wss_target *target, const struct wss_error *error, void *opaque)
{
	struct wss_visit *visit = target->data;
	struct wss_watch_guest *guest = watch_find_visited(opaque, visit);

	if (guest)
		wss_watch_guest_fail(guest, error);
}

static void watch_on_done(struct wss_target *target, void *opaque)
{
	struct wss_visit *visit = target->data;
	struct wss_watch *watch = opaque;
	struct wss_watch_guest *guest = watch_find_visited(watch, visit);

	watch_charge_visit(watch, guest, target);
	if (!guest)
		return;
	wss_watch_visit_started(watch, guest);
	guest->visit = NULL;
	watch->due_ns = wss_u64_min(watch->due_ns, guest->watched.next_ns);
	if (guest->watched.state == WSS_WATCHED_MEASURING)
		guest->watched.state = WSS_WATCHED_WAITING;
}

/* --- the whole --- */

/* A host whose pressure is not known is never held for it, which is said once. */
static struct wss_pressure_hold *watch_pressure_new(double limit_share)
{
	struct wss_error error = WSS_ERROR_INIT;
	struct wss_pressure_hold *hold;

	if (wss_pressure_hold_new(limit_share, &hold, &error) == 0)
		return hold;
	wss_log(WSS_LOG_INFO, "memory pressure pauses nothing: %s", error.text);
	return NULL;
}

/* Forgets what was seen: the next step looks again. */
static void watch_set_pressure(struct wss_watch *watch, double limit_share)
{
	watch->pressure_ns += wss_pressure_hold_ns(watch->pressure, NULL);
	wss_pressure_hold_free(watch->pressure);
	watch->pressure = limit_share > 0 ? watch_pressure_new(limit_share) : NULL;
	watch->options.pressure_share = limit_share;
}

int wss_watch_new_with(struct wss_hypervisor *hypervisor, const struct wss_watch_options *options,
		       const struct wss_watch_events *events, void *opaque,
		       struct wss_watch **ret_watch, struct wss_error *err)
{
	static const struct wss_round_events round_events = {
		.left_out = watch_on_left_out,
		.sample = watch_on_sample,
		.trouble = watch_on_trouble,
		.done = watch_on_done,
	};
	struct wss_round_options round = {.jobs = JOBS_MIN,
					  .cancel = options->cancel,
					  .at_once = true,
					  .cancel_ns = RESTORE_NS};
	struct wss_watch *watch = calloc(1, sizeof(*watch));

	if (!watch)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	watch->options = *options;
	watch->events = *events;
	watch->opaque = opaque;
	round.measure = options->measure;
	if (!hypervisor)
		watch->pool = wss_pool_new(&watch->options.hypervisor);
	watch->lister = wss_lister_new(&watch->options, hypervisor, watch->pool);
	watch->publisher = wss_publisher_new();
	watch->saver = wss_ages_saver_new();
	watch->ages_budget = wss_cold_budget_new(options->ages_bytes);
	if (!watch->ages_budget || !watch->lister || !watch->publisher || !watch->saver ||
	    (!hypervisor && !watch->pool) ||
	    wss_round_new(&round, &round_events, watch, &watch->round, err) < 0) {
		wss_watch_free(watch);
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	}
	watch_set_pressure(watch, options->pressure_share);
	*ret_watch = watch;
	return 0;
}

int wss_watch_new(const struct wss_watch_options *options, const struct wss_watch_events *events,
		  void *opaque, struct wss_watch **ret_watch, struct wss_error *err)
{
	return wss_watch_new_with(NULL, options, events, opaque, ret_watch, err);
}

/* Visits arm no other window. */
static void watch_end_visits(struct wss_watch *watch)
{
	for (size_t i = 0; i < watch->n; i++)
		wss_watch_guest_end_visit(watch->guests[i]);
}

/*
 * What this thread has used up to now was for no guest. What the others use is charged at the end of their work, so that
 * all that is not yet charged is at times more than it will be; as a counter it never falls.
 */
static void watch_count_uncharged(struct wss_watch *watch)
{
	uint64_t process_ns = wss_clock_process_ns();

	wss_clock_take_thread_ns();
	watch->uncharged_ns = wss_u64_max(watch->uncharged_ns,
					  process_ns - wss_u64_min(process_ns, watch->charged_ns));
}

uint64_t wss_watch_uncharged_ns(const struct wss_watch *watch)
{
	return watch->uncharged_ns;
}

bool wss_watch_step(struct wss_watch *watch)
{
	uint64_t wait_ns = STEP_NS, now_ns;

	/* Before the list, which may find that the connection that told of them is lost. */
	wss_watch_guests_take_reboots(watch);
	wss_watch_guests_update(watch);
	if (wss_pressure_hold_step(watch->pressure, watch))
		watch_end_visits(watch);
	wss_watch_fit_ages(watch);
	wss_ages_saver_step(watch->saver, watch);
	watch_count_uncharged(watch);
	if (!wss_watch_held(watch) && wss_lister_hypervisor(watch->lister) &&
	    !wss_cancel_requested(watch->options.cancel)) {
		watch_start_due(watch);
		now_ns = wss_clock_now_ns();
		wait_ns = watch->due_ns > now_ns ? watch->due_ns - now_ns : 0;
	}
	if (wss_cancel_requested(watch->options.cancel))
		return wss_round_step_for(watch->round, wait_ns);
	wss_lister_wait(watch->lister, wait_ns);
	wss_round_step_for(watch->round, 0);
	wss_publisher_step(watch);
	return true;
}

void wss_watch_change(struct wss_watch *watch, const struct wss_watch_options *options)
{
	struct wss_watch_options *own = &watch->options;
	uint64_t now_ns = wss_clock_now_ns();

	own->measure = options->measure;
	own->period_ns = options->period_ns;
	own->canary_ns = options->canary_ns;
	own->boot_ns = options->boot_ns;
	own->budget = options->budget;
	own->continuous = options->continuous;
	own->ages_bytes = options->ages_bytes;
	wss_cold_budget_set_limit(watch->ages_budget, options->ages_bytes);
	wss_watch_set_pace(watch);
	watch_set_pressure(watch, options->pressure_share);
	for (size_t i = 0; i < watch->n; i++) {
		struct wss_watched *watched = &watch->guests[i]->watched;

		wss_watch_guest_end_visit(watch->guests[i]);
		watch->guests[i]->coarse_until_ns = 0;
		/* Spread over the period again, as at the start. */
		watched->next_ns =
			wss_u64_min(watched->next_ns, now_ns + own->period_ns / watch->n * (i + 1));
	}
}

void wss_watch_hold(struct wss_watch *watch, const char *reason)
{
	uint64_t now_ns = wss_clock_now_ns();

	if (watch->is_held)
		watch->held_ns += now_ns - watch->held_since_ns;
	watch->held_since_ns = now_ns;
	watch->is_held = reason != NULL;
	snprintf(watch->held, sizeof(watch->held), "%s", reason ? reason : "");
	if (reason)
		watch_end_visits(watch);
}

const char *wss_watch_held(const struct wss_watch *watch)
{
	return watch->is_held ? watch->held : wss_pressure_hold_reason(watch->pressure);
}

const char *wss_watch_holder_name(enum wss_watch_holder holder)
{
	static const char *const names[] = {
		[WSS_HOLDER_OPERATOR] = "operator",
		[WSS_HOLDER_PRESSURE] = "pressure",
		[WSS_HOLDER_GUEST_PRESSURE] = "guest pressure",
	};

	return names[holder];
}

uint64_t wss_watched_pressed_ns(const struct wss_watched *guest)
{
	return guest->pressed_ns +
	       (guest->pressed_since_ns ? wss_clock_now_ns() - guest->pressed_since_ns : 0);
}

static uint64_t guests_pressed_ns(const struct wss_watch *watch)
{
	uint64_t sum_ns = watch->gone.pressed_ns;

	for (size_t i = 0; i < watch->n; i++)
		sum_ns += wss_watched_pressed_ns(&watch->guests[i]->watched);
	return sum_ns;
}

uint64_t wss_watch_held_ns(const struct wss_watch *watch, enum wss_watch_holder holder)
{
	if (holder == WSS_HOLDER_GUEST_PRESSURE)
		return guests_pressed_ns(watch);
	if (holder == WSS_HOLDER_PRESSURE)
		return watch->pressure_ns + wss_pressure_hold_ns(watch->pressure, NULL);
	return watch->held_ns + (watch->is_held ? wss_clock_now_ns() - watch->held_since_ns : 0);
}

uint64_t wss_watch_held_now_ns(const struct wss_watch *watch)
{
	uint64_t now_ns;

	if (watch->is_held)
		return wss_clock_now_ns() - watch->held_since_ns;
	wss_pressure_hold_ns(watch->pressure, &now_ns);
	return now_ns;
}

void wss_watch_free(struct wss_watch *watch)
{
	if (!watch)
		return;
	wss_round_free(watch->round);
	wss_publisher_free(watch->publisher);
	wss_lister_free(watch->lister);
	wss_pool_free(watch->pool);
	for (size_t i = 0; i < watch->n; i++) {
		wss_ages_saver_add(watch->saver, watch->guests[i]);
		/* Its target is gone, or is its worker's. */
		watch->guests[i]->visit = NULL;
		wss_watch_guest_free(watch->guests[i]);
	}
	wss_ages_saver_end(watch->saver);
	wss_cold_budget_unref(watch->ages_budget);
	wss_pressure_hold_free(watch->pressure);
	free(watch->guests);
	free(watch);
}
