#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Tests serve on three KVM guests of different sets, one of which leaves 100 of 160 MiB idle: the growth
# curve of each within 5 % of what the guest reports, the coldness of that one, the speed of a guest at the
# default budget, and the back-off from windows that cost ten times what was predicted.
# WSS_LAB_ARGS: for how many seconds the three guests are watched, 600 by default; and the parts to run, of "back_off",
# "accuracy" and "speed", all by default.
# shellcheck disable=SC2317,SC2154
. "${WSS_LAB_DIR:?}/rates.sh"

require_recorder
read -r seconds parts <<<"${WSS_LAB_ARGS-}"
seconds=${seconds:-600}
export VIRT_WSS_HISTORY=$lab_run/history.db
metrics=$lab_run/metrics

serve_start() { # OPTION...: without a service that has stored anything before
	rm -rf "$metrics" "$lab_run"/history.db* "$lab_run/ages"
	"$virt_wss" --debug serve --textfile "$metrics" --boot 1s --metrics full "$@" >"$wss_out" 2>"$wss_err" &
	wss_pid=$!
}

# What it knows of a guest, and how its last windows went, for a test that failed.
serve_say() { # GUEST
	diag "$(grep "^virt_wss_[a-z_]*{domain=\"$1\"" "$metrics")"
	diag "$(grep -v '^virt-wss: debug:' "$wss_err" | tail -n 10)"
	diag "$(grep "^virt-wss: debug: $1: " "$wss_err" | tail -n 20)"
	return 1
}

serve_stop() {
	kill -TERM "$wss_pid"
	wss_wait
	status_is 143
}

metric() { # NAME GUEST [LABEL]: its value
	sed -n "s/^virt_wss_$1{domain=\"$2\",.*${3-}.*} //p" "$metrics" 2>/dev/null
}

has_working_set() { # GUEST: its last window was no canary
	[ -n "$(metric working_set_bytes "$1")" ]
}

has_no_working_set() {
	! has_working_set "$1"
}

windows_are() { # GUEST N: at least so many
	[ "$(metric windows_total "$1")" -ge "$2" ] 2>/dev/null
}

within_percent() { # VALUE TRUTH PERCENT
	awk -v value="$1" -v truth="$2" -v percent="$3" 'BEGIN {
		off = 100 * (value - truth) / truth
		printf "# %.2f MiB, truth %.2f MiB: %+.1f %%\n", value / 1048576, truth / 1048576, off
		exit !(off >= -percent && off <= percent)
	}'
}

# --- accuracy ---

# What the guest's own kernel touches within these seconds, while its program rests.
take_baseline() { # GUEST
	local label
	for label in 4 10; do
		wss sample "$1" --window ${label}s --max-stall 10s --output json
		status_is 0 || bail_out "$1 cannot be measured"
		baseline[$1:$label]=$(json wss_bytes)
		diag "$1: its kernel touches $(mib "${baseline[$1:$label]}") in $label s"
	done
}

loops_of() { # GUEST: whole passes since it started
	lab_guest_field "$1" loops
}

# For whoever reads the figures: a guest that makes no whole pass has a truth that is smaller than its set.
say_passes() { # GUEST LOOPS-BEFORE SECONDS
	local tenths=$((($(loops_of "$1") - $2) * 100 / $3))
	diag "$1: $((tenths / 10)).$((tenths % 10)) passes in 10 s"
}

# Notes in files when each window was armed, and what the guests report, until the service ends.
follow() { # GUEST...
	local guest
	tail -n +1 -f --pid="$wss_pid" "$wss_err" | grep --line-buffered ': armed by ' |
		stamp_lines >"$lab_run/armed" &
	for guest; do
		tail -n 5 -f --pid="$wss_pid" "$lab_run/log/$guest" | stamp_lines >"$lab_run/reports-$guest" &
	done
}

