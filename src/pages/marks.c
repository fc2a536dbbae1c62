/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "pages/marks.h"

#include <stdio.h>
#include <stdlib.h>

#include "pages/pageset.h"

static int marks_no_memory(struct wss_error *err)
{
	return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
}

static int marks_make_room(struct wss_marks *marks, struct wss_error *err)
{
	size_t room = marks->room ? 2 * marks->room : 16;
	void *list;

	if (marks->n < marks->room)
		return 0;
	if (!wss_pageset_charge(marks->budget, (room - marks->room) * sizeof(*marks->list)))
		return marks_no_memory(err);
	list = reallocarray(marks->list, room, sizeof(*marks->list));
	if (!list)
		return marks_no_memory(err);
	marks->list = list;
	marks->room = room;
	return 0;
}

int wss_marks_add(struct wss_marks *marks, uint64_t time_ns, const char *text,
		  struct wss_error *err)
{
	struct wss_mark *mark;

	if (marks_make_room(marks, err) < 0)
		return -1;
	mark = &marks->list[marks->n];
	/* Marks are nearly in order: a mark that got the lock later may have been set earlier. */
	if (marks->n && mark[-1].time_ns > time_ns)
		marks->disordered = true;
	mark->time_ns = time_ns;
	snprintf(mark->text, sizeof(mark->text), "%s", text);
	marks->n++;
	return 0;
}

struct place {
	uint64_t time_ns;
	size_t i;
};

static int compare_times(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	if (x->time_ns != y->time_ns)
		return x->time_ns > y->time_ns ? 1 : -1;
	return (x->i > y->i) - (x->i < y->i);
}

int wss_marks_sort(struct wss_marks *marks, struct wss_error *err)
{
	struct place *places;
	struct wss_mark *list;

	if (!marks->disordered)
		return 0;
	places = calloc(marks->n, sizeof(*places));
	list = calloc(marks->n, sizeof(*list));
	if (!places || !list) {
		free(places);
		free(list);
		return marks_no_memory(err);
	}
	for (size_t i = 0; i < marks->n; i++)
		places[i] = (struct place){marks->list[i].time_ns, i};
	qsort(places, marks->n, sizeof(*places), compare_times);
	for (size_t i = 0; i < marks->n; i++)
		list[i] = marks->list[places[i].i];
	free(places);
	free(marks->list);
	marks->list = list;
	marks->room = marks->n;
	marks->disordered = false;
	return 0;
}

void wss_marks_free(struct wss_marks *marks)
{
	free(marks->list);
	*marks = (struct wss_marks){0};
}
