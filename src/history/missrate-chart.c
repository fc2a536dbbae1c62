/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "history/missrate-chart.h"

#include <math.h>

#include "base/number.h"
#include "base/units.h"
#include "show/svg.h"

#define LEFT 92.0
#define RIGHT 40.0
#define PLOT_HEIGHT 400.0
/* Width of a name, which leaves room for the guest's figures. */
#define NAME_WIDTH 300.0
#define STEPS 160
/*
 * The axis extends beyond the largest size by this factor, so that the end of the line is
 * visible.
 */
#define MARGIN 1.05
#define DOT 6.0
#define LABEL_HEIGHT 16.0
/* Number of positions above a dot that are close enough for its label. */
#define LABEL_TRIES 4
#define LABELS_MAX (2 * WSS_CHART_NAMED_MAX + 2)

/* A label or a dot in the plot, and the room it takes. */
struct label {
	double left, right, y; /* base line */
};

struct missrate_frame {
	struct wss_axis_box box;
	double largest;
	struct label labels[LABELS_MAX];
	size_t n_labels;
};

static double missrate_x(const struct missrate_frame *frame, double bytes)
{
	return frame->box.left +
	       (frame->box.right - frame->box.left) * fmin(1, bytes / frame->largest);
}

static double missrate_y(const struct missrate_frame *frame, double share)
{
	return frame->box.bottom - (frame->box.bottom - frame->box.top) * share;
}

static double share_at(const struct wss_missrate_guest *guest, double bytes, uint64_t fault_ns,
		       bool *ret_bound)
{
	return wss_missrate_loss(
		wss_missrate_at(&guest->missrate, wss_u64_from_double(bytes), ret_bound), fault_ns);
}

/* Writes a label unless it would cover another one. */
static bool draw_label(FILE *f, struct missrate_frame *frame, double x, double y,
		       enum wss_anchor anchor, const char *text)
{
	double width = wss_svg_text_width(text, WSS_SVG_FONT_SMALL);
	double left = anchor == WSS_ANCHOR_START ? x
		      : anchor == WSS_ANCHOR_END ? x - width
						 : x - width / 2;
	const struct label label = {left, left + width, y};

	for (size_t i = 0; i < frame->n_labels; i++)
		if (label.left < frame->labels[i].right && frame->labels[i].left < label.right &&
		    fabs(y - frame->labels[i].y) < LABEL_HEIGHT)
			return false;
	if (frame->n_labels == LABELS_MAX)
		return false;
	frame->labels[frame->n_labels++] = label;
	wss_svg_text(f, x, y, anchor, "small value", text);
	return true;
}

static void missrate_draw_axes(FILE *f, struct missrate_frame *frame)
{
	struct wss_ticks across = {.vertical = false}, down = {.vertical = true};
	char text[16];

	for (int i = 0; i <= 5; i++) {
		snprintf(text, sizeof(text), "%d %%", i * 20);
		wss_ticks_add(&down, missrate_y(frame, i / 5.0), text);
	}
	wss_axis_draw(f, &frame->box, &down, "share of time lost to faults (predicted)", true);
	frame->largest =
		(double)wss_ticks_size(&across, &frame->box, wss_u64_from_double(frame->largest));
	wss_axis_draw(f, &frame->box, &across, "memory of the guest", true);
}

static void draw_target(FILE *f, struct missrate_frame *frame, double target)
{
	double y = missrate_y(frame, target);
	char text[48];

	wss_svg_line(f, frame->box.left, y, frame->box.right, y, "reference");
	snprintf(text, sizeof(text), "target: %g %%", target * 100);
	draw_label(f, frame, frame->box.left + 6, y - 5, WSS_ANCHOR_START, text);
}

static void draw_what_if(FILE *f, struct missrate_frame *frame, uint64_t bytes)
{
	double x = missrate_x(frame, (double)bytes);
	bool at_end = x > (frame->box.left + frame->box.right) / 2;
	char size[16], text[48];

	wss_svg_line(f, x, frame->box.top, x, frame->box.bottom, "reference balloon");
	wss_size_format(bytes, size, sizeof(size));
	snprintf(text, sizeof(text), "what if: %s", size);
	draw_label(f, frame, at_end ? x - 6 : x + 6, frame->box.top + 14,
		   at_end ? WSS_ANCHOR_END : WSS_ANCHOR_START, text);
}

