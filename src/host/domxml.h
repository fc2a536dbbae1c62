/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The live domain XML, read once into a plain struct: what of a domain's
 * configuration decides how, and whether, its memory can be measured.
 */
#ifndef WSS_HOST_DOMXML_H
#define WSS_HOST_DOMXML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

#define WSS_UUID_TEXT_MAX 37 /* 36 characters and the final NUL */
#define WSS_NAME_MAX 256
#define WSS_RAM_BLOCKS_MAX 512
#define WSS_MEMORY_DEVICES_MAX 256 /* QEMU's limit of slots: ACPI_MAX_RAM_SLOTS */
#define WSS_DOMXML_MAX (4U * 1024 * 1024) /* bytes of XML that are looked at */

enum wss_backing { WSS_BACKING_ANON, WSS_BACKING_MEMFD, WSS_BACKING_FILE };

struct wss_domxml {
	char name[WSS_NAME_MAX];
	char uuid[WSS_UUID_TEXT_MAX]; /* lower case, with dashes */
	char type[16];		      /* the attribute of <domain>: "kvm", "qemu", "test" ... */
	char arch[32];		      /* of <os><type>, "" if absent */
	char machine[64];	      /* of <os><type>, such as "pc-q35-7.2"; "" if absent */
	unsigned vcpus;		      /* <vcpu current=…>, else its text; 1 where absent */
	uint64_t maximum_bytes;	      /* <memory>: memory devices of every model included */
	uint64_t current_bytes;	      /* <currentMemory>, else maximum_bytes */
	bool has_balloon;	      /* a <memballoon> whose model is not "none" */
	bool balloon_autodeflate;     /* <memballoon autodeflate='on'> */
	bool balloon_statistics;      /* <memballoon><stats period=…>, which is not 0 */
	enum wss_backing backing;     /* <memoryBacking><source type=…> */
	bool hugepages;		      /* <memoryBacking><hugepages>; maybe for some cells only */
	bool locked;		      /* <memoryBacking><locked> */
	/*
	 * Every block of RAM is configured as a shared mapping: access mode='shared',
	 * or memfd whose mode is not 'private', and no cell or memory device that
	 * says 'private'. What is really mapped is wss_ram's all_shared.
	 */
	bool shared;
	/*
	 * Sizes of the blocks that QEMU makes of the RAM: one a NUMA cell that has
	 * memory (without cells one in all, of <memory> less the memory devices),
	 * then one a memory device of model dimm or virtio-mem.
	 */
	size_t n_blocks;
	uint64_t block_bytes[WSS_RAM_BLOCKS_MAX];
	unsigned n_cells; /* NUMA cells, also those without memory */
	int block_nodes[WSS_RAM_BLOCKS_MAX]; /* the cell that each block is the RAM of; -1: none */
	uint64_t initial_bytes; /* RAM without the memory devices: that which -m gives */
	uint64_t max_ram_below_4g_bytes; /* QEMU's own option, if it is known to be set; else 0 */
	size_t n_devices;	/* memory devices of model dimm or virtio-mem */
	struct wss_memory_device {
		uint64_t gpa; /* where it starts in guest-physical memory; 0 where unknown */
		uint64_t bytes;
		int node; /* the guest's NUMA node; -1 where it is not said */
	} devices[WSS_MEMORY_DEVICES_MAX];
	unsigned pmems;	   /* nvdimm and virtio-pmem devices: mapped by the guest, no RAM */
	unsigned hostdevs; /* <hostdev> of any kind, and <interface type='hostdev'> */
	unsigned shmems;   /* <shmem> */
	bool unseen_reads; /* <disk type='vhostuser'> or <filesystem>: no statistic shows what they read */
	char launch_security[32]; /* type of <launchSecurity> ("sev", "s390-pv" ...), "" if none */
	bool qemu_passthrough;	  /* <qemu:commandline> or <qemu:override> */
	/*
	 * What forbids to start KVM's dirty log for this guest: the first device that is
	 * not known to bear it (host/devices.h), "dirty-ring" (<features><kvm><dirty-ring>), or
	 * "qemu:commandline"; "" where nothing does.
	 */
	char dirty_log_hazard[64];
	/*
	 * The user that QEMU runs as: the number in the DAC label (<seclabel model='dac'>) of a
	 * running domain; WSS_DOMXML_NO_OWNER where there is none, or a name.
	 */
	uid_t owner;
};

#define WSS_DOMXML_NO_OWNER ((uid_t)-1)

/*
 * Parses one domain's XML (hostile input: at most WSS_DOMXML_MAX bytes; a document
 * type declaration is refused, so there are no entities; nothing is fetched).
 * Sizes honour their unit attribute as libvirt's virScaleInteger() does (KiB if
 * absent), overflow is an error. A required part that is missing or malformed
 * (domain/@type, name, uuid, memory, the size of a cell or memory device) is
 * WSS_ERR_FAILED with a line that says which; so are more than WSS_RAM_BLOCKS_MAX
 * blocks. ret_xml is untouched on failure.
 */
int wss_domxml_parse(const char *xml, struct wss_domxml *ret_xml, struct wss_error *err);

/*
 * The pid of a running domain from libvirt's status file (<domstatus … pid='N'>).
 * Also gives the uuid found inside (lower case) so that the caller can compare it.
 * Errors as above; both outputs are untouched on failure.
 */
int wss_domxml_parse_status(const char *xml, int *ret_pid, char ret_uuid[WSS_UUID_TEXT_MAX],
			    struct wss_error *err);

/*
 * The host's UUID of a connection's capabilities (<capabilities><host><uuid>), lower case.
 * WSS_ERR_FAILED where there is none; ret_uuid is then untouched.
 */
int wss_domxml_parse_host_uuid(const char *xml, char ret_uuid[WSS_UUID_TEXT_MAX],
			       struct wss_error *err);

#endif
