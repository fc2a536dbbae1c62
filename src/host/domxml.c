/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "host/domxml.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <libxml/parser.h>
#include <libxml/tree.h>

#include "base/cleanup.h"

#define QEMU_NAMESPACE "http://libvirt.org/schemas/domain/qemu/1.0"

static void free_doc(xmlDoc **doc)
{
	if (*doc)
		xmlFreeDoc(*doc);
}

static void free_parser(xmlParserCtxt **ctxt)
{
	if (*ctxt)
		xmlFreeParserCtxt(*ctxt);
}

static void free_string(xmlChar **s)
{
	if (*s)
		xmlFree(*s);
}

#define auto_doc wss_cleanup(free_doc)
#define auto_parser wss_cleanup(free_parser)
#define auto_string wss_cleanup(free_string)

/* Set as the parser's handler of <!DOCTYPE: no declaration, no entity, no expansion. */
static void refuse_doctype(void *opaque, const xmlChar *name, const xmlChar *external_id,
			   const xmlChar *system_id)
{
	(void)name;
	(void)external_id;
	(void)system_id;
	*(bool *)((xmlParserCtxt *)opaque)->_private = true;
	xmlStopParser(opaque);
}

/* Returns the document, or NULL with err set. */
static xmlDoc *parse_document(const char *xml, struct wss_error *err)
{
	auto_parser xmlParserCtxt *ctxt = NULL;
	size_t len = strnlen(xml, WSS_DOMXML_MAX + 1);
	auto_doc xmlDoc *doc = NULL;
	bool has_doctype = false;
	const xmlError *why;

	if (len > WSS_DOMXML_MAX) {
		wss_error_set(err, WSS_ERR_FAILED, "the XML is longer than %u bytes",
			      WSS_DOMXML_MAX);
		return NULL;
	}
	ctxt = xmlNewParserCtxt();
	if (!ctxt) {
		wss_error_set(err, WSS_ERR_NO_MEMORY, "no memory for an XML parser");
		return NULL;
	}
	ctxt->sax->internalSubset = refuse_doctype;
	ctxt->_private = &has_doctype;
	doc = xmlCtxtReadMemory(ctxt, xml, (int)len, NULL, "UTF-8",
				XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_NOWARNING);
	if (doc && !has_doctype)
		return wss_steal_ptr(doc);
	why = xmlCtxtGetLastError(ctxt);
	if (has_doctype)
		wss_error_set(err, WSS_ERR_FAILED, "the XML has a document type, which is refused");
	else if (why && why->message)
		wss_error_set(err, WSS_ERR_FAILED, "the XML cannot be parsed (line %d): %.*s",
			      why->line, (int)strcspn(why->message, "\n"), why->message);
	else
		wss_error_set(err, WSS_ERR_FAILED, "the XML cannot be parsed");
	return NULL;
}

static bool is_element(const xmlNode *node, const char *name)
{
	return node->type == XML_ELEMENT_NODE && !node->ns &&
	       (!name || !strcmp((const char *)node->name, name));
}

/* The first child element of that name after `after` (NULL: from the start), or NULL. */
static xmlNode *next_child(const xmlNode *parent, const xmlNode *after, const char *name)
{
	xmlNode *node = after ? after->next : parent ? parent->children : NULL;

	while (node && !is_element(node, name))
		node = node->next;
	return node;
}

static xmlNode *child(const xmlNode *parent, const char *name)
{
	return next_child(parent, NULL, name);
}

#define for_each_child(node, parent, name)                                \
	for (xmlNode *node = next_child(parent, NULL, name); node;        \
	     node = next_child(parent, node, name))

static xmlChar *attribute(const xmlNode *node, const char *name)
{
	return node ? xmlGetNoNsProp(node, (const xmlChar *)name) : NULL;
}

static bool attribute_is(const xmlNode *node, const char *name, const char *value)
{
	auto_string xmlChar *text = attribute(node, name);

	return text && !strcmp((const char *)text, value);
}

/* Copies text, if there is one that is not empty and fits. Returns false otherwise. */
static bool copy_text(const xmlChar *text, char *ret, size_t size)
{
	size_t len = text ? strlen((const char *)text) : 0;

	if (!len || len >= size)
		return false;
	memcpy(ret, text, len + 1);
	return true;
}

