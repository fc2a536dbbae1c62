/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "hosttest.h"

#include "base/units.h"
#include "host/domxml.h"

static const char *fixture_path(char *buf, const char *name)
{
	return make_path(buf, "%s/domxml/%s", WSS_FIXTURES, name);
}

/* XML of libvirt 9.0 for a running guest with two cells and a DIMM. */
TEST(test_live_numa)
{
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_domxml dom;
	char path[PATH_MAX];
	wss_auto_free char *xml = read_text(fixture_path(path, "live-numa-dimm.xml"));

	assert_int_equal(wss_domxml_parse(xml, &dom, &err), 0);
	assert_string_equal(dom.name, "wss-fixture");
	assert_string_equal(dom.uuid, "a1b2c3d4-0000-4000-8000-00000000abcd");
	assert_string_equal(dom.type, "qemu");
	assert_string_equal(dom.arch, "x86_64");
	assert_int_equal(dom.maximum_bytes, 640 * WSS_MIB);
	assert_int_equal(dom.current_bytes, 640 * WSS_MIB);
	assert_true(dom.has_balloon);
	assert_int_equal(dom.backing, WSS_BACKING_MEMFD);
	assert_true(dom.shared);
	assert_false(dom.hugepages);
	assert_false(dom.locked);
	assert_int_equal(dom.n_blocks, 3);
	assert_int_equal(dom.block_bytes[0], 256 * WSS_MIB);
	assert_int_equal(dom.block_bytes[1], 256 * WSS_MIB);
	assert_int_equal(dom.block_bytes[2], 128 * WSS_MIB);
	assert_string_equal(dom.machine, "pc-q35-7.2");
	assert_int_equal(dom.initial_bytes, 512 * WSS_MIB);
	assert_int_equal(dom.n_devices, 1);
	assert_int_equal(dom.devices[0].gpa, 0x100000000);
	assert_int_equal(dom.devices[0].bytes, 128 * WSS_MIB);
	assert_int_equal(dom.devices[0].node, 0);
	assert_int_equal(dom.n_cells, 2);
	assert_int_equal(dom.block_nodes[0], 0);
	assert_int_equal(dom.block_nodes[1], 1);
	assert_int_equal(dom.hostdevs, 0);
	assert_string_equal(dom.launch_security, "");
	assert_false(dom.qemu_passthrough);
	assert_int_equal(dom.owner, 0);
}

#define WITH_LABELS(labels)                                                                    \
	"<domain type='kvm'><name>g</name><uuid>" UUID_A "</uuid><memory>1024</memory>" labels \
	"</domain>"

/* The user that QEMU runs as comes from the one label that states it. */
TEST(test_owner)
{
	static const struct {
		const char *xml;
		uid_t owner;
	} table[] = {
		{WITH_LABELS(""), WSS_DOMXML_NO_OWNER},
		{WITH_LABELS("<seclabel model='dac'><label>+64055:+109</label></seclabel>"), 64055},
		{WITH_LABELS("<seclabel model='apparmor'><label>7:7</label></seclabel>"
			     "<seclabel model='dac'><label>107:107</label></seclabel>"
			     "<seclabel model='selinux'><label>8:8</label></seclabel>"),
		 107},
		{WITH_LABELS("<seclabel model='dac'><label>4294967294</label></seclabel>"),
		 4294967294},
		{WITH_LABELS("<seclabel model='dac'><label>4294967295:0</label></seclabel>"),
		 WSS_DOMXML_NO_OWNER},
		{WITH_LABELS(
			 "<seclabel model='dac'><label>99999999999999999999:0</label></seclabel>"),
		 WSS_DOMXML_NO_OWNER},
		{WITH_LABELS("<seclabel model='dac'><label>qemu:qemu</label></seclabel>"),
		 WSS_DOMXML_NO_OWNER},
		{WITH_LABELS("<seclabel model='dac'><label>0x10:0</label></seclabel>"),
		 WSS_DOMXML_NO_OWNER},
		{WITH_LABELS("<seclabel model='dac'><label>-1:0</label></seclabel>"),
		 WSS_DOMXML_NO_OWNER},
		{WITH_LABELS("<seclabel model='dac'><label/></seclabel>"), WSS_DOMXML_NO_OWNER},
		{WITH_LABELS("<seclabel type='none' model='dac'/>"), WSS_DOMXML_NO_OWNER},
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct wss_domxml dom;

		assert_int_equal(wss_domxml_parse(table[i].xml, &dom, NULL), 0);
		assert_int_equal(dom.owner, table[i].owner);
	}
}

