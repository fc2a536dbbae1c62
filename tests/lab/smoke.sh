#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Tests whether the lab has what virt-wss builds on: libvirtd, a KVM guest, KVM's
# counters, and a zap by hand after which the gauge equals what the guest touches.
. "${WSS_LAB_DIR:?}/functions.sh"

touched=16384 # pages: wss.touch=64
guest_kernel=3000

lab_thp never
lab_libvirtd_start
lab_guest_start smoke memory=512 args="wss.map=256 wss.touch=64 wss.mode=rmw"
check "the guest touches" lab_guest_wait_state smoke touching

before=$(lab_guest_counter smoke pages_4k)
check "KVM has mapped what the guest populated" in_range "$before" $((4 * touched)) 131072

echo 4 >"/proc/$(lab_guest_pid smoke)/clear_refs"
after=$(lab_guest_counter smoke pages_4k)
check "the zap drops mappings" in_range "$after" 0 $((before - 1))
check "the guest makes whole passes after it" lab_guest_wait_passes smoke 2
gauge=$(lab_guest_counter smoke pages_4k)
diag "pages_4k: $before before, $after just after the zap, $gauge in the end"
check "the gauge is the touched set and a little kernel" \
	in_range "$gauge" $touched $((touched + guest_kernel))
check "nothing is mapped huge" in_range "$(lab_guest_counter smoke pages_2m)" 0 0
check "the guest is alive" lab_guest_alive smoke
done_testing
