/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "host/devices.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "host/xml.h"

/* Why QEMU must not start the dirty log. */
#define OUTSIDE "it writes to guest memory from outside QEMU, which aborts if it cannot log that"
#define MEMORY "memory beside the guest's RAM, with which the dirty log was not tried"
#define UNKNOWN "virt-wss does not know it"

/*
 * Requirement on one element below <devices>; if attribute is NULL, the element is always
 * allowed: QEMU emulates it, or the host's kernel logs its writes, as vhost does.
 */
struct rule {
	const char *element;
	const char *child;     /* child that has the attribute, if not the element itself */
	const char *attribute; /* a missing attribute is allowed */
	const char *values;    /* allowed values, separated by spaces and enclosed in them */
	const char *why;       /* not the others */
};

static const struct rule rules[] = {
	{"audio", NULL, NULL, NULL, NULL},
	{"channel", NULL, NULL, NULL, NULL},
	{"console", NULL, NULL, NULL, NULL},
	{"controller", NULL, "type", " ccid fdc ide isa nvme pci sata scsi usb virtio-serial ",
	 UNKNOWN},
	{"crypto", "backend", "model", " builtin lkcf ", UNKNOWN},
	{"disk", NULL, "type", " block dir file network volume ", OUTSIDE},
	{"emulator", NULL, NULL, NULL, NULL},
	{"filesystem", "driver", "type", " handle mtp path ", OUTSIDE},
	{"graphics", NULL, NULL, NULL, NULL},
	{"hostdev", NULL, "type", " usb scsi ", OUTSIDE},
	{"hub", NULL, NULL, NULL, NULL},
	{"input", NULL, "type", " evdev keyboard mouse passthrough tablet ", UNKNOWN},
	{"interface", NULL, "type", " bridge client direct ethernet mcast network server udp user ",
	 OUTSIDE},
	{"interface", "driver", "name", " qemu vhost ", UNKNOWN},
	{"iommu", NULL, "model", " amd intel smmuv3 virtio ", UNKNOWN},
	{"lease", NULL, NULL, NULL, NULL},
	{"memballoon", NULL, NULL, NULL, NULL},
	{"memory", NULL, "model", " dimm ", MEMORY},
	{"nvram", NULL, NULL, NULL, NULL},
	{"panic", NULL, NULL, NULL, NULL},
	{"parallel", NULL, NULL, NULL, NULL},
	{"pstore", NULL, NULL, NULL, NULL},
	{"redirdev", NULL, NULL, NULL, NULL},
	{"redirfilter", NULL, NULL, NULL, NULL},
	{"rng", NULL, NULL, NULL, NULL},
	{"serial", NULL, NULL, NULL, NULL},
	{"shmem", NULL, "name", " ", MEMORY},
	{"smartcard", NULL, NULL, NULL, NULL},
	{"sound", NULL, NULL, NULL, NULL},
	{"tpm", NULL, NULL, NULL, NULL},
	{"video", "driver", "name", " qemu ", OUTSIDE},
	{"video", "model", "type", " bochs cirrus none qxl ramfb vga virtio ", UNKNOWN},
	{"vsock", NULL, NULL, NULL, NULL},
	{"watchdog", NULL, NULL, NULL, NULL},
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

/* Returns why the dirty log must not be started with this element; NULL if it may. */
static const char *element_hazard(const xmlNode *device)
{
	bool known = false;

	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		if (!wss_xml_is(device, rules[i].element))
			continue;
		if (!element_satisfies(device, &rules[i]))
			return rules[i].why;
		known = true;
	}
	return known ? NULL : UNKNOWN;
}

/*
 * QEMU's names of devices, and of the backends of network cards, as shell patterns separated
 * by spaces; the first class that has a device decides. Devices of virtio and vhost are named
 * without the suffix for their bus, such as "-pci-non-transitional".
 */
