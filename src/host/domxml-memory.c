/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Elements of a domain's XML as they should be, so that memory comes back to the host. They are
 * what is there with a few changes, because an operator replaces the whole element: a lost
 * <address> would move the device in the guest.
 */
#include "host/domxml-private.h"

#include <libxml/tree.h>
#include <stdio.h>
#include <string.h>

#define STATISTICS_PERIOD "10"
#define NEW_BALLOON                                                           \
	"<memballoon model='virtio' autodeflate='on' freePageReporting='on'>" \
	"<stats period='" STATISTICS_PERIOD "'/></memballoon>"

static void node_drop(xmlNode *node)
{
	xmlUnlinkNode(node);
	xmlFreeNode(node);
}

/* Removes a child, such as the alias that libvirt gives to devices of running domains. */
static void child_drop(xmlNode *parent, const char *name)
{
	xmlNode *child = wss_xml_child(parent, name);

	if (child)
		node_drop(child);
}

/* Removes the white space between elements, which does not suit a changed element. */
static void blanks_drop(xmlNode *parent)
{
	for (xmlNode *node = parent->children, *next; node; node = next) {
		next = node->next;
		if (node->type == XML_TEXT_NODE || node->type == XML_COMMENT_NODE)
			node_drop(node);
		else if (node->type == XML_ELEMENT_NODE)
			blanks_drop(node);
	}
}

static bool attribute_set(xmlNode *node, const char *name, const char *value)
{
	return xmlSetProp(node, BAD_CAST name, BAD_CAST value) != NULL;
}

static bool balloon_improve(xmlNode *balloon)
{
	xmlNode *stats = wss_xml_child(balloon, "stats");

	child_drop(balloon, "alias");
	if (!stats)
		stats = xmlNewChild(balloon, NULL, BAD_CAST "stats", NULL);
	if (!stats || !attribute_set(balloon, "autodeflate", "on") ||
	    !attribute_set(balloon, "freePageReporting", "on"))
		return false;
	if (wss_xml_attribute(stats, "period") && !wss_xml_attribute_is(stats, "period", "0"))
		return true;
	return attribute_set(stats, "period", STATISTICS_PERIOD);
}

/* Huge pages are no file on disk, whatever the source. Without them a source that is a file is one. */
static bool backing_improve(xmlNode *backing)
{
	if (wss_xml_child(backing, "hugepages") &&
	    wss_xml_attribute_is(wss_xml_child(backing, "source"), "type", "file"))
		child_drop(backing, "source");
	child_drop(backing, "hugepages");
	child_drop(backing, "locked");
	return true;
}

/*
 * Memory that is said to be shared, or private, needs a source: libvirt puts it into a file on disk if neither huge
 * pages nor memfd are one.
 */
static bool sourced_backing_improve(xmlNode *backing)
{
	xmlNode *source;

	backing_improve(backing);
	source = wss_xml_child(backing, "source");
	if (source && !wss_xml_attribute_is(source, "type", "anonymous"))
		return true;
	if (!source)
		source = xmlNewChild(backing, NULL, BAD_CAST "source", NULL);
	return source && attribute_set(source, "type", "memfd");
}

/* Whether <access>, a NUMA cell or a memory device says whether memory is shared. */
static bool domain_states_access(const xmlNode *domain)
{
	if (wss_xml_child(wss_xml_child(domain, "memoryBacking"), "access"))
		return true;
	wss_xml_for_each_child(cell, wss_xml_child(wss_xml_child(domain, "cpu"), "numa"),
			       "cell") if (wss_xml_attribute(cell, "memAccess")) return true;
	wss_xml_for_each_child(memory, wss_xml_child(domain, "devices"),
			       "memory") if (wss_xml_attribute(memory, "access")) return true;
	return false;
}

static void element_print(xmlDoc *doc, xmlNode *node, char *ret_text)
{
	xmlBuffer *buffer = xmlBufferCreate();
	int length = buffer ? xmlNodeDump(buffer, doc, node, 0, 0) : -1;

	if (length > 0 && length < WSS_DOMXML_ELEMENT_MAX)
		memcpy(ret_text, xmlBufferContent(buffer), (size_t)length + 1);
	if (buffer)
		xmlBufferFree(buffer);
}

/* Prints a changed copy of the element; leaves the text alone if that fails. */
static void element_change(const xmlNode *node, bool (*change)(xmlNode *copy), char *ret_text)
{
	xmlDoc *doc = xmlNewDoc(BAD_CAST "1.0");
	/* xmlDocCopyNode() does not change the node: its prototype lacks the const. */
	xmlNode *copy = doc ? xmlDocCopyNode((xmlNode *)(uintptr_t)node, doc, 1) : NULL;

	if (copy) {
		xmlDocSetRootElement(doc, copy);
		blanks_drop(copy);
		if (change(copy))
			element_print(doc, copy, ret_text);
	}
	if (doc)
		xmlFreeDoc(doc);
}

void wss_domxml_improve(const xmlNode *domain, struct wss_domxml *ret)
{
	const xmlNode *balloon = wss_xml_child(wss_xml_child(domain, "devices"), "memballoon");
	const xmlNode *backing = wss_xml_child(domain, "memoryBacking");
	struct wss_xml_watch watch;

	if (!wss_xml_watch(&watch))
		return;
	if (!ret->has_balloon)
		snprintf(ret->better_balloon, sizeof(ret->better_balloon), "%s", NEW_BALLOON);
	else if (!wss_xml_attribute_is(balloon, "model", "xen"))
		element_change(balloon, balloon_improve, ret->better_balloon);
	if (wss_xml_child(backing, "hugepages") || wss_xml_child(backing, "locked"))
		element_change(backing,
			       domain_states_access(domain) ? sourced_backing_improve
							    : backing_improve,
			       ret->better_backing);
	wss_xml_watch_end(&watch);
	/* What libxml2 had no memory for is missing. */
	if (watch.ran_out)
		ret->better_balloon[0] = ret->better_backing[0] = '\0';
}
