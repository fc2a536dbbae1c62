# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# Sourced by the scripts that tests/lab/run runs inside level 1: TAP, libvirtd,
# and guests with a known working set. A script ends with `done_testing`.

lab_tests=0
lab_failures=0
lab_restarts=0
lab_run=/run/wss-lab
export LIBVIRT_DEFAULT_URI=qemu:///system

# TAP

diag() { # TEXT...
	printf '%s\n' "$*" | sed 's/^/# /'
}

ok() { # DESCRIPTION...
	lab_tests=$((lab_tests + 1))
	echo "ok $lab_tests - $*"
}

not_ok() { # DESCRIPTION...
	lab_tests=$((lab_tests + 1))
	lab_failures=$((lab_failures + 1))
	echo "not ok $lab_tests - $*"
}

skip() { # REASON DESCRIPTION...
	local reason=$1
	shift
	lab_tests=$((lab_tests + 1))
	echo "ok $lab_tests - $* # SKIP $reason"
}

check() { # DESCRIPTION COMMAND...: ok when the command succeeds; its verdict
	local description=$1
	shift
	if "$@"; then
		ok "$description"
	else
		not_ok "$description"
		return 1
	fi
}

in_range() { # VALUE LOW HIGH: all integers; an empty value is in no range
	[ -n "$1" ] && [ "$1" -ge "$2" ] && [ "$1" -le "$3" ] && return 0
	diag "${1:-nothing} is not within $2 .. $3"
	return 1
}

done_testing() {
	lab_guests_stop
	lab_libvirtd_stop
	diag "restarts of stalled guests: $lab_restarts"
	echo "1..$lab_tests"
	[ "$lab_failures" = 0 ] && [ "$lab_tests" -gt 0 ]
	exit
}

bail_out() { # REASON...: what was to be tested cannot be reached
	echo "Bail out! $*"
	lab_guests_stop
	lab_libvirtd_stop
	exit 1
}

# Waiting

# Level 1 has one processor, which its guests share, and takes 30 ms to start a process, so
# frequent checks use as few processes as possible.

read_now_ms() { # -> now_ms: since level 1 booted
	local up
	read -r up _ </proc/uptime
	now_ms=$((10#${up/./} * 10))
}

uptime_ms() {
	local now_ms
	read_now_ms
	echo "$now_ms"
}

# Nothing is ever written to this descriptor.
exec {lab_never}<> <(:)

pause() { # SECONDS
	read -rt "$1" -u "$lab_never"
	return 0
}

wait_until() { # SECONDS COMMAND...: until the command succeeds
	local now_ms end
	read_now_ms
	end=$((now_ms + $1 * 1000))
	shift
	until "$@"; do
		read_now_ms
		[ "$now_ms" -lt "$end" ] || return 1
		pause 0.1
	done
}

# libvirtd

lab_libvirtd_start() {
	mkdir -p /var/log/libvirt/qemu /run/libvirt
	! lab_ended /run/virtlogd.pid || virtlogd -d
	! lab_ended /run/libvirtd.pid || libvirtd -d
	wait_until 60 virsh -q version >/dev/null 2>&1 || bail_out "libvirtd does not answer"
}

lab_ended() { # PIDFILE
	local pid
	pid=$(cat "$1" 2>/dev/null)
	[ -z "$pid" ] || ! kill -0 "$pid" 2>/dev/null
}

lab_daemon_stop() { # NAME
	local file=/run/$1.pid pid
	! lab_ended "$file" || return 0
	pid=$(cat "$file") && kill "$pid"
	wait_until 20 lab_ended "$file" || kill -KILL "$pid"
}

# Without virtlogd the consoles of surviving guests are lost.
lab_libvirtd_stop() {
	lab_daemon_stop libvirtd
	lab_daemon_stop virtlogd
}

# Guests

lab_hugepages() { # COUNT of 2 MiB each
	echo "$1" >/proc/sys/vm/nr_hugepages
	[ "$(cat /proc/sys/vm/nr_hugepages)" -ge "$1" ]
}

lab_thp() { # always|madvise|never
	echo "$1" >/sys/kernel/mm/transparent_hugepage/enabled
}

# Uses the options of lab_guest_start, which are in the caller's variables.
lab_guest_xml() { # NAME
	local backing_xml=
	case $backing in
	anon) ;;
	memfd) backing_xml="<source type='memfd'/><access mode='shared'/>" ;;
	hugetlb) backing_xml="<hugepages/>" ;;
	esac
	[[ $balloon == '<'* ]] || balloon="<memballoon model='$balloon'/>"
	cat <<-XML
		<domain type='$type'>
		  <name>$1</name>
		  <memory unit='MiB'>$memory</memory>
		  <vcpu>$vcpus</vcpu>
		  <memoryBacking>$backing_xml</memoryBacking>
		  <os><type arch='x86_64' machine='$machine'>hvm</type>
		    <kernel>$lab_run/guest/vmlinuz</kernel><initrd>$initrd</initrd>
		    <cmdline>console=ttyS0 quiet panic=-1 mitigations=off $args</cmdline></os>
		  <features><acpi/><apic/></features>
		  $cpu
		  $top
		  <on_reboot>destroy</on_reboot><on_crash>destroy</on_crash>
		  <devices>
		    <emulator>/usr/bin/qemu-system-x86_64</emulator>
		    <controller type='usb' model='none'/>
		    <serial type='file'><source path='$lab_run/log/$1'/><target port='0'/></serial>
		    <video><model type='none'/></video>
		    $balloon
		    $devices
		  </devices>
		</domain>
	XML
}

