/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "host/domxml.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "host/devices.h"
#include "host/domxml-private.h"
#include "host/xml.h"

#define QEMU_NAMESPACE "http://libvirt.org/schemas/domain/qemu/1.0"
#define NODE_MAX 65534

/* Copies text; returns false if it is missing, empty or too long. */
static bool copy_text(const xmlChar *text, char *ret, size_t size)
{
	size_t len = text ? strlen((const char *)text) : 0;

	if (!len || len >= size)
		return false;
	memcpy(ret, text, len + 1);
	return true;
}

/* Factor of a unit as libvirt writes and reads it: virScaleInteger(), src/util/virutil.c. */
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

/* Parses a decimal number in the given unit, with optional white space around it, into bytes. */
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

/* Reads an element's content as a size, honouring its unit attribute. */
static int domxml_size(const xmlNode *node, const char *what, uint64_t *ret_bytes,
		       struct wss_error *err)
{
	const xmlChar *number = wss_xml_content(node);
	const xmlChar *unit = wss_xml_attribute(node, "unit");

	if (!node)
		return wss_error_set(err, WSS_ERR_FAILED, "%s: missing", what);
	return scale_size(number, unit, what, ret_bytes, err);
}

/* Reads the <uuid> in parent, which libvirt has formatted, in lower case. */
static int parse_uuid(const xmlNode *parent, char *ret_uuid, struct wss_error *err)
{
	xmlNode *node = wss_xml_child(parent, "uuid");
	const xmlChar *text = wss_xml_content(node);
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
	xmlNode *name = wss_xml_child(domain, "name");
	const xmlChar *type = wss_xml_attribute(domain, "type");
	const xmlChar *name_text = wss_xml_content(name);
	const xmlNode *os_type = wss_xml_child(wss_xml_child(domain, "os"), "type");
	const xmlChar *arch = wss_xml_attribute(os_type, "arch");
	const xmlChar *machine = wss_xml_attribute(os_type, "machine");

	if (!copy_text(type, ret->type, sizeof(ret->type)))
		return wss_error_set(err, WSS_ERR_FAILED, "the domain XML has no valid type");
	if (!copy_text(name_text, ret->name, sizeof(ret->name)))
		return wss_error_set(err, WSS_ERR_FAILED,
				     "the domain XML has no name, or one of more than %d bytes",
				     WSS_NAME_MAX - 1);
	copy_text(arch, ret->arch, sizeof(ret->arch));
	copy_text(machine, ret->machine, sizeof(ret->machine));
	return parse_uuid(domain, ret->uuid, err);
}

/* Whether pages of this size are larger than the host's ordinary ones, which libvirt accepts, too. */
static bool page_is_huge(const xmlChar *number, const xmlChar *unit)
{
	uint64_t bytes;

	return scale_size(number, unit, "page", &bytes, NULL) < 0 ||
	       bytes > (uint64_t)sysconf(_SC_PAGESIZE);
}

static bool backing_is_huge(const xmlNode *hugepages)
{
	if (!wss_xml_child(hugepages, "page"))
		return hugepages != NULL;
	wss_xml_for_each_child(page, hugepages, "page")
	{
		const xmlChar *size = wss_xml_attribute(page, "size");
		const xmlChar *unit = wss_xml_attribute(page, "unit");

		if (page_is_huge(size, unit))
			return true;
	}
	return false;
}

static void parse_backing(const xmlNode *domain, struct wss_domxml *ret)
{
	const xmlNode *backing = wss_xml_child(domain, "memoryBacking");
	const xmlNode *source = wss_xml_child(backing, "source");
	const xmlNode *access = wss_xml_child(backing, "access");

	if (wss_xml_attribute_is(source, "type", "memfd"))
		ret->backing = WSS_BACKING_MEMFD;
	else if (wss_xml_attribute_is(source, "type", "file"))
		ret->backing = WSS_BACKING_FILE;
	ret->hugepages = backing_is_huge(wss_xml_child(backing, "hugepages"));
	ret->locked = wss_xml_child(backing, "locked") != NULL;
	ret->shared = wss_xml_attribute_is(access, "mode", "shared") ||
		      (ret->backing == WSS_BACKING_MEMFD &&
		       !wss_xml_attribute_is(access, "mode", "private"));
}