TEST(test_live_plain)
{
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_domxml dom;
	char path[PATH_MAX];
	wss_auto_free char *xml = read_text(fixture_path(path, "live-plain.xml"));

	assert_int_equal(wss_domxml_parse(xml, &dom, &err), 0);
	assert_false(dom.balloon_autodeflate);
	assert_false(dom.has_balloon);
	assert_int_equal(dom.backing, WSS_BACKING_ANON);
	assert_false(dom.shared);
	assert_int_equal(dom.n_blocks, 1);
	assert_int_equal(dom.block_bytes[0], 256 * WSS_MIB);
	assert_int_equal(dom.initial_bytes, 256 * WSS_MIB);
	assert_int_equal(dom.n_devices, 0);
}

TEST(test_status)
{
	struct wss_error err = WSS_ERROR_INIT;
	char path[PATH_MAX], uuid[WSS_UUID_TEXT_MAX] = "untouched";
	wss_auto_free char *xml = read_text(fixture_path(path, "status.xml"));
	static const char *const bad[] = {
		"<domstatus/>",
		"<domstatus pid='12'/>",
		"<domstatus pid='12'><domain/></domstatus>",
		"<domain pid='12'><domain><uuid>" UUID_A "</uuid></domain></domain>",
		"<domstatus pid='0'><domain><uuid>" UUID_A "</uuid></domain></domstatus>",
		"<domstatus pid='-1'><domain><uuid>" UUID_A "</uuid></domain></domstatus>",
		"<domstatus pid=' 1'><domain><uuid>" UUID_A "</uuid></domain></domstatus>",
		"<domstatus pid='1x'><domain><uuid>" UUID_A "</uuid></domain></domstatus>",
		"<domstatus pid='4294967297'><domain><uuid>" UUID_A "</uuid></domain></domstatus>",
		"<domstatus pid=''><domain><uuid>" UUID_A "</uuid></domain></domstatus>",
		"<domstatus pid='1'><domain><uuid>x</uuid></domain></domstatus>",
		"<domstatus pid='1'><domain><uuid>" UUID_A "0</uuid></domain></domstatus>",
	};
	int pid = -5;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(wss_domxml_parse_status(bad[i], &pid, uuid, &err), -1);
		assert_error(&err, WSS_ERR_FAILED, NULL);
		assert_int_equal(pid, -5);
		assert_string_equal(uuid, "untouched");
	}
	assert_int_equal(wss_domxml_parse_status(xml, &pid, uuid, &err), 0);
	assert_int_equal(pid, 10284);
	assert_string_equal(uuid, "a1b2c3d4-0000-4000-8000-00000000abcd");
}

TEST(test_host_uuid)
{
	static const char *const bad[] = {
		"",
		"<host><uuid>" UUID_A "</uuid></host>",
		"<capabilities/>",
		"<capabilities><host/></capabilities>",
		"<capabilities><host><uuid>a1b2</uuid></host></capabilities>",
		"<capabilities><guest><uuid>" UUID_A "</uuid></guest></capabilities>",
	};
	char uuid[WSS_UUID_TEXT_MAX] = "untouched";
	struct wss_error err = WSS_ERROR_INIT;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(wss_domxml_parse_host_uuid(bad[i], uuid, &err), -1);
		assert_error(&err, WSS_ERR_FAILED, NULL);
		assert_string_equal(uuid, "untouched");
	}
	assert_int_equal(wss_domxml_parse_host_uuid(
				 "<capabilities><host><uuid>A1B2C3D4-0000-4000-8000-00000000AAAA"
				 "</uuid></host><guest/></capabilities>",
				 uuid, &err),
			 0);
	assert_string_equal(uuid, UUID_A);
}

/* A domain with `inside` after its identity and memory, and `devices` as its devices. */
static int parse(const char *memory, const char *inside, const char *devices,
		 struct wss_domxml *ret, struct wss_error *err)
{
	char xml[16384];

	snprintf(xml, sizeof(xml),
		 "<domain type='kvm' xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'>"
		 "<name>g</name><uuid>" UUID_A "</uuid>%s%s<devices>%s</devices></domain>",
		 memory, inside, devices);
	wss_error_clear(err);
	return wss_domxml_parse(xml, ret, err);
}

