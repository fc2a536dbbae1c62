/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "cmd/recommend.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/units.h"
#include "fleet/host-room-report.h"
#include "sizing/backtest-report.h"

#define FLAVOURS_MAX_BYTES ((size_t)1 << 20)

enum {
	OPT_PERCENTILE = 1,
	OPT_WHAT_IF,
	OPT_PROBABILITY,
	OPT_PLOT,
	OPT_FLAVOURS,
	OPT_STEP,
	OPT_BACKTEST,
	OPT_TRAIN,
	OPT_TEST,
	OPT_HOST,
	OPT_RESERVE,
};

const struct option recommend_long_options[] = {
	WSS_COMMON_LONG,
	WSS_TABLE_LONG,
	WSS_SIZING_LONG,
	{"percentile", required_argument, NULL, OPT_PERCENTILE},
	{"what-if", required_argument, NULL, OPT_WHAT_IF},
	{"probability", required_argument, NULL, OPT_PROBABILITY},
	{"plot", required_argument, NULL, OPT_PLOT},
	{"flavours", required_argument, NULL, OPT_FLAVOURS},
	{"step", required_argument, NULL, OPT_STEP},
	{"backtest", no_argument, NULL, OPT_BACKTEST},
	{"train", required_argument, NULL, OPT_TRAIN},
	{"test", required_argument, NULL, OPT_TEST},
	{"host", no_argument, NULL, OPT_HOST},
	{"reserve", required_argument, NULL, OPT_RESERVE},
	{NULL, 0, NULL, 0},
};

static int backtest_span_parse(const char *value, const char *what, uint64_t *ret_ns,
			       struct wss_error *err)
{
	uint64_t ns;

	if (wss_duration_parse(value, WSS_ADVICE_SPAN_MAX_NS, what, &ns, err) < 0)
		return -1;
	if (ns < WSS_ADVICE_SPAN_MIN_NS)
		return wss_error_set(err, WSS_ERR_USAGE,
				     "%s: '%s' is less than 1h, and a backtest judges hours", what,
				     value);
	*ret_ns = ns;
	return 0;
}

static int backtest_take(struct recommend_backtest_options *options, int c, const char *value,
			 struct wss_error *err)
{
	options->given = true;
	switch (c) {
	case OPT_BACKTEST:
		options->backtest = true;
		return 0;
	case OPT_TRAIN:
		return backtest_span_parse(value, "--train", &options->train_ns, err);
	default:
		return backtest_span_parse(value, "--test", &options->test_ns, err);
	}
}

static int step_parse(const char *value, uint64_t *ret_bytes, struct wss_error *err)
{
	uint64_t bytes;

	if (wss_size_parse(value, "--step", &bytes, err) < 0)
		return -1;
	if (!bytes || bytes % WSS_MIB)
		return wss_error_set(err, WSS_ERR_USAGE,
				     "--step: '%s' is not a whole number of MiB, 1MiB or more",
				     value);
	*ret_bytes = bytes;
	return 0;
}

int recommend_take(void *opaque, int c, const char *value, struct wss_error *err)
{
	struct recommend_options *options = opaque;
	struct wss_advice_options *advice = &options->sizing.advice;

	if (c >= OPT_BACKTEST && c <= OPT_TEST)
		return backtest_take(&options->backtest, c, value, err);
	if (c == OPT_WHAT_IF || c == OPT_PROBABILITY)
		options->others_given = true;
	switch (c) {
	case OPT_PERCENTILE:
		advice->learn = false;
		return wss_percent_parse(value, 50, 99.9, "--percentile", &advice->rule.percentile,
					 err);
	case OPT_WHAT_IF:
		advice->what_if_bytes.known = true;
		return wss_size_parse(value, "--what-if", &advice->what_if_bytes.value, err);
	case OPT_PROBABILITY:
		return wss_percent_parse(value, 50, 99.9, "--probability", &options->probability,
					 err);
	case OPT_PLOT:
		options->plot = value;
		return 0;
	case OPT_FLAVOURS:
		options->flavours = value;
		return 0;
	case OPT_STEP:
		return step_parse(value, &options->rounding.step_bytes, err);
	case OPT_HOST:
		options->host = true;
		return 0;
	case OPT_RESERVE:
		options->reserve_bytes.known = true;
		return wss_size_parse(value, "--reserve", &options->reserve_bytes.value, err);
	default:
		return wss_sizing_option(&options->sizing, c, value, err);
	}
}

