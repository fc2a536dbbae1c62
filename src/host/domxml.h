/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Live domain XML, parsed once into a plain struct: the part of a domain's configuration that
 * decides whether and how its memory can be measured.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

#define WSS_UUID_TEXT_MAX 37 /* 36 characters and the final NUL */
#define WSS_NAME_MAX 256
#define WSS_RAM_BLOCKS_MAX 512
#define WSS_MEMORY_DEVICES_MAX 256 /* QEMU's limit on slots: ACPI_MAX_RAM_SLOTS */
#define WSS_DISK_NAME_MAX 16
#define WSS_CHAINED_MAX 32
#define WSS_DOMXML_MAX (4U * 1024 * 1024) /* largest XML that is parsed */
#define WSS_DOMXML_ELEMENT_MAX 1024

enum wss_backing { WSS_BACKING_ANON, WSS_BACKING_MEMFD, WSS_BACKING_FILE };

struct wss_domxml {
	char name[WSS_NAME_MAX];
	char uuid[WSS_UUID_TEXT_MAX]; /* lower case, with dashes */
	char type[16];		      /* attribute of <domain>: "kvm", "qemu", "test" ... */
	char arch[32];		      /* attribute of <os><type>, or "" */
	char machine[64];	      /* attribute of <os><type>, such as "pc-q35-7.2", or "" */
	unsigned vcpus;		      /* <vcpu current=…>, else its text; 1 if absent */
	uint64_t maximum_bytes;	      /* <memory>, including memory devices of every model */
	uint64_t current_bytes;	      /* <currentMemory>, else maximum_bytes */
	bool has_balloon;	      /* a <memballoon> whose model is not "none" */
	bool balloon_unseen; /* whether it has one, and with what, is not known: there is no XML */
	bool balloon_autodeflate;  /* <memballoon autodeflate='on'> */
	bool balloon_statistics;   /* <memballoon><stats period=…>, which is not 0 */
	uint64_t balloon_period_s; /* that period; 0: none */
	bool balloon_reporting;	   /* <memballoon freePageReporting='on'> */
	/*
	 * The <memballoon> that gives most memory back: as it is, with autodeflate, free page
	 * reporting and statistics. "" if it has no such thing, or is too long.
	 */
	char better_balloon[WSS_DOMXML_ELEMENT_MAX];
	/*
	 * The <memoryBacking> without huge pages and locked, and with memfd if the memory would otherwise get into a file
	 * on disk, because it is said to be shared or private; "" if it has neither, or is too long.
	 */
	char better_backing[WSS_DOMXML_ELEMENT_MAX];
	enum wss_backing backing; /* <memoryBacking><source type=…> */
	/* <memoryBacking><hugepages>, or <pagesize> of a memory device, larger than the host's pages; perhaps not for all */
	bool hugepages;
	bool locked; /* <memoryBacking><locked>, or an option of QEMU */
	/*
	 * Whether every block of RAM is configured as a shared mapping: access mode='shared',
	 * or memfd with a mode other than 'private', unless its cell or memory device says
	 * otherwise. The actual mapping is wss_ram's all_shared.
	 */
	bool shared;
	/*
	 * Sizes of the blocks that QEMU creates for the RAM: one for each NUMA cell that has
	 * memory (without cells a single one, <memory> less the memory devices), then one for
	 * each memory device of model dimm or virtio-mem.
	 */
	size_t n_blocks;
	uint64_t block_bytes[WSS_RAM_BLOCKS_MAX];
	unsigned n_cells;		     /* NUMA cells, including those without memory */
	int block_nodes[WSS_RAM_BLOCKS_MAX]; /* NUMA cell of each block; -1: none */
	uint64_t initial_bytes;		     /* RAM without the memory devices, as in -m */
	/* QEMU's max-ram-below-4g if it is known to be set, else 0 */
	uint64_t max_ram_below_4g_bytes;
	size_t n_devices; /* number of memory devices of model dimm or virtio-mem */
	struct wss_memory_device {
		uint64_t gpa; /* start in guest-physical memory; 0 if unknown */
		uint64_t bytes;
		int node; /* guest NUMA node; -1 if unspecified */
	} devices[WSS_MEMORY_DEVICES_MAX];
	/* nvdimm, virtio-pmem and other devices that the guest maps, but that are not RAM. */
	unsigned pmems;
	/* Devices that pin all of the guest's memory (host/devices.h): VFIO, vDPA, NVMe disks */
	unsigned hostdevs;
	unsigned unpinning_hostdevs; /* those by VFIO that pin none: vfio-ap, vfio-ccw */
	unsigned shmems;	     /* <shmem> */
	/* <disk type='vhostuser'> or <filesystem>: no statistics count their reads */
	bool unseen_reads;
	/* A disk with a <mirror>, such as "vda": it is being copied, or committed; "" if there is none */
	char mirrored[WSS_DISK_NAME_MAX];
	bool mirror_commits;
	/* Disks with a backing chain, which a job may pull or commit; those beyond the maximum are left out */
	size_t n_chained;
	char chained[WSS_CHAINED_MAX][WSS_DISK_NAME_MAX];
	/*
	 * What protects the guest's memory from the host: the type of <launchSecurity> ("sev", "s390-pv" ...), or the
	 * option of QEMU that names it; "" if nothing does. With security_unseen it is the reason why that cannot be
	 * seen, and the guest counts as protected.
	 */
	char launch_security[128];
	bool security_unseen;
	bool qemu_passthrough; /* <qemu:commandline> or <qemu:override> */
	/*
	 * What forbids KVM's dirty log for this guest, with the reason: the first device that
	 * is not known to survive it (host/devices.h), <dirty-ring>, or <qemu:commandline>; ""
	 * if it may be started.
	 */
	char dirty_log_hazard[192];
	bool dirty_log_unasked; /* it is only that QEMU did not answer in time, which the next time it may */
	/*
	 * User that QEMU runs as: the number in the DAC label (<seclabel model='dac'>) of a
	 * running domain; WSS_DOMXML_NO_OWNER if there is none, or only a name.
	 */
	uid_t owner;
};

#define WSS_DOMXML_NO_OWNER ((uid_t)-1)

/*
 * Parses one domain's XML. The input is untrusted: at most WSS_DOMXML_MAX bytes, document type
 * declarations are refused (so there are no entities), nothing is fetched. Sizes honour their
 * unit attribute as libvirt's virScaleInteger() does (KiB if absent); overflow is an error.
 * WSS_ERR_FAILED names a required part that is missing or malformed (domain/@type, name, uuid,
 * memory, the size of a cell or memory device), or more than WSS_RAM_BLOCKS_MAX blocks.
 * ret_xml is untouched on failure.
 */
int wss_domxml_parse(const char *xml, struct wss_domxml *ret_xml, struct wss_error *err);

/*
 * Reads the pid of a running domain from libvirt's status file (<domstatus … pid='N'>), and
 * the uuid in it (lower case) for the caller to compare. Fails as above; both outputs are
 * untouched on failure.
 */
int wss_domxml_parse_status(const char *xml, int *ret_pid, char ret_uuid[WSS_UUID_TEXT_MAX],
			    struct wss_error *err);

/*
 * Reads the host's UUID from a connection's capabilities (<capabilities><host><uuid>), in
 * lower case. WSS_ERR_FAILED if there is none; ret_uuid is then untouched.
 */
int wss_domxml_parse_host_uuid(const char *xml, char ret_uuid[WSS_UUID_TEXT_MAX],
			       struct wss_error *err);