TEST(test_units)
{
	static const struct {
		const char *memory;
		uint64_t bytes;
	} table[] = {
		{"<memory>1024</memory>", WSS_MIB},
		{"<memory unit='KiB'>1024</memory>", WSS_MIB},
		{"<memory unit='k'>1024</memory>", WSS_MIB},
		{"<memory unit='KB'>1000</memory>", 1000000},
		{"<memory unit='MiB'> 512 \n</memory>", 512 * WSS_MIB},
		{"<memory unit='M'>512</memory>", 512 * WSS_MIB},
		{"<memory unit='GiB'>4</memory>", 4 * WSS_GIB},
		{"<memory unit='GB'>4</memory>", 4000000000},
		{"<memory unit='TiB'>1</memory>", 1024 * WSS_GIB},
		{"<memory unit='b'>4096</memory>", 4096},
		{"<memory unit='bytes'>4096</memory>", 4096},
		{"<memory unit='EiB'>15</memory>", 15ULL << 60},
	};
	static const char *const bad[] = {
		"",
		"<memory/>",
		"<memory>0</memory>",
		"<memory>x</memory>",
		"<memory>-4</memory>",
		"<memory>4.5</memory>",
		"<memory>4 4</memory>",
		"<memory unit=''>4</memory>",
		"<memory unit='KiBi'>4</memory>",
		"<memory unit='parsec'>4</memory>",
		"<memory unit='EiB'>16</memory>",
		"<memory>18446744073709551616</memory>",
		"<memory>18014398509481984</memory>",
		"<x:memory xmlns:x='urn:x'>1024</x:memory>",
		"<metadata><memory>1024</memory></metadata>",
	};
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_domxml dom;

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		if (parse(table[i].memory, "", "", &dom, &err) < 0)
			fail_msg("%s: %s", table[i].memory, err.text);
		assert_int_equal(dom.maximum_bytes, table[i].bytes);
		assert_int_equal(dom.current_bytes, table[i].bytes);
		assert_int_equal(dom.block_bytes[0], table[i].bytes);
	}
	memset(&dom, 0x5a, sizeof(dom));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		if (parse(bad[i], "", "", &dom, &err) == 0)
			fail_msg("accepted %s", bad[i]);
		assert_error(&err, WSS_ERR_FAILED, "memory");
		assert_int_equal(dom.n_blocks, (size_t)0x5a5a5a5a5a5a5a5a);
	}
}

#define MEM "<memory unit='MiB'>1024</memory>"
#define DEVICE(model, mib) \
	"<memory model='" model "'><target><size unit='MiB'>" mib "</size></target></memory>"
#define CELLS(content) "<cpu><numa>" content "</numa></cpu>"

/* virtio-mem's address is inside its target; an invalid address counts as unknown. */
TEST(test_device_addresses)
{
	static const struct {
		const char *text;
		uint64_t gpa;
	} bases[] = {{"0x140000000", 0x140000000}, {"", 0}, {"x", 0}, {"0x1g", 0}, {"-0x10", 0},
		     {"0x10000000000000000", 0}};

	for (size_t i = 0; i < sizeof(bases) / sizeof(bases[0]); i++) {
		struct wss_error err = WSS_ERROR_INIT;
		struct wss_domxml dom;
		char device[256];

		snprintf(device, sizeof(device),
			 "<memory model='virtio-mem'><target><size unit='MiB'>64</size>"
			 "<address base='%s'/></target></memory>",
			 bases[i].text);
		assert_int_equal(parse(MEM, "", device, &dom, &err), 0);
		assert_int_equal(dom.n_devices, 1);
		assert_int_equal(dom.devices[0].gpa, bases[i].gpa);
	}
}

