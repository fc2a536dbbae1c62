/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "base/deadline.h"

#include "base/clock.h"
#include "base/units.h"

void wss_deadline_allow(struct wss_deadline *deadline, uint64_t allowed_ns)
{
	deadline->at_ns = 0;
	deadline->allowed_ns = deadline->left_ns = allowed_ns;
}

void wss_deadline_renew(struct wss_deadline *deadline)
{
	wss_deadline_allow(deadline, deadline->allowed_ns);
}

void wss_deadline_run(struct wss_deadline *deadline, uint64_t from_ns)
{
	uint64_t now_ns = wss_clock_now_ns();

	wss_deadline_pause(deadline);
	deadline->step = NULL;
	if (!deadline->allowed_ns)
		return;
	deadline->from_ns = from_ns > now_ns ? from_ns : now_ns;
	deadline->at_ns = deadline->from_ns + deadline->left_ns;
}

void wss_deadline_pause(struct wss_deadline *deadline)
{
	uint64_t now_ns, used_ns;

	if (!deadline->at_ns)
		return;
	now_ns = wss_clock_now_ns();
	used_ns = now_ns > deadline->from_ns ? now_ns - deadline->from_ns : 0;
	deadline->left_ns -= used_ns < deadline->left_ns ? used_ns : deadline->left_ns;
	deadline->at_ns = 0;
}

bool wss_deadline_spent(const struct wss_deadline *deadline)
{
	return deadline->allowed_ns && !deadline->left_ns;
}

uint64_t wss_deadline_at_ns(const struct wss_deadline *deadline)
{
	uint64_t at_ns = deadline ? deadline->at_ns : 0;

	return at_ns ? at_ns : UINT64_MAX;
}

int wss_deadline_check(const struct wss_deadline *deadline, struct wss_error *err)
{
	if (wss_clock_now_ns() < wss_deadline_at_ns(deadline))
		return 0;
	return wss_deadline_error(deadline, err);
}

bool wss_deadline_overrun(const struct wss_deadline *deadline, uint64_t grace_ns)
{
	uint64_t at_ns = wss_deadline_at_ns(deadline), now_ns = wss_clock_now_ns();

	return now_ns >= at_ns && now_ns - at_ns >= grace_ns;
}

void wss_deadline_step(const struct wss_deadline *deadline, const char *step)
{
	if (deadline)
		((struct wss_deadline *)deadline)->step = step;
}

int wss_deadline_error(const struct wss_deadline *deadline, struct wss_error *err)
{
	const char *step = deadline->step;
	char text[16];

	wss_duration_format(deadline->allowed_ns, text, sizeof(text));
	return wss_error_set(err, WSS_ERR_TIMEOUT, "timed out after %s%s%s", text,
			     step ? " while " : "", step ? step : "");
}

const struct wss_cancel *wss_deadline_cancel(const struct wss_deadline *deadline)
{
	return deadline ? deadline->cancel : NULL;
}
