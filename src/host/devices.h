/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Devices of a domain that are known to survive the start of KVM's dirty log. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <libxml/tree.h>

#include "host/domxml.h"

/*
 * QEMU aborts when the dirty log starts while a vhost-user, vdpa or VFIO device cannot keep a
 * log of its own (hw/virtio/vhost.c, vhost_log_global_start(); QEMU 7.2 and 10.0). This is
 * therefore an allowlist: a device that is not on it, including one that a later libvirt adds,
 * counts as dangerous. devices is the <devices> element. Returns true if all are allowed;
 * otherwise false, and ret_hazard holds the first device that is not, with the reason:
 * "interface type='vhostuser' (it writes ...)".
 */
bool wss_devices_bear_dirty_log(const xmlNode *devices, char *ret_hazard, size_t size);

/*
 * Returns why the dirty log must not be started with the device or network backend that QEMU
 * calls by this name, such as "virtio-net-pci" or "tap"; NULL if it may be.
 */
const char *wss_device_model_hazard(const char *model);

/*
 * The same for a machine type, "" if it is not known. Those of other kinds may make devices that no list shows, as
 * nitro-enclave (QEMU 9.2) makes one of vhost-user.
 */
const char *wss_machine_hazard(const char *machine);

/*
 * Whether an element below <devices> pins all of the guest's memory, because a device of the host may write to any of
 * it: PCI and mediated devices, vDPA, NVMe disks. USB and SCSI devices are reached through QEMU or vhost and pin
 * nothing. A kind of <hostdev> that is not known counts as pinning. Not so the crypto queues and channel devices of s390x
 * (vfio-ap, vfio-ccw): none of a guest's pages are pinned for the ones, and for the others those of a request while it
 * is carried out, so that QEMU leaves its balloon in use (ram_block_discard_allowed in hw/vfio/ap.c and ccw.c).
 */
bool wss_device_pins(const xmlNode *device);

/* Whether it is such a device by VFIO that pins none. */
bool wss_device_is_unpinning(const xmlNode *device);

/* The same two for a device or network backend by QEMU's name. */
bool wss_device_model_pins(const char *model);

bool wss_device_model_is_unpinning(const char *model);

/* Whether such a device has memory of its own that the guest maps: ivshmem. */
bool wss_device_model_shares(const char *model);

/*
 * Notes in config what QEMU's options, as /proc shows a command line of len bytes, say about an encrypted guest,
 * about locked memory, and about devices that pin its memory or have memory of their own. What a file of options says is not seen.
 */
void wss_devices_in_options(const char *options, size_t len, struct wss_domxml *config);

/* The same for one argument, by the one before it (NULL: unknown). Returns how many devices by VFIO in it pin no memory. */
unsigned wss_devices_in_option(const char *before, const char *argument, struct wss_domxml *config);