/* Draws the upper bound beyond the measured sizes; it is the same for all of them. */
static void draw_bound(FILE *f, const struct missrate_frame *frame,
		       const struct wss_missrate_guest *guest, uint64_t fault_ns,
		       const char *colour)
{
	double known = (double)wss_missrate_known_bytes(&guest->missrate);
	bool bound;
	double y = missrate_y(frame, share_at(guest, known + 1, fault_ns, &bound));
	const struct wss_svg_point line[] = {{missrate_x(frame, known), y}, {frame->box.right, y}};
	char class[32];

	snprintf(class, sizeof(class), "curve bound %s", colour);
	wss_svg_path(f, line, 2, false, class);
}

static void missrate_draw_curve(FILE *f, const struct missrate_frame *frame,
				const struct wss_missrate_guest *guest, uint64_t fault_ns,
				const char *colour)
{
	double known = (double)wss_missrate_known_bytes(&guest->missrate);
	struct wss_svg_point line[STEPS + 1];
	char class[32];
	bool bound;

	for (int i = 0; i <= STEPS; i++) {
		double bytes = known * i / STEPS;
		line[i] = (struct wss_svg_point){
			missrate_x(frame, bytes),
			missrate_y(frame, share_at(guest, bytes, fault_ns, &bound))};
	}
	snprintf(class, sizeof(class), "curve %s", colour);
	wss_svg_path(f, line, STEPS + 1, false, class);
}

/* Draws the dot at the recommended size and reserves its place, so that no label covers it. */
static void draw_dot(FILE *f, struct missrate_frame *frame, const struct wss_missrate_guest *guest,
		     uint64_t fault_ns, const char *colour)
{
	double bytes = (double)guest->recommended_bytes.value, x, y;
	bool bound;

	if (!guest->recommended_bytes.known)
		return;
	x = missrate_x(frame, bytes);
	y = missrate_y(frame, share_at(guest, bytes, fault_ns, &bound));
	wss_svg_circle(f, x, y, DOT, colour);
	if (frame->n_labels < WSS_CHART_NAMED_MAX)
		frame->labels[frame->n_labels++] = (struct label){x - DOT, x + DOT, y + 5};
}

/* Writes "396 MiB: <=2.6 %". */
static void label_dot(FILE *f, struct missrate_frame *frame, const struct wss_missrate_guest *guest,
		      uint64_t fault_ns)
{
	double bytes = (double)guest->recommended_bytes.value, share, unit, x, y;
	char size[16], text[64];
	bool bound, at_end;

	if (!guest->recommended_bytes.known)
		return;
	share = share_at(guest, bytes, fault_ns, &bound);
	x = missrate_x(frame, bytes);
	y = missrate_y(frame, share);
	wss_size_format(guest->recommended_bytes.value, size, sizeof(size));
	/* Two digits. */
	unit = share > 0 ? pow(10, floor(log10(share * 100)) - 1) : 1;
	snprintf(text, sizeof(text), "%s: %s%.2g %%", size, bound ? "<=" : "",
		 wss_bound_round(share * 100 / unit, bound ? WSS_BOUND_AT_MOST : WSS_BOUND_EXACT) *
			 unit);
	at_end = x + wss_svg_text_width(text, WSS_SVG_FONT_SMALL) > frame->box.right;
	for (int i = 0; i < LABEL_TRIES; i++)
		if (draw_label(f, frame, at_end ? x + DOT : x - DOT, y - DOT - 5 - LABEL_HEIGHT * i,
			       at_end ? WSS_ANCHOR_END : WSS_ANCHOR_START, text))
			break;
}

/* Formats "web1 (recommended 396 MiB; 100 windows of 4 s, mmu, 4 KiB granularity)". */
static void missrate_name_guest(const struct wss_missrate_guest *guest, size_t index,
				struct wss_chart_key *key)
{
	char name[256], size[16] = "too early", granularity[16], window[16];

