/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "measure/budget.h"

#include "base/number.h"

struct wss_window_cost wss_window_cost_of(uint64_t stall_ns, uint64_t faults, double fault_ns,
					  unsigned n_vcpus)
{
	uint64_t faults_ns = wss_u64_from_double((double)faults * fault_ns);

	return (struct wss_window_cost){
		.stall_ns = stall_ns,
		.faults = faults,
		.faults_ns = faults_ns,
		.vcpu_ns = wss_u64_add(wss_u64_mul(stall_ns, n_vcpus), faults_ns),
	};
}

const char *wss_window_kind_name(enum wss_window_kind kind)
{
	static const char *const names[] = {
		[WSS_WINDOW_CANARY] = "canary",
		[WSS_WINDOW_COARSE] = "coarse",
		[WSS_WINDOW_FINE] = "fine",
	};

	return names[kind];
}

/* How often a window of this cost is within the guest's share: the time from one to the next. */
static uint64_t affordable_period_ns(const struct wss_budget *budget, uint64_t vcpu_ns,
				     unsigned n_vcpus)
{
	double share = budget->guest_share * n_vcpus;

	return share > 0 ? wss_u64_from_double((double)vcpu_ns / share) : UINT64_MAX;
}

struct wss_window_plan wss_pace_plan(const struct wss_pace *pace, const struct wss_budget *budget,
				     const struct wss_window_cost *predicted, unsigned n_vcpus,
				     enum wss_window_kind wanted, uint64_t period_ns)
{
	uint64_t affordable_ns = affordable_period_ns(budget, predicted->vcpu_ns, n_vcpus);
	uint64_t doubled_ns = wss_u64_mul(period_ns, 1ULL << pace->doublings);
	struct wss_window_plan plan = {
		.kind = wanted < pace->kind ? wanted : pace->kind,
		.period_ns = wss_u64_max(doubled_ns, affordable_ns),
	};

	if (pace->given_up) {
		plan.verdict = WSS_VERDICT_DEARER;
		plan.period_ns = WSS_PACE_RETRY_NS;
	} else if (predicted->stall_ns > budget->stall_ns) {
		plan.verdict = WSS_VERDICT_STALL;
		plan.period_ns = doubled_ns;
	} else if (affordable_ns > wss_u64_max(budget->max_period_ns, period_ns)) {
		plan.verdict = WSS_VERDICT_VCPU;
		plan.period_ns = doubled_ns;
	}
	return plan;
}

static bool takes_longer(uint64_t measured_ns, uint64_t predicted_ns, uint64_t noise_ns)
{
	return (double)measured_ns > WSS_PACE_TOLERANCE * (double)predicted_ns + (double)noise_ns;
}

static bool is_dearer(const struct wss_budget *budget, const struct wss_window_cost *measured,
		      const struct wss_window_cost *predicted)
{
	uint64_t noise_ns = budget->stall_ns / WSS_PACE_NOISE_PART;

	return takes_longer(measured->stall_ns, predicted->stall_ns, noise_ns) ||
	       takes_longer(measured->faults_ns, predicted->faults_ns,
			    wss_u64_min(noise_ns, WSS_PACE_NOISE_FAULTS_NS));
}

static void pace_slow_down(struct wss_pace *pace, enum wss_window_kind kind)
{
	pace->dearer = 0;
	pace->kind = kind > WSS_WINDOW_CANARY ? kind - 1 : WSS_WINDOW_CANARY;
	if (pace->doublings < WSS_PACE_DOUBLINGS_MAX)
		pace->doublings++;
	else
		pace->given_up = true;
}

static void pace_speed_up(struct wss_pace *pace, enum wss_window_kind kind)
{
	pace->dearer = 0;
	if (kind == pace->kind && pace->kind < WSS_WINDOW_FINE)
		pace->kind++;
	if (pace->doublings && ++pace->good >= WSS_PACE_GOOD) {
		pace->good = 0;
		pace->doublings--;
	}
}

bool wss_pace_account(struct wss_pace *pace, const struct wss_budget *budget,
		      enum wss_window_kind kind, const struct wss_window_cost *predicted,
		      const struct wss_window_cost *measured)
{
	bool dearer = is_dearer(budget, measured, predicted);

	pace->given_up = false;
	if (!dearer) {
		pace_speed_up(pace, kind);
		return false;
	}
	pace->good = 0;
	if (++pace->dearer >= 2)
		pace_slow_down(pace, kind);
	return true;
}

void wss_pace_reset(struct wss_pace *pace)
{
	*pace = (struct wss_pace){.kind = WSS_WINDOW_CANARY};
}
