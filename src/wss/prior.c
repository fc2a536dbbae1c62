/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "wss/prior.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

const char *wss_prior_kind_name(enum wss_prior_kind kind)
{
	static const char *const names[] = {"none", "title", "os"};

	return names[kind];
}

static bool texts_are_alike(const char *a, const char *b)
{
	return a && b && *a && !strcmp(a, b);
}

static bool guest_is_alike(const struct wss_prior_guest *a, const struct wss_prior_guest *b,
			   enum wss_prior_kind kind)
{
	if (texts_are_alike(a->uuid, b->uuid))
		return false;
	return kind == WSS_PRIOR_TITLE ? texts_are_alike(a->title, b->title)
				       : texts_are_alike(a->os, b->os);
}

static int sizes_compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

int wss_prior_find(const struct wss_prior_guest *guests, size_t n, const struct wss_prior_guest *guest,
		   struct wss_prior *ret_prior, struct wss_error *err)
{
	uint64_t *sizes = calloc(n ? n : 1, sizeof(*sizes));
	struct wss_prior prior = {.kind = WSS_PRIOR_NONE};

	if (!sizes)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	for (int kind = WSS_PRIOR_TITLE; kind <= WSS_PRIOR_OS && prior.kind == WSS_PRIOR_NONE; kind++) {
		size_t found = 0, rank;

		for (size_t i = 0; i < n; i++)
			if (guest_is_alike(&guests[i], guest, (enum wss_prior_kind)kind))
				sizes[found++] = guests[i].bytes;
		if (found < WSS_PRIOR_GUESTS_MIN)
			continue;
		qsort(sizes, found, sizeof(*sizes), sizes_compare);
		rank = (size_t)ceil(WSS_PRIOR_PERCENTILE * (double)found - 1e-9);
		prior = (struct wss_prior){(enum wss_prior_kind)kind, found,
					   wss_amount_of(sizes[rank - 1])};
	}
	free(sizes);
	*ret_prior = prior;
	return 0;
}

struct wss_prior_size wss_prior_size(const struct wss_prior *prior, const struct wss_sizing_rule *rule,
				     const struct wss_policy *policy,
				     struct wss_amount maximum_bytes)
{
	struct wss_prior_size size = {.bytes = prior->bytes, .reason = WSS_SIZING_PERCENTILE};
	const struct wss_amount maxima[] = {policy->maximum_bytes, maximum_bytes};
	struct wss_amount rounded;

	if (prior->kind == WSS_PRIOR_NONE)
		return (struct wss_prior_size){.bytes = {.known = false}};
	if (rule->minimum_bytes > size.bytes.value) {
		size.bytes.value = rule->minimum_bytes;
		size.reason = WSS_SIZING_MINIMUM;
	}
	rounded = rule->rounding ? wss_rounding_up(rule->rounding, size.bytes.value) : size.bytes;
	if (rounded.known && rounded.value > size.bytes.value) {
		size.bytes = rounded;
		size.reason = WSS_SIZING_ROUNDING;
	}
	for (size_t i = 0; i < sizeof(maxima) / sizeof(maxima[0]); i++)
		if (maxima[i].known && maxima[i].value < size.bytes.value) {
			size.bytes = maxima[i];
			size.reason = WSS_SIZING_MAXIMUM;
		}
	return size;
}
