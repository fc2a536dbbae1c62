# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# Sourced by the lab's tests of virt-wss: runs the program, and compares its figures
# with what the guest reports.

# shellcheck source-path=SCRIPTDIR source=functions.sh
. "${WSS_LAB_DIR:?}/functions.sh"

virt_wss=${WSS_BUILDDIR:?}/virt-wss
MiB=1048576
wss_out=$lab_run/out wss_err=$lab_run/err
mkdir -p "$lab_run"

# Running virt-wss

# Runs virt-wss with a deadline: status; stdout in $wss_out, stderr in $wss_err.
wss() { # ARGUMENT...
	status=0
	timeout -k 5 "${wss_deadline:-90}" "$virt_wss" "$@" >"$wss_out" 2>"$wss_err" || status=$?
}

# Starts virt-wss in the background and waits until it has armed its first window:
# wss_pid.
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
	# Suppresses bash's message about how it ended.
	wait "$wss_pid" 2>/dev/null || status=$?
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

# Checks that it failed with one clear line on stderr, and printed nothing that looks like a
# measurement.
refused() { # STATUS REGULAR-EXPRESSION
	if [ "$status" = "$1" ] && [ "$(grep -vc 'VIRT_WSS_FAULT\|VIRT_WSS_SYSROOT' "$wss_err")" = 1 ] &&
		grep -qiE "$2" "$wss_err" && ! grep -q '"wss_bytes"' "$wss_out"; then
		return 0
	fi
	wss_say
}

# Prints a field of the JSON output, one line per sample: of DOMAIN, or of all.
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

mib() { # BYTES
	printf '%d.%02d MiB' $(($1 / MiB)) $(($1 % MiB * 100 / MiB))
}

# Starts writing every line of the guest's console, with its time of arrival, to
# $lab_run/stamped, until stamp_end.
stamp_begin() { # NAME
	exec 8< <(exec tail -n 0 -f "$lab_run/log/$1")
	stamp_pid=$!
	stamp_lines <&8 >"$lab_run/stamped" &
	exec 8<&-
}

stamp_end() {
	kill "$stamp_pid"
}

stamp_lines() {
	local line now_ms
	while read -r line; do
		read_now_ms
		echo "$now_ms $line"
	done
}

# Prints, of the guest's reports that arrived between two moments (uptime_ms), the
# first one not counted: "WHOLE-PASSES PHASES TOUCHES". A pass that was under way at
# the first report is not a whole one.
reports_between() { # AFTER_MS UNTIL_MS
	awk -v after="$1" -v until="$2" '
		/ wss-guest: time_ms=.* touches=[0-9]+\r?$/ && $1 >= after && $1 <= until {
			sub(/\r/, "")
			for (i = 3; i <= NF; i++)
				value[substr($i, 1, index($i, "=") - 1)] = substr($i, index($i, "=") + 1)
			if (!seen[value["phase"]]++)
				phases++
			if (!reports++) {
				loops = value["loops"]
				touches = value["touches"]
			}
		}
		END {
			loops = value["loops"] - loops
			print (loops > 0 ? loops - 1 : 0), phases + 0, value["touches"] - touches
		}' "$lab_run/stamped"
}

# Waits until the guest is in a phase of this size. On a shared machine it may not complete a
# pass between two reports.
lab_guest_touches() { # NAME BYTES
	local phase
	phase=$(lab_guest_field "$1" phase) &&
		grep -q "^wss-guest: phase phase=$phase .*set_bytes=$2 " "$lab_run/log/$1"
}

# Waits for a report that begins after now and prints its guest time.
next_report_ms() { # NAME
	local before
	before=$(lab_guest_field "$1" time_ms)
	wait_until 60 lab_guest_past "$1" "${before:-0}" && lab_guest_field "$1" time_ms
}

# Takes one sample while the guest touches MIB: estimate in bytes, and truth, the set
# if the guest reports that it made whole passes within the window. Takes it again if
# the guest went on to another phase meanwhile, with a longer window if it was too slow
# for two passes. A stall of the emulation is no reason to refuse. measure_within: a
# command to run within the window; measure_as: what to measure if the name is not
# enough.
measure() { # NAME MIB [ARGUMENT of virt-wss sample...]
	local name=$1 set=$(($2 * MiB)) window=4 try began phases
	local target=("$name")
	[ -z "${measure_as-}" ] || read -ra target <<<"$measure_as"
	shift 2
	for try in 1 2 3 4 5; do
		wait_until 150 lab_guest_touches "$name" $set || break
		stamp_begin "$name"
		wss_start sample "${target[@]}" --window ${window}s --max-stall 10s --output json "$@" &&
			began=$(uptime_ms) && ${measure_within:-true}
		wss_wait
		next_report_ms "$name" >/dev/null
		stamp_end
		estimate=$(json wss_bytes)
		status_is 0 && [ -n "$estimate" ] || return
		# The beginning of the window is detected a little late.
		read -r passes phases _ < <(reports_between "$began" $((began + window * 1000 - 400)))
		if [ "$phases" != 1 ] || ! lab_guest_touches "$name" $set; then
			diag "$name: another phase began within the window, try $try"
		elif [ $set -gt 0 ] && [ "$passes" -lt 2 ]; then
			window=$((window * 2))
			diag "$name: $passes whole passes in the window: now $window s"
		else
			truth=$set
			return 0
		fi
	done
	diag "$name: never touched $(mib $set) for a whole window"
	return 1
}