/* Factor of a unit as libvirt writes and reads them: virScaleInteger(), src/util/virutil.c. */
static uint64_t unit_factor(const xmlChar *unit)
{
	static const char letters[] = "kmgtpe";
	const char *name = unit ? (const char *)unit : "KiB";
	const char *letter;
	uint64_t base, factor = 1;

	if (!strcasecmp(name, "b") || !strcasecmp(name, "byte") || !strcasecmp(name, "bytes"))
		return 1;
	letter = name[0] ? strchr(letters, tolower((unsigned char)name[0])) : NULL;
	if (!letter)
		return 0;
	if (!name[1] || !strcasecmp(name + 1, "iB"))
		base = 1024;
	else if (!strcasecmp(name + 1, "B"))
		base = 1000;
	else
		return 0;
	for (const char *l = letters; l <= letter; l++)
		factor *= base;
	return factor;
}

/* A decimal number with white space around it and a unit, in bytes. */
static int scale_size(const xmlChar *number, const xmlChar *unit, const char *what,
		      uint64_t *ret_bytes, struct wss_error *err)
{
	const char *text = number ? (const char *)number : "";
	uint64_t factor = unit_factor(unit), bytes;
	unsigned long long value;
	char *end;

	if (!factor)
		return wss_error_set(err, WSS_ERR_FAILED, "%s: unknown unit '%s'", what,
				     (const char *)unit);
	text += strspn(text, " \t\r\n");
	if (!isdigit((unsigned char)*text))
		return wss_error_set(err, WSS_ERR_FAILED, "%s: not a size", what);
	errno = 0;
	value = strtoull(text, &end, 10);
	if (end[strspn(end, " \t\r\n")])
		return wss_error_set(err, WSS_ERR_FAILED, "%s: not a size", what);
	if (errno || __builtin_mul_overflow((uint64_t)value, factor, &bytes))
		return wss_error_set(err, WSS_ERR_FAILED, "%s: too large", what);
	*ret_bytes = bytes;
	return 0;
}

/* The size that an element's content and its unit attribute give. */
static int element_size(const xmlNode *node, const char *what, uint64_t *ret_bytes,
			struct wss_error *err)
{
	auto_string xmlChar *number = node ? xmlNodeGetContent(node) : NULL;
	auto_string xmlChar *unit = attribute(node, "unit");

	if (!node)
		return wss_error_set(err, WSS_ERR_FAILED, "%s: missing", what);
	return scale_size(number, unit, what, ret_bytes, err);
}

/* The <uuid> in parent, as libvirt formats it, into lower case. */
static int parse_uuid(const xmlNode *parent, char *ret_uuid, struct wss_error *err)
{
	xmlNode *node = child(parent, "uuid");
	auto_string xmlChar *text = node ? xmlNodeGetContent(node) : NULL;
	char uuid[WSS_UUID_TEXT_MAX] = "";
	bool good = text && strlen((const char *)text) == sizeof(uuid) - 1;

	for (size_t i = 0; good && i < sizeof(uuid) - 1; i++) {
		bool dash = i == 8 || i == 13 || i == 18 || i == 23;

		good = dash ? text[i] == '-' : isxdigit(text[i]) != 0;
		uuid[i] = (char)tolower(text[i]);
	}
	if (!good)
		return wss_error_set(err, WSS_ERR_FAILED, "the XML has no valid uuid");
	memcpy(ret_uuid, uuid, sizeof(uuid));
	return 0;
}

static int parse_identity(const xmlNode *domain, struct wss_domxml *ret, struct wss_error *err)
{
	xmlNode *name = child(domain, "name");
	auto_string xmlChar *type = attribute(domain, "type");
	auto_string xmlChar *name_text = name ? xmlNodeGetContent(name) : NULL;
	auto_string xmlChar *arch = attribute(child(child(domain, "os"), "type"), "arch");

	if (!copy_text(type, ret->type, sizeof(ret->type)))
		return wss_error_set(err, WSS_ERR_FAILED, "the domain XML has no valid type");
	if (!copy_text(name_text, ret->name, sizeof(ret->name)))
		return wss_error_set(err, WSS_ERR_FAILED, "the domain XML has no valid name");
	copy_text(arch, ret->arch, sizeof(ret->arch));
	return parse_uuid(domain, ret->uuid, err);
}

