/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A small writer of SVG 1.1: enough for charts. Colours come from classes in a style
 * sheet inside the picture, which follows the reader's light or dark setting. Every text
 * is escaped. Coordinates are in pixels of the view box.
 */
#ifndef WSS_OUT_SVG_H
#define WSS_OUT_SVG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum wss_anchor { WSS_ANCHOR_START, WSS_ANCHOR_MIDDLE, WSS_ANCHOR_END };

/* How many series have a colour of their own: classes s0, s1 ...; more repeat them. */
#define WSS_SVG_SERIES 8

struct wss_svg_point {
	double x;
	double y;
};

/* Opens the picture, with a title for screen readers and a background. */
void wss_svg_begin(FILE *f, double width, double height, const char *title);

void wss_svg_end(FILE *f);

/* class names of the style sheet: "axis", "grid", "reference", "s0" ... */
void wss_svg_line(FILE *f, double x1, double y1, double x2, double y2, const char *class);

/* A line through n points; closed: an area (class "band" besides the given one). */
void wss_svg_path(FILE *f, const struct wss_svg_point *points, size_t n, bool closed,
		  const char *class);

/* class "gap" for what was not observed, "view" for a marked part, "h0" to "h7" for a scale. */
void wss_svg_rect(FILE *f, double x, double y, double width, double height, const char *class);

/* Classes of the scale, h0 for nothing at all. */
#define WSS_SVG_SCALE 8

void wss_svg_circle(FILE *f, double x, double y, double radius, const char *class);

void wss_svg_text(FILE *f, double x, double y, enum wss_anchor anchor, const char *class,
		  const char *text);

/*
 * Shortens text, a buffer of size bytes, so that it is no wider than width at a font of so many
 * pixels, bold or not, whatever its letters.
 */
void wss_svg_fit(char *text, size_t size, double font, double width);

/* The picture's title, not wider than width: before, a name that is shortened for it, after. */
void wss_svg_title(FILE *f, double x, double y, double width, const char *before, const char *name,
		   const char *after);

/* Upright text, read from below; for the axis on the left. */
void wss_svg_text_upright(FILE *f, double x, double y, const char *class, const char *text);

#endif
