/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "show/svg.h"

#include <string.h>

#include "base/text.h"

/*
 * Colours of Okabe and Ito, which colour-blind readers can tell apart, a little darker or lighter.
 */
static const char style[] =
	"svg{color-scheme:light dark}\n"
	".back{fill:#fff}\n"
	/* The outline keeps labels in the plot readable on top of lines. */
	".value{stroke:#fff;stroke-width:4;stroke-linejoin:round;paint-order:stroke}\n"
	"text{font-family:sans-serif;font-size:14px;fill:#222}\n"
	".title{font-size:17px;font-weight:bold}\n"
	".small{font-size:12px;fill:#555}\n"
	"line,path{fill:none;stroke-width:1}\n"
	".axis{stroke:#444}\n"
	".grid{stroke:#e2e2e2}\n"
	".reference{stroke:#777;stroke-width:1.4;stroke-dasharray:8 4}\n"
	".balloon{stroke-dasharray:2 4}\n"
	".mark{stroke:#666;stroke-width:1.4}.through{stroke-dasharray:3 3}\n"
	"path.curve,line.curve{stroke-width:2.5}\n"
	".bound{stroke-dasharray:6 4}\n"
	"path.band,rect.band{stroke:none;fill-opacity:.26}\n"
	"path.bounds,rect.bounds{stroke:none;fill-opacity:.13}\n"
	"path.faint{fill-opacity:.05}\n"
	".s0{stroke:#0072b2;fill:#0072b2}.s1{stroke:#d55e00;fill:#d55e00}\n"
	".s2{stroke:#009e73;fill:#009e73}.s3{stroke:#b3579a;fill:#b3579a}\n"
	".s4{stroke:#a67c00;fill:#a67c00}.s5{stroke:#3a8fc4;fill:#3a8fc4}\n"
	".s6{stroke:#777;fill:#777}.s7{stroke:#8c4a1f;fill:#8c4a1f}\n"
	"path.curve{fill:none}\n"
	".gap{fill:url(#hatch);stroke:none}.hatch{stroke:#9aa3ad}\n"
	"[class^=h]{shape-rendering:crispEdges}\n"
	".h0{fill:#eceff2}.h1{fill:#fff0b0}.h2{fill:#fdd272}.h3{fill:#fba63f}\n"
	".h4{fill:#f0743a}.h5{fill:#d93a2b}.h6{fill:#a50f26}.h7{fill:#5c0a2e}\n"
	"@media (prefers-color-scheme:dark){\n"
	".back{fill:#16191d}.value{stroke:#16191d}text{fill:#e4e4e4}.small{fill:#a8a8a8}\n"
	".axis{stroke:#b0b0b0}.grid{stroke:#2c3138}.reference{stroke:#9a9a9a}\n"
	".mark{stroke:#a8a8a8}\n"
	".s0{stroke:#56b4e9;fill:#56b4e9}.s1{stroke:#f08a3c;fill:#f08a3c}\n"
	".s2{stroke:#2fc79a;fill:#2fc79a}.s3{stroke:#dd8fc4;fill:#dd8fc4}\n"
	".s4{stroke:#d0a530;fill:#d0a530}.s6{stroke:#a0a0a0;fill:#a0a0a0}\n"
	".s7{stroke:#c98a5a;fill:#c98a5a}\n"
	".hatch{stroke:#646d78}\n"
	".h0{fill:#23282f}.h1{fill:#4a3312}.h2{fill:#774b0f}.h3{fill:#a8620c}\n"
	".h4{fill:#d97d14}.h5{fill:#f7a13b}.h6{fill:#ffcb73}.h7{fill:#fff3cf}\n"
	"path.curve{fill:none}}\n";

/* Hatching for unobserved time, distinct from both the scale and the background. */
static const char hatch[] =
	"<defs><pattern id=\"hatch\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\">"
	"<path class=\"hatch\" d=\"M0 6L6 0\"/></pattern></defs>\n";

const char *wss_svg_series(size_t i)
{
	static const char classes[WSS_SVG_SERIES][4] = {"s0", "s1", "s2", "s3",
							"s4", "s5", "s6", "s7"};

	return classes[i % WSS_SVG_SERIES];
}

