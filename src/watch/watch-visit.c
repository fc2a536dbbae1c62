/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A visit: what is decided about one window of one guest, in the thread that measures it. */
#include "watch/watch-private.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/number.h"
#include "base/units.h"

/*
 * A fine window costs a fault for each page of 4 KiB. Where it could not be taken at least so often, coarse ones are
 * of more use.
 */
#define FINE_PERIOD_MAX_NS (900 * WSS_NS_PER_S)
/* How often a guest's balloon is asked for statistics. */
#define STATISTICS_S 10
/* PSS and QEMU's own share, for which its page tables are walked, change slowly. */
#define MEMORY_WALK_NS (3600 * WSS_NS_PER_S)

static bool visit_is_fine(const struct wss_visit *visit)
{
	return visit->kind == WSS_WINDOW_FINE;
}

static struct wss_budget visit_budget(const struct wss_visit *visit)
{
	struct wss_budget budget = visit->options.budget;

	if (visit_is_fine(visit) &&
	    visit->options.measure.window.track.granularity == WSS_GRANULARITY_AUTO)
		budget.max_period_ns = wss_u64_min(budget.max_period_ns, FINE_PERIOD_MAX_NS);
	return budget;
}

/* When the process of a guest was started, wss_clock_now_ns() (proc(5), field 22 of stat). */
static uint64_t started_ns(const struct wss_process *process)
{
	long ticks = sysconf(_SC_CLK_TCK);

	return ticks > 0 ? wss_u64_mul(process->start_ticks, WSS_NS_PER_S / (uint64_t)ticks) : 0;
}

/* The guest's memory is not what it will be until it has booted. */
static int check_booted(struct wss_visit *visit, struct wss_error *err)
{
	uint64_t since_ns = started_ns(&visit->target->guest->process);
	bool rebooted = visit->rebooted_ns > since_ns;

	visit->not_before_ns =
		wss_u64_add(wss_u64_max(since_ns, visit->rebooted_ns), visit->options.boot_ns);
	if (visit->not_before_ns <= wss_clock_now_ns())
		return 0;
	visit->end = WSS_VISIT_BOOTING;
	return wss_error_set(err, WSS_ERR_BUSY,
			     rebooted ? WSS_WHY_REBOOTED : "it has just started");
}

/* Is it the guest that the kind of window was chosen for, and has it been up for long enough? */
static int check_instance(struct wss_visit *visit, struct wss_error *err)
{
	const struct wss_guest *guest = visit->target->guest;
	const struct wss_instance *expected = &visit->expected;
	struct wss_instance *found = &visit->found;

	*found = (struct wss_instance){
		.pid = guest->process.pid,
		.start_ticks = guest->process.start_ticks,
		.maximum_bytes = guest->config.maximum_bytes,
	};
	if (found->pid != expected->pid || found->start_ticks != expected->start_ticks)
		visit->memory = (struct wss_window_memory){0};
	if (visit->kind == WSS_WINDOW_CANARY ||
	    (found->pid == expected->pid && found->start_ticks == expected->start_ticks &&
	     found->maximum_bytes <= expected->maximum_bytes))
		return check_booted(visit, err);
	visit->end = WSS_VISIT_RENEWED;
	return wss_error_set(err, WSS_ERR_BUSY, "it has restarted, or has got more memory");
}

static uint64_t expected_faults(const struct wss_visit *visit,
				const struct wss_prediction *prediction)
{
	uint64_t faults = prediction->faults.known ? prediction->faults.value : 0;

	return visit->pages.known ? wss_u64_min(faults, wss_u64_mul(visit->pages.value, 2))
				  : faults;
}

/*
 * The faults that the guest has taken since its last sample, as far as they can be those of the last window:
 * beyond that they are its own. Of another guest, or one that has restarted, nothing is known.
 */
static uint64_t late_faults(const struct wss_visit *visit, const struct wss_prediction *prediction)
{
	const struct wss_fault_debt *debt = &visit->debt;

	if (!debt->so_far.known || !prediction->faults_so_far.known ||
	    prediction->faults_so_far.value < debt->so_far.value ||
	    visit->found.pid != visit->expected.pid ||
	    visit->found.start_ticks != visit->expected.start_ticks)
		return 0;
	return wss_u64_min(debt->most, prediction->faults_so_far.value - debt->so_far.value);
}

