/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "measure/sample.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define PAGE_BYTES 4096

void wss_sample_copy(struct wss_sample *ret_copy, const struct wss_sample *sample)
{
	memcpy(ret_copy, sample, offsetof(struct wss_sample, notes));
	memcpy(ret_copy->notes, sample->notes, sample->n_notes * sizeof(sample->notes[0]));
	memcpy(ret_copy->curve, sample->curve, sample->n_curve * sizeof(sample->curve[0]));
}

const char *wss_quality_name(enum wss_quality quality)
{
	static const char *const names[] = {
		[WSS_QUALITY_OK] = "ok",
		[WSS_QUALITY_DEGRADED] = "degraded",
		[WSS_QUALITY_UNSUPPORTED] = "unsupported",
		[WSS_QUALITY_FAILED] = "failed",
	};

	return names[quality];
}

const char *wss_observes_name(enum wss_observes observes)
{
	static const char *const names[] = {
		[WSS_OBSERVES_ACCESSES] = "accesses",
		[WSS_OBSERVES_WRITES] = "writes",
		[WSS_OBSERVES_RESIDENCY] = "residency",
	};

	return names[observes];
}

bool wss_sample_measured(const struct wss_sample *sample)
{
	return sample->quality == WSS_QUALITY_OK || sample->quality == WSS_QUALITY_DEGRADED;
}

struct wss_working_set wss_sample_figure(const struct wss_sample *sample)
{
	struct wss_working_set figure = {sample->wss_bytes, sample->low_bytes, sample->high_bytes,
					 WSS_BOUND_AT_LEAST};

	if (sample->quality == WSS_QUALITY_DEGRADED)
		return (struct wss_working_set){sample->low_bytes, sample->low_bytes,
						(struct wss_amount){0}, WSS_BOUND_AT_LEAST};
	figure.bound = wss_bound_of(figure.bytes.value, figure.low_bytes, figure.high_bytes);
	return figure;
}

static void add_note(struct wss_sample *sample, const char *fmt, va_list ap)
{
	char text[WSS_NOTE_LEN];

	vsnprintf(text, sizeof(text), fmt, ap);
	wss_text_sanitize(text);
	for (size_t i = 0; i < sample->n_notes; i++)
		if (!strcmp(sample->notes[i], text))
			return;
	if (sample->n_notes < WSS_NOTES_MAX)
		memcpy(sample->notes[sample->n_notes++], text, sizeof(text));
}

void wss_sample_note(struct wss_sample *sample, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	add_note(sample, fmt, ap);
	va_end(ap);
}

void wss_sample_degrade(struct wss_sample *sample, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	add_note(sample, fmt, ap);
	va_end(ap);
	if (sample->quality == WSS_QUALITY_OK)
		sample->quality = WSS_QUALITY_DEGRADED;
}

void wss_sample_fail(struct wss_sample *sample, const struct wss_error *err)
{
	const struct wss_amount unknown = {false, 0};

	sample->quality =
		err->code == WSS_ERR_UNSUPPORTED ? WSS_QUALITY_UNSUPPORTED : WSS_QUALITY_FAILED;
	sample->error = *err;
	sample->window_ns = sample->wss_bytes = unknown;
	sample->mapped_bytes = sample->written_bytes = unknown;
	sample->written_low_bytes = sample->written_high_bytes = unknown;
	sample->low_bytes = sample->high_bytes = sample->granularity_bytes = unknown;
	sample->n_curve = 0;
}

void wss_sample_curve_add(struct wss_sample *sample, uint64_t ns, uint64_t bytes)
{
	size_t i = sample->n_curve < WSS_CURVE_MAX ? sample->n_curve++ : WSS_CURVE_MAX - 1;

	sample->curve[i] = (struct wss_curve_point){.ns = ns, .bytes = bytes};
}

void wss_sample_curve_bound(struct wss_sample *sample, uint64_t low_bytes, uint64_t high_bytes)
{
	struct wss_curve_point *newest = &sample->curve[sample->n_curve - 1];

	newest->low_bytes = low_bytes < high_bytes ? low_bytes : 0;
	newest->high_bytes = low_bytes < high_bytes ? high_bytes : 0;
}

bool wss_sample_share(const struct wss_sample *sample, double *ret_share)
{
	if (!sample->wss_bytes.known || !sample->memory.balloon_bytes.known ||
	    !sample->memory.balloon_bytes.value)
		return false;
	*ret_share = (double)sample->wss_bytes.value / (double)sample->memory.balloon_bytes.value;
	return true;
}

void wss_sample_set_native(struct wss_sample *sample, const struct wss_sample *native)
{
	sample->native.granularity_bytes = native->granularity_bytes;
	sample->native.window_ns = native->window_ns;
	sample->native.wss_bytes = native->wss_bytes;
	sample->native.low_bytes = native->low_bytes;
	sample->native.high_bytes = native->high_bytes;
}

bool wss_sample_bloat(const struct wss_sample *sample, double *ret_factor)
{
	if (!sample->native.wss_bytes.known || !sample->wss_bytes.known || !sample->wss_bytes.value)
		return false;
	if (!sample->native.granularity_bytes.known ||
	    sample->native.granularity_bytes.value <= PAGE_BYTES)
		return false;
	*ret_factor = (double)sample->native.wss_bytes.value / (double)sample->wss_bytes.value;
	return true;
}
