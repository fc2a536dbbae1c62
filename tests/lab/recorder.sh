#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Tests the BPF recorder: it agrees with KVM's counters, is exact where the counters
# are not, and leaves nothing behind when virt-wss ends.
# shellcheck disable=SC2317
. "${WSS_LAB_DIR:?}/wss.sh"

require_recorder

# Checks that the first is within 1 % of the second.
agree() { # BYTES BYTES
	diag "recorder $(mib "${1:-0}"), counters $(mib "${2:-0}")"
	[ -n "$1" ] && [ -n "$2" ] && in_range $(($1 * 100)) $(($2 * 99)) $(($2 * 101))
}

loaded() { # what of it is in the kernel
	bpftool prog list 2>/dev/null | grep -q walk_vm ||
		bpftool link list 2>/dev/null | grep -q task_file
}

second_zap() {
	next_report_ms anon >/dev/null
	echo 4 >"/proc/$(lab_guest_pid anon)/clear_refs"
}

test_same_pages() { # NAME
	check "$1 is measured by the recorder" measure "$1" 16 --recorder bpf --max-stall 10s
	say_measure
	check "the sample names it" json_is recorder bpf
	check "quality is ok" json_is quality ok
	check "it and the counters agree within 1 %" agree "$(json wss_bytes)" "$(json mapped_bytes)"
	check "the figure is what the guest touches" in_range "$estimate" "$truth" $((truth + 4 * MiB))
}

test_counters() {
	check "without the recorder the guest is measured" measure anon 16 --recorder counters
	check "the counters are named" json_is recorder counters
	check "nothing is claimed about writes" refute grep -q '"written' "$wss_out"
	check "the notes give the reason" noted 'written memory is unknown'
}

# The gauge loses memory that is unmapped; the recorder does not.
test_second_zap() {
	measure_within=second_zap
	check "a zap by somebody else within the window" measure anon 16 --recorder bpf
	measure_within=
	check "the recorder's sample stays ok" json_is quality ok
	check "the recorder's sample is exact" in_range "$estimate" "$truth" $((truth + 4 * MiB))
}

# Under emulation arming is slow: the curve begins where arming ends. Eight points a decade are a third apart; polls
# that are late, by walks of the tables too, are more so.
test_curve() {
	wss profile anon --from 1ms --to 4s --recorder bpf --max-stall 10s --output csv
	check "profile has a curve" status_is 0
	check "the curve has eight points a decade" profile_is_dense
	wss sample anon --window 4s --recorder bpf --max-stall 10s --output json
	check "a sample has all known points, and none falls" curve_rises
}

profile_is_dense() {
	tail -n +2 "$wss_out" | awk -F, '
		n++ && ($4 > last * 1.34 || $5 < bytes) { bad = 1 }
		{ last = $4; bytes = $5 }
		END { exit bad || n < 8 || last != 4 }' || wss_say
}

curve_rises() {
	diag "$(grep -o '"curve": \[[^]]*' "$wss_out" | grep -o '[0-9.]*, "bytes": [0-9]*' | tr -d '"bytes:\n' | cut -c 1-450)"
	grep -o '"seconds": [0-9.]*, "bytes": [0-9]*' "$wss_out" | tr -d , | awk '
		n++ && ($2 <= last || $2 > last * 1.5 || $4 < bytes) { bad = 1 }
		{ last = $2; bytes = $4 }
		END { exit bad || n < 10 || !bytes }' || wss_say
}

# With the capabilities of the service's unit, of which none lets it ask the kernel for a module's types.
test_rights() {
	local full=$virt_wss
	virt_wss=$lab_run/limited
	printf '#!/bin/sh\nexec setpriv --bounding-set=-all,+sys_ptrace,+dac_override,+bpf,+perfmon --inh-caps=-all %s "$@"\n' \
		"$full" >"$virt_wss"
	chmod +x "$virt_wss"
	test_same_pages anon
	virt_wss=$full
}

test_kill() {
	check "nothing is loaded between windows" refute loaded
	check "a window with the recorder begins" wss_start sample anon --window 60s --recorder bpf --max-stall 10s
	check "the recorder is loaded" loaded
	kill -KILL "$wss_pid"
	wss_wait
	check "after kill -9 nothing is loaded" wait_until 10 refute loaded
	check "the guest is well" guest_well anon
}

lab_libvirtd_start
lab_thp never
lab_guest_start anon memory=512 args="wss.map=320 wss.touch=16 wss.mode=write wss.rate=65536"
test_same_pages anon
test_counters
test_second_zap
test_curve
test_rights
test_kill
lab_guest_stop anon
# RAM on both sides of the hole below 4 GiB, which differs between the machines.
for machine in pc q35; do
	lab_guest_start $machine machine=$machine memory=4096 \
		args="wss.map=128 wss.touch=16 wss.mode=write"
	test_same_pages $machine
	lab_guest_stop $machine
done
done_testing
