/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Rounding of recommended sizes to those that guests can be given: flavours, as clouds call their list of
 * sizes, or multiples of a step.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/amount.h"
#include "base/error.h"

/* Room for the name of a flavour with its final NUL. */
#define WSS_FLAVOUR_NAME_MAX 64
#define WSS_FLAVOURS_MAX 1000

struct wss_flavour {
	uint64_t bytes;			 /* at least 1 */
	char name[WSS_FLAVOUR_NAME_MAX]; /* "" if it has none */
};

/* All zero is empty: nothing but whole MiB. */
struct wss_rounding {
	uint64_t step_bytes; /* 0: not by steps */
	size_t n;
	struct wss_flavour *flavours; /* n of them, ascending */
};

/*
 * Adds the flavours in a text: one a line, SIZE or NAME SIZE; # starts a comment. Of flavours of the same size
 * the first counts. Changes the text. The rounding is for wss_rounding_free(), also on error:
 * WSS_ERR_FAILED with the number of the line, or because there is no flavour; WSS_ERR_NO_MEMORY.
 */
int wss_rounding_parse(struct wss_rounding *rounding, char *text, struct wss_error *err);

void wss_rounding_free(struct wss_rounding *rounding);

/*
 * Returns the smallest size that a guest can be given and that is at least as large; unknown if there is none.
 */
struct wss_amount wss_rounding_up(const struct wss_rounding *rounding, uint64_t bytes);

/* Returns the name of the flavour of that size; NULL if there is none or it has no name. */
const char *wss_rounding_name(const struct wss_rounding *rounding, uint64_t bytes);
