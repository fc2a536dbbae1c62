#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Tests balloon --apply, after ten windows and a recommendation, on a guest with 1 GiB, of
# which 200 MiB are hot, and page cache that stays cold. The host gets the idle memory, and the
# guest does not notice; when it needs twice as much, it gets that back in time. The same
# doubling without a balloon is the reference. WSS_LAB_ARGS: "always", for a guest on huge
# pages. The memory taken from that comes back in pages of 4 KiB, and for each the emulation
# takes as long as for 2 MiB, so the doubling is slower then.
# shellcheck disable=SC2317,SC2154
. "${WSS_LAB_DIR:?}/decisions.sh"

runs=5
hot=200 doubled=400
# Seconds of the guest's time that are judged after the doubling. At first it touches all new
# memory for the first time, 100 us a page under emulation, with and without a balloon;
# meanwhile level 1's one processor needs a second or so to give back 600 MiB, on a quiet
# machine.
judged=30
# Touches of the loop in the 22 s that remain, on a quiet machine. The loss by the
# doubling is compared with this amount, and is itself expressed in touches at the
# loop's later rate: so neither a slow machine counts nor one that becomes slower
# meanwhile.
judged_touches=70000000

# From the guest's reports: touches a second, the median after the first pass; ms
# without a loop, which is the whole of each report with less than half of that rate,
# so that a machine that is a little slower for a while is not taken for a guest that
# waits for its memory; and when the first pass was complete.
loop_of_phase() { # NAME PHASE
	tr -d '\r' <"$lab_run/log/$1" | awk -v phase="$2" -v judged="$judged" '
		function median(n, i, j, v) {
			for (i = 2; i <= n; i++) {
				v = sorted[i]
				for (j = i - 1; j && sorted[j] > v; j--)
					sorted[j + 1] = sorted[j]
				sorted[j + 1] = v
			}
			return sorted[int((n + 1) / 2)]
		}
		/^wss-guest: / {
			split("", field)
			for (i = 2; i <= NF; i++)
				field[substr($i, 1, index($i, "=") - 1)] = substr($i, index($i, "=") + 1)
		}
		/^wss-guest: phase / && field["phase"] == phase { last = began = field["time_ms"] }
		/^wss-guest: time_ms=/ {
			if (field["phase"] == phase && field["time_ms"] - began <= judged * 1000) {
				ms[++n] = field["time_ms"] - last
				rate[n] = (field["touches"] - before) / ms[n]
				last = field["time_ms"]
				# The first report has passes of the smaller set, too.
				if (n > 1 && !first && field["passes"] > 0)
					first = last - began
				else if (first)
					sorted[++after] = rate[n]
			}
			before = field["touches"]
		}
		END {
			usual = median(after)
			for (i = 1; i <= n; i++)
				lost += rate[i] < usual / 2 ? ms[i] * (1 - rate[i] / usual) : 0
			printf "%d %d %.1f\n", 1000 * usual, lost, first / 1000
		}'
}

double() { # NAME -> rate lost_ms first_s lost_touches
	local phase began
	begin_phase "$1" "$doubled":0 || return 1
	phase=$(lab_guest_field "$1" phase)
	began=$(sed -n "s/^wss-guest: phase phase=$phase time_ms=\([0-9]*\) .*/\1/p" "$lab_run/log/$1")
	wait_report "$1" $((began + judged * 1000)) || return 1
	read -r rate lost_ms first_s < <(loop_of_phase "$1" "$phase")
	lost_touches=$((rate * lost_ms / 1000))
	# Without a complete pass there is no usual rate to compare with.
	[ "$rate" -gt 0 ] || { diag "no pass was through in $judged s"; return 1; }
}

test_recommend() {
	fit_window balloon
	check "ten windows are taken" ten_windows balloon || bail_out "no history"
	wss recommend balloon --output csv
	check "recommend gives a size" status_is 0
	wss_bytes=$(csv p99_bytes)
	recommended=$(csv recommended_bytes)
	diag "p99 $(mib "$wss_bytes"), recommended $(mib "$recommended"), assigned $(mib "$assigned")"
	check "the working set is the hot memory and a little kernel memory" \
		in_range "$wss_bytes" $((hot * MiB)) $(((hot + 40) * MiB))
}