static void write_escaped(FILE *f, const char *text)
{
	while (*text) {
		int len = wss_text_shown(text);

		switch (*text) {
		case '<':
			fputs("&lt;", f);
			break;
		case '>':
			fputs("&gt;", f);
			break;
		case '&':
			fputs("&amp;", f);
			break;
		case '"':
			fputs("&quot;", f);
			break;
		default:
			/* XML has no escape for characters that it excludes. */
			if (len)
				fwrite(text, (size_t)len, 1, f);
			else
				fputc('?', f);
			break;
		}
		text += len ? len : 1;
	}
}

void wss_svg_begin(FILE *f, double width, double height, const char *title)
{
	fprintf(f,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		"<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %g %g\" role=\"img\">\n<title>",
		width, height);
	write_escaped(f, title);
	fprintf(f, "</title>\n<style>\n%s</style>\n%s", style, hatch);
	fprintf(f, "<rect class=\"back\" width=\"%g\" height=\"%g\"/>\n", width, height);
}

void wss_svg_end(FILE *f)
{
	fputs("</svg>\n", f);
}

void wss_svg_line(FILE *f, double x1, double y1, double x2, double y2, const char *class)
{
	fprintf(f, "<line class=\"%s\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n", class,
		x1, y1, x2, y2);
}

void wss_svg_path(FILE *f, const struct wss_svg_point *points, size_t n, bool closed,
		  const char *class)
{
	if (!n)
		return;
	fprintf(f, "<path class=\"%s\" d=\"", class);
	for (size_t i = 0; i < n; i++)
		fprintf(f, "%s%.1f %.1f", i ? "L" : "M", points[i].x, points[i].y);
	fprintf(f, "%s\"/>\n", closed ? "Z" : "");
}

void wss_svg_rect(FILE *f, double x, double y, double width, double height, const char *class)
{
	fprintf(f, "<rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>\n",
		class, x, y, width, height);
}

void wss_svg_circle(FILE *f, double x, double y, double radius, const char *class)
{
	fprintf(f, "<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\"/>\n", class, x, y,
		radius);
}

void wss_svg_text(FILE *f, double x, double y, enum wss_anchor anchor, const char *class,
		  const char *text)
{
	static const char *const anchors[] = {"start", "middle", "end"};

	fprintf(f, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", class, x, y,
		anchors[anchor]);
	write_escaped(f, text);
	fputs("</text>\n", f);
}

/*
 * Width of a letter in the widest bold sans-serif font, relative to the font size, because the
 * actual font is unknown.
 */
static double letter_width(unsigned char letter)
{
	if (letter >= 0x80 || strchr("MWmw@%", letter))
		return 1.15;
	if (strchr(" .,:;!'|()[]/-", letter))
		return 0.5;
	return (letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9') ? 0.74 : 0.88;
}

double wss_svg_text_width(const char *text, double font)
{
	double width = 0;

	for (; *text; text++)
		if (((unsigned char)*text & 0xc0) != 0x80)
			width += font * letter_width((unsigned char)*text);
	return width;
}

void wss_svg_fit(char *text, size_t size, double font, double width)
{
	static const char ellipsis[] = "\xe2\x80\xa6";
	double room = width - wss_svg_text_width(ellipsis, font), taken = 0;
	size_t end = 0;

	if (wss_svg_text_width(text, font) <= width)
		return;
	for (size_t i = 0; text[i] && i + sizeof(ellipsis) <= size; i++) {
		if (((unsigned char)text[i] & 0xc0) == 0x80)
			continue;
		/* Everything up to this character fits. */
		end = i;
		taken += font * letter_width((unsigned char)text[i]);
		if (taken > room)
			break;
	}
	memcpy(text + end, ellipsis, sizeof(ellipsis));
}

void wss_svg_text_upright(FILE *f, double x, double y, const char *class, const char *text)
{
	fprintf(f,
		"<text class=\"%s\" text-anchor=\"middle\" transform=\"translate(%.1f %.1f) rotate(-90)\">",
		class, x, y);
	write_escaped(f, text);
	fputs("</text>\n", f);
}
