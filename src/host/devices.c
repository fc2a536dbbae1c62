/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "host/devices.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/xml.h"

/*
 * Requirement on one element below <devices>; if attribute is NULL, the element is always
 * allowed.
 */
struct rule {
	const char *element;
	const char *child;     /* child that has the attribute, if not the element itself */
	const char *attribute; /* a missing attribute is allowed */
	const char *values;    /* allowed values, separated by spaces and enclosed in them */
};

static const struct rule rules[] = {
	{"audio", NULL, NULL, NULL},
	{"channel", NULL, NULL, NULL},
	{"console", NULL, NULL, NULL},
	{"controller", NULL, "type", " ccid fdc ide pci sata scsi usb virtio-serial "},
	{"disk", NULL, "type", " block dir file network volume "},
	{"emulator", NULL, NULL, NULL},
	{"filesystem", "driver", "type", " handle path "},
	{"graphics", NULL, NULL, NULL},
	{"hub", NULL, NULL, NULL},
	{"input", NULL, "type", " keyboard mouse tablet "},
	{"interface", NULL, "type",
	 " bridge client direct ethernet mcast network server udp user "},
	{"interface", "driver", "name", " qemu vhost "},
	{"lease", NULL, NULL, NULL},
	{"memballoon", NULL, NULL, NULL},
	{"memory", NULL, "model", " dimm "},
	{"panic", NULL, NULL, NULL},
	{"parallel", NULL, NULL, NULL},
	{"rng", NULL, NULL, NULL},
	{"serial", NULL, NULL, NULL},
	{"sound", NULL, NULL, NULL},
	{"tpm", NULL, NULL, NULL},
	{"video", "driver", "name", " qemu "},
	{"video", "model", "type", " bochs cirrus none qxl ramfb vga virtio "},
	{"watchdog", NULL, NULL, NULL},
};

static bool element_satisfies(const xmlNode *device, const struct rule *rule)
{
	const xmlNode *node = rule->child ? wss_xml_child(device, rule->child) : device;
	const xmlChar *value = NULL;
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

static bool element_is_allowed(const xmlNode *device)
{
	bool known = false;

	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		if (!wss_xml_is(device, rules[i].element))
			continue;
		if (!element_satisfies(device, &rules[i]))
			return false;
		known = true;
	}
	return known;
}

/* QEMU's names for the elements above, sorted: devices, and backends of network cards. */
static const char *const models[] = {
	"AC97", "ES1370", "VGA", "ahci", "am53c974", "bochs-display", "bridge", "ccid-card-emulated",
	"cirrus-vga", "dgram", "e1000", "e1000e", "floppy", "hda-duplex", "hda-micro", "hda-output",
	"hub", "hubport", "i6300esb", "i82801b11-bridge", "ib700", "ich9-ahci", "ich9-intel-hda",
	"ich9-usb-ehci1", "ich9-usb-uhci1", "ich9-usb-uhci2", "ich9-usb-uhci3", "ide-cd", "ide-hd",
	"igb", "intel-hda", "ioh3420", "isa-debugcon", "isa-fdc", "isa-parallel", "isa-serial",
	"l2tpv3", "lsi53c895a", "megasas", "megasas-gen2", "mptsas1068", "ne2k_pci", "nec-usb-xhci",
	"nic", "pc-dimm", "pci-bridge", "pci-serial", "pcie-pci-bridge", "pcie-root-port", "pcnet",
	"piix3-usb-uhci", "piix4-usb-uhci", "pvpanic", "pvpanic-pci", "pvscsi", "pxb", "pxb-pcie",
	"qemu-xhci", "qxl", "qxl-vga", "ramfb", "rtl8139", "sb16", "scsi-block", "scsi-cd",
	"scsi-generic", "scsi-hd", "secondary-vga", "socket", "stream", "tap", "tpm-crb", "tpm-tis",
	"usb-audio", "usb-ccid", "usb-ehci", "usb-hub", "usb-kbd", "usb-mouse", "usb-net",
	"usb-serial", "usb-storage", "usb-tablet", "user", "vde", "virtconsole", "virtio-9p-pci",
	"virtio-balloon-pci", "virtio-blk-pci", "virtio-gpu-gl-pci", "virtio-gpu-pci",
	"virtio-keyboard-pci", "virtio-mouse-pci", "virtio-net-pci", "virtio-rng-pci",
	"virtio-scsi-pci", "virtio-serial-pci", "virtio-tablet-pci", "virtio-vga", "virtio-vga-gl",
	"virtserialport", "vmxnet3", "x3130-upstream", "xio3130-downstream",
};

static int compare_models(const void *a, const void *b)
{
	return strcmp(a, *(const char *const *)b);
}

bool wss_device_model_bears_dirty_log(const char *model)
{
	return bsearch(model, models, sizeof(models) / sizeof(models[0]), sizeof(models[0]),
		       compare_models) != NULL;
}

/* Whether a disk, or a part of its chain, is an NVMe device that QEMU drives itself, or a vDPA device. */
static bool disk_pins(const xmlNode *source)
{
	for (; source; source = wss_xml_child(source, "backingStore"))
		if (wss_xml_attribute_is(source, "type", "nvme") || wss_xml_attribute_is(source, "type", "vhostvdpa"))
			return true;
	return false;
}

bool wss_device_pins(const xmlNode *device)
{
	if (wss_xml_is(device, "hostdev"))
		return !wss_xml_attribute_is(device, "mode", "capabilities") &&
		       !wss_xml_attribute_is(device, "type", "usb") && !wss_xml_attribute_is(device, "type", "scsi") &&
		       !wss_xml_attribute_is(device, "type", "scsi_host");
	if (wss_xml_is(device, "interface"))
		return wss_xml_attribute_is(device, "type", "hostdev") || wss_xml_attribute_is(device, "type", "vdpa");
	return wss_xml_is(device, "disk") && (disk_pins(device) || disk_pins(wss_xml_child(device, "mirror")));
}

bool wss_device_model_pins(const char *model)
{
	return !strncmp(model, "vfio-", strlen("vfio-")) || !strncmp(model, "vhost-vdpa", strlen("vhost-vdpa"));
}

bool wss_device_model_shares(const char *model)
{
	return !strncmp(model, "ivshmem", strlen("ivshmem"));
}

static bool options_contain(const char *options, size_t len, const char *word)
{
	return memmem(options, len, word, strlen(word)) != NULL;
}

void wss_devices_in_options(const char *options, size_t len, struct wss_domxml *config)
{
	static const char *const security[] = {"confidential-guest-support", "memory-encryption"};
	static const char *const pinning[] = {"vfio", "vhost-vdpa", "nvme://"};

	for (size_t i = 0; i < 2; i++)
		if (!config->launch_security[0] && options_contain(options, len, security[i]))
			snprintf(config->launch_security, sizeof(config->launch_security), "%s", security[i]);
	for (size_t i = 0; i < 3; i++)
		config->hostdevs += options_contain(options, len, pinning[i]);
	config->shmems += options_contain(options, len, "ivshmem");
}

bool wss_devices_bear_dirty_log(const xmlNode *devices, char *ret_name, size_t size)
{
	wss_xml_for_each_child(device, devices, NULL)
	{
		const xmlChar *type = wss_xml_attribute(device, "type");

		if (element_is_allowed(device))
			continue;
		snprintf(ret_name, size, type ? "%s type='%s'" : "%s", (const char *)device->name,
			 (const char *)type);
		return false;
	}
	return true;
}
