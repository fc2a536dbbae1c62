#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Tests that the kernel's own signs of too little memory reach the recommendation: a guest whose QEMU has a
# hard limit a third below its set, so that the host swaps it out and in all the time. Samples have counted
# stalls and refaults of QEMU's cgroup then, and recommend names them and recommends more than before.
# shellcheck disable=SC2317
. "${WSS_LAB_DIR:?}/wss.sh"

set_mib=192
export VIRT_WSS_HISTORY=$lab_run/history.db

# In memory, so that a fault takes no longer than it must.
swap_on() {
	modprobe zram && echo 512M >/sys/block/zram0/disksize && mkswap -q /dev/zram0 && swapon /dev/zram0
}

windows() { # COUNT
	local wss_deadline=300
	wss sample tight --store --window 4s --count "$1" --max-stall 10s --output csv
	status_is 0
}

recommend() {
	wss recommend tight --output csv
	if [ "$status" != 0 ] || [ -z "$(csv recommended_bytes)" ]; then
		wss_say
		return 1
	fi
	diag "recommended $(mib "$(csv recommended_bytes)"): $(csv reason), $(csv pressure_kinds)"
}

csv() { # COLUMN
	awk -f "$WSS_LAB_DIR/../../scripts/csv-field.awk" -v name="$1" "$wss_out"
}

counted() { # COLUMN: by how much it grew from the first sample to the last
	sqlite3 "$VIRT_WSS_HISTORY" "SELECT max($1) - min($1) FROM sample"
}

hard_limit() { # MIB
	virsh -q memtune tight --hard-limit "${1}MiB" --live
}

lab_libvirtd_start
lab_thp never
check "the host swaps" swap_on || bail_out "no swap"
lab_guest_start tight memory=304 args="wss.map=$set_mib" \
	balloon="<memballoon model='virtio' autodeflate='on'><stats period='1'/></memballoon>"
diag "cgroup: $(cat "/proc/$(lab_guest_pid tight)/cgroup")"
check "a guest with enough is measured" windows 10
check "it is recommended a size" recommend
check "nothing was missing" [ -z "$(csv pressure_kinds)" ]
before=$(csv recommended_bytes)
check "QEMU gets less than the guest uses" hard_limit $((set_mib * 2 / 3))
check "it is measured while it is short of memory" windows 5
diag "stalls $(counted stall_us) us, refaults $(counted refaults)"
check "the kernel has counted refaults" [ "$(counted refaults)" -gt 1000 ]
check "the kernel has counted stalls" [ "$(counted stall_us)" -gt 100000 ]
check "it is again" recommend
check "the signs are named" grep -q 'refaults' <<<"$(csv pressure_kinds)"
check "it is recommended more than before" [ "$(csv recommended_bytes)" -gt "${before:-0}" ]
check "because of pressure" [ "$(csv reason)" = pressure ]
hard_limit $((16 * 1024))
done_testing
