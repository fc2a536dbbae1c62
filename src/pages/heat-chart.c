/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "pages/refset-chart.h"

#include <math.h>

#include "base/units.h"
#include "pages/recording-chart.h"
#include "show/svg.h"

#define LEFT 104.0
#define RIGHT 40.0
/* Right margin, for the names of NUMA nodes and memory devices. */
#define RIGHT_WITH_REGIONS 150.0
#define CELLS_HEIGHT 480.0
/* Smallest distance between round addresses. */
#define LABEL_DISTANCE 20.0
/* Largest number of holes that are drawn with labels. */
#define HOLES_NAMED 8
#define HOLE_HEIGHT 22.0
#define HOLE_HEIGHT_SMALL 4.0
/* Cells overlap the ones below slightly, so that no background shows through. */
#define OVERLAP 0.6
/* Height of a name next to the map, and length of its line. */
#define NAME_HEIGHT 15.0
#define NAME_X 12.0
#define BRACKET_X 6.0

/* Upper ends of the classes h1 to h7, inclusive: shares of the pages of a cell. */
static const struct {
	double share;
	const char *label;
} scale[WSS_SVG_SCALE] = {
	{0, "none"},  {.001, "up to 0.1 %"}, {.01, "1 %"},  {.05, "5 %"},
	{.2, "20 %"}, {.5, "50 %"},	     {.99, "99 %"}, {1, "all"},
};

struct heat_frame {
	struct wss_axis_box box;
	const struct wss_recording *recording;
	const struct wss_heatmap *map;
	double row_height, hole_height;
};

static size_t count_holes(const struct wss_heatmap *map)
{
	size_t n = 0;

	for (size_t i = 0; i < map->n_rows; i++)
		n += map->rows[i].hole_before;
	return n;
}

static unsigned class_of(double share)
{
	unsigned i = 0;

	while (i + 1 < WSS_SVG_SCALE && share > scale[i].share)
		i++;
	return i;
}

/* Returns the class of a cell, or -1 if it was not observed. */
static int cell_class(const struct wss_heatmap *map, size_t row, size_t column)
{
	double share = wss_heatmap_cell(map, row, column);

	return share < 0 ? -1 : (int)class_of(share);
}

/* Draws the cells from one column to another, exclusive. */
static void draw_cells(FILE *f, const struct heat_frame *frame, size_t row, double y, size_t from,
		       size_t to)
{
	const struct wss_heatmap *map = frame->map;
	double width = (frame->box.right - frame->box.left) / (double)map->n_columns;
	bool last_row = row + 1 == map->n_rows || map->rows[row + 1].hole_before;
	bool last = to == map->n_columns || cell_class(map, row, to) < 0;
	int shown = cell_class(map, row, from);
	char class[16] = "gap";

	if (shown >= 0)
		snprintf(class, sizeof(class), "h%u", (unsigned)shown);
	wss_svg_rect(f, frame->box.left + width * (double)from, y,
		     width * (double)(to - from) + (last || shown < 0 ? 0 : OVERLAP),
		     frame->row_height + (last_row || shown < 0 ? 0 : OVERLAP), class);
}

/* Draws a row; neighbours of the same class share a rectangle. */
static void draw_row(FILE *f, const struct heat_frame *frame, size_t row, double y)
{
	const struct wss_heatmap *map = frame->map;
	size_t from = 0;

	for (size_t c = 1; c <= map->n_columns; c++) {
		if (c < map->n_columns && cell_class(map, row, c) == cell_class(map, row, from))
			continue;
		draw_cells(f, frame, row, y, from, c);
		from = c;
	}
}

/* Returns the address at which the memory of a row ends. */
static uint64_t end_address(const struct heat_frame *frame, size_t row)
{
	const struct wss_heatmap_row *shown = &frame->map->rows[row];

	return wss_recording_address(frame->recording, shown->first + shown->n - 1) +
	       WSS_PAGE_BYTES;
}

/* Draws the address-space hole before a row that begins at y. */
static void draw_hole(FILE *f, const struct heat_frame *frame, size_t row, double y)
{
	double top = y - frame->hole_height, middle = y - frame->hole_height / 2;
	const struct wss_axis_box *box = &frame->box;
	char size[16], text[64];

	if (frame->hole_height < HOLE_HEIGHT) {
		wss_svg_line(f, box->left, middle, box->right, middle, "reference");
		return;
	}
	wss_size_format(frame->map->rows[row].address - end_address(frame, row - 1), size,
			sizeof(size));
	snprintf(text, sizeof(text), "hole of %s: no memory", size);
	wss_svg_line(f, box->left, top + 2, box->right, top + 2, "reference");
	wss_svg_line(f, box->left, y - 2, box->right, y - 2, "reference");
	wss_svg_text(f, (box->left + box->right) / 2, middle + 4, WSS_ANCHOR_MIDDLE, "small", text);
}