TEST(test_blocks)
{
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_domxml dom;

	/* Without cells the first block is the memory left over by devices of all models. */
	assert_int_equal(parse(MEM, "",
			       DEVICE("dimm", "128") DEVICE("nvdimm", "256")
				       DEVICE("virtio-mem", "64") DEVICE("virtio-pmem", "32")
					       DEVICE("sgx-epc", "16"),
			       &dom, &err),
			 0);
	assert_int_equal(dom.n_blocks, 3);
	assert_int_equal(dom.block_bytes[0], (1024 - 128 - 256 - 64 - 32 - 16) * WSS_MIB);
	assert_int_equal(dom.block_bytes[1], 128 * WSS_MIB);
	assert_int_equal(dom.block_bytes[2], 64 * WSS_MIB);
	assert_int_equal(dom.pmems, 2);
	assert_int_equal(dom.initial_bytes, dom.block_bytes[0]);
	assert_int_equal(dom.n_devices, 2);
	assert_int_equal(dom.devices[1].bytes, 64 * WSS_MIB);
	assert_int_equal(dom.devices[1].gpa, 0);
	assert_int_equal(dom.devices[1].node, -1);
	assert_int_equal(dom.n_cells, 0);
	assert_int_equal(dom.block_nodes[0], -1);
	/* A cell may have no memory of its own. */
	assert_int_equal(parse(MEM,
			       CELLS("<cell memory='512' unit='MiB'/><cell memory='0'/>"
				     "<cell memory='524288'/>"),
			       DEVICE("nvdimm", "1"), &dom, &err),
			 0);
	assert_int_equal(dom.n_blocks, 2);
	assert_int_equal(dom.block_bytes[1], 512 * WSS_MIB);
	assert_int_equal(dom.n_cells, 3);
	assert_int_equal(dom.block_nodes[1], 2);
	assert_int_equal(parse(MEM, CELLS("<cell id='3' memory='512'/><cell id='x' memory='512'/>"),
			       "", &dom, &err),
			 0);
	assert_int_equal(dom.block_nodes[0], 3);
	assert_int_equal(dom.block_nodes[1], -1);
	/* Errors. */
	assert_int_equal(parse(MEM, "", DEVICE("dimm", "1024"), &dom, &err), -1);
	assert_error(&err, WSS_ERR_FAILED, "leave none of it");
	assert_int_equal(parse(MEM, "", DEVICE("dimm", "1025"), &dom, &err), -1);
	assert_int_equal(
		parse(MEM, "", DEVICE("dimm", "17592186044415") DEVICE("dimm", "1"), &dom, &err),
		-1);
	assert_error(&err, WSS_ERR_FAILED, "too large");
	assert_int_equal(parse(MEM, "", "<memory model='dimm'/>", &dom, &err), -1);
	assert_error(&err, WSS_ERR_FAILED, "memory device");
	assert_int_equal(parse(MEM, CELLS("<cell id='0'/>"), "", &dom, &err), -1);
	assert_error(&err, WSS_ERR_FAILED, "NUMA");
	assert_int_equal(parse(MEM, CELLS("<cell memory='0'/>"), "", &dom, &err), -1);
	assert_error(&err, WSS_ERR_FAILED, "NUMA");
}

TEST(test_too_many_blocks)
{
	static const char cell[] = "<cell memory='1024'/>";
	size_t size = (WSS_RAM_BLOCKS_MAX + 1) * (sizeof(cell) - 1) + 512, len;
	wss_auto_free char *xml = malloc(size);
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_domxml dom;

	for (size_t n = WSS_RAM_BLOCKS_MAX; n <= WSS_RAM_BLOCKS_MAX + 1; n++) {
		len = (size_t)snprintf(xml, size,
				       "<domain type='kvm'><name>g</name><uuid>" UUID_A
				       "</uuid><memory>1</memory><cpu><numa>");
		for (size_t i = 0; i < n; i++)
			len += (size_t)snprintf(xml + len, size - len, "%s", cell);
		snprintf(xml + len, size - len, "</numa></cpu></domain>");
		if (n == WSS_RAM_BLOCKS_MAX) {
			assert_int_equal(wss_domxml_parse(xml, &dom, &err), 0);
			assert_int_equal(dom.n_blocks, WSS_RAM_BLOCKS_MAX);
		} else {
			assert_int_equal(wss_domxml_parse(xml, &dom, &err), -1);
			assert_error(&err, WSS_ERR_FAILED, "blocks");
		}
	}
}

#define BACKING(content) "<memoryBacking>" content "</memoryBacking>"

