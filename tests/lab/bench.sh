#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# What sampling costs: the tool's CPU time, the zap's apart from it, the tool's memory,
# and how much slower the guest's loop runs. Runs with and without sampling take turns;
# only ratios of the same run are figures that hold elsewhere. It tests nothing.
# shellcheck disable=SC2317
. "${WSS_LAB_DIR:?}/wss.sh"

runs=11
window=4

# Touches a second over five seconds of the guest's clock.
loop_rate() { # [COMMAND...] that runs meanwhile
	stamp_begin bench
	[ $# = 0 ] || "$@" &
	wait_until 60 enough_reports
	stamp_end
	[ $# = 0 ] || wait $!
	awk '/ wss-guest: time_ms=/ {
		for (i = 3; i <= NF; i++)
			value[substr($i, 1, index($i, "=") - 1)] = substr($i, index($i, "=") + 1)
		if (!reports++) {
			time = value["time_ms"]
			touches = value["touches"]
		}
	}
	END { printf "%d\n", 1000 * (value["touches"] - touches) / (value["time_ms"] - time) }
	' "$lab_run/stamped"
}

enough_reports() {
	[ "$(grep -c ' wss-guest: time_ms=' "$lab_run/stamped")" -ge 7 ]
}

# A line of "user system (process) user system arm (window)" in seconds.
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

# Median of the numbers on stdin, and what lies farthest below and above it.
spread() {
	sort -n | awk '{ v[NR] = $1 }
		END {
			m = NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2
			printf "%.6f %.6f %.6f\n", m, v[1], v[NR]
		}'
}

report() {
	local name what
	read -r plain least most < <(spread <"$lab_run/plain")
	read -r sampled _ _ < <(spread <"$lab_run/sampled")
	awk -v plain="$plain" -v least="$least" -v most="$most" -v sampled="$sampled" 'BEGIN {
		printf "# guest loop rate, sampled / unsampled (medians): %.3f\n", sampled / plain
		printf "# unsampled runs over their median: %.3f - %.3f\n", least / plain, most / plain
	}'
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
	loop_rate >>"$lab_run/plain"
	loop_rate timed_sample >>"$lab_run/sampled"
done
check "all runs gave figures" in_range "$(cat "$lab_run/plain" "$lab_run/sampled" | grep -c '^[1-9]')" \
	$((2 * runs)) $((2 * runs))
report
done_testing
