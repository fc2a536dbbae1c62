# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# Sourced by the lab's benches: measures how fast the guest's own loop runs, and
# computes medians.

# shellcheck source-path=SCRIPTDIR source=wss.sh
. "${WSS_LAB_DIR:?}/wss.sh"

# Prints touches per second over five whole seconds of the guest's clock, or rate_reports less
# two.
loop_rate() { # NAME [COMMAND...] that runs meanwhile
	local name=$1 began
	shift
	stamp_begin "$name"
	[ $# = 0 ] || "$@" &
	began=$(lab_guest_field "$name" time_ms)
	wait_report "$name" $((${began:-0} + ${rate_reports:-7} * 1000)) && wait_until 60 enough_reports
	stamp_end
	[ $# = 0 ] || wait $!
	stamped_rate
}

# Prints touches per second from the reports between stamp_begin and stamp_end.
stamped_rate() {
	awk '/ wss-guest: time_ms=/ {
		for (i = 3; i <= NF; i++)
			value[substr($i, 1, index($i, "=") - 1)] = substr($i, index($i, "=") + 1)
		if (!reports++) {
			time = value["time_ms"]
			touches = value["touches"]
		}
	}
	END { printf "%d\n", 1000 * (value["touches"] - touches) / (value["time_ms"] - time) }
	' "$lab_run/stamped"
}

enough_reports() {
	[ "$(grep -c ' wss-guest: time_ms=' "$lab_run/stamped")" -ge "${rate_reports:-7}" ]
}

# Prints the median, minimum and maximum of the numbers on stdin.
spread() {
	sort -n | awk '{ v[NR] = $1 }
		END {
			m = NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2
			printf "%.6f %.6f %.6f\n", m, v[1], v[NR]
		}'
}

# Prints the ratio of medians, and the spread of the unsampled runs around their median.
say_rates() { # UNSAMPLED-FILE SAMPLED-FILE
	local plain least most sampled
	read -r plain least most < <(spread <"$1")
	read -r sampled _ _ < <(spread <"$2")
	awk -v plain="$plain" -v least="$least" -v most="$most" -v sampled="$sampled" 'BEGIN {
		printf "# guest loop rate, sampled / unsampled (medians): %.3f\n", sampled / plain
		printf "# unsampled runs over their median: %.3f - %.3f\n", least / plain, most / plain
	}'
}
