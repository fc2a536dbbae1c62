/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "cmd/sizing-options.h"

#include "base/clock.h"
#include "base/units.h"

#define FAULT_MAX_NS (10 * WSS_NS_PER_S)
#define SPAN_MAX_NS (366ULL * WSS_HISTORY_DAY * WSS_NS_PER_S)

static int take(struct wss_sizing_options *options, int c, const char *value,
		struct wss_error *err)
{
	switch (c) {
	case WSS_OPT_SPAN:
		return wss_duration_parse(value, SPAN_MAX_NS, "--span", &options->span_ns, err);
	case WSS_OPT_HEADROOM:
		return wss_whole_percent_parse(value, WSS_POLICY_HEADROOM_MAX, "--headroom",
					       &options->rule.headroom_percent, err);
	case WSS_OPT_TARGET_LOSS:
		return wss_percent_parse(value, 0.001, 90, "--target-loss", &options->target_loss,
					 err);
	case WSS_OPT_FAULT_COST:
		return wss_duration_parse(value, FAULT_MAX_NS, "--fault-cost", &options->fault_ns,
					  err);
	default:
		return wss_size_parse(value, "--minimum", &options->rule.minimum_bytes, err);
	}
}

int wss_sizing_option(struct wss_sizing_options *options, int c, const char *value,
		      struct wss_error *err)
{
	if (c < WSS_OPT_SPAN || c > WSS_OPT_FAULT_COST)
		return wss_store_option(&options->history, c, value, err);
	return take(options, c, value, err) < 0 ? -1 : 1;
}

bool wss_sizing_ask_curve(const struct wss_sizing_options *options,
			  const struct wss_history_series *series,
			  struct wss_missrate *ret_missrate, struct wss_sizing_state *state)
{
	uint64_t size, all = series->maximum_bytes.known ? series->maximum_bytes.value : UINT64_MAX;

	/* The curve is one of single pages: coarser windows see whole neighbourhoods. */
	if (series->granularity_bytes > 4096 ||
	    !wss_missrate_from_summary(ret_missrate, &series->summary))
		return false;
	state->curve_is_beyond =
		!wss_missrate_size(ret_missrate, options->target_loss, options->fault_ns, &size);
	if (state->curve_is_beyond) {
		size = wss_missrate_reach_bytes(ret_missrate, options->target_loss,
						options->fault_ns);
		size = size < all ? size : all;
	}
	state->curve_bytes = wss_amount_of(size);
	return true;
}

int wss_sizing_check(const struct wss_cli *cli, struct wss_error *err)
{
	if (!cli->qmp)
		return 0;
	return wss_error_set(err, WSS_ERR_USAGE, "--qmp: a guest without libvirt has no history");
}

int wss_sizing_open(const struct wss_sizing_options *options, struct wss_history **ret_history,
		    struct wss_error *err)
{
	return wss_store_open_reader(&options->history, ret_history, err);
}
