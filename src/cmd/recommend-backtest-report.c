/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "cmd/recommend-backtest.h"

static const struct recommend_backtest_row *backtest_row_of(const void *row)
{
	return row;
}

static const struct wss_backtest_score *score_of(const void *row)
{
	return &backtest_row_of(row)->backtest->scores[backtest_row_of(row)->player];
}

static struct wss_value value_of_share(double share)
{
	return (struct wss_value){.kind = WSS_KIND_SHARE, .real = share};
}

static struct wss_value value_of_factor(double factor)
{
	return (struct wss_value){.kind = WSS_KIND_FACTOR, .real = factor};
}

/* The figures of a score without hours are unknown. */
static struct wss_value share_of(const struct wss_backtest_score *score, double share)
{
	return score->hours ? value_of_share(share) : wss_value_absent();
}

static struct wss_value backtest_get_domain(const void *row)
{
	return wss_value_text(backtest_row_of(row)->domain);
}

static struct wss_value backtest_get_uuid(const void *row)
{
	return wss_value_text(backtest_row_of(row)->uuid);
}

static struct wss_value backtest_get_size(const void *row)
{
	return wss_value_text(wss_backtest_player_name(backtest_row_of(row)->player));
}

static struct wss_value backtest_get_guests(const void *row)
{
	return wss_value_number(backtest_row_of(row)->backtest->guests, WSS_KIND_COUNT);
}

static struct wss_value backtest_get_early(const void *row)
{
	return wss_value_number(backtest_row_of(row)->backtest->early_hours, WSS_KIND_COUNT);
}

static struct wss_value backtest_get_hours(const void *row)
{
	return wss_value_number(score_of(row)->hours, WSS_KIND_COUNT);
}

static struct wss_value backtest_get_violation_hours(const void *row)
{
	return wss_value_number(score_of(row)->violations, WSS_KIND_COUNT);
}

static struct wss_value backtest_get_slack(const void *row)
{
	return share_of(score_of(row), wss_backtest_slack(score_of(row)));
}

static struct wss_value backtest_get_p95(const void *row)
{
	return share_of(score_of(row), wss_backtest_slack_percentile(score_of(row), 0.95));
}

static struct wss_value backtest_get_violations(const void *row)
{
	return share_of(score_of(row), wss_backtest_violations(score_of(row)));
}

static struct wss_value backtest_get_above(const void *row)
{
	return score_of(row)->violations ? value_of_share(wss_backtest_above(score_of(row)))
					 : wss_value_absent();
}

static struct wss_value backtest_get_above_max(const void *row)
{
	return score_of(row)->violations ? value_of_share(score_of(row)->above_max)
					 : wss_value_absent();
}

static struct wss_value backtest_get_changes(const void *row)
{
	return score_of(row)->hours
		       ? value_of_factor(wss_backtest_changes_per_week(score_of(row)))
		       : wss_value_absent();
}

static struct wss_value backtest_get_equal_slack(const void *row)
{
	return backtest_row_of(row)->has_equal
		       ? value_of_share(backtest_row_of(row)->equal_slack)
		       : wss_value_absent();
}

static struct wss_value backtest_get_equal_margin(const void *row)
{
	return backtest_row_of(row)->has_equal
		       ? value_of_share(backtest_row_of(row)->equal_margin)
		       : wss_value_absent();
}

static struct wss_value backtest_get_loss(const void *row)
{
	const struct recommend_backtest_loss *loss = backtest_row_of(row)->loss;

	return loss && loss->hours
		       ? wss_value_bounded(value_of_share(loss->share_sum / (double)loss->hours),
					   loss->bound ? WSS_BOUND_AT_MOST : WSS_BOUND_EXACT)
		       : wss_value_absent();
}

static struct wss_value backtest_get_loss_hours(const void *row)
{
	const struct recommend_backtest_loss *loss = backtest_row_of(row)->loss;

	return loss ? wss_value_number(loss->hours, WSS_KIND_COUNT) : wss_value_absent();
}

static struct wss_value mean_faults(const void *row, double sum)
{
	const struct recommend_backtest_loss *loss = backtest_row_of(row)->loss;

	return loss->fault_hours ? value_of_factor(sum / (double)loss->fault_hours)
				 : wss_value_absent();
}

