/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Columns of recommend whose figures have other sources than the sizes of its windows. Each function takes a
 * struct recommend_row, for struct wss_column; the help of its column says what the figure is.
 */
#ifndef WSS_CMD_RECOMMEND_EVIDENCE_H
#define WSS_CMD_RECOMMEND_EVIDENCE_H

#include "out/report.h"

/* Ages of the guest's memory; absent where it was not watched. */
struct wss_value recommend_get_cold_status(const void *row);
struct wss_value recommend_get_cold_low(const void *row);
struct wss_value recommend_get_cold_high(const void *row);
struct wss_value recommend_get_cold_observed(const void *row);
struct wss_value recommend_get_cold_watched(const void *row);
struct wss_value recommend_get_cold_time(const void *row);
struct wss_value recommend_get_used(const void *row);
struct wss_value recommend_get_left_out(const void *row);

/* Figures that were learned from the guest's past; absent where none were. */
struct wss_value recommend_get_learned_lower(const void *row);
struct wss_value recommend_get_learned_target(const void *row);
struct wss_value recommend_get_learned_upper(const void *row);
struct wss_value recommend_get_learned_boot(const void *row);
struct wss_value recommend_get_learned_span(const void *row);
struct wss_value recommend_get_learned_percentile(const void *row);
struct wss_value recommend_get_learned_margin(const void *row);
struct wss_value recommend_get_learned_hours(const void *row);
struct wss_value recommend_get_trend(const void *row);

/* How the rule was chosen by its risk; absent without --risk. */
struct wss_value recommend_get_held_out(const void *row);
struct wss_value recommend_get_risk_seen(const void *row);
struct wss_value recommend_get_risk_bound(const void *row);

/* Signs that the guest had too little memory. */
struct wss_value recommend_get_pressure(const void *row);
struct wss_value recommend_get_pressure_status(const void *row);
struct wss_value recommend_get_pressure_kinds(const void *row);
struct wss_value recommend_get_pressure_time(const void *row);

/* Memory of its QEMU that is not guest memory. */
struct wss_value recommend_get_guest_overhead(const void *row);
struct wss_value recommend_get_overhead_is(const void *row);
struct wss_value recommend_get_overhead_samples(const void *row);

/* The prior: what like guests need, where it is too early to size this one. */
struct wss_value recommend_get_prior(const void *row);
struct wss_value recommend_get_prior_is(const void *row);
struct wss_value recommend_get_prior_guests(const void *row);
struct wss_value recommend_get_prior_reason(const void *row);

#endif
