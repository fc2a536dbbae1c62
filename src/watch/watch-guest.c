/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the watch knows of a guest, and what comes of its visits and reboots. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/number.h"
#include "base/units.h"
#include "watch/watch-private.h"

/* A guest that is another than before is looked at again after so long. */
#define SOON_NS WSS_NS_PER_S
/* The kernel's averages of memory pressure are those of so long. */
#define PRESSED_NS (10 * WSS_NS_PER_S)

struct wss_watch_guest *wss_watch_guest_new(const struct wss_watch_options *options,
					    const char *uuid, struct wss_cold_budget *budget)
{
	struct wss_watch_guest *guest = calloc(1, sizeof(*guest));

	if (!guest)
		return NULL;
	memcpy(guest->watched.uuid, uuid, sizeof(guest->watched.uuid));
	guest->watched.since_ns = guest->watched.next_ns = wss_clock_now_ns();
	guest->watched.period_ns = options->period_ns;
	guest->budget = budget;
	guest->aging = wss_aging_new(options->ages, uuid, budget);
	return guest;
}

void wss_watch_guest_end_visit(struct wss_watch_guest *guest)
{
	if (guest->visit)
		atomic_store(&guest->visit->over, true);
}

void wss_watch_guest_free(struct wss_watch_guest *guest)
{
	wss_watch_guest_end_visit(guest);
	wss_aging_unref(guest->aging);
	free(guest->cgroup.path);
	free(guest);
}

/* --- reboots --- */

/* What is known of its windows counts no more: it begins again with a canary. */
static void guest_begin_anew(struct wss_watch_guest *guest)
{
	wss_pace_reset(&guest->watched.pace);
	memset(guest->lessons, 0, sizeof(guest->lessons));
	guest->coarse_until_ns = 0;
	guest->coarse_told = WSS_COARSE_NOT;
	guest->busy_told = false;
}

static void guest_hold_after_reboot(struct wss_watch_guest *guest, uint64_t boot_ns)
{
	struct wss_watched *watched = &guest->watched;

	watched->state = WSS_WATCHED_HELD;
	watched->next_ns = wss_u64_add(guest->rebooted_ns, boot_ns);
	wss_error_clear(&watched->why);
	wss_error_set(&watched->why, WSS_ERR_BUSY, WSS_WHY_REBOOTED);
}

void wss_watch_guest_reboot(struct wss_watch_guest *guest, const struct wss_watch_options *options,
			    struct wss_ages_saver *saver)
{
	struct wss_aging *after;

	guest->rebooted_ns = wss_clock_now_ns();
	wss_watch_guest_end_visit(guest);
	guest_begin_anew(guest);
	after = wss_aging_new_after(guest->aging, options->ages, guest->watched.uuid,
				    guest->budget);
	wss_ages_saver_add(saver, guest);
	wss_aging_unref(guest->aging);
	guest->aging = after;
	if (!guest->visit)
		guest_hold_after_reboot(guest, options->boot_ns);
	wss_log_guest(WSS_LOG_INFO, guest->watched.name, guest->watched.uuid,
		      "has rebooted: its ages begin again");
}

/* --- samples --- */

void wss_watch_guest_fail(struct wss_watch_guest *guest, const struct wss_error *why)
{
	uint64_t pause_ns = guest->watched.period_ns;

	if (why->code == WSS_ERR_CONNECT)
		pause_ns = wss_u64_min(pause_ns, WSS_WATCH_RETRY_NS);
	guest->watched.state =
		why->code == WSS_ERR_STOPPED ? WSS_WATCHED_STOPPED : WSS_WATCHED_WAITING;
	guest->watched.why = *why;
	guest->watched.next_ns = wss_clock_now_ns() + pause_ns;
}

/* When the window of a sample that has just come began, or the visit did. */
static uint64_t window_start_ns(const struct wss_visit *visit, const struct wss_sample *sample)
{
	uint64_t ago_ns = sample->window_ns.value;

	return visit->continuous ? wss_u64_max(visit->start_ns, wss_clock_now_ns() - ago_ns)
				 : visit->start_ns;
}

/* The visit goes on with another window like this one, unless the next is to be of another kind. */
static void visit_continue(struct wss_visit *visit, const struct wss_watch_guest *guest,
			   const struct wss_window_plan *plan)
{
	if (!visit->continuous)
		return;
	visit->pace = guest->watched.pace;
	visit->debt = guest->debt;
	if (plan->verdict != WSS_VERDICT_ALLOWED || plan->kind != visit->kind)
		atomic_store(&visit->over, true);
	atomic_store(&visit->next_ns, guest->watched.next_ns);
}

/*
 * Charges the guest with the cost of a window that was armed. The faults of the window before that came after its
 * sample were not known then, so that they count now. Returns what was charged.
 */
