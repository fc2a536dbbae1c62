#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Tests the ways in which a guest's memory can be backed and touched, and in which
# KVM's counters can be read.
# shellcheck disable=SC2317
. "${WSS_LAB_DIR:?}/wss.sh"

no_debugfs() { # COMMAND...
	local result=0
	umount -l /sys/kernel/debug
	"$@" || result=$?
	mount -t debugfs debugfs /sys/kernel/debug
	return $result
}

# 2 vCPUs and threads, loads then stores, scattered.
test_memfd() {
	check "a memfd guest at rest is measured" measure memfd 0
	baseline=${estimate:-0}
	check "a memfd guest is measured" measure memfd 64
	say_measure
	check "the estimate is within 5 %" estimate_is_close "$estimate" "$truth" "$baseline"
	check "the granularity is 4 KiB" json_is granularity_bytes 4096
	check "its memory is found" in_range "$(json rss_bytes)" $((4 * truth)) $((512 * MiB))
	by_debugfs=$estimate
}

test_hugetlb() {
	check "a hugetlb guest is measured at 4 KiB" measure hugetlb 64 --granularity 4k
	say_measure
	check "granularity is 4 KiB" json_is granularity_bytes 4096
	check "within 5 %" estimate_is_close "$estimate" "$truth" "$baseline"
	check "it is measured at native granularity, too" measure hugetlb 64
	say_measure
	check "the granularity is 2 MiB" json_is granularity_bytes $((2 * MiB))
	check "the bounds enclose the truth" in_range $((truth + baseline)) \
		"$(json wss_low_bytes)" "$(json wss_high_bytes)"
	# One page in four over 256 MiB touches all of these huge pages.
	check "the high bound is all huge pages touched" \
		in_range "$(json wss_high_bytes)" $((250 * MiB)) $((340 * MiB))
	check "its memory is found, huge" in_range "$(json huge_bytes)" $((512 * MiB)) $((512 * MiB))
}

test_without_debugfs() {
	check "a guest is measured with no debugfs" no_debugfs measure memfd 64
	say_measure
	check "the figure is within 2 % of that with debugfs" in_range "$estimate" $((by_debugfs * 98 / 100)) \
		$((by_debugfs * 102 / 100))
	no_debugfs wss sample memfd --pause --window 1s --output json
	check "--pause is refused without debugfs" refused 5 'debugfs'
	check "the guest is well" guest_well memfd
}

test_qmp() {
	measure_as="--qmp $lab_run/plain.sock"
	check "a guest by its QMP socket is measured" measure plain 64
	say_measure
	check "within 5 %" estimate_is_close "$estimate" "$truth" "$baseline"
	by_debugfs=${estimate:-0}
	check "it is measured through QMP alone" no_debugfs measure plain 64
	say_measure
	check "the figure is the same, within 2 %" in_range "$estimate" $((by_debugfs * 98 / 100)) \
		$((by_debugfs * 102 / 100))
	measure_as=
	check "the guest is well" guest_well plain
}

lab_thp never
lab_libvirtd_start
lab_hugepages 260 || bail_out "no huge pages"
lab_guest_start memfd vcpus=2 backing=memfd \
	args="wss.map=288 wss.phases=64:40,0:16 wss.mode=rmw wss.order=random wss.threads=2 wss.rate=65536"
test_memfd
lab_guest_start hugetlb vcpus=2 backing=hugetlb \
	args="wss.map=256 wss.touch=64 wss.mode=read wss.order=stride:4 wss.rate=65536"
test_hugetlb
lab_guest_stop hugetlb
lab_hugepages 0
test_without_debugfs
plain_guest_start plain "wss.map=288 wss.touch=64 wss.mode=write wss.rate=65536"
test_qmp
plain_guest_stop plain
done_testing