static struct wss_value backtest_get_predicted(const void *row)
{
	const struct recommend_backtest_loss *loss = backtest_row_of(row)->loss;

	return loss ? mean_faults(row, loss->predicted_sum) : wss_value_absent();
}

static struct wss_value backtest_get_seen(const void *row)
{
	const struct recommend_backtest_loss *loss = backtest_row_of(row)->loss;

	return loss ? mean_faults(row, loss->seen_sum) : wss_value_absent();
}

static struct wss_value backtest_get_fault_hours(const void *row)
{
	const struct recommend_backtest_loss *loss = backtest_row_of(row)->loss;

	return loss ? wss_value_number(loss->fault_hours, WSS_KIND_COUNT) : wss_value_absent();
}

#define SLACK_HELP "Mean of size less need, as a share of the size, 1 = 100%"
#define P95_HELP "Slack that 95% of the hours do not exceed, as a share of the size"
#define VIOLATED_HELP "Hours that needed more, as a share of the judged hours, 1 = 100%"
#define VIOLATION_HOURS_HELP "Hours that needed more than the size, a count"
#define ABOVE_HELP "How far their need was above the size, mean, as a share of the size"
#define ABOVE_MAX_HELP "The same, the largest"
#define CHANGES_HELP "Changes of the size of one guest in 168 judged hours, mean"

static const struct wss_column backtest_columns[] = {
	{"domain", NULL, "DOMAIN", -6, backtest_get_domain,
	 "Name of the guest; absent: all of them", false},
	{"uuid", NULL, "UUID", -36, backtest_get_uuid, "UUID of the guest", false},
	{"size", NULL, "SIZE", -13, backtest_get_size,
	 "Which size is judged: recommended; peak + 15% (of all hours before); p90 24h + 15% "
	 "(half-life of 24 hours, as in Kubernetes' VPA); fixed (the guest's maximum memory then)",
	 false},
	{"guests", NULL, "GUESTS", 6, backtest_get_guests, "Guests with judged hours, a count",
	 false},
	{"hours", NULL, "HOURS", 6, backtest_get_hours,
	 "Measured hours that were judged, a count", false},
	{"early_hours", NULL, "EARLY", 6, backtest_get_early,
	 "Hours of the test before which too little was measured, a count", false},
	{"slack_share", NULL, "SLACK", 6, backtest_get_slack, SLACK_HELP, false},
	{"slack_p95_share", NULL, "P95", 6, backtest_get_p95, P95_HELP, false},
	{"violation_hours", NULL, "TOO-SMALL", 9, backtest_get_violation_hours,
	 VIOLATION_HOURS_HELP, false},
	{"violation_share", NULL, "VIOLATED", 8, backtest_get_violations, VIOLATED_HELP,
	 false},
	{"above_share", NULL, "ABOVE", 6, backtest_get_above, ABOVE_HELP, false},
	{"above_max_share", NULL, "ABOVE-MAX", 9, backtest_get_above_max, ABOVE_MAX_HELP,
	 false},
	{"changes_per_week", NULL, "CHANGES", 7, backtest_get_changes, CHANGES_HELP, false},
	{"equal_slack_share", NULL, "SLACK-AT", 8, backtest_get_equal_slack,
	 "Slack of a rival whose margin is such that it has as many violations as the "
	 "recommended size",
	 false},
	{"equal_margin_share", NULL, "MARGIN-AT", 9, backtest_get_equal_margin,
	 "That margin, as a share", false},
	{"loss_share", NULL, "LOSS", 7, backtest_get_loss,
	 "Time that the recommended sizes are predicted to lose to faults, mean, as a share, 1 = 100%; < where "
	 "some are upper bounds", false},
	{"loss_hours", NULL, "L-HOURS", 7, backtest_get_loss_hours,
	 "Hours for which that is predicted, a count", false},
	{"faults_predicted_per_second", NULL, "PREDICTED", 9, backtest_get_predicted,
	 "Faults predicted at the memory that the guests had, mean, a count per second", false},
	{"faults_seen_per_second", NULL, "SEEN", 7, backtest_get_seen,
	 "Major faults that the guests have counted in these hours, mean, a count per second", false},
	{"faults_hours", NULL, "F-HOURS", 7, backtest_get_fault_hours,
	 "Hours in which both are known, a count", false},
};

