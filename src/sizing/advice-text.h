/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Advice as English sentences for people, one line each, without the guest's name. */
#pragma once

#include "sizing/advice.h"

#define WSS_ADVICE_TEXT_MAX 480

/*
 * Describes the windows that the advice is based on: "windows of 4 s by mmu at 4 KiB
 * granularity". Returns false if there are none.
 */
bool wss_advice_kind_text(const struct wss_advice *advice, char ret_text[WSS_ADVICE_TEXT_MAX]);

/* Describes the windows that the advice leaves out, and why. Returns false if there are none. */
bool wss_advice_left_out_text(const struct wss_advice *advice, char ret_text[WSS_ADVICE_TEXT_MAX]);

/*
 * States in how many hours the guest needed no more than its size, its largest need, and how often such advice would have
 * been kept. Returns false if there is no size, or if it was not made from hours.
 */
bool wss_advice_learned_text(const struct wss_advice *advice, char ret_text[WSS_ADVICE_TEXT_MAX]);

/* States that the size is less than the largest need within the last hold. Returns false unless that is so. */
bool wss_advice_below_text(const struct wss_advice *advice, char ret_text[WSS_ADVICE_TEXT_MAX]);

/* States that no flavour is as large as the guest needs. Returns false unless that is so. */
bool wss_advice_outgrows_text(const struct wss_advice *advice, char ret_text[WSS_ADVICE_TEXT_MAX]);

/*
 * States how much the set still grew at the end of its windows and the size it was
 * extrapolated to, or that this is unknown. Returns false if the set no longer grew, or if it
 * is too early.
 */
/* Why a guest whose set fills its memory is not shrunk. Returns false unless that is so. */
bool wss_advice_fills_text(const struct wss_advice *advice, char ret_text[WSS_ADVICE_TEXT_MAX]);

/* What the guest needs that the maximum of its policy keeps from it. Returns false unless that is so. */
bool wss_advice_maximum_text(const struct wss_advice *advice, char ret_text[WSS_ADVICE_TEXT_MAX]);

/* Why there is no size though there are enough windows, and what would show it. */
bool wss_advice_no_size_text(const struct wss_advice *advice, char ret_text[WSS_ADVICE_TEXT_MAX]);

bool wss_advice_growth_text(const struct wss_advice *advice, char ret_text[WSS_ADVICE_TEXT_MAX]);

/*
 * States how much memory has been idle for 24 hours, or why that is not known. Returns false if no service
 * watches the guest's memory.
 */
bool wss_advice_cold_text(const struct wss_advice *advice, char ret_text[WSS_ADVICE_TEXT_MAX]);

/*
 * States what following the advice would achieve, and the confidence: "512 MiB -> 256 MiB;
 * balloon would free 94 MiB on the host; low confidence: ...". Returns false if nothing is known.
 */
bool wss_advice_step_text(const struct wss_advice *advice, char ret_text[WSS_ADVICE_TEXT_MAX]);
