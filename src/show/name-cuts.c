/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "show/name-cuts.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "show/width.h"

/* Names that are remembered; more are cut without comparing them. */
#define CUTS_MAX 4096

struct wss_name_cut {
	char *name;
	char *shown;
};

static const char *name_find(const struct wss_name_cuts *cuts, const char *name)
{
	for (size_t i = 0; i < cuts->n; i++)
		if (!strcmp(cuts->cuts[i].name, name))
			return cuts->cuts[i].shown;
	return NULL;
}

/* Remembers a name. Without memory a later name may look the same. */
static void name_remember(struct wss_name_cuts *cuts, const char *name, const char *shown)
{
	struct wss_name_cut *more = reallocarray(cuts->cuts, cuts->n + 1, sizeof(*cuts->cuts));
	struct wss_name_cut *cut = more ? &more[cuts->n] : NULL;

	if (!more)
		return;
	cuts->cuts = more;
	*cut = (struct wss_name_cut){strdup(name), strdup(shown)};
	if (cut->name && cut->shown) {
		cuts->n++;
		return;
	}
	free(cut->name);
	free(cut->shown);
}

/* Returns a name, cut with head columns of its start; malloc()ed, NULL when out of memory. */
static char *name_cut(const char *name, int width, int head)
{
	/* The ellipsis may take more bytes than what it replaces. */
	size_t size = strlen(name) + 4;
	char *text = malloc(size);

	if (!text)
		return NULL;
	memcpy(text, name, strlen(name) + 1);
	wss_text_cut_inside(text, size, width, head);
	return text;
}

/*
 * Whether another name is shown as this text; if visibly, or would be if it were cut at the same
 * place, so that the part in which the two names differ is not in the text.
 */
static bool text_is_taken(const struct wss_name_cuts *cuts, const char *text, int width, int head,
			  bool visibly)
{
	for (size_t i = 0; i < cuts->n; i++) {
		wss_auto_free char *same = NULL;

		if (!strcmp(cuts->cuts[i].shown, text))
			return true;
		if (!visibly)
			continue;
		same = name_cut(cuts->cuts[i].name, width, head);
		if (same && !strcmp(same, text))
			return true;
	}
	return false;
}

/*
 * Returns the text for a name, malloc()ed; NULL when out of memory. Tries to keep half of the
 * columns for the start; then all of them, and none, which shows the difference of names whose ends
 * are alike; then any other number. At last the place of the ellipsis alone makes the difference.
 */
static char *name_choose(const struct wss_name_cuts *cuts, const char *name, int width)
{
	const int tries = width + 2;
	char *text = NULL;

	for (int i = 0; i < 2 * tries; i++) {
		int at = i % tries, head = at == 0 ? width / 2 : at == 1 ? width - 1 : at - 2;

		free(text);
		text = name_cut(name, width, head);
		if (!text || !text_is_taken(cuts, text, width, head, i < tries))
			break;
	}
	return text;
}

void wss_name_cuts_apply(struct wss_name_cuts *cuts, char *name, size_t size, int width)
{
	wss_auto_free char *chosen = NULL;
	const char *shown;

	if (wss_text_width(name) <= width)
		return;
	shown = name_find(cuts, name);
	if (!shown && cuts->n < CUTS_MAX) {
		shown = chosen = name_choose(cuts, name, width);
		if (shown)
			name_remember(cuts, name, shown);
	}
	if (shown && strlen(shown) < size)
		memcpy(name, shown, strlen(shown) + 1);
	else
		wss_text_cut_inside(name, size, width, width / 2);
}

void wss_name_cuts_free(struct wss_name_cuts *cuts)
{
	for (size_t i = 0; i < cuts->n; i++) {
		free(cuts->cuts[i].name);
		free(cuts->cuts[i].shown);
	}
	free(cuts->cuts);
	*cuts = (struct wss_name_cuts){.n = 0};
}
