#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Tests the method idle, on a kernel with idle page tracking: what it finds on 4 KiB pages is what mmu finds, and the truth,
# without a fault of the guest; on huge pages its bounds hold.
# shellcheck disable=SC2317
. "${WSS_LAB_DIR:?}/wss.sh"
if [ ! -e /sys/kernel/mm/page_idle/bitmap ]; then
	echo "1..0 # SKIP this kernel has no idle page tracking"
	exit 77
fi

# Each page is marked by itself, which takes long where the host is emulated.
idle=(--method idle --deadline 2m)

test_refusals() {
	"$virt_wss" methods --columns domain,method,usable,reason >"$wss_out" 2>"$wss_err"
	diag "$(cat "$wss_out")"
	check "idle can measure it" grep -qE '^small +idle +yes' "$wss_out"
	wss record small --method idle --for 1s -o "$lab_run/small.rec"
	check "record is refused, as the hottest pages may be missing" refused 5 'idle'
}

test_small() {
	local large marked
	check "a guest at rest is measured" measure_phase small 0 "${idle[@]}"
	say_bounds
	baseline=${estimate:-0}
	check "its set is small" in_range "$baseline" 1 $((8 * MiB))
	check "64 MiB are measured" measure_phase small 64 "${idle[@]}"
	say_bounds
	large=$estimate
	check "within 3 % of the truth" estimate_is_close "$large" "$truth" "$baseline" 3
	check "the low bound is not above it" in_range "$(json wss_low_bytes)" 1 $((truth + baseline + MiB))
	check "the high bound has what a TLB of 8192 entries hides" in_range "$(json wss_high_bytes)" \
		$((large + 32 * MiB)) $((large + 34 * MiB))
	check "its notes say so" noted 'TLB'
	check "its granularity is 4 KiB" json_is granularity_bytes 4096
	check "the guest took no fault for it" in_range "$(json faults)" 0 64
	export VIRT_WSS_FAULT=skip-aging
	check "192 MiB are measured without marking them" measure_phase small 192 "${idle[@]}"
	check "64 MiB are measured after that" measure_phase small 64 "${idle[@]}"
	say_bounds
	unset VIRT_WSS_FAULT
	check "the figure is another" refute estimate_is_close "$estimate" "$truth" "$baseline" 3
	check "32 MiB of a guest that is held are measured" measure_phase small 32 "${idle[@]}" --pause
	say_bounds
	check "within 3 % of the truth, too" estimate_is_close "$estimate" "$truth" "$baseline" 3
	marked=$estimate
	# Last, as what is not touched in this window stays unmapped.
	check "mmu measures the same pages" measure small 32 --method mmu
	say_measure
	check "with a fault for each" in_range "$(json faults)" $((truth / 4096)) $((4 * truth / 4096))
	check "both differ by 3 % at most" in_range "$marked" $((estimate * 97 / 100)) $((estimate * 103 / 100))
	check "the guest is well" guest_well small
}

# Shared memory, whose pages the kernel locks to look them up.
test_memfd() {
	local rest
	controlled_guest_start shared "wss.map=320 wss.phases=0:0 wss.mode=read" memory=512 backing=memfd
	check "a guest at rest on a memfd is measured" measure_phase shared 0 "${idle[@]}"
	rest=${estimate:-0}
	check "64 MiB of a memfd are measured" measure_phase shared 64 "${idle[@]}"
	say_bounds
	check "within 3 % of the truth as well" estimate_is_close "$estimate" "$truth" "$rest" 3
	check "the guest on a memfd is well" guest_well shared
	lab_guest_stop shared
}

test_huge() {
	lab_thp always
	lab_guest_start huge memory=512 args="wss.map=320 wss.touch=64 wss.mode=write"
	check "a guest on huge pages is measured" measure huge 64 "${idle[@]}"
	say_bounds
	check "its granularity is 2 MiB" json_is granularity_bytes $((2 * MiB))
	check "the bounds hold the truth" bounds_enclose "$baseline"
	wss sample huge --method idle --granularity 4k --window 1s --output json
	check "4 KiB are refused there" refused 5 '4 KiB granularity'
	check "the guest on huge pages is well" guest_well huge
	lab_guest_stop huge
}

test_hugetlb() {
	lab_thp never
	check "the host has huge pages" lab_hugepages 270
	lab_guest_start tlb memory=512 backing=hugetlb args="wss.touch=16"
	wss sample tlb --method idle --window 1s --output json
	check "hugetlb is refused" refused 5 'hugetlb'
}

lab_thp never
lab_libvirtd_start
controlled_guest_start small "wss.map=320 wss.phases=0:0 wss.mode=write" memory=512
test_refusals
test_small
lab_guest_stop small
test_memfd
test_huge
test_hugetlb
done_testing
