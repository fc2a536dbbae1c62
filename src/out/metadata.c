/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "out/metadata.h"

#include <errno.h>
#include <inttypes.h>
#include <libxml/parser.h>
#include <libxml/tree.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/units.h"

/* A profile is about 600 bytes: more than this was not written by us. */
#define METADATA_MAX (64 * 1024)
#define WINDOW_MAX_S 1e9

static void cleanup_doc(xmlDocPtr *doc)
{
	xmlFreeDoc(*doc);
}

static void cleanup_xml(xmlChar **text)
{
	xmlFree(*text);
}

#define auto_doc wss_cleanup(cleanup_doc)
#define auto_xml wss_cleanup(cleanup_xml)

static bool set_attribute(xmlNodePtr node, const char *name, const char *value)
{
	return xmlNewProp(node, BAD_CAST name, BAD_CAST value) != NULL;
}

static bool add_bytes(xmlNodePtr root, const char *name, uint64_t bytes)
{
	char text[24];
	xmlNodePtr node;

	snprintf(text, sizeof(text), "%" PRIu64, bytes);
	node = xmlNewTextChild(root, NULL, BAD_CAST name, BAD_CAST text);
	return node && set_attribute(node, "unit", "bytes");
}

static bool add_amount(xmlNodePtr root, const char *name, struct wss_amount amount)
{
	return !amount.known || add_bytes(root, name, amount.value);
}

static bool fill(xmlNodePtr root, const struct wss_profile *profile)
{
	char version[16], time_text[WSS_CLOCK_TEXT_MAX], window[32], granularity[24];

	snprintf(version, sizeof(version), "%u", profile->version);
	wss_clock_format(profile->time, time_text);
	wss_seconds_format(profile->window_ns, window, sizeof(window));
	snprintf(granularity, sizeof(granularity), "%" PRIu64, profile->granularity_bytes);
	return set_attribute(root, "version", version) && set_attribute(root, "time", time_text) &&
	       set_attribute(root, "method", profile->method) &&
	       set_attribute(root, "observes", profile->observes) &&
	       set_attribute(root, "window", window) &&
	       set_attribute(root, "granularity", granularity) &&
	       set_attribute(root, "confidence", profile->confidence) &&
	       set_attribute(root, "tool", profile->tool) &&
	       add_bytes(root, "current", profile->current_bytes) &&
	       add_bytes(root, "low", profile->low_bytes) &&
	       add_bytes(root, "high", profile->high_bytes) &&
	       add_amount(root, "p50", profile->p50_bytes) &&
	       add_amount(root, "p95", profile->p95_bytes) &&
	       add_amount(root, "peak", profile->peak_bytes);
}

int wss_metadata_write(const struct wss_profile *profile, char **ret_xml, struct wss_error *err)
{
	auto_doc xmlDocPtr doc = xmlNewDoc(BAD_CAST "1.0");
	xmlNodePtr root = doc ? xmlNewNode(NULL, BAD_CAST "profile") : NULL;
	xmlBufferPtr buffer = xmlBufferCreate();
	char *text = NULL;

	if (root) {
		xmlDocSetRootElement(doc, root);
		if (buffer && fill(root, profile) && xmlNodeDump(buffer, doc, root, 0, 1) > 0)
			text = strdup((const char *)xmlBufferContent(buffer));
	}
	xmlBufferFree(buffer);
	if (!text)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	*ret_xml = text;
	return 0;
}

static int bad(struct wss_error *err, const char *what)
{
	return wss_error_set(err, WSS_ERR_FAILED, "profile in the metadata: %s", what);
}

static int parse_u64(const char *text, uint64_t *ret_value)
{
	size_t len = strlen(text);

	if (!len || len > 20 || strspn(text, "0123456789") != len)
		return -1;
	errno = 0;
	*ret_value = strtoull(text, NULL, 10);
	return errno ? -1 : 0;
}

/* A required attribute as text into a buffer. */
static int get_text(xmlNodePtr root, const char *name, char *buf, size_t size)
{
	auto_xml xmlChar *text = xmlGetProp(root, BAD_CAST name);

	if (!text || strlen((const char *)text) >= size)
		return -1;
	snprintf(buf, size, "%s", (const char *)text);
	wss_text_sanitize(buf);
	return 0;
}

static xmlNodePtr child(xmlNodePtr root, const char *name)
{
	for (xmlNodePtr node = root->children; node; node = node->next)
		if (node->type == XML_ELEMENT_NODE && !strcmp((const char *)node->name, name))
			return node;
	return NULL;
}

/* A child with a number of bytes: known, absent, or -1 where it is malformed. */
static int get_bytes(xmlNodePtr root, const char *name, struct wss_amount *ret_amount)
{
	xmlNodePtr node = child(root, name);
	auto_xml xmlChar *text = node ? xmlNodeGetContent(node) : NULL;

	ret_amount->known = false;
	if (!node)
		return 0;
	if (!text || parse_u64((const char *)text, &ret_amount->value) < 0)
		return -1;
	ret_amount->known = true;
	return 0;
}

