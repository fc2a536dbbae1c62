/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A backend of the recorder that needs neither KVM nor BPF: linked with virt-wss's own objects
 * it makes a virt-wss whose record works on a fake guest. Each window touches 320 pages, of
 * which it writes half, 128 pages further on than the window before. Prints "window" on
 * standard output as each one begins; everything before that must then be in the file.
 */
#include "fake-recorder.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/gpa.h"
#include "track/recorder-backend.h"

#define WORD_BYTES (64 * 4096ULL) /* guest memory that one word of a bitmap stands for */
#define WORDS_TOUCHED 5
#define WORDS_SHIFT 2
#define FIRST_WORD 8 /* after the VGA window */

void (*fake_recorder_window)(void);

struct wss_recorder_backend {
	uint64_t origin_ns, ram_faults, outside_faults, written_pages;
	uint64_t first_touches[WSS_TOUCH_BUCKETS];
	uint64_t words, window;
	uint64_t *touched, *written;
};

static const char *fake_version(void)
{
	return "fake";
}

static int fake_probe(struct wss_error *err)
{
	(void)err;
	return 0;
}

static void fake_close(struct wss_recorder_backend *fake)
{
	if (!fake)
		return;
	free(fake->touched);
	free(fake->written);
	free(fake);
}

static int fake_open(const struct wss_recorder_plan *plan,
		     struct wss_recorder_backend **ret_backend,
		     struct wss_recorder_state *ret_state, struct wss_error *err)
{
	struct wss_recorder_backend *fake = calloc(1, sizeof(*fake));

	if (fake) {
		fake->words = (wss_gpa_end(&plan->layout) + WORD_BYTES - 1) / WORD_BYTES;
		fake->touched = calloc(fake->words, sizeof(*fake->touched));
		fake->written = calloc(fake->words, sizeof(*fake->written));
	}
	if (!fake || !fake->touched || !fake->written) {
		fake_close(fake);
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	}
	*ret_backend = fake;
	*ret_state = (struct wss_recorder_state){
		.origin_ns = &fake->origin_ns,
		.ram_faults = &fake->ram_faults,
		.outside_faults = &fake->outside_faults,
		.written_pages = &fake->written_pages,
		.first_touches = fake->first_touches,
		.touched = fake->touched,
		.written = fake->written,
		.words = fake->words,
	};
	return 0;
}

static int fake_start(struct wss_recorder_backend *fake, struct wss_error *err)
{
	uint64_t first = FIRST_WORD + fake->window++ * WORDS_SHIFT % (fake->words / 2);

	(void)err;
	memset(fake->touched, 0, fake->words * sizeof(*fake->touched));
	memset(fake->written, 0, fake->words * sizeof(*fake->written));
	memset(&fake->touched[first], 0xff, WORDS_TOUCHED * sizeof(*fake->touched));
	memset(&fake->written[first], 0x55, WORDS_TOUCHED * sizeof(*fake->written));
	fake->first_touches[0] = fake->ram_faults = WORDS_TOUCHED * 64;
	fake->written_pages = WORDS_TOUCHED * 32;
	if (fake_recorder_window) {
		fake_recorder_window();
	} else {
		puts("window");
		fflush(stdout);
	}
	return 0;
}

static uint64_t fake_missed(const struct wss_recorder_backend *fake)
{
	(void)fake;
	return 0;
}

static void fake_stop(struct wss_recorder_backend *fake)
{
	(void)fake;
}

const struct wss_recorder_backend_ops wss_recorder_backend_ops = {
	.version = fake_version,
	.probe = fake_probe,
	.open = fake_open,
	.start = fake_start,
	.missed = fake_missed,
	.stop = fake_stop,
	.close = fake_close,
};
