/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Shared by the picture of the growth curve and its chart in the terminal. */
#pragma once

#include "measure/growth-chart.h"

#define WSS_GROWTH_DETAILS_MAX 160

/* "mmu, 4 KiB granularity, knee 64.0 MiB at 1.00 s"; size: WSS_GROWTH_DETAILS_MAX. */
void wss_growth_describe(const struct wss_growth_drawn *guest, char *ret_text, size_t size);

/* Bounds of the memory touched at a point. */
uint64_t wss_growth_low(const struct wss_grid_point *point);
uint64_t wss_growth_high(const struct wss_grid_point *point);

/* Whether these bounds differ by more than the spread of windows. False if nothing is known. */
bool wss_growth_is_bounded(const struct wss_grid_point *point);

/* Whether the method only bounds the end of the curve. */
bool wss_growth_is_bound(const struct wss_grid *grid);
