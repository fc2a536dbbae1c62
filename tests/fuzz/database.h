/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Damaged and forged histories, for the targets that open them. The first byte of an input
 * selects its kind:
 *
 *   S  SQL, which is run on a good history
 *   P  bytes of a good history to change: three bytes of offset, the highest first, and the
 * byte, each F  the file itself
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "measure/sample.h"

/* The guest in the good history, and the time of its newest sample. */
#define FUZZ_UUID "6c8f7a52-9d3e-4c1b-a0f4-5b2e8d7c6a10"
#define FUZZ_TIME ((time_t)1795197600)

/* Returns sample number n of that guest: an hour after the one before, FUZZ_SAMPLES of them. */
#define FUZZ_SAMPLES 60
struct wss_sample fuzz_sample(unsigned n);

/* Writes the history of an input and returns its path; NULL if the input is none of the above. */
const char *fuzz_database(const uint8_t *data, size_t size);

/* Stores the good history as an input. Returns its size; 0 if it does not fit. */
size_t fuzz_database_whole(uint8_t *data, size_t room);
