/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "out/refset-chart.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/units.h"
#include "out/axis.h"
#include "out/svg.h"

#define WIDTH 960.0
#define LEFT 104.0
#define RIGHT 24.0
#define TOP 110.0
#define CELLS_HEIGHT 480.0
#define BELOW 66.0
/* Labels of the address axis are at least so far apart. */
#define LABEL_DISTANCE 20.0
/* More holes than that are drawn without words. */
#define HOLES_NAMED 8
#define HOLE_HEIGHT 22.0
#define HOLE_HEIGHT_SMALL 4.0

/* Upper ends of the classes h1 to h7: shares of the pages of a cell. Each is included. */
static const struct {
	double share;
	const char *label;
} scale[WSS_SVG_SCALE] = {
	{ 0, "none" },	  { .001, "to 0.1 %" }, { .01, "to 1 %" }, { .05, "to 5 %" },
	{ .2, "to 20 %" }, { .5, "to 50 %" },	{ .99, "to 99 %" }, { 1, "all" },
};

struct frame {
	double left, right, top, bottom;
	double row_height, hole_height;
	size_t holes;
};

static struct frame fit(const struct wss_heatmap *map)
{
	struct frame frame = { .left = LEFT, .right = WIDTH - RIGHT, .top = TOP };

	for (size_t i = 0; i < map->n_rows; i++)
		frame.holes += map->rows[i].hole_before;
	frame.hole_height = frame.holes > HOLES_NAMED ? HOLE_HEIGHT_SMALL : HOLE_HEIGHT;
	frame.row_height = CELLS_HEIGHT / (double)map->n_rows;
	frame.bottom = TOP + CELLS_HEIGHT + frame.hole_height * (double)frame.holes;
	return frame;
}

static unsigned class_of(double share)
{
	unsigned i = 0;

	while (i + 1 < WSS_SVG_SCALE && share > scale[i].share)
		i++;
	return i;
}

static void draw_row(FILE *f, const struct frame *frame, const struct wss_heatmap *map, size_t row,
		     double y)
{
	double width = (frame->right - frame->left) / (double)map->n_columns;
	size_t from = 0;

	for (size_t c = 1; c <= map->n_columns; c++) {
		double share = wss_heatmap_cell(map, row, from);
		bool gap = share < 0;
		char class[8] = "gap";

		/* Neighbours of one class are one rectangle. */
		if (c < map->n_columns) {
			double next = wss_heatmap_cell(map, row, c);

			if ((next < 0) == gap && (gap || class_of(next) == class_of(share)))
				continue;
		}
		if (!gap)
			snprintf(class, sizeof(class), "h%u", class_of(share));
		wss_svg_rect(f, frame->left + width * (double)from, y, width * (double)(c - from),
			     frame->row_height + .4, class);
		from = c;
	}
}

static void draw_hole(FILE *f, const struct frame *frame, const struct wss_recording *recording,
		      const struct wss_heatmap *map, size_t row, double y)
{
	const struct wss_heatmap_row *before = &map->rows[row - 1];
	uint64_t end = wss_recording_address(recording, before->first + before->n - 1) +
		       WSS_PAGE_BYTES;
	double middle = y + frame->hole_height / 2;
	char size[16], text[64];

	if (frame->hole_height < HOLE_HEIGHT) {
		wss_svg_line(f, frame->left, middle, frame->right, middle, "reference");
		return;
	}
	wss_size_format(map->rows[row].address - end, size, sizeof(size));
	snprintf(text, sizeof(text), "no memory for %s", size);
	wss_svg_line(f, frame->left, y + 2, frame->right, y + 2, "reference");
	wss_svg_line(f, frame->left, y + frame->hole_height - 2, frame->right,
		     y + frame->hole_height - 2, "reference");
	wss_svg_text(f, (frame->left + frame->right) / 2, middle + 4, WSS_ANCHOR_MIDDLE, "small",
		     text);
}

