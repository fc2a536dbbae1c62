/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Something that may go wrong again and again: the log says when it begins and when it ends. */
#pragma once

#include <stdbool.h>

#include "base/error.h"

struct wss_trouble {
	const char *what; /* subject of "it works again" */
	bool on;
};

/* Notes how the last attempt ended; error NULL: well. */
void wss_trouble_note(struct wss_trouble *trouble, const struct wss_error *error);