TEST(test_backing)
{
	static const struct {
		const char *inside;
		const char *devices;
		enum wss_backing backing;
		bool shared, hugepages, locked;
	} table[] = {
		{"", "", WSS_BACKING_ANON, false, false, false},
		{BACKING("<source type='anonymous'/>"), "", WSS_BACKING_ANON, false, false, false},
		{BACKING("<source type='memfd'/>"), "", WSS_BACKING_MEMFD, true, false, false},
		{BACKING("<source type='memfd'/><access mode='private'/>"), "", WSS_BACKING_MEMFD,
		 false, false, false},
		{BACKING("<source type='memfd'/>") CELLS("<cell memory='1' memAccess='private'/>"),
		 "", WSS_BACKING_MEMFD, false, false, false},
		{BACKING("<source type='memfd'/>"),
		 "<memory model='dimm' access='private'><target><size>1</size></target></memory>",
		 WSS_BACKING_MEMFD, false, false, false},
		{BACKING("<source type='file'/><locked/>"), "", WSS_BACKING_FILE, false, false,
		 true},
		{BACKING("<hugepages/><access mode='shared'/>"), "", WSS_BACKING_ANON, true, true,
		 false},
		{BACKING("<hugepages><page size='1' unit='G' nodeset='0'/></hugepages>"), "",
		 WSS_BACKING_ANON, false, true, false},
		/* Ordinary pages are not huge. */
		{BACKING("<hugepages><page size='4' unit='KiB'/></hugepages>"), "",
		 WSS_BACKING_ANON, false, false, false},
		{BACKING("<hugepages><page size='4'/><page size='2048' nodeset='1'/></hugepages>"),
		 "", WSS_BACKING_ANON, false, true, false},
		{"",
		 "<memory model='dimm'><source><pagesize unit='KiB'>2048</pagesize></source>"
		 "<target><size>1</size></target></memory>",
		 WSS_BACKING_ANON, false, true, false},
		{"",
		 "<memory model='virtio-mem'><source><pagesize>2048</pagesize></source>"
		 "<target><size>1</size></target></memory>",
		 WSS_BACKING_ANON, false, true, false},
		{"",
		 "<memory model='dimm'><source><pagesize unit='KiB'>4</pagesize></source>"
		 "<target><size>1</size></target></memory>",
		 WSS_BACKING_ANON, false, false, false},
		/* Each cell and device may say it for itself. */
		{CELLS("<cell memory='1' memAccess='shared'/>"), "", WSS_BACKING_ANON, true, false,
		 false},
		{CELLS("<cell memory='1' memAccess='shared'/><cell memory='1'/>"), "",
		 WSS_BACKING_ANON, false, false, false},
		{CELLS("<cell memory='1' memAccess='shared'/><cell memory='0'/>"), "",
		 WSS_BACKING_ANON, true, false, false},
		{CELLS("<cell memory='1' memAccess='shared'/>"),
		 "<memory model='dimm'><target><size>1</size></target></memory>", WSS_BACKING_ANON,
		 false, false, false},
		{CELLS("<cell memory='1' memAccess='shared'/>"),
		 "<memory model='dimm'><target><size>1</size><node>0</node></target></memory>",
		 WSS_BACKING_ANON, true, false, false},
		{CELLS("<cell memory='1' memAccess='shared'/>"),
		 "<memory model='dimm' access='shared'><target><size>1</size></target></memory>",
		 WSS_BACKING_ANON, true, false, false},
	};
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_domxml dom;

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		assert_int_equal(parse(MEM, table[i].inside, table[i].devices, &dom, &err), 0);
		assert_int_equal(dom.backing, table[i].backing);
		assert_int_equal(dom.shared, table[i].shared);
		assert_int_equal(dom.hugepages, table[i].hugepages);
		assert_int_equal(dom.locked, table[i].locked);
	}
}

TEST(test_devices)
{
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_domxml dom;

	assert_int_equal(parse(MEM "<currentMemory unit='MiB'>300</currentMemory>",
			       "<launchSecurity type='sev'><cbitpos>47</cbitpos></launchSecurity>"
			       "<qemu:commandline><qemu:arg value='-x'/></qemu:commandline>",
			       "<hostdev type='pci'/><interface type='hostdev'/>"
			       "<interface type='bridge'/><shmem name='s'/><shmem name='t'/>"
			       "<memballoon model='none'/>",
			       &dom, &err),
			 0);
	assert_int_equal(dom.current_bytes, 300 * WSS_MIB);
	assert_int_equal(dom.hostdevs, 2);
	assert_int_equal(dom.shmems, 2);
	assert_false(dom.has_balloon);
	assert_string_equal(dom.launch_security, "sev");
	assert_true(dom.qemu_passthrough);
	assert_string_equal(dom.arch, "");

	assert_int_equal(parse(MEM,
			       "<launchSecurity/><qemu:override/>"
			       "<os><type arch='aarch64'>hvm</type></os>",
			       "<memballoon model='virtio' autodeflate='on'/>", &dom, &err),
			 0);
	assert_string_equal(dom.launch_security, "unknown");
	assert_true(dom.qemu_passthrough);
	assert_true(dom.balloon_autodeflate);
	assert_true(dom.has_balloon);
	assert_string_equal(dom.arch, "aarch64");
	assert_false(dom.balloon_statistics);
	assert_int_equal(parse(MEM, "",
			       "<memballoon model='virtio'><stats period='5'/></memballoon>", &dom,
			       &err),
			 0);
	assert_true(dom.balloon_statistics);
	assert_int_equal(parse(MEM, "",
			       "<memballoon model='virtio'><stats period='0'/></memballoon>", &dom,
			       &err),
			 0);
	assert_false(dom.balloon_statistics);

	/* Elements of the same name in other namespaces are ignored. */
	assert_int_equal(parse(MEM,
			       "<metadata><x:m xmlns:x='urn:x'><hostdev/><launchSecurity/></x:m>"
			       "</metadata><x:launchSecurity xmlns:x='urn:x'/>"
			       "<x:commandline xmlns:x='urn:x'/><qemu:capabilities/>",
			       "<x:hostdev xmlns:x='urn:x'/>", &dom, &err),
			 0);
	assert_int_equal(dom.hostdevs, 0);
	assert_string_equal(dom.launch_security, "");
	assert_false(dom.qemu_passthrough);
}