lab_guest_ready() { # NAME
	grep -q '^wss-guest: \(ready\|error\)' "$lab_run/log/$1" 2>/dev/null
}

# Waits until the guest is ready. A slow guest has page faults all the time, so this
# fails only after LAB_STALL_SECONDS without any, or after LAB_READY_SECONDS.
lab_guest_wait_ready() { # NAME
	local end faults last='' moved now_ms
	read_now_ms
	end=$((now_ms + ${LAB_READY_SECONDS:-400} * 1000)) moved=$now_ms
	until lab_guest_ready "$1"; do
		pause 1
		read_now_ms
		faults=$(lab_guest_counter "$1" pf_taken 2>/dev/null)
		# Without KVM there is no such counter, and only the console shows progress.
		: "${faults:=$(stat -c %s "$lab_run/log/$1" 2>/dev/null)}"
		[ "$faults" = "$last" ] || moved=$now_ms
		last=$faults
		[ "$now_ms" -lt "$end" ] && [ $((now_ms - moved)) -lt $((${LAB_STALL_SECONDS:-30} * 1000)) ] ||
			return 1
	done
}

# lab_guest_start NAME [OPTION=VALUE...]: starts a guest and waits until it reports "ready".
#   memory=512 (MiB) vcpus=1 type=kvm|qemu backing=anon|memfd|hugetlb
#   args="wss.map=256 …" (vm-images/README.md) balloon=none|virtio|XML
#   machine=pc|q35 cpu=XML top=XML devices=XML: further elements
#   define=1: a persistent domain
#   initrd=FILE: instead of the test guest's
# A guest that stalls before it is ready is destroyed and started again, twice
# at most: under double emulation that happens in early boot. The restarts are
# counted and printed. A guest that stalls after "ready" is never started again.
lab_guest_start() {
	local name=$1 memory=512 vcpus=1 type=kvm backing=anon args='' balloon=none
	local machine=pc cpu='' top='' devices='' define='' option try began
	local initrd=$lab_run/guest/initrd
	shift
	for option; do
		case ${option%%=*} in
		memory | vcpus | type | backing | args | balloon | machine | cpu | top | devices | define | initrd)
			local "${option%%=*}=${option#*=}" ;;
		*) bail_out "lab_guest_start has no option $option" ;;
		esac
	done
	mkdir -p $lab_run/log
	lab_guest_xml "$name" >"$lab_run/$name.xml"
	for try in 1 2 3; do
		began=$(uptime_ms)
		rm -f "$lab_run/log/$name"
		if [ -n "$define" ]; then
			virsh -q define "$lab_run/$name.xml" && timeout 120 virsh -q start "$name"
		else
			timeout 120 virsh -q create "$lab_run/$name.xml"
		fi >"$lab_run/$name.virsh" 2>&1 ||
			bail_out "$name does not start: $(cat "$lab_run/$name.virsh")"
		if lab_guest_wait_ready "$name"; then
			diag "$name: ready after $(($(uptime_ms) - began)) ms, start $try"
			grep -q '^wss-guest: ready' "$lab_run/log/$name" && return 0
			bail_out "$name: $(grep '^wss-guest: error' "$lab_run/log/$name")"
		fi
		lab_restarts=$((lab_restarts + 1))
		diag "$name: RESTART, stalled or not ready after $(($(uptime_ms) - began)) ms"
		lab_guest_stop "$name"
	done
	bail_out "$name was not ready in three starts"
}

