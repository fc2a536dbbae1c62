#!/usr/bin/env bats
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# balloon --apply on guests whose balloons move: what the host gets back, what the journal says,
# and how each end of the controller, and each need of the guest, gives it back.

load functions.sh

mib=1048576
assigned=512
# With the default headroom of a fifth the policy's minimum is the floor of these guests.
floor=256

# A guest with cold page cache, statistics and autodeflate, that touches what its control line says.
start_with_balloon() { # NAME
	truncate -s 350M "$embed_root/disk.img"
	mkfifo -m 666 "$embed_root/$1.control".{in,out}
	embed_guest_start "$1" define=only memory=$assigned \
		args="wss.map=192 wss.lazy=1 wss.cold=320 wss.rate=20000 wss.phases=32:0 wss.control=ttyS1"
	devices="<memballoon model='virtio' autodeflate='on'><stats period='1'/></memballoon>"
	devices+="<serial type='pipe'><source path='$embed_root/$1.control'/><target port='1'/></serial>"
	devices+="<disk type='file' device='disk'><driver name='qemu' type='raw'/>"
	devices+="<source file='$embed_root/disk.img'/><target dev='vda' bus='virtio'/><readonly/></disk>"
	embed_virsh dumpxml "$1" --inactive | sed "s|<memballoon model='none'/>|$devices|" \
		>"$embed_root/$1.new.xml"
	embed_virsh define "$embed_root/$1.new.xml" >/dev/null
	embed_virsh start "$1" >/dev/null
	embed_guest_wait_ready "$1"
}

setup_file() {
	root_setup_file
	command -v sqlite3 >/dev/null || skip "needs sqlite3"
	start_with_balloon web1
	start_with_balloon web2
}

teardown_file() {
	root_teardown_file
}

# Windows of the very kind that --apply takes.
setup() {
	export VIRT_WSS_HISTORY=$BATS_TEST_TMPDIR/history.db
	touch_mib web1 32
	wait_until 20 taken_is web1 0
	wss sample web1 web2 --store --window 300ms --count 15
	[ "$status" = 0 ]
}

teardown() {
	tail -n 30 "$BATS_TEST_TMPDIR/err"
	[ -z "${apply_pid-}" ] || kill -KILL "$apply_pid" 2>/dev/null || true
}

# In the background until it is stopped: apply_pid.
apply() { # NAME...
	"$virt_wss" --debug balloon "$@" --apply --period 3s --window 300ms --pause 1s \
		2>"$BATS_TEST_TMPDIR/err" 3>&- &
	apply_pid=$!
}

apply_end() { # -> status
	status=0
	wait "$apply_pid" || status=$?
	grep -v 'debug: \|: info : ' "$BATS_TEST_TMPDIR/err" || true
}

said() { # REGULAR-EXPRESSION
	grep -q "$1" "$BATS_TEST_TMPDIR/err"
}

journal() { # SQL-CONDITION
	sqlite3 -cmd '.timeout 10000' "$VIRT_WSS_HISTORY" "SELECT count(*) FROM balloon WHERE $1"
}

none_left() {
	[ "$(journal 'done = 0')" = 0 ]
}

rss_mib() { # NAME
	awk '/^VmRSS:/ { print int($2 / 1024) }' "/proc/$(embed_guest_pid "$1")/status"
}

# What its balloon has taken, as the guest says.
taken_is() { # NAME BYTES
	[ "$(embed_guest_field "$1" balloon_bytes)" = "$2" ]
}

taken_at_least() { # NAME MIB
	[ "$(embed_guest_field "$1" balloon_bytes)" -ge $(($2 * mib)) ]
}

most_taken() { # NAME: in MiB, of all reports
	tr -d '\r' <"$(embed_console "$1")" | grep -o 'balloon_bytes=[0-9]*' | cut -d= -f2 | sort -n |
		tail -n 1 | awk '{ print int($1 / 1048576) }'
}

# Until a report of the new phase: how much it is able to touch in a second is another matter.
touch_mib() { # NAME MIB
	local phase
	phase=$(embed_guest_field "$1" phase)
	echo "$2:0" >"$embed_root/$1.control.in"
	wait_until 30 eval "[ \"\$(embed_guest_field $1 phase)\" -gt $phase ]"
}