/* Sets why the plan arms no window. */
static int refuse(const struct wss_visit *visit, struct wss_error *err)
{
	const struct wss_budget budget = visit_budget(visit);
	char cost[16], limit[16];

	if (visit->plan.verdict == WSS_VERDICT_DEARER)
		return wss_error_set(
			err, WSS_ERR_UNSUPPORTED,
			"its windows have repeatedly cost more than predicted: the next try is in a day");
	if (visit->plan.verdict == WSS_VERDICT_STALL) {
		wss_duration_format(visit->predicted.stall_ns, cost, sizeof(cost));
		wss_duration_format(budget.stall_ns, limit, sizeof(limit));
		return wss_error_set(err, WSS_ERR_UNSUPPORTED,
				     "a window would stall it for about %s, over the limit of %s",
				     cost, limit);
	}
	wss_duration_format(visit->predicted.vcpu_ns, cost, sizeof(cost));
	wss_duration_format(budget.max_period_ns, limit, sizeof(limit));
	return wss_error_set(
		err, WSS_ERR_UNSUPPORTED,
		"a window would cost it about %s of vCPU time, more than %.3g%% of what its vCPUs have in %s",
		cost, 100 * budget.guest_share, limit);
}

/*
 * A guest that stays open: has its operator opted out, has it got more memory, or does the watch want no other
 * window? Then the visit ends without a word, and the next one finds out.
 */
static int visit_check_goes_on(struct wss_visit *visit, struct wss_error *err)
{
	const struct wss_guest *guest = visit->target->guest;
	struct wss_error unused = WSS_ERROR_INIT;

	if (!atomic_load(&visit->over) &&
	    (!visit->windows++ || (wss_target_read_policy(visit->target, &unused) == 0 &&
				   (!guest->balloon_bytes.known ||
				    guest->balloon_bytes.value <= guest->config.maximum_bytes))))
		return 0;
	return wss_error_set(err, WSS_ERR_INTERRUPTED, "interrupted");
}

/* That of the zaps, and of the start of the dirty log. */
static uint64_t stall_in_all_ns(const struct wss_prediction *prediction)
{
	return wss_u64_add(prediction->stall_ns, prediction->log_ns);
}

uint64_t wss_visit_preparation_ns(const struct wss_visit *visit)
{
	return visit_is_fine(visit)
		       ? wss_u64_mul(stall_in_all_ns(&visit->prediction), visit->n_vcpus)
		       : 0;
}

/*
 * Without them a guest has no size. What is refused, because it has another job or libvirt may only be read, is tried
 * again at the next visit.
 */
static void visit_turn_on_statistics(const struct wss_visit *visit)
{
	struct wss_guest *guest = visit->target->guest;
	struct wss_error unused = WSS_ERROR_INIT;

	if (visit->options.balloon_statistics && guest->ops->ask_for_statistics &&
	    guest->config.has_balloon && !guest->config.balloon_statistics && !guest->job[0] &&
	    guest->ops->ask_for_statistics(guest, STATISTICS_S, &unused) == 0) {
		guest->config.balloon_statistics = true;
		guest->config.balloon_period_s = STATISTICS_S;
	}
}

/*
 * A guest's working set changes from window to window. So once its own windows have taught how many faults to expect, a
 * window may have twice as many before it counts as dearer than predicted.
 */
static void visit_predict(struct wss_visit *visit)
{
	const struct wss_prediction *prediction = &visit->prediction;
	uint64_t faults = expected_faults(visit, prediction);
	uint64_t bound = visit->lessons.faults.n
				 ? wss_u64_min(prediction->most_faults, wss_u64_mul(faults, 2))
				 : faults;

	visit->predicted = wss_window_cost_of(stall_in_all_ns(prediction), faults,
					      visit->options.fault_ns, visit->n_vcpus);
	visit->bound = wss_window_cost_of(stall_in_all_ns(prediction), bound,
					  visit->options.fault_ns, visit->n_vcpus);
}