static int get_window(xmlNodePtr root, uint64_t *ret_ns)
{
	char text[32], *end;
	double seconds;

	if (get_text(root, "window", text, sizeof(text)) < 0 || text[0] < '0' || text[0] > '9' ||
	    strspn(text, "0123456789.") != strlen(text))
		return -1;
	seconds = strtod(text, &end);
	if (*end || !(seconds >= 0 && seconds <= WINDOW_MAX_S))
		return -1;
	*ret_ns = (uint64_t)(seconds * 1e9 + 0.5);
	return 0;
}

static int read_attributes(xmlNodePtr root, struct wss_profile *profile, struct wss_error *err)
{
	char version[16], time_text[WSS_CLOCK_TEXT_MAX], granularity[24];
	uint64_t number;

	if (get_text(root, "version", version, sizeof(version)) < 0 ||
	    parse_u64(version, &number) < 0)
		return bad(err, "no version");
	if (number != WSS_PROFILE_VERSION)
		return bad(err, "a version that this program does not know");
	profile->version = (unsigned)number;
	if (get_text(root, "time", time_text, sizeof(time_text)) < 0 ||
	    wss_clock_parse(time_text, &profile->time) < 0)
		return bad(err, "no valid time");
	if (get_text(root, "granularity", granularity, sizeof(granularity)) < 0 ||
	    parse_u64(granularity, &profile->granularity_bytes) < 0)
		return bad(err, "no valid granularity");
	if (get_window(root, &profile->window_ns) < 0)
		return bad(err, "no valid window");
	if (get_text(root, "method", profile->method, sizeof(profile->method)) < 0 ||
	    get_text(root, "observes", profile->observes, sizeof(profile->observes)) < 0 ||
	    get_text(root, "confidence", profile->confidence, sizeof(profile->confidence)) < 0 ||
	    get_text(root, "tool", profile->tool, sizeof(profile->tool)) < 0)
		return bad(err, "method, observes, confidence or tool is missing");
	return 0;
}

static int read_figures(xmlNodePtr root, struct wss_profile *profile, struct wss_error *err)
{
	struct wss_amount current, low, high;

	if (get_bytes(root, "current", &current) < 0 || get_bytes(root, "low", &low) < 0 ||
	    get_bytes(root, "high", &high) < 0 || get_bytes(root, "p50", &profile->p50_bytes) < 0 ||
	    get_bytes(root, "p95", &profile->p95_bytes) < 0 ||
	    get_bytes(root, "peak", &profile->peak_bytes) < 0)
		return bad(err, "a figure is not a number of bytes");
	if (!current.known)
		return bad(err, "no current figure");
	profile->current_bytes = current.value;
	profile->low_bytes = low.known ? low.value : current.value;
	profile->high_bytes = high.known ? high.value : current.value;
	return 0;
}

/* Set as the parser's handler of <!DOCTYPE: no declaration, no entity, no expansion. */
static void refuse_doctype(void *opaque, const xmlChar *name, const xmlChar *external_id,
			   const xmlChar *system_id)
{
	(void)name;
	(void)external_id;
	(void)system_id;
	*(bool *)((xmlParserCtxtPtr)opaque)->_private = true;
	xmlStopParser(opaque);
}

static xmlDocPtr parse(const char *xml, size_t len)
{
	xmlParserCtxtPtr ctxt = xmlNewParserCtxt();
	bool has_doctype = false;
	xmlDocPtr doc = NULL;

	if (!ctxt)
		return NULL;
	ctxt->sax->internalSubset = refuse_doctype;
	ctxt->_private = &has_doctype;
	doc = xmlCtxtReadMemory(ctxt, xml, (int)len, "metadata", NULL,
				XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_NOWARNING);
	xmlFreeParserCtxt(ctxt);
	if (has_doctype) {
		xmlFreeDoc(doc);
		doc = NULL;
	}
	return doc;
}

int wss_metadata_read(const char *xml, struct wss_profile *ret_profile, struct wss_error *err)
{
	size_t len = strnlen(xml, METADATA_MAX + 1);
	auto_doc xmlDocPtr doc = NULL;
	struct wss_profile profile = { 0 };
	xmlNodePtr root;

	if (len > METADATA_MAX)
		return bad(err, "longer than 64 KiB");
	doc = parse(xml, len);
	root = doc ? xmlDocGetRootElement(doc) : NULL;
	if (!root || strcmp((const char *)root->name, "profile"))
		return bad(err, "not a <profile> element");
	if (read_attributes(root, &profile, err) < 0 || read_figures(root, &profile, err) < 0)
		return -1;
	*ret_profile = profile;
	return 0;
}
