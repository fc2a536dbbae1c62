/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "out/missrate-chart.h"

#include <math.h>
#include <stdio.h>

#include "base/number.h"
#include "base/units.h"
#include "out/svg.h"

#define WIDTH 900
#define HEIGHT 560
#define LEFT 80
#define RIGHT 870
#define BOTTOM 490
#define LEGEND_ROW 20
/* Lines beside each other that a person can still tell apart. */
#define LEGEND_MAX 12
/* Of a name, which leaves room for the size after it; the style sheet's font. */
#define NAME_WIDTH 520.0
#define FONT 14.0
#define STEPS 160

struct frame {
	double top, largest;
};

static double x_of(const struct frame *frame, double bytes)
{
	return LEFT + (RIGHT - LEFT) * fmin(1, bytes / frame->largest);
}

static double y_of(const struct frame *frame, double share)
{
	return BOTTOM - (BOTTOM - frame->top) * share;
}

static void draw_axes(FILE *f, const struct frame *frame)
{
	char text[32];

	for (int i = 0; i <= 5; i++) {
		double y = y_of(frame, i / 5.0), x = LEFT + (RIGHT - LEFT) * i / 5.0;

		snprintf(text, sizeof(text), "%d %%", i * 20);
		wss_svg_line(f, LEFT, y, RIGHT, y, "grid");
		wss_svg_text(f, LEFT - 8, y + 4, WSS_ANCHOR_END, "tick", text);
		wss_size_format((uint64_t)(frame->largest * i / 5), text, sizeof(text));
		wss_svg_line(f, x, frame->top, x, BOTTOM, "grid");
		wss_svg_text(f, x, BOTTOM + 24, WSS_ANCHOR_MIDDLE, "tick", text);
	}
	wss_svg_line(f, LEFT, BOTTOM, RIGHT, BOTTOM, "axis");
	wss_svg_line(f, LEFT, frame->top, LEFT, BOTTOM, "axis");
	wss_svg_text(f, (LEFT + RIGHT) / 2.0, HEIGHT - 18, WSS_ANCHOR_MIDDLE, "label",
		     "memory of the guest");
	wss_svg_text_upright(f, 20, (frame->top + BOTTOM) / 2, "label",
			     "share of time lost to faults (predicted)");
}

static void draw_guest(FILE *f, const struct frame *frame, const struct wss_missrate_guest *guest,
		       uint64_t fault_ns, const char *class)
{
	double known = (double)wss_missrate_known_bytes(&guest->missrate);
	struct wss_svg_point line[STEPS + 1];
	bool bound;

	for (int i = 0; i <= STEPS; i++) {
		double bytes = known * i / STEPS;
		double rate = wss_missrate_at(&guest->missrate, wss_u64_from_double(bytes), &bound);

		line[i] = (struct wss_svg_point){ x_of(frame, bytes),
						  y_of(frame, wss_missrate_loss(rate, fault_ns)) };
	}
	wss_svg_path(f, line, STEPS + 1, false, class);
	if (guest->recommended_bytes.known) {
		double bytes = (double)guest->recommended_bytes.value;
		double rate = wss_missrate_at(&guest->missrate, guest->recommended_bytes.value,
					      &bound);

		wss_svg_circle(f, x_of(frame, bytes),
			       y_of(frame, wss_missrate_loss(rate, fault_ns)), 6, class);
	}
}

static void draw_name(FILE *f, const struct wss_missrate_guest *guest, double y, const char *class)
{
	char name[256], text[300], size[16] = "too early";

	if (guest->recommended_bytes.known)
		wss_size_format(guest->recommended_bytes.value, size, sizeof(size));
	snprintf(name, sizeof(name), "%s", guest->domain);
	wss_text_sanitize(name);
	wss_svg_fit(name, sizeof(name), FONT, NAME_WIDTH);
	snprintf(text, sizeof(text), "%s (recommended: %s)", name, size);
	wss_svg_circle(f, LEFT + 6, y - 5, 5, class);
	wss_svg_text(f, LEFT + 18, y, WSS_ANCHOR_START, "legend", text);
}

void wss_missrate_plot(FILE *f, const struct wss_missrate_guest *guests, size_t n,
		       uint64_t fault_ns, double target)
{
	size_t named = n <= LEGEND_MAX ? n : LEGEND_MAX - 1;
	struct frame frame = { .top = 60 + LEGEND_ROW * fmin((double)n, LEGEND_MAX), .largest = 1 };
	char more[40];

	for (size_t i = 0; i < n; i++) {
		double known = (double)wss_missrate_known_bytes(&guests[i].missrate);

		frame.largest = fmax(frame.largest, known * 1.1);
		if (guests[i].recommended_bytes.known)
			frame.largest = fmax(frame.largest,
					     (double)guests[i].recommended_bytes.value * 1.05);
	}
	wss_svg_begin(f, WIDTH, HEIGHT, "Miss-rate curve");
	wss_svg_text(f, LEFT, 30, WSS_ANCHOR_START, "title", "What less memory would cost");
	draw_axes(f, &frame);
	wss_svg_line(f, LEFT, y_of(&frame, target), RIGHT, y_of(&frame, target), "reference");
	for (size_t i = 0; i < n; i++) {
		char class[8];

		snprintf(class, sizeof(class), "s%zu", i % WSS_SVG_SERIES);
		draw_guest(f, &frame, &guests[i], fault_ns, class);
		if (i < named)
			draw_name(f, &guests[i], 54 + LEGEND_ROW * (double)i, class);
	}
	if (n > named) {
		snprintf(more, sizeof(more), "and %zu more", n - named);
		wss_svg_text(f, LEFT + 18, 54 + LEGEND_ROW * (double)named, WSS_ANCHOR_START,
			     "legend", more);
	}
	wss_svg_end(f);
}
