/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The QMP queries that virt-wss needs. Replies are checked and copied into plain structs: no
 * JSON leaves qmp/. All take a timeout in milliseconds and fail as qmp_execute() does; a reply
 * that lacks what QEMU's schema promises is WSS_ERR_FAILED and leaves the connection usable.
 * QEMU versions are taken from qapi/ in its sources.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/amount.h"
#include "qmp.h"

#define QMP_STATE_MAX 32
#define QMP_UUID_TEXT_MAX 37
#define QMP_NAME_MAX 256
/* Largest number of entries accepted in a list of devices, backends, blocks or vCPUs. */
#define QMP_LIST_MAX 4096

struct qmp_status {
	bool running;
	char state[QMP_STATE_MAX]; /* "running", "paused", "inmigrate", "prelaunch" … */
};
int qmp_query_status(struct qmp *qmp, unsigned int timeout_ms, struct qmp_status *ret_status,
		     struct wss_error *err);

struct qmp_kvm {
	bool enabled; /* this guest uses KVM */
	bool present; /* QEMU supports KVM, which says nothing about this guest */
};
int qmp_query_kvm(struct qmp *qmp, unsigned int timeout_ms, struct qmp_kvm *ret_kvm,
		  struct wss_error *err);

/* Returns the guest's UUID: 36 characters, lower case; all zero if the guest was given none.
 */
int qmp_query_uuid(struct qmp *qmp, unsigned int timeout_ms, char ret_uuid[QMP_UUID_TEXT_MAX],
		   struct wss_error *err);

/* Returns the value of QEMU's -name; "" without one. */
int qmp_query_name(struct qmp *qmp, unsigned int timeout_ms, char ret_name[QMP_NAME_MAX],
		   struct wss_error *err);

struct qmp_machine {
	char type[64];			 /* without "-machine": "pc-i440fx-7.2" */
	uint64_t max_ram_below_4g_bytes; /* PC machines only; 0 if not set, or the default */
};
/* Reads the machine object by qom-get. QEMU sets max-ram-below-4g to its default at start. */
int qmp_query_machine(struct qmp *qmp, unsigned int timeout_ms, struct qmp_machine *ret_machine,
		      struct wss_error *err);

/* Whether the machine's whole RAM (-m) is one memory backend. false as well if QEMU (before 5.0) does not say. */
bool qmp_machine_has_backend(struct qmp *qmp, unsigned int timeout_ms);

/*
 * Whether an object protects the guest's memory from the host (SEV, SEV-SNP, TDX, PEF, Secure Execution): *ret_id
 * is its id, "" if there is none. The machine's confidential-guest-support says so from QEMU 6.0 on, its
 * memory-encryption from 2.12. Without either property, or with a value of another kind, it fails: the guest may
 * be protected.
 */
int qmp_query_confidential(struct qmp *qmp, unsigned int timeout_ms, char ret_id[QMP_NAME_MAX],
			   struct wss_error *err);

struct qmp_balloon {
	bool present;	       /* false: no active balloon device; the rest is then 0 */
	uint64_t actual_bytes; /* memory that the guest may use */
};
int qmp_query_balloon(struct qmp *qmp, unsigned int timeout_ms, struct qmp_balloon *ret_balloon,
		      struct wss_error *err);

/*
 * What the guest reports of its memory through the balloon device with that id, by its property guest-stats (QEMU's
 * docs/interop/virtio-balloon-stats.rst): in bytes but for the time. What it does not report, or is no size that
 * a machine has, is unknown.
 */
struct qmp_balloon_report {
	struct wss_amount free_bytes, usable_bytes, cache_bytes, managed_bytes;
	uint64_t update_s; /* when it did, seconds since the epoch; 0: never */
};
int qmp_query_balloon_report(struct qmp *qmp, const char *device, unsigned int timeout_ms,
			     struct qmp_balloon_report *ret_report, struct wss_error *err);