static void put_label(FILE *f, const struct frame *frame, uint64_t address, double y, double *last)
{
	char text[16];

	if (y - *last < LABEL_DISTANCE)
		return;
	wss_size_format(address, text, sizeof(text));
	wss_svg_line(f, frame->left - 5, y, frame->left, y, "axis");
	wss_svg_text(f, frame->left - 9, y + 5, WSS_ANCHOR_END, "tick", text);
	*last = y;
}

/* At the beginning of each stretch, and at each round address, as far as there is room. */
static void draw_label(FILE *f, const struct frame *frame, const struct wss_heatmap *map,
		       size_t row, double y, uint64_t step, double *last)
{
	const struct wss_heatmap_row *shown = &map->rows[row];
	uint64_t round = (shown->address + step - 1) / step * step;

	if (row == 0 || shown->hole_before)
		put_label(f, frame, shown->address, y, last);
	if (round > shown->address && round - shown->address < shown->n << WSS_PAGE_SHIFT)
		put_label(f, frame, round,
			  y + frame->row_height * (double)(round - shown->address) /
				      (double)(map->row_pages << WSS_PAGE_SHIFT),
			  last);
	else if (round == shown->address)
		put_label(f, frame, round, y, last);
}

static void draw_rows(FILE *f, const struct frame *frame, const struct wss_recording *recording,
		      const struct wss_heatmap *map)
{
	uint64_t row_bytes = map->row_pages << WSS_PAGE_SHIFT;
	uint64_t step = row_bytes;
	double y = frame->top, last = -1e9;

	while ((double)(step / row_bytes) * frame->row_height < LABEL_DISTANCE)
		step *= 2;
	for (size_t row = 0; row < map->n_rows; row++) {
		if (map->rows[row].hole_before) {
			draw_hole(f, frame, recording, map, row, y);
			y += frame->hole_height;
		}
		draw_row(f, frame, map, row, y);
		draw_label(f, frame, map, row, y, step, &last);
		y += frame->row_height;
	}
}

static void draw_axes(FILE *f, const struct frame *frame, const struct wss_heatmap *map)
{
	char row[16], label[64];

	wss_axis_draw_time(f,
			   &(struct wss_axis_box){ frame->left, frame->right, frame->top, frame->bottom },
			   (double)map->end_ns);
	wss_size_format(map->row_pages << WSS_PAGE_SHIFT, row, sizeof(row));
	snprintf(label, sizeof(label), "guest-physical address, %s a row", row);
	wss_svg_text_upright(f, 18, (frame->top + frame->bottom) / 2, "label", label);
}

static void draw_legend(FILE *f)
{
	const double step = 90;
	double x = LEFT;

	wss_svg_text(f, LEFT, 54, WSS_ANCHOR_START, "legend",
		     "pages of a cell that are touched in a window, on average:");
	for (unsigned i = 0; i < WSS_SVG_SCALE; i++, x += step) {
		char class[8];

		snprintf(class, sizeof(class), "h%u", i);
		wss_svg_rect(f, x, 66, 14, 14, class);
		wss_svg_text(f, x + 19, 78, WSS_ANCHOR_START, "legend small", scale[i].label);
	}
	wss_svg_rect(f, x, 66, 14, 14, "gap");
	wss_svg_text(f, x + 19, 78, WSS_ANCHOR_START, "legend small", "not observed");
}

void wss_heatmap_plot(FILE *f, const struct wss_recording *recording,
		      const struct wss_heatmap *map)
{
	struct frame frame = fit(map);

	wss_svg_begin(f, WIDTH, frame.bottom + BELOW, "Heat map of guest memory");
	wss_svg_title(f, frame.left, 28, frame.right - frame.left, "How often ", recording->domain,
		      " touched its memory");
	draw_legend(f);
	draw_rows(f, &frame, recording, map);
	draw_axes(f, &frame, map);
	wss_svg_end(f);
}
