/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "measure/element.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"

#define SECONDS_MAX 1e9
#define BLANKS " \t\r\n"

xmlDocPtr wss_element_parse(const char *xml, const char *name, const char *what,
			    struct wss_error *err)
{
	struct wss_error why = WSS_ERROR_INIT;
	xmlNodePtr root;
	xmlDocPtr doc;

	if (strnlen(xml, WSS_ELEMENT_MAX + 1) > WSS_ELEMENT_MAX) {
		wss_error_set(err, WSS_ERR_FAILED, "%s: longer than 64 KiB", what);
		return NULL;
	}
	doc = wss_xml_parse(xml, WSS_ELEMENT_MAX, &why);
	root = doc ? xmlDocGetRootElement(doc) : NULL;
	if (why.code == WSS_ERR_NO_MEMORY) {
		wss_error_set(err, WSS_ERR_NO_MEMORY, "%s: %s", what, why.text);
	} else if (!root || strcmp((const char *)root->name, name)) {
		wss_error_set(err, WSS_ERR_FAILED, "%s: not a <%s> element", what, name);
	} else {
		/* An attribute from another namespace has no defined meaning here. */
		const char *prefixed = wss_xml_prefixed_attribute(root);

		if (!prefixed)
			return doc;
		wss_error_set(err, WSS_ERR_FAILED,
			      "%s: the attribute '%s' has a namespace prefix, which none may have",
			      what, prefixed);
	}
	xmlFreeDoc(doc);
	return NULL;
}

int wss_element_text(xmlNodePtr node, const char *name, char *buf, size_t size)
{
	const xmlChar *text = wss_xml_any_attribute(node, name);

	if (!text || strlen((const char *)text) >= size)
		return -1;
	snprintf(buf, size, "%s", (const char *)text);
	wss_text_sanitize(buf);
	return 0;
}

xmlNodePtr wss_element_child(xmlNodePtr node, const char *name)
{
	for (xmlNodePtr child = node->children; child; child = child->next)
		if (child->type == XML_ELEMENT_NODE && !strcmp((const char *)child->name, name))
			return child;
	return NULL;
}

/* Finds the text between blanks if it consists of these characters; length 0 for anything else. */
static const char *find_number(const char *text, const char *characters, size_t *ret_len)
{
	text += strspn(text, BLANKS);
	*ret_len = strspn(text, characters);
	if (text[*ret_len + strspn(text + *ret_len, BLANKS)])
		*ret_len = 0;
	return text;
}

int wss_element_u64(const char *text, uint64_t *ret_value)
{
	size_t len;

	text = find_number(text, "0123456789", &len);
	if (!len || len > 20)
		return -1;
	errno = 0;
	*ret_value = strtoull(text, NULL, 10);
	return errno ? -1 : 0;
}

int wss_element_seconds(const char *text, uint64_t *ret_ns)
{
	double seconds;
	size_t len;
	char *end;

	text = find_number(text, "0123456789.", &len);
	if (!len || text[0] == '.')
		return -1;
	seconds = strtod(text, &end);
	if (end != text + len || !(seconds >= 0 && seconds <= SECONDS_MAX))
		return -1;
	*ret_ns = wss_u64_from_double(seconds * 1e9 + 0.5);
	return 0;
}

bool wss_element_is_in(xmlNodePtr node, const char *unit)
{
	const xmlChar *said = wss_xml_any_attribute(node, "unit");

	return said ? !strcmp((const char *)said, unit) : strcmp(unit, "bytes") != 0;
}

int wss_element_number(xmlNodePtr node, const char *name, const char *unit,
		       struct wss_amount *ret_amount)
{
	xmlNodePtr child = wss_element_child(node, name);
	const xmlChar *text = wss_xml_content(child);

	ret_amount->known = false;
	if (!child)
		return 0;
	if (!text || (unit && !wss_element_is_in(child, unit)) ||
	    wss_element_u64((const char *)text, &ret_amount->value) < 0)
		return -1;
	ret_amount->known = true;
	return 0;
}

bool wss_element_set(xmlNodePtr node, const char *name, const char *value)
{
	return xmlNewProp(node, BAD_CAST name, BAD_CAST value) != NULL;
}

bool wss_element_add(xmlNodePtr node, const char *name, const char *unit, struct wss_amount amount)
{
	xmlNodePtr child;
	char text[24];

	if (!amount.known)
		return true;
	snprintf(text, sizeof(text), "%" PRIu64, amount.value);
	child = xmlNewTextChild(node, NULL, BAD_CAST name, BAD_CAST text);
	return child && wss_element_set(child, "unit", unit);
}

static char *element_print(xmlDocPtr doc)
{
	/* libxml2 2.9.14 frees a buffer twice if it cannot grow it. */
	xmlBufferPtr buffer = xmlBufferCreateSize(WSS_ELEMENT_MAX);
	char *text = NULL;

	if (buffer && xmlNodeDump(buffer, doc, xmlDocGetRootElement(doc), 0, 1) > 0)
		text = strdup((const char *)xmlBufferContent(buffer));
	xmlBufferFree(buffer);
	return text;
}

static char *write_element(const char *name, bool (*fill)(xmlNodePtr root, const void *opaque),
			   const void *opaque)
{
	wss_auto_xml_doc xmlDocPtr doc = xmlNewDoc(BAD_CAST "1.0");
	xmlNodePtr root = doc ? xmlNewNode(NULL, BAD_CAST name) : NULL;

	if (!root)
		return NULL;
	xmlDocSetRootElement(doc, root);
	return fill(root, opaque) ? element_print(doc) : NULL;
}

int wss_element_write(const char *name, bool (*fill)(xmlNodePtr root, const void *opaque),
		      const void *opaque, char **ret_xml, struct wss_error *err)
{
	wss_auto_free char *text = NULL;
	struct wss_xml_watch watch;

	if (!wss_xml_watch(&watch))
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	text = write_element(name, fill, opaque);
	wss_xml_watch_end(&watch);
	/* libxml2 may have dropped the number for lack of memory. */
	if (!text || watch.ran_out)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	*ret_xml = wss_steal_ptr(text);
	return 0;
}
