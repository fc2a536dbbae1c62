#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Measures what sampling costs: the tool's CPU time, that of the zap separately, the
# tool's memory, and how much slower the guest's loop runs. Runs with and without
# sampling alternate; only ratios within a run hold elsewhere. It tests nothing.
# shellcheck disable=SC2317
. "${WSS_LAB_DIR:?}/rates.sh"

runs=11
window=4

# Prints "user system (process) user system arm (window)" in seconds.
timed_sample() {
	local TIMEFORMAT='%3U %3S'
	{ time "$virt_wss" sample bench --window "${window}s" --max-stall 10s --output json \
		>"$wss_out" 2>"$wss_err"; } 2>"$lab_run/times"
	echo "$(cat "$lab_run/times") $(json tool_user_seconds) $(json tool_system_seconds)" \
		"$(json arm_seconds)" >>"$lab_run/costs"
}

rss_anon() { # of a sample in its window, kB
	wss_start sample bench --window 2s --max-stall 10s
	awk '/^RssAnon:/ { print $2 }' "/proc/$wss_pid/status"
	wss_wait
}

column() { # NUMBER
	awk -v n="$1" '{ print $n }' "$lab_run/costs"
}

report() {
	local name what
	say_rates "$lab_run/plain" "$lab_run/sampled"
	while read -r name what; do
		read -r median least most < <(column "$name" | spread)
		awk -v m="$median" -v l="$least" -v h="$most" -v w=$window -v what="$what" 'BEGIN {
			printf "# %s: %.2f ms (%.2f - %.2f), %.4f %% of the window\n", what, 1000 * m,
				1000 * l, 1000 * h, 100 * m / w }'
	done <<-END
		3 user CPU of the tool in a window
		4 system CPU of the tool in a window, the zap included
		5 the zap alone, elapsed
		1 user CPU of the whole process
		2 system CPU of the whole process
	END
	diag "anonymous memory of the tool in its window: $(rss_anon) kB"
}

lab_thp never
lab_libvirtd_start
lab_guest_start bench memory=512 args="wss.map=320 wss.touch=64 wss.mode=write"
check "the guest touches" lab_guest_wait_passes bench 3
for ((run = 0; run < runs; run++)); do
	loop_rate bench >>"$lab_run/plain"
	loop_rate bench timed_sample >>"$lab_run/sampled"
done
check "all runs gave figures" in_range "$(cat "$lab_run/plain" "$lab_run/sampled" | grep -c '^[1-9]')" \
	$((2 * runs)) $((2 * runs))
report
done_testing