	*key = (struct wss_chart_key){
		.symbol = WSS_CHART_DOT, .class = wss_svg_series(index), .own_row = true};
	if (guest->recommended_bytes.known)
		wss_size_format(guest->recommended_bytes.value, size, sizeof(size));
	wss_chart_fit_name(guest->domain, WSS_SVG_FONT, NAME_WIDTH, name, sizeof(name));
	wss_size_format(guest->granularity_bytes, granularity, sizeof(granularity));
	wss_duration_format(guest->window_ns, window, sizeof(window));
	wss_axis_trim(window);
	snprintf(key->text, sizeof(key->text),
		 "%s (recommended: %s; %llu window%s of %s, %s, %s granularity)", name, size,
		 (unsigned long long)guest->windows, wss_plural(guest->windows), window,
		 guest->method, granularity);
}

/* Makes the legend and returns the number of its keys. */
static size_t missrate_make_legend(const struct wss_missrate_guest *guests, size_t n,
				   struct wss_chart_key *keys)
{
	size_t named = n <= WSS_CHART_NAMED_MAX ? n : WSS_CHART_NAMED_MAX - 1, used;

	for (used = 0; used < named; used++)
		missrate_name_guest(&guests[used], used, &keys[used]);
	used += wss_chart_more(&keys[used], n);
	keys[used++] = (struct wss_chart_key){WSS_CHART_DOT, "s6", "recommended size", "", false};
	keys[used++] =
		(struct wss_chart_key){WSS_CHART_LINE, "curve bound s6",
				       "upper bound: nothing larger was measured", "", false};
	return used;
}

static struct wss_chart_source source_of(const char *host, const struct wss_missrate_guest *guests,
					 size_t n)
{
	struct wss_chart_source source = {.host = host};

	for (size_t i = 0; i < n; i++) {
		if (!source.start || guests[i].first < source.start)
			source.start = guests[i].first;
		if (guests[i].last > source.end)
			source.end = guests[i].last;
	}
	return source;
}

static double largest_bytes(const struct wss_missrate_guest *guests, size_t n,
			    const struct wss_missrate_question *question)
{
	double largest = question->what_if_bytes.known ? (double)question->what_if_bytes.value : 1;

	for (size_t i = 0; i < n; i++) {
		largest = fmax(largest, (double)wss_missrate_known_bytes(&guests[i].missrate));
		if (guests[i].recommended_bytes.known)
			largest = fmax(largest, (double)guests[i].recommended_bytes.value);
	}
	return largest * MARGIN;
}

static void missrate_draw_plot(FILE *f, struct missrate_frame *frame,
			       const struct wss_missrate_guest *guests, size_t n,
			       const struct wss_missrate_question *question)
{
	draw_target(f, frame, question->target);
	if (question->what_if_bytes.known)
		draw_what_if(f, frame, question->what_if_bytes.value);
	for (size_t i = 0; i < n; i++) {
		missrate_draw_curve(f, frame, &guests[i], question->fault_ns, wss_svg_series(i));
		draw_bound(f, frame, &guests[i], question->fault_ns, wss_svg_series(i));
	}
	for (size_t i = 0; i < n; i++)
		draw_dot(f, frame, &guests[i], question->fault_ns, wss_svg_series(i));
	for (size_t i = 0; i < n; i++)
		label_dot(f, frame, &guests[i], question->fault_ns);
}

void wss_missrate_plot(FILE *f, const char *host, const struct wss_missrate_guest *guests, size_t n,
		       const struct wss_missrate_question *question)
{
	struct wss_chart_key keys[WSS_CHART_NAMED_MAX + 2];
	const struct wss_chart chart = {.name = "Miss-rate curve",
					.before = "What less memory would cost",
					.after = "",
					.source = source_of(host, guests, n),
					.keys = keys,
					.n_keys = missrate_make_legend(guests, n, keys),
					.left = LEFT,
					.right = RIGHT,
					.plot_height = PLOT_HEIGHT,
					.below = WSS_AXIS_BELOW};
	struct missrate_frame frame = {.largest = largest_bytes(guests, n, question)};

	wss_chart_begin(f, &chart, &frame.box);
	missrate_draw_axes(f, &frame);
	missrate_draw_plot(f, &frame, guests, n, question);
	wss_svg_end(f);
}
