#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Measures what recording costs: a guest of 2 GiB in windows of a second, with and
# without the dirty log. CPU time of the recorder for each window, its memory, the
# file's bytes for each window and for each MiB that came or went. If the kernel has
# page_idle (run --kernel idle), also the cost of reading the same guest once with
# that.
# shellcheck disable=SC2317
. "${WSS_LAB_DIR:?}/wss.sh"

require_recorder
seconds=60

# Prints the CPU time of the recorder so far: ticks of 10 ms, which the kernel derives from
# nanoseconds.
ticks() {
	awk '{ print $14 + $15 }' /proc/$wss_pid/stat
}

# Prints the sum of a field over all intervals in the JSON of a report.
total() { # FIELD
	sed -n '/"intervals": \[/,$p' "$lab_run/report" | sed -n "s/.*\"$1\": \([0-9]*\).*/\1/p" |
		awk '{ n += $1 } END { print n + 0 }'
}

windows_of() { # FILE
	"$virt_wss" report "$1" --output csv 2>/dev/null | grep -c ',window,\|,degraded,'
}

# Compares two lengths of one recording: the growth of the file against the changes in between.
say_file() { # FILE WINDOWS
	local bytes changed
	"$virt_wss" report "$1" --output json >"$lab_run/report"
	bytes=$(stat -c %s "$1")
	changed=$(($(total gained_bytes) + $(total lost_bytes)))
	diag "file: $bytes bytes for $2 windows, $((bytes / $2)) each;" \
		"$(mib $changed) came or went, $((bytes * MiB / (changed > 0 ? changed : 1))) bytes for each MiB of that"
}

cost() { # NAME GRANULARITY TEXT -> window_ms recording_ms
	local rec=$lab_run/$2.rec cpu anon windows
	"$virt_wss" --debug record "$1" -o "$rec" --until-stopped --interval 1s --granularity "$2" --max-stall 10s \
		2>"$wss_err" &
	wss_pid=$!
	wait_until 90 test -s "$rec" || bail_out "no recording: $(tail -n 5 "$wss_err")"
	# Not counting the start: connecting to libvirt and loading the program.
	cpu=$(ticks)
	windows=$(windows_of "$rec")
	sleep $seconds
	recording_ms=$((($(ticks) - cpu) * 10))
	anon=$(awk '/^RssAnon:/ { print $2 }' /proc/$wss_pid/status)
	kill -INT $wss_pid
	wait $wss_pid 2>/dev/null
	windows=$(($(windows_of "$rec") - windows))
	window_ms=$((recording_ms / (windows > 0 ? windows : 1)))
	diag "$3: $windows windows in $seconds s, $recording_ms ms of CPU, $window_ms ms each;" \
		"$anon KiB of anonymous memory"
	diag "$3: $(sed -n 's/.*: armed by mmu in \([0-9.]*\) ms.*/\1/p' "$wss_err" | sort -n |
		awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }') ms of each, elapsed, is the zap"
	say_file "$rec" "$(windows_of "$rec")"
}

# Prints the median of three rounds, each of which waits as long as a window.
idle_round() { # NAME TEXT [--host]
	local line
	line=$(for _ in 1 2 3; do
		"${WSS_BUILDDIR:?}/tests/tools/page-idle" "$(lab_guest_pid "$1")" 1 ${3:+"$3"}
	done | sort -t= -k6 -n | sed -n 2p)
	[ -n "$line" ] || bail_out "page-idle failed"
	diag "page_idle, $2: $line"
	awk -v round="$(lab_line_field "$line" cpu_us)" -v window="$window_ms" -v all="$recording_ms" \
		-v seconds=$seconds 'BEGIN {
		printf "# a round takes %.0f ms of CPU; a window of the recorder %.1f %% of that, the %d s %.1f rounds\n",
			round / 1000, 100000 * window / round, seconds, 1000 * all / round }'
}

compare() { # NAME
	if [ ! -e /sys/kernel/mm/page_idle/bitmap ]; then
		diag "page_idle: not in this kernel"
		return
	fi
	idle_round "$1" "the guest's pages"
	idle_round "$1" "the host's memory" --host
}

lab_libvirtd_start
lab_thp never
lab_guest_start small memory=2048 args="wss.map=1024 wss.touch=64 wss.mode=write wss.rate=65536"
cost small native "small pages"
compare small
lab_guest_stop small
lab_thp always
lab_guest_start huge memory=2048 args="wss.map=1024 wss.touch=64 wss.mode=write wss.rate=65536"
cost huge 4k "huge pages, dirty log"
compare huge
lab_guest_stop huge
ok "cost of recording"
done_testing
