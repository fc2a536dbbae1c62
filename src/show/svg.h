/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A small writer of SVG 1.1, enough for charts. Colours come from classes in a style sheet inside
 * the picture, which follows the reader's light or dark setting. Every text is escaped. Coordinates
 * are in pixels of the view box.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum wss_anchor { WSS_ANCHOR_START, WSS_ANCHOR_MIDDLE, WSS_ANCHOR_END };

/* Number of series with a colour of their own: classes s0, s1 ...; further ones repeat them. */
#define WSS_SVG_SERIES 8

/* Returns the class of series i, static. */
const char *wss_svg_series(size_t i);

struct wss_svg_point {
	double x;
	double y;
};

/* Starts the picture, with a title for screen readers and a background. */
void wss_svg_begin(FILE *f, double width, double height, const char *title);

void wss_svg_end(FILE *f);

/*
 * class: class names from the style sheet: "axis", "grid", "reference", "mark", "s0" ..., or
 * "key" for the legend.
 */
void wss_svg_line(FILE *f, double x1, double y1, double x2, double y2, const char *class);

/*
 * Draws a line through n points, or the area that they enclose. class: "curve" for a line, with
 * "bound" if dashed; "band" or the paler "bounds" for an area, with "faint" if paler still; each
 * with a colour.
 */
void wss_svg_path(FILE *f, const struct wss_svg_point *points, size_t n, bool closed,
		  const char *class);

/*
 * class "gap" for time that was not observed, "h0" to "h7" for a scale, "band s0" as for an area.
 */
void wss_svg_rect(FILE *f, double x, double y, double width, double height, const char *class);

/* Number of classes of the scale; h0 stands for zero. */
#define WSS_SVG_SCALE 8

void wss_svg_circle(FILE *f, double x, double y, double radius, const char *class);

void wss_svg_text(FILE *f, double x, double y, enum wss_anchor anchor, const char *class,
		  const char *text);

/* Fonts of the style sheet by class, in pixels: "title", "small", and all others. */
#define WSS_SVG_FONT_TITLE 17.0
#define WSS_SVG_FONT_SMALL 12.0
#define WSS_SVG_FONT 14.0

/* Returns the largest width of a text in any font that the viewer may use, bold or not. */
double wss_svg_text_width(const char *text, double font);

/*
 * Shortens text, a buffer of size bytes, to at most width pixels in a font of that size, also
 * in pixels; cut text ends in an ellipsis.
 */
void wss_svg_fit(char *text, size_t size, double font, double width);

/* Draws text that runs upwards, for the axis on the left. */
void wss_svg_text_upright(FILE *f, double x, double y, const char *class, const char *text);
