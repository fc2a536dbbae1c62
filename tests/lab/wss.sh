# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# Sourced by the lab's tests of virt-wss: running the program, and comparing what it
# says with what the guest says of itself.

# shellcheck source-path=SCRIPTDIR source=functions.sh
. "${WSS_LAB_DIR:?}/functions.sh"

virt_wss=${WSS_BUILDDIR:?}/virt-wss
MiB=1048576
wss_out=$lab_run/out wss_err=$lab_run/err
mkdir -p "$lab_run"

# Running virt-wss

# With a deadline: status; stdout in $wss_out, stderr in $wss_err.
wss() { # ARGUMENT...
	status=0
	timeout -k 5 "${wss_deadline:-90}" "$virt_wss" "$@" >"$wss_out" 2>"$wss_err" || status=$?
}

# In the background, until it has armed its first window: wss_pid.
wss_start() { # ARGUMENT...
	: >"$wss_err"
	"$virt_wss" --debug "$@" >"$wss_out" 2>"$wss_err" &
	wss_pid=$!
	wait_until 60 wss_armed && kill -0 "$wss_pid" 2>/dev/null
}

wss_armed() {
	grep -q ': armed' "$wss_err" || ! kill -0 "$wss_pid" 2>/dev/null
}

wss_wait() { # -> status
	status=0
	wait "$wss_pid" || status=$?
	sed -i '/^virt-wss: debug: /d' "$wss_err"
}

wss_say() { # what the last run printed, for a test that failed
	diag "exit status $status"
	diag "$(cut -c -600 "$wss_out" "$wss_err")"
	return 1
}

status_is() { # STATUS
	[ "$status" = "$1" ] || wss_say
}

# One clear line on stderr, and nothing that could be taken for a measurement.
refused() { # STATUS REGULAR-EXPRESSION
	[ "$status" = "$1" ] && [ "$(grep -vc 'VIRT_WSS_FAULT\|VIRT_WSS_SYSROOT' "$wss_err")" = 1 ] &&
		grep -qiE "$2" "$wss_err" && ! grep -q '"wss_bytes"' "$wss_out" || wss_say
}

# A field of the JSON output, a line a sample: of DOMAIN, or of all.
json() { # FIELD [DOMAIN]
	grep "\"domain\": \"${2-}" "$wss_out" |
		sed -n "s/.*\"$1\": \"\{0,1\}\([^\",}]*\).*/\1/p"
}

json_is() { # FIELD VALUE
	[ "$(json "$1")" = "$2" ] || wss_say
}

noted() { # REGULAR-EXPRESSION: in the sample's notes
	sed 's/.*"notes": //' "$wss_out" | grep -qE "$1" || wss_say
}

refute() { # COMMAND...
	! "$@"
}

# Estimate and truth

close_to() { # VALUE TRUTH PERCENT: all integers
	[ -n "$1" ] && [ -n "$2" ] && in_range "$1" $(($2 * (100 - $3) / 100)) $(($2 * (100 + $3) / 100))
}

mib() { # BYTES
	printf '%d.%02d MiB' $(($1 / MiB)) $(($1 % MiB * 100 / MiB))
}

# Of the guest's reports of whole intervals between two times of its clock:
# "LARGEST-SET WHOLE-PASSES PHASES". A pass that was under way at the first report
# is not a whole one.
reports_between() { # NAME AFTER_MS UNTIL_MS
	awk -v after="$2" -v until="$3" '
		/^wss-guest: time_ms=.* touches=[0-9]+\r?$/ {
			sub(/\r/, "")
			for (i = 2; i <= NF; i++)
				value[substr($i, 1, index($i, "=") - 1)] = substr($i, index($i, "=") + 1)
			at = value["time_ms"] + 0
			if (at < after || at > until)
				next
			if (!seen[value["phase"]]++)
				phases++
			if (at == after)
				first = value["loops"]
			else if (value["touched_bytes"] + 0 > set)
				set = value["touched_bytes"] + 0
			last = value["loops"]
		}
		END { print set + 0, (last > first ? last - first - 1 : 0), phases + 0 }' \
		"$lab_run/log/$1"
}

