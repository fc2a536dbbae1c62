/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A number that may be unknown, which is not the same as 0. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* The name of the variable or member states the unit (_bytes, _ns). {0} is unknown. */
struct wss_amount {
	bool known;
	uint64_t value;
};

static inline struct wss_amount wss_amount_of(uint64_t value)
{
	return (struct wss_amount){true, value};
}