static struct wss_window_cost guest_charge(struct wss_watch_guest *guest, struct wss_visit *visit,
					   const struct wss_sample *sample,
					   const struct wss_window_cost *cost)
{
	struct wss_watched *watched = &guest->watched;
	struct wss_window_cost charged =
		wss_window_cost_of(cost->stall_ns, wss_u64_add(cost->faults, visit->late_faults),
				   visit->options.fault_ns, visit->n_vcpus);

	charged.vcpu_ns = wss_u64_add(charged.vcpu_ns,
				      wss_visit_preparation_ns(visit) + sample->cost.memory_ns);
	visit->admitted = false;
	watched->windows++;
	watched->spent_vcpu_ns += charged.vcpu_ns;
	watched->spent_ns += visit->n_vcpus ? charged.vcpu_ns / visit->n_vcpus : 0;
	watched->longest_stall_ns = wss_u64_max(watched->longest_stall_ns, cost->stall_ns);
	guest->debt = wss_visit_debt(visit, sample);
	guest->memory = visit->memory;
	guest->lessons[visit->kind] = visit->lessons;
	return charged;
}

/* A window that was armed: what it has cost, and when the next one may be. */
static void guest_account(struct wss_watch_guest *guest, struct wss_visit *visit,
			  const struct wss_sample *sample)
{
	struct wss_watched *watched = &guest->watched;
	struct wss_window_cost bound = visit->bound, cost = wss_visit_cost(visit, sample);
	struct wss_window_cost charged = guest_charge(guest, visit, sample, &cost);
	struct wss_window_plan plan;

	/* A method that predicts nothing is taken at its word afterwards. */
	if (!sample->cost.predicted_stall_ns.known)
		bound = cost;
	watched->dearer += wss_pace_account(&watched->pace, &visit->options.budget, visit->kind,
					    &bound, &cost);
	plan = wss_pace_plan(&watched->pace, &visit->options.budget, &charged, visit->n_vcpus,
			     visit->wanted, visit->period_ns);
	watched->period_ns = plan.period_ns;
	watched->next_ns =
		wss_watch_tick_ns(wss_u64_add(window_start_ns(visit, sample), plan.period_ns));
	visit_continue(visit, guest, &plan);
}

/* --- fine windows that are not possible --- */

/*
 * Logs it once, but a reason that passes apart from one that stays, which says what its figures are from now on; and
 * that again when another one takes its place.
 */
static void guest_tell_coarse(struct wss_watch_guest *guest, enum wss_coarse coarse,
			      const char *why)
{
	const struct wss_watched *watched = &guest->watched;
	bool busy = coarse == WSS_COARSE_BUSY;

	if (busy ? guest->busy_told : guest->coarse_told == coarse)
		return;
	if (busy)
		guest->busy_told = true;
	else
		guest->coarse_told = coarse;
	wss_log_guest(
		WSS_LOG_INFO, watched->name, watched->uuid,
		busy ? "a working set is an upper limit, because its window could not be by 4 KiB; the next one "
		       "is tried again: %s"
		     : "its working sets are upper limits, because its memory is on pages of more than 4 KiB: %s",
		why);
}

static void guest_set_coarse(struct wss_watch_guest *guest, enum wss_coarse coarse, const char *why)
{
	struct wss_watched *watched = &guest->watched;

	watched->coarse = coarse;
	wss_error_clear(&watched->coarse_why);
	if (coarse == WSS_COARSE_NOT)
		return;
	wss_error_set(&watched->coarse_why, WSS_ERR_UNSUPPORTED, "%s", why);
	guest_tell_coarse(guest, coarse, why);
}

static enum wss_coarse coarse_of(const struct wss_visit *visit, const struct wss_error *error)
{
	if (visit->end == WSS_VISIT_REFUSED)
		return WSS_COARSE_BUDGET;
	if (error->code == WSS_ERR_BUSY || error->code == WSS_ERR_TIMEOUT)
		return WSS_COARSE_BUSY;
	return error->code == WSS_ERR_UNSUPPORTED ? WSS_COARSE_UNSUPPORTED : WSS_COARSE_FAILED;
}

/*
 * Whether a window of any kind would have failed for the same reason: the guest could not be opened, is paused or
 * stopped, or somebody else measures it or has a job with it, which is found out before a window is admitted.
 */
static bool failure_is_of_guest(const struct wss_visit *visit, const struct wss_error *error)
{
	return !visit->target->guest || visit->target->guest->state == WSS_GUEST_PAUSED ||
	       error->code == WSS_ERR_STOPPED || error->code == WSS_ERR_CONNECT ||
	       error->code == WSS_ERR_GONE || (error->code == WSS_ERR_BUSY && !visit->found.pid);
}

