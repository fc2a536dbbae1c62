/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "measure/sample-order.h"

#include <stdlib.h>
#include <string.h>

/* Prints the oldest sample that is held. */
static void place_print(const struct wss_sample_order *order, struct wss_sample_place *place)
{
	struct wss_held_sample oldest = place->held[0];

	memmove(&place->held[0], &place->held[1], --place->n_held * sizeof(place->held[0]));
	order->print(oldest.sample, oldest.last, order->opaque);
	free(oldest.sample);
}

/* Whether a guest may still give a sample, or one is held. */
static bool order_goes_on(const struct wss_sample_order *order)
{
	for (size_t i = 0; i < order->n; i++)
		if (order->places[i].n_held || !order->places[i].ended)
			return true;
	return false;
}

static bool order_is_full(const struct wss_sample_order *order)
{
	for (size_t i = 0; i < order->n; i++)
		if (order->places[i].n_held > WSS_SAMPLES_HELD_MAX)
			return true;
	return false;
}

static void order_advance(struct wss_sample_order *order)
{
	while (order_goes_on(order)) {
		struct wss_sample_place *place = &order->places[order->next];

		if (place->given <= order->round && !place->ended && !order_is_full(order))
			return;
		/* A sample that could not be copied was printed at once. */
		if (place->n_held && place->given - place->n_held == order->round)
			place_print(order, place);
		if (++order->next == order->n) {
			order->next = 0;
			order->round++;
		}
	}
}

void wss_sample_order_give(struct wss_sample_order *order, struct wss_sample_place *place,
			   const struct wss_sample *sample, bool last)
{
	bool is_past = (size_t)(place - order->places) < order->next;
	size_t first_open = order->round + is_past;
	struct wss_sample *copy = malloc(sizeof(*copy));

	/* A guest that was passed over goes on in the round of the others. */
	if (place->given < first_open)
		place->given = first_open;
	place->given++;
	place->ended = place->ended || last;
	if (copy) {
		wss_sample_copy(copy, sample);
		place->held[place->n_held++] = (struct wss_held_sample){copy, last};
	} else {
		while (place->n_held)
			place_print(order, place);
		order->print(sample, last, order->opaque);
	}
	order_advance(order);
}

void wss_sample_order_end(struct wss_sample_order *order, struct wss_sample_place *place)
{
	place->ended = true;
	order_advance(order);
}

void wss_sample_order_flush(struct wss_sample_order *order)
{
	for (size_t i = 0; i < order->n; i++)
		order->places[i].ended = true;
	order_advance(order);
}
