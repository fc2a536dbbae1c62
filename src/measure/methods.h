/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * All methods, in the order in which "auto" prefers them. An entry here is all that a method
 * needs to become known; NAME.c defines wss_tracker_NAME. Only for the list itself and for
 * tests of a single method; all other code learns about a method from its operations
 * (measure/tracker.h).
 */
#pragma once

#include "measure/tracker.h"

/* clang-format off */
#define WSS_METHODS(method) \
	method(mmu) \
	method(refs) \
	method(lrugen) \
	method(idle)
/* clang-format on */

#define WSS_METHOD_DECLARE(name) extern const struct wss_tracker_ops wss_tracker_##name;
WSS_METHODS(WSS_METHOD_DECLARE)
