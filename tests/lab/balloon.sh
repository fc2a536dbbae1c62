#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# A guest with 1 GiB, 200 MiB of it hot, page cache that stays cold: ten windows, recommend,
# balloon --apply. The host gets what is idle, the guest does not notice; and when it needs twice
# as much it has it back in time. The same doubling without a balloon is what it is held against.
# WSS_LAB_ARGS: "always", for a guest on huge pages. What was taken from that comes back by pages
# of 4 KiB, for each of which the emulation takes as long as for 2 MiB: the doubling is then slower.
# shellcheck disable=SC2317,SC2154
. "${WSS_LAB_DIR:?}/decisions.sh"

runs=5
hot=200 doubled=400
# Seconds of the guest after the doubling in which the touches are counted.
span=10

touches_of_phase() { # NAME PHASE SECONDS: touches in its first seconds, from the guest's reports
	tr -d '\r' <"$lab_run/log/$1" | awk -v phase="$2" -v span="$3" '
		/^wss-guest: / {
			split("", field)
			for (i = 2; i <= NF; i++)
				field[substr($i, 1, index($i, "=") - 1)] = substr($i, index($i, "=") + 1)
		}
		/^wss-guest: phase / && field["phase"] == phase { began = field["time_ms"] }
		/^wss-guest: time_ms=/ {
			if (field["phase"] == phase && field["time_ms"] - began <= span * 1000 + 500) {
				touches = field["touches"] - before
				time = field["time_ms"] - began
			} else if (field["phase"] < phase) {
				before = field["touches"]
			}
		}
		END { printf "%d\n", time ? touches * 1000 / time : 0 }'
}

phase_has_lasted() { # NAME PHASE SECONDS
	local began
	began=$(sed -n "s/^wss-guest: phase phase=$2 time_ms=\([0-9]*\) .*/\1/p" "$lab_run/log/$1")
	[ -n "$began" ] && [ "$(lab_guest_field "$1" time_ms)" -ge $((began + $3 * 1000)) ]
}

# Touches a second in the first seconds of twice the set.
double() { # NAME -> rate
	local phase
	begin_phase "$1" "$doubled":0 || return 1
	phase=$(lab_guest_field "$1" phase)
	wait_until 60 phase_has_lasted "$1" "$phase" "$span" || return 1
	rate=$(touches_of_phase "$1" "$phase" "$span")
}

test_recommend() {
	check "ten windows" ten_windows balloon || bail_out "no history"
	wss recommend balloon --output csv
	check "recommend answers" status_is 0
	wss_bytes=$(csv p99_bytes)
	recommended=$(csv recommended_bytes)
	diag "p99 $(mib "$wss_bytes"), recommended $(mib "$recommended"), assigned $(mib "$assigned")"
	check "the working set is what is hot, and a little kernel" \
		in_range "$wss_bytes" $((hot * MiB)) $(((hot + 40) * MiB))
}

test_shrink() {
	local began rss_before rss_after idle
	rss_before=$(host_rss balloon)
	idle=$((rss_before - wss_bytes))
	began=$(uptime_ms)
	apply_start balloon
	check "it comes to its floor" wait_until 150 apply_said 'debug: .*it is at its floor'
	rss_after=$(host_rss balloon)
	diag "$(journal "reason = 'it needs less'") steps in $((($(uptime_ms) - began) / 1000)) s;" \
		"host RSS $(mib "$rss_before"), now $(mib "$rss_after"): of $(mib $idle) idle" \
		"$((100 * (rss_before - rss_after) / idle)) % are back; balloon $(mib "$(balloon_bytes balloon)")"
	check "at least 60 % of what was idle is back at the host" \
		in_range $((100 * (rss_before - rss_after) / idle)) 60 100
	check "no step below the floor, none of more than 5 %" \
		[ "$(journal "to_bytes < $recommended - $MiB OR to_bytes < from_bytes * 0.95 - $MiB")" = 0 ]
}

test_doubling() {
	local at
	check "the guest doubles its set" double balloon
	apply_say
	check "it has its memory back" wait_until 20 has_all_back balloon
	at=$(journal "to_bytes >= original_bytes" "reason || ', from ' || (from_bytes / 1048576) || ' MiB'")
	diag "given back: ${at:-not}"
	diag "touches a second in the $span s after doubling: $rate, $reference without a balloon:" \
		"$((reference ? 1000 * rate / reference : 0)) in 1000"
	check "before its loop rate has fallen by 10 %" in_range "$rate" $((reference * 90 / 100)) 999999999
	check "no OOM kill" no_oom balloon
	apply_stop
	check "the controller ends, stopped or with a word why it left the guest" \
		in_range "$status" 1 143
	check "nothing is left taken" [ "$(journal 'done = 0')" = 0 ]
}

has_all_back() { # NAME
	[ "$(balloon_bytes "$1")" = 0 ]
}

# Before and after the shrunk runs, so that a drift of the machine is not taken for a change.
test_rates() {
	local before after apart
	before=$(median_of "$lab_run/full")
	after=$(median_of "$lab_run/shrunk")
	apart=$(spread_of "$lab_run/full")
	diag "loop rate with all its memory: $(tr '\n' ' ' <"$lab_run/full")"
	diag "loop rate shrunk: $(tr '\n' ' ' <"$lab_run/shrunk")"
	diag "medians: $before, $after: $((1000 * after / before)) in 1000; runs apart by $apart in 1000"
	check "the loop rate is within 3 % and the runs' spread" \
		in_range $((1000 * after / before)) $((970 - apart)) $((1030 + apart))
}

lab_libvirtd_start
# Stores only: a load and then a store would be two faults a page after a zap.
decisions_guest_start balloon "wss.map=$doubled wss.lazy=1 wss.cold=500 wss.mode=write wss.phases=$hot:0" "${WSS_LAB_ARGS:-never}"
rates balloon "$lab_run/full" $runs
check "the guest doubles its set with all its memory" double balloon
reference=$rate
check "and goes back" begin_phase balloon $hot:0
test_recommend
test_shrink
rates balloon "$lab_run/shrunk" $runs
check "it is shrunk while its rate is taken" in_range "$(balloon_bytes balloon)" $((300 * MiB)) "$assigned"
test_doubling
begin_phase balloon $hot:0
rates balloon "$lab_run/full" $runs
test_rates
done_testing