/*
 * A fine window that failed is followed by a coarse one, at once, or when the guest has paid for it. Whether the guest
 * itself is the reason, that one finds out where it is not known. Returns whether it is so.
 */
static bool guest_fall_back(struct wss_watch_guest *guest, struct wss_visit *visit,
			    const struct wss_error *error)
{
	enum wss_coarse coarse = coarse_of(visit, error);
	uint64_t now_ns = wss_clock_now_ns();

	if (visit->kind != WSS_WINDOW_FINE || visit->end == WSS_VISIT_BOOTING ||
	    visit->end == WSS_VISIT_PRESSED || visit->end == WSS_VISIT_RENEWED ||
	    failure_is_of_guest(visit, error) ||
	    visit->options.measure.window.track.granularity != WSS_GRANULARITY_AUTO)
		return false;
	/* What is only so for now is tried again in the next period. */
	guest->coarse_until_ns = wss_u64_add(
		now_ns, coarse == WSS_COARSE_BUSY ? SOON_NS + guest->watched.period_ns / 2
						  : WSS_WATCH_FINE_RETRY_NS);
	guest_set_coarse(guest, coarse, error->text);
	guest->watched.why = (struct wss_error)WSS_ERROR_INIT;
	guest->watched.next_ns = now_ns + SOON_NS;
	return true;
}

static void guest_explain_coarse(struct wss_watch_guest *guest, const struct wss_visit *visit)
{
	const struct wss_watch_options *options = &visit->options;

	if (guest->watched.sample.granularity_bytes.value <= 4096)
		guest_set_coarse(guest, WSS_COARSE_NOT, NULL);
	else if (options->measure.window.track.granularity == WSS_GRANULARITY_NATIVE)
		guest_set_coarse(guest, WSS_COARSE_SETTING, "granularity native is configured");
	else if (options->continuous)
		guest_set_coarse(
			guest, WSS_COARSE_CONTINUOUS,
			"windows that follow each other (continuous) are longer than QEMU's dirty log lasts");
	else if (visit->kind == WSS_WINDOW_FINE) {
		guest->coarse_until_ns = wss_u64_add(wss_clock_now_ns(), WSS_WATCH_FINE_RETRY_NS);
		guest_set_coarse(guest, WSS_COARSE_FAILED,
				 "QEMU's dirty log was not on throughout a window");
	}
}

/* A canary's window is shorter than the others: what it found is not the guest's working set. */
static void sample_drop_working_set(struct wss_sample *sample)
{
	const struct wss_amount unknown = {.known = false};

	sample->wss_bytes = sample->low_bytes = sample->high_bytes = unknown;
	sample->written_bytes = sample->written_low_bytes = sample->written_high_bytes = unknown;
	sample->n_curve = 0;
}

static void guest_take_sample(struct wss_watch_guest *guest, struct wss_visit *visit,
			      const struct wss_sample *sample)
{
	struct wss_watched *watched = &guest->watched;

	watched->state = WSS_WATCHED_WAITING;
	watched->why = (struct wss_error)WSS_ERROR_INIT;
	watched->measured = true;
	watched->measured_ns = wss_clock_now_ns();
	watched->kind = visit->kind;
	wss_sample_copy(&watched->sample, sample);
	if (visit->kind == WSS_WINDOW_CANARY)
		sample_drop_working_set(&watched->sample);
	if (guest->aging && wss_aging_lacks_memory(guest->aging))
		wss_sample_note(&watched->sample,
				"ages of memory are known by 2 MiB: the memory for ages is short");
	guest_explain_coarse(guest, visit);
	guest_account(guest, visit, sample);
}

/* A window that was armed has its price, though its figure is of no use; the next one comes when that is paid for. */
static void guest_charge_wasted(struct wss_watch_guest *guest, struct wss_visit *visit,
				const struct wss_sample *sample)
{
	struct wss_watched *watched = &guest->watched;
	struct wss_window_cost cost = wss_visit_cost(visit, sample), charged;
	struct wss_window_plan plan;

	if (!visit->admitted)
		return;
	charged = guest_charge(guest, visit, sample, &cost);
	plan = wss_pace_plan(&watched->pace, &visit->options.budget, &charged, visit->n_vcpus,
			     visit->wanted, visit->period_ns);
	watched->period_ns = plan.period_ns;
	watched->next_ns =
		wss_u64_max(watched->next_ns, wss_u64_add(visit->start_ns, plan.period_ns));
}