static const struct {
	const char *names;
	const char *hazard; /* NULL: the dirty log may be started */
} classes[] = {
	{"vhost-user* vhost-vdpa* vfio-* x-vfio-* kvm-pci-assign vhost-scsi "
	 "x-pci-proxy-dev pvrdma xen-* xenbus*",
	 OUTSIDE},
	/* Its backend may be one of vhost-user. */
	{"virtio-crypto", OUTSIDE},
	{"ivshmem* nvdimm spapr-nvdimm virtio-pmem virtio-mem cxl-type3 sgx-epc "
	 "hv-balloon vmapple-*",
	 MEMORY},
	/* RAM, and vCPUs that were plugged. */
	{"pc-dimm *-cpu *-cpu-core", NULL},
	/* vhost in the host's kernel, which logs what it writes. */
	{"tap bridge virtio-net vhost-vsock", NULL},
	/* Backends in QEMU, or at the end of a socket. */
	{"user l2tpv3 socket stream dgram vde hub hubport netmap af-xdp nic vmnet-*", NULL},
	/* QEMU emulates all others, and notes what it writes itself. virtio: */
	{"virtio-9p virtio-balloon virtio-blk virtio-gpu* virtio-input-host virtio-iommu "
	 "virtio-keyboard virtio-mouse virtio-multitouch virtio-nsm virtio-rng "
	 "virtio-scsi virtio-serial virtio-snd virtio-sound virtio-tablet virtio-vga* "
	 "virtserialport virtconsole",
	 NULL},
	/* Disks and their controllers. */
	{"ahci am53c974 dc390 floppy ich9-ahci ide-* isa-fdc isa-ide lsi53c810 "
	 "lsi53c895a megasas megasas-gen2 mptsas1068 nvme nvme-ns nvme-subsys piix3-ide "
	 "piix4-ide pvscsi scsi-block scsi-cd scsi-disk scsi-generic scsi-hd emmc "
	 "sd-card* sdhci-pci spapr-vscsi ufs ufs-lu",
	 NULL},
	/* Network and CAN. */
	{"ctucan_pci e1000* i82* igb igbvf kvaser_pci mioe3680_pci ne2k_isa ne2k_pci "
	 "pcm3680_pci pcnet rocker rtl8139 spapr-vlan sungem tulip vmxnet3",
	 NULL},
	/* Pictures and sound. */
	{"AC97 ES1370 VGA adlib ati-vga bochs-display cirrus-vga cs4231a gus hda-* "
	 "ich9-intel-hda intel-hda isa-cirrus-vga isa-vga qxl qxl-vga ramfb sb16 "
	 "secondary-vga sga vmware-svga",
	 NULL},
	/* USB, smart cards and keys, those of the host included: QEMU itself talks to them. */
	{"usb-* canokey ccid-card-* ich9-usb-* nec-usb-xhci pci-ohci piix3-usb-uhci "
	 "piix4-usb-uhci qemu-xhci u2f-*",
	 NULL},
	/* Buses and bridges. */
	{"cxl-downstream cxl-rp cxl-switch-* cxl-upstream i82801b11-bridge ioh3420 "
	 "pci-bridge pci-bridge-seat pcie-pci-bridge pcie-root-port pxb pxb-cxl pxb-pcie "
	 "spapr-pci-host-bridge vmbus-bridge x3130-upstream xio3130-downstream amd-iommu "
	 "AMDVI-PCI arm-smmuv3 intel-iommu riscv-iommu* zpci",
	 NULL},
	/* Serial and parallel ports, consoles. */
	{"i2c-ddc ipoctal232 isa-debugcon isa-parallel isa-serial pci-serial "
	 "pci-serial-2x pci-serial-4x sclpconsole sclplmconsole spapr-vty tpci200 x-terminal3270",
	 NULL},
	/* The board: sensors, clocks, firmware, watchdogs. */
	{"acpi-erst diag288 hv-syndbg hyperv-testdev i6300esb i8042 i82801 ib700 "
	 "ipmi-bmc-extern ipmi-bmc-sim isa-applesmc isa-debug-exit isa-ipmi-bt "
	 "isa-ipmi-kcs mc146818rtc pci-ipmi-bt pci-ipmi-kcs pvpanic* smbus-ipmi "
	 "spapr-nvram spapr-rng spapr-rtc tpm-crb* tpm-spapr tpm-tis* uefi-vars-* "
	 "vmcoreinfo vmclock vmgenid vmmouse",
	 NULL},
	/* For tests, and loaders, which write before the guest starts. */
	{"edu guest-loader loader pc-testdev pci-testdev", NULL},
};

