#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Tests the method lrugen, on a kernel with MGLRU: what it finds on 4 KiB pages is what mmu finds, and the truth, without a
# fault of the guest; on huge pages its bounds hold; nothing is changed for good.
# shellcheck disable=SC2317
. "${WSS_LAB_DIR:?}/wss.sh"
require_recorder
switches=/sys/kernel/mm/lru_gen/enabled
if [ ! -e $switches ] || [ "$(cat $switches)" = 0x0000 ]; then
	echo "1..0 # SKIP this kernel has no MGLRU, or it is off"
	exit 77
fi
switches_before=$(cat $switches)

test_refusals() {
	"$virt_wss" methods --columns domain,method,usable,reason >"$wss_out" 2>"$wss_err"
	diag "$(cat "$wss_out")"
	check "lrugen can measure it" grep -qE '^small +lrugen +yes' "$wss_out"
	plain_guest_start shared "wss.map=16"
	wss sample --qmp "$lab_run/shared.sock" --method lrugen --window 1s --output json
	check "a guest without a memory cgroup of its own is refused" refused 5 'memory cgroup'
	plain_guest_stop shared
	wss record small --method lrugen --for 1s -o "$lab_run/small.rec"
	check "record is refused, as the hottest pages may be missing" refused 5 'lrugen'
}

test_small() {
	local aged large
	check "a guest at rest is measured" measure_phase small 0 --method lrugen
	say_bounds
	baseline=${estimate:-0}
	check "its set is small" in_range "$baseline" 1 $((8 * MiB))
	check "64 MiB are measured" measure_phase small 64 --method lrugen
	say_bounds
	large=$estimate
	check "within 3 % of the truth" estimate_is_close "$large" "$truth" "$baseline" 3
	check "the low bound is not above it" in_range "$(json wss_low_bytes)" 1 $((truth + baseline + MiB))
	check "the high bound has what a TLB of 8192 entries hides" in_range "$(json wss_high_bytes)" \
		$((large + 32 * MiB)) $((large + 33 * MiB))
	check "its notes say so" noted 'TLB'
	check "its granularity is 4 KiB" json_is granularity_bytes 4096
	check "the guest took no fault for it" in_range "$(json faults)" 0 64
	export VIRT_WSS_FAULT=skip-aging
	check "without aging" measure small 64 --method lrugen
	say_bounds
	unset VIRT_WSS_FAULT
	check "the figure is another" refute estimate_is_close "$estimate" "$truth" "$baseline" 3
	check "and says that nothing was cleared" noted 'hardly any accessed bit'
	check "32 MiB are measured" measure_phase small 32 --method lrugen --pause
	say_bounds
	check "within 3 % of the truth, too" estimate_is_close "$estimate" "$truth" "$baseline" 3
	aged=$estimate
	# Last, as what is not touched in this window stays unmapped.
	check "mmu measures the same pages" measure small 32 --method mmu
	say_measure
	check "with a fault for each" in_range "$(json faults)" $((truth / 4096)) $((4 * truth / 4096))
	check "both differ by 3 % at most" in_range "$aged" $((estimate * 97 / 100)) $((estimate * 103 / 100))
	wss sample small --method all --window 4s --output json
	diag "$(jq -c '.samples[] | [.method, .wss_bytes, .notes]' "$wss_out")"
	check "all methods are taken in turn, the first one again at the end" \
		jq -e '[.samples[].method] | length >= 3 and .[0] == "mmu" and .[-1] == "mmu" and any(. == "lrugen")' "$wss_out"
	check "and the last compares them" jq -e '.samples[-1].notes | any(test("^lrugen .*mmu"))' "$wss_out"
	check "the guest is well" guest_well small
}

test_huge() {
	lab_thp always
	lab_guest_start huge memory=512 args="wss.map=320 wss.touch=64 wss.mode=write"
	check "a guest on huge pages is measured" measure huge 64 --method lrugen
	say_bounds
	check "its granularity is 2 MiB" json_is granularity_bytes $((2 * MiB))
	check "the bounds hold the truth" bounds_enclose "$baseline"
	wss sample huge --method lrugen --granularity 4k --window 1s --output json
	check "4 KiB are refused there" refused 5 '4 KiB granularity'
	check "the guest on huge pages is well" guest_well huge
}

lab_thp never
lab_libvirtd_start
controlled_guest_start small "wss.map=320 wss.phases=0:0 wss.mode=write" memory=512
test_refusals
test_small
lab_guest_stop small
test_huge
check "MGLRU's switches are as before" test "$(cat $switches)" = "$switches_before"
done_testing
