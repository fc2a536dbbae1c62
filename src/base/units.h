/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Parses and formats sizes and durations for people. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define WSS_KIB 1024ULL
#define WSS_MIB (1024ULL * WSS_KIB)
#define WSS_GIB (1024ULL * WSS_MIB)

/*
 * Parses a duration such as "10ms", "4s", "1.5s", "5m", "1h"; a bare number is seconds. It
 * must be more than 0 and at most max_ns. what names the option in the error (WSS_ERR_USAGE).
 */
int wss_duration_parse(const char *text, uint64_t max_ns, const char *what, uint64_t *ret_ns,
		       struct wss_error *err);

/* Parses a point in time of a recording: a duration that may be 0. WSS_ERR_USAGE. */
int wss_moment_parse(const char *text, const char *what, uint64_t *ret_ns, struct wss_error *err);

/*
 * Parses a size such as "512MiB", "2GiB", "4096KiB", "100B"; also M and MB (10^6). Every
 * number but 0 needs a unit, because sizes are stored and acted on, and virsh takes a bare
 * number as KiB. Returns 0, or -1 with WSS_ERR_USAGE.
 */
int wss_size_parse(const char *text, const char *what, uint64_t *ret_bytes, struct wss_error *err);

/* The same of a limit, 1 MiB at least. */
int wss_size_limit_parse(const char *text, const char *what, uint64_t *ret_bytes,
			 struct wss_error *err);

/* Parses a decimal integer from min to max. WSS_ERR_USAGE. */
int wss_number_parse(const char *text, uint64_t min, uint64_t max, const char *what,
		     uint64_t *ret_number, struct wss_error *err);

/* Parses an integer percentage from min to max: "20", "20%". */
int wss_whole_percent_parse(const char *text, uint64_t min, uint64_t max, const char *what,
			    uint64_t *ret_percent, struct wss_error *err);

/* Parses a percentage from min to max: "99", "99.9", "1%". *ret_share is a hundredth of it. */
int wss_percent_parse(const char *text, double min, double max, const char *what, double *ret_share,
		      struct wss_error *err);

/* Formats three significant digits: "65.8 MiB", "4 KiB", "12 GiB". size: at least 16. */
void wss_size_format(uint64_t bytes, char *ret_text, size_t size);

/* Formats "4.02 s", "12 ms", "350 us", and from 1000 h on "42 d". size: at least 16. */
void wss_duration_format(uint64_t ns, char *ret_text, size_t size);

/*
 * Formats as a person would type it: a whole number in the largest unit that divides it, "90s". size: at
 * least 24.
 */
void wss_duration_format_typed(uint64_t ns, char *ret_text, size_t size);

/* Room for any number with its final NUL. */
#define WSS_NUMBER_TEXT_MAX 24

/*
 * Formats a decimal integer into the buffer and returns its text. Faster than printf():
 * reports have millions of them.
 */
char *wss_number_format(uint64_t number, char ret_text[WSS_NUMBER_TEXT_MAX]);

/* Formats seconds to the microsecond without trailing zeros: "4.02". size: at least 32. */
void wss_seconds_format(uint64_t ns, char *ret_text, size_t size);

/* Formats a coarse age: "12 s", "5 min", "3 h", "2 d". size: at least 16. */
void wss_age_format(uint64_t seconds, char *ret_text, size_t size);