static int domxml_add_block(struct wss_domxml *ret, uint64_t bytes, int node, struct wss_error *err)
{
	if (!bytes)
		return 0;
	if (ret->n_blocks == WSS_RAM_BLOCKS_MAX)
		return wss_error_set(err, WSS_ERR_FAILED, "more than %d blocks of RAM",
				     WSS_RAM_BLOCKS_MAX);
	ret->block_nodes[ret->n_blocks] = node;
	ret->block_bytes[ret->n_blocks++] = bytes;
	return 0;
}

/* Parses the number of a NUMA node; -1 if there is no text or it is not a number. */
static int node_number(const xmlChar *text)
{
	unsigned long number;
	char *end;

	if (!text || !isdigit(text[0]))
		return -1;
	number = strtoul((const char *)text, &end, 10);
	return *end || number > NODE_MAX ? -1 : (int)number;
}

/* What an element's own attribute says about its memory, else what holds for the whole guest. */
static bool access_is_shared(const xmlNode *node, const char *attribute, bool otherwise)
{
	return wss_xml_attribute_is(node, attribute, "shared") ||
	       (otherwise && !wss_xml_attribute_is(node, attribute, "private"));
}

/* Adds the NUMA cells' blocks. Cells without an id are numbered from 0. */
static int parse_cells(const xmlNode *domain, struct wss_domxml *ret, struct wss_error *err)
{
	bool all_shared = true;

	wss_xml_for_each_child(cell, wss_xml_child(wss_xml_child(domain, "cpu"), "numa"), "cell")
	{
		const xmlChar *number = wss_xml_attribute(cell, "memory");
		const xmlChar *unit = wss_xml_attribute(cell, "unit");
		const xmlChar *id = wss_xml_attribute(cell, "id");
		uint64_t bytes = 0;

		if (scale_size(number, unit, "memory of a NUMA cell", &bytes, err) < 0 ||
		    domxml_add_block(ret, bytes, id ? node_number(id) : (int)ret->n_cells, err) < 0)
			return -1;
		if (bytes)
			all_shared &= access_is_shared(cell, "memAccess", ret->shared);
		ret->n_cells++;
	}
	if (ret->n_cells)
		ret->shared = all_shared;
	return 0;
}

/* Whether a memory device's memory is shared: as it says itself, as its NUMA cell does, as the guest does. */
static bool device_is_shared(const xmlNode *domain, const xmlNode *memory, bool guest_shared)
{
	const xmlNode *node = wss_xml_child(wss_xml_child(memory, "target"), "node");
	const xmlChar *text = wss_xml_content(node);
	int wanted = node_number(text), number = 0;

	wss_xml_for_each_child(cell, wss_xml_child(wss_xml_child(domain, "cpu"), "numa"), "cell")
	{
		const xmlChar *id = wss_xml_attribute(cell, "id");

		if ((id ? node_number(id) : number) == wanted)
			guest_shared = access_is_shared(cell, "memAccess", guest_shared);
		number++;
	}
	return access_is_shared(memory, "access", guest_shared);
}

/* Reads the hexadecimal attribute base of <address>; 0 if there is none. */
static uint64_t address_base(const xmlNode *address)
{
	const xmlChar *text = wss_xml_attribute(address, "base");
	unsigned long long base;
	char *end;

	if (!text || !isdigit(text[0]))
		return 0;
	errno = 0;
	base = strtoull((const char *)text, &end, 16);
	return errno || *end ? 0 : base;
}

/* A DIMM's address is next to <target>, that of virtio-mem inside it. */
static int add_device(const xmlNode *memory, struct wss_domxml *ret, uint64_t bytes,
		      struct wss_error *err)
{
	const xmlNode *target = wss_xml_child(memory, "target"),
		      *node = wss_xml_child(target, "node");
	const xmlChar *number = wss_xml_content(node);
	uint64_t gpa = address_base(wss_xml_child(memory, "address"));

	if (!gpa)
		gpa = address_base(wss_xml_child(target, "address"));
	if (ret->n_devices == WSS_MEMORY_DEVICES_MAX)
		return wss_error_set(err, WSS_ERR_FAILED, "more than %d memory devices",
				     WSS_MEMORY_DEVICES_MAX);
	ret->devices[ret->n_devices++] =
		(struct wss_memory_device){gpa, bytes, node_number(number)};
	return 0;
}

/*
 * Adds the memory devices' blocks. *ret_bytes is the sum over all models, because <memory>
 * contains them all (libvirt's virDomainDefPostParseMemory()).
 */
