/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sizing/backtest-report.h"

static const struct wss_backtest_row *backtest_row_of(const void *row)
{
	return row;
}

static const struct wss_backtest_score *score_of(const void *row)
{
	return &backtest_row_of(row)->backtest->scores[backtest_row_of(row)->player];
}

static const void *scores_of(const void *row)
{
	return score_of(row);
}

/* Its figures of the hours that needed more; NULL: none did. */
static const void *violations_of(const void *row)
{
	return score_of(row)->violations ? score_of(row) : NULL;
}

static const void *backtest_of(const void *row)
{
	return backtest_row_of(row)->backtest;
}

static struct wss_value backtest_get_size(const void *row)
{
	return wss_value_text(wss_backtest_player_name(backtest_row_of(row)->player));
}

static struct wss_value backtest_get_slack(const void *row)
{
	return score_of(row)->hours ? wss_value_share(wss_backtest_slack(score_of(row)))
				    : wss_value_absent();
}

static struct wss_value backtest_get_violations(const void *row)
{
	return score_of(row)->hours ? wss_value_share(wss_backtest_violations(score_of(row)))
				    : wss_value_absent();
}

static struct wss_value backtest_get_above(const void *row)
{
	return score_of(row)->violations ? wss_value_share(wss_backtest_above(score_of(row)))
					 : wss_value_absent();
}

static struct wss_value backtest_get_changes(const void *row)
{
	return score_of(row)->hours
		       ? (struct wss_value){.kind = WSS_KIND_FACTOR,
					    .real = wss_backtest_changes_per_week(score_of(row))}
		       : wss_value_absent();
}

#define SLACK_HELP "Mean of size less need, as a share of the size, 1 = 100%"
#define VIOLATED_HELP "Hours that needed more, as a share of the judged hours, 1 = 100%"
#define VIOLATION_HOURS_HELP "Hours that needed more than the size, a count"
#define ABOVE_HELP "How far their need was above the size, mean, as a share of the size"
#define ABOVE_MAX_HELP "The same, the largest"
#define CHANGES_HELP "Changes of the size of one guest in 168 judged hours, mean"

#define FIELD(member, kind) WSS_FIELD(struct wss_backtest_row, member, kind)
#define BACKTEST(member) WSS_FIELD_OF(backtest_of, struct wss_backtest, member, COUNT)
#define SCORE(member) WSS_FIELD_OF(scores_of, struct wss_backtest_score, member, COUNT)

static const struct wss_column backtest_columns[] = {
	{"domain", NULL, "DOMAIN", -6, FIELD(domain, TEXT),
	 "Name of the guest; absent: all of them"},
	{"uuid", NULL, "UUID", -36, FIELD(uuid, TEXT), "UUID of the guest"},
	{"size", NULL, "SIZE", -13, WSS_GET(backtest_get_size),
	 "Which size is judged: recommended; peak + 15% (of all hours before); p90 24h + 15% "
	 "(half-life of 24 hours, as in Kubernetes' VPA); fixed (the guest's maximum memory then)"},
	{"guests", NULL, "GUESTS", 6, BACKTEST(guests), "Guests with judged hours, a count"},
	{"hours", NULL, "HOURS", 6, SCORE(hours), "Measured hours that were judged, a count"},
	{"early_hours", NULL, "EARLY", 6, BACKTEST(early_hours),
	 "Hours of the test before which too little was measured, a count"},
	{"slack_share", NULL, "SLACK", 6, WSS_GET(backtest_get_slack), SLACK_HELP},
	{"violation_hours", NULL, "TOO-SMALL", 9, SCORE(violations), VIOLATION_HOURS_HELP},
	{"violation_share", NULL, "VIOLATED", 8, WSS_GET(backtest_get_violations), VIOLATED_HELP},
	{"above_share", NULL, "ABOVE", 6, WSS_GET(backtest_get_above), ABOVE_HELP},
	{"above_max_share", NULL, "ABOVE-MAX", 9,
	 WSS_FIELD_OF(violations_of, struct wss_backtest_score, above_max, SHARE), ABOVE_MAX_HELP},
	{"changes_per_week", NULL, "CHANGES", 7, WSS_GET(backtest_get_changes), CHANGES_HELP},
};

const struct wss_report_layout wss_backtest_layout = {
	.schema = "virt-wss/backtest/1",
	.array_key = "sizes",
	.columns = backtest_columns,
	.n_columns = sizeof(backtest_columns) / sizeof(backtest_columns[0]),
	.shown = "domain,size,hours,slack_share,violation_share,above_share,changes_per_week",
	.wide = "domain,size,guests,hours,early_hours,slack_share,"
		"violation_hours,violation_share,above_share,above_max_share,"
		"changes_per_week",
};
