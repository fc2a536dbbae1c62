#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Tests recordings of a guest that goes through phases: sizes match its own reports, marks have
# the right times, pages the right classes; and the ways in which a recording ends.
# shellcheck disable=SC2317
. "${WSS_LAB_DIR:?}/wss.sh"

require_recorder

rec=$lab_run/phases.rec

# Prints a field of one line of the JSON of a report: "key": value.
field() { # KEY FILE
	sed -n "s/.*\"$1\": \([0-9.]*\).*/\1/p" "$2"
}

report() { # FILE ARGUMENT...: to $lab_run/report
	"$virt_wss" report "$@" --output json >"$lab_run/report" 2>"$wss_err" || wss_say
}

recording() { # ARGUMENT...: in the background: wss_pid
	: >"$wss_err"
	"$virt_wss" --debug record "$@" --max-stall 10s >"$wss_out" 2>"$wss_err" &
	wss_pid=$!
}

windows_of() { # FILE
	"$virt_wss" report "$1" --output csv 2>/dev/null | grep -c ',window,\|,degraded,'
}

has_windows() { # FILE COUNT
	[ "$(windows_of "$1")" -ge "$2" ]
}

# Waits until the guest has begun phase N, by its output since the recording began.
in_phase() { # NAME PHASE
	[ "$(lab_guest_field "$1" phase)" = "$2" ]
}

# Checks BYTES BASELINE+TRUTH to within 2 %.
close_to() {
	diag "recorded $(mib "${1:-0}"), the guest says $(mib "$2")"
	[ -n "$1" ] && in_range $(($1 * 100)) $(($2 * 98)) $(($2 * 102))
}

median_of_phase() { # INDEX from 0
	sed -n '/"phases": \[/,/\]/p' "$lab_run/report" | sed -n 's/.*"median_bytes": \([0-9]*\).*/\1/p' |
		awk '{ if ($1 != last) print; last = $1 }' | sed -n "$(($1 + 1))p"
}

# The phases: idle, 48 MiB, 16 MiB, 96 MiB, with a mark at the beginning of each.
test_phases() { # NAME ARGUMENT...
	local name=$1 phase baseline
	shift
	wait_until 120 in_phase "$name" 1 || bail_out "$name never began its first phase"
	recording "$name" -o "$rec" --until-stopped --interval 4s "$@"
	for phase in 2 3 4; do
		wait_until 150 in_phase "$name" $phase || break
		check "mark $phase is set" "$virt_wss" mark "$rec" "phase $phase"
	done
	wait_until 120 in_phase "$name" 5
	diag "CPU of the recorder: $(awk '{ print $14, $15 }' /proc/$wss_pid/stat) ticks (user, system)"
	check "the recorder takes less than 16 MiB" in_range \
		"$(awk '/^RssAnon:/ { print $2 * 1024 }' /proc/$wss_pid/status)" 1 $((16 * MiB))
	kill -INT $wss_pid
	wss_wait
	check "a recording until SIGINT ends well" status_is 0
	check "nothing has to be cut off" report "$rec"
	diag "$(cut -c -150 "$lab_run/report" | grep median_bytes)"
	diag "$(stat -c %s "$rec") bytes of file, $(windows_of "$rec") windows"
	diag "$("$virt_wss" report "$rec" | head -n 60)"
	baseline=$(median_of_phase 0)
	check "the idle guest's set is small" in_range "$baseline" 100000 $((4 * MiB))
	check "48 MiB within 2 %" close_to "$(median_of_phase 1)" $((48 * MiB + baseline))
	check "16 MiB within 2 %" close_to "$(median_of_phase 2)" $((16 * MiB + baseline))
	check "96 MiB within 2 %" close_to "$(median_of_phase 3)" $((96 * MiB + baseline))
	check "the peak is the largest phase" close_to "$(field peak_bytes "$lab_run/report" | head -n 1)" \
		$((96 * MiB + baseline))
	check "there are three marks" test "$(grep -c '"text": "phase' "$lab_run/report")" = 3
	check "a viewport from the middle of 48 to the middle of 16 MiB has the right classes" viewport_classes
}

