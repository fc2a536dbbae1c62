/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a backtest found, as rows of a table. */
#pragma once

#include "show/report.h"
#include "sizing/backtest.h"

/* Sums over judged hours. */
struct wss_backtest_loss {
	uint64_t hours; /* with a prediction */
	double share_sum;
	bool bound; /* some of them are upper bounds */
};

/* A row: the figures of one size over one guest, or over all of them. */
struct wss_backtest_row {
	const char *domain, *uuid; /* NULL: all guests */
	enum wss_backtest_player player;
	const struct wss_backtest *backtest;
	const struct wss_backtest_loss *loss; /* NULL: of a rival */
};

extern const struct wss_report_layout wss_backtest_layout;
