/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* This host's kernel and its capabilities, read once. */
#pragma once

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