static void parse_backing(const xmlNode *domain, struct wss_domxml *ret)
{
	const xmlNode *backing = child(domain, "memoryBacking");
	const xmlNode *source = child(backing, "source");
	const xmlNode *access = child(backing, "access");

	if (attribute_is(source, "type", "memfd"))
		ret->backing = WSS_BACKING_MEMFD;
	else if (attribute_is(source, "type", "file"))
		ret->backing = WSS_BACKING_FILE;
	ret->hugepages = child(backing, "hugepages") != NULL;
	ret->locked = child(backing, "locked") != NULL;
	ret->shared = attribute_is(access, "mode", "shared") ||
		      (ret->backing == WSS_BACKING_MEMFD &&
		       !attribute_is(access, "mode", "private"));
}

static int add_block(struct wss_domxml *ret, uint64_t bytes, struct wss_error *err)
{
	if (!bytes)
		return 0;
	if (ret->n_blocks == WSS_RAM_BLOCKS_MAX)
		return wss_error_set(err, WSS_ERR_FAILED, "more than %d blocks of RAM",
				     WSS_RAM_BLOCKS_MAX);
	ret->block_bytes[ret->n_blocks++] = bytes;
	return 0;
}

/* Adds the NUMA cells' blocks; *ret_cells says how many <cell> there are. */
static int parse_cells(const xmlNode *domain, struct wss_domxml *ret, unsigned *ret_cells,
		       struct wss_error *err)
{
	*ret_cells = 0;
	for_each_child (cell, child(child(domain, "cpu"), "numa"), "cell") {
		auto_string xmlChar *number = attribute(cell, "memory");
		auto_string xmlChar *unit = attribute(cell, "unit");
		uint64_t bytes;

		if (scale_size(number, unit, "memory of a NUMA cell", &bytes, err) < 0 ||
		    add_block(ret, bytes, err) < 0)
			return -1;
		if (attribute_is(cell, "memAccess", "private"))
			ret->shared = false;
		(*ret_cells)++;
	}
	return 0;
}

/*
 * Adds the memory devices' blocks. *ret_bytes is the sum over every model, because
 * <memory> contains them all (virDomainDefPostParseMemory() of libvirt).
 */
static int parse_memory_devices(const xmlNode *devices, struct wss_domxml *ret,
				uint64_t *ret_bytes, struct wss_error *err)
{
	*ret_bytes = 0;
	for_each_child (memory, devices, "memory") {
		uint64_t bytes;

		if (element_size(child(child(memory, "target"), "size"), "size of a memory device",
				 &bytes, err) < 0)
			return -1;
		if (__builtin_add_overflow(*ret_bytes, bytes, ret_bytes))
			return wss_error_set(err, WSS_ERR_FAILED, "memory devices: too large");
		if (attribute_is(memory, "model", "dimm") ||
		    attribute_is(memory, "model", "virtio-mem")) {
			if (add_block(ret, bytes, err) < 0)
				return -1;
			if (attribute_is(memory, "access", "private"))
				ret->shared = false;
		} else if (attribute_is(memory, "model", "nvdimm") ||
			   attribute_is(memory, "model", "virtio-pmem")) {
			ret->pmems++;
		}
	}
	return 0;
}

static int parse_memory(const xmlNode *domain, struct wss_domxml *ret, struct wss_error *err)
{
	const xmlNode *current = child(domain, "currentMemory");
	uint64_t device_bytes, initial_bytes;
	unsigned cells;

	if (element_size(child(domain, "memory"), "memory", &ret->maximum_bytes, err) < 0)
		return -1;
	if (!ret->maximum_bytes)
		return wss_error_set(err, WSS_ERR_FAILED, "memory: 0");
	ret->current_bytes = ret->maximum_bytes;
	if (current && element_size(current, "currentMemory", &ret->current_bytes, err) < 0)
		return -1;
	parse_backing(domain, ret);
	if (parse_cells(domain, ret, &cells, err) < 0)
		return -1;
	if (cells) {
		if (parse_memory_devices(child(domain, "devices"), ret, &device_bytes, err) < 0)
			return -1;
		return ret->n_blocks ? 0 :
				       wss_error_set(err, WSS_ERR_FAILED,
						     "no NUMA cell has any memory");
	}
	/* The first block comes before the devices', though its size follows from theirs. */
	ret->n_blocks = 1;
	if (parse_memory_devices(child(domain, "devices"), ret, &device_bytes, err) < 0)
		return -1;
	if (__builtin_sub_overflow(ret->maximum_bytes, device_bytes, &initial_bytes) ||
	    !initial_bytes)
		return wss_error_set(err, WSS_ERR_FAILED,
				     "memory: the memory devices leave nothing of it");
	ret->block_bytes[0] = initial_bytes;
	return 0;
}

