/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Contains only the list: a program with a list of its own, such as a test, links without this
 * file.
 */
#include "measure/methods.h"

/* Histories and profiles keep the name. */
#define CHECK_NAME(name)                                     \
	_Static_assert(sizeof(#name) <= WSS_METHOD_NAME_MAX, \
		       "the name of the method " #name " is too long");
WSS_METHODS(CHECK_NAME)

#define ADDRESS(name) &wss_tracker_##name,

const struct wss_tracker_ops *const wss_trackers[] = {WSS_METHODS(ADDRESS) NULL};
