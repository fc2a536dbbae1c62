/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "host/origin.h"

#include <stdio.h>

#include "host/domxml-private.h"

#define LIBOSINFO "http://libosinfo.org/xmlns/libvirt/domain/1.0"

/* A text that does not fit would be the same as others that begin alike. */
static void text_copy(const xmlChar *text, char ret_text[WSS_ORIGIN_TEXT_MAX])
{
	if (text && strlen((const char *)text) < WSS_ORIGIN_TEXT_MAX)
		snprintf(ret_text, WSS_ORIGIN_TEXT_MAX, "%s", (const char *)text);
}

static bool is_libosinfo(const xmlNode *node, const char *name)
{
	return node->type == XML_ELEMENT_NODE && node->ns && node->ns->href &&
	       !strcmp((const char *)node->ns->href, LIBOSINFO) &&
	       !strcmp((const char *)node->name, name);
}

/* Returns a child element in libosinfo's namespace; NULL if there is none. */
static const xmlNode *libosinfo_child(const xmlNode *parent, const char *name)
{
	for (const xmlNode *child = parent ? parent->children : NULL; child; child = child->next)
		if (is_libosinfo(child, name))
			return child;
	return NULL;
}

int wss_origin_read(const char *domain_xml, size_t max, struct wss_origin *ret_origin,
		    struct wss_error *err)
{
	wss_auto_xml_doc xmlDoc *doc = wss_xml_parse(domain_xml, max, err);
	struct wss_origin origin = {.title = ""};
	const xmlNode *root, *os;

	if (!doc)
		return -1;
	root = xmlDocGetRootElement(doc);
	text_copy(wss_xml_content(wss_xml_child(root, "title")), origin.title);
	os = libosinfo_child(libosinfo_child(wss_xml_child(root, "metadata"), "libosinfo"), "os");
	text_copy(wss_xml_attribute(os, "id"), origin.os);
	origin.maximum_bytes.known = wss_domxml_size(wss_xml_child(root, "memory"), "memory",
						     &origin.maximum_bytes.value, NULL) == 0;
	*ret_origin = origin;
	return 0;
}
