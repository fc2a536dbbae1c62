/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Advice in words, for people: one line each, in English, without the guest's name.
 */
#ifndef WSS_SERVICE_ADVICE_TEXT_H
#define WSS_SERVICE_ADVICE_TEXT_H

#include "service/advice.h"

#define WSS_ADVICE_TEXT_MAX 400

/*
 * The kind of windows that the advice rests on: "windows of 4 s by mmu at 4 KiB granularity".
 * False where there are none.
 */
bool wss_advice_kind_text(const struct wss_advice *advice, char ret_text[WSS_ADVICE_TEXT_MAX]);

/* The windows that the advice leaves out, and why. False where there are none. */
bool wss_advice_left_out_text(const struct wss_advice *advice,
			      char ret_text[WSS_ADVICE_TEXT_MAX]);

/*
 * By how much the set still grew at the end of its windows and to what it was taken on, or
 * that this is not known. False where it grew no more, and where it is too early to say.
 */
bool wss_advice_growth_text(const struct wss_advice *advice,
			    char ret_text[WSS_ADVICE_TEXT_MAX]);

/*
 * What following the advice would do, and how far to trust that: "512 MiB -> 256 MiB would
 * free 94 MiB on the host; low confidence: ...". False where nothing is known.
 */
bool wss_advice_step_text(const struct wss_advice *advice, char ret_text[WSS_ADVICE_TEXT_MAX]);

#endif