test_shrink() {
	local began rss_before rss_after idle
	rss_before=$(host_rss balloon)
	idle=$((rss_before - wss_bytes))
	began=$(uptime_ms)
	apply_start balloon
	check "the guest reaches its floor" wait_until 600 apply_said 'debug: .*at its floor'
	rss_after=$(host_rss balloon)
	diag "$(journal "reason = 'it needs less memory'") steps in $((($(uptime_ms) - began) / 1000)) s;" \
		"host RSS $(mib "$rss_before"), now $(mib "$rss_after"): of $(mib $idle) idle" \
		"$((100 * (rss_before - rss_after) / idle)) % are back; balloon $(mib "$(balloon_bytes balloon)")"
	check "at least 60 % of the idle memory is back on the host" \
		in_range $((100 * (rss_before - rss_after) / idle)) 60 100
	check "no step goes below the floor, or takes more than 5 %" \
		[ "$(journal "to_bytes < $recommended - $MiB OR to_bytes < from_bytes * 0.95 - $MiB")" = 0 ]
}

test_doubling() {
	local at permille
	check "the guest doubles its set" double balloon
	apply_say
	check "it gets its memory back" wait_until 20 has_all_back balloon
	at=$(journal "to_bytes >= original_bytes" "reason || ', from ' || (from_bytes / 1048576) || ' MiB'")
	diag "given back: ${at:-not}"
	permille=$((1000 * (judged_touches + reference_touches) / (judged_touches + lost_touches)))
	diag "the first pass is through after $first_s s, then $rate touches a second; $lost_ms ms lost," \
		"$((lost_touches / 1000)) thousand touches; without a balloon $reference:" \
		"$permille in 1000"
	check "before its loop rate has fallen by 10 %" in_range $permille 900 9999
	echo "$rate" >"$lab_run/doubled"
	check "no OOM kill" no_oom balloon
	apply_stop
	check "the controller ends when stopped, or explains why it left the guest" \
		in_range "$status" 1 143
	check "no memory is left taken" [ "$(journal 'done = 0')" = 0 ]
}

has_all_back() { # NAME
	[ "$(balloon_bytes "$1")" = 0 ]
}

# Measured before and after the shrunk runs, so that a drift of the machine does not look like
# a change.
test_rates() {
	local before after apart
	before=$(median_of "$lab_run/full")
	after=$(median_of "$lab_run/shrunk")
	apart=$(spread_of "$lab_run/full")
	diag "loop rate with all its memory: $(tr '\n' ' ' <"$lab_run/full")"
	diag "loop rate shrunk: $(tr '\n' ' ' <"$lab_run/shrunk")"
	diag "medians: $before, $after: $((1000 * after / before)) in 1000; runs apart by $apart in 1000"
	check "the loop rate is within 3 % and the spread of the runs" \
		in_range $((1000 * after / before)) $((970 - apart)) $((1030 + apart))
	after=$(cat "$lab_run/doubled")
	diag "doubled: $((1000 * after / before)) in 1000"
	check "the rate of the doubled set is within 10 % and the spread" \
		in_range $((1000 * after / before)) $((900 - apart)) 99999
}

lab_libvirtd_start
# Stores only, because a load followed by a store would cost two faults a page after a zap.
decisions_guest_start balloon "wss.map=$doubled wss.lazy=1 wss.cold=500 wss.mode=write wss.phases=$hot:0" "${WSS_LAB_ARGS:-never}"
rates balloon "$lab_run/full" $runs
check "the guest doubles its set with all its memory" double balloon
reference_touches=$lost_touches
reference="$first_s s, $rate, $lost_ms ms, $((lost_touches / 1000)) thousand"
check "the guest returns to its smaller set" begin_phase balloon $hot:0
test_recommend
test_shrink
rates balloon "$lab_run/shrunk" $runs
check "it is shrunk while its rate is measured" in_range "$(balloon_bytes balloon)" $((300 * MiB)) "$assigned"
test_doubling
begin_phase balloon $hot:0
rates balloon "$lab_run/full" $runs
test_rates
done_testing
