/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "base/budget.h"

#include "base/clock.h"
#include "base/units.h"

static _Thread_local struct {
	struct wss_budget *budget; /* NULL: none */
	uint64_t from_ns, until_ns;
	struct wss_budget_watch *watch; /* NULL: nobody looks */
} entered;

void wss_budget_init(struct wss_budget *budget, uint64_t total_ns)
{
	budget->total_ns = budget->left_ns = total_ns;
}

void wss_budget_enter(struct wss_budget *budget, uint64_t from_ns)
{
	uint64_t now_ns = wss_clock_now_ns();

	wss_budget_leave();
	if (!budget->total_ns)
		return;
	entered.budget = budget;
	entered.from_ns = from_ns > now_ns ? from_ns : now_ns;
	entered.until_ns = entered.from_ns + budget->left_ns;
	if (entered.watch) {
		entered.watch->total_ns = budget->total_ns;
		entered.watch->until_ns = entered.until_ns;
	}
}

void wss_budget_leave(void)
{
	struct wss_budget *budget = entered.budget;
	uint64_t now_ns, used_ns;

	if (!budget)
		return;
	now_ns = wss_clock_now_ns();
	used_ns = now_ns > entered.from_ns ? now_ns - entered.from_ns : 0;
	budget->left_ns -= used_ns < budget->left_ns ? used_ns : budget->left_ns;
	entered.budget = NULL;
	if (entered.watch)
		entered.watch->until_ns = 0;
}

bool wss_budget_spent(const struct wss_budget *budget)
{
	return budget->total_ns && !budget->left_ns;
}

uint64_t wss_budget_deadline_ns(void)
{
	return entered.budget ? entered.until_ns : UINT64_MAX;
}

void wss_budget_watch(struct wss_budget_watch *watch)
{
	entered.watch = watch;
}

int wss_budget_check(struct wss_error *err)
{
	if (!entered.budget || wss_clock_now_ns() < entered.until_ns)
		return 0;
	return wss_budget_error(entered.budget->total_ns, err);
}

int wss_budget_error(uint64_t total_ns, struct wss_error *err)
{
	char text[16];

	wss_duration_format(total_ns, text, sizeof(text));
	return wss_error_set(err, WSS_ERR_TIMEOUT,
			     "past the guest's deadline of %s besides its windows", text);
}