lab_guest_stop() { # NAME
	timeout 60 virsh -q destroy "$1" >/dev/null 2>&1
	timeout 60 virsh -q undefine "$1" >/dev/null 2>&1
	return 0
}

lab_guests_stop() {
	local name
	lab_ended /run/libvirtd.pid && return 0
	for name in $(timeout 20 virsh -q list --name 2>/dev/null); do
		lab_guest_stop "$name"
	done
}

lab_guest_pid() { # NAME
	cat "$lab_run/$1.pid" 2>/dev/null || cat "/run/libvirt/qemu/$1.pid"
}

lab_guest_kvm_dir() { # NAME: its counters in debugfs
	echo /sys/kernel/debug/kvm/"$(lab_guest_pid "$1")"-*
}

lab_guest_counter() { # NAME COUNTER
	cat "$(lab_guest_kvm_dir "$1")/$2"
}

# Prints the newest report. A line without its carriage return is incomplete.
lab_guest_line() { # NAME
	local line newest=
	while IFS= read -r line; do
		[[ ! $line =~ ^'wss-guest: time_ms='.*' touches='[0-9]+$'\r'$ ]] || newest=${line%$'\r'}
	done < <(tail -n 6 "$lab_run/log/$1")
	echo "$newest"
}

lab_line_field() { # LINE FIELD
	local rest=" $1 "
	[[ $rest == *" $2="* ]] || return 1
	rest=${rest#*" $2="}
	echo "${rest%% *}"
}

lab_guest_field() { # NAME FIELD: of the newest report
	lab_line_field "$(lab_guest_line "$1")" "$2"
}

lab_guest_past() { # NAME TIME_MS [STATE]: the newest report is later than that
	local line time
	line=$(lab_guest_line "$1")
	time=$(lab_line_field "$line" time_ms) && [ "$time" -gt "$2" ] &&
		[[ $line == *"state=${3-}"* ]]
}

# Waits until the guest has reported that time, by watching its console grow, because anything
# else would disturb it while its speed is measured.
wait_report() { # NAME TIME_MS
	local line now_ms end console follower status=1
	read_now_ms
	end=$((now_ms + 120000))
	exec {console}< <(exec tail -n 1 -f "$lab_run/log/$1")
	follower=$!
	while [ "$now_ms" -lt "$end" ]; do
		if IFS= read -rt 10 -u "$console" line; then
			[[ $line =~ ^'wss-guest: time_ms='([0-9]+)' ' ]] &&
				[ "${BASH_REMATCH[1]}" -ge "$2" ] && status=0 && break
		elif [ $? -le 128 ]; then # not the timeout: the end of it
			break
		fi
		read_now_ms
	done
	kill "$follower"
	exec {console}<&-
	return $status
}

# Fields to be compared must come from the same line, because a report may arrive between two
# reads.
lab_guest_alive() { # NAME [SECONDS]: reports go on, and touches unless idle
	local before after
	before=$(lab_guest_line "$1")
	wait_until "${2:-30}" lab_guest_past "$1" "$(lab_line_field "$before" time_ms || echo 0)" ||
		return 1
	after=$(lab_guest_line "$1")
	[ "$(lab_line_field "$after" state)" = idle ] ||
		[ "$(lab_line_field "$after" touches)" -gt \
			"$(lab_line_field "$before" touches || echo 0)" ]
}

lab_guest_loops_past() { # NAME LOOPS
	local loops
	loops=$(lab_guest_field "$1" loops)
	[ "${loops:-0}" -ge "$2" ]
}

# Waits for COUNT whole passes from now on, however long they take. The current
# interval counts passes that began before now, so it waits for one more.
lab_guest_wait_passes() { # NAME COUNT [SECONDS]
	local now loops
	now=$(lab_guest_field "$1" time_ms)
	wait_until "${3:-90}" lab_guest_past "$1" "${now:-0}" touching || return 1
	loops=$(lab_guest_field "$1" loops)
	wait_until "${3:-90}" lab_guest_loops_past "$1" $((loops + $2 + 1))
}

# Waits for a report of a whole interval in this state that began after now.
lab_guest_wait_state() { # NAME idle|touching [SECONDS]
	local now
	wait_until "${3:-60}" lab_guest_past "$1" 0 "$2" || return 1
	now=$(lab_guest_field "$1" time_ms)
	wait_until "${3:-60}" lab_guest_past "$1" "$now" "$2"
}
