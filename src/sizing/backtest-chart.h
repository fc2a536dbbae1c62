/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Picture of a backtest: recommended size, need and violations of one guest over time. */
#pragma once

#include <stddef.h>
#include <stdio.h>

#include "sizing/backtest.h"

/* Draws n judged hours, at least 1, ascending, as SVG. The caller checks ferror(). */
void wss_backtest_plot(FILE *f, const char *domain, const struct wss_backtest_moment *moments,
		       size_t n);