TEST(test_pinning_devices)
{
	static const struct {
		const char *device;
		unsigned pins;
	} table[] = {
		{"<hostdev mode='subsystem' type='pci'/>", 1},
		{"<hostdev mode='subsystem' type='mdev' model='vfio-pci'/>", 1},
		{"<hostdev mode='subsystem' type='something-new'/>", 1},
		/* QEMU lets the balloon be used beside these two. */
		{"<hostdev mode='subsystem' type='mdev' model='vfio-ap'/>", 0},
		{"<hostdev mode='subsystem' type='mdev' model='vfio-ccw'/>", 0},
		{"<hostdev mode='subsystem' type='mdev'/>", 1},
		{"<hostdev mode='subsystem' type='pci' model='vfio-ap'/>", 1},
		{"<interface type='hostdev'/>", 1},
		{"<interface type='vdpa'/>", 1},
		{"<disk type='nvme' device='disk'/>", 1},
		{"<disk type='vhostvdpa' device='disk'/>", 1},
		{"<disk type='file'><backingStore type='file'><backingStore type='nvme'/></backingStore></disk>",
		 1},
		{"<disk type='file'><mirror type='nvme' job='copy'/></disk>", 1},
		{"<hostdev mode='subsystem' type='usb'/>", 0},
		{"<hostdev mode='subsystem' type='scsi'/>", 0},
		{"<hostdev mode='subsystem' type='scsi_host' model='virtio'/>", 0},
		{"<hostdev mode='capabilities' type='misc'/>", 0},
		{"<interface type='vhostuser'/>", 0},
		{"<interface type='bridge'/>", 0},
		{"<disk type='block'><backingStore/></disk>", 0},
		{"<redirdev bus='usb' type='spicevmc'/>", 0},
	};
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_domxml dom;

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		assert_int_equal(parse(MEM, "", table[i].device, &dom, &err), 0);
		if (dom.hostdevs != table[i].pins)
			fail_msg("%s: %u", table[i].device, dom.hostdevs);
	}
}

/* What libvirt passes on to QEMU as it is may encrypt the guest, or pin its memory. */
TEST(test_commandline)
{
	static const struct {
		const char *args, *security;
		bool unseen;
		unsigned hostdevs, shmems;
		bool locked;
	} table[] = {
		{"<qemu:arg value='-object'/><qemu:arg value='sev-guest,id=sev0'/><qemu:arg value='-machine'/>"
		 "<qemu:arg value='confidential-guest-support=sev0'/>",
		 "confidential-guest-support", false, 0, 0, false},
		{"<qemu:arg value='-machine'/><qemu:arg value='memory-encryption=sev0'/>",
		 "memory-encryption", false, 0, 0, false},
		{"<qemu:arg value='-readconfig'/><qemu:arg value='/f'/>",
		 "its QEMU has options in a file", true, 0, 0, false},
		{"<qemu:arg value='--readconfig'/><qemu:arg value='/f'/>",
		 "its QEMU has options in a file", true, 0, 0, false},
		{"<qemu:arg value='{&quot;driver&quot;:&quot;vfio-pci&quot;}'/>", "", false, 1, 0,
		 false},
		{"<qemu:arg value='{&quot;driver&quot;:&quot;vfio-ap&quot;,&quot;id&quot;:&quot;a&quot;}'/>",
		 "", false, 0, 0, false},
		{"<qemu:arg value='vfio-ccw,sysfsdev=/sys/bus/mdev/devices/7'/><qemu:arg value='vfio-pci,host=1'/>",
		 "", false, 1, 0, false},
		{"<qemu:arg value='vhost-vdpa,vhostdev=/dev/vhost-vdpa-0'/>", "", false, 1, 0,
		 false},
		{"<qemu:arg value='ivshmem-plain,memdev=m'/>", "", false, 0, 1, false},
		{"<qemu:arg value='-overcommit'/><qemu:arg value='mem-lock=on'/>", "", false, 0, 0,
		 true},
		{"<qemu:arg value='-overcommit'/><qemu:arg value='cpu-pm=on,mem-lock=on-fault'/>",
		 "", false, 0, 0, true},
		{"<qemu:arg value='-realtime'/><qemu:arg value='mlock=on'/>", "", false, 0, 0,
		 true},
		{"<qemu:arg value='-overcommit'/><qemu:arg value='mem-lock=off'/>", "", false, 0, 0,
		 false},
		{"<qemu:arg value='-name'/><qemu:arg value='vfio-readconfig'/><qemu:arg value='-fw_cfg'/>"
		 "<qemu:arg value='name=opt/x-readconfig,string=vfio-pci'/>",
		 "", false, 0, 0, false},
		{"<qemu:arg value='-fw_cfg'/><qemu:env name='vfio' value='ivshmem'/>", "", false, 0,
		 0, false},
	};
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_domxml dom;
	char inside[512];

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		snprintf(inside, sizeof(inside), "<qemu:commandline>%s</qemu:commandline>",
			 table[i].args);
		assert_int_equal(parse(MEM, inside, "", &dom, &err), 0);
		assert_int_equal(
			strncmp(dom.launch_security, table[i].security, strlen(table[i].security)),
			0);
		assert_int_equal(!dom.launch_security[0], !table[i].security[0]);
		assert_int_equal(dom.security_unseen, table[i].unseen);
		assert_int_equal(dom.hostdevs, table[i].hostdevs);
		assert_int_equal(dom.shmems, table[i].shmems);
		assert_int_equal(dom.locked, table[i].locked);
		assert_true(dom.qemu_passthrough);
	}
}