/* Whether the name, with or without the suffix of a bus, is one of the patterns. */
static bool model_is_among(const char *model, const char *names)
{
	static const char *const suffixes[] = {"-non-transitional", "-transitional", "-pci", "-ccw",
					       "-device"};
	char name[WSS_NAME_MAX], pattern[64];

	snprintf(name, sizeof(name), "%s", model);
	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
		size_t len = strlen(name), tail = strlen(suffixes[i]);

		if (len > tail && !strcmp(name + len - tail, suffixes[i]) &&
		    (!strncmp(name, "virtio-", 7) || !strncmp(name, "vhost-", 6)))
			name[len - tail] = '\0';
	}
	while (sscanf(names, "%63s", pattern) == 1) {
		if (!fnmatch(pattern, name, 0))
			return true;
		names = strstr(names, pattern) + strlen(pattern);
	}
	return false;
}

const char *wss_device_model_hazard(const char *model)
{
	for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++)
		if (model_is_among(model, classes[i].names))
			return classes[i].hazard;
	return UNKNOWN;
}

const char *wss_machine_hazard(const char *machine)
{
	/* Distributions give theirs endings of their own. */
	static const char names[] =
		"pc pc-* q35 rhel[0-9]* isapc microvm virt virt-* s390-ccw-virtio* pseries* "
		"loongson3-virt malta";

	return !*machine || model_is_among(machine, names) ? NULL : UNKNOWN;
}

/* Whether a disk, or a part of its chain, is an NVMe device that QEMU drives itself, or a vDPA device. */
static bool disk_pins(const xmlNode *source)
{
	for (; source; source = wss_xml_child(source, "backingStore"))
		if (wss_xml_attribute_is(source, "type", "nvme") ||
		    wss_xml_attribute_is(source, "type", "vhostvdpa"))
			return true;
	return false;
}

bool wss_device_is_unpinning(const xmlNode *device)
{
	return wss_xml_is(device, "hostdev") && wss_xml_attribute_is(device, "type", "mdev") &&
	       (wss_xml_attribute_is(device, "model", "vfio-ap") ||
		wss_xml_attribute_is(device, "model", "vfio-ccw"));
}

bool wss_device_pins(const xmlNode *device)
{
	if (wss_device_is_unpinning(device))
		return false;
	if (wss_xml_is(device, "hostdev"))
		return !wss_xml_attribute_is(device, "mode", "capabilities") &&
		       !wss_xml_attribute_is(device, "type", "usb") &&
		       !wss_xml_attribute_is(device, "type", "scsi") &&
		       !wss_xml_attribute_is(device, "type", "scsi_host");
	if (wss_xml_is(device, "interface"))
		return wss_xml_attribute_is(device, "type", "hostdev") ||
		       wss_xml_attribute_is(device, "type", "vdpa");
	return wss_xml_is(device, "disk") &&
	       (disk_pins(device) || disk_pins(wss_xml_child(device, "mirror")));
}

bool wss_device_model_is_unpinning(const char *model)
{
	return !strcmp(model, "vfio-ap") || !strcmp(model, "vfio-ccw");
}

bool wss_device_model_pins(const char *model)
{
	return (!strncmp(model, "vfio-", strlen("vfio-")) &&
		!wss_device_model_is_unpinning(model)) ||
	       !strncmp(model, "vhost-vdpa", strlen("vhost-vdpa"));
}

bool wss_device_model_shares(const char *model)
{
	return !strncmp(model, "ivshmem", strlen("ivshmem"));
}

/* Whether the argument of QEMU that follows this one (NULL: unknown) begins with the name of a device or backend. */
static bool argument_begins_device(const char *before)
{
	const char *name = before ? before + strspn(before, "-") : NULL;

	return !name || name == before || !strcmp(name, "device") || !strcmp(name, "netdev");
}

/* Whether this place is the value of a key that names what a device or backend is, as text or as JSON. */
static bool argument_names_kind(const char *argument, const char *at)
{
	static const char *const keys[] = {"driver", "type"};

	while (at > argument && strchr("=:\" ", at[-1]))
		at--;
	for (size_t i = 0; i < 2; i++) {
		size_t len = strlen(keys[i]);

		if ((size_t)(at - argument) >= len && !strncmp(at - len, keys[i], len))
			return true;
	}
	return false;
}

