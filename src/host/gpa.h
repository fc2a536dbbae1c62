/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Layout of a guest's RAM in its physical address space. KVM knows it, for any machine and VMM; the configuration
 * is enough to derive it for the usual machines of QEMU only.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "host/domxml.h"
#include "host/guest.h"
#include "host/ram.h"

struct wss_kvm_slots;

#define WSS_GPA_RANGES_MAX 256

/* A piece of RAM. Addresses are multiples of 4 KiB; the end is exclusive. */
struct wss_gpa_range {
	uint64_t start, end; /* guest-physical */
	uint64_t host;	     /* where it begins in the VMM's address space; 0: unknown */
};

/* Sorted by guest-physical address, disjoint, not empty. */
struct wss_gpa_layout {
	size_t n_ranges;
	struct wss_gpa_range ranges[WSS_GPA_RANGES_MAX];
};

/* Where KVM's slots show this RAM. WSS_ERR_UNSUPPORTED: nowhere, or in too many pieces. */
int wss_gpa_of_slots(const struct wss_kvm_slots *slots, const struct wss_ram *ram,
		     struct wss_gpa_layout *ret_layout, struct wss_error *err);

/*
 * Reads the layout of an attached guest from KVM's slots, or derives it from the configuration where the kernel cannot be
 * asked. RAM that firmware shows and hides at will, from 768 KiB to 1 MiB, is always part of it. WSS_ERR_UNSUPPORTED, with the
 * reason, if it cannot be derived; errors of wss_guest_slots().
 */
int wss_gpa_of_guest(struct wss_guest *guest, struct wss_gpa_layout *ret_layout,
		     struct wss_error *err);
