/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Which devices of a domain are known to bear KVM's dirty log being started.
 */
#ifndef WSS_HOST_DEVICES_H
#define WSS_HOST_DEVICES_H

#include <stdbool.h>
#include <stddef.h>

#include <libxml/tree.h>

/*
 * QEMU aborts when the dirty log starts while a vhost-user, vdpa or VFIO device
 * cannot keep its own (hw/virtio/vhost.c, vhost_log_global_start(); QEMU 7.2 and 10.0).
 * So this is a list of what is allowed, not of what is bad: a device that is not on
 * it, also one that libvirt learns later, counts as one that could kill the guest.
 * devices is the <devices> element. Returns true where all are allowed; else false,
 * with the first other one in ret_name, such as "interface type='vhostuser'".
 */
bool wss_devices_bear_dirty_log(const xmlNode *devices, char *ret_name, size_t size);

/* The same of one device or network backend by what QEMU calls it: "virtio-net-pci", "tap". */
bool wss_device_model_bears_dirty_log(const char *model);

#endif