const struct wss_report_layout recommend_backtest_layout = {
	.schema = "virt-wss/backtest/1",
	.array_key = "sizes",
	.columns = backtest_columns,
	.n_columns = sizeof(backtest_columns) / sizeof(backtest_columns[0]),
	.shown = "domain,size,hours,slack_share,slack_p95_share,violation_share,above_share,"
		 "changes_per_week,equal_slack_share",
	.wide = "domain,size,guests,hours,early_hours,slack_share,slack_p95_share,"
		"violation_hours,violation_share,above_share,above_max_share,"
		"changes_per_week,equal_slack_share,equal_margin_share,loss_share,"
		"faults_predicted_per_second,faults_seen_per_second",
};

static const struct recommend_sweep_row *sweep_row_of(const void *row)
{
	return row;
}

static const struct wss_backtest_score *sweep_score_of(const void *row)
{
	return &sweep_row_of(row)->backtest.scores[WSS_BACKTEST_ADVICE];
}

static struct wss_value sweep_get_span(const void *row)
{
	return wss_value_number(sweep_row_of(row)->rule.hours * 3600ULL * WSS_NS_PER_S,
				WSS_KIND_DURATION);
}

static struct wss_value sweep_get_percentile(const void *row)
{
	return value_of_share(sweep_row_of(row)->rule.percentile);
}

static struct wss_value sweep_get_headroom(const void *row)
{
	return value_of_share(sweep_row_of(row)->rule.margin);
}

static struct wss_value sweep_get_hours(const void *row)
{
	return wss_value_number(sweep_score_of(row)->hours, WSS_KIND_COUNT);
}

static struct wss_value sweep_get_slack(const void *row)
{
	return value_of_share(wss_backtest_slack(sweep_score_of(row)));
}

static struct wss_value sweep_get_p95(const void *row)
{
	return value_of_share(wss_backtest_slack_percentile(sweep_score_of(row), 0.95));
}

static struct wss_value sweep_get_violations(const void *row)
{
	return value_of_share(wss_backtest_violations(sweep_score_of(row)));
}

static struct wss_value sweep_get_changes(const void *row)
{
	return value_of_factor(wss_backtest_changes_per_week(sweep_score_of(row)));
}

static struct wss_value sweep_get_cheapest(const void *row)
{
	return wss_value_number(sweep_row_of(row)->cheapest, WSS_KIND_BOOL);
}

static const struct wss_column sweep_columns[] = {
	{"span_seconds", NULL, "SPAN", 6, sweep_get_span,
	 "Measured hours that the setting looks at, in seconds", false},
	{"percentile", NULL, "PERCENTILE", 10, sweep_get_percentile,
	 "Percentile of their largest working sets, as a share, 1 = 100%", false},
	{"headroom_share", NULL, "HEADROOM", 8, sweep_get_headroom,
	 "Headroom on top of that, as a share", false},
	{"hours", NULL, "HOURS", 6, sweep_get_hours,
	 "Measured hours that were judged, a count", false},
	{"slack_share", NULL, "SLACK", 6, sweep_get_slack, SLACK_HELP, false},
	{"slack_p95_share", NULL, "P95", 6, sweep_get_p95, P95_HELP, false},
	{"violation_share", NULL, "VIOLATED", 8, sweep_get_violations, VIOLATED_HELP, false},
	{"changes_per_week", NULL, "CHANGES", 7, sweep_get_changes, CHANGES_HELP, false},
	{"cheapest", NULL, "CHEAPEST", -8, sweep_get_cheapest,
	 "Whether it has the least slack within the target for violations", false},
};

const struct wss_report_layout recommend_sweep_layout = {
	.schema = "virt-wss/sweep/1",
	.array_key = "settings",
	.columns = sweep_columns,
	.n_columns = sizeof(sweep_columns) / sizeof(sweep_columns[0]),
	.shown = "span_seconds,percentile,headroom_share,slack_share,slack_p95_share,"
		 "violation_share,changes_per_week,cheapest",
	.wide = "span_seconds,percentile,headroom_share,hours,slack_share,slack_p95_share,"
		"violation_share,changes_per_week,cheapest",
};
