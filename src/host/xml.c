/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "host/xml.h"

static void free_parser(xmlParserCtxt **ctxt)
{
	if (*ctxt)
		xmlFreeParserCtxt(*ctxt);
}

#define auto_parser wss_cleanup(free_parser)

/* Handler for <!DOCTYPE that stops the parser: no declarations, entities or expansions. */
static void refuse_doctype(void *opaque, const xmlChar *name, const xmlChar *external_id,
			   const xmlChar *system_id)
{
	(void)name;
	(void)external_id;
	(void)system_id;
	*(bool *)((xmlParserCtxt *)opaque)->_private = true;
	xmlStopParser(opaque);
}

/* Input of the parser. */
struct source {
	const char *xml;
	size_t left;
};

static int read_source(void *opaque, char *buffer, int size)
{
	struct source *source = opaque;
	size_t n = source->left < (size_t)size ? source->left : (size_t)size;

	memcpy(buffer, source->xml, n);
	source->xml += n;
	source->left -= n;
	return (int)n;
}

/*
 * When memory runs out, libxml2 goes on and drops whatever it has no room for, such as an
 * attribute. A name that it could not store appears as half of a qualified name ("wss:"), and
 * the element leaves its namespace. Either way the document differs from its source. Without a
 * handler libxml2 would print errors on stderr, whatever its options.
 */
static void note_error(void *opaque, xmlErrorPtr error)
{
	struct wss_xml_watch *watch = opaque;

	watch->ran_out |= error->code == XML_ERR_NO_MEMORY;
	watch->bad_name |= error->code == XML_NS_ERR_QNAME;
}

bool wss_xml_watch(struct wss_xml_watch *watch)
{
	/* Allocates libxml2's per-thread data, without which it would crash. */
	if (!xmlGetGlobalState())
		return false;
	watch->ran_out = watch->bad_name = false;
	/* libvirt may have set a handler of its own. */
	watch->handler = xmlStructuredError;
	watch->opaque = xmlStructuredErrorContext;
	xmlSetStructuredErrorFunc(watch, note_error);
	return true;
}

void wss_xml_watch_end(struct wss_xml_watch *watch)
{
	xmlSetStructuredErrorFunc(watch->opaque, watch->handler);
}

static xmlDoc *parse_document(xmlParserCtxt *ctxt, const char *xml, size_t len)
{
	struct source source = {.xml = xml, .left = len};

	/*
	 * Parsing from memory makes libxml2 copy all input first, and crash if it cannot
	 * (2.9.14).
	 */
	return xmlCtxtReadIO(ctxt, read_source, NULL, &source, NULL, "UTF-8",
			     XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_NOWARNING);
}

static xmlDoc *parse_with(xmlParserCtxt *ctxt, const char *xml, size_t len,
			  const struct wss_xml_watch *watch, struct wss_error *err)
{
	wss_auto_xml_doc xmlDoc *doc = NULL;
	bool has_doctype = false;
	const xmlError *why;

	ctxt->sax->internalSubset = refuse_doctype;
	ctxt->_private = &has_doctype;
	doc = parse_document(ctxt, xml, len);
	why = xmlCtxtGetLastError(ctxt);
	if (watch->ran_out || ctxt->errNo == XML_ERR_NO_MEMORY)
		wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	else if (has_doctype)
		wss_error_set(err, WSS_ERR_FAILED,
			      "the XML has a document type declaration, which is refused");
	else if (doc && !watch->bad_name)
		return wss_steal_ptr(doc);
	else if (why && why->message)
		wss_error_set(err, WSS_ERR_FAILED, "the XML cannot be parsed (line %d): %.*s",
			      why->line, (int)strcspn(why->message, "\n"), why->message);
	else
		wss_error_set(err, WSS_ERR_FAILED, "the XML cannot be parsed");
	return NULL;
}

