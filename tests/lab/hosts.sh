#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Tests hosts on which a measurement would harm the guest, or would measure another host's
# guest.
# shellcheck disable=SC2317
. "${WSS_LAB_DIR:?}/wss.sh"

# Makes a host that claims Linux 5.15 and is otherwise like this one, which has soft-dirty
# tracking.
old_host() { # DIRECTORY
	mkdir -p "$1/proc/sys/kernel"
	ln -s /* "$1/" 2>/dev/null
	ln -s /proc/* "$1/proc/" 2>/dev/null
	ln -s /proc/sys/* "$1/proc/sys/" 2>/dev/null
	ln -s /proc/sys/kernel/* "$1/proc/sys/kernel/" 2>/dev/null
	rm "$1/proc/sys/kernel/osrelease"
	echo 5.15.0 >"$1/proc/sys/kernel/osrelease"
}

test_old_kernel() {
	local fault
	if ! grep -q '^VmFlags:.* sd' /proc/self/smaps; then
		skip "this kernel has no soft-dirty tracking" "the self-test of old kernels"
		return
	fi
	old_host "$lab_run/old"
	export VIRT_WSS_SYSROOT=$lab_run/old
	for fault in selftest-fails selftest-cannot; do
		export VIRT_WSS_FAULT=$fault
		wss sample plain-anon --max-stall 10s --window 500ms --output json
		check "$fault: a guest on an old kernel is refused" refused 5 '5\.15.*self-test'
		wss sample memfd --max-stall 10s --window 500ms --output json
		check "$fault: a memfd guest is measured all the same" json_is quality ok
		unset VIRT_WSS_FAULT
	done
	wss sample plain-anon --max-stall 10s --window 500ms --output json
	check "the self-test passes here: the guest is measured" json_is quality ok
	unset VIRT_WSS_SYSROOT
	check "the guest is well" guest_well plain-anon
}

set_host_uuid() { # UUID, or "" for the machine's own
	lab_daemon_stop libvirtd
	sed -i '/^host_uuid/d' /etc/libvirt/libvirtd.conf
	[ -z "$1" ] || echo "host_uuid = \"$1\"" >>/etc/libvirt/libvirtd.conf
	lab_libvirtd_start
}

test_other_host() {
	set_host_uuid 01234567-89ab-cdef-0123-456789abcdef
	wss sample memfd --max-stall 10s --window 500ms --output json
	check "a libvirtd of another host is refused" refused 5 'another host'
	set_host_uuid ''
	wss sample memfd --max-stall 10s --window 500ms --output json
	check "that of this host is not" status_is 0
	check "the guest is well" guest_well memfd
}

lab_thp never
lab_libvirtd_start
lab_guest_start memfd memory=256 backing=memfd args="wss.map=64 wss.rate=8192"
lab_guest_start plain-anon memory=256 args="wss.map=64 wss.rate=8192"
test_old_kernel
test_other_host
done_testing