static int parse_memory_devices(const xmlNode *domain, bool guest_shared, struct wss_domxml *ret,
				uint64_t *ret_bytes, struct wss_error *err)
{
	*ret_bytes = 0;
	wss_xml_for_each_child(memory, wss_xml_child(domain, "devices"), "memory")
	{
		const xmlNode *page = wss_xml_child(wss_xml_child(memory, "source"), "pagesize");
		uint64_t bytes;

		if (domxml_size(wss_xml_child(wss_xml_child(memory, "target"), "size"),
				"size of a memory device", &bytes, err) < 0)
			return -1;
		if (__builtin_add_overflow(*ret_bytes, bytes, ret_bytes))
			return wss_error_set(err, WSS_ERR_FAILED, "memory devices: too large");
		if (wss_xml_attribute_is(memory, "model", "dimm") ||
		    wss_xml_attribute_is(memory, "model", "virtio-mem")) {
			if (domxml_add_block(ret, bytes, -1, err) < 0 ||
			    add_device(memory, ret, bytes, err) < 0)
				return -1;
			ret->shared &= device_is_shared(domain, memory, guest_shared);
			if (page)
				ret->hugepages |= page_is_huge(wss_xml_content(page),
							       wss_xml_attribute(page, "unit"));
		} else if (wss_xml_attribute_is(memory, "model", "nvdimm") ||
			   wss_xml_attribute_is(memory, "model", "virtio-pmem")) {
			ret->pmems++;
		}
	}
	return 0;
}

static int parse_memory(const xmlNode *domain, struct wss_domxml *ret, struct wss_error *err)
{
	const xmlNode *current = wss_xml_child(domain, "currentMemory");
	uint64_t device_bytes, initial_bytes;
	bool guest_shared;

	if (domxml_size(wss_xml_child(domain, "memory"), "memory", &ret->maximum_bytes, err) < 0)
		return -1;
	if (!ret->maximum_bytes)
		return wss_error_set(err, WSS_ERR_FAILED,
				     "memory: the domain XML gives the guest 0 bytes");
	ret->current_bytes = ret->maximum_bytes;
	if (current && domxml_size(current, "currentMemory", &ret->current_bytes, err) < 0)
		return -1;
	parse_backing(domain, ret);
	guest_shared = ret->shared;
	if (parse_cells(domain, ret, err) < 0)
		return -1;
	if (ret->n_cells) {
		for (size_t i = 0; i < ret->n_blocks; i++)
			ret->initial_bytes += ret->block_bytes[i];
		if (parse_memory_devices(domain, guest_shared, ret, &device_bytes, err) < 0)
			return -1;
		return ret->n_blocks
			       ? 0
			       : wss_error_set(err, WSS_ERR_FAILED, "no NUMA cell has memory");
	}
	/* This block precedes those of the devices, although its size depends on theirs. */
	ret->n_blocks = 1;
	ret->block_nodes[0] = -1;
	if (parse_memory_devices(domain, guest_shared, ret, &device_bytes, err) < 0)
		return -1;
	if (__builtin_sub_overflow(ret->maximum_bytes, device_bytes, &initial_bytes) ||
	    !initial_bytes)
		return wss_error_set(
			err, WSS_ERR_FAILED,
			"memory: the memory devices leave none of it to the guest's RAM");
	ret->block_bytes[0] = ret->initial_bytes = initial_bytes;
	return 0;
}

static uint64_t statistics_period(const xmlNode *balloon)
{
	const char *period =
		(const char *)wss_xml_attribute(wss_xml_child(balloon, "stats"), "period");

	return period ? strtoull(period, NULL, 10) : 0;
}

/* An empty <backingStore> ends a chain. A disk whose name is too long is no disk of QEMU's. */
static void parse_disk(const xmlNode *disk, struct wss_domxml *ret)
{
	const xmlNode *mirror = wss_xml_child(disk, "mirror");
	const xmlNode *backing = wss_xml_child(disk, "backingStore");
	const xmlChar *name = wss_xml_attribute(wss_xml_child(disk, "target"), "dev");

	if (wss_xml_attribute_is(disk, "type", "vhostuser"))
		ret->unseen_reads = true;
	if (mirror && copy_text(name, ret->mirrored, sizeof(ret->mirrored)))
		ret->mirror_commits = wss_xml_attribute_is(mirror, "job", "active-commit");
	if (wss_xml_child(backing, "source") && ret->n_chained < WSS_CHAINED_MAX &&
	    copy_text(name, ret->chained[ret->n_chained], sizeof(ret->chained[0])))
		ret->n_chained++;
}