/* Parses the text once. Returns NULL with an error if that fails. */
static xmlDoc *parse_once(const char *xml, size_t len, const struct wss_xml_watch *watch,
			  struct wss_error *err)
{
	auto_parser xmlParserCtxt *ctxt = xmlNewParserCtxt();

	if (ctxt)
		return parse_with(ctxt, xml, len, watch, err);
	wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	return NULL;
}

/*
 * If memory runs out while libxml2's dictionary of names grows, it loses some of them without
 * an error (xmlDictGrow() of 2.9.14). It compares names by their address, so the declaration
 * of a namespace may be overlooked after that. Lost names that occur again are counted twice:
 * two attempts then differ in the number of names.
 */
static xmlDoc *parse_twice(const char *xml, size_t len, const struct wss_xml_watch *watch,
			   struct wss_error *err)
{
	wss_auto_xml_doc xmlDoc *doc = parse_once(xml, len, watch, err);
	wss_auto_xml_doc xmlDoc *again = doc ? parse_once(xml, len, watch, err) : NULL;

	if (!again)
		return NULL;
	if (xmlDictSize(doc->dict) == xmlDictSize(again->dict))
		return wss_steal_ptr(doc);
	wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	return NULL;
}

xmlDoc *wss_xml_parse(const char *xml, size_t max, struct wss_error *err)
{
	size_t len = strnlen(xml, max + 1);
	struct wss_xml_watch watch;
	xmlDoc *doc = NULL;

	if (len > max) {
		wss_error_set(err, WSS_ERR_FAILED, "the XML is longer than %zu bytes", max);
		return NULL;
	}
	if (!wss_xml_watch(&watch)) {
		wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
		return NULL;
	}
	doc = parse_twice(xml, len, &watch, err);
	wss_xml_watch_end(&watch);
	return doc;
}

bool wss_xml_is(const xmlNode *node, const char *name)
{
	return node->type == XML_ELEMENT_NODE && !node->ns &&
	       (!name || !strcmp((const char *)node->name, name));
}

xmlNode *wss_xml_next_child(const xmlNode *parent, const xmlNode *after, const char *name)
{
	xmlNode *node = after ? after->next : parent ? parent->children : NULL;

	while (node && !wss_xml_is(node, name))
		node = node->next;
	return node;
}

xmlNode *wss_xml_child(const xmlNode *parent, const char *name)
{
	return wss_xml_next_child(parent, NULL, name);
}

/* Returns the only text among siblings; "" without any, NULL if there are several. */
static const xmlChar *only_text(const xmlNode *first)
{
	const xmlChar *text = NULL;

	for (const xmlNode *node = first; node; node = node->next) {
		if (node->type == XML_COMMENT_NODE || node->type == XML_PI_NODE)
			continue;
		if ((node->type != XML_TEXT_NODE && node->type != XML_CDATA_SECTION_NODE) || text)
			return NULL;
		text = node->content;
	}
	return text ? text : BAD_CAST "";
}

const xmlChar *wss_xml_content(const xmlNode *node)
{
	return node ? only_text(node->children) : NULL;
}

static const xmlChar *find_attribute(const xmlNode *node, const char *name, bool any_namespace)
{
	const xmlChar *text;

	for (const xmlAttr *attr = node ? node->properties : NULL; attr; attr = attr->next)
		if ((any_namespace || !attr->ns) && !strcmp((const char *)attr->name, name)) {
			text = only_text(attr->children);
			return text ? text : BAD_CAST "";
		}
	return NULL;
}

const xmlChar *wss_xml_attribute(const xmlNode *node, const char *name)
{
	return find_attribute(node, name, false);
}

const xmlChar *wss_xml_any_attribute(const xmlNode *node, const char *name)
{
	return find_attribute(node, name, true);
}

bool wss_xml_attribute_is(const xmlNode *node, const char *name, const char *value)
{
	const xmlChar *text = wss_xml_attribute(node, name);

	return text && !strcmp((const char *)text, value);
}

