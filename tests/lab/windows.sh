#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Tests many windows at 4 KiB. The growth curve of one window equals windows of each
# length, and the rate that the guest reports; and fifty windows leave nothing behind.
# WSS_LAB_ARGS: "curve" or "fifty" alone.
# shellcheck disable=SC2317,SC2154
. "${WSS_LAB_DIR:?}/rates.sh"

patient=(--granularity 4k --max-stall 10s)
rounds=2

# Prints the bytes at that many seconds, interpolated from the profile in $lab_run/profile.
curve_at() { # SECONDS
	sed -n 's/.*"seconds": \([0-9.e-]*\).*"mean_bytes": \([0-9]*\).*/\1 \2/p' "$lab_run/profile" |
		awk -v t="$1" '
			$1 >= t && !done { printf "%d\n", n ? b + ($2 - b) * (t - s) / ($1 - s) : $2; done = 1 }
			{ s = $1; b = $2; n++ }'
}

# Takes COUNT windows and appends the bytes at each of some lengths to curve-LENGTH. The
# windows extend beyond the last length by two points of the curve.
take_curve() { # NAME COUNT LENGTH...
	local name=$1 count=$2 t to
	shift 2
	to=$(awk -v t="${*: -1}" 'BEGIN { print t * 1.4 }')
	"$virt_wss" profile "$name" "${patient[@]}" --from 50ms --to "${to}s" --repeat "$count" \
		--output json >"$lab_run/profile" 2>"$wss_err" || wss_say
	for t; do
		curve_at "$t" >>"$lab_run/curve-$t"
	done
}

take_windows() { # NAME LENGTH COUNT FILE: a line of bytes for each
	"$virt_wss" sample "$1" "${patient[@]}" --count "$3" --window "${2}s" --output json \
		>"$wss_out" 2>"$wss_err" || wss_say
	json wss_bytes >>"$4"
	json arm_seconds >>"$lab_run/arming"
}

# Means, not medians, because each window samples whether a page is in the set.
mean() { # FILE [FACTOR]
	awk -v factor="${2:-1}" '{ sum += $1 } END { printf "%d\n", NR ? factor * sum / NR : 0 }' "$1"
}

within_5_percent() { # VALUE REFERENCE
	in_range "$1" $(($2 * 95 / 100)) $(($2 * 105 / 100))
}

# Computes the memory touched besides the set, plus a set touched in scattered order at a rate:
# its pages, and their last-level page tables. Touches that arming prevented are made up for at
# once.
by_rate() { # TOUCHES-A-SECOND SECONDS BESIDE-BYTES TABLE-BYTES ARMING-US
	awk -v rate="$1" -v t="$2" -v beside="$3" -v tables="$(($4 / 4096))" -v arming="$5" 'BEGIN {
		n = rate * (t + arming / 1e6)
		printf "%d\n", beside + 4096 * (n + tables * (1 - exp(n * log(1 - 1 / tables))))
	}'
}

# Computes how much of a set of one MiB is touched within a time.
first_mib() { # TOUCHES-A-SECOND SECONDS -> bytes
	awk -v rate="$1" -v t="$2" -v arming="$arming" 'BEGIN {
		n = 4096 * rate * (t + arming / 1e6)
		printf "%d\n", n < 1048576 ? n : 1048576
	}'
}