struct qmp_migration {
	char state[QMP_STATE_MAX]; /* "active", "completed" …; "" if there never was one */
	bool in_progress;	   /* it uses, or is about to use, the dirty log */
};
int qmp_query_migrate(struct qmp *qmp, unsigned int timeout_ms, struct qmp_migration *ret_migration,
		      struct wss_error *err);

/*
 * query-memory-size-summary: the memory that the guest was given, whatever the balloon does.
 * QEMU 2.11 and newer.
 */
struct qmp_memory_size {
	uint64_t base_bytes; /* -m */
	bool has_plugged;    /* this machine type supports memory devices */
	uint64_t plugged_bytes;
};
int qmp_query_memory_size(struct qmp *qmp, unsigned int timeout_ms,
			  struct qmp_memory_size *ret_size, struct wss_error *err);

/* Memory backend object (-object memory-backend-*), which backs a NUMA cell or DIMM. */
struct qmp_memdev {
	char id[QMP_NAME_MAX]; /* "" if QEMU gives none */
	uint64_t size_bytes;
	bool share;
};
/* Returns a list of *ret_count entries in *ret_list, for free(); NULL and 0 if there are none. */
int qmp_query_memdev(struct qmp *qmp, unsigned int timeout_ms, struct qmp_memdev **ret_list,
		     size_t *ret_count, struct wss_error *err);

/* Memory device in a slot: DIMM, NVDIMM, virtio-mem or virtio-pmem. */
struct qmp_memory_device {
	char type[QMP_STATE_MAX];  /* "dimm", "nvdimm", "virtio-mem" … */
	char id[QMP_NAME_MAX];	   /* "" if it has none */
	char memdev[QMP_NAME_MAX]; /* path of its backend, "/objects/ID"; "" if unknown */
	uint64_t gpa;		   /* start in guest-physical memory; 0 if unknown */
	uint64_t size_bytes;	   /* current size in the guest */
	uint64_t max_bytes;	   /* largest size (virtio-mem), else size_bytes */
};
/* Like qmp_query_memdev(). A device of an unknown type has size 0. */
int qmp_query_memory_devices(struct qmp *qmp, unsigned int timeout_ms,
			     struct qmp_memory_device **ret_list, size_t *ret_count,
			     struct wss_error *err);

/* Model or kind of a device or backend: "virtio-net-pci", "tap". */
struct qmp_model {
	char name[QMP_NAME_MAX];
};
/*
 * qom-list: returns the models of an object's children. Those of "/machine/peripheral" and
 * "/machine/peripheral-anon" are the devices that were added with and without an id, on the
 * command line or later. Otherwise like qmp_query_memdev().
 */
int qmp_query_children(struct qmp *qmp, const char *path, unsigned int timeout_ms,
		       struct qmp_model **ret_list, size_t *ret_count, struct wss_error *err);

/*
 * "info network", which has no QMP command of its own: returns the kinds of all network cards
 * ("nic") and backends ("tap", "vhost-user" ...). Otherwise like qmp_query_memdev().
 */
int qmp_query_network(struct qmp *qmp, unsigned int timeout_ms, struct qmp_model **ret_list,
		      size_t *ret_count, struct wss_error *err);

enum qmp_stats_target {
	QMP_STATS_VM,
	QMP_STATS_VCPU,
};

struct qmp_stat {
	const char *name; /* in: name of the statistic, such as "pages_4k" or "pf_fixed" */
	bool found;	  /* out: false where this kernel or accelerator does not count it */
	uint64_t value;	  /* out: the value, summed over all vCPUs for QMP_STATS_VCPU */
};
/*
 * query-stats of the provider kvm (QEMU 7.1; older: WSS_ERR_UNSUPPORTED). Fills found and
 * value of count entries, which are untouched on failure. Booleans count as 0 and 1. A guest
 * without KVM has no statistics: found is false for all. A statistic of 2^64 - 1 or more is not found.
 */
int qmp_query_stats(struct qmp *qmp, enum qmp_stats_target target, struct qmp_stat *stats,
		    size_t count, unsigned int timeout_ms, struct wss_error *err);
