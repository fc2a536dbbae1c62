#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# What recording costs: a guest of 2 GiB in windows of a second, with and without the dirty
# log. CPU time of the recorder for each window, its memory, the file's bytes for each.
# shellcheck disable=SC2317
. "${WSS_LAB_DIR:?}/wss.sh"

require_recorder

cost() { # NAME SECONDS GRANULARITY TEXT
	local rec=$lab_run/$3.rec cpu anon windows
	"$virt_wss" record "$1" -o "$rec" --until-stopped --interval 1s --granularity "$3" --max-stall 10s \
		2>"$wss_err" &
	wss_pid=$!
	wait_until 90 test -s "$rec" || bail_out "no recording: $(cat "$wss_err")"
	# Not the start: connecting to libvirt, loading the program.
	cpu=$(awk '{ print $14 + $15 }' /proc/$wss_pid/stat)
	windows=$("$virt_wss" report "$rec" --output csv 2>/dev/null | grep -c ',window,\|,degraded,')
	sleep "$2"
	cpu=$(($(awk '{ print $14 + $15 }' /proc/$wss_pid/stat) - cpu))
	anon=$(awk '/^RssAnon:/ { print $2 }' /proc/$wss_pid/status)
	kill -INT $wss_pid
	wait $wss_pid 2>/dev/null
	windows=$(($("$virt_wss" report "$rec" --output csv | grep -c ',window,\|,degraded,') - windows))
	diag "$4: $windows windows in $2 s, $((cpu * 10 / (windows > 0 ? windows : 1))) ms of CPU each," \
		"$anon KiB of memory, $(($(stat -c %s "$rec") / (windows > 0 ? windows : 1))) bytes of file each"
}

lab_libvirtd_start
lab_thp never
lab_guest_start small memory=2048 args="wss.map=1024 wss.touch=64 wss.mode=write wss.rate=65536"
cost small 30 native "small pages"
lab_guest_stop small
lab_thp always
lab_guest_start huge memory=2048 args="wss.map=1024 wss.touch=64 wss.mode=write wss.rate=65536"
cost huge 30 4k "huge pages, dirty log"
lab_guest_stop huge
ok "cost of recording"
done_testing