# Notes two points of the curve of each new window, for so many seconds: "WINDOW BYTES". The later one is its
# end. Guests report once a second, which is too seldom to judge earlier points.
collect_points() { # SECONDS GUEST...
	local end guest label n now_ms
	declare -A seen
	read_now_ms
	end=$((now_ms + $1 * 1000))
	shift
	while [ "$now_ms" -lt "$end" ]; do
		for guest; do
			n=$(metric windows_total "$guest")
			[ "$n" != "${seen[$guest]-}" ] || continue
			seen[$guest]=$n
			echo "$n $(metric working_set_within_bytes "$guest" 'seconds="4"')" \
				>>"$lab_run/points-$guest-4"
			echo "$n $(metric working_set_bytes "$guest")" >>"$lab_run/points-$guest-10"
		done
		pause 3
		read_now_ms
	done
}

# Prints for each window the point of its curve over the truth. That is what the guest's kernel touches, and the
# touches that the guest reports between two moments: those of a set that it goes through in turn are different
# pages, until a pass is over. A busy machine slows a guest down after its pages have been dropped, so that it
# was as fast as its rate allows up to that moment, and as fast as its reports say from then on. Its clock runs
# like that of the host, from which it differs by what the promptest report says.
curve_over_truth() { # GUEST SECONDS SET-BYTES RATE BASELINE-BYTES
	awk -v guest="$1:" -v length_ms=$(($2 * 1000)) -v set="$3" -v rate="$4" -v baseline="$5" '
		function report_before(ms,    i) {
			for (i = n; i > 0 && at[i] > ms; i--)
				;
			return i
		}
		function touches_at(ms,    i) {
			i = report_before(ms)
			return sum[i] + (sum[i + 1] - sum[i]) * (ms - at[i]) / (at[i + 1] - at[i])
		}
		function touches_before_arming(ms,    i, touches) {
			i = report_before(ms)
			touches = sum[i] + rate * (ms - at[i]) / 1000
			return touches < sum[i + 1] ? touches : sum[i + 1]
		}
		FILENAME ~ /reports/ && /time_ms=.* touches=[0-9]+\r?$/ {
			sub(/\r/, "")
			split($3, time, "=")
			split($NF, touches, "=")
			at[++n] = time[2]
			sum[n] = touches[2]
			if (n == 1 || $1 - time[2] < offset)
				offset = $1 - time[2]
		}
		FILENAME ~ /armed/ && $4 == guest { armed[++windows] = $1 - $9 / 2 - offset }
		FILENAME ~ /points/ && NF == 2 {
			start = armed[$1]
			if (!start || start < at[1] || start + length_ms > at[n])
				next
			bytes = 4096 * (touches_at(start + length_ms) - touches_before_arming(start))
			print $2 / ((bytes < set ? bytes : set) + baseline)
		}' "$lab_run/reports-$1" "$lab_run/armed" "$lab_run/points-$1-$2"
}

# The median window: one in which the emulation stalled says nothing.
test_curve() { # GUEST MIB RATE
	local label median least most n
	for label in 4 10; do
		curve_over_truth "$1" $label $(($2 * MiB)) "$3" "${baseline[$1:$label]}" >"$lab_run/ratios"
		n=$(wc -l <"$lab_run/ratios")
		read -r median least most < <(spread <"$lab_run/ratios")
		diag "$1 at $label s: $median of the truth, $least to $most, $n windows," \
			"$(mib "$(cut -d' ' -f2 "$lab_run/points-$1-$label" | spread | cut -d. -f1)")"
		check "$1: its curve is right within 5 % at $label s" awk -v median="$median" -v n="$n" \
			-v least=$((seconds / 40)) 'BEGIN { exit !(n >= least && median >= 0.95 && median <= 1.05) }'
	done
}

# Everything but the 60 MiB that it touches and what its kernel does, which is less than 8 MiB.
test_coldness() { # GUEST
	local low high held cold=$lab_run/cold
	"$virt_wss" cold "$1" --output csv --columns idle,low_bytes,high_bytes,held_bytes |
		tr -d '\r' >"$cold"
	IFS=, read -r _ low high held < <(grep '^2m,' "$cold")
	diag "$("$virt_wss" cold "$1" --wide)"
	check "$1: 100 MiB are known to be idle" in_range "${low:-}" $((100 * MiB)) "${high:-0}"
	check "$1: what it touches is not" in_range $((held - high)) $((60 * MiB - 2 * MiB)) $((68 * MiB))
	check "$1: nothing else is" in_range $((held - low)) $((60 * MiB - 2 * MiB)) $((70 * MiB))
}

