#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Measures what a window at 4 KiB costs a guest on huge pages, by the size of its RAM and of
# the memory that it has touched, with and without a zap before the dirty log. The guest's own
# loop shows how long it stood still. Everything is emulated: ratios hold, times do not.
# WSS_LAB_ARGS: "RAM:TOUCHED" pairs in MiB. It tests nothing.
# shellcheck disable=SC2317,SC2154
. "${WSS_LAB_DIR:?}/rates.sh"

runs=5
sizes=${WSS_LAB_ARGS:-1024:64 1024:768 4096:64 4096:3072 16384:64 16384:4096}

# Prints the longest gap in the reports that arrived since stamp_begin, in us.
longest_gap() {
	sed -n 's/.* gap_us=\([0-9]*\) .*/\1/p' "$lab_run/stamped" | sort -n | tail -n 1
}

# Prints the number before or after some words in the output of the last window.
said() { # SED-EXPRESSION
	sed -n "s/^virt-wss: debug: .*$1.*/\1/p" "$wss_err" | head -n 1
}

# Prints: entries before, first zap ms, ms until the log is on, entries then, second zap ms,
# gap us.
one_window() { # NAME ORDER: zap-first or log-first
	local gap
	wait_until 60 log_is_off "$1" && next_report_ms "$1" >/dev/null || return 1
	[ "$2" = zap-first ] || export VIRT_WSS_FAULT=log-first
	stamp_begin "$1"
	status=0
	timeout 90 "$virt_wss" --debug sample "$1" --granularity 4k --window 1s --max-stall 60s \
		--output json >"$wss_out" 2>"$wss_err" || status=$?
	next_report_ms "$1" >/dev/null
	stamp_end
	unset VIRT_WSS_FAULT
	gap=$(longest_gap)
	[ "$status" = 0 ] || wss_say || return 1
	echo "$(said ': \([0-9]*\) entries, zapped before') $(said 'before the dirty log in \([0-9.]*\) ms')" \
		"$(said 'log on after \([0-9.]*\) ms') $(said 'ms, \([0-9]*\) entries by then')" \
		"$(said 'armed by mmu in \([0-9.]*\) ms') ${gap:-0}" >>"$lab_run/cost-$2"
}

idle_gap() { # NAME: without a window
	stamp_begin "$1"
	next_report_ms "$1" >/dev/null
	next_report_ms "$1" >/dev/null
	stamp_end
	longest_gap >>"$lab_run/gap"
}

median() { # FILE COLUMN
	awk -v n="$2" '{ print $n }' "$1" | spread | cut -d' ' -f1
}

say_cost() { # RAM TOUCHED
	local order file
	for order in zap-first log-first; do
		file=$lab_run/cost-$order
		printf '# %6d %6d %-9s %9.0f %8.1f %8.1f %9.0f %8.1f %9.1f %9.1f\n' "$1" "$2" "$order" \
			"$(median "$file" 1)" "$(median "$file" 2)" "$(median "$file" 3)" \
			"$(median "$file" 4)" "$(median "$file" 5)" \
			"$(median "$file" 6 | awk '{ print $1 / 1000 }')" \
			"$(median "$lab_run/gap" 1 | awk '{ print $1 / 1000 }')"
	done
}

measure_cost() { # RAM TOUCHED
	local run name=cost
	rm -f "$lab_run"/cost-* "$lab_run/gap"
	LAB_READY_SECONDS=400 LAB_STALL_SECONDS=90 lab_guest_start "$name" memory="$1" \
		args="wss.map=$2 wss.mode=write wss.gap=1 wss.interval=2"
	# Before the first window KVM maps all of it.
	lab_guest_wait_passes "$name" 1 300 || return 1
	for ((run = 0; run < runs; run++)); do
		idle_gap "$name"
		one_window "$name" zap-first || return 1
		# Waits until the large entries are back for the next window, which splits
		# them.
		lab_guest_wait_passes "$name" 1 120 || return 1
		one_window "$name" log-first || return 1
		lab_guest_wait_passes "$name" 1 120 || return 1
	done
	say_cost "$1" "$2"
}

lab_thp always
echo 1 >/proc/sys/vm/overcommit_memory
lab_libvirtd_start
printf '# %6s %6s %-9s %9s %8s %8s %9s %8s %9s %9s\n' RAM touched order mapped zap,ms log,ms \
	split zap,ms gap,ms unsampled
for size in $sizes; do
	check "$size" measure_cost "${size%:*}" "${size#*:}"
	lab_guest_stop cost
done
done_testing