/* libxml2 takes an undeclared prefix as part of the name. */
static bool name_has_prefix(const xmlNs *ns, const xmlChar *name)
{
	return (ns && ns->prefix) || strchr((const char *)name, ':');
}

/*
 * Returns the next node in document order within root. Not recursive, because documents may be
 * deep.
 */
static const xmlNode *next_node(const xmlNode *node, const xmlNode *root)
{
	if (node->children && node->type == XML_ELEMENT_NODE)
		return node->children;
	while (node != root && !node->next)
		node = node->parent;
	return node == root ? NULL : node->next;
}

const char *wss_xml_prefixed_attribute(const xmlNode *root)
{
	for (const xmlNode *node = root; node; node = next_node(node, root))
		for (const xmlAttr *attr = node->type == XML_ELEMENT_NODE ? node->properties : NULL;
		     attr; attr = attr->next)
			if (name_has_prefix(attr->ns, attr->name))
				return (const char *)attr->name;
	return NULL;
}

bool wss_xml_is_plain(const char *xml, size_t max)
{
	wss_auto_xml_doc xmlDoc *doc = wss_xml_parse(xml, max, NULL);
	const xmlNode *root = doc ? xmlDocGetRootElement(doc) : NULL;

	for (const xmlNode *node = root; node; node = next_node(node, root))
		if (node->type == XML_ELEMENT_NODE && name_has_prefix(node->ns, node->name))
			return false;
	return root && !wss_xml_prefixed_attribute(root);
}

/* Returns the element of the namespace in a domain's metadata; NULL if there is none. */
static xmlNode *metadata_of(xmlDoc *doc, const char *namespace_uri)
{
	xmlNode *metadata = wss_xml_child(xmlDocGetRootElement(doc), "metadata");

	for (xmlNode *node = metadata ? metadata->children : NULL; node; node = node->next)
		if (node->type == XML_ELEMENT_NODE && node->ns && node->ns->href &&
		    !strcmp((const char *)node->ns->href, namespace_uri))
			return node;
	return NULL;
}

/* libxml2 requires this much room in the buffer, however short the text. */
#define ROOM_FOR_TEXT 4096

/* Prints the element as a separate document, which declares the namespaces that it uses. */
static char *print_element(xmlNode *node, size_t size)
{
	wss_auto_xml_doc xmlDoc *doc = xmlNewDoc((const xmlChar *)"1.0");
	xmlNode *copy = doc ? xmlDocCopyNode(node, doc, 1) : NULL;
	/* libxml2 2.9.14 frees a buffer twice if it must grow and cannot. */
	xmlBuffer *buffer = xmlBufferCreateSize(size + ROOM_FOR_TEXT);
	char *text = NULL;

	if (copy) {
		xmlDocSetRootElement(doc, copy);
		if (buffer && xmlNodeDump(buffer, doc, copy, 0, 0) > 0)
			text = strdup((const char *)xmlBufferContent(buffer));
	}
	xmlBufferFree(buffer);
	return text;
}

/*
 * Prints the element completely or not at all; size is normally large enough. NULL: out of
 * memory.
 */
static char *print_whole(xmlNode *node, size_t size)
{
	wss_auto_free char *text = NULL;
	struct wss_xml_watch watch;

	if (!wss_xml_watch(&watch))
		return NULL;
	text = print_element(node, size);
	wss_xml_watch_end(&watch);
	return watch.ran_out ? NULL : wss_steal_ptr(text);
}

int wss_xml_metadata(const char *domain_xml, size_t max, const char *namespace_uri, char **ret_xml,
		     struct wss_error *err)
{
	wss_auto_xml_doc xmlDoc *doc = wss_xml_parse(domain_xml, max, err);
	xmlNode *node = doc ? metadata_of(doc, namespace_uri) : NULL;

	if (!doc)
		return -1;
	*ret_xml = node ? print_whole(node, strlen(domain_xml)) : NULL;
	return node && !*ret_xml ? wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory") : 0;
}