is_touching() { # GUEST
	[ "$(lab_guest_field "$1" state)" = touching ]
}

# Rates leave the processor to all of them, also while one takes a fault for each page of its set. Passes take
# half a second, 5 s and 2.6 s.
test_accuracy() {
	declare -A baseline loops
	local guest
	lab_guest_start small memory=192 args='wss.map=64 wss.touch=8 wss.rate=4096 wss.idle=120'
	take_baseline small
	lab_guest_start paced memory=192 args='wss.map=64 wss.touch=20 wss.rate=1024 wss.idle=120'
	take_baseline paced
	lab_guest_start idle memory=256 args='wss.map=160 wss.touch=60 wss.rate=6000 wss.idle=120'
	take_baseline idle
	for guest in small paced idle; do
		check "$guest touches its set" wait_until 180 is_touching $guest
	done
	rm -f "$lab_run"/points-*-*
	serve_start --continuous --period 20s --window 10s --max-stall 30s --budget 100%
	follow small paced idle
	for guest in small paced idle; do
		check "$guest is measured" wait_until 300 windows_are $guest 2 || serve_say $guest
	done
	for guest in small paced idle; do
		loops[$guest]=$(loops_of $guest)
	done
	collect_points "$seconds" small paced idle
	for guest in small paced idle; do
		say_passes $guest "${loops[$guest]}" "$seconds"
	done
	test_curve small 8 4096
	test_curve paced 20 1024
	test_curve idle 60 6000
	check "the service ends in good order" serve_stop
	diag "$(cat "$wss_err")"
	test_coldness idle
	for guest in small paced idle; do
		check "$guest goes on" lab_guest_alive $guest
		lab_guest_stop $guest
	done
}

# --- speed ---

held_is() { # 0|1
	grep -qx "virt_wss_held $1" "$metrics" 2>/dev/null
}

# The loop's rate while the service measures nothing.
unsampled_rate() {
	: >"$lab_run/hold"
	wait_until 60 held_is 1 || diag "the service is not held in time"
	loop_rate speed
}

# The loop's rate while the service measures the guest.
sampled_rate() {
	rm -f "$lab_run/hold"
	wait_until 60 held_is 0 || diag "the service is held for too long"
	loop_rate speed
}

speed_serve() { # OPTION...
	rm -f "$lab_run/hold"
	serve_start --hold-file "$lab_run/hold" "$@"
	check "it is measured: $*" wait_until 120 windows_are speed 1 || serve_say speed
}