static bool node_is_qemu(const xmlNode *node, const char *name)
{
	return node->type == XML_ELEMENT_NODE && node->ns &&
	       !strcmp((const char *)node->ns->href, QEMU_NAMESPACE) &&
	       !strcmp((const char *)node->name, name);
}

/* Options of QEMU that libvirt passes on as they are, among them files with more options. */
static void parse_commandline(const xmlNode *commandline, struct wss_domxml *ret)
{
	const char *before = NULL;
	unsigned n_unpinning = 0;

	ret->qemu_passthrough = true;
	for (const xmlNode *arg = commandline->children; arg; arg = arg->next) {
		const char *value = node_is_qemu(arg, "arg")
					    ? (const char *)wss_xml_attribute(arg, "value")
					    : NULL;

		if (!value)
			continue;
		n_unpinning += wss_devices_in_option(before, value, ret);
		before = value;
		if (*value == '-' && !strcmp(value + strspn(value, "-"), "readconfig") &&
		    !ret->launch_security[0]) {
			ret->security_unseen = true;
			strcpy(ret->launch_security,
			       "its QEMU has options in a file: qemu:commandline, -readconfig");
		}
	}
	if (ret->unpinning_hostdevs < n_unpinning)
		ret->unpinning_hostdevs = n_unpinning;
}

static void parse_devices(const xmlNode *domain, struct wss_domxml *ret)
{
	const xmlNode *devices = wss_xml_child(domain, "devices");
	const xmlNode *balloon = wss_xml_child(devices, "memballoon");
	const xmlNode *security = wss_xml_child(domain, "launchSecurity");
	const xmlChar *security_type = wss_xml_attribute(security, "type");

	ret->has_balloon = balloon && !wss_xml_attribute_is(balloon, "model", "none");
	ret->balloon_autodeflate =
		ret->has_balloon && wss_xml_attribute_is(balloon, "autodeflate", "on");
	ret->balloon_period_s = ret->has_balloon ? statistics_period(balloon) : 0;
	ret->balloon_statistics = ret->balloon_period_s != 0;
	ret->balloon_reporting =
		ret->has_balloon && wss_xml_attribute_is(balloon, "freePageReporting", "on");
	wss_xml_for_each_child(device, devices, NULL)
	{
		ret->hostdevs += wss_device_pins(device);
		ret->unpinning_hostdevs += wss_device_is_unpinning(device);
		if (wss_xml_is(device, "shmem"))
			ret->shmems++;
		else if (wss_xml_is(device, "filesystem"))
			ret->unseen_reads = true;
		else if (wss_xml_is(device, "disk"))
			parse_disk(device, ret);
	}
	for (const xmlNode *node = domain->children; node; node = node->next) {
		ret->qemu_passthrough |= node_is_qemu(node, "override");
		if (node_is_qemu(node, "commandline"))
			parse_commandline(node, ret);
	}
	if (security &&
	    !copy_text(security_type, ret->launch_security, sizeof(ret->launch_security)))
		strcpy(ret->launch_security, "unknown");
}

static void parse_vcpus(const xmlNode *domain, struct wss_domxml *ret)
{
	const xmlNode *vcpu = wss_xml_child(domain, "vcpu");
	const xmlChar *current = wss_xml_attribute(vcpu, "current");
	const xmlChar *all = wss_xml_content(vcpu);
	const char *text = (const char *)(current ? current : all);
	unsigned long n = text ? strtoul(text, NULL, 10) : 1;

	ret->vcpus = n >= 1 && n <= 65536 ? (unsigned)n : 1;
}

static void parse_dirty_log_hazard(const xmlNode *domain, struct wss_domxml *ret)
{
	const xmlNode *kvm = wss_xml_child(wss_xml_child(domain, "features"), "kvm");
	const char *machine = wss_machine_hazard(ret->machine);

	if (ret->qemu_passthrough)
		strcpy(ret->dirty_log_hazard,
		       "qemu:commandline or qemu:override (what they add is not known)");
	else if (wss_xml_attribute_is(wss_xml_child(kvm, "dirty-ring"), "state", "on"))
		strcpy(ret->dirty_log_hazard, "dirty-ring (it takes the place of the dirty log)");
	else if (machine)
		snprintf(ret->dirty_log_hazard, sizeof(ret->dirty_log_hazard),
			 "machine type '%s' (%s)", ret->machine, machine);
	else
		wss_devices_bear_dirty_log(wss_xml_child(domain, "devices"), ret->dirty_log_hazard,
					   sizeof(ret->dirty_log_hazard));
}

