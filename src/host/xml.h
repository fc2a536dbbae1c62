/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The few things that our readers of XML need of libxml2. Elements of a namespace
 * are never matched by name: those of libvirt's domains have none.
 */
#ifndef WSS_HOST_XML_H
#define WSS_HOST_XML_H

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
 * Notes whether libxml2 runs out of memory in this thread until wss_xml_watch_end(): it mostly goes
 * on then, and leaves something out. bad_name: half of a qualified name is missing. False where
 * there is no memory to watch.
 */
struct wss_xml_watch {
	xmlStructuredErrorFunc handler;
	void *opaque;
	bool ran_out, bad_name;
};

bool wss_xml_watch(struct wss_xml_watch *watch);
void wss_xml_watch_end(struct wss_xml_watch *watch);

/*
 * Parses hostile XML of at most max bytes. A document type declaration is refused, so
 * there are no entities; nothing is fetched. The caller frees the document. NULL with
 * WSS_ERR_FAILED or WSS_ERR_NO_MEMORY.
 */
xmlDoc *wss_xml_parse(const char *xml, size_t max, struct wss_error *err);

/* Is it an element of that name (NULL: of any)? */
bool wss_xml_is(const xmlNode *node, const char *name);

/* The first child element of that name after `after` (NULL: from the start), or NULL. */
xmlNode *wss_xml_next_child(const xmlNode *parent, const xmlNode *after, const char *name);

/* The first child element of that name, or NULL; parent may be NULL. */
xmlNode *wss_xml_child(const xmlNode *parent, const char *name);

#define wss_xml_for_each_child(node, parent, name)                          \
	for (xmlNode *node = wss_xml_next_child(parent, NULL, name); node; \
	     node = wss_xml_next_child(parent, node, name))

/*
 * The texts are the document's: nothing is copied, so that none is taken for absent where memory is
 * short. An element's text, "" where it is empty; NULL without an element, or where it holds more
 * than one piece of text.
 */
const xmlChar *wss_xml_content(const xmlNode *node);

/* An attribute's text, of no namespace or of any; NULL without one; node may be NULL. */
const xmlChar *wss_xml_attribute(const xmlNode *node, const char *name);
const xmlChar *wss_xml_any_attribute(const xmlNode *node, const char *name);

/* Is there such an attribute with that value? */
bool wss_xml_attribute_is(const xmlNode *node, const char *name, const char *value);

/*
 * Is the text one element of at most max bytes, in which no name of an element or of an
 * attribute has a namespace prefix, declared or not? virDomainSetMetadata() is to be given no
 * other.
 */
bool wss_xml_is_plain(const char *xml, size_t max);

/*
 * The name of the first attribute with a namespace prefix, declared or not, of root or of an
 * element in it; NULL where there is none.
 */
const char *wss_xml_prefixed_attribute(const xmlNode *root);

/*
 * The element of a namespace among the metadata of a domain, whose XML has at most max bytes:
 * a malloc'ed string, which declares all namespaces in it; NULL where there is none. The
 * errors of wss_xml_parse().
 */
int wss_xml_metadata(const char *domain_xml, size_t max, const char *namespace_uri,
		     char **ret_xml, struct wss_error *err);

#endif