# Prints for each run but the first and the last of a file, by how many percent it is off the mean of its two
# neighbours; or that of each run of SAMPLED-FILE and the runs before and after it. Rates drift under emulation,
# but not between two neighbours.
rates_off_neighbours() { # UNSAMPLED-FILE [SAMPLED-FILE]
	if [ $# = 2 ]; then
		paste "$1" "$2" | awk 'NR > 1 { print 100 * (2 * sampled / (before + $1) - 1) }
			{ before = $1; sampled = $2 }'
	else
		awk '{ rate[NR] = $1 }
			END { for (i = 2; i < NR; i++) print 100 * (2 * rate[i] / (rate[i - 1] + rate[i + 1]) - 1) }' "$1"
	fi
}

# Prints the mean, and what two standard errors of it are. A mean, because the windows of the default budget fall
# into few runs.
mean_and_error() {
	awk '{ sum += $1; squares += $1 * $1 }
		END { mean = sum / NR; print mean, 2 * sqrt((squares / NR - mean * mean) / (NR - 1)) }'
}

# Whether sampled runs are as fast as unsampled ones, within the spread of these. A loss of a tenth must show.
test_ratio() { # SAMPLED-PERCENT UNSAMPLED-PERCENT ERROR-PERCENT
	if awk -v error="$3" 'BEGIN { exit !(error > 10) }'; then
		skip "unsampled runs differ so much that their mean is uncertain by $3 %" "its loop is as fast as in unsampled runs"
		return
	fi
	check "its loop is as fast as in unsampled runs" \
		awk -v sampled="$1" -v plain="$2" -v error="$3" 'BEGIN { exit !(sampled >= plain - error) }'
}

# The loop's rate with the default budget, in turns with runs without windows; then without a budget, which must
# show: otherwise nothing was tested.
test_speed() {
	local sampled plain error dear windows i
	rm -f "$lab_run"/plain "$lab_run"/sampled "$lab_run"/dear
	lab_guest_start speed memory=192 args='wss.map=64 wss.touch=16'
	speed_serve --period 5s
	for ((i = 0; i < 24; i++)); do
		unsampled_rate >>"$lab_run/plain"
		sampled_rate >>"$lab_run/sampled"
	done
	unsampled_rate >>"$lab_run/plain"
	windows=$(metric windows_total speed)
	diag "$windows windows, $(metric dearer_windows_total speed) dearer, period $(metric period_seconds speed) s," \
		"$(metric spent_seconds_total speed) s of its vCPU"
	check "it had windows meanwhile" [ "${windows:-0}" -ge 3 ]
	serve_stop
	speed_serve --period 1s --window 500ms --max-stall 30s --budget 100%
	for _ in 1 2 3; do
		sampled_rate >>"$lab_run/dear"
	done
	serve_stop
	say_rates "$lab_run/plain" "$lab_run/sampled"
	read -r sampled _ < <(rates_off_neighbours "$lab_run/plain" "$lab_run/sampled" | mean_and_error)
	read -r plain error < <(rates_off_neighbours "$lab_run/plain" | mean_and_error)
	dear=$(paste <(spread <"$lab_run/dear") <(spread <"$lab_run/plain") | awk '{ print 100 * ($1 / $4 - 1) }')
	diag "off their neighbours: sampled runs by $sampled %, unsampled ones by $plain % +- $error %;" \
		"without a budget off their median by $dear %"
	test_ratio "$sampled" "$plain" "$error"
	check "without a budget it is not" \
		awk -v plain="$plain" -v error="$error" -v dear="$dear" 'BEGIN { exit !(dear < plain - error - 3) }'
	lab_guest_stop speed
}

# --- back-off ---

# A limit of 10 s on a stall, of which a tenth counts as noise: the emulation is not dear by itself.
test_back_off() {
	local options=(--period 20s --max-stall 10s --budget 100%)
	lab_guest_start dear memory=192 args='wss.map=64 wss.touch=16'
	serve_start "${options[@]}"
	check "windows that cost what was predicted lead to full ones" wait_until 180 has_working_set dear ||
		serve_say dear
	check "none was dearer" [ "$(metric dearer_windows_total dear)" = 0 ] || serve_say dear
	check "the period stays" [ "$(metric period_seconds dear)" = 20 ]
	serve_stop
	VIRT_WSS_FAULT=dear-window serve_start "${options[@]}"
	check "windows that cost ten times as much follow each other" wait_until 180 windows_are dear 2 ||
		serve_say dear
	check "metrics say that two were dearer" [ "$(metric dearer_windows_total dear)" = 2 ] || serve_say dear
	check "metrics say that the period has doubled" [ "$(metric period_seconds dear)" = 40 ] || serve_say dear
	check "it gets canaries only" has_no_working_set dear
	serve_stop
	check "it goes on" lab_guest_alive dear
	lab_guest_stop dear
}

lab_libvirtd_start
lab_thp never
for part in ${parts:-back_off accuracy speed}; do
	case $part in
	back_off) test_back_off ;;
	accuracy) test_accuracy ;;
	speed) test_speed ;;
	*) bail_out "no part is called $part" ;;
	esac
done
done_testing
