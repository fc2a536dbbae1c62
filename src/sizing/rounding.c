/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sizing/rounding.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/text.h"
#include "base/units.h"

#define BLANKS " \t\r"

static int flavour_add(struct wss_rounding *rounding, const char *name, const char *size,
		       struct wss_error *err)
{
	struct wss_flavour *flavours, *new;

	if (rounding->n == WSS_FLAVOURS_MAX)
		return wss_error_set(err, WSS_ERR_FAILED, "more than %d flavours",
				     WSS_FLAVOURS_MAX);
	flavours = reallocarray(rounding->flavours, rounding->n + 1, sizeof(*flavours));
	if (!flavours)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	rounding->flavours = flavours;
	new = &flavours[rounding->n];
	*new = (struct wss_flavour){.bytes = 0};
	if (strlen(name) >= sizeof(new->name))
		return wss_error_set(err, WSS_ERR_FAILED,
				     "the name of a flavour is longer than %zu bytes",
				     sizeof(new->name) - 1);
	snprintf(new->name, sizeof(new->name), "%s", name);
	wss_text_sanitize(new->name);
	if (wss_size_parse(size, "flavour", &new->bytes, err) < 0)
		return -1;
	if (!new->bytes)
		return wss_error_set(err, WSS_ERR_FAILED, "a flavour must be larger than 0");
	rounding->n++;
	return 0;
}

/* A line: nothing, SIZE, or NAME SIZE. */
static int flavour_line(struct wss_rounding *rounding, char *line, struct wss_error *err)
{
	char *state = NULL, *first, *second, *more;

	line[strcspn(line, "#")] = '\0';
	first = strtok_r(line, BLANKS, &state);
	second = first ? strtok_r(NULL, BLANKS, &state) : NULL;
	more = second ? strtok_r(NULL, BLANKS, &state) : NULL;
	if (!first)
		return 0;
	if (more)
		return wss_error_set(err, WSS_ERR_FAILED,
				     "'%s' is one word too many: a flavour is SIZE or NAME SIZE",
				     more);
	return second ? flavour_add(rounding, first, second, err)
		      : flavour_add(rounding, "", first, err);
}

static int flavours_compare(const void *a, const void *b)
{
	const struct wss_flavour *left = a, *right = b;

	return (left->bytes > right->bytes) - (left->bytes < right->bytes);
}

/* Sorts by size and, since qsort() is not stable, drops later ones of the same size before that. */
static void flavours_sort(struct wss_rounding *rounding)
{
	size_t n = 0;

	for (size_t i = 0; i < rounding->n; i++) {
		size_t k = 0;

		while (k < n && rounding->flavours[k].bytes != rounding->flavours[i].bytes)
			k++;
		if (k == n)
			rounding->flavours[n++] = rounding->flavours[i];
	}
	rounding->n = n;
	qsort(rounding->flavours, n, sizeof(*rounding->flavours), flavours_compare);
}

int wss_rounding_parse(struct wss_rounding *rounding, char *text, struct wss_error *err)
{
	struct wss_error why = WSS_ERROR_INIT;
	unsigned number = 0;

	while (text) {
		char *line = strsep(&text, "\n");

		number++;
		if (flavour_line(rounding, line, &why) == 0)
			continue;
		return why.code == WSS_ERR_NO_MEMORY
			       ? wss_error_set(err, why.code, "%s", why.text)
			       : wss_error_set(err, WSS_ERR_FAILED, "line %u: %s", number,
					       why.text);
	}
	if (!rounding->n)
		return wss_error_set(err, WSS_ERR_FAILED, "there is no flavour in it");
	flavours_sort(rounding);
	return 0;
}

void wss_rounding_free(struct wss_rounding *rounding)
{
	free(rounding->flavours);
	*rounding = (struct wss_rounding){.n = 0};
}

/* Returns the smallest flavour that is at least as large; NULL if there is none. */
static const struct wss_flavour *flavour_find(const struct wss_rounding *rounding, uint64_t bytes)
{
	size_t low = 0, high = rounding->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (rounding->flavours[middle].bytes < bytes)
			low = middle + 1;
		else
			high = middle;
	}
	return low < rounding->n ? &rounding->flavours[low] : NULL;
}

struct wss_amount wss_rounding_up(const struct wss_rounding *rounding, uint64_t bytes)
{
	uint64_t step = rounding->step_bytes ? rounding->step_bytes : WSS_MIB;
	const struct wss_flavour *flavour;

	if (!rounding->n)
		return wss_amount_of(wss_u64_mul(wss_u64_add(bytes, step - 1) / step, step));
	flavour = flavour_find(rounding, bytes);
	return flavour ? wss_amount_of(flavour->bytes) : (struct wss_amount){0};
}

const char *wss_rounding_name(const struct wss_rounding *rounding, uint64_t bytes)
{
	const struct wss_flavour *flavour = flavour_find(rounding, bytes);

	return flavour && flavour->bytes == bytes && flavour->name[0] ? flavour->name : NULL;
}
