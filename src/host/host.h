/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The room host/: finds guests on this host, and reads what libvirt, QEMU, /proc and /sys say about
 * them. No other room calls libvirt.
 *
 *   in    libvirt's URI (conn.h), the path of a QMP socket (qmpguest.h), or an inventory of this
 *         host's VMs (inventories.h), such as Proxmox VE's or the kernel's own
 *   out   struct wss_guest (guest.h): configuration (domxml.h), state, QEMU process (process.h), RAM
 *         in its address space (ram.h) and in the guest's (gpa.h); struct wss_host: this file;
 *         counters of KVM (kvmstat.h), time in which the guest stood still (standstill.h), memory
 *         pressure (pressure.h); the metadata of many hosts (fleet.h)
 *
 * A guest is open, and then attached or not (guest.h), and belongs to one thread at a time. Any call
 * of libvirt or QEMU may hang, so callers make it in a worker (base/worker.h); conn-call.c says on
 * which connection. libvirt's events come in a thread of conn.c.
 *
 * Begin with guest.h and domain.c. A new question to libvirt or QEMU is an operation of struct
 * wss_guest_ops, in domain.c and in qmpguest.c; another manager of this host's VMs is another file
 * as proxmox.c; a fact of the configuration is a member of struct wss_domxml; a fact about the
 * kernel goes into host.c.
 */
#pragma once

/* This host's kernel and its capabilities, read once. */

#include <stdbool.h>

#include "base/amount.h"
#include "base/error.h"
#include "base/root.h"

enum wss_tristate { WSS_UNKNOWN = -1, WSS_NO = 0, WSS_YES = 1 };

struct wss_host {
	struct wss_root root;		  /* directory that stands for "/" */
	char release[65];		  /* "6.1.0-40-amd64" */
	unsigned version;		  /* WSS_KERNEL_VERSION(major, minor); 0 if unreadable */
	enum wss_tristate soft_dirty;	  /* CONFIG_MEM_SOFT_DIRTY: "sd" in our own VmFlags */
	enum wss_tristate tdp_mmu;	  /* kvm's parameter; unknown if kvm is not loaded */
	enum wss_tristate two_dim_paging; /* kvm_intel ept or kvm_amd npt; no: shadow paging */
	bool ept;			  /* two_dim_paging by kvm_intel */
	bool kvm_debugfs;		  /* whether /sys/kernel/debug/kvm can be read */
	char name[65];			  /* node name */
	char uuid[37]; /* SMBIOS product UUID, lower case; "" if there is no valid one */
	uint64_t page_bytes;
	/* Size of a transparent huge page: 2 MiB where pages have 4 KiB. */
	uint64_t huge_page_bytes;
	char machine_id[37]; /* /etc/machine-id as a UUID; "" if there is none */
};

#define WSS_KERNEL_VERSION(major, minor) ((major)*1000u + (minor))

/*
 * Reads the host under sysroot ("/", or another directory in tests). Values that cannot be
 * read are unknown; the only error is a sysroot that cannot be opened.
 */
int wss_host_open(const char *sysroot, struct wss_host *ret_host, struct wss_error *err);

/* Copies what was read, for wss_host_close(). WSS_ERR_FAILED: no descriptor is left. */
int wss_host_copy(const struct wss_host *host, struct wss_host *ret_copy, struct wss_error *err);

void wss_host_close(struct wss_host *host);

/* Returns the memory of this host that its kernel manages, in bytes; unknown if the kernel does not say. */
struct wss_amount wss_host_memory(void);

/* Reads the kernel's random ID of this boot, below sysroot; "" if unreadable. */
#define WSS_HOST_BOOT_ID_MAX 37
void wss_host_boot_id(const char *sysroot, char ret_id[WSS_HOST_BOOT_ID_MAX]);