say_measure() {
	diag "estimate $(mib "$estimate"), truth $(mib "$truth"), $passes passes," \
		"window $(json window_seconds) s, arming $(json arm_seconds) s, faults $(json faults)"
}

# With its bounds, of a method whose figure is one.
say_bounds() {
	say_measure
	diag "bounds $(mib "$(json wss_low_bytes)") - $(mib "$(json wss_high_bytes)")," \
		"CPU $(json tool_cpu_seconds) s, $(json quality)"
}

# The central check: the estimate is the truth plus the guest's own kernel, within 5 % or so many.
estimate_is_close() { # ESTIMATE TRUTH BASELINE [PERCENT]
	diag "estimate $(mib "$1"), truth $(mib "$2"), baseline $(mib "$3"): off by" \
		"$(($1 - $2 - $3)) bytes"
	local percent=${4-5}
	in_range "$1" $((($2 + $3) * (100 - percent) / 100)) $((($2 + $3) * (100 + percent) / 100))
}

# Checks that the bounds enclose the truth; the guest's own kernel differs from window
# to window.
bounds_enclose() { # BASELINE
	in_range $((truth + $1)) $(($(json wss_low_bytes) - MiB)) $(($(json wss_high_bytes) + MiB))
}

# Ends the script as skipped if virt-wss has no BPF recorder.
require_recorder() {
	"$virt_wss" --version | grep -q '^recorders: .*bpf (libbpf' && return 0
	echo "1..0 # SKIP $("$virt_wss" --version | grep '^recorders:')"
	exit 77
}

# Guests that are told what to touch

control=$lab_run/control

# Starts a guest that touches what is written to $control.in, as begin_phase does.
controlled_guest_start() { # NAME KERNEL-ARGUMENTS [OPTION...] of lab_guest_start [devices=XML]
	local name=$1 args=$2 devices='' options=() option
	shift 2
	for option; do
		case $option in
		devices=*) devices=${option#devices=} ;;
		*) options+=("$option") ;;
		esac
	done
	rm -f "$control".{in,out}
	mkfifo -m 666 "$control".{in,out}
	lab_guest_start "$name" "${options[@]}" args="$args wss.control=ttyS1" \
		devices="<serial type='pipe'><source path='$control'/><target port='1'/></serial>$devices"
	exec 7>"$control.in"
}

in_phase() { # NAME NUMBER, of a report
	[ "$(lab_guest_field "$1" phase)" = "$2" ]
}

begin_phase() { # NAME LINE -> truth tables: bytes of the set, and of the guest's page tables
	local phase line
	phase=$(($(lab_guest_field "$1" phase) + 1))
	echo "$2" >&7
	wait_until 60 in_phase "$1" "$phase" || return 1
	line=$(grep "^wss-guest: phase phase=$phase " "$lab_run/log/$1" | tr -d '\r')
	truth=$(lab_line_field "$line" set_bytes)
	# Used by the scripts that source this.
	# shellcheck disable=SC2034
	tables=$(lab_line_field "$line" table_bytes)
}

# Measures in a phase without end, because the time needed on a shared machine is unknown.
measure_phase() { # NAME MIB [ARGUMENT of virt-wss sample...]
	begin_phase "$1" "$2:0" && measure "$@"
}

# The dirty log

log_is_off() { # NAME
	! virsh -q domstats --dirtyrate "$1" | grep -q 'calc_status=1'
}

huge_mappings_are_back() { # NAME
	[ "$(lab_guest_counter "$1" pages_2m)" -gt 0 ] && [ "$(lab_guest_counter "$1" pages_4k)" -lt 1024 ]
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
	if wait_until 5 guest_not_held "$1" && lab_guest_alive "$1"; then
		return 0
	fi
	diag "$1: threads $(guest_state "$1"); the end of its console and of libvirt's log of it:"
	diag "$(tail -n 5 "$lab_run/log/$1" "/var/log/libvirt/qemu/$1.log" 2>&1 | cut -c -400)"
	return 1
}

host_rss() { # NAME -> bytes of the guest's QEMU
	awk '/^VmRSS:/ { print $2 * 1024 }' "/proc/$(lab_guest_pid "$1")/status"
}

# Starts a guest that libvirt does not know, with a QMP socket at $lab_run/NAME.sock
# and 512 MiB of anonymous memory. Starts it again if it stalls, as lab_guest_start
# does.
plain_guest_start() { # NAME KERNEL-ARGUMENTS
	local try
	mkdir -p "$lab_run/log"
	for try in 1 2 3; do
		rm -f "$lab_run/log/$1"
		qemu-system-x86_64 -name "$1" -machine pc -accel kvm -m 512 -nodefaults \
			-display none -no-reboot -daemonize -pidfile "$lab_run/$1.pid" \
			-qmp "unix:$lab_run/$1.sock,server=on,wait=off" -serial "file:$lab_run/log/$1" \
			-kernel "$lab_run/guest/vmlinuz" -initrd "$lab_run/guest/initrd" \
			-append "console=ttyS0 quiet panic=-1 mitigations=off $2" ||
			bail_out "$1 does not start"
		lab_guest_wait_ready "$1" && return 0
		lab_restarts=$((lab_restarts + 1))
		diag "$1: RESTART"
		plain_guest_stop "$1"
	done
	bail_out "$1 was not ready in three starts"
}

plain_guest_stop() { # NAME
	kill "$(cat "$lab_run/$1.pid")"
	wait_until 20 lab_ended "$lab_run/$1.pid" || kill -KILL "$(cat "$lab_run/$1.pid")"
	rm -f "$lab_run/$1".{pid,sock}
}
