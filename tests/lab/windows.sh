#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Many windows by 4 KiB. The growth curve of one window is that of windows of each length,
# and what the guest says of its own rate; and fifty windows leave nothing behind.
# WSS_LAB_ARGS: "curve" or "fifty" alone.
# shellcheck disable=SC2317,SC2154
. "${WSS_LAB_DIR:?}/rates.sh"

patient=(--granularity 4k --max-stall 10s)
lengths="0.1 0.3 1 3"

# Bytes at so many seconds of the profile in $lab_run/profile, between its points.
curve_at() { # SECONDS
	sed -n 's/.*"seconds": \([0-9.e-]*\).*"mean_bytes": \([0-9]*\).*/\1 \2/p' "$lab_run/profile" |
		awk -v t="$1" '
			$1 >= t && !done { printf "%d\n", n ? b + ($2 - b) * (t - s) / ($1 - s) : $2; done = 1 }
			{ s = $1; b = $2; n++ }'
}

# Median of the working set of so many windows of this length.
windows_of() { # NAME SECONDS COUNT
	"$virt_wss" sample "$1" "${patient[@]}" --count "$3" --window "${2}s" --output json \
		>"$wss_out" 2>"$wss_err" || wss_say
	json wss_bytes | spread | cut -d. -f1
}

within_5_percent() { # VALUE REFERENCE
	in_range "$1" $(($2 * 95 / 100)) $(($2 * 105 / 100))
}

# Touches a second, by the guest's own reports of the last seconds.
guest_rate() { # NAME
	tail -n 6 "$lab_run/log/$1" | tr -d '\r' | awk '
		/^wss-guest: time_ms=/ {
			for (i = 2; i <= NF; i++)
				value[substr($i, 1, index($i, "=") - 1)] = substr($i, index($i, "=") + 1)
			if (!n++) { time = value["time_ms"]; touches = value["touches"] }
		}
		END { printf "%d\n", 1000 * (value["touches"] - touches) / (value["time_ms"] - time) }'
}

# 16 MiB a second in a scattered order: a pass takes sixteen seconds, and its faults are a
# part of what the nested host can take.
test_curve() {
	local t one many idle rate
	declare -A idle_at
	lab_guest_start curve memory=512 \
		args="wss.map=320 wss.touch=256 wss.idle=110 wss.mode=write wss.order=random wss.rate=4096"
	for t in $lengths; do
		idle_at[$t]=$(windows_of curve "$t" 3)
	done
	check "the guest rests until then" lab_guest_wait_state curve idle 10
	check "the guest touches" lab_guest_wait_state curve touching 150
	"$virt_wss" profile curve "${patient[@]}" --from 50ms --to 5s --repeat 3 --output json \
		>"$lab_run/profile" 2>"$wss_err"
	for t in $lengths; do
		one=$(curve_at "$t") many=$(windows_of curve "$t" 5) rate=$(guest_rate curve)
		idle=${idle_at[$t]}
		many=${many:-0} one=${one:-0}
		diag "$t s: curve $(mib "$one"), windows $(mib "$many"), idle $(mib "${idle:-0}")," \
			"by the guest's rate $(mib "$(awk -v r="$rate" -v t="$t" 'BEGIN { printf "%d", r * t * 4096 }')")"
		check "the curve at $t s is a window of $t s" within_5_percent "$one" "$many"
		check "and the guest's own rate" within_5_percent "$one" \
			"$(awk -v r="$rate" -v t="$t" -v i="$idle" 'BEGIN { printf "%d", r * t * 4096 + i }')"
	done
	lab_guest_stop curve
}

guest_fds() { # NAME
	local fds
	fds=(/proc/"$(lab_guest_pid "$1")"/fd/*)
	echo ${#fds[@]}
}

# The loop is as fast as before, within 3 % and what the runs before differ by.
rate_is_as_before() {
	local before low high after
	read -r before low high < <(spread <"$lab_run/before")
	read -r after _ _ < <(spread <"$lab_run/after")
	awk -v b="$before" -v l="$low" -v h="$high" -v a="$after" 'BEGIN {
		printf "# loop rate after / before %.3f, runs before %.3f - %.3f\n", a / b, l / b, h / b
		exit !(a >= b * 0.97 - (b - l))
	}'
}

test_fifty() {
	local fds
	lab_guest_start fifty memory=512 args="wss.map=320 wss.touch=64 wss.mode=write"
	check "the guest touches" lab_guest_wait_passes fifty 3
	fds=$(guest_fds fifty)
	for _ in 1 2 3 4 5; do
		loop_rate fifty >>"$lab_run/before"
	done
	wss_deadline=400 wss sample fifty "${patient[@]}" --count 50 --window 200ms --output json
	check "fifty windows by 4 KiB" status_is 0
	check "all are measured" in_range "$(json wss_bytes | wc -l)" 50 50
	check "all by 4 KiB" in_range "$(json granularity_bytes | grep -cx 4096)" 50 50
	diag "quality: $(json quality | sort | uniq -c | tr '\n' ' ')"
	check "the calculation is over with the tool" log_is_off fifty
	check "huge mappings are back" wait_until 20 huge_mappings_are_back fifty
	check "QEMU has no descriptor more" in_range "$(guest_fds fifty)" 1 $((fds + 2))
	check "no process is left" refute pgrep '^virt-wss'
	for _ in 1 2 3 4 5; do
		loop_rate fifty >>"$lab_run/after"
	done
	check "the guest's loop is as fast as before" rate_is_as_before
	check "the guest is well" guest_well fifty
	lab_guest_stop fifty
}

lab_thp always
lab_libvirtd_start
for part in ${WSS_LAB_ARGS:-curve fifty}; do
	"test_$part"
done
done_testing