/* Returns the upper edge of a row. */
static double row_y(const struct heat_frame *frame, size_t row)
{
	double y = frame->box.top + frame->row_height * (double)row;

	for (size_t i = 1; i <= row && i < frame->map->n_rows; i++)
		y += frame->map->rows[i].hole_before ? frame->hole_height : 0;
	return y;
}

/* Returns the position of the page with this index; the lower end for an index after the last. */
static double page_y(const struct heat_frame *frame, uint64_t index)
{
	const struct wss_heatmap *map = frame->map;
	size_t row = 0;

	while (row + 1 < map->n_rows && map->rows[row + 1].first <= index)
		row++;
	return row_y(frame, row) + frame->row_height * (double)(index - map->rows[row].first) /
					   (double)map->rows[row].n;
}

static void add_address(struct wss_ticks *ticks, uint64_t address, double y)
{
	char text[24];

	wss_axis_size_label(address, text, sizeof(text));
	wss_ticks_add(ticks, y, text);
}

/*
 * Places ticks at the ends of the memory and of its stretches first, then at round addresses
 * where there is room.
 */
static void find_addresses(const struct heat_frame *frame, struct wss_ticks *ticks)
{
	const struct wss_heatmap *map = frame->map;
	uint64_t row_bytes = map->row_pages << WSS_PAGE_SHIFT, step = row_bytes;
	size_t last = map->n_rows - 1;

	while ((double)(step / row_bytes) * frame->row_height < LABEL_DISTANCE)
		step *= 2;
	add_address(ticks, map->rows[0].address, frame->box.top);
	add_address(ticks, end_address(frame, last), frame->box.bottom);
	for (size_t row = 1; row <= last; row++)
		if (map->rows[row].hole_before)
			add_address(ticks, map->rows[row].address, row_y(frame, row));
	for (size_t row = 0; row <= last; row++) {
		uint64_t address = map->rows[row].address;
		uint64_t round = (address + step - 1) / step * step;

		if (round - address < map->rows[row].n << WSS_PAGE_SHIFT)
			add_address(ticks, round,
				    page_y(frame, map->rows[row].first +
							  ((round - address) >> WSS_PAGE_SHIFT)));
	}
}

static void heat_draw_axes(FILE *f, const struct heat_frame *frame)
{
	struct wss_ticks across = {.vertical = false}, down = {.vertical = true};
	char size[16], label[64];

	wss_ticks_time(&across, &frame->box, 0, (double)frame->map->end_ns);
	wss_axis_draw(f, &frame->box, &across, "time since the recording began", false);
	find_addresses(frame, &down);
	wss_size_format(frame->map->row_pages << WSS_PAGE_SHIFT, size, sizeof(size));
	snprintf(label, sizeof(label), "guest-physical address, %s a row", size);
	wss_axis_draw(f, &frame->box, &down, label, false);
}

/* Whether names are useful: there is more than one node, or any device. */
static bool has_names(const struct wss_recording *recording)
{
	for (size_t i = 0; i < recording->n_regions; i++)
		if (recording->regions[i].kind == WSS_REGION_DEVICE ||
		    recording->regions[i].node != recording->regions[0].node)
			return true;
	return false;
}

/* Whether both belong to one device, or to the RAM of one node. */
static bool is_same(const struct wss_region *a, const struct wss_region *b)
{
	return a->node == b->node && a->kind != WSS_REGION_DEVICE && b->kind != WSS_REGION_DEVICE;
}

static void region_name(const struct wss_region *region, char *text, size_t size)
{
	char node[24] = "";

	if (region->node >= 0)
		snprintf(node, sizeof(node), "node %d", region->node);
	if (region->kind != WSS_REGION_DEVICE)
		snprintf(text, size, "%s", node);
	else
		snprintf(text, size, "%s%s%s%s", *region->name ? region->name : "device",
			 *node ? " (" : "", node, *node ? ")" : "");
}