/* Finds a kind of device that begins so, from a place on: names, ids, paths and the like are the operator's words. */
static const char *argument_find_kind(const char *before, const char *argument, const char *from,
				      const char *word)
{
	for (const char *at = from; (at = strstr(at, word)); at++)
		if (at == argument ? argument_begins_device(before)
				   : argument_names_kind(argument, at))
			return at;
	return NULL;
}

/* Whether an argument has this key, as text or as JSON. */
static bool argument_has_key(const char *argument, const char *key)
{
	for (const char *at = argument; (at = strstr(at, key)); at++) {
		const char *end = at + strlen(key);

		if ((at == argument || strchr(",\"", at[-1])) &&
		    (*end == '=' || (*end == '"' && end[1 + strspn(end + 1, " ")] == ':')))
			return true;
	}
	return false;
}

/* Whether an argument has this text at its beginning, or as a value. */
static bool argument_has(const char *argument, const char *text)
{
	for (const char *at = argument; (at = strstr(at, text)); at++)
		if (at == argument || strchr(",=\"", at[-1]))
			return true;
	return false;
}

/* Notes devices by VFIO. Returns how many of them pin no memory. */
static unsigned argument_read_vfio(const char *before, const char *argument,
				   struct wss_domxml *config)
{
	unsigned n = 0;

	for (const char *at = argument; (at = argument_find_kind(before, argument, at, "vfio"));
	     at++) {
		char model[16];

		snprintf(model, sizeof(model), "%.*s", (int)strcspn(at, ",\""), at);
		if (wss_device_model_is_unpinning(model))
			n++;
		else
			config->hostdevs += !config->hostdevs;
	}
	return n;
}

unsigned wss_devices_in_option(const char *before, const char *argument, struct wss_domxml *config)
{
	/* QEMU takes an underscore for a dash there. */
	static const char *const security[] = {"confidential-guest-support",
					       "confidential_guest_support", "memory-encryption",
					       "memory_encryption"};
	/* Their values are the operator's words. */
	static const char *const free_texts[] = {"name", "append", "smbios", "fw_cfg"};

	for (size_t i = 0; before && i < sizeof(free_texts) / sizeof(free_texts[0]); i++)
		if (*before == '-' && !strcmp(before + strspn(before, "-"), free_texts[i]))
			return 0;
	for (size_t i = 0; i < 4; i++)
		if (!config->launch_security[0] && argument_has_key(argument, security[i]))
			snprintf(config->launch_security, sizeof(config->launch_security), "%s",
				 security[i]);
	config->hostdevs += !config->hostdevs &&
			    (argument_find_kind(before, argument, argument, "vhost-vdpa") ||
			     argument_has(argument, "nvme://"));
	config->shmems +=
		!config->shmems && argument_find_kind(before, argument, argument, "ivshmem");
	/* on, or on-fault; QEMU before 4.0 has -realtime. */
	config->locked |=
		argument_has(argument, "mem-lock=on") || argument_has(argument, "mlock=on");
	return argument_read_vfio(before, argument, config);
}

void wss_devices_in_options(const char *options, size_t len, struct wss_domxml *config)
{
	const char *before = NULL;
	unsigned n_unpinning = 0;

	for (const char *at = options; at < options + len; at += strlen(at) + 1) {
		n_unpinning += wss_devices_in_option(before, at, config);
		before = at;
	}
	/* The inventory may know them, too. */
	if (config->unpinning_hostdevs < n_unpinning)
		config->unpinning_hostdevs = n_unpinning;
}

bool wss_devices_bear_dirty_log(const xmlNode *devices, char *ret_hazard, size_t size)
{
	wss_xml_for_each_child(device, devices, NULL)
	{
		const xmlChar *type = wss_xml_attribute(device, "type");
		const char *hazard = element_hazard(device);

		if (!hazard)
			continue;
		snprintf(ret_hazard, size, type ? "%s type='%s' (%s)" : "%s%.0s (%s)",
			 (const char *)device->name, type ? (const char *)type : "", hazard);
		return false;
	}
	return true;
}