# Between the marks: each phase lasts 24 s.
viewport_classes() {
	local marks first second
	mapfile -t marks < <(sed -n 's/.*"seconds": \([0-9]*\)[.,].*"text": "phase.*/\1/p' "$lab_run/report")
	first=$((marks[0] + 14)) second=$((marks[1] + 14))
	report "$rec" --viewport "${first}s:${second}s" || return
	diag "persistent $(mib "$(field persistent_bytes "$lab_run/report" | head -n 1)")," \
		"lost $(mib "$(field lost_bytes "$lab_run/report" | head -n 1)")," \
		"gained $(mib "$(field gained_bytes "$lab_run/report" | head -n 1)")"
	close_to "$(field persistent_bytes "$lab_run/report" | head -n 1)" $((16 * MiB + baseline)) &&
		in_range "$(field lost_bytes "$lab_run/report" | head -n 1)" $((31 * MiB)) $((34 * MiB)) &&
		in_range "$(field gained_bytes "$lab_run/report" | head -n 1)" 0 $((2 * MiB))
}

test_ends() { # NAME
	recording "$1" -o "$lab_run/killed.rec" --until-stopped --interval 2s
	wait_until 90 has_windows "$lab_run/killed.rec" 3
	kill -KILL $wss_pid
	wss_wait
	check "after kill -9 all complete windows are there" report "$lab_run/killed.rec"
	check "the report says that it was not ended" grep -q '"ended": false' "$lab_run/report"
	check "the guest is well" guest_well "$1"
	wss record "$1" -o "$lab_run/short.rec" --for 8s --interval 4s --window 2s --max-stall 10s
	check "a recording of 8 s" status_is 0
	report "$lab_run/short.rec"
	check "the dirty log does not outlast it for long" wait_until 8 log_is_off "$1"
	check "windows shorter than the interval leave gaps" \
		in_range "$(field gap_seconds "$lab_run/report" | cut -d. -f1)" 1 8
	recording "$1" -o "$lab_run/apart.rec" --until-stopped --interval 20s --window 2s
	wait_until 90 has_windows "$lab_run/apart.rec" 1
	check "between windows that are far apart the dirty log is off" wait_until 10 log_is_off "$1"
	check "it is on again for the next window" wait_until 60 has_windows "$lab_run/apart.rec" 2
	kill -INT $wss_pid
	wss_wait
	report "$lab_run/apart.rec"
	check "no window is degraded" refute grep -q '"kind": "degraded"' "$lab_run/report"
	wss record "$1" -o /dev/full --for 4s --max-stall 10s
	check "a file that cannot be written is an error" refused 1 'full'
	wss record nobody -o "$lab_run/none.rec"
	check "a guest that does not exist leaves no file" test ! -e "$lab_run/none.rec"
}

# The guest gives 192 MiB to the balloon; the host only had memory for the part that it had
# touched.
test_balloon() { # NAME
	local rss
	recording "$1" -o "$lab_run/balloon.rec" --until-stopped --interval 2s --granularity native
	wait_until 90 has_windows "$lab_run/balloon.rec" 3
	rss=$(host_rss "$1")
	virsh -q setmem "$1" $((512 - 192))M --live
	wait_until 60 balloon_is "$1" $(((512 - 192) * 1024))
	wait_until 60 has_windows "$lab_run/balloon.rec" $(($(windows_of "$lab_run/balloon.rec") + 3))
	kill -INT $wss_pid
	wss_wait
	report "$lab_run/balloon.rec"
	diag "RSS of QEMU, bytes: $rss, then $(host_rss "$1")"
	diag "ballooned, bytes: $(field ballooned_bytes "$lab_run/report" | tr '\n' ' ')"
	check "pages that the balloon took are recorded" in_range \
		"$(field ballooned_bytes "$lab_run/report" | awk '{ n += $1 } END { print n }')" \
		$MiB $((192 * MiB))
	diag "written: $(sed -n 's/.*"written": "\([a-z ]*\)".*/\1/p' "$lab_run/report" | sort | uniq -c | tr '\n' ' ')"
	check "the guest is well" guest_well "$1"
}

balloon_is() { # NAME KIB
	[ "$(virsh dommemstat "$1" | awk '$1 == "actual" { print $2 }')" = "$2" ]
}

phases="wss.phases=0:24,48:24,16:24,96:24"
lab_libvirtd_start
lab_thp always
lab_guest_start huge memory=512 args="wss.map=128 wss.mode=write $phases"
test_phases huge
test_ends huge
lab_guest_stop huge
lab_thp never
# The balloon takes free memory, some of which the kernel had used while it booted.
lab_guest_start small memory=512 balloon=virtio args="wss.map=64 wss.mode=write"
test_balloon small
lab_guest_stop small
done_testing