static void guest_take_failure(struct wss_watch_guest *guest, struct wss_visit *visit,
			       const struct wss_sample *sample)
{
	const struct wss_error *error = &sample->error;
	struct wss_watched *watched = &guest->watched;

	wss_watch_guest_fail(guest, error);
	/* What a busy host has taught is put to the test again when the next window is due. */
	if (visit->end == WSS_VISIT_REFUSED && wss_lessons_raise_stall(&visit->lessons))
		guest->lessons[visit->kind] = (struct wss_lessons){0};
	/* The dirty-rate calculation of another program, or a job, is found before anything is zapped. */
	if (visit->kind == WSS_WINDOW_FINE && error->code == WSS_ERR_BUSY)
		visit->admitted = false;
	if (guest_fall_back(guest, visit, error)) {
		guest_charge_wasted(guest, visit, sample);
		return;
	}
	guest_charge_wasted(guest, visit, sample);
	if (visit->end == WSS_VISIT_REFUSED) {
		watched->state = WSS_WATCHED_REFUSED;
		watched->period_ns = visit->plan.period_ns;
		watched->next_ns = visit->start_ns + visit->plan.period_ns;
	} else if (visit->end == WSS_VISIT_BOOTING) {
		watched->state = WSS_WATCHED_HELD;
		watched->next_ns = visit->not_before_ns;
	} else if (visit->end == WSS_VISIT_PRESSED) {
		watched->state = WSS_WATCHED_HELD;
		watched->next_ns = wss_clock_now_ns() + wss_u64_min(watched->period_ns, PRESSED_NS);
	} else if (visit->end == WSS_VISIT_RENEWED) {
		guest_begin_anew(guest);
		watched->next_ns = wss_clock_now_ns() + SOON_NS;
	} else if (error->code == WSS_ERR_BUSY) {
		watched->state = WSS_WATCHED_HELD;
	} else if (error->code != WSS_ERR_STOPPED && visit->target->guest &&
		   visit->target->guest->state == WSS_GUEST_PAUSED) {
		watched->state = WSS_WATCHED_PAUSED;
	}
}

/* What the configuration does not say is known once the process was seen. */
static void guest_take_blocked(struct wss_watched *watched, const struct wss_guest *guest,
			       bool attached)
{
	char blocked[WSS_CONFIG_BLOCKS_MAX];

	if (!wss_config_blocks_text(&guest->config, blocked) && !attached)
		return;
	memcpy(watched->blocked, blocked, sizeof(blocked));
	watched->reports_free = guest->config.balloon_reporting;
	watched->examined = true;
}

/* Who was held by its own memory pressure, and for how long, is said when that begins and when it ends. */
static void guest_take_pressure(struct wss_watch_guest *guest, struct wss_visit *visit,
				const char *why)
{
	struct wss_watched *watched = &guest->watched;
	char text[16];

	if (!visit->cgroup.looked)
		return;
	free(guest->cgroup.path);
	guest->cgroup = visit->cgroup;
	visit->cgroup = (struct wss_guest_cgroup){.looked = false};
	if (visit->pressed == (watched->pressed_since_ns != 0))
		return;
	if (visit->pressed) {
		watched->pressed_since_ns = wss_clock_now_ns();
		wss_log_guest(WSS_LOG_INFO, watched->name, watched->uuid, "not measured: %s", why);
		return;
	}
	wss_duration_format(wss_clock_now_ns() - watched->pressed_since_ns, text, sizeof(text));
	watched->pressed_ns = wss_watched_pressed_ns(watched);
	watched->pressed_since_ns = 0;
	wss_log_guest(WSS_LOG_INFO, watched->name, watched->uuid,
		      "measured again: memory pressure of its own held it for %s", text);
}

bool wss_watch_guest_take(struct wss_watch_guest *guest, struct wss_visit *visit,
			  const struct wss_sample *sample)
{
	struct wss_watched *watched = &guest->watched;

	if (visit->n_vcpus)
		watched->n_vcpus = visit->n_vcpus;
	watched->policy = visit->target->policy;
	if (visit->found.pid)
		guest->instance = visit->found;
	guest_take_pressure(guest, visit, sample->error.text);
	if (visit->target->guest) {
		/* Also where it could not be measured. The kernel's slots say nothing of the balloon's size. */
		watched->balloon_bytes = visit->target->guest->balloon_bytes;
		watched->maximum_bytes.value = visit->target->guest->config.maximum_bytes;
		watched->maximum_bytes.known = watched->maximum_bytes.value != 0;
		guest_take_blocked(watched, visit->target->guest, visit->found.pid);
	}
	if (visit->rebooted_ns != guest->rebooted_ns) {
		/* The sample is of neither run, but its window was paid for. */
		guest_charge_wasted(guest, visit, sample);
		guest_hold_after_reboot(guest, visit->options.boot_ns);
		return false;
	}
	if (wss_sample_measured(sample))
		guest_take_sample(guest, visit, sample);
	else
		guest_take_failure(guest, visit, sample);
	return visit->end == WSS_VISIT_MEASURED;
}