static void parse_devices(const xmlNode *domain, struct wss_domxml *ret)
{
	const xmlNode *devices = child(domain, "devices");
	const xmlNode *balloon = child(devices, "memballoon");
	const xmlNode *security = child(domain, "launchSecurity");
	auto_string xmlChar *security_type = attribute(security, "type");

	ret->has_balloon = balloon && !attribute_is(balloon, "model", "none");
	for_each_child (device, devices, NULL) {
		if (is_element(device, "hostdev") ||
		    (is_element(device, "interface") && attribute_is(device, "type", "hostdev")))
			ret->hostdevs++;
		else if (is_element(device, "shmem"))
			ret->shmems++;
	}
	if (security && !copy_text(security_type, ret->launch_security,
				   sizeof(ret->launch_security)))
		strcpy(ret->launch_security, "unknown");
	for (const xmlNode *node = domain->children; node; node = node->next)
		if (node->type == XML_ELEMENT_NODE && node->ns &&
		    !strcmp((const char *)node->ns->href, QEMU_NAMESPACE) &&
		    (!strcmp((const char *)node->name, "commandline") ||
		     !strcmp((const char *)node->name, "override")))
			ret->qemu_passthrough = true;
}

int wss_domxml_parse(const char *xml, struct wss_domxml *ret_xml, struct wss_error *err)
{
	auto_doc xmlDoc *doc = parse_document(xml, err);
	struct wss_domxml result = { .backing = WSS_BACKING_ANON };
	const xmlNode *domain;

	if (!doc)
		return -1;
	domain = xmlDocGetRootElement(doc);
	if (!domain || !is_element(domain, "domain"))
		return wss_error_set(err, WSS_ERR_FAILED, "the XML is not that of a domain");
	if (parse_identity(domain, &result, err) < 0 || parse_memory(domain, &result, err) < 0)
		return -1;
	parse_devices(domain, &result);
	*ret_xml = result;
	return 0;
}

int wss_domxml_parse_status(const char *xml, int *ret_pid, char ret_uuid[WSS_UUID_TEXT_MAX],
			    struct wss_error *err)
{
	auto_doc xmlDoc *doc = parse_document(xml, err);
	auto_string xmlChar *text = NULL;
	const xmlNode *status;
	char *end;
	long pid;

	if (!doc)
		return -1;
	status = xmlDocGetRootElement(doc);
	if (!status || !is_element(status, "domstatus"))
		return wss_error_set(err, WSS_ERR_FAILED, "the XML is not a domain's status");
	text = attribute(status, "pid");
	errno = 0;
	pid = text && isdigit(text[0]) ? strtol((const char *)text, &end, 10) : 0;
	if (errno || pid <= 0 || pid > INT_MAX || *end)
		return wss_error_set(err, WSS_ERR_FAILED, "the status XML has no valid pid");
	if (parse_uuid(child(status, "domain"), ret_uuid, err) < 0)
		return -1;
	*ret_pid = (int)pid;
	return 0;
}

int wss_domxml_parse_host_uuid(const char *xml, char ret_uuid[WSS_UUID_TEXT_MAX],
			       struct wss_error *err)
{
	auto_doc xmlDoc *doc = parse_document(xml, err);
	const xmlNode *capabilities = doc ? xmlDocGetRootElement(doc) : NULL;
	const xmlNode *host;

	if (!doc)
		return -1;
	host = capabilities && is_element(capabilities, "capabilities") ? child(capabilities, "host")
									 : NULL;
	if (!host)
		return wss_error_set(err, WSS_ERR_FAILED, "the XML is not a host's capabilities");
	return parse_uuid(host, ret_uuid, err);
}