/* libvirt writes "+64055:+64055"; an operator may write "64055:64055", or names. */
static uid_t label_owner(const xmlChar *label)
{
	const char *text = label ? (const char *)label : "";
	unsigned long long uid;
	char *end;

	text += *text == '+';
	if (!isdigit((unsigned char)*text))
		return WSS_DOMXML_NO_OWNER;
	errno = 0;
	uid = strtoull(text, &end, 10);
	return !errno && (*end == ':' || !*end) && uid < WSS_DOMXML_NO_OWNER ? (uid_t)uid
									     : WSS_DOMXML_NO_OWNER;
}

static void parse_owner(const xmlNode *domain, struct wss_domxml *ret)
{
	ret->owner = WSS_DOMXML_NO_OWNER;
	wss_xml_for_each_child(seclabel, domain, "seclabel")
	{
		const xmlNode *label = wss_xml_child(seclabel, "label");

		if (wss_xml_attribute_is(seclabel, "model", "dac"))
			ret->owner = label_owner(wss_xml_content(label));
	}
}

int wss_domxml_parse(const char *xml, struct wss_domxml *ret_xml, struct wss_error *err)
{
	wss_auto_xml_doc xmlDoc *doc = wss_xml_parse(xml, WSS_DOMXML_MAX, err);
	struct wss_domxml result = {.backing = WSS_BACKING_ANON};
	const xmlNode *domain;

	if (!doc)
		return -1;
	domain = xmlDocGetRootElement(doc);
	if (!domain || !wss_xml_is(domain, "domain"))
		return wss_error_set(err, WSS_ERR_FAILED, "the XML does not describe a domain");
	if (parse_identity(domain, &result, err) < 0 || parse_memory(domain, &result, err) < 0)
		return -1;
	parse_vcpus(domain, &result);
	parse_devices(domain, &result);
	wss_domxml_improve(domain, &result);
	parse_owner(domain, &result);
	parse_dirty_log_hazard(domain, &result);
	*ret_xml = result;
	return 0;
}

int wss_domxml_parse_status(const char *xml, int *ret_pid, char ret_uuid[WSS_UUID_TEXT_MAX],
			    struct wss_error *err)
{
	wss_auto_xml_doc xmlDoc *doc = wss_xml_parse(xml, WSS_DOMXML_MAX, err);
	const xmlChar *text = NULL;
	const xmlNode *status;
	char *end;
	long pid;

	if (!doc)
		return -1;
	status = xmlDocGetRootElement(doc);
	if (!status || !wss_xml_is(status, "domstatus"))
		return wss_error_set(err, WSS_ERR_FAILED, "the XML is not a domain's status file");
	text = wss_xml_attribute(status, "pid");
	errno = 0;
	pid = text && isdigit(text[0]) ? strtol((const char *)text, &end, 10) : 0;
	if (errno || pid <= 0 || pid > INT_MAX || *end)
		return wss_error_set(err, WSS_ERR_FAILED, "the status XML has no valid pid");
	if (parse_uuid(wss_xml_child(status, "domain"), ret_uuid, err) < 0)
		return -1;
	*ret_pid = (int)pid;
	return 0;
}

int wss_domxml_parse_host_uuid(const char *xml, char ret_uuid[WSS_UUID_TEXT_MAX],
			       struct wss_error *err)
{
	wss_auto_xml_doc xmlDoc *doc = wss_xml_parse(xml, WSS_DOMXML_MAX, err);
	const xmlNode *capabilities = doc ? xmlDocGetRootElement(doc) : NULL;
	const xmlNode *host;

	if (!doc)
		return -1;
	host = capabilities && wss_xml_is(capabilities, "capabilities")
		       ? wss_xml_child(capabilities, "host")
		       : NULL;
	if (!host)
		return wss_error_set(err, WSS_ERR_FAILED,
				     "the XML does not describe a host's capabilities");
	return parse_uuid(host, ret_uuid, err);
}
