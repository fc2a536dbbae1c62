#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Tests the BPF recorder's figures for writes: for loads, stores and read-modify-writes, on
# each backing, with and without huge pages. The figure is exact or bounded, and correct in
# both cases.
# shellcheck disable=SC2317
. "${WSS_LAB_DIR:?}/wss.sh"

require_recorder

# NAME LOW HIGH: MiB that are written; exactly known
written_exactly() {
	diag "written $(json written_bytes), of $(json wss_bytes) touched"
	in_range "$(json written_bytes)" $(($2 * MiB)) $(($3 * MiB)) && json_is written_low_bytes "$(json written_bytes)"
}

written_within_bounds() { # MIB
	diag "written at most $(json written_high_bytes)"
	[ -z "$(json written_bytes)" ] &&
		in_range $(($1 * MiB)) 0 "$(json written_high_bytes)" &&
		[ -z "$(json written_low_bytes)" ] &&
		noted 'huge pages'
}

# Starts a guest for each case, because the guest's program has only one mode.
test_written() { # THP BACKING MODE exact|bounded [ARGUMENT...]
	local thp=$1 backing=$2 mode=$3 kind=$4 name=$2-$1-$3 low=16 high=18
	shift 4
	[ "$mode" != read ] || low=0 high=2
	lab_thp "$thp"
	echo "$thp" >/sys/kernel/mm/transparent_hugepage/shmem_enabled
	lab_guest_start "$name" memory=256 backing="$backing" \
		args="wss.map=64 wss.touch=16 wss.mode=$mode"
	check "$name is measured" measure "$name" 16 --recorder bpf --max-stall 10s "$@"
	check "$name: the recorder is used" json_is recorder bpf
	if [ "$kind" = exact ]; then
		check "$name: the written memory is known" written_exactly "$name" "$low" "$high"
	else
		check "$name: the written memory is bounded" written_within_bounds "$low"
	fi
	check "$name is well" guest_well "$name"
	lab_guest_stop "$name"
}

lab_libvirtd_start
for mode in read write rmw; do
	test_written never anon $mode exact
	test_written always anon $mode bounded
done
test_written never memfd read exact
test_written never memfd write exact
# QEMU aligns a memfd to 4 KiB: the host cannot map huge pages of it as such.
test_written always memfd write exact
# Huge pages that KVM maps by 4 KiB: touched memory is exact, written memory is not.
test_written always anon write bounded --granularity 4k
if lab_hugepages 160; then
	test_written never hugetlb read bounded
	test_written never hugetlb write bounded
else
	skip "no huge pages" "hugetlb"
fi
done_testing
