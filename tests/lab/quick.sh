#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Tests that every change must pass: virt-wss measures KVM guests, reports all required
# figures, and restores the guest.
# shellcheck disable=SC2317
. "${WSS_LAB_DIR:?}/wss.sh"

second_zap() {
	next_report_ms quick >/dev/null
	echo 4 >"/proc/$(lab_guest_pid quick)/clear_refs"
}

# Before any window is armed: afterwards KVM maps only the pages touched since.
test_without_zap() {
	export VIRT_WSS_FAULT=skip-zap
	check "a sample is taken with the zap switched off" measure_phase quick 64
	unset VIRT_WSS_FAULT
	unzapped=$estimate unzapped_truth=$truth
}

test_large() {
	check "a guest that touches 64 MiB is measured" measure_phase quick 64
	say_measure
	large=$estimate large_truth=$truth
	check "it is resident with four times that" \
		in_range "$(json rss_bytes)" $((4 * truth)) $((512 * MiB))
	check "auto chooses mmu" json_is method mmu
	check "granularity is 4 KiB" json_is granularity_bytes 4096
	check "quality is ok" json_is quality ok
}

test_estimates() {
	local large large_truth unzapped unzapped_truth small small_truth
	test_without_zap
	test_large
	check "the phase after it is measured" measure_phase quick 16
	say_measure
	small=$estimate small_truth=$truth
	check "a guest at rest is measured" measure_phase quick 0
	baseline=${estimate:-0}
	check "its working set is small" in_range "$baseline" 1 $((8 * MiB))

	check "64 MiB is estimated within 5 %" estimate_is_close "$large" "$large_truth" "$baseline"
	check "without the zap it is not" \
		refute estimate_is_close "$unzapped" "$unzapped_truth" "$baseline"
	check "the estimate falls with the set" estimate_is_close "$small" "$small_truth" "$baseline"
}

test_second_zap() {
	measure_within=second_zap
	check "a zap by somebody else within the window" measure_phase quick 64 --recorder counters
	measure_within=
	diag "bounds $(mib "$(json wss_low_bytes)") - $(mib "$(json wss_high_bytes)")"
	check "the sample is degraded" json_is quality degraded
	check "its bounds enclose the truth" bounds_enclose "$baseline"
	check "its notes give the reason" noted 'host unmapped'
}

test_methods() {
	wss methods quick
	check "methods is answered" status_is 0
	check "auto would choose mmu" grep -qE '^quick +mmu +yes +yes' "$wss_out"
	check "refs is not usable for a KVM guest" grep -qE '^quick +refs +no ' "$wss_out"
	wss sample quick --method refs --window 1s --output json
	check "refs refuses a KVM guest" refused 5 'KVM'
	check "the guest is well after it" guest_well quick
}

test_signals() {
	local signal
	for signal in INT TERM; do
		check "a window that is open" wss_start sample quick --window 60s --max-stall 10s --output json
		kill -$signal "$wss_pid"
		wss_wait
		check "SIG$signal ends it" status_is $((128 + $(kill -l $signal)))
		check "without a measurement" refute grep -q wss_bytes "$wss_out"
	done
	check "the guest is well after signals" guest_well quick
}

guest_held() {
	[[ $(guest_state quick) == T ]]
}

# Waits until one of many short windows is seen to hold the guest.
test_kill_while_held() {
	"$virt_wss" sample quick --pause --count 1000 --window 20ms --max-stall 10s \
		>"$wss_out" 2>"$wss_err" &
	wss_pid=$!
	check "the guest is held while it is armed" wait_until 60 guest_held
	kill -KILL "$wss_pid"
	wss_wait
	check "virt-wss is killed" status_is 137
	check "the guest continues" guest_well quick
	check "no watchdog is left" wait_until 10 refute pgrep "^virt-wss-hold"
}

# A dump into a pipe without a reader runs as long as needed.
test_busy() {
	local reader
	mkfifo "$lab_run/dump"
	exec 9<>"$lab_run/dump"
	virsh -q dump --live quick "$lab_run/dump" >"$lab_run/dump.log" 2>&1 9<&- &
	check "a dump is under way" wait_until 60 job_is quick Unbounded
	diag "$(virsh domstate quick), job $(virsh domjobinfo quick | head -n 1)"
	wss sample quick --window 1s --output json
	check "a guest with a job is refused" refused 1 'job'
	wss sample quick --window 1s --publish --output json
	check "publishing is refused as well" refused 1 'job'
	cat <&9 >/dev/null &
	reader=$!
	exec 9<&-
	check "the job ends" wait_until 120 job_is quick None
	kill $reader
	rm -f "$lab_run/dump"
	check "the guest is well after it" guest_well quick
	wss sample quick --window 500ms --max-stall 10s --output json
	check "it is measured again" status_is 0
}

job_is() { # NAME TYPE
	timeout 20 virsh domjobinfo "$1" 2>/dev/null | grep -q "^Job type: *$2"
}

test_huge_pages() {
	lab_thp always
	lab_guest_start huge memory=512 args="wss.map=320 wss.touch=64 wss.mode=write wss.rate=65536"
	check "a guest on huge pages is measured at 4 KiB" measure huge 64 --granularity 4k
	say_measure
	check "granularity is 4 KiB" json_is granularity_bytes 4096
	check "64 MiB is estimated within 5 %" estimate_is_close "$estimate" "$truth" "$baseline"
	check "quality is ok" json_is quality ok
	check "it is measured at native granularity" measure huge 64
	say_measure
	diag "bounds $(mib "$(json wss_low_bytes)") - $(mib "$(json wss_high_bytes)")"
	check "granularity is 2 MiB" json_is granularity_bytes $((2 * MiB))
	check "the bounds enclose the truth" in_range $((truth + baseline)) \
		"$(json wss_low_bytes)" "$(json wss_high_bytes)"
	check "the estimate is the high bound" json_is wss_bytes "$(json wss_high_bytes)"
	check "the high bound is less than all mapped memory" in_range "$(json wss_high_bytes)" 1 $((200 * MiB))
	check "its notes say that each entry counts as a whole" noted '2 MiB'
	check "quality is ok" json_is quality ok
	check "the guest is well" guest_well huge
}

lab_thp never
lab_libvirtd_start
controlled_guest_start quick "wss.map=320 wss.phases=0:0 wss.mode=write wss.rate=65536" memory=512
test_methods
test_estimates
test_second_zap
test_signals
test_kill_while_held
test_busy
lab_guest_stop quick
test_huge_pages
done_testing