/* QEMU's statistics do not include reads by another process for the guest. */
TEST(test_unseen_reads)
{
	static const struct {
		const char *devices;
		bool unseen;
	} table[] = {
		{"", false},
		{"<disk type='file'/><disk type='network'/><x:filesystem xmlns:x='urn:x'/>", false},
		{"<disk type='file'/><disk type='vhostuser'/>", true},
		{"<filesystem type='mount'/>", true},
	};
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_domxml dom;

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		assert_int_equal(parse(MEM, "", table[i].devices, &dom, &err), 0);
		assert_int_equal(dom.unseen_reads, table[i].unseen);
	}
}

/* What shows, or allows, a job of a disk. */
TEST(test_disk_jobs)
{
	static const char copied[] =
		"<disk><target dev='vda'/><backingStore/></disk>"
		"<disk><target dev='vdb'/><mirror type='file' job='copy' ready='yes'/></disk>"
		"<disk type='vhostuser'><target dev='vdc'/>"
		"<backingStore type='file'><source file='/b'/><backingStore/></backingStore></disk>";
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_domxml dom;

	assert_int_equal(parse(MEM, "", copied, &dom, &err), 0);
	assert_string_equal(dom.mirrored, "vdb");
	assert_false(dom.mirror_commits);
	assert_int_equal(dom.n_chained, 1);
	assert_string_equal(dom.chained[0], "vdc");
	assert_int_equal(parse(MEM, "",
			       "<disk><target dev='sda'/><mirror job='active-commit'/></disk>",
			       &dom, &err),
			 0);
	assert_string_equal(dom.mirrored, "sda");
	assert_true(dom.mirror_commits);
	/* None that has no name, or one that is no disk's. */
	assert_int_equal(
		parse(MEM, "",
		      "<disk><mirror/></disk><disk><target dev='a-name-that-is-too-long'/><mirror/>"
		      "<backingStore><source/></backingStore></disk>",
		      &dom, &err),
		0);
	assert_string_equal(dom.mirrored, "");
	assert_int_equal(dom.n_chained, 0);
}

TEST(test_many_chains)
{
	char devices[8192] = "";
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_domxml dom;
	size_t n = 0;

	for (int i = 0; i < WSS_CHAINED_MAX + 2; i++)
		n += (size_t)snprintf(
			devices + n, sizeof(devices) - n,
			"<disk><target dev='vd%d'/><backingStore><source/></backingStore></disk>",
			i);
	assert_int_equal(parse(MEM, "", devices, &dom, &err), 0);
	assert_int_equal(dom.n_chained, WSS_CHAINED_MAX);
	assert_string_equal(dom.chained[1], "vd1");
}