# 8 MiB a second in scattered order: a pass takes half a minute, and the nested host can serve
# its faults even after arming has held the guest up. Before that one MiB at the same rate,
# which is complete after an eighth of a second: the rest is the guest's kernel under this
# load. Runs in rounds, so that a drift of the machine does not look like a difference.
compare_curve() { # NAME "COUNT LENGTH..."...: so many windows a round, and as many of each length
	local name=$1 group t round rate arming one many beside own
	shift
	controlled_guest_start "$name" "wss.map=320 wss.mode=write wss.rate=2048 wss.phases=1:0" memory=512
	rm -f "$lab_run"/{arming,beside-*,curve-*,windows-*}
	for group; do
		for t in ${group#* }; do
			take_windows "$name" "$t" "${group%% *}" "$lab_run/beside-$t"
		done
	done
	check "$name: a pass of half a minute begins" begin_phase "$name" 256:0:write:random
	rm -f "$lab_run/arming"
	stamp_begin "$name"
	for ((round = 0; round < rounds; round++)); do
		for group; do
			# shellcheck disable=SC2086
			take_curve "$name" $group
			for t in ${group#* }; do
				take_windows "$name" "$t" "${group%% *}" "$lab_run/windows-$t"
			done
		done
	done
	stamp_end
	rate=$(stamped_rate) arming=$(mean "$lab_run/arming" 1000000)
	diag "the guest's own rate: $rate touches a second; arming takes $arming us"
	# shellcheck disable=SC2048,SC2086
	for t in ${*#* }; do
		one=$(mean "$lab_run/curve-$t") many=$(mean "$lab_run/windows-$t")
		beside=$(($(mean "$lab_run/beside-$t") - $(first_mib "$rate" "$t")))
		own=$(by_rate "$rate" "$t" "$beside" "$tables" "$arming")
		diag "$t s: curve $(mib "$one"), windows $(mib "$many"), beside the set $(mib "$beside")," \
			"by the guest's rate $(mib "$own")"
		diag "windows, KiB: $(awk '{ printf "%d ", $1 / 1024 }' "$lab_run/windows-$t")"
		check "$name: the curve at $t s is a window of $t s" within_5_percent "$one" "$many"
		check "$name: the curve at $t s is the guest's own rate" within_5_percent "$one" "$own"
	done
	exec 7>&-
	lab_guest_stop "$name"
}

# On small pages a window takes no longer than its length, so there can be many short
# ones, which differ by the activity of the guest's kernel. On huge pages each waits
# for the last one's dirty log to end.
test_curve() {
	lab_thp never
	patient[1]=native
	compare_curve small '24 0.1 0.3' '4 1 3'
	lab_thp always
	patient[1]=4k
	compare_curve huge '3 1 3'
}

guest_fds() { # NAME
	local fds
	fds=(/proc/"$(lab_guest_pid "$1")"/fd/*)
	echo ${#fds[@]}
}

take_rates() { # NAME FILE: of five runs
	local i
	rm -f "$2"
	for ((i = 0; i < 5; i++)); do
		loop_rate "$1" >>"$2"
	done
}

# Whether the loop is as fast as before, within 3 % and the spread of the runs before.
rate_is_as_before() { # NAME
	local before low high after
	take_rates "$1" "$lab_run/after"
	read -r before low high < <(spread <"$lab_run/before")
	read -r after _ _ < <(spread <"$lab_run/after")
	awk -v b="$before" -v l="$low" -v h="$high" -v a="$after" 'BEGIN {
		printf "# loop rate after / before %.3f, runs before %.3f - %.3f\n", a / b, l / b, h / b
		exit !(a >= b * 0.97 - (b - l))
	}'
}

test_fifty() {
	local fds
	lab_thp always
	lab_guest_start fifty memory=512 args="wss.map=320 wss.touch=64 wss.mode=write"
	check "the guest touches" lab_guest_wait_passes fifty 3
	fds=$(guest_fds fifty)
	take_rates fifty "$lab_run/before"
	wss_deadline=400 wss sample fifty "${patient[@]}" --count 50 --window 200ms --output json
	check "fifty windows at 4 KiB are taken" status_is 0
	check "all are measured" in_range "$(json wss_bytes | wc -l)" 50 50
	check "all have 4 KiB granularity" in_range "$(json granularity_bytes | grep -cx 4096)" 50 50
	diag "quality: $(json quality | sort | uniq -c | tr '\n' ' ')"
	check "the calculation ends with the tool" log_is_off fifty
	check "huge mappings are back" wait_until 20 huge_mappings_are_back fifty
	check "QEMU has no more descriptors than before" in_range "$(guest_fds fifty)" 1 $((fds + 2))
	check "no process is left" refute pgrep '^virt-wss'
	# Effects of the windows would persist, while those of a busy machine pass.
	check "the guest's loop is as fast as before" wait_until 150 rate_is_as_before fifty
	check "the guest is well" guest_well fifty
	lab_guest_stop fifty
}

lab_libvirtd_start
for part in ${WSS_LAB_ARGS:-curve fifty}; do
	"test_$part"
done
done_testing