lab_guest_touches() { # NAME BYTES: whole passes over so much, or rest
	local line
	line=$(lab_guest_line "$1")
	[ "$(lab_line_field "$line" touched_bytes)" = "$2" ] &&
		{ [ "$2" = 0 ] || [ "$(lab_line_field "$line" passes)" -gt 0 ]; }
}

# Waits for a report that begins after now: its guest time.
next_report_ms() { # NAME
	local before
	before=$(lab_guest_field "$1" time_ms)
	wait_until 60 lab_guest_past "$1" "${before:-0}" && lab_guest_field "$1" time_ms
}

# One sample while the guest touches MIB, and the guest's own word for it:
# estimate and truth in bytes, whole passes within the window. Taken again when the guest
# went on to another phase meanwhile, with a longer window when the guest was too
# slow for two passes. measure_within is a command to run within the window.
measure() { # NAME MIB [ARGUMENT of virt-wss sample...]
	local name=$1 set=$(($2 * MiB)) window=4 try began first left phases
	shift 2
	for try in 1 2 3 4 5; do
		wait_until 150 lab_guest_touches "$name" $set || break
		wss_start sample "$name" --window ${window}s --output json "$@" || { wss_wait; return 1; }
		began=$(uptime_ms)
		first=$(next_report_ms "$name") || { wss_wait; return 1; }
		# Less half a second: reports are noticed a little late.
		left=$((window * 1000 - ($(uptime_ms) - began) - 500))
		${measure_within:-true}
		wss_wait
		read -r truth passes phases < <(reports_between "$name" "$first" $((first + left)))
		estimate=$(json wss_bytes)
		if [ "$phases" != 1 ] || [ "$truth" -gt $set ] || ! still_touches "$name" $set; then
			diag "$name: another phase began within the window, try $try"
		elif [ $set -gt 0 ] && { [ "$passes" -lt 2 ] || [ "$truth" != $set ]; }; then
			window=$((window * 2))
			diag "$name: $passes whole passes in the window: now $window s"
		else
			[ "$status" = 0 ]
			return
		fi
	done
	diag "$name: never touched $(mib $set) for a whole window"
	return 1
}

# A report of after the window, of the same set: no other phase began within it.
still_touches() { # NAME BYTES
	next_report_ms "$1" >/dev/null && lab_guest_touches "$1" "$2"
}

say_measure() { # BASELINE
	diag "estimate $(mib "$estimate"), truth $(mib "$truth") + baseline $(mib "$1")," \
		"$passes passes, off by $(((estimate - truth - $1) / 1024)) KiB," \
		"window $(json window_seconds) s, arming $(json arm_seconds) s"
}

# THE check: the estimate is the truth and the guest's own kernel, within 5 %.
estimate_is_close() { # BASELINE
	close_to "$estimate" $((truth + $1)) 5
}

# The bounds enclose the truth; the guest's own kernel is not the same in every window.
bounds_enclose() { # BASELINE
	in_range $((truth + $1)) $(($(json wss_low_bytes) - MiB)) $(($(json wss_high_bytes) + MiB))
}

# The guest's process

guest_state() { # NAME: the states of all its threads, each once
	cat "/proc/$(lab_guest_pid "$1")"/task/*/stat 2>/dev/null |
		sed 's/.*) \(.\) .*/\1/' | sort -u | tr -d '\n'
}

guest_not_held() { # NAME
	local states
	states=$(guest_state "$1")
	[ -n "$states" ] && [[ $states != *[Tt]* ]]
}

guest_well() { # NAME
	wait_until 5 guest_not_held "$1" && lab_guest_alive "$1" || {
		diag "$1: threads $(guest_state "$1"), $(lab_guest_line "$1")"
		return 1
	}
}
