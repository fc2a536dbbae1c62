#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Measures how accurate the figures are: for each backing of guest RAM, what the guest touched
# and what virt-wss reports at 4 KiB granularity, and at native granularity. One guest per
# backing, told through its second serial port what to touch. It tests only that each line has
# a figure. WSS_LAB_ARGS: some of the backings, some of the lines.
# shellcheck disable=SC2317,SC2154
. "${WSS_LAB_DIR:?}/rates.sh"

runs=11
windows="3 8 20"
lost=0
declare -A idle

lines=(
	{16,64,192}:0:{read,write}:{seq,random,stride:512}
	320:0:{read,write}:stride:512
)

# Waits with a deadline, because a stalled guest completes no pass and may not answer.
wss_wait_or_kill() {
	local timer
	(sleep 120; kill "$wss_pid") &
	timer=$!
	wss_wait
	kill "$timer" 2>/dev/null || diag "virt-wss did not end: $(tail -n 3 "$wss_err")"
}

# Takes one sample, with windows of that many seconds and longer until two whole passes fit ->
# estimate, window
sample_phase() { # NAME GRANULARITY WINDOW...
	local name=$1 granularity=$2 passes began
	shift 2
	for window; do
		stamp_begin "$name"
		wss_start sample "$name" --granularity "$granularity" --window "${window}s" \
			--max-stall 10s --max-faults 99999999 --output json
		began=$(uptime_ms)
		wss_wait_or_kill
		stamp_end
		estimate=$(json wss_bytes)
		status_is 0 && [ -n "$estimate" ] || return 1
		read -r passes _ < <(reports_between "$began" $((began + window * 1000 - 400)))
		[ "$truth" != 0 ] && [ "$passes" -lt 2 ] || return 0
	done
	[ "$truth" = 0 ] || diag "only $passes whole passes in $window s"
}

# Measures the kernel of a resting guest in windows of these lengths.
measure_idle() { # BACKING
	local estimate window truth tables
	begin_phase "$1" 0:0 || return 1
	for window in $windows; do
		sample_phase "$1" 4k "$window" || return 1
		idle[$window]=$estimate
	done
}

# Prints MiB. The error is the estimate less the idle guest's set, the page tables that the
# guest walks, and the set.
say_line() { # BACKING LINE: estimate, window
	awk -v what="$2" -v backing="$1" -v truth="$truth" -v tables="$tables" -v got="$estimate" \
		-v base="${idle[$window]}" -v low="$(json native_wss_low_bytes)" \
		-v high="$(json native_wss_high_bytes)" -v quality="$(json quality)" -v window="$window" 'BEGIN {
		m = 1048576
		split(what, w, ":")
		off = got - base - tables - truth
		printf "# %-8s %4d %-5s %-8s %7.2f %7.2f %6.2f %8.2f %+7.2f %+7.1f %8.2f-%-7.2f %3d %s\n",
			backing, w[1], w[3], w[4] == "stride" ? "1/" w[5] : w[4], truth / m, tables / m,
			base / m, got / m, off / m, 100 * off / truth, low / m, high / m, window, quality
	}'
}

say_heading() {
	printf '# %-8s %4s %-5s %-8s %7s %7s %6s %8s %7s %7s %16s %3s\n' \
		backing span mode order truth tables idle estimate error '%' native win
}

# Windows in which two passes may fit: the first pass takes a fault per page.
windows_for() { # LINE
	[ "${1%%:*}" = 192 ] && [[ $1 != *:stride:* ]] && echo "${windows#* }" || echo "$windows"
}

measure_line() { # BACKING LINE
	local window estimate truth tables
	begin_phase "$1" "$2" || return 1
	# shellcheck disable=SC2046
	sample_phase "$1" both $(windows_for "$2") || return 1
	say_line "$1" "$2"
}

# A guest may stall because of the lab or because of a bug of ours: report it, count it, and
# start it again for the other lines.
measure_or_restart() { # NAME LINE OPTION...
	local name=$1 line=$2
	shift 2
	measure_line "$name" "$line" && return 0
	! lab_guest_alive "$name" 10 || return 1
	lost=$((lost + 1))
	diag "GUEST LOST at $line: $(virsh domstate --reason "$name" 2>&1 | head -n 1)"
	lab_guest_stop "$name"
	controlled_guest_start "$name" "wss.map=320 wss.phases=0:0" memory=512 "$@"
	measure_line "$name" "$line"
}

measure_backing() { # NAME OPTION...
	local name=$1 line
	shift
	controlled_guest_start "$name" "wss.map=320 wss.phases=0:0" memory=512 "$@"
	check "$name at rest" measure_idle "$name"
	for line in "${lines[@]}"; do
		check "$name $line" measure_or_restart "$name" "$line" "$@"
	done
}

sample_once() { # NAME
	"$virt_wss" sample "$1" --granularity 4k --window 3s --max-stall 10s >/dev/null 2>"$wss_err"
}

# Prints how much slower the guest is while it is measured at 4 KiB.
measure_rates() { # NAME
	local run
	begin_phase "$1" 64:0:write:seq
	for ((run = 0; run < runs; run++)); do
		loop_rate "$1" >>"$lab_run/plain"
		loop_rate "$1" sample_once "$1" >>"$lab_run/sampled"
	done
	say_rates "$lab_run/plain" "$lab_run/sampled"
	grep -c '^[1-9]' "$lab_run/plain" "$lab_run/sampled" >/dev/null
}

lab_libvirtd_start
say_heading
backings=() some=()
for word in ${WSS_LAB_ARGS-}; do
	case $word in
	*:*) some+=("$word") ;;
	*) backings+=("$word") ;;
	esac
done
[ ${#backings[@]} -gt 0 ] || backings=(small huge hugetlb memfd)
[ ${#some[@]} = 0 ] || lines=("${some[@]}")
for backing in "${backings[@]}"; do
	lab_thp never
	case $backing in
	small | huge) option=anon ;;
	hugetlb | memfd) option=$backing ;;
	esac
	[ "$backing" != huge ] || lab_thp always
	[ "$backing" != hugetlb ] || check "huge pages" lab_hugepages 300
	measure_backing "$backing" backing="$option"
	[ "$backing" != huge ] || check "loop rates" measure_rates huge
	exec 7>&-
	lab_guest_stop "$backing"
	lab_hugepages 0
done
diag "guests lost: $lost"
done_testing