no_oom() { # NAME
	embed_guest_alive "$1"
	refute grep -aq 'oom_kills=[1-9]' "$(embed_console "$1")"
}

@test "in steps to the floor: the host has it, the journal says so, stopped it is given back" {
	before=$(rss_mib web1)
	apply web1
	wait_until 120 said 'web1: it is at its floor'
	after=$(rss_mib web1)
	echo "# host RSS $before MiB before, $after MiB at the floor, $(journal 1) steps" >&3
	[ "$((before - after))" -ge 150 ]
	[ "$(journal 'done = 0')" -ge 10 ]
	# From size to size, each at most 5 % below the one before, none below the floor.
	[ "$(journal "original_bytes <> $((assigned * mib))")" = 0 ]
	[ "$(journal "to_bytes < $((floor * mib)) OR to_bytes < from_bytes * 0.95 - $mib")" = 0 ]
	kill -TERM "$apply_pid"
	apply_end
	[ "$status" = 143 ]
	none_left
	wait_until 20 taken_is web1 0
	[ "$(most_taken web1)" -le $((assigned - floor)) ]
	[ "$(most_taken web1)" -ge 150 ]
	no_oom web1
}

@test "a guest that needs more has its memory back, the controller goes on or leaves it" {
	apply web1
	wait_until 120 said 'web1: it is at its floor'
	touch_mib web1 192
	wait_until 20 taken_is web1 0
	grep -E 'gives back to 512 MiB: (the guest|the working set)' "$BATS_TEST_TMPDIR/err"
	no_oom web1
	kill -TERM "$apply_pid" 2>/dev/null || true
	apply_end
	none_left
}

@test "killed as the guest doubles its set: the watchdog gives the memory back" {
	apply web1
	wait_until 60 taken_at_least web1 60
	kill -KILL "$apply_pid"
	touch_mib web1 64
	wait_until 60 none_left
	wait_until 20 taken_is web1 0
	no_oom web1
}

@test "killed with its watchdog: refused until --restore gives back" {
	apply web1
	wait_until 60 taken_at_least web1 40
	watchdog=$(cat "/proc/$apply_pid/task/$apply_pid/children")
	[ "$(wc -w <<<"$watchdog")" = 1 ]
	# shellcheck disable=SC2086
	kill -KILL $apply_pid $watchdog
	wait "$apply_pid" || true
	apply_pid=
	wss balloon web1 --apply --period 3s --window 300ms
	[ "$status" = 1 ]
	[[ $err == *"unfinished steps"* ]]
	taken_at_least web1 40
	wss balloon web2 --restore
	[ "$status" = 0 ]
	refute none_left
	wss balloon --restore
	[ "$status" = 0 ]
	[[ $err == *"web1: given back to 512 MiB"* ]]
	none_left
	wait_until 20 taken_is web1 0
}

@test "a QEMU that does not answer holds up neither the other guest nor the end" {
	apply web1 web2
	wait_until 60 taken_at_least web1 40
	wait_until 60 taken_at_least web2 40
	stopped=$(embed_guest_pid web1)
	kill -STOP "$stopped"
	steps=$(journal "name = 'web2'")
	wait_until 60 eval "[ \$(journal \"name = 'web2'\") -gt $((steps + 2)) ]"
	kill -TERM "$apply_pid"
	wait_until 30 eval "! kill -0 $apply_pid 2>/dev/null"
	apply_end
	[ "$status" = 143 ]
	wait_until 20 taken_is web2 0
	[ "$(journal "done = 0 AND name = 'web2'")" = 0 ]
	[ "$(journal "done = 0 AND name = 'web1'")" -ge 1 ]
	kill -CONT "$stopped"
	# Its watchdog has not given up.
	wait_until 120 none_left
	wait_until 20 taken_is web1 0
}

@test "a guest that ends while it is shrunk is no unfinished business" {
	apply web1 web2
	wait_until 60 taken_at_least web1 40
	kill -KILL "$(embed_guest_pid web1)"
	wait_until 60 eval "[ \"\$(journal \"done = 0 AND name = 'web1'\")\" = 0 ]"
	[ "$(journal "done = 0 AND name = 'web2'")" -ge 1 ]
	kill -TERM "$apply_pid"
	apply_end
	none_left
	wait_until 20 taken_is web2 0
}
