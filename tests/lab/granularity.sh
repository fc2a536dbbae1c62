#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Tests 4 KiB granularity on huge pages: it is exact where native granularity only has bounds,
# the huge mappings return afterwards, and no other dirty log is disturbed.
# shellcheck disable=SC2317
. "${WSS_LAB_DIR:?}/wss.sh"

# Checks that it is within 2 % of the truth and the guest's own kernel.
is_exact() { # ESTIMATE TRUTH BASELINE
	diag "estimate $(mib "$1"), truth $(mib "$2"), baseline $(mib "$3")"
	in_range "$1" $((($2 + $3) * 98 / 100)) $((($2 + $3) * 102 / 100))
}

# Only the recorder has this figure.
nothing_or_evidence() {
	"$virt_wss" --version | grep -q 'bpf: yes' || [ -z "$(json written_bytes)" ]
}

# QEMU delays the end of its log while the guest is paused.
test_paused() {
	check "a window is open" wss_start sample huge --granularity 4k --window 3s --max-stall 10s \
		--output json
	virsh -q suspend huge
	wss_wait
	check "a guest paused within the window gives a degraded sample" json_is quality degraded
	check "its notes give the reason" noted 'paused'
	check "its notes say that large mappings were not seen to be back" noted 'not observable|not ended its dirty log'
	virsh -q resume huge
	check "the log is over once the guest runs" wait_until 30 log_is_off huge
	check "huge mappings are back" wait_until 60 huge_mappings_are_back huge
}

# A log that ends within the window allows 2 MiB entries, so the window does not have 4 KiB
# granularity.
test_log_ends_early() {
	VIRT_WSS_FAULT=short-log wss sample huge --granularity 4k --window 4s --max-stall 10s \
		--output json
	check "a log that ends within the window is noticed" json_is quality degraded
	check "its notes give the reason" noted 'dirty log was not on throughout'
	check "the sample does not have 4 KiB granularity" json_is granularity_bytes 2097152
	check "its bounds enclose the truth" bounds_enclose "$baseline"
	check "the guest lives" guest_well huge
}

lab_thp always
lab_libvirtd_start
controlled_guest_start huge "wss.map=256 wss.phases=0:0 wss.mode=write" memory=512

check "an idle guest is measured at 4 KiB" measure huge 0 --granularity 4k
baseline=${estimate:-0}
check "a guest that touches 16 MiB is measured at 4 KiB" measure_phase huge 16 --granularity 4k
say_measure
check "granularity is 4 KiB" json_is granularity_bytes 4096
check "quality is ok" json_is quality ok
check "the estimate is within 2 %" is_exact "$estimate" "$truth" "$baseline"
check "the dirty log ends by itself" wait_until 30 log_is_off huge
check "huge mappings are back" wait_until 60 huge_mappings_are_back huge
check "native granularity, the default, has bounds" measure huge 16
check "they are bounds of 2 MiB pages" json_is granularity_bytes 2097152
check "they enclose the truth" bounds_enclose "$baseline"

check "huge mappings are back before the sample is out" wait_until 20 huge_mappings_are_back huge
check "auto chooses 4 KiB" measure huge 16 --granularity auto
check "because it is safe, useful and cheap" json_is granularity_bytes 4096
check "nothing is claimed about writes without evidence" nothing_or_evidence

wss sample huge --granularity both --window 2s --max-stall 10s --output json
check "both granularities are in one answer" status_is 0
diag "4 KiB $(mib "$(json wss_bytes)"), native $(mib "$(json native_wss_bytes)")," \
	"bloat $(json huge_page_bloat)"
check "one window is at 4 KiB" json_is granularity_bytes 4096
check "the other window is at 2 MiB" json_is native_granularity_bytes 2097152
check "the latter is larger" in_range "$(json native_wss_bytes)" $((2 * $(json wss_bytes))) $((512 * MiB))

wss sample huge --store --history "$lab_run/history.db" --window 1s --max-stall 10s --output json
check "stored samples are at 4 KiB by default" json_is granularity_bytes 4096

test_log_ends_early
test_paused
virsh -q domdirtyrate-calc huge --seconds 25 --mode=page-sampling >/dev/null
wss sample huge --granularity 4k --window 1s --max-stall 10s --output json
check "somebody else's calculation is not disturbed" refused 1 'dirty-rate calculation'
wss sample huge --granularity 4k --window 51s --output json
check "a window that is too long is refused" refused 5 '50 s'
wss sample huge --granularity auto --max-faults 1 --window 1s --max-stall 10s --output json
check "auto chooses native if there would be too many faults" json_is granularity_bytes 2097152
check "and gives the reason" noted 'faults, over the limit of 1'
wss sample huge --window 51s --max-stall 1ms --output json
check "auto chooses native if arming would take too long" refused 5 'for one stall'
check "the log ends before a kill" wait_until 60 log_is_off huge
wss_start sample huge --granularity 4k --window 3s --max-stall 10s
kill -KILL "$wss_pid"
wss_wait
check "after kill -9 the dirty log ends by itself" wait_until 30 log_is_off huge
check "and huge mappings come back" wait_until 60 huge_mappings_are_back huge
check "the guest is well" guest_well huge
lab_guest_stop huge

lab_guest_start shm memory=256 top="" devices="<shmem name='s'><model type='ivshmem-plain'/><size unit='M'>4</size></shmem>" \
	args="wss.map=64 wss.touch=16 wss.mode=write"
wss sample shm --granularity 4k --window 1s --output json
check "a device that is not known to survive the log is refused" refused 5 'shmem'
check "that guest is well" guest_well shm
done_testing
