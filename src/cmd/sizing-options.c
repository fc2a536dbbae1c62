/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "cmd/sizing-options.h"

#include "base/clock.h"
#include "base/units.h"

static int span_parse(const char *value, uint64_t *ret_ns, struct wss_error *err)
{
	uint64_t ns;

	if (wss_duration_parse(value, WSS_ADVICE_SPAN_MAX_NS, "--span", &ns, err) < 0)
		return -1;
	if (ns < WSS_ADVICE_SPAN_MIN_NS)
		return wss_error_set(
			err, WSS_ERR_USAGE,
			"--span: '%s' is less than 1h, and the history adds windows up by the hour",
			value);
	*ret_ns = ns;
	return 0;
}

static int hold_parse(const char *value, uint64_t *ret_ns, struct wss_error *err)
{
	if (wss_duration_parse(value, WSS_LEARNER_HOLD_MAX_S * WSS_NS_PER_S, "--hold", ret_ns,
			       err) < 0)
		return -1;
	return *ret_ns >= WSS_LEARNER_HOLD_MIN_S * WSS_NS_PER_S
		       ? 0
		       : wss_error_set(err, WSS_ERR_USAGE, "--hold: '%s' is less than 1h", value);
}

static int sizing_take(struct wss_advice_options *options, int c, const char *value,
		       struct wss_error *err)
{
	/* A rule that the user gives replaces the learned one. */
	if (c == WSS_OPT_SPAN || c == WSS_OPT_HEADROOM)
		options->learn = false;
	switch (c) {
	case WSS_OPT_SPAN:
		return span_parse(value, &options->span_ns, err);
	case WSS_OPT_HEADROOM:
		return wss_whole_percent_parse(value, 0, WSS_POLICY_HEADROOM_MAX, "--headroom",
					       &options->rule.headroom_percent, err);
	case WSS_OPT_HOLD:
		return hold_parse(value, &options->hold_ns, err);
	default:
		options->rule.minimum_is_default = false;
		return wss_size_parse(value, "--minimum", &options->rule.minimum_bytes, err);
	}
}

int wss_sizing_option(struct wss_sizing_options *options, int c, const char *value,
		      struct wss_error *err)
{
	if (c < WSS_OPT_SPAN || c > WSS_OPT_MINIMUM)
		return wss_store_option(&options->history, c, value, err);
	return sizing_take(&options->advice, c, value, err) < 0 ? -1 : 1;
}

int wss_sizing_check(const struct wss_cli *cli, struct wss_error *err)
{
	if (!cli->qmp)
		return 0;
	return wss_error_set(err, WSS_ERR_USAGE, WSS_CLI_QMP_NO_HISTORY);
}

int wss_sizing_open(const struct wss_sizing_options *options, struct wss_history **ret_history,
		    struct wss_error *err)
{
	return wss_store_open_reader(&options->history, ret_history, err);
}
