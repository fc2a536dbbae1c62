/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "host/devices.h"

#include <stdio.h>
#include <string.h>

#include "host/xml.h"

/* What one element below <devices> must be like; attribute NULL: nothing more is asked. */
struct rule {
	const char *element;
	const char *child;     /* the attribute is that of this child, where there is one */
	const char *attribute; /* absent is allowed */
	const char *values;    /* allowed, separated by spaces and enclosed in them */
};

static const struct rule rules[] = {
	{ "audio", NULL, NULL, NULL },
	{ "channel", NULL, NULL, NULL },
	{ "console", NULL, NULL, NULL },
	{ "controller", NULL, "type", " ccid fdc ide pci sata scsi usb virtio-serial " },
	{ "disk", NULL, "type", " block dir file network volume " },
	{ "emulator", NULL, NULL, NULL },
	{ "filesystem", "driver", "type", " handle path " },
	{ "graphics", NULL, NULL, NULL },
	{ "hub", NULL, NULL, NULL },
	{ "input", NULL, "type", " keyboard mouse tablet " },
	{ "interface", NULL, "type", " bridge client direct ethernet mcast network server udp user " },
	{ "interface", "driver", "name", " qemu vhost " },
	{ "lease", NULL, NULL, NULL },
	{ "memballoon", NULL, NULL, NULL },
	{ "memory", NULL, "model", " dimm " },
	{ "panic", NULL, NULL, NULL },
	{ "parallel", NULL, NULL, NULL },
	{ "rng", NULL, NULL, NULL },
	{ "serial", NULL, NULL, NULL },
	{ "sound", NULL, NULL, NULL },
	{ "tpm", NULL, NULL, NULL },
	{ "video", "driver", "name", " qemu " },
	{ "video", "model", "type", " bochs cirrus none qxl ramfb vga virtio " },
	{ "watchdog", NULL, NULL, NULL },
};

static bool satisfies(const xmlNode *device, const struct rule *rule)
{
	const xmlNode *node = rule->child ? wss_xml_child(device, rule->child) : device;
	wss_auto_xml_text xmlChar *value = NULL;
	char wanted[64];

	if (!rule->attribute)
		return true;
	value = wss_xml_attribute(node, rule->attribute);
	if (!value)
		return true;
	if (strchr((const char *)value, ' ') ||
	    (size_t)snprintf(wanted, sizeof(wanted), " %s ", (const char *)value) >= sizeof(wanted))
		return false;
	return strstr(rule->values, wanted) != NULL;
}

static bool is_allowed(const xmlNode *device)
{
	bool known = false;

	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		if (!wss_xml_is(device, rules[i].element))
			continue;
		if (!satisfies(device, &rules[i]))
			return false;
		known = true;
	}
	return known;
}

bool wss_devices_bear_dirty_log(const xmlNode *devices, char *ret_name, size_t size)
{
	wss_xml_for_each_child(device, devices, NULL)
	{
		wss_auto_xml_text xmlChar *type = wss_xml_attribute(device, "type");

		if (is_allowed(device))
			continue;
		snprintf(ret_name, size, type ? "%s type='%s'" : "%s", (const char *)device->name,
			 (const char *)type);
		return false;
	}
	return true;
}