static void draw_region(FILE *f, const struct heat_frame *frame, const struct wss_region *region,
			uint64_t first, uint64_t end, double *last_name)
{
	double x = frame->box.right + BRACKET_X, top = page_y(frame, first), bottom, middle;
	char name[128], text[128];

	/* From the last page, because the next one may lie beyond a hole. */
	bottom = page_y(frame, end - 1);
	middle = (top + bottom) / 2;
	region_name(region, name, sizeof(name));
	if (!*name)
		return;
	wss_svg_line(f, x, top + 1, x, fmax(bottom - 1, top + 2), "axis");
	if (middle - *last_name < NAME_HEIGHT)
		return;
	*last_name = middle;
	wss_chart_fit_name(name, WSS_SVG_FONT_SMALL, WSS_CHART_WIDTH - x - NAME_X, text,
			   sizeof(text));
	wss_svg_text(f, x + NAME_X - BRACKET_X, middle + 4, WSS_ANCHOR_START, "small region", text);
}

/* Draws the names of nodes and devices to the right of the map, at their addresses. */
static void draw_regions(FILE *f, const struct heat_frame *frame)
{
	const struct wss_recording *recording = frame->recording;
	uint64_t first = 0, end = 0;
	double last_name = -1e9;

	for (size_t i = 0; i < recording->n_regions; i++) {
		end += recording->regions[i].length >> WSS_PAGE_SHIFT;
		if (i + 1 < recording->n_regions &&
		    is_same(&recording->regions[i], &recording->regions[i + 1]))
			continue;
		draw_region(f, frame, &recording->regions[i], first, end, &last_name);
		first = end;
	}
}

static void heat_make_legend(struct wss_chart_key keys[WSS_SVG_SCALE + 2])
{
	static const char classes[WSS_SVG_SCALE][4] = {"h0", "h1", "h2", "h3",
						       "h4", "h5", "h6", "h7"};

	keys[0] = (struct wss_chart_key){
		WSS_CHART_NO_SYMBOL, NULL,
		"share of a cell's pages touched in a window, on average:", "", true};
	for (unsigned i = 0; i < WSS_SVG_SCALE; i++) {
		keys[i + 1] = (struct wss_chart_key){WSS_CHART_AREA, classes[i], "", "", false};
		snprintf(keys[i + 1].text, sizeof(keys[i + 1].text), "%s", scale[i].label);
	}
	keys[WSS_SVG_SCALE + 1] =
		(struct wss_chart_key){WSS_CHART_AREA, "gap", "not observed", "", false};
}

static void draw_rows(FILE *f, const struct heat_frame *frame)
{
	for (size_t row = 0; row < frame->map->n_rows; row++) {
		double y = row_y(frame, row);

		if (row && frame->map->rows[row].hole_before)
			draw_hole(f, frame, row, y);
		draw_row(f, frame, row, y);
	}
}

void wss_heatmap_plot(FILE *f, const struct wss_recording *recording, const struct wss_heatmap *map,
		      const struct wss_marks *marks)
{
	const struct wss_mark_chart mark_chart = {marks, 0, (double)map->end_ns, true};
	double holes = (double)count_holes(map);
	struct heat_frame frame = {.recording = recording,
				   .map = map,
				   .row_height = CELLS_HEIGHT / (double)map->n_rows,
				   .hole_height =
					   holes > HOLES_NAMED ? HOLE_HEIGHT_SMALL : HOLE_HEIGHT};
	struct wss_chart_key keys[WSS_SVG_SCALE + 2];
	const struct wss_chart chart = {
		.name = "Heat map of guest memory",
		.before = "How often ",
		.domain = recording->domain,
		.after = " touched its memory",
		.source = wss_recording_source(recording, map->end_ns),
		.keys = keys,
		.n_keys = WSS_SVG_SCALE + 2,
		.left = LEFT,
		.right = has_names(recording) ? RIGHT_WITH_REGIONS : RIGHT,
		.above = wss_mark_chart_above(&mark_chart),
		.plot_height = CELLS_HEIGHT + frame.hole_height * holes,
		.below = WSS_AXIS_BELOW + wss_mark_chart_below(&mark_chart),
	};

	heat_make_legend(keys);
	wss_chart_begin(f, &chart, &frame.box);
	draw_rows(f, &frame);
	heat_draw_axes(f, &frame);
	if (has_names(recording))
		draw_regions(f, &frame);
	wss_mark_chart_draw(f, &mark_chart, &frame.box, frame.box.bottom + WSS_AXIS_BELOW);
	wss_svg_end(f);
}