TEST(test_identity)
{
	static const struct {
		const char *xml, *part;
	} bad[] = {
		{"", "parsed"},
		{"garbage", "parsed"},
		{"<domain", "parsed"},
		{"<domain type='kvm'>", "parsed"},
		{"<network/>", "does not describe a domain"},
		{"<x:domain xmlns:x='urn:x' type='kvm'/>", "does not describe a domain"},
		{"<domain><name>g</name></domain>", "type"},
		{"<domain type=''><name>g</name></domain>", "type"},
		{"<domain type='a-very-long-type-indeed'><name>g</name></domain>", "type"},
		{"<domain type='kvm'/>", "name"},
		{"<domain type='kvm'><name></name></domain>", "name"},
		{"<domain type='kvm'><name>g</name></domain>", "uuid"},
		{"<domain type='kvm'><name>g</name><uuid>a1b2</uuid></domain>", "uuid"},
		{("<domain type='kvm'><name>g</name>"
		  "<uuid>a1b2c3d4x0000-4000-8000-00000000aaaa</uuid></domain>"),
		 "uuid"},
		{("<domain type='kvm'><name>g</name>"
		  "<uuid>a1b2c3d4-0000-4000-8000-00000000aaag</uuid></domain>"),
		 "uuid"},
	};
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_domxml dom;
	char xml[2048], name[300];

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(wss_domxml_parse(bad[i].xml, &dom, &err), -1);
		assert_error(&err, WSS_ERR_FAILED, bad[i].part);
	}
	memset(name, 'n', sizeof(name));
	for (size_t len = WSS_NAME_MAX - 1; len <= WSS_NAME_MAX; len++) {
		snprintf(xml, sizeof(xml),
			 "<domain type='kvm'><name>%.*s</name><uuid>" UUID_A
			 "</uuid><memory>4</memory></domain>",
			 (int)len, name);
		assert_int_equal(wss_domxml_parse(xml, &dom, &err), len < WSS_NAME_MAX ? 0 : -1);
	}
	assert_error(&err, WSS_ERR_FAILED, "name");
	/* err may be NULL. */
	assert_int_equal(wss_domxml_parse("<domain/>", &dom, NULL), -1);
}

/* A document type is refused, so no entity can grow, read a file or fetch anything. */
TEST(test_hostile)
{
	static const char grows[] =
		"<!DOCTYPE domain [<!ENTITY a 'aaaaaaaaaa'>"
		"<!ENTITY b '&a;&a;&a;&a;&a;&a;&a;&a;'><!ENTITY c '&b;&b;&b;&b;&b;&b;&b;'>]>";
	static const char *const doctypes[] = {
		grows,
		"<!DOCTYPE domain [<!ENTITY c SYSTEM 'file:///etc/passwd'>]>",
		"<!DOCTYPE domain SYSTEM 'http://127.0.0.1:1/x.dtd'>",
		"<!DOCTYPE domain>",
	};
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_domxml dom;
	wss_auto_free char *big = malloc(WSS_DOMXML_MAX + 2);
	char xml[2048];

	for (size_t i = 0; i < sizeof(doctypes) / sizeof(doctypes[0]); i++) {
		snprintf(xml, sizeof(xml),
			 "%s<domain type='kvm'><name>%s</name><uuid>" UUID_A
			 "</uuid><memory>4</memory></domain>",
			 doctypes[i], i < 2 ? "&c;" : "g");
		assert_int_equal(wss_domxml_parse(xml, &dom, &err), -1);
		assert_error(&err, WSS_ERR_FAILED, "document type");
	}
	memset(big, ' ', WSS_DOMXML_MAX + 1);
	big[WSS_DOMXML_MAX + 1] = '\0';
	assert_int_equal(wss_domxml_parse(big, &dom, &err), -1);
	assert_error(&err, WSS_ERR_FAILED, "longer");
	/* Endless nesting. */
	for (size_t i = 0; i + 3 < WSS_DOMXML_MAX; i += 3)
		memcpy(big + i, "<a>", 3);
	big[WSS_DOMXML_MAX - 3] = '\0';
	assert_int_equal(wss_domxml_parse(big, &dom, &err), -1);
	assert_error(&err, WSS_ERR_FAILED, "parsed");
}

/* When out of memory libxml2 turns a longer name into one like this, in no namespace. */
TEST(test_half_a_name)
{
	static const char xml[] =
		"<domain type='kvm'><name>g</name><uuid>" UUID_A "</uuid><memory>4</memory>"
		"<metadata><wss: xmlns:wss='urn:virt-wss:profile:1'/></metadata></domain>";
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_domxml dom;

	assert_int_equal(wss_domxml_parse(xml, &dom, &err), -1);
	assert_error(&err, WSS_ERR_FAILED, "QName 'wss:'");
}

int main(void)
{
	return tests_run();
}
