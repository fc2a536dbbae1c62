/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Thin wrapper around libxml2 for reading XML. Namespaced elements are never matched by name
 * alone; libvirt's own elements have no namespace.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <libxml/globals.h>
#include <libxml/parser.h>
#include <libxml/tree.h>

#include "base/cleanup.h"
#include "base/error.h"

static inline void wss_cleanup_xml_doc(xmlDoc **doc)
{
	if (*doc)
		xmlFreeDoc(*doc);
}

#define wss_auto_xml_doc wss_cleanup(wss_cleanup_xml_doc)

/*
 * Until wss_xml_watch_end(), ran_out gets set if libxml2 runs out of memory in this thread (it
 * mostly goes on and drops something), bad_name if half of a qualified name is missing.
 * Returns false if there is no memory to watch.
 */
struct wss_xml_watch {
	xmlStructuredErrorFunc handler;
	void *opaque;
	bool ran_out, bad_name;
};

bool wss_xml_watch(struct wss_xml_watch *watch);
void wss_xml_watch_end(struct wss_xml_watch *watch);

/*
 * Parses untrusted XML of at most max bytes. A document type declaration is refused, so there
 * are no entities; nothing is fetched. The caller frees the document. Returns NULL with
 * WSS_ERR_FAILED or WSS_ERR_NO_MEMORY.
 */
xmlDoc *wss_xml_parse(const char *xml, size_t max, struct wss_error *err);

/* Whether node is an element of that name (NULL: any name). */
bool wss_xml_is(const xmlNode *node, const char *name);

/* Returns the first child element of that name after `after` (NULL: from the start), or NULL. */
xmlNode *wss_xml_next_child(const xmlNode *parent, const xmlNode *after, const char *name);

/* Returns the first child element of that name, or NULL; parent may be NULL. */
xmlNode *wss_xml_child(const xmlNode *parent, const char *name);

#define wss_xml_for_each_child(node, parent, name)                         \
	for (xmlNode *node = wss_xml_next_child(parent, NULL, name); node; \
	     node = wss_xml_next_child(parent, node, name))

/*
 * Returns an element's text, "" if it is empty; NULL without an element, or if it holds
 * several pieces of text. Texts belong to the document and are not copied, so that no text
 * seems absent when memory is short.
 */
const xmlChar *wss_xml_content(const xmlNode *node);

/* Returns an attribute's text, whatever its namespace; NULL if there is none; node may be NULL. */
const xmlChar *wss_xml_attribute(const xmlNode *node, const char *name);
const xmlChar *wss_xml_any_attribute(const xmlNode *node, const char *name);

/* Whether the element has this attribute with that value. */
bool wss_xml_attribute_is(const xmlNode *node, const char *name, const char *value);

/*
 * Whether the text is a single element of at most max bytes, in which no element or attribute
 * name has a namespace prefix, declared or not. virDomainSetMetadata() must be given nothing
 * else.
 */
bool wss_xml_is_plain(const char *xml, size_t max);

/*
 * Returns the name of the first attribute with a namespace prefix, declared or not, of root or
 * of an element in it; NULL if there is none.
 */
const char *wss_xml_prefixed_attribute(const xmlNode *root);

/*
 * Returns the element of a namespace in the metadata of a domain, whose XML has at most max
 * bytes: a malloc()ed string that declares all namespaces in it; NULL if there is none. Fails
 * as wss_xml_parse() does.
 */
int wss_xml_metadata(const char *domain_xml, size_t max, const char *namespace_uri, char **ret_xml,
		     struct wss_error *err);
