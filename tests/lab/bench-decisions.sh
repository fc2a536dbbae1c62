#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Prints a table of what recommend advises for five workloads, what balloon --apply
# gets back of their idle memory, and what that costs them. WSS_LAB_ARGS: some of the
# workloads; also one that is equally steady on huge pages, for which the other five
# leave no time. It tests only that each has a line, and that no guest's kernel has
# killed a process.
# shellcheck disable=SC2317,SC2154
. "${WSS_LAB_DIR:?}/decisions.sh"

runs=2
# Seconds within which the controller must reach its floor.
patience=240

declare -A workload=(
	[steady]="wss.map=200 wss.cold=500 wss.phases=200:0"
	[phases]="wss.map=200 wss.cold=500 wss.phases=60:10,200:10"
	[growing]="wss.map=400 wss.lazy=1 wss.cold=500 wss.phases=100:60,150:60,200:60,250:60,300:60,350:0"
	[bursty]="wss.map=300 wss.lazy=1 wss.cold=500 wss.phases=100:17,300:3"
	[huge]="wss.map=200 wss.cold=500 wss.phases=200:0"
	[cache]="wss.map=32 wss.file=disk:160 wss.cold=400 wss.phases=32:0"
)
# Length of a rate measurement: a whole cycle.
declare -A reports=([phases]=22 [bursty]=22)
names=${WSS_LAB_ARGS:-steady phases growing bursty cache}

table() { # VALUE...
	printf '# %-8s %8s %8s %6s %9s %9s %7s %7s %6s\n' "$@"
}

shrunk_or_late() {
	wait_until "$patience" apply_said 'debug: .*at its floor\|restored to\|balloon .* -> .*: ' ||
		diag "not at its floor after $patience s: what follows is of a guest that is still being shrunk"
}

measure_workload() { # NAME
	local name=$1 before after p99 recommended thp=never
	rm -f "$lab_run/full" "$lab_run/shrunk"
	rate_reports=${reports[$name]:-12}
	# Equally steady, but on huge pages.
	[ "$name" != huge ] || thp=always
	decisions_guest_start "$name" "${workload[$name]} wss.mode=write" "$thp"
	rates "$name" "$lab_run/full" "$runs"
	fit_window "$name"
	ten_windows "$name" || return 1
	wss recommend "$name" --output csv
	p99=$(csv p99_bytes)
	recommended=$(csv recommended_bytes)
	before=$(host_rss "$name")
	apply_start "$name"
	shrunk_or_late
	after=$(host_rss "$name")
	rates "$name" "$lab_run/shrunk" "$runs"
	apply_stop
	apply_say
	# Measured before and after the shrunk runs, so that a drift of the machine does not
	# look like a change.
	rates "$name" "$lab_run/full" "$runs"
	diag "rates with all its memory: $(tr '\n' ' ' <"$lab_run/full") shrunk: $(tr '\n' ' ' <"$lab_run/shrunk")"
	table "$name" $((p99 / MiB)) $((recommended / MiB)) "$(journal "reason = 'it needs less memory'")" \
		$((before / MiB)) $((after / MiB)) "$((100 * (before - after) / (before - p99))) %" \
		"$(awk -v a="$(median_of "$lab_run/shrunk")" -v b="$(median_of "$lab_run/full")" \
			'BEGIN { printf "%.1f %%", 100 * a / b }')" \
		"$(journal "to_bytes >= original_bytes AND reason <> 'stopped'")"
	no_oom "$name"
}

lab_libvirtd_start
table workload "p99,MiB" "rec.,MiB" steps "RSS,MiB" "then,MiB" "idle" "rate" "alarms"
for name in $names; do
	check "$name" measure_workload "$name"
	lab_guest_stop "$name"
done
done_testing