static int backtest_check(const struct recommend_options *options, struct wss_error *err)
{
	const struct recommend_backtest_options *backtest = &options->backtest;

	if (!backtest->backtest)
		return !backtest->given && !options->plot
			       ? 0
			       : wss_error_set(err, WSS_ERR_USAGE,
					       "--train, --test and --plot belong to --backtest");
	if (options->others_given)
		return wss_error_set(
			err, WSS_ERR_USAGE,
			"--backtest judges measured hours: it excludes --what-if and --probability");
	return 0;
}

static int host_check(const struct recommend_options *options, struct wss_error *err)
{
	if (!options->host && options->reserve_bytes.known)
		return wss_error_set(err, WSS_ERR_USAGE, "--reserve belongs to --host");
	if (options->host && (options->plot || options->sizing.advice.what_if_bytes.known ||
			      options->backtest.given))
		return wss_error_set(err, WSS_ERR_USAGE,
				     "--host excludes --plot, --what-if and --backtest");
	return 0;
}

const struct wss_report_layout *recommend_layout_of(const struct recommend_options *options)
{
	if (options->host)
		return &wss_host_room_layout;
	return options->backtest.backtest ? &wss_backtest_layout : &recommend_layout;
}

static int flavours_read(const char *path, struct wss_rounding *rounding, struct wss_error *err)
{
	struct wss_error why = WSS_ERROR_INIT;
	wss_auto_free char *text = NULL;
	size_t len;

	if (wss_file_read(path, FLAVOURS_MAX_BYTES, &text, &len, &why) == 0 &&
	    wss_rounding_parse(rounding, text, &why) == 0)
		return 0;
	return wss_error_set(err, why.code, "--flavours %s: %s", path, why.text);
}

static int rounding_set(struct recommend_options *options, struct wss_error *err)
{
	if (!options->flavours && !options->rounding.step_bytes)
		return 0;
	if (options->flavours && options->rounding.step_bytes)
		return wss_error_set(err, WSS_ERR_USAGE,
				     "--flavours and --step exclude each other");
	if (options->flavours && flavours_read(options->flavours, &options->rounding, err) < 0)
		return -1;
	options->sizing.advice.rule.rounding = &options->rounding;
	return 0;
}

void recommend_options_free(struct recommend_options *options)
{
	wss_rounding_free(&options->rounding);
}

int recommend_parse(struct wss_cli *cli, int argc, char **argv, struct recommend_options *options,
		    struct wss_error *err)
{
	cli->reader = cli->inactive_too = true;
	if (wss_cli_parse(cli, argc, argv, options, err) < 0 ||
	    wss_cli_view(cli, recommend_layout_of(options), err) < 0 ||
	    wss_sizing_check(cli, err) < 0 || backtest_check(options, err) < 0 ||
	    host_check(options, err) < 0 || wss_cli_finish(cli, argc, argv, err) < 0 ||
	    rounding_set(options, err) < 0)
		return -1;
	if (options->host && cli->n_domains)
		return wss_error_set(err, WSS_ERR_USAGE,
				     "--host takes no DOMAIN: what fits depends on all guests");
	if (options->plot && cli->n_domains != 1)
		return wss_error_set(err, WSS_ERR_USAGE,
				     "--plot: name one guest: the picture of a backtest shows one");
	return 0;
}