/* As struct wss_window_options' admit; opaque is the visit. */
static int visit_admit(const struct wss_prediction *prediction, void *opaque, struct wss_error *err)
{
	struct wss_visit *visit = opaque;
	const struct wss_target *target = visit->target;
	struct wss_budget budget = visit_budget(visit);

	atomic_store(&visit->next_ns, 0);
	if (visit_check_goes_on(visit, err) < 0)
		return -1;
	visit->n_vcpus = target->guest->config.vcpus;
	visit->period_ns = target->policy.period_ns.known ? target->policy.period_ns.value
							  : visit->options.period_ns;
	if (check_instance(visit, err) < 0)
		return -1;
	if (wss_visit_is_pressed(visit, err)) {
		visit->end = WSS_VISIT_PRESSED;
		return -1;
	}
	visit_turn_on_statistics(visit);
	visit->prediction = *prediction;
	visit->late_faults = late_faults(visit, prediction);
	visit_predict(visit);
	visit->predicted.vcpu_ns = wss_u64_add(
		visit->predicted.vcpu_ns, wss_visit_preparation_ns(visit) + prediction->memory_ns);
	visit->plan = wss_pace_plan(&visit->pace, &budget, &visit->predicted, visit->n_vcpus,
				    visit->kind, visit->period_ns);
	visit->admitted = visit->plan.verdict == WSS_VERDICT_ALLOWED;
	if (visit->admitted)
		return 0;
	visit->end = WSS_VISIT_REFUSED;
	return refuse(visit, err);
}

/* --- what the windows see --- */

static void visit_pages(const struct wss_measure_pages *pages, void *opaque)
{
	struct wss_visit *visit = opaque;
	const struct wss_aging_window window = {
		.start_ns = pages->start_ns,
		.end_ns = pages->end_ns,
		.follows = visit->told_pages,
		.view = pages->view,
		.sample = pages->sample,
	};

	wss_aging_add(visit->aging, visit->target->guest, &window);
	visit->told_pages = visit->continuous;
	if (!visit->continuous)
		wss_aging_look(visit->aging, visit->target->guest);
}

static uint64_t visit_until_ns(void *opaque)
{
	const struct wss_visit *visit = opaque;
	uint64_t next_ns;

	wss_aging_look(visit->aging, visit->target->guest);
	next_ns = atomic_load(&visit->next_ns);
	if (atomic_load(&visit->over))
		return 0;
	return next_ns ? next_ns : UINT64_MAX;
}

/* KVM maps the guest by more than 4 KiB, as far as its last window tells. */
static bool guest_is_large(const struct wss_watched *watched)
{
	return watched->measured &&
	       (watched->kind == WSS_WINDOW_FINE || watched->sample.granularity_bytes.value > 4096);
}

static enum wss_window_kind guest_wants(const struct wss_watch_options *options,
					const struct wss_watch_guest *guest)
{
	enum wss_granularity granularity = options->measure.window.track.granularity;

	if (granularity == WSS_GRANULARITY_NATIVE || options->continuous)
		return WSS_WINDOW_COARSE;
	if (granularity == WSS_GRANULARITY_4K ||
	    (guest_is_large(&guest->watched) && guest->coarse_until_ns <= wss_clock_now_ns()))
		return WSS_WINDOW_FINE;
	return WSS_WINDOW_COARSE;
}

/* Pages of 4 KiB that a fine window of the same length may touch: no more than fit into what a coarse one has seen. */
static struct wss_amount coarse_pages(const struct wss_watched *watched)
{
	const struct wss_amount *high = &watched->sample.high_bytes;

	if (!watched->measured || watched->kind != WSS_WINDOW_COARSE || !high->known)
		return (struct wss_amount){.known = false};
	return wss_amount_of(high->value / 4096);
}

/* A hold, a reboot or a new configuration may have come since the window was admitted, which may be seconds ago. */
static bool visit_is_over(void *opaque)
{
	return atomic_load(&((struct wss_visit *)opaque)->over);
}

struct wss_visit *wss_visit_new(const struct wss_watch_options *options,
				const struct wss_watch_guest *guest)
{
	struct wss_visit *visit = calloc(1, sizeof(*visit));

	if (!visit)
		return NULL;
	visit->options = *options;
	memcpy(visit->uuid, guest->watched.uuid, sizeof(visit->uuid));
	visit->start_ns = wss_clock_now_ns();
	visit->pace = guest->watched.pace;
	visit->wanted = guest_wants(options, guest);
	visit->kind = visit->pace.kind < visit->wanted ? visit->pace.kind : visit->wanted;
	visit->expected = guest->instance;
	visit->rebooted_ns = guest->rebooted_ns;
	visit->pressed = guest->watched.pressed_since_ns != 0;
	visit->lessons = guest->lessons[visit->kind];
	if (visit->kind == WSS_WINDOW_FINE && !visit->lessons.faults.n)
		visit->pages = coarse_pages(&guest->watched);
	visit->debt = guest->debt;
	visit->memory = guest->memory;
	visit->period_ns = options->period_ns;
	visit->aging = wss_aging_ref(guest->aging);
	visit->continuous = options->continuous && visit->aging && visit->kind == WSS_WINDOW_COARSE;
	return visit;
}

void wss_visit_free(void *opaque)
{
	struct wss_visit *visit = opaque;

	wss_aging_unref(visit->aging);
	free(visit->cgroup.path);
	free(visit);
}

struct wss_measure_options wss_visit_options(struct wss_visit *visit)
{
	struct wss_measure_options measure = visit->options.measure;

	measure.count = 1;
	measure.window.memory = &visit->memory;
	measure.window.lessons = &visit->lessons;
	measure.window.memory_age_ns = MEMORY_WALK_NS;
	measure.window.admit = visit_admit;
	measure.window.admit_opaque = visit;
	/* The budget judges it. */
	measure.window.track.max_stall_ns = UINT64_MAX;
	measure.window.track.granularity =
		visit->kind == WSS_WINDOW_FINE ? WSS_GRANULARITY_4K : WSS_GRANULARITY_NATIVE;
	if (visit->kind == WSS_WINDOW_CANARY) {
		measure.window.track.window_ns = visit->options.canary_ns;
		measure.window.track.recorder = WSS_RECORDER_COUNTERS;
		measure.window.curve = measure.window.growth = false;
	}
	if (visit->aging)
		measure.observer.pages = visit_pages;
	if (visit->continuous) {
		measure.observer.until_ns = visit_until_ns;
		measure.count = UINT_MAX;
	}
	measure.observer.is_over = visit_is_over;
	measure.observer.opaque = visit;
	return measure;
}

/*
 * What nobody measured, or counted, is as it was predicted. The test switch multiplies the prediction, because
 * what a real window costs depends on how busy the host is.
 */
struct wss_window_cost wss_visit_cost(const struct wss_visit *visit,
				      const struct wss_sample *sample)
{
	const struct wss_amount *counted = &sample->cost.faults;
	uint64_t stall_ns =
		sample->cost.arm_ns.known ? sample->cost.arm_ns.value : visit->predicted.stall_ns;
	uint64_t faults = counted->known ? counted->value : visit->predicted.faults;

	if (wss_fault("dear-window")) {
		stall_ns = wss_u64_mul(10, visit->predicted.stall_ns);
		faults = wss_u64_mul(10, visit->predicted.faults);
	}
	return wss_window_cost_of(stall_ns, faults, visit->options.fault_ns, visit->n_vcpus);
}

struct wss_fault_debt wss_visit_debt(const struct wss_visit *visit, const struct wss_sample *sample)
{
	const struct wss_prediction *prediction = &visit->prediction;
	const struct wss_amount *faults = &sample->cost.faults;
	struct wss_fault_debt debt = {.so_far = {.known = false}};

	if (!prediction->faults.known || !prediction->faults_so_far.known || !faults->known)
		return debt;
	debt.so_far = wss_amount_of(wss_u64_add(prediction->faults_so_far.value, faults->value));
	debt.most = wss_u64_sub(prediction->most_faults, faults->value);
	return debt;
}
